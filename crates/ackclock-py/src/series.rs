//! Time series in the units of the Python package: seconds, packets, bit/s.

use ackclock_core::{ConfigError, FlowId, Size};
use ackclock_scenario::{Series, Tables};
use ackclock_tcp::{FlowParams, SENDERS};

/// Columns of a run's series by Python name: `time`, `queue`, and several columns for each flow. The columns of flow 0
/// are `cwnd/0`, `ssthresh/0`, `advertised/0` (packets), `rate/0` (delivered in order since the previous row, bit/s),
/// `rtt/0`, `srtt/0`, `rto/0` (seconds), and with a relay `relay_cwnd/0` (packets) and `relay_buffer/0` (bytes).
/// Columns of a link layer have a direction and a unit, such as `down.buffer_packets`.
///
/// Numbers are converted in place: no column is copied.
///
/// # Errors
/// Fails if the kind of a sender is unknown; in this case the run itself would have failed.
pub(crate) fn columns(series: Series, tables: &Tables) -> Result<Vec<(String, Vec<f64>)>, ConfigError> {
    let payloads = payloads(tables)?;
    let interval = match series.columns.first().map(|(_, times)| times.as_slice()) {
        Some([first, second, ..]) => second - first,
        _ => f64::NAN,
    };
    let mut columns = Vec::new();
    for (name, mut values) in series.columns {
        let (place, column) = name.split_once('.').unwrap_or(("", &name));
        let flow = place.strip_prefix("flow").and_then(|id| id.parse::<usize>().ok());
        let payload = flow.and_then(|flow| payloads.get(flow)).copied().unwrap_or(f64::NAN);
        match column {
            "cwnd_bytes" | "ssthresh_bytes" | "advertised_bytes" | "relay_cwnd_bytes" => {
                scale(&mut values, 1.0 / payload)
            }
            "srtt_ms" | "rto_ms" | "rtt_ms" => scale(&mut values, 1e-3),
            "delivered_bytes" => differences(&mut values, 8.0 / interval),
            _ => {}
        }
        if let Some(python) = python_name(place, column) {
            columns.push((python, values));
        }
    }
    Ok(columns)
}

/// Name of the column in Python; `None` for columns that Python does not show.
fn python_name(place: &str, column: &str) -> Option<String> {
    let stem = match column {
        "t_s" => return Some("time".to_owned()),
        "cwnd_bytes" => "cwnd",
        "ssthresh_bytes" => "ssthresh",
        "advertised_bytes" => "advertised",
        "srtt_ms" => "srtt",
        "rto_ms" => "rto",
        "rtt_ms" => "rtt",
        "delivered_bytes" => "rate",
        "queue_packets" => "queue",
        "rate_bps" => "link_rate",
        "held_acks" => "held_acks",
        "relay_cwnd_bytes" => "relay_cwnd",
        "relay_buffered_bytes" => "relay_buffer",
        "drops" => "drops",
        "aged" => "aged",
        "queue_ms" => "queue_ms",
        // The name of an uplink or link layer column consists of direction and quantity.
        gauge if gauge.contains('.') => gauge,
        _ => return None,
    };
    // The place `edge` is the bottleneck shared by all flows.
    let id = place.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    Some(if id.is_empty() { stem.to_owned() } else { format!("{stem}/{id}") })
}

/// Payload of a full packet of each flow, bytes.
fn payloads(tables: &Tables) -> Result<Vec<f64>, ConfigError> {
    let mut payloads = Vec::new();
    for group in &tables.flow {
        let timestamps = group.sender.config(&SENDERS)?.config().timestamps.unwrap_or_default();
        let headers =
            FlowParams { header: group.ack_size.0, ..FlowParams::new(FlowId(0)) }.header_bytes(timestamps);
        let payload = match group.packet {
            Size::Bytes(bytes) => bytes as f64 - f64::from(headers),
            _ => f64::NAN,
        };
        payloads.extend((0..group.count).map(|_| payload));
    }
    Ok(payloads)
}

fn scale(values: &mut [f64], factor: f64) {
    values.iter_mut().for_each(|value| *value *= factor);
}

/// Converts totals to differences from the previous row; the first row gets no difference.
fn differences(totals: &mut [f64], factor: f64) {
    let mut before = f64::NAN;
    for value in totals {
        let total = *value;
        *value = (total - before) * factor;
        before = total;
    }
}
