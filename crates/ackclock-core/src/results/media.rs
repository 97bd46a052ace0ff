//! Results of real-time media.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Distribution;

/// Results of a flow with the workload "media". The packet counts of the flow are those of its UDP packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MediaResult {
    /// Mean target bitrate of the sender, headers included, bit/s. The target is null if the flow did not start.
    pub target_bps: Option<f64>,
    /// Number of frames captured.
    pub frames: u64,
    /// Number of key frames among `frames`: the first frame, and the frames that the receiver requested.
    pub key_frames: u64,
    /// Number of frames shown.
    pub frames_shown: u64,
    /// Number of frames that were given up, or not decodable because an earlier frame was. Frames neither shown nor
    /// lost are in transit at the end of the run.
    pub frames_lost: u64,
    /// Time from the capture of each shown frame until all its packets and the frames before it had arrived, ms.
    pub frame_delay_ms: Distribution,
    /// Number of freezes: times between two frames at least 3 times and 150 ms longer than the mean of the last 30.
    pub freezes: u64,
    /// Total duration of the freezes, s.
    pub freeze_s: f64,
    /// Number of packets that arrived at the receiver.
    pub packets_received: u64,
}
