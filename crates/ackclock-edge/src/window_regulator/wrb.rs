//! # Window Regulator with an ACK buffer (WRB)
//!
//! ## Source
//! Source: CR04; described in `window-regulator.md` section 4.
//!
//! ## What it does
//! The right edge is that of the dynamic Window Regulator: data that has left the queue plus `B` packets. An ACK that
//! would advertise a smaller window than the last ACK is held until departures from the queue have raised its window.
//! When the radio speeds up, each departing packet releases a held ACK, so the sender learns of new room at once
//! instead of one radio round trip later.
//!
//! ## Differences from the source
//! The slides do not show when `Ba`, the number of held ACKs, is decremented. In this regulator `Ba` is decremented
//! before the window is computed, so that the right edge is exact; `reading = "printed"` decrements `Ba` afterwards,
//! which moves the right edge one packet further. ACKs are released in order of arrival. A duplicate ACK releases all
//! held ACKs and keeps the window of the ACK that it repeats; data, FIN and RST of the mobile also release all held
//! ACKs. `Y` is derived from sequence numbers (`dequeued.rs`); `count = "printed"` counts packets instead.
//!
//! While further ACKs are held, a released ACK does not raise the window (see `left_to_the_next`). An ACK that covers k
//! packets is therefore released after k departures, whereas the source releases one ACK per departure. The window is
//! at least two packets (`min_window`): otherwise a receiver that delays ACKs would stall the sender.
//!
//! If the link layer keeps a packet until the receiver has acknowledged it, the packet occupies one of the `B` buffer
//! places until the acknowledgement, and its release may release held ACKs.
//!
//! Held ACKs are released when the queue is empty or the sender retransmits acknowledged data, because holding ACKs
//! then has no benefit. With `empty = "hold"`, held ACKs are released only when no packets are in the air either. A
//! safety timer releases held ACKs in all other cases.
//!
//! The option `floor`, off by default, is not part of the source (`floor.rs`).
//!
//! ## Validation
//! The unit tests in this file compare sequences of windows with sequences calculated by hand. `tests/windows.rs`
//! checks the right edge under random traffic, and that no new data is dropped over any bearer.
//! `crates/ackclock-scenario/tests/windows.rs` checks the ordering of CR04, and that no packet is dropped if the rate
//! changes but never drops to zero.

use std::collections::VecDeque;

use ackclock_core::{ConfigError, Segment, Seq, Span, Time};
use ackclock_link::{Left, LinkView, Side};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dequeued::{AckKind, Count};
use super::regulator::{Flow, Law, WindowRegulator};
use super::{Advertiser, floor, law};
use crate::{FlowContext, Regulator, RegulatorConfig};

/// Advertises the window of the regulator `wrd`, but holds ACKs that would shrink the window until packets leave the
/// queue.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Method of counting packets in the air.
    pub(crate) count: Count,
    /// Whether an ACK that is released still counts as held when its own window is computed.
    pub(crate) reading: Reading,
    /// Number of ACKs that are released at a time.
    pub(crate) release: Release,
    /// Treatment of held ACKs when the queue holds no packet of the flow.
    pub(crate) empty: Empty,
    /// Safety timer: the oldest ACK is released after this long without a release; 0s: never.
    pub(crate) safety: Span,
    /// Whether the advertised window may exceed the buffer if a window of the buffer size leaves the link idle; a
    /// larger window risks drops.
    pub(crate) floor: bool,
    /// Minimum advertised window, packets; below 2 a receiver that delays ACKs can stall the sender.
    pub(crate) min_window: u32,
    /// Window scale to assume for flows whose handshake was not seen; without this key these flows are not regulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) assumed_scale: Option<u8>,
}

/// Whether an ACK that is released still counts as held when its own window is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reading {
    /// The released ACK does not count as held: the right edge is the data that has left the queue plus the buffer.
    Strict,
    /// The released ACK counts as held, as the source prints it: the right edge is one packet further.
    Printed,
}

/// Number of ACKs that are released at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Release {
    /// Releases the oldest ACK, then further ACKs as long as the window does not shrink.
    Fifo,
    /// Releases all held ACKs.
    All,
}

/// Treatment of held ACKs when the queue holds no packet of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Empty {
    /// Releases the held ACKs.
    Release,
    /// Keeps ACKs held while packets of the flow are in the air.
    Hold,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            count: Count::Exact,
            reading: Reading::Strict,
            release: Release::Fifo,
            empty: Empty::Release,
            safety: Span::from_secs(1),
            floor: false,
            min_window: 2,
            assumed_scale: None,
        }
    }
}

impl ackclock_core::Config for Config {
    fn check(&self) -> Result<(), ConfigError> {
        law::check(self.assumed_scale, self.min_window)
    }
}

