//! Reader of `iperf3 -J` output: one row per interval.

use serde_json::Value;

use super::super::TraceError;
use super::rows::Row;
use super::{Certainty, Form, Grade, Options, Read, Towards, refused};

/// Detects the format of a JSON object.
pub(super) fn recognise_json(bytes: &[u8]) -> Result<Option<Form>, TraceError> {
    let first = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>().next();
    let object = match first {
        Some(Ok(object)) => object,
        Some(Err(error)) => {
            return Err(TraceError { line: Some(error.line()), message: format!("not JSON: {error}") });
        }
        None => return Ok(None),
    };
    if object.get("SetupTime").is_some() && object.get("TotalTime").is_some() {
        return Err(refused("MONROE's log of downloads: one number a download"));
    }
    if object["start"].get("test_start").is_some() && object.get("intervals").is_some() {
        return Ok(Some(Form::Iperf3));
    }
    Ok(object.get("round_trips").map(|_| Form::Irtt))
}

pub(super) fn object(bytes: &[u8]) -> Result<Value, TraceError> {
    serde_json::from_slice(bytes)
        .map_err(|error| TraceError { line: Some(error.line()), message: format!("not JSON: {error}") })
}

pub(super) fn read(bytes: &[u8], options: &Options) -> Result<Read, TraceError> {
    let file = object(bytes)?;
    let test = &file["start"]["test_start"];
    let sum = name_of_sum(test, options)?;
    let intervals = file["intervals"].as_array().map_or(&[][..], Vec::as_slice);
    let sums = intervals.iter().map(|interval| &interval[sum]);
    let (mut rows, mut end) = (Vec::new(), None);
    for (index, of) in sums.filter(|of| of["omitted"] != true).enumerate() {
        let number = |name: &str| {
            of[name]
                .as_f64()
                .ok_or_else(|| TraceError::whole(format!("interval {index}: no number `{sum}.{name}`")))
        };
        let loss = of["lost_percent"].as_f64().map(|percent| percent / 100.0);
        rows.push(Row {
            line: index,
            begins: number("start")?,
            rate: Some(number("bits_per_second")?),
            delay: None,
            loss,
        });
        end = Some(number("end")?);
    }
    let mut notes = Vec::new();
    if test["protocol"] == "UDP" {
        notes.push("jitter is left out: a table of rates holds none".to_owned());
    } else if intervals.iter().any(|interval| interval["streams"][0]["rtt"].as_u64() > Some(0)) {
        notes.push("round trips of the sender are left out: they include its queue".to_owned());
    }
    let retransmits = file["end"]["sum_sent"]["retransmits"].as_u64();
    Ok(Read { certainty: certainty(test, &rows, retransmits), rows, end, notes })
}

/// Name of the sum of all streams in an interval, in the requested direction. The iperf3 client is the mobile; `-R`
/// reverses a test, `--bidir` records both directions.
fn name_of_sum(test: &Value, options: &Options) -> Result<&'static str, TraceError> {
    let (reverse, both) = (test["reverse"] == 1, test["bidir"] == 1);
    let of_sum = if reverse && !both { Towards::Mobile } else { Towards::Server };
    match options.towards {
        Some(wanted) if wanted == of_sum => Ok("sum"),
        Some(_) if both => Ok("sum_bidir_reverse"),
        Some(_) => Err(TraceError::whole(match of_sum {
            Towards::Mobile => "the test has only the direction down (`-R`)",
            Towards::Server => "the test has only the direction up; `iperf3 -R` measures down",
        })),
        None if both => Ok("sum_bidir_reverse"),
        None => Ok("sum"),
    }
}

/// Minimum share of the target rate at which the transfer counts as limited by the sender's target. The second constant
/// is the largest ratio between the 95th and 5th percentile of a flat rate.
const REACHED: f64 = 0.98;
const FLAT: f64 = 1.05;

