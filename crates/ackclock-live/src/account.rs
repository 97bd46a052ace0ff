//! Collects the results of a data plane outside the data thread.
//!
//! The data thread copies only a few connections at a time, even if there are many: current connections page by page,
//! and each finished connection when its number is freed.

use std::sync::mpsc::Receiver;

use ackclock_core::Time;
use ackclock_core::results::{
    EngineResult, FairnessResult, ImpairedTraffic, LinkCounts, LinkResult, Provenance, RunResult,
};
use ackclock_link::LinkView;

use crate::namespace::DeviceCounters;
use crate::{FlowReport, Traffic};

/// One page of the connections in a data plane.
#[derive(Clone, Debug)]
pub struct Page {
    /// Connections on this page.
    pub flows: Vec<FlowReport>,
    /// Start of the next page, or the summary after the last page.
    pub rest: Rest,
}

/// Data that follows a page.
#[derive(Clone, Debug)]
pub enum Rest {
    /// Number of the connection at which the next page starts.
    From(usize),
    /// Summary that follows the last page.
    Nothing(Box<Summary>),
}

/// Results of a data plane other than its connections.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Time at which the summary was taken.
    pub now: Time,
    /// State of the downlink, with the total of its queues.
    pub down: LinkView,
    /// Counters at the link of each direction, in the order of [`Direction::BOTH`](ackclock_link::Direction::BOTH).
    pub links: [LinkCounts; 2],
    /// Counters of the simulation engine.
    pub engine: EngineResult,
    /// Packet counts of each direction by fate, in the order of [`Direction::BOTH`](ackclock_link::Direction::BOTH).
    pub traffic: [Traffic; 2],
    /// Payload delivered in each direction, bytes, in the order of
    /// [`Direction::BOTH`](ackclock_link::Direction::BOTH). Only the payload of packets without a connection includes
    /// headers.
    pub delivered: [u64; 2],
    /// Totals of packets that belong to no listed connection.
    pub other: FlowReport,
    /// Totals of connections that are not listed, because there were too many.
    pub forgotten: Totals,
}

/// Sums of counters over several connections.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Number of connections in the totals.
    pub flows: u64,
    /// Acknowledged payload of the connections, bytes.
    pub delivered_bytes: u64,
}

impl Totals {
    /// Adds a connection to the totals.
    pub fn add(&mut self, report: &FlowReport) {
        self.flows += 1;
        self.delivered_bytes += report.ways[report.sender() as usize].delivered_bytes;
    }
}

/// State of a link at one time.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Connections that were open at the time of the snapshot.
    pub flows: Vec<FlowReport>,
    /// Totals over all connections, current and finished.
    pub totals: Totals,
    /// Results of the link other than its connections.
    pub summary: Summary,
}

/// Record of finished connections, with a way to query current connections.
#[derive(Debug)]
pub struct Account {
    ended: Receiver<FlowReport>,
    past: Vec<FlowReport>,
    totals: Totals,
    regulator: String,
    /// Drop counters of the TUN devices at the two ends of the link, if known.
    devices: Option<[DeviceCounters; 2]>,
}

impl Account {
    pub(crate) fn new(ended: Receiver<FlowReport>, regulator: String) -> Self {
        Self { ended, past: Vec::new(), totals: Totals::default(), regulator, devices: None }
    }

    /// Adds the TUN devices at the two ends of the link, the wired side's first. From now on, packets dropped by the
    /// devices count as lost by the machine.
    pub fn include_devices(&mut self, devices: [DeviceCounters; 2]) {
        self.devices = Some(devices);
    }

    /// Name of the regulator of the connections.
    pub fn regulator(&self) -> &str {
        &self.regulator
    }

    /// Returns the current state of the link, or `None` after the plane has ended. The argument `page` must call
    /// [`Plane::page`](crate::Plane::page).
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

