//! Reader of flent's JSON (`.flent.gz`, unpacked): the streams of netperf that a test ran beside its pings.
//!
//! `raw_values` has the intervals of each stream as netperf printed them, with the time at their end; `results` has the
//! same interpolated to a grid. The program runs at the client, here the mobile, so that its downloads are counted
//! where they arrive and its uploads where they are sent. flent begins its pings some seconds before its streams.

use serde_json::Value;

use super::super::TraceError;
use super::rows::Row;
use super::{Certainty, Grade, Options, Read, Towards};
use crate::json;

/// What one stream moved in one interval.
struct Interval {
    begins: f64,
    end: f64,
    /// Payload, bit/s.
    rate: f64,
}

/// Whether a JSON object is one of flent's.
pub(super) fn is_flent(object: &Value) -> bool {
    object["raw_values"].is_object() && object["metadata"].is_object()
}

pub(super) fn read(bytes: &[u8], options: &Options) -> Result<Read, TraceError> {
    let file = json::object(bytes)?;
    let (down, up) = (streams(&file, "TCP download"), streams(&file, "TCP upload"));
    let towards = options.towards.unwrap_or(if down.0 > 0 { Towards::Mobile } else { Towards::Server });
    let ((count, intervals), name) = match towards {
        Towards::Mobile => (down, "TCP download"),
        Towards::Server => (up, "TCP upload"),
    };
    let step = file["metadata"]["STEP_SIZE"].as_f64().unwrap_or_default();
    if !(step > 0.0 && step.is_finite()) {
        return Err(TraceError::whole("metadata.STEP_SIZE is no number of seconds above 0"));
    }
    if intervals.is_empty() {
        let wanted = if options.towards.is_some() { name } else { "TCP download` or `TCP upload" };
        return Err(TraceError::whole(format!(
            "raw_values has no stream `{wanted}` with `t`, `dur` and `val`"
        )));
    }
    let payload = FULL - if file["metadata"]["IP_VERSION"] == 6 { 72.0 } else { 52.0 };
    let begins = intervals.iter().map(|of| of.begins).fold(f64::INFINITY, f64::min);
    let mut rows = sums(&intervals, begins, step)?;
    let delay = idle_round_trip(&file, begins).map(|seconds| seconds / 2.0);
    for row in &mut rows {
        row.delay = delay;
        row.rate = row.rate.map(|rate| rate * FULL / payload);
    }
    let notes = vec![
        format!("streams that are added up: {count}, in steps of {step} s"),
        format!("rates count IP bytes: netperf counts payload, {payload} of {FULL} bytes a packet"),
        of_delay(delay).to_owned(),
    ];
    let end = rows.last().and_then(|last| last.ends);
    Ok(Read { certainty: certainty(towards), rows, end, notes })
}

const fn of_delay(delay: Option<f64>) -> &'static str {
    match delay {
        Some(_) => {
            "the delay is half the median of the pings before the streams; later ones include the queue"
        }
        None => "there is no ping before the streams; later ones include the queue, and are left out",
    }
}

fn certainty(towards: Towards) -> Certainty {
    match towards {
        Towards::Mobile => Certainty::new(Grade::LowerBound, "a bulk transfer of netperf"),
        Towards::Server => Certainty::new(
            Grade::SenderLimited,
            "what the sender's socket took, which is not what arrived: run flent at the other end",
        ),
    }
}

/// IP packet of an Ethernet frame, bytes. TCP segments are assumed to be full, with timestamps.
const FULL: f64 = 1500.0;

/// Most steps that are added up, so that no times in a file ask for more work than a recording may have rows.
const MOST_STEPS: f64 = 1e7;

/// Number of streams whose name begins with `name`, and all of their intervals.
fn streams(file: &Value, name: &str) -> (usize, Vec<Interval>) {
    let mut found = (0, Vec::new());
    for (_, values) in
        file["raw_values"].as_object().into_iter().flatten().filter(|(of, _)| of.starts_with(name))
    {
        let before = found.1.len();
        // Between a stream's intervals are entries of its socket, without `val`.
        found.1.extend(values.as_array().into_iter().flatten().filter_map(interval));
        found.0 += usize::from(found.1.len() > before);
    }
    found
}

fn interval(value: &Value) -> Option<Interval> {
    let number = |field: &str| value[field].as_f64().filter(|number| number.is_finite());
    let (end, lasts, mbps) = (number("t")?, number("dur")?, number("val")?);
    (lasts > 0.0).then_some(Interval { begins: end - lasts, end, rate: mbps * 1e6 })
}

/// Rates of all streams together in equal steps; the last step is whole.
fn sums(intervals: &[Interval], begins: f64, step: f64) -> Result<Vec<Row>, TraceError> {
    let lasts = intervals.iter().map(|of| of.end - begins).fold(0.0, f64::max);
    let parts: f64 = intervals.iter().map(|of| 2.0 + (of.end - of.begins) / step).sum();
    if lasts / step + parts > MOST_STEPS {
        return Err(TraceError::whole(format!(
            "its streams cover {lasts} s in steps of {step} s; at most 1e7 steps are read"
        )));
    }
    let mut bits = vec![0.0; (lasts / step + 1e-6) as usize];
    for of in intervals {
        let (from, to) = ((of.begins - begins) / step, (of.end - begins) / step);
        for (index, sum) in bits.iter_mut().enumerate().take(to.ceil() as usize).skip(from as usize) {
            let covered = to.min(index as f64 + 1.0) - from.max(index as f64);
            *sum += of.rate * covered.max(0.0) * step;
        }
    }
    let row = |(line, bits): (usize, f64)| Row {
        line,
        begins: begins + line as f64 * step,
        ends: Some(begins + (line + 1) as f64 * step),
        rate: Some(bits / step),
        ..Row::default()
    };
    Ok(bits.into_iter().enumerate().map(row).collect())
}

