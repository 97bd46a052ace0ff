//! One file a command.

mod check;
mod compare;
mod completions;
mod exchange;
mod link;
mod list;
mod replay;
mod run;
mod sweep;
mod trace;

use ackclock_core::Span;
use clap::Subcommand;

use crate::failure::Failure;
use crate::python::Words;

/// What the command line asks for.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulate a scenario and print what its flows got.
    Run(run::Args),
    /// Simulate a scenario under several senders, regulators, buffers and queues: goodput against delay.
    Compare(compare::Args),
    /// Simulate every point of a scenario's [sweep] on all cores.
    Sweep(sweep::Args),
    /// Run scripts that say what a peer sends and what a sender must send, segment by segment.
    Exchange(exchange::Args),
    /// Put a command, or a shell, behind an emulated link.
    Link(Box<link::Args>),
    /// Rerun a source document and judge every number of it (Python).
    Paper(Words),
    /// Write an HTML report of the JSON lines of finished runs (Python).
    Report(Words),
    /// Analyses: throughput, delay and stability by formula (Python); `list models` names them.
    Model(Words),
    /// Look at recordings of a link and convert them.
    #[command(subcommand)]
    Trace(trace::Command),
    /// List the links, queues, regulators, senders, presets and workloads, and what their tables hold.
    List(list::Args),
    /// Check a scenario without running it.
    Check(check::Args),
    /// Print a completion script for a shell.
    Completions(completions::Args),
}

impl Command {
    /// Does it.
    pub(crate) fn perform(self) -> Result<(), Failure> {
        match self {
            Self::Run(args) => run::perform(&args),
            Self::Compare(args) => compare::perform(&args),
            Self::Sweep(args) => sweep::perform(&args),
            Self::Exchange(args) => exchange::perform(&args),
            Self::Link(args) => link::perform(&args),
            Self::Paper(words) => Err(words.become_module(&["paper"])),
            Self::Report(words) => Err(words.become_module(&["report"])),
            Self::Model(words) => Err(words.become_module(&["model"])),
            Self::Trace(command) => trace::perform(command),
            Self::List(args) => list::perform(&args),
            Self::Check(args) => check::perform(&args),
            Self::Completions(args) => completions::perform(&args),
        }
    }
}

/// A length of time as an option.
fn time_above_zero(text: &str) -> Result<Span, String> {
    match text.parse() {
        Ok(Span::ZERO) => Err("it must be above 0".to_owned()),
        Ok(span) => Ok(span),
        Err(error) => Err(error.to_string()),
    }
}
