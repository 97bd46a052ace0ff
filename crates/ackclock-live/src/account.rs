//! Collects the results of a plane outside the data thread.
//!
//! However many connections there are, the data thread copies only a few at a time: current ones page by page, and each
//! finished one when its number is freed.

use std::sync::mpsc::Receiver;

use ackclock_core::Time;
use ackclock_core::results::{EngineResult, FairnessResult, LinkCounts, LinkResult, Provenance, RunResult};
use ackclock_link::LinkView;

use crate::namespace::DeviceCounters;
use crate::{FlowReport, Traffic};

/// Some of the connections that a plane knows.
#[derive(Clone, Debug)]
pub struct Page {
    /// Connections on this page.
    pub flows: Vec<FlowReport>,
    /// What follows this page.
    pub rest: Rest,
}

/// What follows a page.
#[derive(Clone, Debug)]
pub enum Rest {
    /// Another page, starting at this number.
    From(usize),
    /// No further page, but the summary.
    Nothing(Box<Summary>),
}

/// Results other than connections.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Time of the summary.
    pub now: Time,
    /// Downlink, with the total of its queues.
    pub down: LinkView,
    /// Counts at the link of each direction, in the order of [`Direction::BOTH`](ackclock_link::Direction::BOTH).
    pub links: [LinkCounts; 2],
    /// Counts of the engine.
    pub engine: EngineResult,
    /// Packets of each direction by their fate, in the same order.
    pub traffic: [Traffic; 2],
    /// Total of packets that belong to no listed connection.
    pub other: FlowReport,
    /// Total of connections that are not listed because there were too many.
    pub forgotten: Totals,
}

/// Sums over several connections.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Number of connections.
    pub flows: u64,
    /// Acknowledged payload, bytes.
    pub delivered_bytes: u64,
}

impl Totals {
    /// Adds a connection.
    pub fn add(&mut self, report: &FlowReport) {
        self.flows += 1;
        self.delivered_bytes += report.ways[report.sender() as usize].delivered_bytes;
    }
}

/// State of a link at one time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Current connections.
    pub flows: Vec<FlowReport>,
    /// Totals over all connections, finished ones included.
    pub totals: Totals,
    /// Results other than connections.
    pub summary: Summary,
}

/// Finished connections, and a way to query current ones.
#[derive(Debug)]
pub struct Account {
    ended: Receiver<FlowReport>,
    past: Vec<FlowReport>,
    totals: Totals,
    regulator: String,
    /// Drop counters of the TUN devices at both ends, if known.
    devices: Option<[DeviceCounters; 2]>,
}

impl Account {
    pub(crate) fn new(ended: Receiver<FlowReport>, regulator: String) -> Self {
        Self { ended, past: Vec::new(), totals: Totals::default(), regulator, devices: None }
    }

    /// Counts packets dropped by these devices as lost by the machine from now on; the wired side's device comes first.
    pub fn include_devices(&mut self, devices: [DeviceCounters; 2]) {
        self.devices = Some(devices);
    }

    /// Regulator of the connections.
    pub fn regulator(&self) -> &str {
        &self.regulator
    }

    /// Current state of the link. `page` is [`Plane::page`](crate::Plane::page); it returns `None` after the plane has
    /// ended.
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

    /// Results of a snapshot in the format of a simulated run. Each connection with ports has a row; a row named
    /// `other` has the remaining packets.
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

    /// Receives connections whose numbers were freed. One freed during paging is removed from the current connections.
    fn hear_of_the_past(&mut self, present: &mut Vec<FlowReport>) {
        let before = self.past.len();
        self.past.extend(self.ended.try_iter());
        let mut gone: Vec<u32> = self.past[before..].iter().map(|report| report.id).collect();
        self.past[before..].iter().for_each(|report| self.totals.add(report));
        gone.sort_unstable();
        present.retain(|report| gone.binary_search(&report.id).is_err());
    }
}