/// Median of the ICMP pings that were answered before the streams began, seconds.
fn idle_round_trip(file: &Value, begins: f64) -> Option<f64> {
    let pings = file["raw_values"].as_object()?.iter().filter(|(name, _)| name.starts_with("Ping (ms) ICMP"));
    let answered = |ping: &Value| ping["t"].as_f64().is_some_and(|t| t < begins);
    let values = pings.flat_map(|(_, values)| values.as_array().into_iter().flatten());
    let mut idle: Vec<f64> =
        values.filter(|ping| answered(ping)).filter_map(|ping| ping["val"].as_f64()).collect();
    idle.sort_by(f64::total_cmp);
    idle.get(idle.len() / 2).map(|ms| ms / 1e3)
}

#[cfg(test)]
mod tests {
    use super::super::super::{Recording, Samples};
    use super::super::{Form, Imported, read};
    use super::*;
    use serde_json::json;

    /// Two downloads of 3 s, the second a second later; an upload; pings from 2 s before.
    fn file() -> Value {
        let stream = |begins: f64, rate: f64| -> Value {
            (0..30)
                .map(|at| json!({ "t": begins + f64::from(at + 1) * 0.1, "dur": 0.1, "val": rate }))
                .collect()
        };
        let pings: Value = (0..10)
            .map(|at| json!({ "t": 98.0 + f64::from(at) * 0.5, "val": if at < 4 { 30 } else { 900 } }))
            .collect();
        json!({
            "version": 4,
            "metadata": { "NAME": "rrul", "STEP_SIZE": 0.2, "IP_VERSION": 4 },
            "x_values": [], "results": {},
            "raw_values": {
                "Ping (ms) ICMP": pings,
                "TCP download::1": stream(100.0, 3.0),
                "TCP download::2": stream(101.0, 1.5),
                "TCP download::2::tcp_cwnd": [],
                "TCP upload": stream(100.0, 0.7),
            },
        })
    }

    fn import(file: &Value, towards: Option<Towards>) -> Result<Imported, TraceError> {
        read(file.to_string().as_bytes(), &Options { towards, ..Options::default() })
    }

    fn samples(imported: &Imported) -> &Samples {
        let Recording::Samples(samples) = &imported.recording else { panic!("rates") };
        samples
    }

    #[test]
    fn streams_are_added_and_pings_before_them_give_the_delay() {
        let imported = import(&file(), None).unwrap();
        let rows = samples(&imported).rows();
        // 1448 of 1500 bytes are payload: 1 Mbit/s of payload is 1.036 Mbit/s.
        let rates: Vec<f64> = rows
            .iter()
            .map(|row| (row.rate.as_bps() as f64 / 1e6 * 1448.0 / 1500.0 * 10.0).round() / 10.0)
            .collect();
        assert_eq!(rates, [[3.0; 5], [4.5; 5], [4.5; 5], [1.5; 5]].concat());
        assert!(rows.iter().all(|row| row.delay.as_millis_f64() == 15.0));
        assert_eq!((imported.form, imported.certainty.unwrap().grade), (Form::Flent, Grade::LowerBound));
    }

    #[test]
    fn an_upload_is_what_its_sender_counted() {
        let imported = import(&file(), Some(Towards::Server)).unwrap();
        assert_eq!(samples(&imported).rows().len(), 15);
        assert_eq!(imported.certainty.unwrap().grade, Grade::SenderLimited);
    }

    #[test]
    fn what_holds_no_stream_or_no_step_is_refused() {
        let refused = |change: fn(&mut Value)| {
            let mut file = file();
            change(&mut file);
            import(&file, Some(Towards::Mobile)).unwrap_err().to_string()
        };
        let no_streams = refused(|file| file["raw_values"] = json!({ "Ping (ms) ICMP": [] }));
        assert!(no_streams.contains("raw_values has no stream `TCP download` with"), "{no_streams}");
        let mut neither = file();
        neither["raw_values"] = json!({});
        let told = import(&neither, None).unwrap_err().to_string();
        assert!(told.contains("no stream `TCP download` or `TCP upload` with"), "{told}");
        assert!(refused(|file| file["metadata"]["STEP_SIZE"] = json!("0.2")).contains("metadata.STEP_SIZE"));
        assert!(refused(|file| file["metadata"]["STEP_SIZE"] = json!(1e-9)).contains("at most 1e7 steps"));
    }

    #[test]
    fn without_a_ping_before_the_streams_there_is_no_delay() {
        let mut file = file();
        file["raw_values"]["Ping (ms) ICMP"] = json!([{ "t": 100.5, "val": 900 }]);
        let imported = import(&file, None).unwrap();
        assert!(samples(&imported).rows().iter().all(|row| row.delay.as_millis_f64() == 0.0));
        assert!(imported.notes.iter().any(|note| note.contains("no ping before")), "{:?}", imported.notes);
    }
}
