//! The flows of an edge. A flow is added at its first segment, and closed at its end or when the table is full.
//!
//! If more flows are regulated than the table holds, the regulation of the flow idle longest ends. First segments may
//! come from any sender, so *proven* flows are protected: their mobile has acknowledged data with a segment other than
//! a SYN or RST. Only proven flows replace proven flows, and a quarter of the table is reserved for unproven flows. An
//! unproven flow that was removed returns when more of its data arrives.

use std::collections::BTreeSet;
use std::sync::Arc;

use ackclock_core::{Flags, FlowId, Segment, Seq, Time};
use ackclock_observe::Numbers;

use crate::regulators::{RegulatorId, Regulators};
use crate::{FlowStatistics, RegulatorConfig};

/// State of a flow at the edge.
#[derive(Default)]
pub(crate) struct Flow {
    /// Number of the regulator that serves the flow; `NONE` for an unregulated flow and after the flow's end.
    regulator: RegulatorId,
    pub(crate) statistics: FlowStatistics,
    last_seen: Time,
    state: FlowState,
    /// Sequence number after the FIN, once the network has sent a FIN.
    fin: Option<Seq>,
    numbers: Numbers,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum FlowState {
    #[default]
    Unseen,
    Open,
    /// The mobile has acknowledged data of the flow.
    Proven,
    /// Regulation of the flow ended because the table was full while the flow was unproven.
    GivenUp,
    Ended,
}

/// All flows of an edge, indexed by flow number.
pub(crate) struct FlowTable {
    flows: Vec<Flow>,
    /// Regulators of the flows in this table.
    pub(crate) regulators: Regulators,
    /// Number of flows that have a regulator.
    open: usize,
    /// Number of regulated flows that are proven.
    proven: usize,
    most: usize,
    /// Regulated flows ordered by idle time. The order by idle time is kept only after the flow table has once been
    /// full.
    by_quiet: Option<Box<ByQuiet>>,
}

/// Regulated flows ordered by the time of their last segment. An entry of the ordered flows may be outdated: later
/// segments, acknowledgements and ends take effect only when the entry is popped. A segment does not update the ordered
/// entries.
#[derive(Default)]
struct ByQuiet {
    unproven: BTreeSet<(Time, FlowId)>,
    proven: BTreeSet<(Time, FlowId)>,
}

impl FlowTable {
    pub(crate) fn new(config: Arc<dyn RegulatorConfig>, most: usize) -> Self {
        let regulators = Regulators::new(config);
        Self { flows: Vec::new(), regulators, open: 0, proven: 0, most, by_quiet: None }
    }

    pub(crate) fn get(&self, id: FlowId) -> Option<&Flow> {
        self.flows.get(id.index())
    }

