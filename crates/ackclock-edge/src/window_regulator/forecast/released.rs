//! Decides when the regulator stops limiting a sender, and how the sender's window then grows.
//!
//! Limiting the window is useless if a full buffer cannot cause much delay. A sender is released if the buffer holds at
//! most two round trips of the link's usual service plus the always allowed packets. A sender is also released if the
//! buffer holds at most the always allowed packets of every flow. The usual rate varies, so a released sender is
//! limited again only if the buffer holds more than two and a half round trips of service.
//!
//! The buffer of an observed queue is unknown. If a sender retransmits although data was queued for at most two loops,
//! either the buffer holds no more, or the path loses packets and loss limits the sender. The senders that share the
//! queue are then released, until data is queued for more than two and a half loops. The longest queueing delay of the last one to
//! two seconds counts, because a loss is repaired when the queue may be short again.
//!
//! A sender that was window-limited has a larger congestion window, and would send all of the congestion window at once
//! into the rest of the buffer. To avoid such a burst, the right edge of a released sender grows by half per round
//! trip, until it reaches the receiver's right edge or the queue is empty.

use ackclock_core::Seq;
use ackclock_link::Observation;

use super::Shared;
use crate::window_regulator::dequeued::Dequeued;

/// Largest buffer, in round trips of the link's usual service, at which a limited sender is released, and at which a
/// released sender stays released.
const TRIPS: [f64; 2] = [2.0, 2.5];
/// Bytes by which the right edge advances per acknowledged byte.
const GROWTH: f64 = 1.5;

/// Whether an observed queue holds so little, or its senders lose so much, that they are released.
#[derive(Debug, Default)]
pub(super) struct ShortQueue(bool);

impl ShortQueue {
    /// Processes an observation of a flow in the queue.
    pub(super) fn on_observation(&mut self, observation: &Observation) {
        let Observation { waited, horizon, repeats, .. } = *observation;
        let [least, most] = TRIPS.map(|trips| trips * horizon.as_secs_f64());
        let within = |most: f64| waited.map(|waited| waited.as_secs_f64() <= most);
        let begins = repeats && within(least).unwrap_or(false);
        self.0 = begins || (self.0 && within(most).unwrap_or(true));
    }
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
    /// Whether the sender should be released. `accounts` holds the sender's data in the queue, and `usual` is the
    /// link's usual service per round trip, bytes.
    pub(super) fn is_due(&self, accounts: &Dequeued, usual: f64, shared: &Shared) -> bool {
        if shared.observed {
            return shared.short.0;
        }
        let Some(buffer) = accounts.buffer() else { return false };
        let packets = shared.config.packets;
        let few = accounts.window_of(packets.saturating_mul(shared.shares.flows()));
        let spared = TRIPS[usize::from(self.free)] * usual + f64::from(accounts.window_of(packets));
        buffer <= few || f64::from(buffer) <= spared
    }

    /// Whether the regulator has stopped limiting the sender's window.
    pub(super) const fn is_released(&self) -> bool {
        self.free
    }

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
    fn what_is_usual_falls_by_a_fifth_before_a_source_let_go_is_ruled_again() {
        let shared = Forecast::new(Config::default()).shared;
        let bench = Bench::new(Box::new(Forecast::new(Config::default())), 100);
        let mut accounts = Dequeued::new(Count::Exact);
        accounts.on_data(&Bench::data(0), bench.view());
        let mut one = Released::default();
        let due = |one: &Released| {
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
        assert_eq!([loses(Some(200), true), loses(Some(250), false), loses(None, false)], [true; 3]);
        assert_eq!([loses(Some(251), false), loses(Some(20), false)], [false, false]);
    }
}
