//! `ackclock check`: validates a scenario.

use crate::failure::Failure;
use crate::output;
use crate::scenario_file::{Repetition, ScenarioFile, say_dropped};

/// Check a scenario, every point of its sweep, and the files that it names.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: ScenarioFile,
    /// Print the complete configuration, with the value of every key, as a scenario that gives the same results.
    #[arg(long)]
    show: bool,
}

/// Prints `ok` or the first error of the scenario.
pub(crate) fn perform(args: &Args) -> Result<(), Failure> {
    let (scenario, points, _) = args.scenario.load_beside(&Repetition::default(), &[])?;
    #[cfg(feature = "live")]
    super::radio_box::check_table(args.scenario.path())?;
    say_dropped(points.iter().map(|point| &point.scenario));
    scenario.said_of_links()?.iter().for_each(|remark| output::remark(remark));
    let points = points.len();
    let name = args.scenario.path().display();
    let sweep = if points > 1 { format!(", {points} points") } else { String::new() };
    if !args.show {
        return output::print(&format!("{name}: ok{sweep}\n"));
    }
    let text = toml::to_string_pretty(&scenario.configuration())
        .map_err(|error| Failure::Run(format!("{name}: cannot be shown: {error}")))?;
    let without = if points > 1 { ", which are left out" } else { "" };
    output::print(&format!("# {name}: ok{sweep}{without}\n{text}"))
}
