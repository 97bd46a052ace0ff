//! Prints results as tables for human readers.

mod media;
mod radio;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use ackclock_core::results::{FairnessResult, FlowResult, LinkResult, RunResult, TransferResult, UserResult};
use ackclock_scenario::Point;
use serde_json::Value;

use self::media::{MEDIA, POINT_MEDIA, media};
use crate::paired::{self, Baseline, PointRuns};
use crate::statistics::{self, Confidence, Estimate};
use crate::table::{Align, Table, change, estimate, rate_unit, terminal_width};

/// Maximum number of flows shown one by one; more flows are shown in groups.
const MOST_FLOWS_SHOWN: usize = 20;

/// Column of a table: a number of the results with its heading and unit.
#[derive(Clone, Copy)]
struct Measure<T: ?Sized> {
    heading: &'static str,
    unit: Unit,
    of: fn(&T) -> Option<f64>,
}

/// Unit of a number in a table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// Rate in bit/s, shown with the prefix that suits the largest value.
    Rate,
    /// Fraction from 0 to 1, shown in percent.
    Share,
    /// Plain number, shown without a unit.
    Plain,
    /// Percentile of a histogram, which is accurate to [`RESOLUTION`].
    Percentile,
}

/// Accuracy of percentiles: see [`ackclock_core::Histogram`].
const RESOLUTION: f64 = 0.016;

const FLOW: &[Measure<FlowResult>] = &[
    Measure { heading: "goodput", unit: Unit::Rate, of: |flow| flow.goodput_bps },
    Measure { heading: "RTT mean ms", unit: Unit::Plain, of: |flow| flow.rtt_ms.mean },
    Measure { heading: "RTT p95 ms", unit: Unit::Percentile, of: |flow| flow.rtt_ms.p95 },
    Measure {
        heading: "retransmits",
        unit: Unit::Plain,
        of: |flow| flow.retransmits.map(|count| count as f64),
    },
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

/// Results of the link in one direction, with the fairness of the run if the table shows fairness.
struct OneWay {
    link: LinkResult,
    fairness: Option<FairnessResult>,
}

const LINK: &[Measure<OneWay>] = &[
    Measure { heading: "capacity", unit: Unit::Rate, of: |way| way.link.capacity_bps },
    Measure { heading: "used %", unit: Unit::Share, of: |way| way.link.utilisation },
    Measure { heading: "drops", unit: Unit::Plain, of: |way| Some(way.link.drops as f64) },
    Measure { heading: "aged", unit: Unit::Plain, of: |way| way.link.aged.map(|aged| aged as f64) },
    Measure {
        heading: "reordered %",
        unit: Unit::Share,
        of: |way| way.link.impaired.as_ref()?.reordered.share,
    },
    Measure {
        heading: "duplicated",
        unit: Unit::Plain,
        of: |way| Some(way.link.impaired.as_ref()?.duplicated as f64),
    },
    Measure {
        heading: "corrupted",
        unit: Unit::Plain,
        of: |way| Some(way.link.impaired.as_ref()?.corrupted as f64),
    },
    Measure { heading: "queue mean ms", unit: Unit::Plain, of: |way| way.link.queue_ms.mean },
    Measure { heading: "queue p95 ms", unit: Unit::Percentile, of: |way| way.link.queue_ms.p95 },
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
    Measure { heading: "queue p95 ms", unit: Unit::Percentile, of: |run| run.bottleneck.queue_ms.p95 },
    Measure { heading: "used %", unit: Unit::Share, of: |run| run.bottleneck.utilisation },
    Measure { heading: "drops", unit: Unit::Plain, of: |run| Some(run.bottleneck.drops as f64) },
    Measure { heading: "retransmits", unit: Unit::Plain, of: |run| Some(sum(run, |user| user.retransmits)) },
    Measure { heading: "time-outs", unit: Unit::Plain, of: |run| Some(sum(run, |user| user.timeouts)) },
];

/// Additional columns of the table of points if there are uploads.
const POINT_UP: &[Measure<RunResult>] = &[
    Measure { heading: "up goodput", unit: Unit::Rate, of: up_goodput },
    Measure { heading: "up queue p95 ms", unit: Unit::Percentile, of: |run| run.uplink.queue_ms.p95 },
    Measure { heading: "up used %", unit: Unit::Share, of: |run| run.uplink.utilisation },
    Measure { heading: "up drops", unit: Unit::Plain, of: |run| Some(run.uplink.drops as f64) },
];

/// Prints the results of one scenario's flows and bottleneck: means over `runs` with confidence intervals.
pub(crate) fn of_runs(runs: &[&RunResult], uploads: Uploads, confidence: Confidence) -> String {
    let width = terminal_width();
    let all = runs.len();
    let runs = different(runs);
    let mut tables = Vec::new();
    let flows = flow_rows(runs);
    if !flows.is_empty() {
        tables.push(table(&["flow", "sender", "regulator"], &flows, FLOW, confidence));
    }
    let pictures: Vec<_> = flows.iter().filter(|(_, flows)| media(flows[0]).is_some()).cloned().collect();
    if !pictures.is_empty() {
        tables.push(table(&["flow", "sender", "regulator"], &pictures, MEDIA, confidence));
    }
    let users = user_rows(runs);
    if flows.is_empty() || users.len() > 1 {
        tables.push(table(&["user"], &users, USER, confidence));
    }
    tables.push(links(runs, uploads, confidence));
    tables.extend(radio::of_points(&[], [(Vec::new(), runs)].into_iter(), confidence));
    tables.extend(transfers(runs, confidence));
    let tables: Vec<_> = tables.iter().map(|table| table.render(width)).collect();
    tables.join("\n") + &note([(all, runs.len())].into_iter(), confidence)
}

/// Table of the downlink and, if there are uploads, the uplink.
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

/// Whether the scenario has uploads. With uploads, the results include the uplink.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Uploads {
    /// Some flows of the scenario are uploads.
    Some,
    /// All flows of the scenario are downloads.
    None,
}

