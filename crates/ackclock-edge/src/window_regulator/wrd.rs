//! # Window Regulator, dynamic (WRD)
//!
//! ## Source
//! Source: CR04; described in `window-regulator.md` section 3.
//!
//! ## What it does
//! Every ACK advertises a window of `Wr = Y + B`, where `Y` packets have left the queue and are not acknowledged yet.
//! The right edge is therefore the data that has left the queue plus `B` packets. New data in full packets cannot
//! overflow the queue. The queue runs empty only if more than `B` packets leave it between two ACKs.
//!
//! ## Differences from the source
//! `Y` is derived from sequence numbers (`dequeued.rs`); `count = "printed"` counts packets instead. The window is in
//! bytes, and a packet counts as the largest packet seen. Each smaller or retransmitted packet also takes one place in
//! the queue. The regulator learns of small and retransmitted packets only when they arrive: if several such packets
//! arrive together, the last one may be dropped. A duplicate ACK keeps the window of the ACK that it repeats. The
//! window is at least two packets (`min_window`): otherwise a receiver that delays ACKs would stall the sender.
//! `law.rs` describes the window field of real headers.
//!
//! If the link layer keeps a packet until the receiver has acknowledged it, the packet occupies one of the `B` buffer
//! places until the acknowledgement.
//!
//! The option `floor`, off by default, is not part of the source (`floor.rs`).
//!
//! ## Validation
//! The unit tests in this file compare sequences of windows with sequences calculated by hand. `tests/windows.rs`
//! checks the right edge under random traffic, and that no new data is dropped over any bearer.
//! `crates/ackclock-scenario/tests/windows.rs` checks the ordering of CR04, and that no packet is dropped if the rate
//! changes but never drops to zero.

use ackclock_core::ConfigError;
use ackclock_link::{Left, Side};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dequeued::Count;
use super::regulator::{Law, WindowRegulator};
use super::{Advertiser, floor, law};
use crate::{Allowance, FlowContext, Regulator, RegulatorConfig};

/// Advertises a window of the buffer plus the packets in the air.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Method of counting packets in the air.
    pub(crate) count: Count,
    /// Whether the advertised window may exceed the buffer if a window of the buffer size leaves the link idle; a
    /// larger window risks drops.
    pub(crate) floor: bool,
    /// Minimum advertised window, packets; below 2 a receiver that delays ACKs can stall the sender.
    pub(crate) min_window: u32,
    /// Window scale to assume for flows whose handshake was not seen; without this key these flows are not regulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) assumed_scale: Option<u8>,
}

impl Default for Config {
    fn default() -> Self {
        Self { count: Count::Exact, floor: false, min_window: 2, assumed_scale: None }
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
        let regulator = WindowRegulator::new(Dynamic, self.count, self.min_window, self.assumed_scale);
        Some(Box::new(regulator.with_floor(self.floor)))
    }

    fn allows(&self) -> bool {
        self.count == Count::Exact
    }

    fn observes(&self, _: Side) -> Result<Left, &'static str> {
        if self.floor { Err(floor::BLIND) } else { Ok(Left::Estimated) }
    }
}

/// Sends every ACK at once; the ACK's right edge is the end of the data that has left the queue, plus the buffer size.
struct Dynamic;

