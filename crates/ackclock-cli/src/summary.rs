//! Results as tables for people.

use std::collections::{BTreeMap, BTreeSet};

use ackclock_core::results::{FairnessResult, FlowResult, LinkResult, RunResult, TransferResult, UserResult};
use ackclock_scenario::Point;
use serde_json::Value;

use crate::statistics::{self, Confidence, Estimate};
use crate::table::{Align, Table, estimate, rate_unit, terminal_width};

/// More flows than this are shown by their kind and not one by one.
const MOST_FLOWS_SHOWN: usize = 20;

/// A number that a table shows of a thing.
#[derive(Clone, Copy)]
struct Measure<T: ?Sized> {
    heading: &'static str,
    unit: Unit,
    of: fn(&T) -> Option<f64>,
}

/// In what a number is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// Bit/s, shown in whatever suits the largest.
    Rate,
    /// A share of one, shown in percent.
    Share,
    /// As it is.
    Plain,
}

const FLOW: &[Measure<FlowResult>] = &[
    Measure { heading: "goodput", unit: Unit::Rate, of: |flow| flow.goodput_bps },
    Measure { heading: "RTT mean ms", unit: Unit::Plain, of: |flow| flow.rtt_ms.mean },
    Measure { heading: "RTT p95 ms", unit: Unit::Plain, of: |flow| flow.rtt_ms.p95 },
    Measure { heading: "retransmits", unit: Unit::Plain, of: |flow| Some(flow.retransmits as f64) },
    Measure {
        heading: "fast retr.",
        unit: Unit::Plain,
        of: |flow| flow.fast_retransmits.map(|count| count as f64),
    },
    Measure { heading: "time-outs", unit: Unit::Plain, of: |flow| flow.timeouts.map(|count| count as f64) },
    Measure {
        heading: "spurious f.r.",
        unit: Unit::Plain,
        of: |flow| flow.spurious.map(|spurious| spurious.fast_retransmits as f64),
    },
    Measure {
        heading: "spurious t.o.",
        unit: Unit::Plain,
        of: |flow| flow.spurious.map(|spurious| spurious.timeouts as f64),
    },
    Measure { heading: "done s", unit: Unit::Plain, of: |flow| flow.completion_s },
    Measure { heading: "link used %", unit: Unit::Share, of: |flow| flow.link?.utilisation },
];

/// The link of a direction, and how fair the run was where that stands beside it.
struct OneWay {
    link: LinkResult,
    fairness: Option<FairnessResult>,
}

const LINK: &[Measure<OneWay>] = &[
    Measure { heading: "capacity", unit: Unit::Rate, of: |way| way.link.capacity_bps },
    Measure { heading: "used %", unit: Unit::Share, of: |way| way.link.utilisation },
    Measure { heading: "drops", unit: Unit::Plain, of: |way| Some(way.link.drops as f64) },
    Measure { heading: "queue mean ms", unit: Unit::Plain, of: |way| way.link.queue_ms.mean },
    Measure { heading: "queue p95 ms", unit: Unit::Plain, of: |way| way.link.queue_ms.p95 },
    Measure { heading: "Jain users", unit: Unit::Plain, of: |way| way.fairness?.jain_users },
    Measure { heading: "Jain flows", unit: Unit::Plain, of: |way| way.fairness?.jain_flows },
];

const USER: &[Measure<UserResult>] = &[
    Measure { heading: "goodput", unit: Unit::Rate, of: |user| Some(user.goodput_bps) },
    Measure { heading: "flows", unit: Unit::Plain, of: |user| Some(user.flows.into()) },
    Measure { heading: "retransmits", unit: Unit::Plain, of: |user| Some(user.retransmits as f64) },
    Measure { heading: "time-outs", unit: Unit::Plain, of: |user| Some(user.timeouts as f64) },
];

const POINT: &[Measure<RunResult>] = &[
    Measure { heading: "goodput", unit: Unit::Rate, of: goodput },
    Measure { heading: "RTT mean ms", unit: Unit::Plain, of: mean_rtt },
    Measure { heading: "latency mean ms", unit: Unit::Plain, of: mean_latency },
    Measure { heading: "queue p95 ms", unit: Unit::Plain, of: |run| run.bottleneck.queue_ms.p95 },
    Measure { heading: "used %", unit: Unit::Share, of: |run| run.bottleneck.utilisation },
    Measure { heading: "drops", unit: Unit::Plain, of: |run| Some(run.bottleneck.drops as f64) },
    Measure { heading: "retransmits", unit: Unit::Plain, of: |run| Some(sum(run, |user| user.retransmits)) },
    Measure { heading: "time-outs", unit: Unit::Plain, of: |run| Some(sum(run, |user| user.timeouts)) },
];

