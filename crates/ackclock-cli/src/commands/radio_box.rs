//! `ackclock box`: runs a regulator on a network interface of this machine, before a radio link outside our control.

mod check;
mod file;
mod notify;
mod page;
mod status;

pub(super) use file::check_table;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ackclock_box::clip::Pins;
use ackclock_box::config::{DEFAULT_BUFFER, DEFAULT_REGULATOR, Policy, STALE};
use ackclock_box::daemon::{Daemon, Options, Said, Settings};
use ackclock_box::error::{BoxError, ClipError};
use ackclock_box::files::Files;
use ackclock_box::report::Report;
use ackclock_core::{Size, Span};
use ackclock_link::Side;
use ackclock_live::runtime_dir;
use clap::{Subcommand, ValueEnum};

use self::status::{UNKNOWN, hidden_by, line, uploads_or};
use super::time_above_zero;
use crate::failure::Failure;
use crate::metrics::{Listening, Shown};
use crate::output;

/// Lower the windows of downloads that pass an interface towards a radio, or only measure the queue of the radio.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Interface towards the radio, such as the router's modem `wwan0`, or a configuration file with the table `[box]`.
    #[arg(required = true, value_name = "INTERFACE|FILE")]
    interface: Option<String>,
    /// Lower windows instead of only measuring. With a TIME, stop after TIME unless `ackclock box keep` is run.
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "", value_parser = act)]
    act: Option<Act>,
    /// Side of the radio on which the box is: mobile (the radio is at the other end of the interface) or network (mobiles
    /// are). Default: mobile.
    #[arg(long, value_parser = side)]
    side: Option<Side>,
    /// Regulator that computes the windows: wrs, wrd or forecast. Default: forecast.
    #[arg(long)]
    regulator: Option<String>,
    /// Buffer that the downloads share: multiples of the measured bandwidth-delay product ("3bdp", at least 20 packets),
    /// packets ("20p") or bytes ("30kB"). Default: 3bdp.
    #[arg(long)]
    buffer: Option<Size>,
    /// Print one JSON line per second.
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

/// Time for which a box lowers windows.
#[derive(Clone, Copy, Debug)]
enum Act {
    Always,
    For(Span),
}

fn act(text: &str) -> Result<Act, String> {
    if text.is_empty() { Ok(Act::Always) } else { time_above_zero(text).map(Act::For) }
}