impl Uploads {
    /// Returns whether any of these sweep points has uploads.
    pub(crate) fn of(points: &[Point]) -> Self {
        let uploads = points.iter().any(|point| point.scenario.tables().has_uploads());
        if uploads { Self::Some } else { Self::None }
    }
}

/// Prints one row per sweep point. With `marks`, `*` marks points that no other point beats in both goodput and
/// round-trip time.
pub(crate) fn of_points(
    points: &[PointRuns<'_>],
    marks: Marks,
    uploads: Uploads,
    confidence: Confidence,
) -> String {
    let keys: Vec<&str> =
        points.first().map_or(Vec::new(), |point| point.labels.iter().map(|(key, _)| key.as_str()).collect());
    let best = match marks {
        Marks::Best => undominated(points, confidence),
        Marks::None => BTreeSet::new(),
    };
    let radio = radio_table(&keys, points, confidence);
    let rows: Vec<_> = points
        .iter()
        .enumerate()
        .map(|(index, point)| {
            let mut names = labels(point);
            if marks == Marks::Best {
                names.insert(0, if best.contains(&index) { "*" } else { "" }.to_owned());
            }
            (names, different(&point.runs).to_vec())
        })
        .collect();
    let headings: Vec<&str> = if marks == Marks::Best { [&[""], keys.as_slice()].concat() } else { keys };
    let up = if uploads == Uploads::Some { POINT_UP } else { &[] };
    let mut shown = table(&headings, &rows, POINT.iter().chain(up).chain(POINT_MEDIA), confidence);
    let counts =
        || points.iter().zip(&rows).map(|(point, (_, different))| (point.runs.len(), different.len()));
    let repeated = counts().any(|(_, different)| different > 1);
    let baseline = Baseline::of(points).filter(|_| repeated);
    if let Some(baseline) = &baseline {
        add_changes(&mut shown, points, baseline, confidence);
    }
    let paired = baseline.map_or_else(String::new, |baseline| paired_note(&plain(&baseline.value)));
    shown.render(terminal_width()) + &legend(marks, repeated) + &radio + &note(counts(), confidence) + &paired
}

fn labels(point: &PointRuns<'_>) -> Vec<String> {
    point.labels.iter().map(|(_, value)| plain(value)).collect()
}

/// Table of the radio, if it is measured.
fn radio_table(keys: &[&str], points: &[PointRuns<'_>], confidence: Confidence) -> String {
    let rows = points.iter().map(|point| (labels(point), different(&point.runs)));
    let radio = radio::of_points(keys, rows, confidence);
    radio.map_or_else(String::new, |radio| format!("\n{}", radio.render(terminal_width())))
}

/// Explanation of the star in the table, for single or repeated runs.
fn legend(marks: Marks, repeated: bool) -> String {
    const STAR: &str = "\n* no other combination has more goodput and a smaller round-trip time";
    match (marks, repeated) {
        (Marks::None, _) => String::new(),
        (Marks::Best, false) => format!("{STAR}.\n"),
        (Marks::Best, true) => format!("{STAR}, one of them beyond chance.\n"),
    }
}

/// Removes duplicate runs: if all runs have equal numbers, only the first is returned.
fn different<'a, 'b>(runs: &'a [&'b RunResult]) -> &'a [&'b RunResult] {
    let equal = |one: &RunResult, other: &RunResult| {
        one.flows == other.flows
            && one.users == other.users
            && one.transfers == other.transfers
            && one.bottleneck == other.bottleneck
            && one.uplink == other.uplink
    };
    match runs {
        [first, others @ ..] if others.iter().all(|run| equal(first, run)) => &runs[..1],
        runs => runs,
    }
}

