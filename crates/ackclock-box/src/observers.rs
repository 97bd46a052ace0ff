//! Estimates rate, queueing delay and allowance from the kernel's records. [`Allowances`] computes the allowance by the
//! same code as in simulations.
//!
//! A kernel record contains the sums of one connection. This module converts the kernel record to the [`Record`] that
//! the estimators read.

use std::collections::BTreeMap;

use ackclock_core::{ConfigError, Flags, FlowId, Segment, Seq, Size, Span, Time, Timestamps};
use ackclock_edge::Allowances;
use ackclock_link::{Base, Side};
use ackclock_observe::{ObservedConfig, Record as Sums};
use serde_json::Value;

use crate::maps::{Allowance, Record};

/// Maximum number of observed connections of a subscriber, so that one peer cannot exhaust the memory.
pub const MOST_FLOWS: usize = 1024;
/// Time without data after which a connection is forgotten.
pub(crate) const QUIET: Span = Span::from_secs(10);
/// Time without data after which a connection is ignored in computing the common allowance.
pub(crate) const ACTIVE: Span = Span::from_secs(2);
/// Minimum number of loop samples of a subscriber before its windows are lowered; fewer samples give poor estimates.
const LEAST_SAMPLES: u64 = 3;
const HEADER: u16 = 52;
/// Largest window that TCP can advertise, bytes.
const LARGEST: u32 = 1 << 30;

struct Seen {
    sums: Sums,
    last: Time,
}

/// Observer of one subscriber's connections.
pub struct Observer {
    allowances: Allowances,
    /// Connections by the kernel's number. The kernel's numbers only grow, so the estimators get small numbers instead.
    flows: BTreeMap<u32, Seen>,
    /// Small numbers of forgotten connections.
    free: Vec<u32>,
    /// Bytes sent to the subscriber outside the observed connections.
    others: u64,
}

impl Observer {
    /// Creates an observer without connections. `observed` configures how the queue is observed. All flows of the
    /// subscriber share `buffer`.
    ///
    /// # Errors
    /// Fails if a box cannot use this regulator or this buffer.
    pub fn new(regulator: &Value, observed: &ObservedConfig, buffer: Size) -> Result<Self, ConfigError> {
        let allowances = Allowances::new(regulator, observed, buffer)?;
        Ok(Self { allowances, flows: BTreeMap::new(), free: Vec::new(), others: 0 })
    }

    /// Whether a connection is observed.
    pub fn knows(&self, flow: u32) -> bool {
        self.flows.contains_key(&flow)
    }

    /// Updates the estimates with a record. Returns the number of packets that left the queue according to this record,
    /// and their queueing delay, if a sample of the last second shows it. Connections beyond the maximum are ignored.
    pub fn learn(&mut self, record: &Record) -> Option<(Span, u32)> {
        let at = Time::from_nanos(record.at_ns);
        if self.flows.len() >= MOST_FLOWS && !self.knows(record.flow) {
            return None;
        }
        if record.kind == Record::DATA {
            self.others = record.others;
        }
        let others = self.others;
        let (free, unused) = (&mut self.free, self.flows.len() as u32);
        let seen = self.flows.entry(record.flow).or_insert_with(|| {
            let flow = FlowId(free.pop().unwrap_or(unused));
            Seen { sums: Sums::new(flow), last: at }
        });
        let before = seen.sums;
        (seen.sums.at, seen.sums.others) = (at, others);
        match record.kind {
            Record::OPENED => on_opened(&mut seen.sums, record),
            Record::ACK => on_ack(&mut seen.sums, record),
            _ => {
                if record.passed > before.passed.bytes || before.passed.newest.is_none() {
                    on_data(&mut seen.sums, record);
                }
                seen.last = at;
            }
        }
        seen.sums.passed.repeated = record.repeated.into();
        self.allowances.on_record(&seen.sums);
        let observer = self.allowances.observer();
        let packets = departed(observer.side(), &before, &seen.sums);
        Some((observer.queueing_delay(at, seen.sums.flow)?, packets))
    }

    /// Forgets connections that were quiet for ten seconds.
    pub fn forget_quiet(&mut self, now: Time) {
        let (allowances, free) = (&mut self.allowances, &mut self.free);
        self.flows.retain(|_, seen| {
            let stays = now.since(seen.last) <= QUIET;
            if !stays {
                allowances.forget(now, seen.sums.flow);
                free.push(seen.sums.flow.0);
            }
            stays
        });
    }

