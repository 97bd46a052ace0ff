//! # Snoop
//!
//! ## Source
//! Source: the base-station agent of Balakrishnan, Seshan, Amir and Katz, "Improving TCP/IP performance over wireless
//! networks", MobiCom 1995, as described by L02. The rules are numbered in `split-tcp-snoop.md` section 2.
//!
//! ## What it does
//! The snoop agent keeps copies of downlink data until the mobile acknowledges the data. After a duplicate ACK or a
//! local timeout, the agent retransmits packets lost on the radio from its copies, at the front of the queue. The agent
//! discards the duplicate ACKs, so the source only sees losses caused by congestion.
//!
//! ## Differences from the source
//! The round-trip time of the radio hop starts at a packet's departure from the queue, not at its arrival, and
//! therefore excludes queueing delay. A packet that the queue refused or dropped is a congestion loss, and its
//! duplicate ACKs reach the source. Instead of marking copies as in the source, the agent keeps no copy of packets that
//! the queue dropped or the source retransmitted. Packets that arrive during a local repair increase the number of
//! expected duplicate ACKs. Duplicate ACKs triggered by a retransmission after a timeout do not trigger another
//! retransmission, and neither do duplicate ACKs that arrive before the packet asked for can have reached the mobile.
//! After the last allowed local retransmission, all copies of the flow are freed.
//!
//! With `nacks`, the agent also requests uplink data that the radio lost. A request is an ACK derived from the server's
//! last ACK, with SACK blocks for the data received. A request is sent at once for a new gap, and repeated while the
//! gap stays open. The first SACK block of a request begins at the request's own ACK number. A sender with `nacks`
//! recognises the request by this block, and retransmits without reducing its window. Senders without `nacks` treat the
//! request as a duplicate ACK.
//!
//! The ACK that ends a repair still reports further holes to a source with SACK, and the source treats these holes as
//! losses. If several packets of a window are lost, a source with SACK therefore halves its window.
//!
//! ## Validation
//! Unit tests (below) check each numbered rule. At 1 % of independent loss, Reno never halves its window
//! (`crates/ackclock-scenario/tests/snoop.rs`). L02 gives no numbers to compare with.

mod cache;
mod uplink;

use std::collections::VecDeque;

use ackclock_core::{ConfigError, Flags, FlowId, RoundTrip, Segment, Seq, Span, Time};
use ackclock_link::{Cause, LinkView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FlowContext, Output, Place, Regulator, RegulatorConfig, Verdict};
use cache::{Cache, Cached};
use uplink::Uplink;

/// Retransmits data lost on the radio from copies at the edge, and hides these losses from the source.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Maximum number of packets of a flow with a copy. Once a flow has `cache` copies, no further packets of the flow
    /// are copied.
    pub(crate) cache: u32,
    /// Maximum number of local retransmissions of a packet before its loss is left to the source.
    pub(crate) retransmissions: u32,
    /// Minimum local retransmission timeout of the agent.
    pub(crate) min_timeout: Span,
    /// Whether duplicate ACKs count as reordering instead of loss, for one round-trip time of the radio hop. Set
    /// `reordering` for links that retransmit lost packets themselves.
    pub(crate) reordering: bool,
    /// Whether mobiles are asked to retransmit uplink data lost on the radio. Set `nacks` only for mobiles whose
    /// senders have `nacks = "on"`, because all other senders treat a request as a duplicate ACK.
    pub(crate) nacks: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cache: 1000,
            retransmissions: 10,
            min_timeout: Span::from_millis(40),
            reordering: false,
            nacks: false,
        }
    }
}

impl ackclock_core::Config for Config {
    fn check(&self) -> Result<(), ConfigError> {
        if !(1..=LARGEST_CACHE).contains(&self.cache) {
            return Err(ConfigError::new(
                "cache",
                format!("{} is not 1 to {LARGEST_CACHE} packets", self.cache),
            ));
        }
        if !(1..=100).contains(&self.retransmissions) {
            return Err(ConfigError::new(
                "retransmissions",
                format!("{} is not 1 to 100", self.retransmissions),
            ));
        }
        if !(Span::from_millis(1)..=LONGEST_TIMEOUT).contains(&self.min_timeout) {
            let message = format!("{} is not 1ms to {LONGEST_TIMEOUT}", self.min_timeout);
            return Err(ConfigError::new("min_timeout", message));
        }
        Ok(())
    }
}

