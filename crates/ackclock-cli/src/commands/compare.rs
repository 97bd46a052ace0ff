//! `ackclock compare`: runs one scenario with several senders, regulators, buffers and queues.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ackclock_link::Files;
use ackclock_scenario::{Axis, Point, Scenario, catalogue, jobs};
use serde_json::Value;

use super::run::sink;
use super::sweep::by_point;
use crate::batch::{self, Extras, Timing};
use crate::failure::Failure;
use crate::lines::Lines;
use crate::output;
use crate::report::Report;
use crate::scenario_file::{
    Intervals, LIST_OPTIONS, Repetition, ScenarioFile, say_begins, say_defaults, say_doubts, say_dropped,
    say_limits, say_recordings, say_unswept,
};
use crate::summary::{self, Marks, Uploads};

/// Compare senders, regulators, buffers and queues in one scenario: goodput against delay.
///
/// Runs every combination of the given values. Settings without an option come from the scenario. If no option is
/// given, all regulators are compared. A `[sweep]` in the scenario is ignored.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: ScenarioFile,
    /// Senders to compare, separated by commas, or `all`.
    #[arg(long, value_name = "A,B")]
    senders: Option<String>,
    /// Regulators to compare, with options if needed: `{ kind = "ack-regulator", alpha = 2 }`; or `all`.
    #[arg(long, value_name = "A,B")]
    regulators: Option<String>,
    /// Buffer sizes to compare: `4p,10p,1bdp`.
    #[arg(long, value_name = "A,B")]
    buffers: Option<String>,
    /// Queue disciplines to compare, separated by commas, or `all`.
    #[arg(long, value_name = "A,B")]
    queues: Option<String>,
    #[command(flatten)]
    repetition: Repetition,
    #[command(flatten)]
    intervals: Intervals,
    /// Print one JSON object per run, each on its own line. The key `point` contains the run's combination of compared
    /// values.
    #[arg(long)]
    json: bool,
    /// Write an HTML report with figures (Python).
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Measure the CPU time of each run. Without `--timing`, repeated runs print identical output.
    #[arg(long)]
    timing: bool,
}

const EXAMPLES: &str = "\
Examples:
  ackclock compare scenarios/first.toml
  ackclock compare scenarios/first.toml --senders reno,sack,cubic --buffers 4p,10p,20p --runs 5
  ackclock compare scenarios/first.toml --queues drop-tail,codel --report compare.html
  ackclock compare scenarios/lte.toml --senders cubic,bbr3,prague --queues all";

/// Simulates every combination and prints the table of results.
pub(crate) fn perform(args: &Args) -> Result<(), Failure> {
    output::keep_apart(Some(args.scenario.path()), &[("--report", args.report.as_ref())])?;
    output::keep_form("--report", args.report.as_ref(), output::Form::Html)?;
    let axes = axes(args)?;
    let (scenario, _, files) = args.scenario.load_beside(&args.repetition, &axes)?;
    scenario.check_simulated()?;
    let points = scenario.points_over(&axes)?;
    for point in &points {
        point.scenario.check(&files)?;
    }
    say(&scenario, &axes, &points, &files)?;
    let scenarios = || points.iter().map(|point| &point.scenario);
    let jobs = jobs(&points);
    let sink = sink(args.json, &args.scenario);
    let timing = if args.timing { Timing::Measured } else { Timing::Omitted };
    let extras = Extras { series: None, capture: None, timing };
    let lines = Lines::new(vec![sink], jobs.len());
    let finished = batch::simulate(args.scenario.stem(), &jobs, &files, extras, lines, BTreeMap::new())?;
    let of_points = by_point(&points, &jobs, &finished.ended);
    let used = of_points.iter().map(|point| summary::utilisation(&point.runs));
    say_limits(scenarios().zip(used), &files)?;
    if !args.json {
        let uploads = Uploads::of(&points);
        output::print(&summary::of_points(&of_points, Marks::Best, uploads, args.intervals.confidence()))?;
    }
    finished.verdict?;
    let Some(path) = &args.report else { return Ok(()) };
    Report::new(&jobs, &finished.ended, &finished.interrupted, &files, args.intervals.confidence())
        .write(path)
}

/// Prints remarks about the compared scenarios: defaults, ignored settings, start offsets and recordings.
fn say(scenario: &Scenario, axes: &[Axis], points: &[Point], files: &dyn Files) -> Result<(), Failure> {
    let scenarios = || points.iter().map(|point| &point.scenario);
    say_defaults(scenario);
    say_unswept(scenario, "compare", axes);
    say_dropped(scenarios());
    say_begins(scenarios());
    say_recordings(scenarios(), files);
    say_doubts(scenario, files)
}

/// Returns the settings to compare: the settings given as options, or otherwise every regulator.
fn axes(args: &Args) -> Result<Vec<Axis>, Failure> {
    let lists = [&args.senders, &args.regulators, &args.buffers, &args.queues];
    let mut axes = Vec::new();
    for ((key, option), list) in LIST_OPTIONS.into_iter().zip(lists) {
        if let Some(list) = list {
            let every =
                if list.trim() == "all" { names(option.trim_start_matches("--")) } else { Vec::new() };
            let given = if every.is_empty() { values(list) } else { Some(every) };
            let values = given.ok_or_else(|| {
                Failure::Input(format!("{option} {list}: must be a list like `a,b` without empty items"))
            })?;
            axes.push(Axis::new(key, values, &format!("{option} {list}")));
        }
    }
    if axes.is_empty() {
        axes.push(Axis::new("edge.regulator", names("regulators"), "compare"));
    }
    Ok(axes)
}

/// Names of all components of a kind of the catalogue; none if there is no such kind.
fn names(kind: &str) -> Vec<Value> {
    let of_kind = catalogue().into_iter().find(|one| one.name == kind);
    of_kind.into_iter().flat_map(|kind| kind.components).map(|one| one.name.into()).collect()
}

/// Splits a list at the commas outside brackets and quotes. Each value of the list is read as TOML if possible,
/// otherwise as a string. Returns `None` if a value in the list is empty.
pub(super) fn values(list: &str) -> Option<Vec<Value>> {
    let (mut depth, mut quoted, mut start) = (0_i32, false, 0);
    let mut parts = Vec::new();
    for (at, character) in list.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts.into_iter().map(|part| Some(part.trim()).filter(|part| !part.is_empty()).map(value)).collect()
}

fn value(text: &str) -> Value {
    let table: Option<toml::Table> = toml::from_str(&format!("value = {text}")).ok();
    let only =
        table.filter(|table| table.len() == 1).and_then(|table| serde_json::to_value(&table["value"]).ok());
    only.unwrap_or_else(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn lists_are_split_outside_brackets_and_quotes() {
        assert_eq!(values("reno, sack").unwrap(), [json!("reno"), json!("sack")]);
        assert_eq!(
            values("none,{ kind = \"ack-regulator\", alpha = 2 }").unwrap(),
            [json!("none"), json!({"kind": "ack-regulator", "alpha": 2})]
        );
        assert_eq!(values("reno,,sack"), None);
        assert_eq!(values(""), None);
    }

    #[test]
    fn all_names_every_component_of_a_kind() {
        assert!(names("queues").contains(&json!("cake")) && names("senders").contains(&json!("prague")));
        assert_eq!(names("buffers"), Vec::<Value>::new());
    }

    proptest! {
        #[test]
        fn no_list_is_a_panic(list in "[a-z,{}\\[\\]\"= 0-9é\n]{0,40}") {
            values(&list);
        }
    }
}
