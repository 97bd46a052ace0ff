//! Collects the counters of finished islands into results.

use std::collections::BTreeMap;
use std::sync::Arc;

use ackclock_core::results::{
    Distribution, EngineResult, FairnessResult, FlowResult, LegResult, LinkCounts, LossCycles, MediaResult,
    RadioCounts, RelayResult, RunResult, UserRadioResult, UserResult,
};
use ackclock_core::{FlowId, Histogram, Span, Time, name_of};
use ackclock_edge::EdgeConfig;
use ackclock_link::Direction;
use ackclock_tcp::{MediaReceiver, MediaSender, Sender, SenderStats};

use crate::active::ActiveCapacity;
use crate::island::boxes::Boxes;
use crate::island::group::Group;
use crate::island::{Builder, Executor};
use crate::link_share::direction_of;
use crate::plan::FlowPlan;
use crate::probe::Measured;
use crate::traffic::{Counts, Traffic};
use crate::transfers::Transfers;
use crate::{Measure, Scenario};

/// Results of a run collected so far.
pub(crate) struct Tally {
    duration: Span,
    /// Names of the regulators that act on the flows, by direction of the data; `None` for a direction without a
    /// regulator.
    regulators: [Option<String>; 2],
    /// Function that summarises the RTT samples of a flow.
    rtts: fn(&Histogram) -> Distribution,
    flows: Vec<FlowResult>,
    users: BTreeMap<u32, Counts>,
    /// Counters of the radio network of each user, by direction, if `measure` contains `radio`.
    radio: Option<BTreeMap<u32, [RadioCounts; 2]>>,
    transfers: Transfers,
    /// Link counters by direction, with the time that they cover.
    links: [(LinkCounts, CoveredTime); 2],
    /// In-order payload delivered by direction, bytes; `None` for a direction without flows.
    payload: [Option<u64>; 2],
    rates: Option<FairRates>,
    delivered: u64,
    events: u64,
}

impl Tally {
    /// Creates an empty tally for `flows` flows.
    pub(crate) fn new(builder: &Builder<'_>, flows: usize) -> Self {
        Self {
            duration: builder.tables.duration,
            regulators: regulators(&builder.tables.edge),
            rtts: match builder.tables.measure.contains(&Measure::Rtt) {
                true => Distribution::with_cdf,
                false => |rtts| Distribution::from(rtts),
            },
            flows: Vec::with_capacity(flows),
            users: BTreeMap::new(),
            radio: builder.tables.measure.contains(&Measure::Radio).then(BTreeMap::new),
            transfers: Transfers::default(),
            links: Default::default(),
            payload: [None; 2],
            rates: Some(FairRates::default()),
            delivered: 0,
            events: 0,
        }
    }

    /// Adds the counters of finished islands to the tally.
    pub(crate) fn read(
        &mut self,
        executor: &mut dyn Executor,
        islands: &[&[FlowPlan]],
        groups: &[Arc<Group>],
    ) {
        for (island, flows) in islands.iter().enumerate() {
            let ids = || (0..flows.len() as u32).map(FlowId);
            let mut measured: Vec<Measured> = ids()
                .map(|id| executor.probe().map_or_else(Measured::default, |probe| probe.measured(island, id)))
                .collect();
            let (mut boxes, traffic) = executor.island(island);
            self.delivered += boxes.queue().statistics().delivered;
            self.transfers.merge(&traffic.transfers());
            for (user, counts) in traffic.counts(&boxes) {
                self.users.entry(user).or_default().add(&counts);
            }
            self.read_payload(flows, groups, traffic.payload(&boxes), &boxes);
            self.read_rates(flows, traffic, &boxes);
            for (number, plan) in flows.iter().enumerate() {
                let id = FlowId(number as u32);
                self.users.entry(plan.user).or_default();
                if let Some(mut flow) = self.row(plan, &groups[plan.group], &boxes, id) {
                    std::mem::take(&mut measured[number]).into_row(&mut flow);
                    flow.link = traffic.link_share(id);
                    self.users.entry(flow.user).or_default().add(&Counts::of(id, &boxes));
                    self.flows.push(flow);
                }
            }
            for (direction, sum) in Direction::BOTH.into_iter().zip(&mut self.links) {
                let end = Time::ZERO + self.duration;
                let mut counts = link_counts(&mut boxes, end, direction);
                let active = traffic.active().could(end, direction, &mut boxes);
                sum.1.add(&mut counts, active, self.duration);
                sum.0 += &counts;
            }
            self.read_radio(&mut boxes, flows);
        }
        self.events += executor.events();
    }

