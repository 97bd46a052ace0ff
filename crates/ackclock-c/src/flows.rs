//! The flows of a host and their regulators, without a queue. The host's queue replaces the bearer of an edge.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use ackclock_core::{Component, Flags, FlowId, Segment, Time};
use ackclock_edge::{FlowContext, Output, REGULATORS, Regulator, RegulatorConfig, Scope, Verdict};
use ackclock_link::LinkView;
use serde_json::Value;

use crate::abi::Refusal;

/// All flows that a host has opened, and their regulators.
pub(crate) struct Flows {
    config: Arc<dyn RegulatorConfig>,
    /// Number of the regulator of each open flow.
    flows: BTreeMap<FlowId, u32>,
    regulators: BTreeMap<u32, Entry>,
    /// Deadlines of the regulators, with the regulators' numbers.
    deadlines: BTreeSet<(Time, u32)>,
    /// Regulators that may have output.
    called: BTreeSet<u32>,
    /// Output that precedes the output of the called regulators.
    output: VecDeque<Output>,
    /// Time of the latest call.
    now: Time,
}

/// A regulator, and the number of flows that it serves.
struct Entry {
    /// The regulator; `None` for unregulated flows.
    regulator: Option<Box<dyn Regulator>>,
    /// Number of flows that the regulator serves.
    flows: u32,
    /// Flow of the latest call to the regulator.
    heard: FlowId,
    deadline: Option<Time>,
    /// Deadline of the latest timeout. It does not count again until the next other call.
    expired: Option<Time>,
}

impl Flows {
    /// Creates the regulators that a table describes. The table is TOML, or JSON if it starts with a brace.
    pub(crate) fn new(table: &str) -> Result<Self, String> {
        let value: Result<Value, String> = if table.trim_start().starts_with('{') {
            serde_json::from_str(table).map_err(|error| error.to_string())
        } else {
            toml::from_str(table).map_err(|error| error.to_string())
        };
        let component = Component::from(value.map_err(|error| format!("regulator: {error}"))?);
        let config = component.config(&REGULATORS).map_err(|error| error.under("regulator").to_string())?;
        if config.ack_filter().is_some() {
            return Err("regulator: a filter of ACKs is part of a queue of ackclock's".to_owned());
        }
        Ok(Self {
            config: Arc::clone(config),
            flows: BTreeMap::new(),
            regulators: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            called: BTreeSet::new(),
            output: VecDeque::new(),
            now: Time::ZERO,
        })
    }

    /// Advances the time. Time never goes back.
    pub(crate) fn advance(&mut self, now: Time) -> Result<(), Refusal> {
        if now < self.now {
            return Err(Refusal::Time);
        }
        self.now = now;
        Ok(())
    }

    /// Opens a flow of a user. The flow gets a regulator, according to the scope of the regulators.
    pub(crate) fn open(&mut self, flow: FlowId, user: u32) -> Result<(), Refusal> {
        if self.flows.contains_key(&flow) {
            return Err(Refusal::FlowOpen);
        }
        let number = match self.config.scope() {
            Scope::Flow => flow.0,
            Scope::User => user,
            Scope::Queue => 0,
        };
        let entry = self.regulators.entry(number).or_insert_with(|| Entry {
            regulator: self.config.build(FlowContext { flow, user }),
            flows: 0,
            heard: flow,
            deadline: None,
            expired: None,
        });
        entry.flows += 1;
        self.flows.insert(flow, number);
        Ok(())
    }

    /// Closes a flow. All its held segments and kept copies become output.
    pub(crate) fn close(&mut self, flow: FlowId) -> Result<(), Refusal> {
        let now = self.now;
        let number = self.call(flow, |regulator| regulator.close(now, flow))?;
        self.flows.remove(&flow);
        self.collect(number);
        let other = self.flows.iter().find(|&(_, &of)| of == number).map(|(&flow, _)| flow);
        if let Some(entry) = self.regulators.get_mut(&number) {
            entry.flows -= 1;
            entry.heard = other.unwrap_or(flow);
            if entry.flows == 0 {
                entry.regulator = None;
            }
        }
        self.note_deadline(number);
        if other.is_none() {
            self.regulators.remove(&number);
        }
        Ok(())
    }

