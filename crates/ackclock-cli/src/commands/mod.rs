//! Commands of `ackclock`, one per file.

#[cfg(feature = "live")]
mod advise;
mod check;
mod compare;
mod completions;
mod exchange;
mod import;
#[cfg(feature = "live")]
mod link;
mod list;
#[cfg(feature = "live")]
mod proxy;
#[cfg(feature = "live")]
mod radio_box;
#[cfg(feature = "live")]
mod radio_report;
mod replay;
mod run;
mod sweep;
mod trace;
mod treatment;

use ackclock_core::Span;
use clap::Subcommand;

use crate::failure::Failure;
use crate::python::Words;

/// Commands of the `ackclock` command line.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulate a scenario and print the results of its flows.
    Run(run::Args),
    /// Compare senders, regulators, buffers and queues in one scenario: goodput against delay.
    Compare(compare::Args),
    /// Compare regulators and buffers on a link, and recommend one.
    #[cfg(feature = "live")]
    Advise(advise::Args),
    /// Simulate every point of a scenario's [sweep] on all cores.
    Sweep(sweep::Args),
    /// Run packetdrill-style scripts: a peer's packets, and the packets that the sender must answer with.
    Exchange(exchange::Args),
    /// Put a command, or a shell, behind an emulated link.
    #[cfg(feature = "live")]
    Link(Box<link::Args>),
    /// Lower the windows of downloads that pass an interface towards a radio, or only measure its queue.
    #[cfg(feature = "live")]
    #[command(name = "box")]
    RadioBox(radio_box::Args),
    /// Split each connection in two before a radio link. The near end repairs losses, and delays of the radio do not
    /// reach the server's connection.
    #[cfg(feature = "live")]
    Proxy(proxy::Args),
    /// Send signed reports of a radio's rate and queue to a proxy.
    #[cfg(feature = "live")]
    RadioReport(radio_report::Args),
    /// Repeat the experiments of a published document and check each of its numbers (Python).
    Paper(Words),
    /// Write an HTML report from the JSON lines of finished runs (Python).
    Report(Words),
    /// Compute throughput, delay and stability from formulas (Python); `list models` names the models.
    Model(Words),
    /// Read a recording that another tool or data set wrote, and convert it.
    Import(Box<import::Args>),
    /// Inspect, convert and generate recordings of links.
    #[command(subcommand)]
    Trace(trace::Command),
    /// List links, queues, regulators, senders, presets and workloads, with their keys.
    List(list::Args),
    /// Check a scenario without running it.
    Check(check::Args),
    /// Print a completion script for a shell.
    Completions(completions::Args),
}

impl Command {
    /// Runs the selected command.
    pub(crate) fn perform(self) -> Result<(), Failure> {
        match self {
            Self::Run(args) => run::perform(&args),
            Self::Compare(args) => compare::perform(&args),
            #[cfg(feature = "live")]
            Self::Advise(args) => advise::perform(&args),
            Self::Sweep(args) => sweep::perform(&args),
            Self::Exchange(args) => exchange::perform(&args),
            #[cfg(feature = "live")]
            Self::Link(args) => link::perform(&args),
            #[cfg(feature = "live")]
            Self::RadioBox(args) => radio_box::perform(&args),
            #[cfg(feature = "live")]
            Self::Proxy(args) => proxy::perform(&args),
            #[cfg(feature = "live")]
            Self::RadioReport(args) => radio_report::perform(&args),
            Self::Paper(words) => Err(words.become_module(&["paper"])),
            Self::Report(words) => Err(words.become_module(&["report"])),
            Self::Model(words) => Err(words.become_module(&["model"])),
            Self::Import(args) => import::perform(&args),
            Self::Trace(command) => trace::perform(command),
            Self::List(args) => list::perform(&args),
            Self::Check(args) => check::perform(&args),
            Self::Completions(args) => completions::perform(&args),
        }
    }
}

/// Parses a duration that must be above zero.
fn time_above_zero(text: &str) -> Result<Span, String> {
    match text.parse() {
        Ok(Span::ZERO) => Err("must be above 0".to_owned()),
        Ok(span) => Ok(span),
        Err(error) => Err(error.to_string()),
    }
}

/// Parses every command between backticks of a text, so that no recommendation is a command that would be refused.
#[cfg(test)]
fn commands_in(text: &str) -> Vec<crate::Cli> {
    let quoted = text.split('`').skip(1).step_by(2);
    let commands = quoted.filter(|quoted| quoted.starts_with("ackclock "));
    let parsed = commands.map(|command| clap::Parser::try_parse_from(command.split(' ')));
    parsed.map(|cli| cli.unwrap_or_else(|error| panic!("{text}: {error}"))).collect()
}
