//! `ackclock link set`, `outage`, `fault` and `show`: change or inspect a running link.

use ackclock_core::Span;
use ackclock_link::Direction;
use ackclock_live::control::{Addressee, LinkRequest, Outage, Unanswered, ask};
use ackclock_live::faults::{Fault, FaultKind};

use super::conditions::share;
use super::watch;
use crate::failure::Failure;
use crate::output;

/// Requests to a running link.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Verb {
    /// Change a running link: down.rate=1mbit, up.delay=300ms, down.loss=0.01; a rate of 0kbit is an outage.
    Set {
        /// Keys of [edge.down] and [edge.up] with their new values. If the edge is a box that only observes, the keys
        /// apply to the radio link behind the box.
        #[arg(value_name = "KEY=VALUE", required = true)]
        pairs: Vec<String>,
        #[command(flatten)]
        whom: Whom,
    },
    /// Interrupt a running link for a time. After the outage, the link has its latest conditions, including conditions
    /// set during the outage.
    Outage {
        /// Duration of the outage: 3s, 500ms.
        #[arg(value_name = "TIME")]
        lasts: Span,
        /// Direction of the link to interrupt.
        #[arg(long, value_name = "up|down|both", default_value = "both", value_parser = ["up", "down", "both"], hide_possible_values = true)]
        direction: String,
        /// Drop queued and arriving packets, as after a radio link failure. Without `--drop`, packets stay queued, as
        /// in a fade.
        #[arg(long)]
        drop: bool,
        #[command(flatten)]
        whom: Whom,
    },
    /// Let single connections of a running link fail; without a fault, print the faults in force as JSON.
    Fault {
        /// Fault: reset, reset=64kB (after that much payload), cut, cut=up, cut=down, drop-first=2 or slow-close=5s.
        #[arg(value_name = "FAULT")]
        kind: Option<FaultKind>,
        /// Flows on which the fault acts, as tcp:5432 or 192.0.2.0/24; by default all flows that cross the link.
        /// `--only` can be repeated.
        #[arg(long, value_name = "MATCH", requires = "kind")]
        only: Vec<String>,
        /// Time for which the fault acts; by default until it is cleared.
        #[arg(long = "for", value_name = "TIME", requires = "kind")]
        lasts: Option<String>,
        /// End all faults.
        #[arg(long, conflicts_with = "kind")]
        clear: bool,
        #[command(flatten)]
        whom: Whom,
    },
    /// Print the results of a running link so far, as JSON, or a line of rates, queues and drops at intervals.
    Show {
        /// Print a line at this interval until the link ends: rates, queued packets and drops of both directions.
        #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "1s")]
        watch: Option<Span>,
        #[command(flatten)]
        whom: Whom,
    },
}

/// Selection of the link to address.
#[derive(Debug, clap::Args)]
pub(super) struct Whom {
    /// Process ID of the link to address. By default, the link around this command or the only running link is
    /// addressed.
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
}

/// Sends the request to the link and prints the answer.
pub(super) fn perform(verb: &Verb) -> Result<(), Failure> {
    let (asked, whom) = match verb {
        Verb::Set { pairs, whom } => {
            (LinkRequest::Set(pairs.iter().map(|text| pair(text)).collect::<Result<_, _>>()?), whom)
        }
        Verb::Show { watch: Some(interval), whom } => return watch::watch(addressee(whom), *interval),
        Verb::Show { watch: None, whom } => (LinkRequest::Show, whom),
        Verb::Outage { lasts, direction, drop, whom } => (outage(*lasts, direction, *drop)?, whom),
        Verb::Fault { clear: true, whom, .. } => (LinkRequest::ClearFaults, whom),
        Verb::Fault { kind: None, whom, .. } => (LinkRequest::Faults, whom),
        Verb::Fault { kind: Some(kind), only, lasts, whom, .. } => {
            let fault = Fault::parse(&kind.to_string(), lasts.as_deref(), only.iter().map(String::as_str));
            (LinkRequest::Fault(fault.map_err(|error| Failure::Input(format!("link fault: {error}")))?), whom)
        }
    };
    let answer = ask(addressee(whom), &asked).map_err(|error| match error {
        Unanswered::Refused(_) => Failure::Input(error.to_string()),
        Unanswered::Nobody(_) | Unanswered::Silent(_) => Failure::Run(error.to_string()),
    })?;
    if answer.is_empty() { Ok(()) } else { output::print(&format!("{answer}\n")) }
}

fn addressee(whom: &Whom) -> Addressee {
    whom.pid.map_or(Addressee::Nearest, Addressee::Process)
}

fn outage(lasts: Span, direction: &str, drop: bool) -> Result<LinkRequest, Failure> {
    if lasts == Span::ZERO {
        return Err(Failure::Input("outage 0s: an outage must last longer than 0".to_owned()));
    }
    let direction = match direction {
        "up" => Some(Direction::Up),
        "down" => Some(Direction::Down),
        _ => None,
    };
    Ok(LinkRequest::Outage(Outage { lasts, direction, drop }))
}

fn pair(text: &str) -> Result<(String, String), Failure> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| Failure::Input(format!("`{text}` is not KEY=VALUE, as down.rate=1mbit is")))?;
    let key = key.trim();
    let key = key.strip_prefix("edge.").unwrap_or(key);
    if matches!(key.rsplit('.').next(), Some("loss" | "duplicate" | "corrupt" | "share"))
        && value.trim().parse::<f64>().is_ok()
    {
        share(value.trim()).map_err(|message| Failure::Input(format!("link set {text}: {message}")))?;
    }
    Ok((key.strip_prefix("behind.").unwrap_or(key).to_owned(), value.trim().to_owned()))
}