    /// Decides about a data segment that has not yet entered the queue.
    pub(crate) fn on_data(&mut self, segment: &Segment, view: LinkView) -> Result<Verdict, Refusal> {
        let (now, mut verdict) = (self.now, Verdict::Forward);
        self.call(segment.flow, |regulator| verdict = regulator.on_data(now, segment, view))?;
        Ok(verdict)
    }

    /// Handles a segment from the mobile with an ACK or a SYN. A SYN without an ACK passes after the regulator's output.
    pub(crate) fn on_ack(&mut self, segment: Segment, view: LinkView) -> Result<(), Refusal> {
        let now = self.now;
        let acknowledges = segment.flags.contains(Flags::ACK);
        if !acknowledges && !segment.flags.intersects(Flags::SYN) {
            return Err(Refusal::Value);
        }
        let number = self.call(segment.flow, |regulator| match acknowledges {
            true => regulator.handle_ack(now, segment, view),
            false => regulator.on_syn(now, &segment, view),
        })?;
        let regulated = self.regulators.get(&number).is_some_and(|entry| entry.regulator.is_some());
        if !(acknowledges && regulated) {
            self.collect(number);
            self.output.push_back(Output::ToSender(segment));
        }
        Ok(())
    }

    /// Calls the regulator of an open flow, and returns its number. Unregulated flows have no regulator to call.
    pub(crate) fn call(
        &mut self,
        flow: FlowId,
        call: impl FnOnce(&mut dyn Regulator),
    ) -> Result<u32, Refusal> {
        let number = *self.flows.get(&flow).ok_or(Refusal::UnknownFlow)?;
        if let Some(entry) = self.regulators.get_mut(&number) {
            (entry.heard, entry.expired) = (flow, None);
            if let Some(regulator) = &mut entry.regulator {
                call(regulator.as_mut());
                self.called.insert(number);
            }
        }
        self.note_deadline(number);
        Ok(number)
    }

    /// Handles the timeout of a flow's regulator, if its deadline has passed.
    pub(crate) fn on_timeout(&mut self, flow: FlowId, view: LinkView) -> Result<(), Refusal> {
        let now = self.now;
        let number = *self.flows.get(&flow).ok_or(Refusal::UnknownFlow)?;
        let deadline = self.regulators.get(&number).and_then(|entry| entry.deadline);
        if deadline.is_none_or(|deadline| deadline > now) {
            return Ok(());
        }
        self.call(flow, |regulator| regulator.handle_timeout(now, view))?;
        if let Some(entry) = self.regulators.get_mut(&number) {
            entry.expired = deadline;
        }
        self.note_deadline(number);
        Ok(())
    }

    /// Returns the next output of the regulators, or `None` if all output was returned.
    pub(crate) fn poll_output(&mut self) -> Option<Output> {
        if let Some(output) = self.output.pop_front() {
            return Some(output);
        }
        while let Some(&number) = self.called.first() {
            let output = self.output_of(number);
            self.note_deadline(number);
            if output.is_some() {
                return output;
            }
            self.called.remove(&number);
        }
        None
    }

    /// Returns the next deadline of a regulator, but not before the latest call, and a flow that the regulator serves.
    pub(crate) fn poll_timeout(&self) -> Option<(Time, FlowId)> {
        let &(deadline, number) = self.deadlines.first()?;
        Some((deadline.max(self.now), self.regulators.get(&number)?.heard))
    }

    fn output_of(&mut self, number: u32) -> Option<Output> {
        self.regulators.get_mut(&number)?.regulator.as_mut()?.poll_output(self.now)
    }

    /// Moves the output of a regulator to the output of all.
    fn collect(&mut self, number: u32) {
        while let Some(output) = self.output_of(number) {
            self.output.push_back(output);
        }
        self.called.remove(&number);
    }

    /// Updates the deadline of a regulator. A deadline that has expired counts again after the next other call: a
    /// regulator that does not move its deadline must not keep the host busy for ever.
    fn note_deadline(&mut self, number: u32) {
        let Some(entry) = self.regulators.get_mut(&number) else { return };
        let deadline = entry.regulator.as_ref().and_then(|regulator| regulator.poll_timeout());
        let deadline = deadline.filter(|&deadline| Some(deadline) > entry.expired);
        if deadline != entry.deadline {
            entry.deadline.map(|old| self.deadlines.remove(&(old, number)));
            deadline.map(|new| self.deadlines.insert((new, number)));
            entry.deadline = deadline;
        }
    }
}
