//! Output files of a link besides its results: packet captures of its two ends, and logs in mm-link's format.
//!
//! A slow, blocked or failing output file does not stop the link. Problems with output files are reported after the
//! link has ended.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ackclock_edge::EdgeConfig;
use ackclock_import::Recording;
use ackclock_live::capture::Recorder;
use ackclock_live::log::{LinkLog, LogHeader};
use ackclock_live::{Ending, Plane, Side, Unwritten};
use ackclock_output::create_in_place;
use ackclock_scenario::Files;
use serde_json::Value;

use super::{Args, Watching};
use crate::commands::run::Capture;
use crate::failure::Failure;
use crate::output;
use crate::python;

/// Files of the requested packet captures, indexed by [`Side`].
pub(super) type Captures = [Option<(PathBuf, Capture)>; 2];

/// Creates the files of the requested packet captures.
///
/// # Errors
/// Fails if a capture file cannot be created, or if two outputs are the same file.
pub(super) fn create_captures(args: &Args) -> Result<Captures, Failure> {
    let Watching { pcap, pcap_inside, report_html, .. } = &args.watching;
    let written = [
        ("--pcap", pcap.as_ref()),
        ("--pcap-inside", pcap_inside.as_ref()),
        ("--report-html", report_html.as_ref()),
        ("--uplink-log", args.spelling.uplink_log.as_ref()),
        ("--downlink-log", args.spelling.downlink_log.as_ref()),
    ];
    output::keep_apart(args.scenario.as_deref(), &written)?;
    output::keep_form("--report-html", report_html.as_ref(), output::Form::Html)?;
    if report_html.is_some() {
        python::require()?;
    }
    let create = |path: &PathBuf| Ok::<_, Failure>((path.clone(), Capture::create(path)?));
    Ok([pcap.as_ref().map(create).transpose()?, pcap_inside.as_ref().map(create).transpose()?])
}

/// Output files being written while a link runs.
#[derive(Default)]
pub(super) struct Outputs(Vec<Output>);

struct Output {
    path: PathBuf,
    /// Kind of the file's contents: packets or events.
    what: &'static str,
    ending: Ending,
    /// Capture file, renamed to its final name when it is complete.
    file: Option<Capture>,
}

impl Outputs {
    /// Starts the packet capture of one side of the link, if requested.
    ///
    /// # Errors
    /// Fails if the writing thread cannot be created.
    pub(super) fn capture(&mut self, side: Side, files: &mut Captures) -> Result<Option<Recorder>, Failure> {
        let Some((path, file)) = files[side as usize].take() else { return Ok(None) };
        let name = match side {
            Side::Wired => "outside",
            Side::Radio => "inside",
        };
        let (recorder, ending) =
            Recorder::begin(Box::new(file.clone()), name).map_err(|error| no_thread(&path, &error))?;
        self.0.push(Output { path, what: "packets", ending, file: Some(file) });
        Ok(Some(recorder))
    }

    /// Starts the requested logs in mm-link's format.
    ///
    /// # Errors
    /// Fails if a log file or its thread cannot be created.
    pub(super) fn log(
        &mut self,
        plane: &mut Plane,
        args: &Args,
        edge: &EdgeConfig,
        files: &dyn Files,
    ) -> Result<(), Failure> {
        let command_line = env::args().collect::<Vec<_>>().join(" ");
        let prefix = env::var("MAHIMAHI_SHELL_PREFIX").ok();
        let [queue_up, queue_down] = args.spelling.queue_names();
        let up = (Side::Wired, "uplink", &args.spelling.uplink_log, &edge.up, queue_up);
        let down = (Side::Radio, "downlink", &args.spelling.downlink_log, &edge.down, queue_down);
        for (to, link, path, table, queue) in [up, down] {
            let Some(path) = path else { continue };
            let file = create_in_place(path)?;
            let opportunities = match recording(table, files) {
                Some(Recording::Opportunities(opportunities)) => Some(opportunities),
                _ => None,
            };
            let header = LogHeader {
                link,
                recording: table["file"].as_str().or(table["rate"].as_str()).unwrap_or_default(),
                log: &path.to_string_lossy(),
                command_line: &command_line,
                queue: &queue,
                began_ms: unix_ms(),
                shell_prefix: prefix.as_deref(),
            };
            let (log, ending) =
                LinkLog::begin(file, &header, opportunities).map_err(|error| no_thread(path, &error))?;
            plane.log(to, log);
            self.0.push(Output { path: path.clone(), what: "events", ending, file: None });
        }
        Ok(())
    }

    /// Waits a limited time for all outputs to finish. Returns the failures in the order in which the outputs were
    /// started.
    pub(super) fn finish(self) -> Vec<Failure> {
        let end = now() + PATIENCE;
        self.0
            .into_iter()
            .filter_map(|output| output.finish(end.saturating_duration_since(now())).err())
            .collect()
    }
}

impl Output {
    fn finish(self, most: Duration) -> Result<(), Failure> {
        let path = self.path.display();
        match self.ending.wait(most) {
            Ok(lost) => {
                if lost > 0 {
                    let what = self.what;
                    output::remark(&format!("{path}: {lost} {what} are missing: it was written too slowly"));
                }
                self.file.map_or(Ok(()), Capture::finish)
            }
            Err(Unwritten::Failed(error)) => Err(Failure::Run(match self.file {
                // The error message already contains the file name.
                Some(_) => format!("the capture could not be written: {error}"),
                None => format!("{path}: cannot be written: {error}"),
            })),
            Err(stuck @ Unwritten::Stuck) => {
                Err(Failure::Run(format!("{path}: the end is missing: {stuck}, {} s", PATIENCE.as_secs())))
            }
        }
    }
}

/// Maximum time to wait for all output files after the link has ended.
const PATIENCE: Duration = Duration::from_secs(5);

fn no_thread(path: &Path, error: &io::Error) -> Failure {
    Failure::Run(format!("{}: there is no thread to write it: {error}", path.display()))
}

#[allow(clippy::disallowed_methods)] // The command may ask a clock.
fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[allow(clippy::disallowed_methods)] // The command may ask a clock.
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Returns the recording that a link plays, or `None` if the link plays no recording.
pub(super) fn recording(table: &Value, files: &dyn Files) -> Option<Recording> {
    let bytes = files.read(table["file"].as_str()?).ok()?;
    Recording::parse(&bytes).ok()
}
