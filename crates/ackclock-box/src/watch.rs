//! Watches the traffic of an interface for a time, for a check: which share of it a box could regulate. Changes no packet
//! and leaves nothing attached.

use std::io;

use ackclock_link::Side;
use serde::Serialize;

use crate::clip::Pins;
use crate::config::Policy;
use crate::daemon::{Daemon, Options};
use crate::devices::{self, Device};
use crate::error::{BoxError, InterfaceError};
use crate::files::{Files, pause};
use crate::interface;
use crate::maps::Counts;
use crate::programs::{self, Program};
use crate::report::Report;
use crate::shares::Shares;

/// Traffic of an interface while a check watched it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Watched {
    /// Whether the counters are those of a box that was attached before the check.
    pub of_a_box: bool,
    /// Side of the radio on which the box is.
    pub side: Side,
    /// Shares of the protocols in the bytes from the servers.
    #[serde(flatten)]
    pub shares: Shares,
    /// 95th percentile of the estimated queueing delay in the radio's queue in the last ten seconds of the check, ms.
    pub wait_p95_ms: Option<f64>,
    /// Packets of one bandwidth-delay product, if a fixed buffer holds fewer and may limit the rate.
    pub packets_missed: Option<u32>,
    /// Number of packets that the network device received and sent.
    pub device_packets: u64,
    /// Number of packets of the device that did not pass the BPF program.
    pub missing_packets: u64,
    /// Programs that see packets of the interface before the box.
    pub before: Vec<Program>,
    /// Counters of the BPF program.
    pub counts: Counts,
}

/// Watches the interface of `options` until `ends` returns true. If a box is attached there, its counters are read;
/// otherwise measuring programs are attached and removed again.
///
/// # Errors
/// Fails if the interface does not exist, or the kernel refuses the programs.
pub fn watch(options: Options, policy: Policy, mut ends: impl FnMut() -> bool) -> Result<Watched, BoxError> {
    let (interface, pins) = (options.interface.clone(), Pins::of(&options.interface)?);
    let files = Files::of(&options.folder, &pins.name());
    if pins.is_attached()? {
        let begun = Reading::begin(&interface, &pins)?;
        while !ends() {
            pause();
        }
        let side = files.last_report().and_then(|report| report.side).unwrap_or(policy.side());
        return Ok(Watched { of_a_box: true, ..begun.end(&interface, &pins, &files, side)? });
    }
    let folder = options.folder.clone();
    let side = policy.side();
    let mut daemon = Daemon::start(Options { act: false, ..options }, policy)?;
    let pins = Pins::of(&interface)?;
    let files = Files::of(&folder, &pins.name());
    let watched = || {
        let begun = Reading::begin(&interface, &pins)?;
        daemon.run(ends, |_| Err("a check loads no file".to_owned()), |_| {})?;
        begun.end(&interface, &pins, &files, side)
    };
    let watched = watched();
    daemon.remove()?;
    watched
}

/// Counters at the beginning of a watch.
struct Reading {
    counts: Counts,
    device: Device,
}

impl Reading {
    /// Reads the counters of the program before those of the device, so that no packet seems to be missing.
    fn begin(interface: &str, pins: &Pins) -> Result<Self, BoxError> {
        let counts = pins.counts()?;
        Ok(Self { counts, device: device(interface)? })
    }

    fn end(&self, interface: &str, pins: &Pins, files: &Files, side: Side) -> Result<Watched, BoxError> {
        let device = device(interface)?;
        let counts = pins.counts()?.since(&self.counts);
        let since = |now: u64, before: u64| now.saturating_sub(before);
        let packets = since(device.received, self.device.received) + since(device.sent, self.device.sent);
        let report = files.last_report();
        let missed = |report: &Report| report.worst.iter().filter_map(|one| one.packets_missed).max();
        Ok(Watched {
            of_a_box: false,
            side,
            shares: Shares::of(&counts),
            wait_p95_ms: report.as_ref().and_then(|report| report.wait_p95_ms),
            packets_missed: report.as_ref().and_then(missed),
            device_packets: packets,
            before: programs::before_a_box(interface),
            missing_packets: since(packets, counts.in_segments + counts.out_segments),
            counts,
        })
    }
}

fn device(interface: &str) -> Result<Device, InterfaceError> {
    let gone = |error: io::Error| InterfaceError::Unread(interface.to_owned(), error);
    let index = interface::index(interface).ok_or_else(|| gone(io::ErrorKind::NotFound.into()))?;
    devices::device(index).map_err(gone)
}
