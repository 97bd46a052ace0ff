//! When a source is let go, as if there were no regulator, and how.
//!
//! Windows serve nothing where the buffer cannot delay much: it holds no more than two round trips of what the link usually
//! serves and the packets that are told whatever the rate, or than as many packets for each flow. What is usual wanders, so
//! that a source let go is ruled again only where it holds two and a half.
//!
//! A source that a window ruled has a congestion window that is larger, and would send all of it at once into what is left of
//! the buffer. So its edge grows by half in a round trip, until it is what the receiver offers or the queue is empty.

use ackclock_core::Seq;

use super::Shared;
use crate::window_regulator::dequeued::Dequeued;

/// Round trips of what the link usually serves that a buffer holds at most, of a source that is ruled and of one let go.
const TRIPS: [f64; 2] = [2.0, 2.5];
/// Bytes by which the edge moves for each byte that is acknowledged.
const GROWTH: f64 = 1.5;

/// How far a source that is let go has got.
#[derive(Debug, Default)]
pub(super) struct LettingGo {
    /// No window rules it.
    free: bool,
    /// As far as it may be told to send; `None` where that is what the receiver offers.
    edge: Option<Seq>,
}

impl LettingGo {
    /// Whether the source is let go, which has these accounts and in whose round trip the link usually serves so many bytes.
    /// What another's queue holds is not known.
    pub(super) fn is_due(&self, accounts: &Dequeued, usual: f64, shared: &Shared) -> bool {
        let Some(buffer) = accounts.buffer().filter(|_| !shared.observed) else { return false };
        let packets = shared.config.packets;
        let few = accounts.window_of(packets.saturating_mul(shared.shares.flows()));
        let spared = TRIPS[usize::from(self.free)] * usual + f64::from(accounts.window_of(packets));
        buffer <= few || f64::from(buffer) <= spared
    }

    /// Whether no window rules the source.
    pub(super) const fn is_free(&self) -> bool {
        self.free
    }

    /// A window rules the source.
    pub(super) const fn on_ruled(&mut self) {
        (self.free, self.edge) = (false, None);
    }

    /// As far as the source may be told to send when it is let go, which was `told` an edge or none yet; `None` for what is
    /// offered.
    pub(super) fn edge(&mut self, told: Option<Seq>, queue_is_empty: bool) -> Option<Seq> {
        if !std::mem::replace(&mut self.free, true) {
            self.edge = told;
        }
        self.edge = self.edge.filter(|_| !queue_is_empty);
        self.edge
    }

    /// An ACK goes that acknowledges so many bytes more, and whose receiver offers a window up to `offered`.
    pub(super) fn on_passed(&mut self, bytes: u32, offered: Seq) {
        let further = self.edge.map(|edge| edge + (GROWTH * f64::from(bytes)) as u32);
        self.edge = further.filter(|further| offered.after(*further));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Forecast};
    use super::*;
    use crate::window_regulator::bench::Bench;
    use crate::window_regulator::dequeued::Count;

    #[test]
    fn the_edge_of_a_source_that_was_ruled_grows_by_half_until_it_is_what_is_offered() {
        let mut one = LettingGo::default();
        assert_eq!(one.edge(None, false), None);
        assert_eq!(one.edge(Some(Seq(5000)), false), None, "no window had ruled it");
        one.on_ruled();
        assert_eq!(one.edge(Some(Seq(5000)), false), Some(Seq(5000)));
        one.on_passed(2000, Seq(60_000));
        assert_eq!(one.edge(Some(Seq(5000)), false), Some(Seq(8000)));
        one.on_passed(2000, Seq(11_000));
        assert_eq!(one.edge(Some(Seq(8000)), false), None);
    }

    #[test]
    fn what_is_usual_falls_by_a_fifth_before_a_source_let_go_is_ruled_again() {
        let shared = Forecast::new(Config::default()).shared;
        let bench = Bench::new(Box::new(Forecast::new(Config::default())), 100);
        let mut accounts = Dequeued::new(Count::Exact);
        accounts.on_data(&Bench::data(0), bench.view());
        let mut one = LettingGo::default();
        let due = |one: &LettingGo| {
            [37_900.0, 38_100.0, 47_400.0, 47_600.0].map(|usual| one.is_due(&accounts, usual, &shared))
        };
        // Five packets, and two round trips of 47.5 or two and a half of 38, fill the 100.
        assert_eq!(due(&one), [false, false, false, true]);
        one.edge(None, false);
        assert_eq!(due(&one), [false, true, true, true]);
        one.on_ruled();
        assert_eq!(due(&one), [false, false, false, true]);
    }

    #[test]
    fn an_empty_queue_has_room_for_all() {
        let mut one = LettingGo::default();
        one.on_ruled();
        assert_eq!(one.edge(Some(Seq(5000)), true), None);
        assert_eq!(one.edge(Some(Seq(5000)), false), None);
        one.on_ruled();
        assert_eq!(one.edge(Some(Seq(7000)), false), Some(Seq(7000)));
    }
}
