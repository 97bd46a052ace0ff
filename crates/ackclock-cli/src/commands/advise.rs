//! `ackclock advise`: compares regulators and buffers on a link, and recommends one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;

use ackclock_box::config::{DEFAULT_BUFFER, DEFAULT_REGULATOR, Policy};
use ackclock_core::{Rate, Span, name_of};
use ackclock_import::formats::Options;
use ackclock_link::Side;
use ackclock_scenario::{Axis, DiskFiles, Limit, Point, Scenario, certainties, jobs};
use serde_json::{Value, json};

use super::compare::values;
use super::run::sink;
use super::sweep::by_point;
use crate::advice::{Choice, Cost, Prefer, TOLERATED, choose, costs};
use crate::batch::{self, Extras, Timing};
use crate::failure::Failure;
use crate::lines::Lines;
use crate::output;
use crate::paired::PointRuns;
use crate::scenario_file::{
    Repetition, ScenarioFile, patiently, say_begins, say_defaults, say_doubts, say_recordings, say_unswept,
};
use crate::statistics::{Confidence, Estimate};
use crate::table::{Align, Table, estimate, rate_unit, terminal_width};

/// Compare regulators and buffers on a link, and recommend one.
///
/// Runs no regulator, wrd, wrb, ack-regulator and forecast with several buffers, and FQ-CoDel without a regulator, all
/// from the same start offsets. Recommends the shortest queue whose goodput is within 2 % of the best. `ackclock box`, for
/// a queue that belongs to somebody else, is simulated on the link as it is, and recommended if its goodput is within 5 %
/// of the best.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Recording of a link, or scenario file (TOML).
    file: PathBuf,
    /// Senders to advise on, separated by commas. By default the senders of the scenario; for a recording, CUBIC.
    #[arg(long, value_name = "A,B")]
    senders: Option<String>,
    /// Number of runs of each candidate.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Seed of the random numbers, overriding the seed in the file.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// What matters more: a short queue or the last percent of goodput.
    #[arg(long, value_enum, default_value_t)]
    prefer: Prefer,
    /// Print one JSON object with all candidates and the recommendation.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  ackclock advise scenarios/lte.toml
  ackclock advise drive.csv --senders cubic,bbr
  ackclock advise drive.csv --prefer goodput --runs 40";

/// Regulators to compare, from simple to complex.
const REGULATORS: [&str; 5] = ["none", "wrd", "wrb", "ack-regulator", "forecast"];
/// Buffers to compare in addition to the scenario's own buffer.
const BUFFERS: [&str; 4] = ["0.5bdp", "1bdp", "2bdp", "500ms"];
/// Wired RTT that is assumed for a recording, in milliseconds.
const WIRED_MS: u64 = 40;
/// Key of the candidate with a box that only observes the present link.
const EDGE: &str = "edge";
/// Largest loss of goodput that a box may cost, as a fraction of the best goodput: nothing else can shorten a queue that
/// belongs to somebody else.
const TOLERATED_OF_BOX: f64 = 0.05;
/// Interval of the kernel's records.
const RECORD_INTERVAL: &str = "1ms";
/// Data segments that one core simulates in a second, for the estimate of the duration.
const SEGMENTS_PER_SECOND: f64 = 1e6;

/// Runs the candidates, and prints the table and the recommendation.
pub(crate) fn perform(args: &Args) -> Result<(), Failure> {
    let (scenario, files, file) = loaded(args)?;
    let points = candidates(args, &scenario)?;
    for point in &points {
        point.scenario.check(&files)?;
    }
    let channel = scenario.rate_and_base_rtt(&files)?;
    say(&scenario, &points, &files, channel)?;
    let jobs = jobs(&points);
    let extras = Extras { series: None, capture: None, timing: Timing::Omitted };
    let lines = Lines::new(vec![sink(false, &file)], jobs.len());
    let finished = batch::simulate(file.stem(), &jobs, &files, extras, lines, BTreeMap::new())?;
    let runs = by_point(&points, &jobs, &finished.ended);
    finished.verdict?;
    let present = Present {
        buffer: scenario.configuration()["edge"]["buffer"].clone(),
        queue: scenario.configuration()["edge"]["queue"].clone(),
        base_rtt: channel.map(|(_, base_rtt)| base_rtt),
    };
    let advised: Vec<Advised<'_>> = by_sender(runs)
        .into_iter()
        .map(|(sender, points)| Advised::new(sender, points, &present, args))
        .collect::<Option<_>>()
        .ok_or_else(|| {
            Failure::Input(format!(
                "{}: no download delivers data: nothing can be compared",
                args.file.display()
            ))
        })?;
    if args.json {
        let recordings = certainties(scenario.tables(), &files);
        let objects: Vec<Value> = advised.iter().map(Advised::as_json).collect();
        return output::print(&format!("{}\n", json!({"advice": objects, "recordings": recordings})));
    }
    let shown: Vec<String> = advised.iter().map(Advised::text).collect();
    output::print(&shown.join("\n"))
}