impl Law for Dynamic {
    fn allowance(&self, advertiser: &Advertiser) -> Option<Allowance> {
        advertiser.beyond_left(advertiser.accounts.allowance()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window_regulator::bench::Bench;
    use ackclock_core::Flags;

    fn bench(capacity: u32, config: Config) -> Bench {
        Bench::of(&config, capacity)
    }

    /// The advertised right edges, packets.
    fn edges(bench: &mut Bench) -> Vec<u32> {
        bench.sent().into_iter().map(|(ack, window)| ack + window).collect()
    }

    #[test]
    fn the_window_is_what_is_on_the_air_and_the_buffer() {
        let mut bench = bench(5, Config::default());
        bench.arrive_all(0..5);
        bench.ack(0);
        assert_eq!(bench.sent(), [(0, 5)]);
        bench.depart();
        bench.depart();
        bench.depart();
        bench.ack(1);
        // Two in the air: 1 + (2 + 5) = 3 + 5.
        assert_eq!(bench.sent(), [(1, 7)]);
    }

    #[test]
    fn a_delayed_ack_takes_off_what_it_covers() {
        let count = |count| {
            let mut bench = bench(5, Config { count, ..Config::default() });
            bench.arrive_all(0..6);
            (0..4).for_each(|_| bench.depart());
            bench.ack(2);
            bench.ack(4);
            edges(&mut bench)
        };
        assert_eq!(count(Count::Exact), [9, 9], "4 + 5");
        // With the printed count the air never empties: 4 - 2 = 2 packets too many.
        assert_eq!(count(Count::Printed), [10, 11]);
    }

    #[test]
    fn duplicates_and_packets_lost_on_the_air_leave_nothing_behind() {
        let mut bench = bench(5, Config::default());
        bench.arrive_all(0..5);
        bench.ack(0);
        bench.lose();
        (0..3).for_each(|_| bench.depart());
        for _ in 0..3 {
            bench.ack(0);
        }
        // The window of the duplicates equals that of the ACK they repeat.
        assert_eq!(bench.sent(), [(0, 5); 4]);
        bench.arrive_all(0..1);
        bench.depart();
        bench.depart();
        bench.ack(5);
        // All of 0..5 has left the queue and is acknowledged: nothing is in the air.
        assert_eq!(bench.sent(), [(5, 5)]);
    }

    #[test]
    fn a_spurious_timeout_leaves_nothing_behind() {
        // Six packets are in the air or in the queue when a spurious timeout makes the sender go back to the first.
        let after = |count| {
            let mut bench = bench(8, Config { count, ..Config::default() });
            bench.arrive_all(0..6);
            bench.ack(0);
            (0..3).for_each(|_| bench.depart());
            bench.arrive_all(0..3);
            bench.ack(1);
            (0..3).for_each(|_| bench.depart());
            // ACKs of the originals, and one for all three duplicate arrivals.
            (2..=6).for_each(|packets| bench.ack(packets));
            (0..3).for_each(|_| bench.depart());
            bench.ack(6);
            bench.arrive_all(6..7);
            bench.depart();
            bench.ack(7);
            bench.sent().pop()
        };
        assert_eq!(after(Count::Exact), Some((7, 8)));
        // Ten packets left and eight ACKs arrived: `Y` stays two too high.
        assert_eq!(after(Count::Printed), Some((7, 10)));
    }

    #[test]
    fn packets_that_wait_to_be_sent_again_take_room() {
        let mut bench = bench(5, Config::default());
        bench.arrive_all(0..4);
        bench.ack(0);
        bench.arrive_all(0..2);
        bench.depart();
        bench.ack(1);
        // 1 + 5 - 2, the rest of the 5 that were advertised.
        assert_eq!(edges(&mut bench), [5, 5]);
        (0..3).for_each(|_| bench.depart());
        bench.ack(4);
        assert_eq!(edges(&mut bench), [7], "4 + 5 - 2");
        bench.depart();
        bench.depart();
        bench.ack(4);
        assert_eq!(edges(&mut bench), [9], "no duplicate, as nothing is in flight");
    }

    #[test]
    fn small_packets_take_a_place_each() {
        let mut bench = bench(5, Config::default());
        bench.arrive_all(0..2);
        bench.arrive_small(2, 2);
        bench.ack(0);
        // Packets of 500 bytes; they end at 2.5 and 3, and one place of five is free.
        assert_eq!(edges(&mut bench), [4]);
        bench.depart();
        bench.depart();
        bench.ack(2);
        // 3 and three places; counting only bytes it would be 2 + 5.
        assert_eq!(edges(&mut bench), [6]);
    }

    #[test]
    fn a_refused_packet_has_not_left_the_queue() {
        let mut bench = bench(2, Config::default());
        bench.arrive_all(0..3);
        assert!(!bench.arrive(3));
        bench.ack(0);
        bench.depart();
        bench.ack(1);
        assert_eq!(edges(&mut bench), [2, 3]);
    }

    #[test]
    fn data_of_the_mobile_tells_the_edge_and_control_passes() {
        let mut bench = bench(5, Config::default());
        bench.arrive_all(0..2);
        let mut reply = Bench::pure_ack(0);
        reply.payload = 100;
        bench.handle(reply);
        reply.flags |= Flags::SYN;
        bench.handle(reply);
        assert_eq!(bench.sent(), [(0, 5), (0, 60)]);
    }
}
