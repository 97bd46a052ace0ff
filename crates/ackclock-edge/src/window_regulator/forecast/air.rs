//! RTT to the mobile: from a packet's departure from the queue to the ACK for it.

use ackclock_core::{Seq, Span, Time};
use ackclock_link::estimate::WindowedMin;

/// Times one departure at a time and keeps the minimum.
#[derive(Debug, Default)]
pub(super) struct Air {
    least: WindowedMin,
    /// End of the timed data, and when it left the queue.
    timed: Option<(Seq, Time)>,
    /// End of all data that left the queue.
    left: Option<Seq>,
}

impl Air {
    /// Data up to `end` left the queue. Retransmitted data is not timed: its ACK may be for the first transmission.
    pub(super) fn on_left(&mut self, now: Time, end: Seq) {
        if self.left.is_none_or(|left| end.after(left)) {
            self.left = Some(end);
            self.timed.get_or_insert((end, now));
        }
    }

    /// The mobile acknowledges everything before `ack`.
    pub(super) fn on_ack(&mut self, now: Time, ack: Seq) {
        if let Some((_, left)) = self.timed.take_if(|(end, _)| end.at_or_before(ack)) {
            self.least.add(now, now.since(left));
        }
    }

    /// Recent minimum; zero before the first measurement.
    pub(super) fn span(&self) -> Span {
        self.least.get().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn the_least_time_from_a_departure_to_its_ack_counts() {
        let mut air = Air::default();
        assert_eq!(air.span(), Span::ZERO);
        air.on_left(at(0), Seq(1000));
        air.on_left(at(10), Seq(2000));
        air.on_ack(at(20), Seq(500));
        assert_eq!(air.span(), Span::ZERO);
        // One ACK for both, as with delayed ACKs: the first packet is timed.
        air.on_ack(at(50), Seq(2000));
        assert_eq!(air.span(), Span::from_millis(50));
        // Retransmitted.
        air.on_left(at(55), Seq(1000));
        air.on_ack(at(56), Seq(2000));
        air.on_left(at(60), Seq(3000));
        air.on_ack(at(90), Seq(3000));
        assert_eq!(air.span(), Span::from_millis(30));
    }
}