/// Adds columns with paired differences from the baseline.
fn add_changes(table: &mut Table, points: &[PointRuns<'_>], baseline: &Baseline, confidence: Confidence) {
    for (what, number) in [("goodput", goodput as paired::Number), ("RTT mean", mean_rtt)] {
        let changes = baseline.changes(points, number, confidence);
        if changes.iter().any(Option::is_some) {
            let cells = changes.into_iter().map(change).collect();
            table.last_column(format!("{what} vs {} %", plain(&baseline.value)), cells);
        }
    }
}

/// Whether the table marks the best points with a star.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marks {
    /// The table marks the best points with a star.
    Best,
    /// The table marks no points with a star.
    None,
}

/// Returns the points that no other point beats. A point beats another if its goodput is at least as high and its
/// round-trip time at most as long, and at least one of these differences is significant.
fn undominated(points: &[PointRuns<'_>], confidence: Confidence) -> BTreeSet<usize> {
    let mean = |point: &PointRuns<'_>, of: paired::Number| {
        statistics::mean(&point.runs.iter().filter_map(|run| of(run)).collect::<Vec<_>>())
    };
    let places: Vec<_> =
        points.iter().map(|point| Some((mean(point, goodput)?, mean(point, mean_rtt)?))).collect();
    let better = |one: usize, other: usize| {
        let compared = |of| paired::beyond_chance(&points[one], &points[other], of, confidence);
        compared(goodput) == Ordering::Greater || compared(mean_rtt) == Ordering::Less
    };
    let beaten = |index: usize, (goodput, rtt): (f64, f64)| {
        places.iter().enumerate().any(|(other, place)| {
            place.is_some_and(|(more, less)| more >= goodput && less <= rtt) && better(other, index)
        })
    };
    places
        .iter()
        .enumerate()
        .filter(|&(index, place)| place.is_some_and(|at| !beaten(index, at)))
        .map(|(index, _)| index)
        .collect()
}

/// Total goodput of a run's downloads, bit/s; that of its uploads if there are no downloads.
pub(crate) fn goodput(run: &RunResult) -> Option<f64> {
    run.bottleneck.goodput_bps.or(run.uplink.goodput_bps)
}