impl RegulatorConfig for Config {
    fn needs_handshake(&self) -> bool {
        true
    }

    fn build(&self, _: FlowContext) -> Option<Box<dyn Regulator>> {
        let law = AckBuffer::new(self.clone());
        let regulator = WindowRegulator::new(law, self.count, self.min_window, self.assumed_scale);
        Some(Box::new(regulator.with_floor(self.floor)))
    }

    fn observes(&self, side: Side) -> Result<Left, &'static str> {
        match side {
            _ if self.floor => Err(floor::BLIND),
            Side::Network => Ok(Left::Estimated),
            Side::Mobile => {
                Err("it holds ACKs of data that has already left the queue, which only lengthens the RTT")
            }
        }
    }
}

/// Maximum number of held ACKs, which bounds the memory if a receiver acknowledges byte by byte.
const MOST_HELD: usize = 4096;

/// Holds ACKs that would shrink the window.
struct AckBuffer {
    held: VecDeque<Segment>,
    /// Arrival time of the oldest held ACK, or release time of the previous ACK if that time is later.
    waiting_since: Time,
    config: Config,
}

/// Event that may release held ACKs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    Ack,
    Departure,
}

impl AckBuffer {
    fn new(config: Config) -> Self {
        Self { held: VecDeque::new(), waiting_since: Time::ZERO, config }
    }

    /// Releases held ACKs as long as their windows are not smaller than the last advertised window
    /// (`window-regulator.md` section 4).
    fn release(&mut self, now: Time, flow: &mut Flow, reason: Reason) {
        while let Some(head) = self.held.front() {
            let edge = flow.advertiser.accounts.right_edge(head.ack, self.held.len() as u32 - 1);
            if flow.advertiser.would_shrink(head, edge) && !self.is_starving(&flow.advertiser) {
                return;
            }
            match self.config.release {
                Release::Fifo => self.release_head(now, flow, reason),
                Release::All => self.release_all(now, flow),
            }
        }
    }

    /// Whether to release all ACKs: the queue is empty, too many ACKs are held, or the minimum goodput raises the
    /// window above the buffer. ACKs held while the window exceeds the buffer would overflow the queue when released
    /// together.
    fn is_starving(&self, advertiser: &Advertiser) -> bool {
        let empty = advertiser.accounts.queue_is_empty();
        let full = self.held.len() > MOST_HELD || advertiser.exceeds_buffer();
        full || empty && (self.config.empty == Empty::Release || advertiser.accounts.air_is_empty())
    }

    fn release_head(&mut self, now: Time, flow: &mut Flow, reason: Reason) {
        let Some(ack) = self.held.pop_front() else { return };
        let printed = self.config.reading == Reading::Printed && reason == Reason::Departure;
        let overrun = if printed { flow.advertiser.accounts.payload() } else { 0 };
        let edge = flow.advertiser.accounts.right_edge(ack.ack, self.held.len() as u32);
        let edge = edge.map(|edge| self.left_to_the_next(&flow.advertiser, &ack, edge) + overrun);
        flow.send(now, ack, AckKind::Advance, edge);
        self.waiting_since = now;
    }

    /// Right edge for an ACK that is released while more ACKs are held: at most the edge of the last window. Without
    /// this limit a partially filled packet would permanently raise the window by a fraction of a packet, because the
    /// window never shrinks. The next ACK advertises the remaining bytes instead.
    fn left_to_the_next(&self, advertiser: &Advertiser, ack: &Segment, edge: Seq) -> Seq {
        let kept = ack.ack + advertiser.law.window();
        if self.held.is_empty() || edge.before(kept) { edge } else { kept }
    }
}

impl Law for AckBuffer {
    /// Holds an ACK that acknowledges new data; sends any other ACK at once, after all held ACKs.
    fn on_ack(&mut self, now: Time, flow: &mut Flow, ack: Segment, kind: AckKind, _: LinkView) {
        if kind == AckKind::Advance && ack.is_pure_ack() && flow.advertiser.regulates(&ack) {
            if self.held.is_empty() {
                self.waiting_since = now;
            }
            self.held.push_back(ack);
            self.release(now, flow, Reason::Ack);
            return;
        }
        self.release_all(now, flow);
        let edge = flow.advertiser.accounts.right_edge(ack.ack, 0);
        flow.send(now, ack, kind, edge);
    }

    fn on_room(&mut self, now: Time, flow: &mut Flow) {
        self.release(now, flow, Reason::Departure);
    }

    fn release_all(&mut self, now: Time, flow: &mut Flow) {
        while !self.held.is_empty() {
            self.release_head(now, flow, Reason::Ack);
        }
    }

