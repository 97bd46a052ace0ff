//! Estimates rate, queueing delay and allowance from the kernel's records. [`Allowances`] computes the allowance by the
//! same code as in simulations.
//!
//! A kernel record contains the sums of one connection. This module converts the kernel record to the [`Record`] that
//! the estimators read.

use std::collections::BTreeMap;

use ackclock_core::{ConfigError, Flags, FlowId, Segment, Seq, Size, Span, Time, Timestamps};
use ackclock_edge::Allowances;
use ackclock_link::{Base, ObservedConfig, Record as Sums, Side};
use serde_json::Value;

use crate::maps::{Allowance, Record};

/// Maximum number of observed connections, so that one peer cannot exhaust the memory.
const MOST_FLOWS: usize = 1024;
/// Time without data after which a connection is forgotten.
const QUIET: Span = Span::from_secs(10);
/// Time without data after which a connection is ignored in computing the common allowance.
const ACTIVE: Span = Span::from_secs(2);
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
    flows: BTreeMap<u32, Seen>,
    /// Connection for which data arrived most recently.
    newest: FlowId,
    /// Bytes sent to the subscriber outside the observed connections.
    others: u64,
}

impl Observer {
    /// Creates an observer without connections. All flows of the subscriber share `buffer`.
    ///
    /// # Errors
    /// Fails if a box cannot use this regulator or this buffer.
    pub fn new(regulator: &str, buffer: Size) -> Result<Self, ConfigError> {
        let observed = ObservedConfig { side: Side::Mobile, ..ObservedConfig::default() };
        let allowances = Allowances::new(&Value::from(regulator), &observed, buffer)?;
        Ok(Self { allowances, flows: BTreeMap::new(), newest: FlowId(0), others: 0 })
    }

    /// Notes the total bytes sent to the subscriber outside the observed connections. Bytes of unobserved connections
    /// also use the link's capacity.
    pub const fn note_others(&mut self, bytes: u64) {
        self.others = bytes;
    }

    /// Updates the estimates with a record.
    pub fn learn(&mut self, record: &Record) {
        let (at, flow) = (Time::from_nanos(record.at_ns), FlowId(record.flow));
        self.make_room(at);
        let others = self.others;
        let seen = self.flows.entry(record.flow).or_insert_with(|| Seen { sums: Sums::new(flow), last: at });
        (seen.sums.at, seen.sums.others) = (at, others);
        match record.kind {
            Record::OPENED => on_opened(&mut seen.sums, record),
            Record::ACK => on_ack(&mut seen.sums, record),
            _ => {
                on_data(&mut seen.sums, record);
                (seen.last, self.newest) = (at, flow);
            }
        }
        self.allowances.on_record(&seen.sums);
    }

    /// Forgets the connection that was quiet longest, if it was quiet for [`QUIET`] or the table is full.
    fn make_room(&mut self, now: Time) {
        let oldest =
            self.flows.iter().min_by_key(|(_, seen)| seen.last).map(|(flow, seen)| (*flow, seen.last));
        if let Some((flow, last)) = oldest
            && (self.flows.len() >= MOST_FLOWS || now.since(last) > QUIET)
        {
            self.flows.remove(&flow);
            self.allowances.forget(now, FlowId(flow));
        }
    }

    /// Returns the common allowance of all servers: the largest allowance of an active connection. Returns `None` while
    /// no allowance is known; the allowance of an earlier box process then stays in force.
    pub fn allowed(&mut self, now: Time) -> Option<Allowance> {
        let active = self.flows.iter().filter(|(_, seen)| now.since(seen.last) < ACTIVE);
        let allowances = &mut self.allowances;
        let allowed = active.filter_map(|(flow, _)| allowances.allowance(now, FlowId(*flow)));
        let most = allowed.max_by_key(|allowance| allowance.bytes)?;
        Some(Allowance {
            at_ns: now.as_nanos(),
            bytes: most.bytes.min(LARGEST),
            base: (most.base == Base::Arrived).into(),
            least: most.least,
            unused: 0,
        })
    }

    /// Estimates the queueing delay of a new packet from the queued bytes and the link rate. Returns `None` while no
    /// connection has data.
    pub fn wait(&self, now: Time) -> Option<Span> {
        let last = self.flows.get(&self.newest.0)?.last;
        let view = self.allowances.observer().view(now, self.newest);
        let rate = view.rate.as_bps();
        (rate > 0 && now.since(last) < Span::from_secs(1))
            .then(|| Span::from_secs_f64(view.waiting.bytes as f64 * 8.0 / rate as f64))
    }

    /// Returns the number of observed connections.
    pub fn connections(&self) -> usize {
        self.flows.len()
    }
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
}

fn on_ack(sums: &mut Sums, record: &Record) {
    let mut ack = Segment::pure_ack(sums.flow, Seq(record.acked), HEADER);
    // The record does not contain the mobile's window, so the largest window is assumed.
    ack.window = u16::MAX;
    ack.set_scale(Some(ackclock_core::LARGEST_WINDOW_SCALE));
    stamp(&mut ack, record);
    sums.on_up(sums.at, &ack);
    // An ACK with the right edge as its number and a window of 0 advertises this right edge.
    (ack.ack, ack.window) = (Seq(record.told), 0);
    sums.on_told(sums.at, &ack);
}

fn stamp(segment: &mut Segment, record: &Record) {
    if record.stamped != 0 {
        segment.set_timestamps(Timestamps { value: record.value, echo: record.echo });
    }
}
