//! A floor under the goodput: raises the window above the buffer if the window leaves the link idle.
//!
//! With a buffer below the bandwidth-delay product, a window of the buffer's size cannot keep the link busy. An
//! unregulated sender would use the link better, at the price of drops. If data triggered by a right edge finds the
//! link idle, the window grows by the idle share of its round trip. Each dropped packet lowers the window by the
//! packet's size.

use ackclock_core::{Seq, Time};

use super::source::{Arrival, Source};

/// Part of a flow's advertised window that exceeds the buffer.
#[derive(Debug, Default)]
pub(super) struct Floor {
    pub(super) source: Source,
    /// Number of bytes by which the window exceeds the buffer.
    beyond: u32,
    /// Time since which the link is idle.
    idle_since: Option<Time>,
}

impl Floor {
    /// Number of payload bytes by which the window may exceed the buffer.
    pub(super) fn beyond(&self) -> u32 {
        self.beyond
    }

    /// Notes that the queue has run empty.
    pub(super) fn on_idle(&mut self, now: Time) {
        self.idle_since = Some(now);
    }

    /// Processes data that arrives at the queue, whose buffer is `buffer` bytes.
    pub(super) fn on_data(&mut self, now: Time, end: Seq, buffer: u32) -> Arrival {
        let arrival = self.source.on_data(now, end);
        if let Some(since) = self.idle_since.take()
            && arrival == Arrival::Triggered
        {
            let wired = self.source.wired().as_secs_f64();
            let share = (now.since(since).as_secs_f64() / wired).min(1.0);
            let more = share * (f64::from(buffer) + f64::from(self.beyond));
            self.beyond = self.beyond.saturating_add(more as u32).min(LARGEST);
        }
        arrival
    }

    /// Notes that data was dropped because the buffer was full, or because it was queued for too long.
    pub(super) fn on_dropped(&mut self, payload: u32) {
        self.beyond = self.beyond.saturating_sub(payload);
    }

    /// Notes that a higher right edge is advertised.
    pub(super) fn on_told(&mut self, now: Time, before: Seq, edge: Seq) {
        self.source.on_told(now, before, edge, None);
    }
}

/// Error message: a floor cannot be used with an observing bearer.
pub(super) const BLIND: &str =
    "its floor must see the queue run empty, which an observing box cannot; set `floor = false`";
/// Largest window in bytes (RFC 7323 section 2.3 allows twice as much).
const LARGEST: u32 = 1 << 29;

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Span;

    /// Advertises four right edges. The data of each edge arrives 20 ms later, after the link was idle for the given
    /// pause in ms.
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
        // The window grows by all of 3000, half of 6000, nothing, and a tenth of 9000 bytes.
        let (mut floor, raised) = beyond([20, 10, 0, 2]);
        assert_eq!(raised, [3000, 6000, 6000, 6900]);
        floor.on_dropped(1000);
        assert_eq!(floor.beyond(), 5900);
        // An idle time longer than a round trip counts as one round trip.
        assert_eq!(beyond([20, 2000, 0, 0]).1, [3000, 9000, 9000, 9000]);
    }

    #[test]
    fn data_that_came_for_another_reason_changes_nothing() {
        let mut floor = Floor::default();
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        floor.on_told(at(0), Seq(0), Seq(1000));
        floor.on_data(at(20), Seq(1000), 3000);
        floor.on_idle(at(30));
        // The wired RTT is 20 ms, but the data arrives after 60 ms, because the congestion window delayed the data.
        floor.on_told(at(40), Seq(1000), Seq(2000));
        floor.on_data(at(100), Seq(2000), 3000);
        assert_eq!(floor.beyond(), 0);
    }
}
