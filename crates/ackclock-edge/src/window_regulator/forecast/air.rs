//! How far away the mobile is: from a departure to the ACK that tells the regulator of its arrival.

use ackclock_core::{Seq, Span, Time};

use crate::window_regulator::source::Least;

/// Times one departure after the other, and keeps the least.
#[derive(Debug, Default)]
pub(super) struct Air {
    least: Least,
    /// The end of the data that is timed, and when it left the queue.
    timed: Option<(Seq, Time)>,
    /// The end of all that left it.
    left: Option<Seq>,
}

impl Air {
    /// Data up to `end` has left the queue. What was sent again may be acknowledged for the first, and is not timed.
    pub(super) fn on_left(&mut self, now: Time, end: Seq) {
        if self.left.is_none_or(|left| end.after(left)) {
            self.left = Some(end);
            self.timed.get_or_insert((end, now));
        }
    }

    /// The mobile acknowledges what is before `ack`.
    pub(super) fn on_ack(&mut self, now: Time, ack: Seq) {
        if let Some((_, left)) = self.timed.take_if(|(end, _)| end.at_or_before(ack)) {
            self.least.note(now, now.since(left));
        }
    }

    /// The least time of late; nothing before it was measured.
    pub(super) fn span(&self) -> Span {
        self.least.span().unwrap_or_default()
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
        // One ACK for both, as receivers delay them: the first is timed.
        air.on_ack(at(50), Seq(2000));
        assert_eq!(air.span(), Span::from_millis(50));
        // Sent again.
        air.on_left(at(55), Seq(1000));
        air.on_ack(at(56), Seq(2000));
        air.on_left(at(60), Seq(3000));
        air.on_ack(at(90), Seq(3000));
        assert_eq!(air.span(), Span::from_millis(30));
    }
}
