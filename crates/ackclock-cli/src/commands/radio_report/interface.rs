//! Reports measured at the queue of a network interface.

use std::thread;
use std::time::{Duration, Instant};

use ackclock_core::{Span, Time};
use ackclock_proxy::reports::busy::{BusyRate, Sample};
use ackclock_proxy::reports::qdisc::Reader;

use super::Sender;
use crate::failure::Failure;
use crate::output;

/// Time between two samples of the counters. A queue that empties and fills again in less time is mistaken for a busy
/// queue.
const STEP: Duration = Duration::from_millis(10);
/// Shortest and longest interval of the reports.
const INTERVALS: [Span; 2] = [Span::from_millis(100), Span::from_secs(60)];

/// Parses the interval of the reports.
pub(super) fn interval(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    let [least, most] = INTERVALS;
    if (least..=most).contains(&span) {
        Ok(span)
    } else {
        Err(format!("{span} is not from {least} to {most}"))
    }
}

/// Samples the counters of an interface, and reports the rate after each interval in which it was measured. Ends only
/// with an error.
#[allow(clippy::disallowed_methods, reason = "real counters are sampled in real time")]
pub(super) fn report(interface: &str, every: Span, sender: &mut Sender) -> Result<(), Failure> {
    let wrong = |error: String| Failure::Input(format!("--from-interface {interface}: {error}"));
    let mut reader = Reader::open(interface).map_err(|error| wrong(error.to_string()))?;
    let mut next = || match reader.read() {
        Ok(Some(counters)) => Ok(counters),
        Ok(None) => Err(wrong("the interface has no queue (qdisc) to measure".to_owned())),
        Err(error) => Err(wrong(error.to_string())),
    };
    next()?;
    output::remark(&format!(
        "reports the rate of {interface} while packets wait in its queue; Ctrl-C ends it"
    ));
    let (start, mut busy, mut due) = (Instant::now(), BusyRate::default(), Time::ZERO + every);
    loop {
        let counters = next()?;
        let at = Time::from_nanos(start.elapsed().as_nanos() as u64);
        busy.sample(Sample { at, sent: counters.sent, queued: counters.bytes });
        if at >= due {
            due = at + every;
            if let Some(rate) = busy.reading(every) {
                // A proxy that does not listen yet hears the next report.
                let _ = sender.send_measured(rate, counters.packets, counters.bytes);
            }
        }
        thread::sleep(STEP);
    }
}
