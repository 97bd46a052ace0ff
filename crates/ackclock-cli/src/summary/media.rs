//! Table of the frames of media flows.

use ackclock_core::results::{FlowResult, MediaResult, RunResult};

use super::{Measure, Unit};
use crate::statistics;

/// Frames of one flow.
pub(super) const MEDIA: &[Measure<FlowResult>] = &[
    Measure { heading: "target", unit: Unit::Rate, of: |flow| media(flow)?.target_bps },
    Measure { heading: "frames", unit: Unit::Plain, of: |flow| Some(media(flow)?.frames as f64) },
    Measure { heading: "lost %", unit: Unit::Share, of: |flow| media(flow).and_then(lost) },
    Measure { heading: "delay p50 ms", unit: Unit::Percentile, of: |flow| media(flow)?.frame_delay_ms.p50 },
    Measure { heading: "delay p95 ms", unit: Unit::Percentile, of: |flow| media(flow)?.frame_delay_ms.p95 },
    Measure { heading: "freezes", unit: Unit::Plain, of: |flow| Some(media(flow)?.freezes as f64) },
    Measure { heading: "frozen s", unit: Unit::Plain, of: |flow| Some(media(flow)?.freeze_s) },
    Measure { heading: "key frames", unit: Unit::Plain, of: |flow| Some(media(flow)?.key_frames as f64) },
];

/// Additional columns of the table of points if there are media flows: the delay of the worst flow, and the mean
/// time frozen.
pub(super) const POINT_MEDIA: &[Measure<RunResult>] = &[
    Measure { heading: "frame p95 ms", unit: Unit::Percentile, of: worst_delay },
    Measure { heading: "frozen s", unit: Unit::Plain, of: frozen },
];

/// Frames of a media flow; `None` for any other flow.
pub(super) fn media(flow: &FlowResult) -> Option<&MediaResult> {
    flow.media.as_deref()
}

fn lost(media: &MediaResult) -> Option<f64> {
    let done = media.frames_shown + media.frames_lost;
    (done > 0).then(|| media.frames_lost as f64 / done as f64)
}

fn worst_delay(run: &RunResult) -> Option<f64> {
    let delays = run.flows.iter().filter_map(|flow| media(flow)?.frame_delay_ms.p95);
    delays.reduce(f64::max)
}

/// Mean over the media flows of the time for which the picture was frozen, s.
fn frozen(run: &RunResult) -> Option<f64> {
    let times: Vec<_> = run.flows.iter().filter_map(|flow| Some(media(flow)?.freeze_s)).collect();
    statistics::mean(&times)
}
