//! What passes teaches rate, waiting time and allowance, by the estimates of the observed bearer.
//!
//! Records of the kernel become the segments that they stand for, each of the largest size seen, so that the box learns
//! what `bearer = "observed"` with `side = "mobile"` learns in a simulation.

use std::collections::BTreeMap;

use ackclock_core::{Flags, FlowId, Segment, Seq, Span, Time, Timestamps};
use ackclock_link::{Bearer, Capacity, Departures, Direction, Left, Observed};

use crate::law::{Allowed, Base};
use crate::maps::Record;

/// The laws that a box knows: those that only say how far a source may be ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Window Regulator, static: the buffer beyond the ACK.
    Wrs,
    /// Window Regulator, dynamic: the buffer and what leaves in a least loop, beyond what arrived.
    Wrd,
}

impl Law {
    /// The law called `name`.
    ///
    /// # Errors
    /// Why a box has no such law.
    pub fn named(name: &str) -> Result<Self, String> {
        let reason = match name {
            "wrs" => return Ok(Self::Wrs),
            "wrd" => return Ok(Self::Wrd),
            "none" => "a box without a regulator has nothing to do; leave --act out and it only measures",
            "wrb" | "forecast" => "it holds ACKs, and a packet never waits in a box",
            "ack-regulator" | "ack-rate-control" => "it delays ACKs by a queue that it must own",
            "snoop" => "it keeps copies of packets, and a packet never leaves the kernel here",
            _ => return Err(format!("`{name}` is no regulator of a box; wrs and wrd are")),
        };
        Err(format!("`{name}` cannot stand in a box: {reason}; wrs and wrd can"))
    }
}

/// Payload of a full packet before one was seen, bytes.
const USUAL_PAYLOAD: u32 = 1448;
/// The least window of every law, packets.
const LEAST_PACKETS: u32 = 2;
/// Connections beyond these are not observed: one peer must not grow the memory for all.
const MOST_FLOWS: usize = 1024;
/// A connection without data for so long is forgotten.
const QUIET: Span = Span::from_secs(10);
const HEADER: u16 = 52;

#[derive(Clone, Copy, Debug)]
struct Seen {
    arrived: Seq,
    last: Time,
}

/// The observer of one subscriber.
pub struct Observer {
    law: Law,
    bearer: Observed,
    flows: BTreeMap<u32, Seen>,
    payload: u32,
    /// The connection that data last arrived for.
    newest: FlowId,
}

impl Observer {
    /// Nothing has passed yet. The flows of the subscriber share `buffer`.
    pub fn new(law: Law, buffer: Capacity) -> Self {
        let mut bearer = Observed::beside_mobiles(buffer);
        bearer.want_departures(Direction::Down, Departures::Watched);
        bearer.leave_when(if law == Law::Wrs { Left::Certain } else { Left::Estimated });
        Self { law, bearer, flows: BTreeMap::new(), payload: 0, newest: FlowId(0) }
    }

    /// Learns from a record.
    pub fn learn(&mut self, record: &Record) {
        let (at, flow) = (Time::from_nanos(record.at_ns), FlowId(record.flow));
        match record.kind {
            Record::OPENED => self.on_opened(at, flow, record),
            Record::ACK => self.on_ack(at, flow, record),
            _ => self.on_data(at, flow, record),
        }
        self.settle(at);
    }

    fn on_opened(&mut self, at: Time, flow: FlowId, record: &Record) {
        self.make_room(at);
        let mut syn = Segment::pure_ack(flow, Seq(0), HEADER);
        syn.flags = Flags::SYN;
        syn.window = u16::try_from(record.told).unwrap_or(u16::MAX);
        let asked = at.as_nanos().saturating_sub(u64::from(record.value) * 1000);
        let _ = self.bearer.enqueue(Time::from_nanos(asked), Direction::Up, &syn);
        let mut answer = Segment::pure_ack(flow, Seq(0), HEADER);
        answer.seq = Seq(record.arrived.wrapping_sub(1));
        answer.flags = Flags::SYN | Flags::ACK;
        let _ = self.bearer.enqueue(at, Direction::Down, &answer);
        self.flows.insert(record.flow, Seen { arrived: Seq(record.arrived), last: at });
    }

    fn on_ack(&mut self, at: Time, flow: FlowId, record: &Record) {
        let mut ack = Segment::pure_ack(flow, Seq(record.told), HEADER);
        ack.set_scale(Some(0));
        if record.stamped != 0 {
            ack.set_timestamps(Timestamps { value: record.value, echo: record.echo });
        }
        self.bearer.on_told(at, &ack);
    }

    fn on_data(&mut self, at: Time, flow: FlowId, record: &Record) {
        self.payload = self.payload.max(record.segment);
        self.newest = flow;
        self.make_room(at);
        let end = Seq(record.arrived);
        let seen = self.flows.entry(record.flow).or_insert(Seen { arrived: end, last: at });
        let mut next = std::mem::replace(&mut seen.arrived, end);
        seen.last = at;
        let piece = record.segment.clamp(1, u32::from(u16::MAX));
        while end.after(next) {
            let mut data = Segment::data(flow, next, end.since(next).min(piece) as u16, HEADER);
            if record.stamped != 0 {
                data.set_timestamps(Timestamps { value: record.value, echo: record.echo });
            }
            next = data.end();
            let _ = self.bearer.enqueue(at, Direction::Down, &data);
            self.settle(at);
        }
    }

    /// Forgets the connection that was quiet longest, where it was so for long or there are too many.
    fn make_room(&mut self, now: Time) {
        let oldest =
            self.flows.iter().min_by_key(|(_, seen)| seen.last).map(|(flow, seen)| (*flow, seen.last));
        if let Some((flow, last)) = oldest
            && (self.flows.len() >= MOST_FLOWS || now.since(last) > QUIET)
        {
            self.flows.remove(&flow);
            self.bearer.forget(FlowId(flow));
        }
    }

    /// Takes away what the bearer says: nothing waits here.
    fn settle(&mut self, now: Time) {
        for direction in Direction::BOTH {
            while self.bearer.peek_event(now, direction).is_some() {
                self.bearer.take_segment(direction);
            }
        }
        while self.bearer.poll_observation().is_some() {}
    }

    /// How far each source may be ahead.
    pub fn allowed(&mut self, now: Time) -> Allowed {
        let payload = self.payload();
        let share = match self.bearer.view(now, Direction::Down, self.newest).capacity {
            Capacity::Packets(packets) => packets.saturating_mul(payload),
            Capacity::Bytes(bytes) => u32::try_from(bytes).unwrap_or(u32::MAX),
            Capacity::Unlimited => u32::MAX,
        };
        let base = if self.law == Law::Wrs { Base::Acked } else { Base::Arrived };
        // The largest window that TCP can tell is below 1 GiB.
        Allowed { base, bytes: share.min(1 << 30), least: LEAST_PACKETS * payload }
    }

    fn payload(&self) -> u32 {
        if self.payload > 0 { self.payload } else { USUAL_PAYLOAD }
    }

    /// How long a new packet would wait, by what waits and how fast it leaves; `None` while no connection has data.
    pub fn wait(&mut self, now: Time) -> Option<Span> {
        let last = self.flows.get(&self.newest.0)?.last;
        let view = self.bearer.view(now, Direction::Down, self.newest);
        let rate = view.rate.as_bps();
        (rate > 0 && now.since(last) < Span::from_secs(1))
            .then(|| Span::from_secs_f64(view.waiting.bytes as f64 * 8.0 / rate as f64))
    }

    /// Connections that are observed.
    pub fn connections(&self) -> usize {
        self.flows.len()
    }
}
