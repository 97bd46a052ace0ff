//! What a running link shows: a line on the terminal, and a page of metrics.

use std::io::{self, IsTerminal, Write};

use ackclock_core::results::{FlowResult, RunResult};
use ackclock_core::{FlowId, Time};
use ackclock_link::LinkView;
use ackclock_live::Plane;
use ackclock_live::metrics::{Kind, Page};

/// A link at an instant.
pub(super) struct Snapshot {
    now: Time,
    results: RunResult,
    /// The link towards the command, and what waits in all its queues.
    down: LinkView,
    /// ACKs that regulators hold.
    held: usize,
}

impl Snapshot {
    pub(super) fn new(results: RunResult, plane: &mut Plane, now: Time) -> Self {
        let held = plane.flow_reports().iter().map(|report| report.held).sum();
        let down = LinkView { waiting: plane.waiting(), ..plane.edge().view(now, FlowId(0)) };
        Self { now, results, down, held }
    }

    fn delivered_bytes(&self) -> u64 {
        self.results.flows.iter().map(|flow| flow.delivered_bytes).sum()
    }

    /// Round-trip time of the flow that delivered most, ms.
    fn rtt_ms(&self) -> Option<f64> {
        self.results.flows.iter().max_by_key(|flow| flow.delivered_bytes)?.edge_rtt_ms
    }
}

/// Where the status is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In a line of the terminal that nobody else writes to.
    Line,
    /// In the title of the terminal, because the command writes to it.
    Title,
    /// Nowhere: there is no terminal.
    Nowhere,
}

impl Place {
    /// Where it belongs: a shell and a command whose output is seen have the terminal to themselves.
    pub(super) fn of(shell: bool) -> Self {
        match (io::stderr().is_terminal(), shell || io::stdout().is_terminal()) {
            (false, _) => Self::Nowhere,
            (true, true) => Self::Title,
            (true, false) => Self::Line,
        }
    }
}

/// The status as it is shown.
pub(super) struct Progress {
    place: Place,
    /// When what was delivered was last looked at.
    before: (Time, u64),
}

impl Progress {
    pub(super) fn begin(place: Place) -> Self {
        if place == Place::Title {
            // The terminal remembers its title.
            print("\x1b[22;2t");
        }
        Self { place, before: (Time::ZERO, 0) }
    }

    pub(super) fn is_shown(&self) -> bool {
        self.place != Place::Nowhere
    }

    pub(super) fn show(&mut self, snapshot: &Snapshot) {
        let (then, had) = std::mem::replace(&mut self.before, (snapshot.now, snapshot.delivered_bytes()));
        let seconds = snapshot.now.since(then).as_secs_f64().max(1e-3);
        let goodput = snapshot.delivered_bytes().saturating_sub(had) as f64 * 8.0 / seconds;
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
    let LinkView { waiting, rate, .. } = snapshot.down;
    let rtt = snapshot.rtt_ms().map_or_else(|| "-".to_owned(), |ms| format!("{ms:.0} ms"));
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
    // A terminal that is gone shows nothing.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// The metrics of a link; flows by number, as in the results.
pub(super) fn page(snapshot: &Snapshot) -> String {
    let Snapshot { results, down, held, now } = snapshot;
    let bottleneck = &results.bottleneck;
    let one = |value: f64| [(Vec::new(), Some(value))];
    let mut page = Page::default();
    page.metric(Kind::Counter, "duration_seconds", "Time since the link began.", one(now.as_secs_f64()))
        .metric(Kind::Gauge, "rate_bps", "Rate of the link down, bit/s.", one(down.rate.as_bps() as f64))
        .metric(Kind::Gauge, "queue_packets", "Packets waiting.", one(f64::from(down.waiting.packets)))
        .metric(Kind::Gauge, "queue_bytes", "Bytes waiting.", one(down.waiting.bytes as f64))
        .metric(Kind::Gauge, "held_acks", "ACKs that regulators hold.", one(*held as f64))
        .metric(Kind::Counter, "packets_total", "Packets delivered down.", one(results.engine.packets as f64))
        .metric(Kind::Counter, "drops_total", "Packets lost.", one(bottleneck.drops as f64));
    let waits = [
        ("0.5", bottleneck.queue_ms.p50),
        ("0.95", bottleneck.queue_ms.p95),
        ("0.99", bottleneck.queue_ms.p99),
    ];
    let waits = waits.map(|(quantile, value)| (vec![("quantile", quantile.to_owned())], value));
    page.metric(Kind::Gauge, "queue_ms", "Time that packets waited, ms.", waits);
    for (kind, name, help, value) in FLOW_METRICS {
        let rows = results.flows.iter().map(|flow| {
            (vec![("flow", flow.id.to_string()), ("regulator", flow.regulator.clone())], value(flow))
        });
        page.metric(kind, name, help, rows);
    }
    page.text().to_owned()
}

/// What is told of each flow: kind, name, help, value.
type FlowMetric = (Kind, &'static str, &'static str, fn(&FlowResult) -> Option<f64>);

const FLOW_METRICS: [FlowMetric; 5] = [
    (Kind::Gauge, "flow_goodput_bps", "Payload acknowledged, bit/s.", |flow| flow.goodput_bps),
    (Kind::Counter, "flow_delivered_bytes", "Payload acknowledged, bytes.", |flow| {
        Some(flow.delivered_bytes as f64)
    }),
    (Kind::Counter, "flow_segments_sent", "Data segments that came in.", |flow| {
        Some(flow.segments_sent as f64)
    }),
    (Kind::Counter, "flow_retransmits", "Data segments that came in again.", |flow| {
        Some(flow.retransmits as f64)
    }),
    (Kind::Gauge, "flow_edge_rtt_ms", "Round-trip time at the edge, ms.", |flow| flow.edge_rtt_ms),
];
