//! Decides when the regulator stops limiting a sender, and how the sender's window then grows.
//!
//! Limiting the window is useless if a full buffer cannot cause much delay. A sender is released if the buffer holds at
//! most two round trips of the link's usual service plus the always allowed packets. A sender is also released if the
//! buffer holds at most the always allowed packets of every flow.
//!
//! The buffer of an observed queue is unknown. If a sender retransmits although data was queued for at most two loops,
//! either the buffer holds no more, or the path loses packets and loss limits the sender. The senders that share the
//! queue are then released, until data is queued for more than two loops. The longest queueing delay of the last one to
//! two seconds counts, because a loss is repaired when the queue may be short again.
//!
//! A sender that was window-limited has a larger congestion window, and would send all of the congestion window at once
//! into the rest of the buffer. To avoid such a burst, the right edge of a released sender grows by half per round
//! trip, until it reaches the receiver's right edge or the queue is empty.

use ackclock_core::Seq;
use ackclock_link::Observation;

use super::Shared;
use crate::window_regulator::dequeued::Dequeued;

/// Largest buffer, in round trips of the link's usual service, at which a sender is released.
const TRIPS: f64 = 2.0;
/// Bytes by which the right edge advances per acknowledged byte.
const GROWTH: f64 = 1.5;

/// Whether an observed queue holds so little, or its senders lose so much, that they are released.
#[derive(Debug, Default)]
pub(super) struct ShortQueue(bool);

impl ShortQueue {
    /// Processes an observation of a flow in the queue.
    pub(super) fn on_observation(&mut self, observation: &Observation) {
        let Observation { waited, horizon, repeats, .. } = *observation;
        let is_short = waited.map(|waited| waited.as_secs_f64() <= TRIPS * horizon.as_secs_f64());
        self.0 = is_short.map_or(self.0, |is_short| is_short && (repeats || self.0));
    }
}

/// Whether the sender should be released. `accounts` holds the sender's data in the queue, and `usual` is the
/// link's usual service per round trip, bytes.
pub(super) fn is_due(accounts: &Dequeued, usual: f64, shared: &Shared) -> bool {
    if shared.observed {
        return shared.short.0;
    }
    let Some(buffer) = accounts.buffer() else { return false };
    let packets = shared.config.packets;
    let few = accounts.window_of(packets.saturating_mul(shared.shares.flows()));
    let spared = TRIPS * usual + f64::from(accounts.window_of(packets));
    buffer <= few || f64::from(buffer) <= spared
}

/// State of one sender: whether the regulator has stopped limiting its window, and the right edge while the window
/// grows.
#[derive(Debug, Default)]
pub(super) struct Released {
    /// Set while the regulator does not limit the sender's window.
    free: bool,
    /// Right edge of a released sender; `None` if the receiver's own right edge applies.
    edge: Option<Seq>,
}

impl Released {
    /// Ends the release: the sender is window-limited again.
    pub(super) const fn on_ruled(&mut self) {
        (self.free, self.edge) = (false, None);
    }

    /// Right edge of a released sender, given the right edge advertised so far; `None` if the receiver's own right edge
    /// applies.
    pub(super) fn edge(&mut self, told: Option<Seq>, queue_is_empty: bool) -> Option<Seq> {
        if !std::mem::replace(&mut self.free, true) {
            self.edge = told;
        }
        self.edge = self.edge.filter(|_| !queue_is_empty);
        self.edge
    }

    /// Handles an ACK that is sent to the sender and covers `bytes` new bytes; the receiver offers a window up to
    /// `offered`.
    pub(super) fn on_passed(&mut self, bytes: u32, offered: Seq) {
        let further = self.edge.map(|edge| edge + (GROWTH * f64::from(bytes)) as u32);
        self.edge = further.filter(|further| offered.after(*further));
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::{FlowId, Span};
    use ackclock_link::Base;

    use super::super::{Config, Forecast};
    use super::*;
    use crate::window_regulator::bench::Bench;
    use crate::window_regulator::dequeued::Count;

    #[test]
    fn the_edge_of_a_source_that_was_ruled_grows_by_half_until_it_is_what_is_offered() {
        let mut one = Released::default();
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
    fn a_source_is_let_go_where_two_round_trips_and_five_packets_fill_the_buffer() {
        let shared = Forecast::new(Config::default()).shared;
        let bench = Bench::new(Box::new(Forecast::new(Config::default())), 100);
        let mut accounts = Dequeued::new(Count::Exact);
        accounts.on_data(&Bench::data(0), bench.view());
        // Five packets and two round trips of 47.5 fill the 100.
        assert_eq!([47_400.0, 47_600.0].map(|usual| is_due(&accounts, usual, &shared)), [false, true]);
    }

    #[test]
    fn an_empty_queue_has_room_for_all() {
        let mut one = Released::default();
        one.on_ruled();
        assert_eq!(one.edge(Some(Seq(5000)), true), None);
        assert_eq!(one.edge(Some(Seq(5000)), false), None);
        one.on_ruled();
        assert_eq!(one.edge(Some(Seq(7000)), false), Some(Seq(7000)));
    }

    #[test]
    fn senders_that_lose_data_in_a_short_observed_queue_are_released_until_the_queue_is_long() {
        let mut one = ShortQueue::default();
        let mut loses = |waited_ms: Option<u64>, repeats| {
            let horizon = Span::from_millis(100);
            one.on_observation(&Observation {
                flow: FlowId(0),
                bytes: 1000,
                idle: Span::ZERO,
                called: true,
                horizon,
                late: Span::ZERO,
                probing: false,
                base: Base::Arrived,
                leaves: 0,
                waited: waited_ms.map(Span::from_millis),
                passed: None,
                repeats,
            });
            one.0
        };
        assert_eq!([loses(Some(20), false), loses(None, true)], [false, false]);
        assert!(!loses(Some(201), true), "a long queue may have lost it");
        assert_eq!([loses(Some(200), true), loses(Some(200), false), loses(None, false)], [true; 3]);
        assert_eq!([loses(Some(201), false), loses(Some(20), false)], [false, false]);
    }
}