    /// Returns the flow with number `id`. A new flow gets a regulator.
    #[inline]
    pub(crate) fn open(&mut self, now: Time, id: FlowId) -> &mut Flow {
        if self.flows.get(id.index()).is_none_or(|flow| flow.state == FlowState::Unseen) {
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
        (flow.state, flow.last_seen) = (FlowState::Open, now);
        flow.regulator = self.regulators.join(id);
        if flow.is_regulated() {
            self.open += 1;
            if let Some(by_quiet) = &mut self.by_quiet {
                by_quiet.unproven.insert((now, id));
            }
        }
        &mut self.flows[id.index()]
    }

    /// Updates the flow for a segment from a mobile. Returns whether the flow's regulator must see the segment.
    #[inline]
    pub(crate) fn concerns_regulator(&mut self, at: Time, segment: &Segment) -> bool {
        let flow = self.open(at, segment.flow);
        let is_asked = flow.concerns_regulator(at, segment);
        if is_asked && flow.state == FlowState::Open && flow.is_proven_by(segment) {
            flow.state = FlowState::Proven;
            self.proven += 1;
        }
        is_asked
    }

    /// If the table is over-full, ends the regulation of the flow idle longest. Returns the flow whose regulation
    /// ended, and its regulator.
    #[inline]
    pub(crate) fn give_up(&mut self) -> Option<(FlowId, RegulatorId)> {
        if self.open <= self.most { None } else { self.give_up_quietest() }
    }

    #[cold]
    fn give_up_quietest(&mut self) -> Option<(FlowId, RegulatorId)> {
        let id = self.quietest()?;
        let unproven = self.flows[id.index()].state == FlowState::Open;
        let number = self.end(id)?;
        if unproven {
            self.flows[id.index()].state = FlowState::GivenUp;
        }
        Some((id, number))
    }

    fn quietest(&mut self) -> Option<FlowId> {
        let reserved = (self.most / 4).max(1).min(self.most.saturating_sub(1));
        let wanted = if self.proven + reserved > self.most { FlowState::Proven } else { FlowState::Open };
        let Self { flows, by_quiet, most, .. } = self;
        // Outdated entries remain until they are popped. The ordered sets are rebuilt before outdated entries grow
        // without bound.
        let kept =
            by_quiet.take().filter(|kept| kept.unproven.len() + kept.proven.len() <= 2 * *most + SLACK);
        let by_quiet = by_quiet.insert(kept.unwrap_or_else(|| Box::new(ByQuiet::of(flows))));
        while let Some((seen, id)) = by_quiet.set(wanted).pop_first() {
            let flow = &mut flows[id.index()];
            if !flow.is_regulated() {
                continue;
            }
            if flow.state == wanted && flow.last_seen <= seen {
                return Some(id);
            }
            by_quiet.set(flow.state).insert((flow.last_seen, id));
        }
        None
    }

    /// Resets the state of an ended flow, as if the edge had never seen it.
    pub(crate) fn forget(&mut self, id: FlowId) {
        if let Some(flow) = self.flows.get_mut(id.index()) {
            *flow = Flow::default();
        }
    }

    /// Regulated flows of a user, each with its regulator.
    pub(crate) fn regulated_of(&self, user: u32) -> Vec<(FlowId, RegulatorId)> {
        let numbered = (0..).map(FlowId).zip(&self.flows);
        let regulated = numbered.filter_map(|(id, flow)| Some((id, flow.regulator()?)));
        regulated.filter(|&(id, _)| self.regulators.user(id) == user).collect()
    }

    /// Gives a flow that has left its regulator another one. If regulators need the handshake of a connection, the flow
    /// is unregulated until a new connection starts with its number.
    pub(crate) fn rejoin(&mut self, id: FlowId) {
        let flow = &mut self.flows[id.index()];
        flow.regulator = self.regulators.join_midway(id);
        if !flow.is_regulated() {
            self.open -= 1;
            self.proven -= usize::from(flow.state == FlowState::Proven);
            flow.state = FlowState::Ended;
        }
    }

    /// Ends the regulation of a flow until a new connection starts with its number. The caller must call the
    /// regulator's `close`, drain its output and then call [`Regulators::leave`].
    pub(crate) fn end(&mut self, id: FlowId) -> Option<RegulatorId> {
        let flow = self.flows.get_mut(id.index())?;
        let was = std::mem::replace(&mut flow.state, FlowState::Ended);
        let number = std::mem::take(&mut flow.regulator).some()?;
        self.open -= 1;
        self.proven -= usize::from(was == FlowState::Proven);
        Some(number)
    }
}

/// Number of outdated entries that are tolerated beyond twice the table size.
const SLACK: usize = 64;

impl ByQuiet {
    fn of(flows: &[Flow]) -> Self {
        let mut by_quiet = Self::default();
        for (index, flow) in flows.iter().enumerate().filter(|(_, flow)| flow.is_regulated()) {
            by_quiet.set(flow.state).insert((flow.last_seen, FlowId(index as u32)));
        }
        by_quiet
    }

    fn set(&mut self, state: FlowState) -> &mut BTreeSet<(Time, FlowId)> {
        if state == FlowState::Proven { &mut self.proven } else { &mut self.unproven }
    }
}

impl Flow {
    /// Returns whether the flow has a regulator.
    #[inline]
    pub(crate) fn is_regulated(&self) -> bool {
        self.regulator != RegulatorId::NONE
    }

    /// Returns the number of the flow's regulator, or `None` without a regulator.
    #[inline]
    pub(crate) fn regulator(&self) -> Option<RegulatorId> {
        self.regulator.some()
    }

    /// Notes the numbers of a segment that the network sent, and its FIN. Returns whether the segment is inside the
    /// connection's window; a regulator does not see other segments.
    #[inline]
    pub(crate) fn on_data(&mut self, segment: &Segment) -> bool {
        if segment.is_tcp() && !self.numbers.on_data(segment) && !self.is_anew(segment) {
            return false;
        }
        if segment.flags.intersects(Flags::SYN | Flags::FIN) || self.state == FlowState::GivenUp {
            self.on_bound(segment);
        }
        true
    }

