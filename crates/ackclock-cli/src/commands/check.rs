//! `ackclock check`: is a scenario right?

use serde_json::Value;

use crate::failure::Failure;
use crate::output;
use crate::scenario_file::{Repetition, ScenarioFile, say_dropped};

/// Check a scenario, every point of its sweep, and the files that it names.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: ScenarioFile,
    /// Print the scenario with preset and defaults filled in.
    #[arg(long)]
    show: bool,
}

/// Says `ok`, or what is wrong.
pub(crate) fn perform(args: &Args) -> Result<(), Failure> {
    let (scenario, _) = args.scenario.load(&Repetition::default())?;
    let points = scenario.points()?;
    say_dropped(points.iter().map(|point| &point.scenario));
    let points = points.len();
    let name = args.scenario.path().display();
    let sweep = if points > 1 { format!(", {points} points") } else { String::new() };
    if !args.show {
        return output::print(&format!("{name}: ok{sweep}\n"));
    }
    let merged: Value = serde_json::from_str(&scenario.canonical())
        .map_err(|error| Failure::Run(format!("{name}: cannot be shown: {error}")))?;
    let text = toml::to_string_pretty(&without_nulls(merged))
        .map_err(|error| Failure::Run(format!("{name}: cannot be shown: {error}")))?;
    output::print(&format!("# {name}: ok{sweep}\n{text}"))
}

/// TOML has no null: a key without a value is left out.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(table) => {
            let kept = table.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}
