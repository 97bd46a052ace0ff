//! When a source is let go, as if there were no regulator, and how.
//!
//! Windows serve nothing where the buffer cannot delay much: it holds no more than two round trips of what the link usually
//! serves and the packets that are told whatever the rate, or than as many packets for each flow. A source that a window ruled
//! has a congestion window that is larger, and would send all of it at once into what is left of the buffer. So its edge grows
//! by half in a round trip, until it is what the receiver offers or the queue is empty.

use ackclock_core::Seq;

use super::Shared;
use crate::window_regulator::dequeued::Dequeued;

/// Bytes by which the edge moves for each byte that is acknowledged.
const GROWTH: f64 = 1.5;

/// Whether the sources of a queue are let go, of which one has these accounts and the link usually serves so many bytes in its
/// round trip. What another's queue holds is not known.
pub(super) fn lets_go(accounts: &Dequeued, usual: f64, shared: &Shared) -> bool {
    let Some(buffer) = accounts.buffer().filter(|_| !shared.observed) else { return false };
    let packets = shared.config.packets;
    let few = accounts.window_of(packets.saturating_mul(shared.shares.flows()));
    let spared = 2.0 * usual + f64::from(accounts.window_of(packets));
    buffer <= few || f64::from(buffer) <= spared
}

/// How far a source that is let go has got.
#[derive(Debug, Default)]
pub(super) struct LettingGo {
    /// The window ruled it when it was last told one.
    ruled: bool,
    /// As far as it may be told to send; `None` where that is what the receiver offers.
    edge: Option<Seq>,
}

impl LettingGo {
    /// A window rules the source.
    pub(super) const fn on_ruled(&mut self) {
        (self.ruled, self.edge) = (true, None);
    }

    /// As far as the source may be told to send when it is let go, which was `told` an edge; `None` for what is offered.
    pub(super) fn edge(&mut self, told: Option<Seq>, queue_is_empty: bool) -> Option<Seq> {
        if std::mem::take(&mut self.ruled) {
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
    use super::*;

    #[test]
    fn the_edge_of_a_source_that_was_ruled_grows_by_half_until_it_is_what_is_offered() {
        let mut one = LettingGo::default();
        assert_eq!(one.edge(Some(Seq(5000)), false), None, "no window had ruled it");
        one.on_ruled();
        assert_eq!(one.edge(Some(Seq(5000)), false), Some(Seq(5000)));
        one.on_passed(2000, Seq(60_000));
        assert_eq!(one.edge(Some(Seq(5000)), false), Some(Seq(8000)));
        one.on_passed(2000, Seq(11_000));
        assert_eq!(one.edge(Some(Seq(8000)), false), None);
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