    fn on_timeout(&mut self, now: Time, flow: &mut Flow) {
        self.release_head(now, flow, Reason::Ack);
    }

    fn deadline(&self) -> Option<Time> {
        let waits = !self.held.is_empty() && self.config.safety > Span::ZERO;
        waits.then(|| self.waiting_since + self.config.safety)
    }

    fn held(&self) -> usize {
        self.held.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window_regulator::bench::Bench;
    use ackclock_core::{Flags, FlowId};

    const NOTHING: [(u32, u32); 0] = [];

    fn bench(capacity: u32, config: Config) -> Bench {
        Bench::of(&config, capacity)
    }

    /// Buffer 8; packets 0..8 arrived, three of them departed and are known to the sender: window 3 + 8.
    fn loaded(config: Config) -> Bench {
        let mut bench = bench(8, config);
        bench.arrive_all(0..8);
        (0..3).for_each(|_| bench.depart());
        bench.ack(0);
        assert_eq!(bench.sent(), [(0, 11)]);
        bench
    }

    #[test]
    fn an_ack_that_would_make_the_window_smaller_waits_for_a_departure() {
        let mut bench = loaded(Config::default());
        bench.ack(1);
        bench.ack(2);
        assert_eq!((bench.sent(), bench.regulator.held(FlowId(0))), (NOTHING.to_vec(), 2));
        // Each departure moves the edge by one and releases one ACK: 4 + 8 = 1 + 11.
        bench.depart();
        assert_eq!(bench.sent(), [(1, 11)]);
        bench.depart();
        assert_eq!(bench.sent(), [(2, 11)]);
        // None is held now. One more departs, and the next ACK makes up for it at once.
        bench.depart();
        bench.ack(3);
        assert_eq!(bench.sent(), [(3, 11)]);
    }

    #[test]
    fn as_printed_a_departure_tells_an_edge_one_packet_further() {
        let mut bench = loaded(Config { reading: Reading::Printed, ..Config::default() });
        bench.ack(1);
        bench.depart();
        // 4 + 8 and one more.
        assert_eq!(bench.sent(), [(1, 12)]);
    }

    #[test]
    fn a_delayed_ack_waits_for_as_many_departures_as_it_covers() {
        let mut bench = loaded(Config::default());
        bench.ack(2);
        bench.depart();
        assert_eq!(bench.sent(), NOTHING);
        bench.depart();
        assert_eq!(bench.sent(), [(2, 11)]);
    }

    #[test]
    fn a_part_of_a_packet_lets_no_window_grow_while_more_is_held() {
        let mut bench = loaded(Config::default());
        let mut part = Bench::pure_ack(0);
        part.ack = Seq(500);
        bench.handle(part);
        bench.ack(2);
        bench.depart();
        // 12 - 0.5 would exceed 11 by half a packet, which no later ACK could take back.
        assert_eq!(bench.windows(), [11_000]);
        bench.depart();
        assert_eq!(bench.windows(), [11_000], "13 - 2");
    }

    #[test]
    fn where_one_may_go_all_may() {
        let mut bench = loaded(Config { release: Release::All, ..Config::default() });
        bench.ack(1);
        bench.ack(2);
        bench.depart();
        assert_eq!(bench.sent(), [(1, 11), (2, 10)]);
    }

    #[test]
    fn duplicates_take_held_acks_with_them_and_keep_the_window() {
        let mut bench = loaded(Config::default());
        bench.ack(1);
        bench.ack(2);
        bench.ack(2);
        bench.ack(2);
        assert_eq!(bench.sent(), [(1, 10), (2, 9), (2, 9), (2, 9)]);
    }

    #[test]
    fn nothing_is_held_when_the_queue_is_empty() {
        let mut bench = loaded(Config::default());
        bench.ack(1);
        bench.ack(2);
        (0..5).for_each(|_| bench.depart());
        // Two are released by departures; the last departure finds none held.
        assert_eq!(bench.sent(), [(1, 11), (2, 11)]);
        bench.ack(4);
        bench.ack(5);
        // Five more had left by then, and the sender learns of them as before: 8 + 8.
        assert_eq!(bench.sent(), [(4, 12), (5, 11)]);
    }

    #[test]
    fn as_printed_acks_are_held_until_the_air_is_empty_as_well() {
        let mut bench = loaded(Config { empty: Empty::Hold, ..Config::default() });
        (0..5).for_each(|_| bench.depart());
        bench.ack(1);
        assert_eq!(bench.sent(), [(1, 15)]);
        (2..8).for_each(|packets| bench.ack(packets));
        assert_eq!((bench.sent(), bench.regulator.held(FlowId(0))), (NOTHING.to_vec(), 6));
        bench.ack(8);
        // Otherwise the sender would wait forever: all held ACKs are released with the same right edge 8 + 8.
        let edges: Vec<_> = bench.sent().into_iter().map(|(ack, window)| ack + window).collect();
        assert_eq!((edges, bench.regulator.held(FlowId(0))), (vec![16; 7], 0));
    }

    #[test]
    fn a_source_that_sends_again_what_is_acknowledged_gets_its_acks() {
        let mut bench = loaded(Config::default());
        bench.ack(1);
        bench.arrive(4);
        assert_eq!(bench.sent(), NOTHING, "packet 4 is not acknowledged");
        bench.arrive(0);
        assert_eq!(bench.sent(), [(1, 10)]);
    }

    #[test]
    fn the_safety_timer_releases_one_at_a_time() {
        let mut bench = loaded(Config::default());
        bench.ack(1);
        bench.ack(2);
        let second = Time::ZERO + Span::from_secs(1);
        assert_eq!(bench.regulator.poll_timeout(), Some(second));
        bench.now = Time::ZERO + Span::from_millis(999);
        bench.expire();
        assert_eq!(bench.sent(), NOTHING, "early calls change nothing");
        bench.now = second;
        bench.expire();
        bench.expire();
        assert_eq!(bench.sent(), [(1, 10)]);
        assert_eq!(bench.regulator.poll_timeout(), Some(second + Span::from_secs(1)));
        let mut never = loaded(Config { safety: Span::ZERO, ..Config::default() });
        never.ack(1);
        assert_eq!((never.regulator.held(FlowId(0)), never.regulator.poll_timeout()), (1, None));
    }

    #[test]
    fn the_safety_timer_runs_from_the_oldest_held_ack() {
        let mut bench = loaded(Config::default());
        bench.ack(1);
        bench.now = Time::ZERO + Span::from_millis(500);
        bench.ack(2);
        assert_eq!(bench.regulator.held(FlowId(0)), 2);
        assert_eq!(bench.regulator.poll_timeout(), Some(Time::ZERO + Span::from_secs(1)));
    }

    #[test]
    fn a_packet_that_the_air_lost_takes_an_ack_with_it_as_one_that_departs() {
        let mut bench = loaded(Config::default());
        bench.ack(1);
        bench.lose();
        // 4 + 8 = 1 + 11.
        assert_eq!(bench.sent(), [(1, 11)]);
    }

    #[test]
    fn counted_as_printed_the_acks_behind_one_widen_its_window() {
        let mut bench = bench(8, Config { count: Count::Printed, ..Config::default() });
        bench.arrive_all(0..8);
        (0..3).for_each(|_| bench.depart());
        bench.ack(0);
        bench.ack(1);
        bench.ack(2);
        // Each ACK reduces `Y` = 3 by one: the first goes with 2 + 8, the second would with 1 + 8, and then with 0 + 8
        // + `Ba` of 1.
        assert_eq!((bench.sent(), bench.regulator.held(FlowId(0))), (vec![(0, 10)], 2));
        bench.depart();
        // 1 + 8 + 1 for the first of the two; 1 + 8 would be smaller than that.
        assert_eq!((bench.sent(), bench.regulator.held(FlowId(0))), (vec![(1, 10)], 1));
    }

    #[test]
    fn a_receiver_that_acknowledges_byte_by_byte_has_so_many_acks_held_and_no_more() {
        let mut bench = loaded(Config::default());
        for byte in 1..=MOST_HELD as u32 + 10 {
            let mut ack = Bench::pure_ack(0);
            ack.ack = Seq(byte);
            bench.handle(ack);
        }
        assert_eq!((bench.sent().len(), bench.regulator.held(FlowId(0))), (10, MOST_HELD));
    }

    #[test]
    fn what_cannot_be_regulated_passes() {
        let mut bench = loaded(Config::default());
        let mut unscaled = Bench::pure_ack(1);
        unscaled.set_scale(None);
        bench.handle(unscaled);
        assert_eq!(bench.sent(), [(1, 60)]);
        let mut closed = Bench::pure_ack(2);
        closed.window = 0;
        bench.handle(closed);
        assert_eq!(bench.sent(), [(2, 0)]);
        let mut fin = Bench::pure_ack(3);
        fin.flags |= Flags::FIN;
        bench.handle(fin);
        assert_eq!(bench.sent(), [(3, 8)]);
        assert_eq!(bench.regulator.held(FlowId(0)), 0);
    }

    #[test]
    fn closing_gives_everything_back_in_order() {
        let mut bench = loaded(Config::default());
        bench.ack(1);
        bench.ack(2);
        bench.regulator.close(bench.now, FlowId(0));
        assert_eq!(bench.sent(), [(1, 10), (2, 9)]);
    }
}