impl RegulatorConfig for Config {
    fn build(&self, _: FlowContext) -> Option<Box<dyn Regulator>> {
        Some(Box::new(Snoop::new(self.clone())))
    }

    fn regulates_uploads(&self) -> bool {
        self.nacks
    }

    fn regulates_uplinks(&self) -> Result<(), &'static str> {
        Err(
            "`snoop` keeps copies of what the mobile has itself; its `nacks` in `edge.regulator` repair uploads",
        )
    }
}

const LARGEST_CACHE: u32 = 100_000;
/// Initial local timeout. `LONGEST_TIMEOUT` also limits the backoff of the local timeout, unless the timeout without
/// backoff is longer.
const LONGEST_TIMEOUT: Span = Span::from_secs(1);
/// Time without progress after which the copies of a flow are freed.
const FORGOTTEN: Span = Span::from_secs(60);

/// Snoop agent of one flow.
struct Snoop {
    config: Config,
    cache: Cache,
    /// Sequence number at the end of the data that arrived from the source.
    highest: Option<Seq>,
    /// Last ACK from the mobile.
    last: Option<Segment>,
    repair: Option<Repair>,
    hop: Hop,
    uplink: Uplink,
    output: VecDeque<Output>,
}

/// State of the local repair of one lost packet.
#[derive(Clone, Copy, Debug)]
struct Repair {
    /// Sequence number of the missing packet's first byte.
    seq: Seq,
    /// Number of duplicate ACKs still expected, triggered by packets after the missing packet.
    expected: u32,
}

/// Round-trip time of the radio hop.
#[derive(Clone, Copy, Debug, Default)]
struct Hop {
    /// `None` before the first sample.
    smoothed: Option<RoundTrip>,
    /// Minimum of all samples; zero before the first.
    least: Span,
}

impl Hop {
    fn sample(&mut self, rtt: Span) {
        self.least = self.smoothed.map_or(rtt, |_| self.least.min(rtt));
        self.smoothed = Some(self.smoothed.map_or_else(|| RoundTrip::first(rtt), |known| known.after(rtt)));
    }

    /// Smoothed round-trip time of the radio hop.
    fn mean(&self) -> Option<Span> {
        self.smoothed.map(|known| known.mean)
    }

    /// Whether an ACK that arrives at `now` was sent before the mobile could receive a packet.
    fn precedes(&self, now: Time, packet: &Cached) -> bool {
        packet.departed.is_none_or(|departed| now < departed + self.least)
    }

    /// Local timeout of a packet that was retransmitted `retransmissions` times.
    fn timeout(&self, least: Span, retransmissions: u32) -> Span {
        let Some(RoundTrip { mean, deviation }) = self.smoothed else { return LONGEST_TIMEOUT };
        // The local timeout is at least twice the mean round-trip time of the radio hop. Without a minimum of twice the
        // mean, a hop of constant delay would time out at the instant of the ACK.
        let timeout = (mean + deviation * 4).max(mean * 2).max(least);
        (timeout * (1 << retransmissions.min(10))).min(timeout.max(LONGEST_TIMEOUT))
    }
}

impl Snoop {
    fn new(config: Config) -> Self {
        Self {
            config,
            cache: Cache::default(),
            highest: None,
            last: None,
            repair: None,
            hop: Hop::default(),
            uplink: Uplink::default(),
            output: VecDeque::new(),
        }
    }

    /// Resets all state of the flow for a new connection.
    fn forget(&mut self) {
        self.give_up();
        (self.highest, self.last, self.repair) = (None, None, None);
    }

    fn give_up(&mut self) {
        self.output.extend(self.cache.give_up().map(Output::Release));
    }

    /// Leaves the loss of this packet to the source. Returns whether a copy had been kept.
    fn leave_to_source(&mut self, seq: Seq) -> bool {
        let copy = self.cache.remove(seq);
        self.output.extend(copy.map(Output::Release));
        copy.is_some()
    }

