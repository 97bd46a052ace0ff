//! Report of a running box.

use std::path::PathBuf;

use ackclock_link::Side;
use serde::{Deserialize, Serialize};

use crate::shares::Shares;
use crate::subscribers::SubscriberReport;

/// State of a box, and its measurements in the last ten seconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// Process ID of the box.
    pub pid: i32,
    /// Name of the box's network interface.
    pub interface: String,
    /// Name of the box's regulator.
    pub regulator: String,
    /// Whether the box lowers windows.
    pub acting: bool,
    /// Time since the box started, s.
    pub running_s: f64,
    /// Length of the window of all measurements in this report, s: ten seconds, less after the start.
    pub window_s: f64,
    /// Throughput from the servers in the window, bit/s.
    pub rate_bps: f64,
    /// Side of the radio on which the box is.
    pub side: Option<Side>,
    /// Whether nearly all TCP data of the last four seconds came from the mobiles: they upload, or the box is on the other
    /// side of the radio.
    pub data_from_mobiles: bool,
    /// Number of connections that carried data in the last ten seconds.
    pub connections: usize,
    /// Number of connections that carried data in the last ten seconds and are not observed, because there are too many
    /// connections or subscribers.
    pub unobserved: usize,
    /// Median of the packets' estimated queueing delays in the radio's queue in the window, ms.
    pub wait_p50_ms: Option<f64>,
    /// 95th percentile of the packets' estimated queueing delays in the radio's queue in the window, ms. Each packet of a
    /// known connection counts once, when it has left the queue.
    pub wait_p95_ms: Option<f64>,
    /// Shares of the protocols in the bytes from the servers in the window.
    #[serde(flatten)]
    pub shares: Shares,
    /// Share of the ACKs in the window for which the window law asks for a lower window, 0 to 1.
    pub lower_share: Option<f64>,
    /// Configuration file of the box, if the box was started with a file.
    pub file: Option<PathBuf>,
    /// Number of subscribers with recent traffic.
    pub subscribers: usize,
    /// Number of records that were ignored because there were too many subscribers or connections.
    pub refused: u64,
    /// Measurements of the 100 subscribers with the longest queueing delay, the longest first.
    pub worst: Vec<SubscriberReport>,
    /// Summary of the last complete day.
    pub day: Option<String>,
    /// Reason why the last changed configuration file was refused.
    pub refused_file: Option<String>,
}