    /// Adds the payload of an island's flows by direction, `clients` being that of short connections.
    fn read_payload(
        &mut self,
        flows: &[FlowPlan],
        groups: &[Arc<Group>],
        clients: [u64; 2],
        boxes: &Boxes<'_>,
    ) {
        for (number, plan) in flows.iter().enumerate() {
            let bytes = boxes.delivered(FlowId(number as u32)).map_or(0, |payload| payload.bytes);
            let direction = direction_of(groups[plan.group].table.towards) as usize;
            *self.payload[direction].get_or_insert(0) += bytes;
        }
        self.payload.iter_mut().flatten().zip(clients).for_each(|(sum, bytes)| *sum += bytes);
    }

    /// Adds the rates of an island in the common time of its flows.
    fn read_rates(&mut self, flows: &[FlowPlan], traffic: &Traffic, boxes: &Boxes<'_>) {
        let rates = traffic.common().rates(Time::ZERO + self.duration, &traffic.delivered(boxes));
        let (Some(sums), Some(rates)) = (&mut self.rates, rates) else {
            self.rates = None;
            return;
        };
        for ((number, plan), rate) in flows.iter().enumerate().zip(rates.flows) {
            *sums.users.entry(plan.user).or_default() += rate;
            if boxes.delivered(FlowId(number as u32)).is_some() {
                sums.flows.push(rate);
            }
        }
        rates.clients.iter().for_each(|(&user, rate)| *sums.users.entry(user).or_default() += rate);
    }

    /// Adds the counters of the radio network of the users of these flows, if they are measured.
    fn read_radio(&mut self, boxes: &mut Boxes<'_>, flows: &[FlowPlan]) {
        let Some(users) = &mut self.radio else { return };
        for &FlowPlan { user, cell_user, .. } in flows {
            let queue = boxes.queue();
            let counts = Direction::BOTH.map(|direction| queue.radio_of(direction, cell_user));
            if let [Some(down), Some(up)] = counts {
                users.insert(user, [down, up]);
            }
        }
    }

    /// Results of all islands added so far.
    pub(crate) fn result(self, scenario: &Scenario, run: u32) -> RunResult {
        let seconds = self.duration.as_secs_f64();
        let mut payload = self.payload.into_iter();
        let [bottleneck, uplink] = self
            .links
            .map(|(counts, over)| counts.result(over.seconds()).with_payload(payload.next().flatten()));
        let radio = |id: &u32| {
            let [down, up] = self.radio.as_ref()?.get(id)?.each_ref().map(RadioCounts::result);
            Some(Box::new(UserRadioResult { down, up }))
        };
        let with_radio = |(&id, counts)| UserResult { radio: radio(&id), ..user(id, counts, seconds) };
        let users: Vec<_> = self.users.iter().map(with_radio).collect();
        RunResult {
            scenario: scenario.name().to_owned(),
            seed: scenario.tables().seed,
            run,
            duration_s: seconds,
            fairness: self.rates.as_ref().map_or_else(FairnessResult::default, FairRates::result),
            flows: self.flows,
            users,
            transfers: self.transfers.rows(&scenario.tables().measure),
            bottleneck,
            uplink,
            faults: Vec::new(),
            engine: EngineResult { events: self.events, packets: self.delivered, cpu_s: None },
            provenance: scenario.provenance(),
        }
    }

    /// Result row of a flow; `None` for a client with short connections.
    fn row(&self, plan: &FlowPlan, group: &Group, boxes: &Boxes<'_>, id: FlowId) -> Option<FlowResult> {
        let media = boxes.media(id).map(|ends| self.media(plan, group, ends));
        media.or_else(|| self.flow(plan, group, boxes, id))
    }

