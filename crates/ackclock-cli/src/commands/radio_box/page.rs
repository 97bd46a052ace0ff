//! Prometheus metrics of a box.

use ackclock_box::maps::Counts;
use ackclock_box::report::Report;
use ackclock_box::subscribers::SubscriberReport;
use ackclock_live::metrics::{Kind, Labels, Page};

/// The page of metrics in the base units of Prometheus: seconds and bytes.
pub(super) fn page(report: &Report, counts: &Counts) -> String {
    let mut page = Page::default();
    let one = |value: f64| [(Labels::new(), Some(value))];
    page.metric(Kind::Gauge, "box_uptime_seconds", "Time since the box started.", one(report.running_s))
        .metric(Kind::Gauge, "box_acting", "Whether windows are lowered.", one(report.acting.into()))
        .metric(
            Kind::Gauge,
            "box_rate_bytes_per_second",
            "Rate in the last 10 s.",
            one(report.rate_bps / 8.0),
        )
        .metric(Kind::Gauge, "box_subscribers", "Subscribers that are known.", one(report.subscribers as f64))
        .metric(Kind::Gauge, "box_connections", "Connections, last 10 s.", one(report.connections as f64))
        .metric(
            Kind::Gauge,
            "box_unobserved_connections",
            "Connections with data in the last 10 s that no estimate includes, because a table is full.",
            one(report.unobserved as f64),
        )
        .metric(Kind::Counter, "box_received_bytes_total", "Bytes from the servers.", received(counts))
        .metric(Kind::Counter, "box_acks_total", "ACKs of known connections.", acks(counts))
        .metric(
            Kind::Counter,
            "box_lost_records_total",
            "Records that were lost or ignored because a table was full.",
            one((counts.lost_records + report.refused) as f64),
        )
        .metric(
            Kind::Gauge,
            "box_queue_wait_seconds",
            "Estimated queueing delay of the packets of the last 10 s in the radio's queue.",
            waits(&Labels::new(), report.wait_p50_ms, report.wait_p95_ms),
        );
    of_subscribers(&mut page, &report.worst);
    page.text().to_owned()
}

fn received(counts: &Counts) -> [(Labels, Option<f64>); 6] {
    [
        ("all", counts.in_bytes),
        ("regulated", counts.in_flow_bytes),
        ("tcp", counts.in_tcp_bytes),
        ("quic", counts.in_quic_bytes),
        ("udp", counts.in_udp_bytes),
        ("esp", counts.in_esp_bytes),
    ]
    .map(|(kind, bytes)| (vec![("kind", kind.to_owned())], Some(bytes as f64)))
}

fn acks(counts: &Counts) -> [(Labels, Option<f64>); 7] {
    [
        ("all", counts.acks),
        ("lower", counts.lower),
        ("clipped", counts.clipped),
        ("stale", counts.stale),
        ("refused", counts.refused),
        ("unknown", counts.unknown),
        ("protected", counts.protected),
    ]
    .map(|(outcome, acks)| (vec![("outcome", outcome.to_owned())], Some(acks as f64)))
}

fn waits(labels: &Labels, median: Option<f64>, p95: Option<f64>) -> [(Labels, Option<f64>); 2] {
    [("0.5", median), ("0.95", p95)].map(|(quantile, wait)| {
        let mut labels = labels.clone();
        labels.push(("quantile", quantile.to_owned()));
        (labels, wait.map(|wait| wait / 1e3))
    })
}

/// Adds the metrics of the subscribers with the longest queueing delay.
fn of_subscribers(page: &mut Page, worst: &[SubscriberReport]) {
    let labels = |one: &SubscriberReport| {
        let mut labels = vec![("subscriber", one.key.clone())];
        labels.extend(one.name.clone().map(|name| ("name", name)));
        labels
    };
    page.metric(
        Kind::Gauge,
        "box_subscriber_rate_bytes_per_second",
        "Rate from the servers in the last 10 s, of the subscribers with the longest queueing delay.",
        worst.iter().map(|one| (labels(one), Some(one.rate_bps / 8.0))),
    )
    .metric(
        Kind::Counter,
        "box_subscriber_received_bytes_total",
        "Bytes from the servers, of the subscribers with the longest queueing delay.",
        worst.iter().map(|one| (labels(one), Some(one.bytes as f64))),
    )
    .metric(
        Kind::Gauge,
        "box_subscriber_queue_wait_seconds",
        "Estimated queueing delay of the packets of the last 10 s, of the subscribers with the longest queueing delay.",
        worst.iter().flat_map(|one| waits(&labels(one), one.wait_p50_ms, one.wait_p95_ms)),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_about_a_dozen_names_in_base_units() {
        let one = SubscriberReport {
            key: "10.0.0.2".to_owned(),
            name: Some("kitchen".to_owned()),
            rate_bps: 8000.0,
            wait_p95_ms: Some(1500.0),
            ..SubscriberReport::default()
        };
        let report = Report { unobserved: 9, wait_p50_ms: Some(20.0), worst: vec![one], ..Report::default() };
        let text = page(&report, &Counts { lower: 7, in_quic_bytes: 5, ..Counts::default() });
        for row in [
            "ackclock_box_acks_total{outcome=\"lower\"} 7\n",
            "ackclock_box_unobserved_connections 9\n",
            "ackclock_box_received_bytes_total{kind=\"quic\"} 5\n",
            "ackclock_box_queue_wait_seconds{quantile=\"0.5\"} 0.02\n",
            "ackclock_box_subscriber_rate_bytes_per_second{subscriber=\"10.0.0.2\",name=\"kitchen\"} 1000\n",
            "ackclock_box_subscriber_queue_wait_seconds{subscriber=\"10.0.0.2\",name=\"kitchen\",quantile=\"0.95\"} 1.5\n",
        ] {
            assert!(text.contains(row), "{row} in {text}");
        }
        assert_eq!(text.lines().filter(|line| line.starts_with("# TYPE")).count(), 13);
    }
}