/// Keys whose values `advise` tries.
const REGULATOR_KEY: &str = "edge.regulator";
const QUEUE_KEY: &str = "edge.queue";
const BUFFER_KEY: &str = "edge.buffer";

/// Loads the scenario, or makes one that plays the recording.
fn loaded(args: &Args) -> Result<(Scenario, DiskFiles, ScenarioFile), Failure> {
    let file = ScenarioFile::new(args.file.clone(), Vec::new());
    if args.file.extension().is_some_and(|extension| extension == "toml") {
        let varied = [REGULATOR_KEY, QUEUE_KEY, BUFFER_KEY].map(|key| Axis::new(key, Vec::new(), "advise"));
        let (scenario, _, files) = file.load_beside(&Repetition::new(args.seed, args.runs), &varied)?;
        return Ok((scenario, files, file));
    }
    // Errors name the line of the recording, not of the scenario below.
    super::trace::read(&args.file, &Options::default())?;
    let sets: Vec<String> = Repetition::new(args.seed, args.runs).as_sets().collect();
    let name = args.file.display().to_string();
    let scenario = Scenario::load(&name, &playing(&args.file), &sets)?;
    let files = DiskFiles::in_folder("").reading(patiently);
    scenario.check(&files)?;
    output::remark(&format!(
        "{name}: assumed a wired RTT of {WIRED_MS} ms, a buffer of 1000 packets and one CUBIC download of 60 s; a scenario says otherwise"
    ));
    Ok((scenario, files, file))
}

/// Scenario that plays a recording of a downlink.
fn playing(recording: &Path) -> String {
    let link = json!(recording.to_string_lossy());
    let wired = WIRED_MS / 2;
    format!(
        "version = 1\npreset = \"linux\"\nduration = \"60s\"\n[path]\ndelay = \"{wired}ms\"\n[edge]\nbuffer = \"1000p\"\n\
         down = {{ kind = \"trace\", file = {link}, begin = \"anywhere\" }}\n[[flow]]\nsender = \"cubic\"\n"
    )
}

/// Every regulator with every buffer, and FQ-CoDel without a regulator, for each sender.
fn candidates(args: &Args, scenario: &Scenario) -> Result<Vec<Point>, Failure> {
    scenario.check_simulated()?;
    let edge = &scenario.configuration()["edge"];
    let mut buffers: Vec<Value> = vec![edge["buffer"].clone()];
    buffers.extend(BUFFERS.iter().map(|buffer| json!(buffer)).filter(|buffer| *buffer != edge["buffer"]));
    let axis = |key: &str, values: Vec<Value>| Axis::new(key, values, "advise");
    let mut senders = Vec::new();
    if let Some(list) = &args.senders {
        let values = values(list).ok_or_else(|| {
            Failure::Input(format!("--senders {list}: must be a list like `a,b` without empty items"))
        })?;
        senders.push(Axis::new("flow.sender", values, &format!("--senders {list}")));
    }
    let over = |regulators: &[&str], queue: Value| {
        let regulators = regulators.iter().map(|name| json!(name)).collect();
        let own = [
            axis(REGULATOR_KEY, regulators),
            axis(QUEUE_KEY, vec![queue]),
            axis(BUFFER_KEY, buffers.clone()),
        ];
        scenario.points_over(&[senders.as_slice(), &own].concat())
    };
    let mut points = over(&REGULATORS[..1], edge["queue"].clone())?;
    if name_of(&edge["queue"]) != "fq-codel" {
        points.extend(over(&REGULATORS[..1], json!("fq-codel"))?);
    }
    points.extend(over(&REGULATORS[1..], edge["queue"].clone())?);
    points.extend(observed(scenario, &senders).unwrap_or_default());
    Ok(points)
}