fn side(text: &str) -> Result<Side, String> {
    match text {
        "mobile" => Ok(Side::Mobile),
        "network" => Ok(Side::Network),
        _ => Err("it is neither `mobile` nor `network`".to_owned()),
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check whether this machine and an interface can run a box, then watch the traffic for a minute and tell which share a
    /// box could regulate. The check changes no packet and leaves nothing attached. The exit status is 1 if a requirement
    /// is missing.
    Check(check::Args),
    /// Print the measurements and settings of the box on an interface.
    Status(Named),
    /// Print the measurements of each subscriber, the longest queueing delay first.
    Top(Named),
    /// Load a changed configuration file into the running box. A file with an error changes nothing.
    Reload {
        /// Configuration file with the table `[box]`.
        file: PathBuf,
    },
    /// Pass all packets unchanged (on), or lower windows again (off).
    Bypass {
        /// Network interface of the box.
        interface: String,
        /// State of the bypass: on or off.
        state: State,
    },
    /// Let a box that was started with a time limit keep lowering windows.
    Keep {
        /// Network interface of the box.
        interface: String,
    },
    /// Stop the box of an interface, and remove its programs and maps from the kernel.
    Stop {
        /// Network interface of the box.
        interface: String,
    },
    /// Remove the programs and maps of a killed box from the kernel.
    Cleanup {
        /// Network interface of the box.
        interface: String,
    },
}

#[derive(Debug, clap::Args)]
struct Named {
    /// Network interface of the box.
    interface: String,
    /// Print the answer as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum State {
    On,
    Off,
}

const EXAMPLES: &str = "\
Examples:
  ackclock box check wwan0                 what is missing, if anything, and what a minute's traffic is
  ackclock box wwan0                       measure the queue of the radio; nothing is written
  ackclock box wwan0 --act 10min           lower windows for ten minutes
  ackclock box eth1 --side network         measure before the radio: mobiles are beyond eth1
  ackclock box keep wwan0                  ... and go on
  ackclock box stop wwan0                  end, leave nothing
  ackclock box box.toml                    many subscribers, as in the file
  ackclock box top box.toml                ... the longest queueing delay first

Wherever an interface is expected, the configuration file of a box may be given instead.

QUIC, ESP and UDP have no window that a box could lower: `box check` and `box status` say which share of the bytes it is.";

/// Performs the requested action on a box.
pub(crate) fn perform(args: &Args) -> Result<(), Failure> {
    match (&args.command, &args.interface) {
        (Some(Command::Check(args)), _) => check::perform(args),
        (Some(Command::Status(named)), _) => status::status(named),
        (Some(Command::Top(named)), _) => status::top(named),
        (Some(Command::Reload { file }), _) => reload(file),
        (Some(Command::Bypass { interface, state }), _) => {
            bypass(&file::interface_of(interface)?, *state == State::On)
        }
        (Some(Command::Keep { interface }), _) => keep(&file::interface_of(interface)?),
        (Some(Command::Stop { interface }), _) => stop(&file::interface_of(interface)?),
        (Some(Command::Cleanup { interface }), _) => cleanup(&file::interface_of(interface)?),
        (None, Some(argument)) => run(args, argument),
        // clap requires either an interface or a subcommand.
        (None, None) => Err(Failure::Input("an interface is missing".to_owned())),
    }
}

fn failure(error: BoxError) -> Failure {
    match error {
        BoxError::Interface(_) | BoxError::Unwatched(_) | BoxError::Clip(ClipError::Name(_)) => {
            Failure::Input(error.to_string())
        }
        error => Failure::Run(error.to_string()),
    }
}

fn clip(error: ClipError) -> Failure {
    failure(error.into())
}

fn files(pins: &Pins) -> Result<Files, Failure> {
    Ok(Files::of(&folder()?, &pins.name()))
}

/// Run-time files of the box of an interface, which a process runs.
fn running(interface: &str) -> Result<Files, Failure> {
    let files = files(&Pins::of(interface).map_err(clip)?)?;
    match files.running() {
        Some(_) => Ok(files),
        None => Err(Failure::Run(format!("no box runs on `{interface}`"))),
    }
}

/// Settings with which a box starts.
struct Start {
    options: Options,
    policy: Policy,
    metrics: Option<SocketAddr>,
}

/// Policy of a box with one subscriber.
fn home(side: Option<Side>, regulator: Option<&str>, buffer: Option<Size>) -> Result<Policy, Failure> {
    Policy::home(
        side.unwrap_or(Side::Mobile),
        regulator.unwrap_or(DEFAULT_REGULATOR),
        buffer.unwrap_or(DEFAULT_BUFFER),
    )
    .map_err(|error| Failure::Input(format!("--{}: {}", error.path, error.message)))
}

/// Settings from the options of the command.
fn of_options(args: &Args, interface: &str) -> Result<Start, Failure> {
    let policy = home(args.side, args.regulator.as_deref(), args.buffer)?;
    let act_for = match args.act {
        Some(Act::For(time)) => Some(Duration::from_nanos(time.as_nanos())),
        _ => None,
    };
    let options = Options {
        interface: interface.to_owned(),
        file: None,
        act: args.act.is_some(),
        stale: STALE,
        act_for,
        folder: folder()?,
    };
    Ok(Start { options, policy, metrics: None })
}

/// Settings from a configuration file.
fn of_file(args: &Args, path: &Path) -> Result<Start, Failure> {
    for (option, is_given) in [
        ("act", args.act.is_some()),
        ("side", args.side.is_some()),
        ("regulator", args.regulator.is_some()),
        ("buffer", args.buffer.is_some()),
    ] {
        if is_given {
            let table = if ["act", "side"].contains(&option) { "box" } else { "edge" };
            let key = format!("{table}.{option}");
            return Err(Failure::Input(format!("--{option}: set `{key}` in {}", path.display())));
        }
    }
    let file::Loaded { interface, metrics, settings } = file::load(path)?;
    let options = Options {
        interface,
        file: Some(absolute(path)?),
        act: settings.act,
        stale: settings.stale,
        act_for: None,
        folder: folder()?,
    };
    Ok(Start { options, policy: settings.policy, metrics })
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::reading(path, &error))
}

fn folder() -> Result<PathBuf, Failure> {
    runtime_dir::private().map_err(|error| Failure::Run(error.to_string()))
}

fn run(args: &Args, argument: &str) -> Result<(), Failure> {
    let start = if file::is_file(argument) {
        of_file(args, Path::new(argument))?
    } else {
        of_options(args, argument)?
    };
    let (interface, metrics) = (start.options.interface.clone(), start.metrics);
    let listening = metrics.map(|address| Listening::at(address, &format!("box.metrics: {address}")));
    let listening = listening.transpose()?;
    let mut daemon = Daemon::start(start.options, start.policy).map_err(failure)?;
    let shown = Shown::default();
    if let Some(listening) = listening {
        shown.serve(listening);
    }
    if daemon.has_taken_over() {
        output::remark(&format!(
            "{interface}: takes over from a box that has ended; windows stayed as they were"
        ));
    }
    if let Some(text) = hidden_by(&interface) {
        output::remark(&format!("{interface}: {text}"));
    }
    let ends = interrupted()?;
    notify::ready();
    let outcome = daemon.run(
        || ends.load(Ordering::Relaxed),
        |path| reloaded(path, &interface, metrics),
        |said| tell(&said, &interface, &shown, args.json),
    );
    daemon.remove().map_err(failure)?;
    outcome.map_err(failure)
}

/// A flag that Ctrl-C and SIGTERM set.
fn interrupted() -> Result<Arc<AtomicBool>, Failure> {
    let ends = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&ends);
    ctrlc::set_handler(move || asked.store(true, Ordering::Relaxed))
        .map_err(|error| Failure::Run(format!("signals cannot be handled: {error}")))?;
    Ok(ends)
}

