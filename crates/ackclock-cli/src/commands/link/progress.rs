//! Status displays of a running link: a line on the terminal, and a page of Prometheus metrics.

use std::io::{self, IsTerminal, Write};

use ackclock_core::results::LinkCounts;
use ackclock_core::{Span, Time};
use ackclock_link::LinkView;
use ackclock_live::metrics::{Kind, Labels, Page};
use ackclock_live::{FlowReport, Snapshot, Summary};

/// Round-trip time of the flow that delivered the most bytes.
fn round_trip(snapshot: &Snapshot) -> Option<Span> {
    snapshot.flows.iter().max_by_key(|flow| delivered(flow))?.edge_rtt
}

/// Acknowledged payload of a flow in its main direction, bytes.
fn delivered(flow: &FlowReport) -> u64 {
    flow.ways[flow.sender() as usize].delivered_bytes
}

/// Destination of a running link's status display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The status is shown in a terminal line to which nothing else writes.
    Line,
    /// The status is shown in the terminal's title, because the command writes to the terminal.
    Title,
    /// The status is not shown, because there is no terminal.
    Nowhere,
}

impl Place {
    /// Chooses the destination of the status display. Shells and commands with visible output keep the terminal to
    /// themselves.
    pub(super) fn of(shell: bool) -> Self {
        match (io::stderr().is_terminal(), shell || io::stdout().is_terminal()) {
            (false, _) => Self::Nowhere,
            (true, true) => Self::Title,
            (true, false) => Self::Line,
        }
    }
}

/// Status display of a running link.
pub(super) struct Progress {
    place: Place,
    /// Time of the last update of the status display, and the bytes delivered until then.
    before: (Time, u64),
}

impl Progress {
    pub(super) fn begin(place: Place) -> Self {
        if place == Place::Title {
            // This escape sequence saves the terminal's title.
            print("\x1b[22;2t");
        }
        Self { place, before: (Time::ZERO, 0) }
    }

    pub(super) fn is_shown(&self) -> bool {
        self.place != Place::Nowhere
    }