    /// Whether a segment that the network sent is inside the connection's window.
    #[inline]
    pub(crate) fn believes_data(&self, segment: &Segment) -> bool {
        self.numbers.believes(segment)
    }

    /// Processes a segment that starts or ends a connection, or belongs to a flow removed from the full table.
    fn on_bound(&mut self, segment: &Segment) {
        if segment.flags.intersects(Flags::FIN) {
            self.fin = Some(segment.end());
        }
        // The segment starts a new connection with a used flow number, or brings more data of a flow removed from the
        // full table.
        if self.is_anew(segment) || self.state == FlowState::GivenUp {
            (self.state, self.fin) = (FlowState::Unseen, None);
            self.numbers = Numbers::default();
        }
    }

    /// Whether a segment that the network sent starts a new connection with a used flow number.
    fn is_anew(&self, segment: &Segment) -> bool {
        matches!(self.state, FlowState::Ended | FlowState::GivenUp) && segment.flags.intersects(Flags::SYN)
    }

    #[inline]
    fn concerns_regulator(&mut self, at: Time, segment: &Segment) -> bool {
        let is_ack = segment.is_tcp() && segment.flags.contains(Flags::ACK);
        if is_ack {
            self.statistics.edge_rtt.on_ack(at, segment.ack);
        }
        let is_believed = segment.is_tcp() && self.believes(segment);
        self.is_regulated()
            && is_believed
            && (is_ack || segment.is_tcp() && segment.flags.intersects(Flags::SYN | Flags::RST))
    }

    /// Whether a segment from the mobile is inside the connection's window. A regulator does not see other ACKs, which
    /// pass unchanged: a far ACK number would release the sender for good.
    #[inline]
    fn believes(&mut self, segment: &Segment) -> bool {
        if segment.flags.intersects(Flags::SYN) && !segment.flags.contains(Flags::ACK) {
            self.numbers.on_syn(segment);
        }
        let has_number =
            segment.flags.contains(Flags::ACK) && !segment.flags.intersects(Flags::SYN | Flags::RST);
        !has_number || self.numbers.on_ack(segment)
    }

    /// Returns whether this ACK proves that the mobile has a connection. A SYN-ACK or RST proves nothing, because a
    /// mobile answers any packet from any sender with a SYN-ACK or RST.
    fn is_proven_by(&self, ack: &Segment) -> bool {
        !ack.flags.intersects(Flags::SYN | Flags::RST) && self.statistics.edge_rtt.covers(ack.ack)
    }

