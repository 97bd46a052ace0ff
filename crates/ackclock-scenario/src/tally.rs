//! Reads the counters of a finished graph into results.

use std::collections::BTreeMap;
use std::sync::Arc;

use ackclock_core::results::{
    Distribution, EngineResult, FairnessResult, FlowResult, LinkCounts, LossCycles, RunResult, UserResult,
};
use ackclock_core::{FlowId, Span, Time, name_of};
use ackclock_edge::Edge;
use ackclock_link::Direction;
use ackclock_tcp::{Receiver, Sender, SenderStats};

use crate::Scenario;
use crate::island::{Boxes, Builder, Executor, Group};
use crate::plan::FlowPlan;
use crate::traffic::Counts;
use crate::transfers::Transfers;

/// What is known of a run so far.
pub(crate) struct Tally {
    duration: Span,
    regulator: String,
    flows: Vec<FlowResult>,
    users: BTreeMap<u32, Counts>,
    transfers: Transfers,
    /// By direction.
    links: [LinkCounts; 2],
    delivered: u64,
    events: u64,
}

impl Tally {
    /// Nothing counted yet of so many flows.
    pub(crate) fn new(builder: &Builder<'_>, flows: usize) -> Self {
        Self {
            duration: builder.tables.duration,
            regulator: name_of(&builder.tables.edge.regulator),
            flows: Vec::with_capacity(flows),
            users: BTreeMap::new(),
            transfers: Transfers::default(),
            links: Default::default(),
            delivered: 0,
            events: 0,
        }
    }

    /// Reads the counters of islands that have come to their end.
    pub(crate) fn read(
        &mut self,
        executor: &mut impl Executor,
        islands: &[&[FlowPlan]],
        groups: &[Arc<Group>],
    ) {
        for (island, flows) in islands.iter().enumerate() {
            let (Boxes { servers, edge, clients, .. }, traffic) = executor.island(island);
            self.delivered += edge.statistics().delivered;
            self.transfers.merge(&traffic.transfers());
            for (user, counts) in traffic.counts(servers, clients) {
                self.users.entry(user).or_default().add(&counts);
            }
            for (number, plan) in flows.iter().enumerate() {
                let id = FlowId(number as u32);
                self.users.entry(plan.user).or_default();
                if let (Some(sender), Some(receiver)) = (servers.sender(id), clients.receiver(id)) {
                    let flow = self.flow(plan, &groups[plan.group], (sender, receiver), edge, id);
                    self.users.entry(flow.user).or_default().add(&Counts::of(sender, receiver));
                    self.flows.push(flow);
                }
            }
            for (direction, sum) in Direction::BOTH.into_iter().zip(&mut self.links) {
                *sum += &edge.link_counts(Time::ZERO + self.duration, direction);
            }
        }
        self.events += executor.events();
    }

    /// The results of everything that was read.
    pub(crate) fn result(self, scenario: &Scenario, run: u32) -> RunResult {
        let seconds = self.duration.as_secs_f64();
        let [down, up] = &self.links;
        let users: Vec<_> = self.users.iter().map(|(&id, counts)| user(id, counts, seconds)).collect();
        RunResult {
            scenario: scenario.name().to_owned(),
            seed: scenario.tables().seed,
            run,
            duration_s: seconds,
            fairness: FairnessResult::of(&users, &self.flows),
            flows: self.flows,
            users,
            transfers: self.transfers.rows(),
            bottleneck: down.result(seconds),
            uplink: up.result(seconds),
            engine: EngineResult { events: self.events, packets: self.delivered, cpu_s: None },
            provenance: scenario.provenance(),
        }
    }

    fn flow(
        &self,
        plan: &FlowPlan,
        group: &Group,
        (sender, receiver): (&dyn Sender, &Receiver),
        edge: &Edge,
        at_edge: FlowId,
    ) -> FlowResult {
        let stats = sender.stats();
        let finished = receiver.finished_at();
        let active = finished.unwrap_or(Time::ZERO + self.duration).since(plan.start).as_secs_f64();
        let per_second = |bytes: u64| (active > 0.0).then(|| bytes as f64 * 8.0 / active);
        let ms = |span: Option<Span>| span.map(Span::as_millis_f64);
        FlowResult {
            id: plan.id,
            user: plan.user,
            sender: group.sender_name.clone(),
            goodput_bps: per_second(receiver.delivered_bytes()),
            wire_goodput_bps: per_second(receiver.delivered_wire_bytes()),
            delivered_bytes: receiver.delivered_bytes(),
            segments_sent: stats.segments_sent,
            retransmits: stats.retransmits,
            fast_retransmits: Some(stats.fast_retransmits),
            timeouts: Some(stats.timeouts),
            spurious_timeouts: stats.spurious_timeouts.map(u64::from),
            rtt_ms: Distribution::from(&stats.rtt),
            timed_rtt_ms: ms(stats.timed_rtt()),
            edge_rtt_ms: ms(edge.flow_statistics(at_edge).and_then(|flow| flow.edge_rtt.mean())),
            completion_s: finished.map(|at| at.since(plan.start).as_secs_f64()),
            regulator: self.regulator.clone(),
            rto_ms_mean: ms(stats.rto_mean()),
            loss_cycles: loss_cycles(stats),
            real: None,
        }
    }
}

/// What a user got, over a run of so many seconds.
fn user(id: u32, counts: &Counts, seconds: f64) -> UserResult {
    let per_second = |bytes: u64| bytes as f64 * 8.0 / seconds;
    UserResult {
        id,
        flows: counts.flows,
        goodput_bps: per_second(counts.delivered_bytes),
        wire_goodput_bps: per_second(counts.delivered_wire_bytes),
        delivered_bytes: counts.delivered_bytes,
        segments_sent: counts.segments_sent,
        retransmits: counts.retransmits,
        timeouts: counts.timeouts,
    }
}

fn loss_cycles(stats: &SenderStats) -> Option<LossCycles> {
    let [p1, p2, p3] = stats.loss_cycles.shares()?;
    let cycles = stats.loss_cycles.counts().iter().sum();
    Some(LossCycles { cycles, p1, p2, p3, wf: stats.loss_cycles.loss_window() })
}