/// A box with its default regulator and buffer, which observes the present link without a regulator as the kernel's
/// programs do, for each sender. `None` if no box can observe the link, for example because it has a box already.
fn observed(scenario: &Scenario, senders: &[Axis]) -> Option<Vec<Point>> {
    let mut tables: Value = serde_json::from_str(&scenario.canonical()).ok()?;
    let mut radio = tables.get(EDGE)?.clone();
    radio.as_object_mut()?.remove("regulator");
    tables[EDGE] = json!({
        "buffer": DEFAULT_BUFFER.to_string(),
        "regulator": DEFAULT_REGULATOR,
        "bearer": { "kind": "observed", "side": "mobile", "record_interval": RECORD_INTERVAL },
        "behind": radio,
    });
    let text = toml::to_string(&tables).ok()?;
    let mut points = Scenario::load(scenario.name(), &text, &[]).ok()?.points_over(senders).ok()?;
    points.iter_mut().for_each(|point| point.labels.push((EDGE.to_owned(), json!("observed"))));
    Some(points)
}

/// Prints what is run and how long it takes, and remarks about scenario and recordings.
fn say(
    scenario: &Scenario,
    points: &[Point],
    files: &DiskFiles,
    channel: Option<(Rate, Span)>,
) -> Result<(), Failure> {
    say_defaults(scenario);
    say_unswept(scenario, "advise", &[]);
    say_begins(points.iter().map(|point| &point.scenario));
    say_recordings([scenario], files);
    for (path, certainty) in certainties(scenario.tables(), files) {
        output::remark(&format!("{path}: its rates are {certainty}"));
    }
    say_doubts(scenario, files)?;
    if let Some(Limit { key, message }) = scenario.buffer_limit(files)? {
        output::remark(&format!("{key}: {message}"));
    }
    let tables = scenario.tables();
    let runs = points.len() as u64 * u64::from(tables.runs);
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let time = channel.map_or_else(String::new, |(rate, _)| {
        let segments = rate.bytes_in(tables.duration) as f64 / 1500.0 * runs as f64;
        format!(", about {:.0} s", (segments / SEGMENTS_PER_SECOND / cores as f64).max(1.0))
    });
    output::remark(&format!(
        "{} candidates x {} runs of {}{time}",
        points.len(),
        tables.runs,
        tables.duration
    ));
    Ok(())
}

/// The link as it is: what the recommendation is compared with.
struct Present {
    buffer: Value,
    queue: Value,
    base_rtt: Option<Span>,
}

/// Separates the candidates of each sender; the sender is empty if senders are not compared.
fn by_sender(points: Vec<PointRuns<'_>>) -> Vec<(String, Vec<PointRuns<'_>>)> {
    let mut senders: Vec<(String, Vec<PointRuns<'_>>)> = Vec::new();
    for point in points {
        let sender = label(&point, "flow.sender");
        match senders.iter_mut().find(|(name, _)| *name == sender) {
            Some((_, points)) => points.push(point),
            None => senders.push((sender, vec![point])),
        }
    }
    senders
}

/// Value of a key at a candidate, as plain text.
fn label(point: &PointRuns<'_>, key: &str) -> String {
    let value = point.labels.iter().find(|(name, _)| name == key).map(|(_, value)| value);
    value.map_or_else(String::new, |value| {
        value.as_str().map_or_else(|| name_of(value).to_owned(), str::to_owned)
    })
}

/// Candidates of one sender with their costs, and the advice.
struct Advised<'a> {
    sender: String,
    points: Vec<PointRuns<'a>>,
    costs: Vec<Cost>,
    /// Costs of a box that observes the link as it is, and of this link.
    boxed: Option<Cost>,
    now: Cost,
    chosen: Option<usize>,
    why: String,
}