    /// Result row of a TCP flow; `None` for a client with short connections.
    fn flow(&self, plan: &FlowPlan, group: &Group, boxes: &Boxes<'_>, id: FlowId) -> Option<FlowResult> {
        let (sender, receiver) = (boxes.sender(id)?, boxes.receiver(id)?);
        let stats = sender.stats();
        let counts = Counts::of(id, boxes);
        let finished = receiver.finished_at();
        let active = finished.unwrap_or(Time::ZERO + self.duration).since(plan.start).as_secs_f64();
        let per_second = |bytes: u64| (active > 0.0).then(|| bytes as f64 * 8.0 / active);
        let ms = |span: Option<Span>| span.map(Span::as_millis_f64);
        let spurious = boxes.senders(id).map(|sender| sender.stats().spurious_timeouts.map(u64::from));
        Some(FlowResult {
            id: plan.id,
            user: plan.user,
            towards: group.table.towards,
            sender: group.sender_name.clone(),
            goodput_bps: per_second(receiver.delivered_bytes()),
            wire_goodput_bps: per_second(receiver.delivered_wire_bytes()),
            delivered_bytes: receiver.delivered_bytes(),
            segments_sent: counts.segments_sent,
            retransmits: Some(counts.retransmits),
            fast_retransmits: Some(boxes.senders(id).map(|sender| sender.stats().fast_retransmits).sum()),
            timeouts: Some(counts.timeouts),
            spurious_timeouts: spurious.sum(),
            rtt_ms: (self.rtts)(&stats.rtt),
            timed_rtt_ms: ms(stats.timed_rtt()),
            edge_rtt_ms: ms(boxes.edge.flow_statistics(id).and_then(|flow| flow.edge_rtt.mean())),
            completion_s: finished.map(|at| at.since(plan.start).as_secs_f64()),
            regulator: self.regulators[direction_of(group.table.towards) as usize].clone(),
            rto_ms_mean: ms(stats.rto_mean()),
            loss_cycles: loss_cycles(stats),
            link: None,
            spurious: None,
            transit_ms: None,
            ack_gap_ms: None,
            relay: relay(group, boxes, id).map(Box::new),
            media: None,
            real: None,
        })
    }

    /// Result row of a media flow with these ends.
    fn media(&self, plan: &FlowPlan, group: &Group, ends: (&MediaSender, &MediaReceiver)) -> FlowResult {
        let (sender, receiver) = ends;
        let end = Time::ZERO + self.duration;
        let active = end.since(plan.start).as_secs_f64();
        let per_second = |bytes: u64| (active > 0.0).then(|| bytes as f64 * 8.0 / active);
        FlowResult {
            id: plan.id,
            user: plan.user,
            towards: group.table.towards,
            sender: GCC.to_owned(),
            goodput_bps: per_second(receiver.delivered_bytes()),
            wire_goodput_bps: per_second(receiver.delivered_wire_bytes()),
            delivered_bytes: receiver.delivered_bytes(),
            segments_sent: sender.stats().packets,
            retransmits: Some(sender.stats().retransmits),
            fast_retransmits: None,
            timeouts: None,
            spurious_timeouts: None,
            rtt_ms: (self.rtts)(&sender.stats().rtt),
            timed_rtt_ms: None,
            edge_rtt_ms: None,
            completion_s: None,
            regulator: self.regulators[direction_of(group.table.towards) as usize].clone(),
            rto_ms_mean: None,
            loss_cycles: None,
            link: None,
            spurious: None,
            transit_ms: None,
            ack_gap_ms: None,
            relay: None,
            media: Some(Box::new(media(sender, receiver, end))),
            real: None,
        }
    }
}

/// Name of the sender of a media flow in results.
const GCC: &str = "gcc";

fn media(sender: &MediaSender, receiver: &MediaReceiver, end: Time) -> MediaResult {
    let frames = receiver.frames();
    let (freezes, frozen) = frames.freezes(end);
    MediaResult {
        target_bps: sender.mean_target_bps(end),
        frames: sender.frames().into(),
        key_frames: sender.stats().key_frames,
        frames_shown: frames.shown,
        frames_lost: frames.lost,
        frame_delay_ms: Distribution::from(&frames.delay),
        freezes,
        freeze_s: frozen.as_secs_f64(),
        packets_received: receiver.packets(),
    }
}

