//! The flows of an edge: created at their first segment, closed when they end or when the table is full.

use ackclock_core::{Flags, FlowId, Segment, Seq, Time};

use crate::{FlowContext, FlowStatistics, Regulator, RegulatorConfig};

/// One flow at the edge.
#[derive(Default)]
pub(crate) struct Flow {
    /// `None` where flows are left alone, and after the flow has ended.
    pub(crate) regulator: Option<Box<dyn Regulator>>,
    pub(crate) statistics: FlowStatistics,
    last_seen: Time,
    state: State,
    /// The byte after the FIN, once one was seen from the network.
    fin: Option<Seq>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Unseen,
    Open,
    Ended,
}

/// All flows of an edge, by number.
pub(crate) struct FlowTable {
    flows: Vec<Flow>,
    config: Box<dyn RegulatorConfig>,
    open: usize,
    most: usize,
}

impl FlowTable {
    pub(crate) fn new(config: Box<dyn RegulatorConfig>, most: usize) -> Self {
        Self { flows: Vec::new(), config, open: 0, most }
    }

    pub(crate) fn get(&self, id: FlowId) -> Option<&Flow> {
        self.flows.get(id.index())
    }

    /// The flow, with a regulator if it is new.
    #[inline]
    pub(crate) fn open(&mut self, now: Time, id: FlowId) -> &mut Flow {
        if self.flows.get(id.index()).is_none_or(|flow| flow.state == State::Unseen) {
            return self.create(now, id);
        }
        let flow = &mut self.flows[id.index()];
        flow.last_seen = now;
        flow
    }

    #[cold]
    fn create(&mut self, now: Time, id: FlowId) -> &mut Flow {
        if self.flows.len() <= id.index() {
            self.flows.resize_with(id.index() + 1, Flow::default);
        }
        let flow = &mut self.flows[id.index()];
        (flow.state, flow.last_seen) = (State::Open, now);
        flow.regulator = self.config.build(FlowContext { flow: id });
        self.open += usize::from(flow.regulator.is_some());
        flow
    }

    /// The regulated flow that was quiet for longest, where there are more than the table holds.
    pub(crate) fn surplus(&self) -> Option<FlowId> {
        if self.open <= self.most {
            return None;
        }
        let regulated = self.flows.iter().enumerate().filter(|(_, flow)| flow.regulator.is_some());
        regulated.min_by_key(|(_, flow)| flow.last_seen).map(|(index, _)| FlowId(index as u32))
    }

    /// The flow is as if it had never been seen.
    pub(crate) fn forget(&mut self, id: FlowId) {
        if let Some(flow) = self.flows.get_mut(id.index()) {
            self.open -= usize::from(flow.regulator.is_some());
            *flow = Flow::default();
        }
    }

    /// Takes the regulator away from a flow.
    pub(crate) fn end(&mut self, id: FlowId) -> Option<Box<dyn Regulator>> {
        let flow = self.flows.get_mut(id.index())?;
        flow.state = State::Ended;
        let regulator = flow.regulator.take();
        self.open -= usize::from(regulator.is_some());
        regulator
    }
}

impl Flow {
    /// Notes the end of the data, as a segment from the network tells it.
    #[inline]
    pub(crate) fn on_data(&mut self, segment: &Segment) {
        if segment.flags.intersects(Flags::FIN) {
            self.fin = Some(segment.end());
        }
        // A new connection under the number of one that ended.
        if segment.flags.intersects(Flags::SYN) && self.state == State::Ended {
            (self.state, self.fin) = (State::Unseen, None);
        }
    }

    /// Notes a segment from a mobile; whether the regulator must be asked about it.
    #[inline]
    pub(crate) fn is_asked_about(&mut self, at: Time, segment: &Segment) -> bool {
        let is_ack = segment.is_tcp() && segment.flags.contains(Flags::ACK);
        if is_ack {
            self.statistics.edge_rtt.on_ack(at, segment.ack);
        }
        is_ack && self.regulator.is_some()
    }

    /// Whether the flow is over when this segment passes in either direction.
    pub(crate) fn ends_with(&self, segment: &Segment) -> bool {
        segment.flags.intersects(Flags::RST) || self.fin.is_some_and(|fin| !segment.ack.before(fin))
    }
}
