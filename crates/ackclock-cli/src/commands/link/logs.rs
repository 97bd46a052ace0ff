//! The logs of a link, in mm-link's format.

use std::env;
use std::fs::File;
use std::io::BufWriter;
use std::time::{SystemTime, UNIX_EPOCH};

use ackclock_edge::EdgeConfig;
use ackclock_link::trace::Recording;
use ackclock_live::log::{LinkLog, LogHeader};
use ackclock_live::{Plane, Side};
use ackclock_scenario::DiskFiles;

use super::Args;
use super::live::recording;
use crate::failure::Failure;

/// Begins the logs that are asked for.
///
/// # Errors
/// Where a file cannot be made.
pub(super) fn add(
    plane: &mut Plane,
    args: &Args,
    edge: &EdgeConfig,
    files: &DiskFiles,
) -> Result<(), Failure> {
    let command_line = env::args().collect::<Vec<_>>().join(" ");
    let prefix = env::var("MAHIMAHI_SHELL_PREFIX").ok();
    let [queue_up, queue_down] = args.spelling.queue_names();
    let up = (Side::Wired, "uplink", &args.spelling.uplink_log, &edge.up, queue_up);
    let down = (Side::Radio, "downlink", &args.spelling.downlink_log, &edge.down, queue_down);
    for (to, link, path, table, queue) in [up, down] {
        let Some(path) = path else { continue };
        let file = File::create(path).map_err(|error| Failure::writing(path.display(), &error))?;
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
        plane.log(to, LinkLog::new(Box::new(BufWriter::new(file)), &header, opportunities));
    }
    Ok(())
}

#[allow(clippy::disallowed_methods)] // The command may ask a clock.
fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