    /// Handles a packet without a copy (data rules 1 and 3). Data below the highest byte was lost on the wired path.
    /// Duplicate ACKs for lost data of the wired path must reach the source, so no copy is kept.
    fn take(&mut self, segment: &Segment) -> Verdict {
        if self.highest.is_some_and(|highest| segment.seq.before(highest)) {
            return Verdict::Forward;
        }
        self.highest = Some(segment.end());
        if let Some(repair) = &mut self.repair {
            repair.expected += 1;
        }
        if self.cache.len() >= self.config.cache as usize {
            return Verdict::Forward;
        }
        self.cache.push(*segment);
        Verdict::ForwardKeep
    }

    /// Handles an ACK of new data (ACK rule 1).
    fn advance(&mut self, now: Time, ack: Seq) {
        let last = self.last.map(|last| last.ack);
        let (acknowledged, rtt) = self.cache.acknowledge(now, last, ack);
        self.output.extend(acknowledged.map(Output::Release));
        if let Some(rtt) = rtt {
            self.hop.sample(rtt);
        }
        self.repair = None;
    }

    /// Handles a duplicate ACK (ACK rule 3).
    fn on_duplicate(&mut self, now: Time, ack: Segment) -> Output {
        let Some(missing) = self.cache.get_mut(ack.ack) else { return Output::ToSender(ack) };
        match &mut self.repair {
            // The mobile has received something twice: a packet that it cannot have received yet is not missing. Its
            // retransmission would be received twice as well, and so on.
            None if missing.retransmissions == 0 && self.hop.precedes(now, missing) => {}
            Some(repair) if repair.seq == ack.ack => match repair.expected.checked_sub(1) {
                Some(expected) => repair.expected = expected,
                None => return Output::ToSender(ack),
            },
            _ => {
                // A retransmission after the timeout is already in transit. A second retransmission would trigger a
                // duplicate ACK for the next packet, which would trigger a further retransmission, and so on.
                if missing.retransmissions == 0 {
                    missing.asked = Some(now);
                    if !self.config.reordering {
                        self.send_again(ack.ack);
                    }
                }
                // The arriving duplicate ACK is one of the expected duplicates.
                let expected = self.cache.behind(ack.ack).saturating_sub(1);
                self.repair = Some(Repair { seq: ack.ack, expected });
            }
        }
        Output::Discard(ack)
    }

    /// Retransmits the packet that starts with `seq`. After `retransmissions` attempts, the loss of the packet is left
    /// to the source.
    fn send_again(&mut self, seq: Seq) {
        let Some(missing) = self.cache.get_mut(seq) else { return };
        if missing.retransmissions >= self.config.retransmissions {
            return self.give_up();
        }
        missing.retransmissions += 1;
        (missing.departed, missing.asked) = (None, None);
        self.output.push_back(Output::ToReceiver { segment: missing.segment, place: Place::Front });
    }

    /// Returns whether an ACK repeats the last ACK while data is in flight (RFC 5681 section 2), with an equal window
    /// or with SACK blocks.
    fn repeats(&self, ack: &Segment, last: &Segment) -> bool {
        let outstanding = self.highest.is_some_and(|highest| highest.after(ack.ack));
        ack.is_pure_ack() && outstanding && (ack.window == last.window || !ack.sack().is_empty())
    }

    /// Returns whether the next packet that the mobile misses is the oldest packet with a copy.
    fn is_asked_for(&self, oldest: &Cached) -> bool {
        self.last.is_none_or(|last| last.ack == oldest.segment.seq)
    }

    /// Time at which the oldest copy is retransmitted or all copies are freed.
    fn copy_due(&self) -> Option<Time> {
        let oldest = self.cache.oldest()?;
        if !self.is_asked_for(oldest) {
            return Some(oldest.departed? + FORGOTTEN);
        }
        match oldest.asked {
            Some(asked) => Some(asked + self.hop.mean().unwrap_or(LONGEST_TIMEOUT)),
            None => {
                Some(oldest.departed? + self.hop.timeout(self.config.min_timeout, oldest.retransmissions))
            }
        }
    }

