//! Runs regulators without an edge: calculates the allowance of each flow from records of passed traffic.
//!
//! A box in a foreign data path stores no packets. For each ACK, the data path advertises the maximum of the previous
//! right edge and `base + allowance`. The allowances are calculated outside the data path. The regulators receive the
//! same calls as from an [`Edge`](crate::Edge) with bearer `observed`, so they compute the same allowances.

use std::collections::BTreeMap;

use ackclock_core::{ConfigError, FlowId, Segment, Size, Time, name_of};
use ackclock_link::{Capacity, LinkView, Side};
use ackclock_observe::{ObservedConfig, Observer, Record};
use serde_json::Value;

use crate::observed::check_box_buffer;
use crate::regulators::{RegulatorId, Regulators};
use crate::{Allowance, REGULATORS, Regulator};

/// Allowances of flows: the bytes that each sender may send beyond a base visible in the flow's packets.
pub struct Allowances {
    observer: Observer,
    regulators: Regulators,
    flows: BTreeMap<FlowId, Regulated>,
}

/// A flow's regulator and the flow's latest record.
#[derive(Clone, Copy)]
struct Regulated {
    regulator: RegulatorId,
    seen: Record,
}

impl Allowances {
    /// Creates the allowances for the given regulator, a name or a table. `observed` configures how the box observes
    /// the queue, and `buffer` is the buffer per user in packets, bytes, or bandwidth-delay products that the observer
    /// measures.
    ///
    /// # Errors
    /// Fails with the invalid key, or with the reason why the regulator cannot be used.
    pub fn new(regulator: &Value, observed: &ObservedConfig, buffer: Size) -> Result<Self, ConfigError> {
        let config = REGULATORS.resolve(regulator).map_err(|error| error.under("regulator"))?;
        let refused = |reason| ConfigError::new("regulator", format!("`{}`: {reason}", name_of(regulator)));
        let left_when = config.observes(observed.side).map_err(refused)?;
        if !config.allows() {
            return Err(refused("it gives no allowance, without which a box cannot tell a window"));
        }
        check_box_buffer(buffer)?;
        let capacity = match buffer {
            Size::Packets(packets) => Capacity::Packets(packets),
            Size::Bytes(bytes) => Capacity::Bytes(bytes),
            _ => Capacity::Unlimited,
        };
        let mut observer = observed.observer(capacity);
        if let Size::Bdp(times) = buffer {
            observer.follow(times);
        }
        observer.heed(config.departures());
        observer.measure();
        observer.leave_when(left_when);
        Ok(Self { observer, regulators: Regulators::new(config), flows: BTreeMap::new() })
    }

    /// Returns the observer, which estimates the queue.
    pub const fn observer(&self) -> &Observer {
        &self.observer
    }

    /// Sets the user of a flow, which is user 0 by default. Callers must set the user before the flow's first record.
    pub fn assign(&mut self, flow: FlowId, user: u32) {
        self.observer.assign(flow, user);
        self.regulators.assign(flow, user);
    }

    /// Processes a record of a flow.
    pub fn on_record(&mut self, record: &Record) {
        let before = self.flows.get(&record.flow).map(|flow| flow.seen);
        let before = before.as_ref();
        let regulator = self.join(record);
        let mut feed = Feed { observer: &mut self.observer, regulators: &mut self.regulators, regulator };
        if let Some((at, syn)) = record.asked.filter(|_| record.asks_since(before)) {
            feed.tell(at, syn.flow, |regulator, view| regulator.on_syn(at, &syn, view));
        }
        let answer = record.answered.filter(|_| record.answers_since(before)).into_iter();
        let data = record.passed_since(before).map(|segment| (record.passed.at, segment));
        answer.chain(data).for_each(|(at, segment)| feed.on_data(at, &segment));
        feed.observer.on_record(record);
        feed.on_learnt(record, before);
        if let Some(ack) = record.acks_since(before) {
            let at = record.acked.at;
            feed.tell(at, ack.flow, |regulator, view| regulator.handle_ack(at, ack, view));
        }
    }

    /// Allowance of a flow's sender; `None` while the allowance is unknown.
    pub fn allowance(&mut self, now: Time, flow: FlowId) -> Option<Allowance> {
        let regulator = self.flows.get(&flow)?.regulator;
        let view = self.observer.view(now, flow);
        self.regulators.get_mut(regulator)?.allowance(now, flow, view)
    }

    /// Removes a flow that has ended.
    pub fn forget(&mut self, now: Time, flow: FlowId) {
        self.observer.forget(flow);
        let Some(Regulated { regulator, .. }) = self.flows.remove(&flow) else { return };
        if let Some(regulator) = self.regulators.get_mut(regulator) {
            regulator.close(now, flow);
            while regulator.poll_output(now).is_some() {}
        }
        self.regulators.leave(regulator);
    }

    /// Stores the latest record of a flow. Returns the number of the flow's regulator, which is built for the flow's
    /// first record.
    fn join(&mut self, record: &Record) -> RegulatorId {
        let regulators = &mut self.regulators;
        let flow = self.flows.entry(record.flow);
        let flow =
            flow.or_insert_with(|| Regulated { regulator: regulators.join(record.flow), seen: *record });
        flow.seen = *record;
        flow.regulator
    }
}

/// Calls a regulator in the same way as an edge does.
struct Feed<'a> {
    observer: &'a mut Observer,
    regulators: &'a mut Regulators,
    regulator: RegulatorId,
}

impl Feed<'_> {
    /// Calls the regulator and ignores its output, because packets do not pass through this process.
    fn tell(&mut self, now: Time, flow: FlowId, call: impl FnOnce(&mut dyn Regulator, LinkView)) {
        let Some(regulator) = self.regulators.hear(self.regulator, flow) else { return };
        call(regulator, self.observer.view(now, flow));
        while regulator.poll_output(now).is_some() {}
    }

    fn on_data(&mut self, now: Time, segment: &Segment) {
        self.tell(now, segment.flow, |regulator, view| {
            regulator.on_data(now, segment, view);
            regulator.on_queued(now, segment, view);
        });
    }

    /// Passes the new estimates and departures of a record on to the regulator.
    fn on_learnt(&mut self, record: &Record, before: Option<&Record>) {
        while let Some((at, observation)) = self.observer.poll_observation() {
            self.tell(at, observation.flow, |regulator, view| {
                regulator.on_observation(at, &observation, view)
            });
        }
        if self.observer.side() == Side::Mobile {
            record.passed_since(before).for_each(|segment| self.on_departed(record.passed.at, &segment));
        }
        while let Some((at, segment)) = self.observer.poll_left() {
            self.on_departed(at, &segment);
        }
    }

    fn on_departed(&mut self, now: Time, segment: &Segment) {
        self.tell(now, segment.flow, |regulator, view| {
            regulator.on_departed(now, segment, view);
            if view.is_idle() {
                regulator.on_idle(now, view);
            }
        });
    }
}