fn certainty(test: &Value, rows: &[Row], retransmits: Option<u64>) -> Certainty {
    let mut rates: Vec<f64> = rows.iter().filter_map(|row| row.rate).collect();
    rates.sort_by(f64::total_cmp);
    let at = |share: f64| {
        rates.get((share * rates.len().saturating_sub(1) as f64) as usize).copied().unwrap_or(0.0)
    };
    let target = test["target_bitrate"].as_f64().unwrap_or(0.0);
    if target > 0.0 && at(0.95) >= REACHED * target {
        return Certainty::new(
            Grade::SenderLimited,
            format!("it reached its target of {} kbit/s", target / 1e3),
        );
    }
    if retransmits == Some(0) && at(0.95) <= FLAT * at(0.05) {
        return Certainty::new(Grade::SenderLimited, "nothing was retransmitted and the rate is flat");
    }
    Certainty::new(Grade::LowerBound, "a bulk transfer of iperf3")
}

#[cfg(test)]
mod tests {
    use super::super::super::Recording;
    use super::super::{Imported, read};
    use super::*;
    use serde_json::json;

    /// An iperf3 test of 12 seconds, of which the first is omitted, with rates that grow by 1 Mbit/s per second.
    fn test(test_start: &Value, retransmits: u64) -> Vec<u8> {
        let sum = |second: u64, rate: f64| json!({"start": second, "end": second + 1, "bits_per_second": rate, "omitted": second == 0});
        let intervals: Vec<Value> = (0..12)
            .map(|second| json!({"sum": sum(second, 1e6 * second as f64), "sum_bidir_reverse": sum(second, 5e6), "streams": [{"rtt": 40_000}]}))
            .collect();
        json!({"start": {"test_start": test_start}, "intervals": intervals, "end": {"sum_sent": {"retransmits": retransmits}}})
            .to_string()
            .into_bytes()
    }

    fn mean_and_grade(imported: &Imported) -> (u64, Grade) {
        (imported.recording.mean_rate().as_bps(), imported.certainty.clone().unwrap().grade)
    }

    #[test]
    fn intervals_are_rows_and_those_omitted_are_not() {
        let imported =
            read(&test(&json!({"protocol": "TCP", "reverse": 1}), 7), &Options::default()).unwrap();
        assert_eq!((imported.form, imported.rows(), imported.even), (Form::Iperf3, 11, true));
        // The rates are 1 to 11 Mbit/s.
        assert_eq!(mean_and_grade(&imported), (6_000_000, Grade::LowerBound));
        assert_eq!(imported.notes, ["round trips of the sender are left out: they include its queue"]);
    }

    #[test]
    fn a_test_of_both_directions_has_either() {
        let both = test(&json!({"bidir": 1}), 7);
        let mean = |towards| {
            let options = Options { towards: Some(towards), ..Options::default() };
            read(&both, &options).unwrap().recording.mean_rate().as_bps()
        };
        assert_eq!((mean(Towards::Mobile), mean(Towards::Server)), (5_000_000, 6_000_000));
        let down = Options { towards: Some(Towards::Mobile), ..Options::default() };
        let error = read(&test(&json!({"reverse": 0}), 7), &down).unwrap_err().to_string();
        assert!(error.contains("only the direction up"), "{error}");
    }

    #[test]
    fn a_sender_that_reached_its_target_was_the_limit() {
        for (target, grade) in [(10e6, Grade::SenderLimited), (100e6, Grade::LowerBound)] {
            let imported = read(&test(&json!({"target_bitrate": target}), 7), &Options::default()).unwrap();
            assert_eq!(mean_and_grade(&imported).1, grade, "{target}");
        }
        let flat = Options { towards: Some(Towards::Mobile), ..Options::default() };
        let imported = read(&test(&json!({"bidir": 1}), 0), &flat).unwrap();
        assert_eq!(mean_and_grade(&imported).1, Grade::SenderLimited);
        assert!(matches!(imported.recording, Recording::Samples(_)));
    }
}