    /// Time at which the mobile is asked again for missing uplink data.
    fn uplink_due(&self) -> Option<Time> {
        self.uplink.due(self.config.min_timeout, self.config.retransmissions)
    }

    /// Processes uplink data, or a SYN in transit to the server.
    fn take_upload(&mut self, now: Time, segment: &Segment) {
        if segment.flags.intersects(Flags::SYN) {
            return self.uplink.begin(segment);
        }
        let request = self.uplink.on_data(now, segment);
        self.ask(request);
    }

    fn ask(&mut self, request: Option<Segment>) {
        let place = Place::Front;
        self.output.extend(request.map(|segment| Output::ToReceiver { segment, place }));
    }

    fn departed(&mut self, now: Time, segment: &Segment) {
        if let Some(cached) = self.cache.get_mut(segment.seq) {
            cached.departed = Some(now);
        }
    }
}

impl Regulator for Snoop {
    fn on_data(&mut self, _: Time, segment: &Segment, _: LinkView) -> Verdict {
        if segment.flags.intersects(Flags::SYN | Flags::RST) {
            self.forget();
            return Verdict::Forward;
        }
        if !segment.has_data() {
            self.uplink.on_ack(segment);
            return Verdict::Forward;
        }
        // The sender retransmitted data that the mobile already has, because the sender missed the ACK (data rule 2).
        // The mobile's last ACK is repeated.
        if let Some(last) =
            self.last.filter(|last| last.is_pure_ack() && segment.end().at_or_before(last.ack))
        {
            self.output.push_back(Output::ToSender(last.made()));
            return Verdict::Drop;
        }
        if self.leave_to_source(segment.seq) { Verdict::Forward } else { self.take(segment) }
    }

    fn on_copy_refused(&mut self, segment: &Segment) {
        self.cache.remove(segment.seq);
    }

    fn on_dropped(&mut self, now: Time, segment: &Segment, cause: Cause, _: LinkView) {
        match cause {
            Cause::Full | Cause::Policy | Cause::Aged => {
                self.leave_to_source(segment.seq);
            }
            // A packet lost on the radio has departed from the queue, and no later event reports its loss to the agent.
            Cause::Medium | Cause::Outage | Cause::Handover | Cause::Filtered => self.departed(now, segment),
        }
    }

    fn on_departed(&mut self, now: Time, segment: &Segment, _: LinkView) {
        self.departed(now, segment);
    }

    fn handle_ack(&mut self, now: Time, ack: Segment, _: LinkView) {
        if self.config.nacks && ack.has_data() {
            self.take_upload(now, &ack);
        }
        let output = match self.last {
            _ if ack.flags.intersects(Flags::SYN | Flags::RST) => Output::ToSender(ack),
            // The ACK is older than the mobile's last ACK and is discarded (ACK rule 2).
            Some(last) if ack.ack.before(last.ack) && ack.is_pure_ack() => Output::Discard(ack),
            Some(last) if ack.ack == last.ack && self.repeats(&ack, &last) => self.on_duplicate(now, ack),
            last => {
                if last.is_none_or(|last| ack.ack.after(last.ack)) {
                    self.advance(now, ack.ack);
                }
                if last.is_none_or(|last| !ack.ack.before(last.ack)) {
                    self.last = Some(ack);
                }
                Output::ToSender(ack)
            }
        };
        self.output.push_back(output);
    }

    fn handle_timeout(&mut self, now: Time, _: LinkView) {
        if self.uplink_due().is_some_and(|deadline| deadline <= now) {
            let request = self.uplink.ask(now);
            self.ask(request);
        }
        if self.copy_due().is_none_or(|deadline| deadline > now) {
            return;
        }
        match self.cache.oldest().filter(|oldest| self.is_asked_for(oldest)).map(|oldest| oldest.segment.seq)
        {
            Some(seq) => self.send_again(seq),
            None => self.give_up(),
        }
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        self.output.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        [self.copy_due(), self.uplink_due()].into_iter().flatten().min()
    }

    fn close(&mut self, _: Time, _: FlowId) {
        self.forget();
    }

    fn kept(&self, _: FlowId) -> usize {
        self.cache.len()
    }
}

#[cfg(test)]
mod tests;