    /// Converts a snapshot to results in the format of a simulated run. Each connection with ports has a row; a row
    /// named `other` has the remaining packets.
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
        if summary.other.packets > 0 {
            let id = flows.last().map_or(0, |row| row.id + 1);
            flows.push(FlowReport { id, ..summary.other.clone() }.result("real", &self.regulator));
        }
        let duration_s = summary.now.as_secs_f64();
        let [bottleneck, uplink] = [0, 1].map(|at: usize| {
            let (link, traffic) = (summary.links[at].result(duration_s), &summary.traffic[at]);
            // The plane knows which real packets have a payload, so its count of corrupted packets replaces the link's
            // count.
            let corrupted = traffic.corrupted;
            let impaired = link.impaired.map(|impaired| ImpairedTraffic { corrupted, ..impaired });
            LinkResult { impaired, real: Some(traffic.result()), ..link }
        });
        RunResult {
            scenario: scenario.to_owned(),
            seed,
            run: 0,
            duration_s,
            fairness: FairnessResult::default(),
            flows,
            users: Vec::new(),
            transfers: Vec::new(),
            bottleneck,
            uplink,
            faults: Vec::new(),
            engine: summary.engine.clone(),
            provenance,
        }
    }

    /// Receives finished connections, whose numbers were freed. A connection that finished during paging is removed
    /// from the current connections.
    fn hear_of_the_past(&mut self, present: &mut Vec<FlowReport>) {
        let before = self.past.len();
        self.past.extend(self.ended.try_iter());
        let mut gone: Vec<u32> = self.past[before..].iter().map(|report| report.id).collect();
        self.past[before..].iter().for_each(|report| self.totals.add(report));
        gone.sort_unstable();
        present.retain(|report| gone.binary_search(&report.id).is_err());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use ackclock_edge::EdgeConfig;
    use ackclock_link::NoFiles;

    use super::*;
    use crate::{Plane, PlaneConfig};

    const CONNECTIONS: usize = 4;

    /// Connection `id`, which has delivered 10^id bytes.
    fn report(id: usize) -> FlowReport {
        let mut report = FlowReport { id: id as u32, packets: 1, ..FlowReport::default() };
        let sender = report.sender() as usize;
        report.ways[sender].delivered_bytes = 10u64.pow(id as u32);
        report
    }

    /// One connection a page; each ends before the page of its number in `ends` is taken, or does not end.
    fn counted(ends: [usize; CONNECTIONS]) -> (Snapshot, RunResult) {
        let mut plane = Plane::new(&PlaneConfig::new(&EdgeConfig::default()), &NoFiles).unwrap();
        let (ended, receiver) = channel();
        let mut account = Account::new(receiver, "none".to_owned());
        let snapshot = account.snapshot(|from| {
            let now: Vec<_> = (0..CONNECTIONS).filter(|&id| ends[id] == from).collect();
            now.into_iter().for_each(|id| ended.send(report(id)).unwrap());
            let flows = if ends[from] > from { vec![report(from)] } else { Vec::new() };
            let last = from + 1 == CONNECTIONS;
            let rest = if last { Rest::Nothing(Box::new(plane.summary())) } else { Rest::From(from + 1) };
            Some(Page { flows, rest })
        });
        let snapshot = snapshot.unwrap();
        let result = account.results(&snapshot, "test", 1, Provenance::default());
        (snapshot, result)
    }

    #[test]
    fn a_connection_counts_once_whenever_it_ends_between_two_pages() {
        for case in 0..(CONNECTIONS + 1).pow(CONNECTIONS as u32) {
            let ends: [usize; CONNECTIONS] =
                std::array::from_fn(|id| case / (CONNECTIONS + 1).pow(id as u32) % (CONNECTIONS + 1));
            let (snapshot, result) = counted(ends);
            assert_eq!((snapshot.totals.flows, snapshot.totals.delivered_bytes), (4, 1111), "{ends:?}");
            let rows: Vec<u32> = result.flows.iter().map(|row| row.id).collect();
            assert_eq!(rows, [0, 1, 2, 3], "{ends:?}");
            let open = ends.iter().filter(|&&end| end == CONNECTIONS).count();
            assert_eq!(snapshot.flows.len(), open, "{ends:?}");
        }
    }
}