/// Settings of a changed configuration file. A running box keeps its interface and its address of metrics.
fn reloaded(path: &Path, interface: &str, metrics: Option<SocketAddr>) -> Result<Settings, String> {
    let loaded = file::load(path).map_err(|error| error.message().unwrap_or_default().to_owned())?;
    let fixed = |key: &str| Err(format!("{}: box.{key}: a running box cannot change it", path.display()));
    match () {
        () if loaded.interface != interface => fixed("interface"),
        () if loaded.metrics != metrics => fixed("metrics"),
        () => Ok(loaded.settings),
    }
}

/// Time for which `reload` waits for the answer of the box.
const PATIENCE: Duration = Duration::from_secs(10);

/// Loads a changed configuration file into the running box. The file is checked here first, so that the error of a
/// wrong file appears here.
#[allow(clippy::disallowed_methods, reason = "the command waits for another process")]
fn reload(path: &Path) -> Result<(), Failure> {
    let interface = file::load(path)?.interface;
    let files = running(&interface)?;
    files.reload(&absolute(path)?).map_err(|error: io::Error| Failure::Run(error.to_string()))?;
    let begun = Instant::now();
    while files.is_reloading() {
        if begun.elapsed() > PATIENCE {
            return Err(Failure::Run(format!("the box of `{interface}` does not answer")));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let report = files.last_report().ok_or_else(|| Failure::Run(format!("{interface}: {UNKNOWN}")))?;
    match report.refused_file {
        Some(error) => Err(Failure::Run(format!("{error}; the box goes on with the old file"))),
        None => output::print(&format!("{interface}: the changed file is in force\n")),
    }
}

fn tell(said: &Said<'_>, interface: &str, shown: &Shown, json: bool) {
    match said {
        Said::Report(report, counts) => {
            shown.show(page::page(report, counts));
            show(report, json);
        }
        Said::DataFromMobiles(side) => output::remark(&format!("{interface}: {}", uploads_or(*side))),
        Said::Day(day) => output::remark(&format!("{interface}: {day}")),
        Said::Reporting(Ok(())) => output::remark(&format!("{interface}: reports are written again")),
        Said::Reporting(Err(error)) => output::remark(&format!(
            "{error}; the box goes on without reports, so `box status` has no figures"
        )),
        Said::Loaded(Ok(())) => output::remark(&format!("{interface}: the changed file is in force")),
        Said::Loaded(Err(error)) => output::remark(&format!("{error}; the box goes on with the old file")),
    }
}

fn show(report: &Report, json: bool) {
    let text = if json {
        // Serialising a report cannot fail, because a report contains only numbers and strings.
        serde_json::to_string(report).unwrap_or_default() + "\n"
    } else {
        line(report)
    };
    // A closed standard output does not stop the box.
    let _ = output::print(&text);
}

fn bypass(interface: &str, on: bool) -> Result<(), Failure> {
    let pins = Pins::of(interface).map_err(clip)?;
    pins.turn(|knobs| knobs.bypass = on.into()).map_err(clip)?;
    let now = match (on, pins.knobs().map_err(clip)?.acts()) {
        (true, _) => "everything passes unchanged",
        (false, true) => "windows are lowered",
        (false, false) => "measures; nothing is written",
    };
    output::print(&format!("{interface}: {now}\n"))
}

fn keep(interface: &str) -> Result<(), Failure> {
    let files = running(interface)?;
    files.keep().map_err(|error: io::Error| Failure::Run(error.to_string()))?;
    output::print(&format!("{interface}: goes on\n"))
}

fn stop(interface: &str) -> Result<(), Failure> {
    let pins = Pins::of(interface).map_err(clip)?;
    let ended = files(&pins)?.end();
    let removed = remove(&pins)?;
    if ended.is_none() && !removed {
        return Err(Failure::Run(format!("no box runs on `{interface}`")));
    }
    output::print(&format!("{interface}: stopped, nothing is left\n"))
}

fn cleanup(interface: &str) -> Result<(), Failure> {
    let removed = match Pins::of(interface) {
        Err(ClipError::NotRunning(_)) => false,
        found => {
            let pins = found.map_err(clip)?;
            if let Some(pid) = files(&pins)?.running() {
                return Err(Failure::Run(format!(
                    "process {pid} is the box of `{interface}`; `ackclock box stop {interface}` ends it"
                )));
            }
            remove(&pins)?
        }
    };
    let found = if removed { "removed what was left" } else { "nothing was left" };
    output::print(&format!("{interface}: {found}\n"))
}

fn remove(pins: &Pins) -> Result<bool, Failure> {
    let removed = pins.remove().map_err(clip)?;
    files(pins)?.remove();
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_is_min_and_not_m() {
        assert!(matches!(act("10min"), Ok(Act::For(time)) if time == Span::from_secs(600)));
        let refused = act("10m").unwrap_err();
        assert!(refused.contains("min"), "{refused}");
    }
}
