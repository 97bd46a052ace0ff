//! `ackclock link show --watch`: a line for each interval of a running link.

use std::thread;
use std::time::Duration;

use ackclock_core::Span;
use ackclock_live::control::{Addressee, LinkRequest, Unanswered, ask};
use serde_json::Value;

use crate::failure::Failure;
use crate::output;

/// Lines between two headers.
const PAGE: usize = 20;

/// Fits a terminal of 80 columns.
const HEADER: &str = "time s down Mbit/s used % queued drops   up Mbit/s used % queued drops flows\n";

/// Minimum interval: each line asks the link for all results.
const SHORTEST: Span = Span::from_millis(100);

/// Prints a line for each `interval` until the link ends.
///
/// # Errors
/// Fails if the interval is too short, if no link answers the first request, or if standard output cannot be written.
pub(super) fn watch(addressee: Addressee, interval: Span) -> Result<(), Failure> {
    if interval < SHORTEST {
        let message = format!("--watch {interval}: an interval is at least {SHORTEST}");
        return Err(Failure::Input(message));
    }
    let mut before = look(addressee)?.ok_or_else(|| Failure::Run("the link has just ended".to_owned()))?;
    for line in 0.. {
        pause(interval);
        let Some(now) = look(addressee)? else { break };
        if line % PAGE == 0 {
            output::print(HEADER)?;
        }
        output::print(&text(&before, &now))?;
        before = now;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "this command only watches another process")]
fn pause(interval: Span) {
    thread::sleep(Duration::from_nanos(interval.as_nanos()));
}

/// Results of the link so far; `None` after the link has ended.
fn look(addressee: Addressee) -> Result<Option<Value>, Failure> {
    match ask(addressee, &LinkRequest::Show) {
        Ok(answer) => {
            serde_json::from_str(&answer).map(Some).map_err(|error| Failure::Run(error.to_string()))
        }
        Err(Unanswered::Nobody(_)) => Ok(None),
        Err(error) => Err(Failure::Run(error.to_string())),
    }
}

/// The line of an interval, from the results at its start and at its end.
fn text(before: &Value, now: &Value) -> String {
    let number =
        |results: &Value, path: &str| results.pointer(path).and_then(Value::as_f64).unwrap_or_default();
    let rise = |path: &str| number(now, path) - number(before, path);
    let seconds = rise("/duration_s").max(f64::MIN_POSITIVE);
    // Bytes that the direction could have delivered since the start of the link.
    let capacity = |results: &Value, link: &str| {
        number(results, &format!("/{link}/capacity_bps")) * number(results, "/duration_s") / 8.0
    };
    let direction = |link: &str| {
        let bytes = rise(&format!("/{link}/delivered_bytes"));
        let could = capacity(now, link) - capacity(before, link);
        let used =
            if could > 0.0 { format!("{:.0}", (100.0 * bytes / could).min(100.0)) } else { "-".to_owned() };
        let queued = number(now, &format!("/{link}/waiting"));
        let drops = rise(&format!("/{link}/drops"));
        format!("{:>11.3} {used:>6} {queued:>6} {drops:>5}", 8e-6 * bytes / seconds)
    };
    let flows = now["flows"].as_array().map_or(0, Vec::len);
    let time = number(now, "/duration_s");
    format!("{time:>6.1} {} {} {flows:>5}\n", direction("bottleneck"), direction("uplink"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn results(seconds: f64, bytes: u64, waiting: u64, drops: u64) -> Value {
        let link =
            json!({ "capacity_bps": 4e6, "delivered_bytes": bytes, "waiting": waiting, "drops": drops });
        let unlimited =
            json!({ "capacity_bps": null, "delivered_bytes": bytes / 10, "waiting": 0, "drops": 0 });
        json!({ "duration_s": seconds, "bottleneck": link, "uplink": unlimited, "flows": [{}, {}] })
    }

    #[test]
    fn a_line_shows_what_an_interval_added() {
        let line = text(&results(10.0, 1_000_000, 3, 5), &results(12.0, 1_500_000, 7, 6));
        let fields: Vec<_> = line.split_whitespace().collect();
        assert_eq!(fields, ["12.0", "2.000", "50", "7", "1", "0.200", "-", "0", "0", "2"]);
        assert_eq!(HEADER.len(), line.len(), "{HEADER}{line}");
        assert!(line.trim_end().len() <= 80, "{line}");
    }
}
