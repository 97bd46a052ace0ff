//! # ackclock
//!
//! Simulates scenarios, compares regulators, runs sweeps and inspects recordings. The Python package installed next to
//! the command does analyses and plots. Only the command and the live driver read clocks and write files.

#[cfg(feature = "live")]
mod advice;
mod batch;
mod commands;
mod failure;
#[cfg(feature = "live")]
mod keys;
#[cfg(unix)]
mod limits;
mod lines;
#[cfg(feature = "live")]
mod metrics;
mod output;
mod paired;
mod profiles;
mod progress;
mod python;
mod report;
mod scenario_file;
mod statistics;
mod summary;
mod table;
mod usage;

use std::process::ExitCode;

use clap::Parser;

use crate::commands::Command;
use crate::failure::Failure;

/// Memory allocator, configured in `.cargo/config.toml` to request huge pages. Ten thousand flows occupy more pages of
/// 4 KiB than the TLB can hold (decision 17).
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Simulate and emulate TCP over links whose rate and delay vary.
#[derive(Debug, Parser)]
#[command(name = "ackclock", version, max_term_width = 110, after_help = EXAMPLES)]
#[command(arg_required_else_help = true, args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print the licence texts of linked libraries.
    #[arg(long)]
    licences: bool,
}

/// Licence texts of linked libraries, written by `cargo xtask third-party`.
const LICENCES: &str = include_str!("../../../THIRD-PARTY.txt");

const EXAMPLES: &str = "\
Examples:
  ackclock run scenarios/first.toml
  ackclock run scenarios/first.toml --set edge.buffer=4p --set flow.sender=sack --runs 5
  ackclock compare scenarios/first.toml --senders reno,cubic --regulators none,ack-regulator
  ackclock list regulators

Exit status: 0 done, 1 a run failed or there was no room for a result, 2 the input was wrong.";

fn main() -> ExitCode {
    #[cfg(unix)]
    let done = limits::check().and_then(|()| perform());
    #[cfg(not(unix))]
    let done = perform();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(&failure),
    }
}

fn perform() -> Result<(), Failure> {
    match Cli::try_parse() {
        Ok(Cli { command: Some(command), .. }) => command.perform(),
        // If the command line is empty, clap has already printed the help.
        Ok(Cli { command: None, .. }) => output::print(LICENCES),
        Err(error) => Err(usage::failure_of(&error)),
    }
}

fn report(failure: &Failure) -> ExitCode {
    if let Some(message) = failure.message() {
        output::remark(message);
    }
    failure.status()
}
