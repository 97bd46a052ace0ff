//! # Window Regulator, static (WRS)
//!
//! ## Source
//! Source: CR04; described in `window-regulator.md` section 2.
//!
//! ## What it does
//! Every ACK advertises a window of the buffer size, `Wr = B`. New data never overflows the queue, whatever the radio
//! does. The queue runs empty if `B` or more packets of the flow are outside the queue: the flow achieves at most `B`
//! packets per round trip.
//!
//! ## Differences from the source
//! The window is in bytes, `B` times the largest packet seen; a sender of smaller packets can have more than `B`
//! packets in the queue. The window is at least two packets (`min_window`): otherwise a receiver that delays ACKs would
//! stall the sender. `law.rs` describes the window field of real headers.
//!
//! If the link layer keeps a packet until the receiver has acknowledged it, packets already acknowledged by TCP may
//! still occupy the buffer. In this case the window is `B` less the packets that TCP has acknowledged and the link
//! layer still keeps.
//!
//! The option `floor`, off by default, is not part of the source (`floor.rs`).
//!
//! ## Validation
//! The unit tests in this file compare windows with windows calculated by hand.
//! `crates/ackclock-scenario/tests/windows.rs` checks a throughput of one buffer per round trip, and that no packet is
//! dropped if the rate changes but never drops to zero. `tests/windows.rs` checks that no new data is dropped over any
//! bearer.

use ackclock_core::{ConfigError, Segment, Seq};
use ackclock_link::{Departures, Left, LinkView, Side};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dequeued::Count;
use super::regulator::{Law, WindowRegulator};
use super::{Advertiser, floor, law};
use crate::{Allowance, FlowContext, Regulator, RegulatorConfig};

/// Advertises a window as large as the buffer.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
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
        Self { floor: false, min_window: 2, assumed_scale: None }
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
        let regulator = WindowRegulator::new(Static, Count::Exact, self.min_window, self.assumed_scale);
        Some(Box::new(regulator.with_floor(self.floor)))
    }

    fn departures(&self) -> Departures {
        if self.floor { Departures::Watched } else { Departures::Freed }
    }

    fn allows(&self) -> bool {
        true
    }

    fn observes(&self, _: Side) -> Result<Left, &'static str> {
        if self.floor { Err(floor::BLIND) } else { Ok(Left::Estimated) }
    }
}

/// Sends every ACK at once with a window of the buffer size.
struct Static;

impl Law for Static {
    const FOLLOWS_QUEUE: bool = false;

    fn edge(&self, advertiser: &Advertiser, ack: &Segment, view: LinkView) -> Option<Seq> {
        advertiser.accounts.static_edge(ack.ack, view)
    }

    fn allowance(&self, advertiser: &Advertiser) -> Option<Allowance> {
        Some(advertiser.beyond_ack(advertiser.accounts.allowance()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window_regulator::bench::Bench;

    fn bench(capacity: u32) -> Bench {
        Bench::of(&Config::default(), capacity)
    }

    #[test]
    fn every_ack_carries_the_buffer() {
        let mut bench = bench(5);
        bench.arrive_all(0..5);
        bench.ack(0);
        bench.depart();
        bench.ack(1);
        bench.ack(1);
        bench.ack(3);
        assert_eq!(bench.sent(), [(0, 5), (1, 5), (1, 5), (3, 5)]);
    }

    #[test]
    fn a_buffer_of_one_packet_leaves_room_for_two() {
        let mut bench = bench(1);
        bench.arrive_all(0..1);
        bench.ack(0);
        assert_eq!(bench.sent(), [(0, 2)]);
    }
}