/// What stands behind, where there are uploads.
const POINT_UP: &[Measure<RunResult>] = &[
    Measure { heading: "up queue p95 ms", unit: Unit::Plain, of: |run| run.uplink.queue_ms.p95 },
    Measure { heading: "up used %", unit: Unit::Share, of: |run| run.uplink.utilisation },
    Measure { heading: "up drops", unit: Unit::Plain, of: |run| Some(run.uplink.drops as f64) },
];

/// What the flows of one scenario got, and how the bottleneck fared; means over `runs` with their intervals.
pub(crate) fn of_runs(runs: &[&RunResult], uploads: Uploads, confidence: Confidence) -> String {
    let width = terminal_width();
    let mut tables = Vec::new();
    let flows = flow_rows(runs);
    if !flows.is_empty() {
        tables.push(table(&["flow", "sender", "regulator"], &flows, FLOW, confidence));
    }
    let users = user_rows(runs);
    if flows.is_empty() || users.len() > 1 {
        tables.push(table(&["user"], &users, USER, confidence));
    }
    tables.push(links(runs, uploads, confidence));
    tables.extend(transfers(runs, confidence));
    let tables: Vec<_> = tables.iter().map(|table| table.render(width)).collect();
    let note = if runs.len() > 1 { interval_note(runs.len(), confidence) } else { String::new() };
    tables.join("\n") + &note
}

/// The link towards the mobiles, and beside uploads the one from them.
fn links(runs: &[&RunResult], uploads: Uploads, confidence: Confidence) -> Table {
    let down: Vec<_> = runs
        .iter()
        .map(|run| OneWay { link: run.bottleneck.clone(), fairness: Some(run.fairness) })
        .collect();
    let up: Vec<_> = runs.iter().map(|run| OneWay { link: run.uplink.clone(), fairness: None }).collect();
    let (down, up) = (down.iter().collect(), up.iter().collect());
    match uploads {
        Uploads::None => table(&[], &[(Vec::new(), down)], LINK, confidence),
        Uploads::Some => {
            let rows = [(vec!["down".to_owned()], down), (vec!["up".to_owned()], up)];
            table(&["link"], &rows, LINK, confidence)
        }
    }
}

/// Whether there are uploads, beside which the link from the mobiles counts too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Uploads {
    /// There are.
    Some,
    /// All data goes to the mobiles.
    None,
}

impl Uploads {
    /// At any of these points.
    pub(crate) fn of(points: &[Point]) -> Self {
        let uploads = points.iter().any(|point| point.scenario.tables().has_uploads());
        if uploads { Self::Some } else { Self::None }
    }
}

/// A point of a sweep or comparison, and its finished runs.
pub(crate) struct PointRuns<'a> {
    /// What varies, and its value here.
    pub(crate) labels: &'a [(String, Value)],
    /// The runs.
    pub(crate) runs: Vec<&'a RunResult>,
}

/// One row a point; `*` marks those that no other beats in goodput and round-trip time at once, where `marks` says so.
pub(crate) fn of_points(
    points: &[PointRuns<'_>],
    marks: Marks,
    uploads: Uploads,
    confidence: Confidence,
) -> String {
    let keys: Vec<&str> =
        points.first().map_or(Vec::new(), |point| point.labels.iter().map(|(key, _)| key.as_str()).collect());
    let best = match marks {
        Marks::Best => undominated(points),
        Marks::None => BTreeSet::new(),
    };
    let rows: Vec<_> = points
        .iter()
        .enumerate()
        .map(|(index, point)| {
            let mut names: Vec<String> = point.labels.iter().map(|(_, value)| plain(value)).collect();
            if marks == Marks::Best {
                names.insert(0, if best.contains(&index) { "*" } else { "" }.to_owned());
            }
            (names, point.runs.clone())
        })
        .collect();
    let headings: Vec<&str> = if marks == Marks::Best { [&[""], keys.as_slice()].concat() } else { keys };
    let most = points.iter().map(|point| point.runs.len()).max().unwrap_or(0);
    let note = if most > 1 { interval_note(most, confidence) } else { String::new() };
    let legend = match marks {
        Marks::Best => "\n* no other combination has more goodput and a smaller round-trip time.\n",
        Marks::None => "",
    };
    let measures = if uploads == Uploads::Some { &[POINT, POINT_UP].concat() } else { POINT };
    table(&headings, &rows, measures, confidence).render(terminal_width()) + legend + &note
}

/// Whether the best points are marked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marks {
    /// They are.
    Best,
    /// They are not.
    None,
}

