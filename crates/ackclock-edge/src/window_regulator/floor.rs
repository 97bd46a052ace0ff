//! A floor under the goodput: lets go where the window keeps the link idle.
//!
//! A buffer below the product of bandwidth and round-trip time cannot fill a link by its window alone, and without a regulator
//! a source would fill it better at the price of drops. So where data that an edge has called forth finds the link idle, the
//! source is told more by the share of its round trip for which that was idle; each drop takes its packet back.

use ackclock_core::{Seq, Time};

use super::source::{Arrival, Source};

/// What one flow is told beyond the buffer.
#[derive(Debug, Default)]
pub(super) struct Floor {
    pub(super) source: Source,
    /// Bytes beyond the buffer.
    beyond: u32,
    /// Since when the link is idle.
    idle_since: Option<Time>,
}

impl Floor {
    /// Bytes of payload that the source is told beyond the buffer.
    pub(super) fn beyond(&self) -> u32 {
        self.beyond
    }

    /// Nothing is in the queue any more.
    pub(super) fn on_idle(&mut self, now: Time) {
        self.idle_since = Some(now);
    }

    /// Data comes to the queue, which holds `buffer` bytes.
    pub(super) fn on_data(&mut self, now: Time, end: Seq, buffer: u32) -> Arrival {
        let arrival = self.source.on_data(now, end);
        if let Some(since) = self.idle_since.take()
            && arrival == Arrival::Called
        {
            let wired = self.source.wired().as_secs_f64();
            let share = (now.since(since).as_secs_f64() / wired).min(1.0);
            let more = share * (f64::from(buffer) + f64::from(self.beyond));
            self.beyond = self.beyond.saturating_add(more as u32).min(LARGEST);
        }
        arrival
    }

    /// Data was dropped because the buffer was full.
    pub(super) fn on_dropped(&mut self, payload: u32) {
        self.beyond = self.beyond.saturating_sub(payload);
    }

    /// A further edge is told.
    pub(super) fn on_told(&mut self, now: Time, before: Seq, edge: Seq) {
        self.source.on_told(now, before, edge, None);
    }
}

/// Why there is none where the bearer only observes.
pub(super) const BLIND: &str =
    "its floor sees the queue run empty, which is somebody else's there; `floor = false`";
/// No window is larger (RFC 7323 section 2.3).
const LARGEST: u32 = 1 << 29;

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Span;

    /// After an edge, data that needs it comes 20 ms later, and finds the link idle for `pauses` of them.
    fn beyond(pauses: [u64; 4]) -> (Floor, [u32; 4]) {
        let mut floor = Floor::default();
        let (mut now, mut edge) = (Time::ZERO + Span::from_secs(3), Seq(0));
        let beyond = pauses.map(|pause| {
            floor.on_told(now, edge, edge + 1000);
            edge += 1000;
            now += Span::from_millis(20);
            if pause > 0 {
                floor.idle_since = Some(Time::from_nanos(now.as_nanos() - 1_000_000 * pause));
            }
            floor.on_data(now, edge, 3000);
            floor.beyond()
        });
        (floor, beyond)
    }

    #[test]
    fn the_window_grows_by_the_share_of_a_round_trip_in_which_the_link_was_idle() {
        // All of 3000, half of 6000, nothing, a tenth of 9000.
        let (mut floor, raised) = beyond([20, 10, 0, 2]);
        assert_eq!(raised, [3000, 6000, 6000, 6900]);
        floor.on_dropped(1000);
        assert_eq!(floor.beyond(), 5900);
        // What lasts longer than a round trip counts as one.
        assert_eq!(beyond([20, 2000, 0, 0]).1, [3000, 9000, 9000, 9000]);
    }

    #[test]
    fn data_that_came_for_another_reason_changes_nothing() {
        let mut floor = Floor::default();
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        floor.on_told(at(0), Seq(0), Seq(1000));
        floor.on_data(at(20), Seq(1000), 3000);
        floor.on_idle(at(30));
        // 20 ms of wire, and 60 until it comes: a congestion window held it back.
        floor.on_told(at(40), Seq(1000), Seq(2000));
        floor.on_data(at(100), Seq(2000), 3000);
        assert_eq!(floor.beyond(), 0);
    }
}
