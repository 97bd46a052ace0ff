//! What passes teaches rate, queueing delay and allowance: by [`Allowances`], as a box allows them in a simulation.
//!
//! A record of the kernel tells the sums of one connection; here they become the [`Record`] that the estimates read.

use std::collections::BTreeMap;

use ackclock_core::{ConfigError, Flags, FlowId, Segment, Seq, Size, Span, Time, Timestamps};
use ackclock_edge::Allowances;
use ackclock_link::{Base, ObservedConfig, Record as Sums, Side};
use serde_json::Value;

use crate::maps::{Allowance, Record};

/// Connections beyond these are not observed: one peer must not grow the memory for all.
const MOST_FLOWS: usize = 1024;
/// A connection without data for so long is forgotten.
const QUIET: Span = Span::from_secs(10);
/// A connection without data for so long has no say in what the others are allowed.
const ACTIVE: Span = Span::from_secs(2);
const HEADER: u16 = 52;
/// No window that TCP can advertise is larger.
const LARGEST: u32 = 1 << 30;

struct Seen {
    sums: Sums,
    last: Time,
}

/// The observer of one subscriber.
pub struct Observer {
    allowances: Allowances,
    flows: BTreeMap<u32, Seen>,
    /// The connection that data last arrived for.
    newest: FlowId,
    /// Bytes to the subscriber of no connection that is observed.
    others: u64,
}

impl Observer {
    /// Nothing has passed yet. The flows of the subscriber share `buffer`.
    ///
    /// # Errors
    /// Why a box cannot have this regulator, or this buffer.
    pub fn new(regulator: &str, buffer: Size) -> Result<Self, ConfigError> {
        let observed = ObservedConfig { side: Side::Mobile, ..ObservedConfig::default() };
        let allowances = Allowances::new(&Value::from(regulator), &observed, buffer)?;
        Ok(Self { allowances, flows: BTreeMap::new(), newest: FlowId(0), others: 0 })
    }

    /// Bytes so far to the subscriber that belong to no connection with records; they use the link too.
    pub const fn note_others(&mut self, bytes: u64) {
        self.others = bytes;
    }

    /// Learns from a record.
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

    /// Forgets the connection that was quiet longest, where it was so for long or there are too many.
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

    /// How far each source may be ahead: as far as the one with most. `None` where that is not known: a box that has just begun
    /// leaves in force what an earlier one allowed.
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

    /// How long a new packet would be queued, by what waits and how fast it leaves; `None` while no connection has data.
    pub fn wait(&self, now: Time) -> Option<Span> {
        let last = self.flows.get(&self.newest.0)?.last;
        let view = self.allowances.observer().view(now, self.newest);
        let rate = view.rate.as_bps();
        (rate > 0 && now.since(last) < Span::from_secs(1))
            .then(|| Span::from_secs_f64(view.waiting.bytes as f64 * 8.0 / rate as f64))
    }

    /// Connections that are observed.
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
    // What the mobile offered is not recorded: all that there is.
    ack.window = u16::MAX;
    ack.set_scale(Some(ackclock_core::LARGEST_WINDOW_SCALE));
    stamp(&mut ack, record);
    sums.on_up(sums.at, &ack);
    // An ACK with the same right edge.
    (ack.ack, ack.window) = (Seq(record.told), 0);
    sums.on_told(sums.at, &ack);
}

fn stamp(segment: &mut Segment, record: &Record) {
    if record.stamped != 0 {
        segment.set_timestamps(Timestamps { value: record.value, echo: record.echo });
    }
}