/// Total goodput of a run's uploads beside downloads, bit/s.
fn up_goodput(run: &RunResult) -> Option<f64> {
    run.bottleneck.goodput_bps.and(run.uplink.goodput_bps)
}

/// Mean utilisation of the downlink over runs; `None` if no run has a utilisation.
pub(crate) fn utilisation(runs: &[&RunResult]) -> Option<f64> {
    statistics::mean(&runs.iter().filter_map(|run| run.bottleneck.utilisation).collect::<Vec<_>>())
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
    Measure { heading: "latency p95 ms", unit: Unit::Percentile, of: |class| class.latency_ms.p95 },
    Measure { heading: "goodput", unit: Unit::Rate, of: |class| class.goodput_bps },
    Measure { heading: "link used %", unit: Unit::Share, of: |class| class.link?.utilisation },
];

/// Table of transfers by user and size class, or by size class only if there are many users. Returns `None` if the
/// workload has no transfers.
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

/// Groups the users for the table: one row per user over all runs, or a single row for many users.
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

/// Groups the flows for the table: one row per flow over all runs. Many flows are grouped by their common settings.
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

/// Creates a table of named rows and measured numbers.
fn table<'m, T: 'm>(
    names: &[&str],
    rows: &[(Vec<String>, Vec<&T>)],
    measures: impl IntoIterator<Item = &'m Measure<T>>,
    confidence: Confidence,
) -> Table {
    let mut table = Table::default();
    for name in names {
        table.column(*name, Align::Left);
    }
    let all = measures.into_iter().map(|measure| Shown::new(measure, rows, confidence));
    let shown: Vec<_> = all.filter(Shown::exists).collect();
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

/// Column of numbers, shown in a suitable unit.
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
            Unit::Plain | Unit::Percentile => (measure.heading.to_owned(), 1.0),
            Unit::Share => (measure.heading.to_owned(), 100.0),
            Unit::Rate => {
                let (name, bps) = rate_unit(all.iter().flatten().copied().fold(0.0, f64::max));
                (format!("{} {name}", measure.heading), 1.0 / bps)
            }
        };
        let scaled = |row: &Vec<f64>| {
            let of = Estimate::of(&row.iter().map(|value| value * scale).collect::<Vec<_>>(), confidence)?;
            let binned = measure.unit == Unit::Percentile && row.len() > 1;
            Some(if binned { of.resolved_to(RESOLUTION) } else { of })
        };
        Self { heading, cells: all.iter().map(scaled).collect() }
    }

    /// Returns whether any row has a number in this column. Columns without numbers are omitted from the table.
    fn exists(&self) -> bool {
        self.cells.iter().any(Option::is_some)
    }
}

/// Explains the confidence intervals of a table. The iterator gives the number of runs and of distinct runs of each
/// point.
fn note(runs: impl Iterator<Item = (usize, usize)>, confidence: Confidence) -> String {
    let (copies, others): (Vec<_>, Vec<_>) = runs.partition(|&(all, different)| all > different);
    let intervals = match others.iter().map(|&(all, _)| all).max() {
        Some(most @ 2..) => {
            format!(
                "\n± is the {confidence} % confidence interval over {most} runs (Student's law), with the \
                 resolution of percentiles, 1.6 %; a number without ± is equal in these runs.\n"
            )
        }
        _ => String::new(),
    };
    let one = match (copies.first(), others.is_empty()) {
        (None, _) => String::new(),
        (Some(_), true) => "\nThese runs are one run: nothing in this scenario is drawn.\n".to_owned(),
        (Some(_), false) => "\nRows without ± are one run: nothing in them is drawn.\n".to_owned(),
    };
    intervals + &one
}

fn paired_note(baseline: &str) -> String {
    format!(
        "\n\"vs {baseline}\" compares runs of equal seed and number, in percent of the mean of {baseline}.\n"
    )
}

/// Formats a scenario value as written after `--set`.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
