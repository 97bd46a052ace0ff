//! Results of a plane, put together beside it.
//!
//! However many connections there were, the data thread copies only a few of them at a time: those that are known now come
//! page by page, those that have lost their number one by one, as they do.

use std::sync::mpsc::Receiver;

use ackclock_core::Time;
use ackclock_core::results::{EngineResult, FairnessResult, LinkCounts, LinkResult, Provenance, RunResult};
use ackclock_link::LinkView;

use crate::namespace::DeviceCounters;
use crate::{FlowReport, Traffic};

/// Some of the connections that a plane knows.
#[derive(Clone, Debug)]
pub struct Page {
    /// Those of this page.
    pub flows: Vec<FlowReport>,
    /// What is on the pages that follow.
    pub rest: Rest,
}

/// What follows a page.
#[derive(Clone, Debug)]
pub enum Rest {
    /// The page that begins at this number.
    From(usize),
    /// No further page.
    Nothing(Box<Summary>),
}

/// What is known beside connections.
#[derive(Clone, Debug)]
pub struct Summary {
    /// When it is known.
    pub now: Time,
    /// The link towards the mobiles, and what waits in all its queues.
    pub down: LinkView,
    /// What was counted at the link of each direction, in the order of [`Direction::BOTH`](ackclock_link::Direction::BOTH).
    pub links: [LinkCounts; 2],
    /// What the engine did.
    pub engine: EngineResult,
    /// What became of the packets of each direction, in the same order.
    pub traffic: [Traffic; 2],
    /// Packets of no connection that has a row, together.
    pub other: FlowReport,
    /// Connections that have no row, since there were too many.
    pub forgotten: Totals,
}

/// Several connections together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// How many there are.
    pub flows: u64,
    /// Payload that was acknowledged, bytes.
    pub delivered_bytes: u64,
}

impl Totals {
    /// Counts one more.
    pub fn add(&mut self, report: &FlowReport) {
        self.flows += 1;
        self.delivered_bytes += report.ways[report.sender() as usize].delivered_bytes;
    }
}

/// A link at an instant.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The connections that are known.
    pub flows: Vec<FlowReport>,
    /// All connections that there were.
    pub totals: Totals,
    /// What is known beside them.
    pub summary: Summary,
}

/// Connections of the past, and whoever asks for those of the present.
#[derive(Debug)]
pub struct Account {
    ended: Receiver<FlowReport>,
    past: Vec<FlowReport>,
    totals: Totals,
    regulator: String,
    /// Counters of the devices at the two sides, where they are known.
    devices: Option<[DeviceCounters; 2]>,
}

impl Account {
    pub(crate) fn new(ended: Receiver<FlowReport>, regulator: String) -> Self {
        Self { ended, past: Vec::new(), totals: Totals::default(), regulator, devices: None }
    }

    /// From now on what these devices dropped counts as lost by the machine: the one on the wired side first.
    pub fn include_devices(&mut self, devices: [DeviceCounters; 2]) {
        self.devices = Some(devices);
    }

    /// The regulator of the connections.
    pub fn regulator(&self) -> &str {
        &self.regulator
    }

    /// The link as it is now; `page` is [`Plane::page`](crate::Plane::page), and `None` where the plane is gone.
    pub fn snapshot(&mut self, mut page: impl FnMut(usize) -> Option<Page>) -> Option<Snapshot> {
        let mut flows = Vec::new();
        let mut from = 0;
        let mut summary = loop {
            let Page { flows: some, rest } = page(from)?;
            flows.extend(some);
            match rest {
                Rest::From(next) => from = next,
                Rest::Nothing(summary) => break *summary,
            }
        };
        for (traffic, device) in summary.traffic.iter_mut().zip(self.devices.iter_mut().flatten()) {
            traffic.lost.device = device.dropped().ok();
        }
        self.hear_of_the_past(&mut flows);
        let mut totals = self.totals;
        flows.iter().for_each(|flow| totals.add(flow));
        totals.flows += summary.forgotten.flows;
        totals.delivered_bytes += summary.forgotten.delivered_bytes;
        Some(Snapshot { flows, totals, summary })
    }

    /// Results of a snapshot, in the form of a simulated run, with a row for each connection that has ports, and one named `other`
    /// for the remaining packets.
    pub fn results(
        &self,
        Snapshot { flows: present, summary, .. }: &Snapshot,
        scenario: &str,
        seed: u64,
        provenance: Provenance,
    ) -> RunResult {
        let mut reports: Vec<&FlowReport> = self.past.iter().chain(present).collect();
        reports.sort_by_key(|report| report.id);
        let mut flows: Vec<_> = reports.iter().map(|report| report.result("real", &self.regulator)).collect();
        let fairness = FairnessResult::of(&[], &flows);
        if summary.other.packets > 0 {
            let id = flows.last().map_or(0, |row| row.id + 1);
            flows.push(FlowReport { id, ..summary.other }.result("real", &self.regulator));
        }
        let duration_s = summary.now.as_secs_f64();
        let [bottleneck, uplink] = [0, 1].map(|at: usize| LinkResult {
            real: Some(summary.traffic[at].result()),
            ..summary.links[at].result(duration_s)
        });
        RunResult {
            scenario: scenario.to_owned(),
            seed,
            run: 0,
            duration_s,
            fairness,
            flows,
            users: Vec::new(),
            transfers: Vec::new(),
            bottleneck,
            uplink,
            engine: summary.engine.clone(),
            provenance,
        }
    }

    /// Takes in connections that have lost their number. One that did while the others were paged through is not present any more.
    fn hear_of_the_past(&mut self, present: &mut Vec<FlowReport>) {
        let before = self.past.len();
        self.past.extend(self.ended.try_iter());
        let mut gone: Vec<u32> = self.past[before..].iter().map(|report| report.id).collect();
        self.past[before..].iter().for_each(|report| self.totals.add(report));
        gone.sort_unstable();
        present.retain(|report| gone.binary_search(&report.id).is_err());
    }
}