/// The points that no other one beats in goodput and round-trip time at once.
fn undominated(points: &[PointRuns<'_>]) -> BTreeSet<usize> {
    let mean = |point: &PointRuns<'_>, of: fn(&RunResult) -> Option<f64>| {
        statistics::mean(&point.runs.iter().filter_map(|run| of(run)).collect::<Vec<_>>())
    };
    let places: Vec<_> =
        points.iter().map(|point| Some((mean(point, goodput)?, mean(point, mean_rtt)?))).collect();
    let beaten = |(goodput, rtt): (f64, f64)| {
        places
            .iter()
            .flatten()
            .any(|&(more, less)| more >= goodput && less <= rtt && (more > goodput || less < rtt))
    };
    places
        .iter()
        .enumerate()
        .filter(|(_, place)| place.is_some_and(|at| !beaten(at)))
        .map(|(i, _)| i)
        .collect()
}

/// Payload delivered, bit/s: the sum over the flows, each from its start to its end, or what all users got in the whole
/// run, where flows come and go.
fn goodput(run: &RunResult) -> Option<f64> {
    if !run.transfers.is_empty() {
        return Some(run.users.iter().map(|user| user.goodput_bps).sum());
    }
    let rates: Vec<f64> = run.flows.iter().filter_map(|flow| flow.goodput_bps).collect();
    (!rates.is_empty()).then(|| rates.iter().sum())
}

/// Mean latency of all transfers, ms.
fn mean_latency(run: &RunResult) -> Option<f64> {
    let all = || run.transfers.iter().filter(|class| class.user.is_none());
    let count: u64 = all().map(|class| class.count).sum();
    let sum: f64 = all().filter_map(|class| Some(class.latency_ms.mean? * class.count as f64)).sum();
    (count > 0).then(|| sum / count as f64)
}

/// Mean of the flows' mean round-trip times, ms.
fn mean_rtt(run: &RunResult) -> Option<f64> {
    let times: Vec<f64> = run.flows.iter().filter_map(|flow| flow.rtt_ms.mean).collect();
    statistics::mean(&times)
}

fn sum(run: &RunResult, of: fn(&UserResult) -> u64) -> f64 {
    run.users.iter().map(of).sum::<u64>() as f64
}

const TRANSFER: &[Measure<TransferResult>] = &[
    Measure { heading: "transfers", unit: Unit::Plain, of: |class| Some(class.count as f64) },
    Measure { heading: "unfinished", unit: Unit::Plain, of: |class| Some(class.unfinished as f64) },
    Measure { heading: "latency mean ms", unit: Unit::Plain, of: |class| class.latency_ms.mean },
    Measure { heading: "latency p95 ms", unit: Unit::Plain, of: |class| class.latency_ms.p95 },
    Measure { heading: "goodput", unit: Unit::Rate, of: |class| class.goodput_bps },
    Measure { heading: "link used %", unit: Unit::Share, of: |class| class.link?.utilisation },
];

/// Transfers by user and class of size, of all users alone where there are many; `None` where the workload has none.
fn transfers(runs: &[&RunResult], confidence: Confidence) -> Option<Table> {
    let many = runs.iter().any(|run| run.users.len() > MOST_FLOWS_SHOWN);
    let mut classes: BTreeMap<_, Vec<&TransferResult>> = BTreeMap::new();
    for class in runs.iter().flat_map(|run| &run.transfers).filter(|class| class.user.is_none() || !many) {
        classes.entry((class.user, class.from_bytes)).or_default().push(class);
    }
    let of_user = classes.keys().any(|(user, _)| user.is_some());
    let rows: Vec<_> = classes
        .into_values()
        .map(|of| {
            let user = of_user.then(|| of[0].user.map_or("all".to_owned(), |user| user.to_string()));
            (user.into_iter().chain([size_of(of[0])]).collect(), of)
        })
        .collect();
    let names: &[&str] = if of_user { &["user", "bytes"] } else { &["bytes"] };
    (!rows.is_empty()).then(|| table(names, &rows, TRANSFER, confidence))
}