    /// Returns the common allowance of all servers, with `act` 0: the largest allowance of an active connection. Returns `None` while
    /// no allowance is known or the loop has fewer than three samples; an earlier allowance then stays in force.
    pub fn allowed(&mut self, now: Time) -> Option<Allowance> {
        // All connections belong to the observer's user 0, as connection 0 does.
        if self.allowances.observer().samples(FlowId(0)) < LEAST_SAMPLES {
            return None;
        }
        let active = self.flows.values().filter(|seen| now.since(seen.last) < ACTIVE);
        let allowances = &mut self.allowances;
        let allowed = active.filter_map(|seen| allowances.allowance(now, seen.sums.flow));
        let most = allowed.max_by_key(|allowance| allowance.bytes)?;
        Some(Allowance {
            at_ns: now.as_nanos(),
            bytes: most.bytes.min(LARGEST),
            base: match most.base {
                Base::Acked => 0,
                Base::Arrived => 1,
                Base::Sacked => 2,
            },
            least: most.least,
            act: 0,
        })
    }

    /// Returns the packets of one bandwidth-delay product, if the fixed buffer holds fewer and so may limit the rate.
    pub fn packets_missed(&self, now: Time) -> Option<u32> {
        let seen = self.flows.values().filter(|seen| now.since(seen.last) < ACTIVE);
        seen.filter_map(|seen| self.allowances.observer().packets_missed(now, seen.sums.flow)).max()
    }

    /// Returns the number of observed connections.
    pub fn connections(&self) -> usize {
        self.flows.len()
    }
}

/// Number of packets that left the queue between two records: on the mobile side those that arrived, on the network side
/// those that the mobile acknowledged. Of what passed before the first record nothing is known.
fn departed(side: Side, before: &Sums, after: &Sums) -> u32 {
    let bytes = match (side, before.passed.newest, after.acked.newest) {
        (Side::Mobile, None, _) => after.passed.newest.map_or(0, |newest| newest.payload.into()),
        (Side::Mobile, ..) => after.passed.bytes.saturating_sub(before.passed.bytes),
        (Side::Network, _, Some(ack)) => {
            let opened = before.answered.map(|(_, answer)| answer.end());
            let last = before.acked.newest.map(|ack| ack.ack).or(opened).unwrap_or(ack.ack);
            if ack.ack.after(last) { ack.ack.since(last).into() } else { 0 }
        }
        (Side::Network, ..) => 0,
    };
    u32::try_from(bytes.div_ceil(after.passed.full.max(1).into())).unwrap_or(u32::MAX)
}

fn on_opened(sums: &mut Sums, record: &Record) {
    let asked = sums.at.as_nanos().saturating_sub(u64::from(record.value) * 1000);
    let mut syn = Segment::pure_ack(sums.flow, Seq(0), HEADER);
    syn.flags = Flags::SYN;
    syn.window = u16::try_from(record.told).unwrap_or(u16::MAX);
    let mut answer = Segment::pure_ack(sums.flow, Seq(0), HEADER);
    answer.seq = Seq(record.arrived.wrapping_sub(1));
    answer.flags = Flags::SYN | Flags::ACK;
    (sums.asked, sums.answered) = (Some((Time::from_nanos(asked), syn)), Some((sums.at, answer)));
}

fn on_data(sums: &mut Sums, record: &Record) {
    let full = record.segment.clamp(1, u16::MAX.into()) as u16;
    let new = record.passed.saturating_sub(sums.passed.bytes).clamp(1, full.into()) as u16;
    let mut newest = Segment::data(sums.flow, Seq(record.arrived.wrapping_sub(new.into())), new, HEADER);
    stamp(&mut newest, record);
    sums.on_down(sums.at, &newest);
    (sums.passed.bytes, sums.passed.full) = (record.passed, full);
    sums.passed.previous = Time::from_nanos(record.previous_ns);
}

fn on_ack(sums: &mut Sums, record: &Record) {
    let mut ack = Segment::pure_ack(sums.flow, Seq(record.acked), HEADER);
    // The record does not contain the mobile's window, so the largest window is assumed.
    ack.window = u16::MAX;
    ack.set_scale(Some(ackclock_core::LARGEST_WINDOW_SCALE));
    stamp(&mut ack, record);
    sums.on_up(sums.at, &ack);
    sums.acked.previous = Time::from_nanos(record.previous_ns);
    // An ACK with the right edge as its number and a window of 0 advertises this right edge. The edge before it may have
    // no record of its own.
    for edge in [record.told_before, record.told] {
        (ack.ack, ack.window) = (Seq(edge), 0);
        sums.on_told(sums.at, &ack);
    }
}

fn stamp(segment: &mut Segment, record: &Record) {
    if record.stamped != 0 {
        segment.set_timestamps(Timestamps { value: record.value, echo: record.echo });
    }
}
