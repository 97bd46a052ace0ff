//! Measures the RTT over the radio, from a packet's departure from the queue until the mobile's ACK of the packet.

use ackclock_core::{Seq, Span, Time};
use ackclock_observe::estimate::WindowedMin;

/// Minimum RTT over the radio, measured with one departure at a time.
#[derive(Debug, Default)]
pub(super) struct Air {
    least: WindowedMin,
    /// Sequence number at the end of the timed data, and the time at which this data left the queue.
    timed: Option<(Seq, Time)>,
    /// Sequence number at the end of all data that left the queue.
    left: Option<Seq>,
}

impl Air {
    /// Notes that data up to `end` left the queue. Retransmitted data is not timed, because the ACK may be for the
    /// first transmission.
    pub(super) fn on_left(&mut self, now: Time, end: Seq) {
        if self.left.is_none_or(|left| end.after(left)) {
            self.left = Some(end);
            self.timed.get_or_insert((end, now));
        }
    }

    /// Processes an ACK of the mobile for all data before `ack`.
    pub(super) fn on_ack(&mut self, now: Time, ack: Seq) {
        if let Some((_, left)) = self.timed.take_if(|(end, _)| end.at_or_before(ack)) {
            self.least.add(now, now.since(left));
        }
    }

    /// Recent minimum of the RTT over the radio; zero before the first measurement.
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
        // One delayed ACK acknowledges both packets, and the first packet is the timed one.
        air.on_ack(at(50), Seq(2000));
        assert_eq!(air.span(), Span::from_millis(50));
        // A retransmission is not timed.
        air.on_left(at(55), Seq(1000));
        air.on_ack(at(56), Seq(2000));
        air.on_left(at(60), Seq(3000));
        air.on_ack(at(90), Seq(3000));
        assert_eq!(air.span(), Span::from_millis(30));
    }
}