impl<'a> Advised<'a> {
    fn new(sender: String, mut points: Vec<PointRuns<'a>>, present: &Present, args: &Args) -> Option<Self> {
        let confidence = Confidence::default();
        let mut costs = costs(&points, confidence)?;
        let is_boxed = |point: &PointRuns<'_>| point.labels.iter().any(|(name, _)| name == EDGE);
        let boxed = points.iter().position(is_boxed).map(|index| {
            points.remove(index);
            costs.remove(index)
        });
        let now = points.iter().position(|point| {
            let is =
                |key: &str, value: &Value| point.labels.iter().any(|(name, own)| name == key && own == value);
            is("edge.regulator", &json!("none"))
                && is("edge.queue", &present.queue)
                && is("edge.buffer", &present.buffer)
        })?;
        let choice = choose(&points, &costs, args.prefer, confidence);
        let is_fine = present.base_rtt.is_some_and(|rtt| is_short(&costs[now], rtt));
        let (chosen, why) = match choice {
            _ if is_fine => (
                Some(now),
                "nothing is worth doing: without a regulator the queue adds at most one base RTT, and goodput is within 2 % of the best".to_owned(),
            ),
            Choice::Unsure => (None, format!("no recommendation: intervals overlap; --runs {}", 4 * args.runs)),
            Choice::Candidate(index) if index == now => {
                (Some(now), "nothing is worth doing: no candidate with enough goodput has a shorter queue".to_owned())
            }
            Choice::Candidate(index) => (Some(index), reason(&points[index], &costs[index], &costs[now])),
        };
        let now = costs[now];
        Some(Self { sender, points, costs, boxed, now, chosen, why })
    }

    fn text(&self) -> String {
        let (unit, bps) = rate_unit(self.costs.iter().map(|cost| cost.goodput.mean).fold(0.0, f64::max));
        let mut table = Table::default();
        for heading in ["", "regulator", "queue", "buffer"] {
            table.column(heading, Align::Left);
        }
        for heading in [format!("goodput {unit}"), "vs best %".to_owned(), "queue p95 ms".to_owned()] {
            table.column(heading, Align::Right);
        }
        table.column("box", Align::Left);
        for (index, (point, cost)) in self.points.iter().zip(&self.costs).enumerate() {
            let scaled = |of: Estimate, by: f64| Estimate {
                mean: of.mean * by,
                half_interval: of.half_interval.map(|half| half * by),
            };
            let names = ["edge.regulator", "edge.queue", "edge.buffer"].map(|key| label(point, key));
            let mark = if self.chosen == Some(index) { "*" } else { "" };
            let mut row = vec![mark.to_owned()];
            row.extend(names);
            row.push(estimate(Some(scaled(cost.goodput, 1.0 / bps))));
            row.push(estimate(Some(scaled(cost.below_best, 100.0))));
            row.push(estimate(Some(cost.queue_ms)));
            row.push(box_for(point).to_owned());
            table.row(row);
        }
        let sender = if self.sender.is_empty() { String::new() } else { format!("{}: ", self.sender) };
        let next = self.next().map_or_else(String::new, |next| format!("next: {next}\n"));
        let for_others = self.for_others().map_or_else(String::new, |text| format!("{sender}{text}\n"));
        format!("{}\n{sender}{}\n{for_others}{next}", table.render(terminal_width()), self.why)
    }