/// Name of the regulator that acts on the data of each direction. If two regulators act on uploads, the mobile's
/// regulator is named.
fn regulators(edge: &EdgeConfig) -> [Option<String>; 2] {
    let down = Some(name_of(&edge.regulator));
    let up = edge.up_regulator.as_ref().map(|regulator| name_of(regulator)).filter(|name| name != "none");
    let up = up.or_else(|| down.clone().filter(|_| edge.regulates_uploads()));
    [down, up]
}

/// Goodputs in the common time of the flows that share a link, bit/s.
#[derive(Default)]
struct FairRates {
    flows: Vec<f64>,
    users: BTreeMap<u32, f64>,
}

impl FairRates {
    fn result(&self) -> FairnessResult {
        FairnessResult::of(&self.users.values().copied().collect::<Vec<_>>(), &self.flows)
    }
}

/// Time during which islands had flows, and the link capacity during that time.
#[derive(Clone, Copy, Default)]
struct CoveredTime {
    shortest_and_longest: Option<(Span, Span)>,
    bits: f64,
    bps: f64,
}

impl CoveredTime {
    /// Adds the active time of an island to the sums. Limits the capacity and the delivered bytes in `counts` to the time
    /// in which the island had flows.
    fn add(&mut self, counts: &mut LinkCounts, active: Option<ActiveCapacity>, duration: Span) {
        let ActiveCapacity { bits, time, delivered_bytes } = active.unwrap_or_else(|| ActiveCapacity {
            bits: counts.capacity_bps.unwrap_or(0.0) * duration.as_secs_f64(),
            time: duration,
            delivered_bytes: None,
        });
        if active.is_some() {
            counts.capacity_bps = counts.capacity_bps.map(|_| bits / time.as_secs_f64());
        }
        // Utilisation compares bytes and capacity of the same time.
        counts.delivered_bytes = delivered_bytes.unwrap_or(counts.delivered_bytes);
        let (shortest, longest) = self.shortest_and_longest.unwrap_or((time, time));
        self.shortest_and_longest = Some((shortest.min(time), longest.max(time)));
        self.bits += bits;
        self.bps += counts.capacity_bps.unwrap_or(0.0);
    }

    /// Time during which islands had flows, averaged with the islands' rates as weights. Utilisation refers to the time
    /// with flows.
    fn seconds(&self) -> f64 {
        match self.shortest_and_longest {
            Some((shortest, longest)) if shortest < longest => self.bits / self.bps,
            Some((same, _)) => same.as_secs_f64(),
            None => 0.0,
        }
    }
}

/// Link counters of one direction, read from the box with the queue; regulator counters are read from the edge.
fn link_counts(boxes: &mut Boxes<'_>, until: Time, direction: Direction) -> LinkCounts {
    let counts = boxes.edge.link_counts(until, direction);
    boxes.queue().link_counts(until, direction).regulated_by(&counts)
}

/// Relay results of a flow; `None` without a relay.
fn relay(group: &Group, boxes: &Boxes<'_>, id: FlowId) -> Option<RelayResult> {
    let relay = &boxes.relay.as_ref()?.relay;
    let far = leg(&group.sender_name, boxes.sender(id)?);
    let near = leg(group.relay_sender_name()?, relay.sender(id)?);
    Some(RelayResult { most_buffered_bytes: relay.most_buffered_bytes(id), legs: [far, near] })
}

fn leg(name: &str, sender: &dyn Sender) -> LegResult {
    let stats = sender.stats();
    LegResult {
        sender: name.to_owned(),
        acknowledged_bytes: sender.acknowledged(),
        segments_sent: stats.segments_sent,
        retransmits: stats.retransmits,
        fast_retransmits: stats.fast_retransmits,
        timeouts: stats.timeouts,
        spurious_timeouts: stats.spurious_timeouts.map(u64::from),
        rtt_ms: Distribution::from(&stats.rtt),
        transit_ms: None,
    }
}

/// Results of one user in a run of `seconds` seconds.
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
        radio: None,
    }
}

fn loss_cycles(stats: &SenderStats) -> Option<LossCycles> {
    let [p1, p2, p3] = stats.loss_cycles.shares()?;
    let cycles = stats.loss_cycles.counts().iter().sum();
    Some(LossCycles { cycles, p1, p2, p3, wf: stats.loss_cycles.loss_window() })
}
