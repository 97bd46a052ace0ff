//! Queueing delay from timestamp echoes, for a box behind the queue.
//!
//! A sender limited by its congestion window does not wait for right edges, so the time since a right edge says little
//! about its data. The data's TSecr (RFC 7323 section 4.2) names the ACK that the sender had received last. The loop from
//! this ACK to the data has two parts: up to the sender's TSval, and from there through the queue.

use ackclock_core::{Segment, Span, Time};

use super::detour::Detour;
use ackclock_link::Side;

/// Shortest loop from an ACK to the data that echoes it, and the excess delay of its part before the sender's TSval.
#[derive(Debug, Default)]
pub(super) struct Echoed {
    detour: Detour,
    least: Option<Span>,
}

impl Echoed {
    /// Handles data whose sender had received an ACK of the time `heard`. Returns the queueing delay of the data.
    pub(super) fn on_data(&mut self, now: Time, segment: &Segment, heard: Time) -> Option<Span> {
        let (all, value) = (now.since(heard), segment.timestamps()?.value);
        let own = all.saturating_sub(self.detour.beyond(now, value, Side::Mobile, Some(all)));
        self.on_loop(own);
        Some(own.saturating_sub(self.least?))
    }

    /// Handles a loop that a connection without data had, as that of the handshake.
    pub(super) fn on_loop(&mut self, own: Span) {
        self.least = Some(self.least.map_or(own, |least| least.min(own)));
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::{FlowId, Seq, Timestamps};

    use super::*;

    /// 30 ms to the server, then some time without data, then 40 ms back and the time in the queue.
    #[test]
    fn time_before_the_data_was_sent_is_no_queueing_delay() {
        let mut echoed = Echoed::default();
        echoed.on_loop(Span::from_millis(70));
        let mut delay = |heard: u64, idle: u64, queued: u64| {
            let sent = heard + 30 + idle;
            let mut data = Segment::data(FlowId(0), Seq(0), 1000, 40);
            data.set_timestamps(Timestamps { value: sent as u32, echo: 0 });
            let at = |millis| Time::ZERO + Span::from_millis(millis);
            echoed.on_data(at(sent + 40 + queued), &data, at(heard)).unwrap().as_millis_f64()
        };
        (0..30).for_each(|number| assert_eq!(delay(number * 50, 0, 0), 0.0));
        // The tick of the clock is uncertain by one.
        for (heard, idle, queued) in [(2000, 0, 300), (2500, 400, 0), (3000, 500, 200)] {
            let told = delay(heard, idle, queued);
            assert!((told - queued as f64).abs() <= 1.3, "{told} is {queued}");
        }
    }
}