fn size_of(class: &TransferResult) -> String {
    use crate::table::count;
    match class.to_bytes {
        Some(to) => format!("{} to {}", count(class.from_bytes), count(to)),
        None => format!("from {}", count(class.from_bytes)),
    }
}

/// Users one by one, each over all runs; many users in one row.
fn user_rows<'a>(runs: &[&'a RunResult]) -> Vec<(Vec<String>, Vec<&'a UserResult>)> {
    let one_by_one = runs.iter().all(|run| run.users.len() <= MOST_FLOWS_SHOWN);
    let mut users: BTreeMap<Option<u32>, Vec<&UserResult>> = BTreeMap::new();
    for user in runs.iter().flat_map(|run| &run.users) {
        users.entry(one_by_one.then_some(user.id)).or_default().push(user);
    }
    let name = |id: Option<u32>, users: &[_]| match id {
        Some(id) => id.to_string(),
        None => format!("{} users", crate::table::count((users.len() / runs.len()) as u64)),
    };
    users.into_iter().map(|(id, users)| (vec![name(id, &users)], users)).collect()
}

/// Flows one by one, each over all runs; many flows by what they have in common.
fn flow_rows<'a>(runs: &[&'a RunResult]) -> Vec<(Vec<String>, Vec<&'a FlowResult>)> {
    let one_by_one = runs.iter().all(|run| run.flows.len() <= MOST_FLOWS_SHOWN);
    let mut rows: Vec<(Vec<String>, Vec<&FlowResult>)> = Vec::new();
    for flow in runs.iter().flat_map(|run| &run.flows) {
        let id = if one_by_one { flow.id.to_string() } else { String::new() };
        let names = vec![id, flow.sender.clone(), flow.regulator.clone().unwrap_or_else(|| "-".to_owned())];
        match rows.iter_mut().find(|(row, _)| *row == names) {
            Some((_, flows)) => flows.push(flow),
            None => rows.push((names, vec![flow])),
        }
    }
    if !one_by_one {
        for (names, flows) in &mut rows {
            names[0] = format!("{} flows", crate::table::count((flows.len() / runs.len()) as u64));
        }
    }
    rows
}

/// Rows of names and of what is measured, as a table.
fn table<T>(
    names: &[&str],
    rows: &[(Vec<String>, Vec<&T>)],
    measures: &[Measure<T>],
    confidence: Confidence,
) -> Table {
    let mut table = Table::default();
    for name in names {
        table.column(*name, Align::Left);
    }
    let shown: Vec<_> =
        measures.iter().map(|measure| Shown::new(measure, rows, confidence)).filter(Shown::exists).collect();
    for column in &shown {
        table.column(column.heading.clone(), Align::Right);
    }
    for (index, (cells, _)) in rows.iter().enumerate() {
        table.row(
            cells.iter().cloned().chain(shown.iter().map(|column| estimate(column.cells[index]))).collect(),
        );
    }
    table
}

/// A column of numbers in the unit that suits them.
struct Shown {
    heading: String,
    cells: Vec<Option<Estimate>>,
}

impl Shown {
    fn new<T>(measure: &Measure<T>, rows: &[(Vec<String>, Vec<&T>)], confidence: Confidence) -> Self {
        let values =
            |things: &Vec<&T>| things.iter().filter_map(|thing| (measure.of)(thing)).collect::<Vec<_>>();
        let all: Vec<Vec<f64>> = rows.iter().map(|(_, things)| values(things)).collect();
        let (heading, scale) = match measure.unit {
            Unit::Plain => (measure.heading.to_owned(), 1.0),
            Unit::Share => (measure.heading.to_owned(), 100.0),
            Unit::Rate => {
                let (name, bps) = rate_unit(all.iter().flatten().copied().fold(0.0, f64::max));
                (format!("{} {name}", measure.heading), 1.0 / bps)
            }
        };
        let scaled = |row: &Vec<f64>| {
            Estimate::of(&row.iter().map(|value| value * scale).collect::<Vec<_>>(), confidence)
        };
        Self { heading, cells: all.iter().map(scaled).collect() }
    }

    /// Whether any row has the number; columns of `-` are left out.
    fn exists(&self) -> bool {
        self.cells.iter().any(Option::is_some)
    }
}

fn interval_note(runs: usize, confidence: Confidence) -> String {
    format!("\n± is the {confidence} % confidence interval over {runs} runs (Student's law).\n")
}

/// A value of the scenario as it is written behind `--set`.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