    /// Returns whether the flow ends with this segment, in either direction.
    pub(crate) fn ends_with(&self, segment: &Segment) -> bool {
        segment.flags.intersects(Flags::RST) || self.fin.is_some_and(|fin| !segment.ack.before(fin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack_regulator;
    use ackclock_core::Span;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn table(most: usize) -> FlowTable {
        FlowTable::new(std::sync::Arc::new(ack_regulator::Config::default()), most)
    }

    /// Processes a data segment of `flow` from the network. Returns the flow whose regulation ends.
    fn data(table: &mut FlowTable, ms: u64, flow: u32) -> Option<u32> {
        let segment = Segment::data(FlowId(flow), Seq(1000), 100, 40);
        let known = table.open(at(ms), FlowId(flow));
        known.on_data(&segment);
        known.statistics.edge_rtt.on_data(at(ms), &segment);
        let (surplus, _) = table.give_up()?;
        assert!(table.give_up().is_none());
        Some(surplus.0)
    }

    /// Anybody who knows addresses and ports can send such segments.
    #[test]
    fn numbers_outside_the_window_concern_no_regulator() {
        let mut table = table(3);
        data(&mut table, 0, 0);
        let flow = FlowId(0);
        let mut ack = Segment::pure_ack(flow, Seq(1100), 40);
        (ack.window, ack.flags) = (1000, Flags::ACK);
        ack.set_scale(Some(0));
        assert!(table.concerns_regulator(at(1), &ack));
        for far in [1101, 1 << 30] {
            ack.ack = Seq(far);
            assert!(!table.concerns_regulator(at(2), &ack), "{far}");
            assert!(
                !table.open(at(3), flow).on_data(&Segment::data(flow, Seq(2100 + far), 100, 40)),
                "{far}"
            );
        }
        // A regulator would begin anew at such a SYN.
        for flags in [Flags::SYN | Flags::ACK, Flags::SYN] {
            let mut syn = Segment::data(flow, Seq(7000), 0, 40);
            syn.flags = flags;
            assert!(!table.open(at(3), flow).on_data(&syn), "{flags:?}");
        }
        ack.ack = Seq(1200);
        assert!(table.open(at(4), flow).on_data(&Segment::data(flow, Seq(1100), 100, 40)));
        assert!(table.concerns_regulator(at(5), &ack));
        // Any RST passes the regulator, because the flow may end with it.
        (ack.ack, ack.flags) = (Seq(1 << 30), Flags::RST | Flags::ACK);
        assert!(table.concerns_regulator(at(6), &ack));
    }

    fn ack(table: &mut FlowTable, ms: u64, flow: u32, flags: Flags) {
        let mut ack = Segment::pure_ack(FlowId(flow), Seq(1100), 40);
        ack.flags = flags;
        table.concerns_regulator(at(ms), &ack);
    }

    #[test]
    fn the_one_that_was_quiet_for_longest_is_given_up_and_never_the_newest() {
        let mut table = table(3);
        let given_up: Vec<_> = (0..6).map(|flow| data(&mut table, flow.into(), flow)).collect();
        assert_eq!(given_up, [None, None, None, Some(0), Some(1), Some(2)]);
        // Flow 3 sends another segment, so flow 4 has been idle longest.
        assert_eq!(data(&mut table, 10, 3), None);
        assert_eq!(data(&mut table, 11, 6), Some(4));
    }

    #[test]
    fn a_scan_gives_up_no_flow_that_is_proven() {
        let mut table = table(8);
        for flow in 0..6 {
            data(&mut table, 0, flow);
            ack(&mut table, 1, flow, Flags::ACK);
        }
        // Replies to a scan are SYN-ACKs or RSTs, and prove nothing.
        for flow in 100..42_100 {
            let given_up = data(&mut table, u64::from(flow), flow);
            assert!(given_up.is_none_or(|given_up| given_up >= 100), "{given_up:?}");
            let answer = if flow % 2 == 0 { Flags::RST } else { Flags::SYN };
            ack(&mut table, u64::from(flow), flow, answer | Flags::ACK);
        }
        assert!((0..6).all(|flow| table.get(FlowId(flow)).unwrap().is_regulated()));
        let by_quiet = table.by_quiet.as_ref().unwrap();
        assert!(by_quiet.unproven.len() + by_quiet.proven.len() <= 2 * 8 + SLACK + 1);
    }

    #[test]
    fn of_proven_flows_beyond_three_quarters_the_quietest_is_given_up_for_good() {
        let mut table = table(4);
        for flow in 0..4 {
            data(&mut table, flow.into(), flow);
            ack(&mut table, 10 + u64::from(flow), flow, Flags::ACK);
        }
        ack(&mut table, 20, 0, Flags::ACK);
        assert_eq!(data(&mut table, 30, 4), Some(1));
        // Without a SYN, flow 1 is not regulated again.
        assert_eq!(data(&mut table, 31, 1), None);
        assert_eq!(data(&mut table, 32, 1), None);
        assert!(!table.get(FlowId(1)).unwrap().is_regulated());
    }

    #[test]
    fn a_flow_that_had_no_place_before_it_was_proven_is_admitted_with_more_of_its_data() {
        let mut table = table(2);
        data(&mut table, 0, 0);
        data(&mut table, 1, 1);
        assert_eq!(data(&mut table, 2, 2), Some(0));
        assert_eq!(data(&mut table, 3, 0), None);
        assert_eq!(data(&mut table, 4, 0), Some(1));
        assert!(table.get(FlowId(0)).unwrap().is_regulated());
    }

    #[test]
    fn flows_that_end_leave_their_places() {
        let mut table = table(2);
        for flow in 0..50 {
            assert_eq!(data(&mut table, flow.into(), flow), None);
            ack(&mut table, flow.into(), flow, Flags::ACK);
            assert!(table.end(FlowId(flow)).is_some());
        }
        assert_eq!((table.open, table.proven), (0, 0));
    }
}