    pub(super) fn show(&mut self, snapshot: &Snapshot) {
        let (now, has) = (snapshot.summary.now, snapshot.totals.delivered_bytes);
        let (then, had) = std::mem::replace(&mut self.before, (now, has));
        let seconds = now.since(then).as_secs_f64().max(1e-3);
        let goodput = has.saturating_sub(had) as f64 * 8.0 / seconds;
        let line = line(snapshot, goodput);
        match self.place {
            Place::Line => print(&format!("\r\x1b[K{line}")),
            Place::Title => print(&format!("\x1b]2;{line}\x07")),
            Place::Nowhere => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        match self.place {
            Place::Line => print("\r\x1b[K"),
            Place::Title => print("\x1b[23;2t"),
            Place::Nowhere => {}
        }
    }
}

fn line(snapshot: &Snapshot, goodput: f64) -> String {
    let LinkView { waiting, rate, .. } = snapshot.summary.down;
    let rtt =
        round_trip(snapshot).map_or_else(|| "-".to_owned(), |rtt| format!("{:.0} ms", rtt.as_millis_f64()));
    let megabits = |bps: f64| format!("{:.2} Mbit/s", bps / 1e6);
    format!(
        "link {}, queue {} packets, goodput {}, RTT {rtt}",
        megabits(rate.as_bps() as f64),
        waiting.packets,
        megabits(goodput),
    )
}

fn print(text: &str) {
    let mut out = io::stderr().lock();
    // Write errors of a closed terminal are ignored.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Returns the page of a link's metrics in the base units of Prometheus: seconds and bytes.
pub(super) fn page(snapshot: &Snapshot, regulator: &str) -> String {
    let Snapshot { flows, totals, summary } = snapshot;
    let mut page = Page::default();
    of_link(&mut page, summary, flows.iter().map(|flow| flow.held).sum());
    let one = |value: u64| [(Labels::new(), Some(value as f64))];
    page.metric(Kind::Counter, "flows_total", "Connections that there were.", one(totals.flows))
        .metric(Kind::Gauge, "flows", "Connections that are known.", one(flows.len() as u64))
        .metric(
            Kind::Counter,
            "delivered_payload_bytes_total",
            "Payload acknowledged, of all connections.",
            one(totals.delivered_bytes),
        );
    of_flows(&mut page, flows, regulator);
    page.text().to_owned()
}

/// Adds the metrics of the current connections that delivered the most bytes. Each connection is labelled with its
/// number in the results.
fn of_flows(page: &mut Page, flows: &[FlowReport], regulator: &str) {
    let mut shown: Vec<_> = flows.iter().collect();
    shown.sort_by_key(|flow| (std::cmp::Reverse(delivered(flow)), flow.id));
    shown.truncate(FLOWS_SHOWN);
    let number = |flow: &FlowReport| ("flow", flow.id.to_string());
    let ends = |flow: &&FlowReport| {
        let real = flow.real();
        let labels = vec![
            number(flow),
            ("protocol", real.protocol),
            ("from", real.from.unwrap_or_default()),
            ("to", real.to.unwrap_or_default()),
            ("regulator", regulator.to_owned()),
        ];
        (labels, Some(1.0))
    };
    page.metric(Kind::Gauge, "flow_info", "What a flow is: always 1.", shown.iter().map(ends));
    for (kind, name, help, value) in FLOW_METRICS {
        page.metric(kind, name, help, shown.iter().map(|flow| (vec![number(flow)], value(flow))));
    }
}

/// Maximum number of connections with separate metrics.
const FLOWS_SHOWN: usize = 100;

fn of_link(page: &mut Page, summary: &Summary, held: usize) {
    let Summary { now, down, links, traffic, engine, .. } = summary;
    let seconds = [(Labels::new(), Some(now.as_secs_f64()))];
    let rate = [way("down", down.rate.as_bps() as f64 / 8.0)];
    let delivered = [way("down", engine.packets as f64)];
    let both = |of: fn(&LinkCounts) -> u64| [0, 1].map(|at| way(WAYS[at], of(&links[at]) as f64));
    let (dropped, bytes) = (both(|link| link.drops), both(|link| link.delivered_bytes));
    let lost = [0, 1].map(|at: usize| {
        (vec![("direction", WAYS[at].to_owned())], traffic[at].lost.total().map(|lost| lost as f64))
    });
    page.metric(Kind::Gauge, "uptime_seconds", "Time since the link began.", seconds)
        .metric(Kind::Gauge, "link_rate_bytes_per_second", "Rate of the link now.", rate)
        .metric(Kind::Counter, "delivered_packets_total", "Packets that left the link.", delivered)
        .metric(Kind::Counter, "delivered_bytes_total", "Bytes that left the link, with headers.", bytes)
        .metric(Kind::Counter, "dropped_packets_total", "Packets lost in the queue or on the link.", dropped)
        .metric(Kind::Counter, "lost_by_machine_packets_total", LOST_BY_MACHINE, lost);
    of_queue(page, summary, held);
}

fn of_queue(page: &mut Page, Summary { down, links, .. }: &Summary, held: usize) {
    let waits = &links[0].waits;
    let quantiles = [("0.5", 0.5), ("0.95", 0.95), ("0.99", 0.99)];
    let quantiles = quantiles.map(|(quantile, q)| (quantile, waits.quantile(q).map(Span::as_secs_f64)));
    let (packets, bytes) = (f64::from(down.waiting.packets), down.waiting.bytes as f64);
    let (sum, held) = (waits.sum() as f64 / 1e9, [(Labels::new(), Some(held as f64))]);
    page.metric(Kind::Gauge, "queue_packets", "Packets waiting.", [way("down", packets)])
        .metric(Kind::Gauge, "queue_bytes", "Bytes waiting.", [way("down", bytes)])
        .summary(
            "queue_wait_seconds",
            "Time that packets waited, going down.",
            quantiles,
            (sum, waits.count()),
        )
        .metric(Kind::Gauge, "held_acks", "ACKs that regulators hold.", held);
}

const LOST_BY_MACHINE: &str = "Packets that the machine lost and the emulated link did not.";

/// Labels of the directions, in the order of [`Summary::links`].
const WAYS: [&str; 2] = ["down", "up"];

/// Metric value of one direction, with its label.
fn way(direction: &str, value: f64) -> (Labels, Option<f64>) {
    (vec![("direction", direction.to_owned())], Some(value))
}

/// Metric of each flow: kind, name, help text, and function that computes the value.
type FlowMetric = (Kind, &'static str, &'static str, fn(&FlowReport) -> Option<f64>);

const FLOW_METRICS: [FlowMetric; 4] = [
    (Kind::Counter, "flow_delivered_payload_bytes_total", "Payload acknowledged.", |flow| {
        Some(delivered(flow) as f64)
    }),
    (Kind::Counter, "flow_segments_total", "Data segments that came in.", |flow| {
        Some(flow.ways[flow.sender() as usize].segments as f64)
    }),
    (Kind::Counter, "flow_retransmitted_segments_total", "Data segments that came in again.", |flow| {
        flow.retransmits().map(|count| count as f64)
    }),
    (Kind::Gauge, "flow_edge_rtt_seconds", "Mean round-trip time between edge and mobile.", |flow| {
        flow.edge_rtt.map(Span::as_secs_f64)
    }),
];