    /// Hint to look at the traffic first, if a box is recommended. A recording of rates does not tell the protocols.
    fn next(&self) -> Option<&'static str> {
        self.with_box().map(|_| CHECK_FIRST)
    }

    /// Whether something is worth doing for the link.
    fn is_worth_it(&self) -> bool {
        self.chosen.is_some_and(|chosen| {
            let chosen = &self.points[chosen];
            label(chosen, "edge.regulator") != "none" || label(chosen, "edge.queue") != "drop-tail"
        })
    }

    /// Command of a box for a queue that belongs to somebody else, if something is worth doing, and the box keeps the
    /// goodput and makes the queue shorter.
    fn with_box(&self) -> Option<&'static str> {
        let boxed = self.boxed.filter(|_| self.is_worth_it())?;
        let (keeps, shorter) =
            (boxed.below_best.mean >= -TOLERATED_OF_BOX, boxed.queue_ms.mean < self.now.queue_ms.mean);
        (keeps && shorter).then_some(ACT)
    }

    /// What to do if the queue belongs to somebody else.
    fn for_others(&self) -> Option<String> {
        let Cost { below_best, queue_ms, .. } = self.boxed.filter(|_| self.is_worth_it())?;
        let costs = format!(
            "goodput {:+.1} % of the best, queue p95 {:.0} ms",
            100.0 * below_best.mean,
            queue_ms.mean
        );
        Some(match self.with_box() {
            Some(command) => format!("if the queue is not yours: `{command}`: {costs}"),
            None => format!("if the queue is not yours: no box is recommended: {costs}"),
        })
    }

    fn as_json(&self) -> Value {
        let both = |of: Estimate| json!({"mean": of.mean, "half_interval": of.half_interval});
        let candidate = |(point, cost): (&PointRuns<'_>, &Cost)| {
            json!({
                "regulator": label(point, "edge.regulator"),
                "queue": label(point, "edge.queue"),
                "buffer": label(point, "edge.buffer"),
                "goodput_bps": both(cost.goodput),
                "goodput_vs_best": both(cost.below_best),
                "queue_p95_ms": both(cost.queue_ms),
                "box": box_for(point),
            })
        };
        let candidates: Vec<Value> = self.points.iter().zip(&self.costs).map(candidate).collect();
        let boxed = self.boxed.map(|cost| {
            json!({
                "goodput_bps": both(cost.goodput),
                "goodput_vs_best": both(cost.below_best),
                "queue_p95_ms": both(cost.queue_ms),
            })
        });
        json!({
            "sender": if self.sender.is_empty() { Value::Null } else { json!(self.sender) },
            "recommendation": self.chosen.map(|index| candidates[index].clone()),
            "why": self.why,
            "box": self.with_box(),
            "observed": boxed,
            "next": self.next(),
            "candidates": candidates,
        })
    }
}

/// Whether the present link needs no regulator: its queue adds at most one base RTT for almost the best goodput. A tenth
/// is allowed for the packet in transmission.
fn is_short(now: &Cost, base_rtt: Span) -> bool {
    now.queue_ms.mean <= 1.1 * base_rtt.as_millis_f64() && now.below_best.mean >= -TOLERATED
}

/// States the recommendation with its costs, and the present queue.
fn reason(point: &PointRuns<'_>, cost: &Cost, now: &Cost) -> String {
    let (regulator, buffer) = (label(point, "edge.regulator"), label(point, "edge.buffer"));
    let name = match (regulator.as_str(), label(point, "edge.queue").as_str()) {
        ("none", queue) => format!("no regulator, queue {queue}"),
        (regulator, _) => regulator.to_owned(),
    };
    format!(
        "recommended: {name} with a buffer of {buffer}: goodput {:+.1} % of the best, queue p95 {:.0} ms instead of {:.0} ms today",
        100.0 * cost.below_best.mean,
        cost.queue_ms.mean,
        now.queue_ms.mean
    )
}

/// Whether `ackclock box` has the regulator. The buffer of a box follows the rate.
fn box_for(point: &PointRuns<'_>) -> &'static str {
    if box_takes(&label(point, "edge.regulator")) { "yes" } else { "no" }
}

fn box_takes(regulator: &str) -> bool {
    Policy::home(Side::Mobile, regulator, DEFAULT_BUFFER).is_ok()
}

/// What to do before a box is started.
const CHECK_FIRST: &str = "`ackclock box check IFACE --for 1min` tells which share of the traffic is TCP that a box can regulate; QUIC and ESP are not";

/// Command that starts a box with its own regulator and buffer, which follows the rate.
const ACT: &str = "ackclock box IFACE --act 10min";

#[cfg(test)]
mod tests {
    use super::super::commands_in;
    use super::*;

    #[test]
    fn every_recommended_box_is_one_that_the_command_takes() {
        let taken: Vec<&str> = REGULATORS.into_iter().filter(|regulator| box_takes(regulator)).collect();
        assert_eq!(taken, ["wrd", "forecast"]);
        let said = format!("`{ACT}`; {CHECK_FIRST}");
        assert_eq!(commands_in(&said).len(), 2, "{said}");
    }
}
