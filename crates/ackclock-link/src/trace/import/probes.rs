//! Readers of probes of an idle link, which show delays and losses but no rates.

use serde_json::Value;

use super::super::{TraceError, lines};
use super::iperf3::object;
use super::rows::Row;
use super::table::Table;
use super::{Certainty, Columns, Grade, Options, Read, Towards};

/// Turns rows of probes into a recording at the rate given by the user.
fn probed(mut rows: Vec<Row>, options: &Options, note: Option<&str>) -> Result<Read, TraceError> {
    let rate = options.rate.ok_or_else(|| {
        TraceError::whole("probes measure delay and loss and no rate; --rate gives that of the link")
    })?;
    rows.iter_mut().for_each(|row| row.rate = Some(rate.as_bps() as f64));
    let certainty =
        Certainty::new(Grade::Application, "the rate is that of --rate; probes do not measure it");
    Ok(Read { rows, end: None, certainty, notes: note.map(str::to_owned).into_iter().collect() })
}

const HALF: &str = "half of each round trip is taken for the delay of one direction";

/// Reads the output of `ping -D`: one line per answer; a missing sequence number is a lost probe.
pub(super) fn ping(bytes: &[u8], options: &Options) -> Result<Read, TraceError> {
    let (mut rows, mut last): (Vec<Row>, Option<(u64, f64)>) = (Vec::new(), None);
    for (index, line) in lines(bytes) {
        let Some((head, tail)) = line?.split_once(" bytes from ") else { continue };
        let stamp = head.strip_prefix('[').and_then(|head| head.split_once(']'));
        let Some(at) = stamp.and_then(|(stamp, _)| stamp.parse::<f64>().ok()) else {
            return Err(TraceError::at(index, "there is no time before the answer: `ping -D` writes it"));
        };
        let field = |name: &str| {
            let (_, rest) = tail.split_once(name)?;
            rest.split_whitespace().next()
        };
        let (seq, rtt) = (field("icmp_seq="), field("time="));
        let (Some(seq), Some(rtt)) =
            (seq.and_then(|seq| seq.parse().ok()), rtt.and_then(|rtt| rtt.parse::<f64>().ok()))
        else {
            return Err(TraceError::at(index, "no icmp_seq and time"));
        };
        let (sent, delay) = (at - rtt / 1e3, Some(rtt / 2e3));
        if let Some((before, sent_before)) = last {
            rows.extend(lost_between((before, sent_before), (seq, sent), index));
        }
        rows.push(Row { line: index, begins: sent, rate: None, delay, loss: Some(0.0) });
        last = Some((seq, sent));
    }
    rows.sort_by(|one, next| one.begins.total_cmp(&next.begins));
    probed(rows, options, Some(HALF))
}

/// Maximum number of consecutive probes that count as lost; a larger gap means another run of the program.
const MOST_LOST: u64 = 100_000;

/// Rows for the lost probes between two answered probes, evenly spaced in time.
fn lost_between((before, from): (u64, f64), (seq, to): (u64, f64), line: usize) -> Vec<Row> {
    let steps = seq.saturating_sub(before);
    if !(2..=MOST_LOST).contains(&steps) {
        return Vec::new();
    }
    let at = |number: u64| from + (to - from) * number as f64 / steps as f64;
    (1..steps)
        .map(|number| Row { line, begins: at(number), rate: None, delay: None, loss: Some(1.0) })
        .collect()
}

/// Reads the JSON output of `irtt client -o`, with times in ns.
pub(super) fn irtt(bytes: &[u8], options: &Options) -> Result<Read, TraceError> {
    let file = object(bytes)?;
    let trips = file["round_trips"].as_array().map_or(&[][..], Vec::as_slice);
    let down = options.towards != Some(Towards::Server);
    let (lost_here, own) = if down { ("true_down", "receive") } else { ("true_up", "send") };
    let row = |(index, trip): (usize, &Value)| {
        let sent = trip["timestamps"]["client"]["send"]["wall"].as_f64();
        let begins = sent.ok_or_else(|| {
            TraceError::whole(format!("round trip {index}: no timestamps.client.send.wall"))
        })?;
        let ns = |name: &str| trip["delay"][name].as_f64().filter(|&ns| ns > 0.0);
        let delay = ns(own).or(ns("rtt").map(|rtt| rtt / 2.0)).map(|ns| ns / 1e9);
        let lost = trip["lost"] == "true" || trip["lost"] == lost_here;
        Ok(Row {
            line: index,
            begins: begins / 1e9,
            rate: None,
            delay,
            loss: Some(f64::from(u8::from(lost))),
        })
    };
    let rows: Result<Vec<Row>, TraceError> = trips.iter().enumerate().map(row).collect();
    probed(
        rows?,
        options,
        Some("where clocks are not synchronised, delays of one direction are off by their difference"),
    )
}

/// Reads the CSV files of LENS: `timestamp` in ns; `rtt`, `uplink`, `downlink` in ms. In LENS files, the value -1 means
/// a lost packet, and the value 0 means an unknown delay.
pub(super) fn lens(bytes: &[u8], options: &Options) -> Result<Read, TraceError> {
    let table = Table::of(bytes, &Columns::default())?;
    let own = if options.towards == Some(Towards::Server) { "uplink" } else { "downlink" };
    let (time, rtt, own) = (table.column("timestamp")?, table.column("rtt")?, table.column(own)?);
    let mut rows = Vec::new();
    for row in table.data() {
        let (line, fields) = row?;
        let number = |column: usize| table.number((line, column), fields[column]);
        let begins = number(time)?.ok_or_else(|| table.wrong((line, time), fields[time], "a time"))? / 1e9;
        let (rtt, own) = (number(rtt)?.unwrap_or(0.0), number(own)?.unwrap_or(0.0));
        let ms = if own > 0.0 { Some(own) } else { (rtt > 0.0).then_some(rtt / 2.0) };
        let loss = Some(f64::from(u8::from(own == -1.0)));
        rows.push(Row { line, begins, rate: None, delay: ms.map(|ms| ms / 1e3), loss });
    }
    probed(rows, options, None)
}

#[cfg(test)]
mod tests {
    use super::super::super::{Recording, Samples};
    use super::super::{Form, read};
    use super::*;
    use ackclock_core::{Rate, Span};
    use serde_json::json;

    fn samples(bytes: &[u8], towards: Towards) -> (Form, Samples) {
        let options =
            Options { rate: Some(Rate::from_bps(1_000_000)), towards: Some(towards), ..Options::default() };
        let imported = read(bytes, &options).unwrap();
        let Recording::Samples(samples) = imported.recording else { unreachable!("probes give rates") };
        assert_eq!(imported.certainty.unwrap().grade, Grade::Application);
        (imported.form, samples)
    }

    #[test]
    fn half_of_a_ping_is_the_delay_and_a_gap_is_lost() {
        let answers = (1..=12).filter(|&seq| seq != 5);
        let answer = |seq: u32| {
            format!(
                "[{}.040000] 64 bytes from 192.0.2.1: icmp_seq={seq} ttl=57 time=40.0 ms\n",
                1_700_000_000 + seq
            )
        };
        let text = format!(
            "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n{}",
            answers.map(answer).collect::<String>()
        );
        let (form, samples) = samples(text.as_bytes(), Towards::Mobile);
        assert_eq!((form, samples.rows().len()), (Form::Ping, 12));
        let lost: Vec<f64> = samples.rows().iter().map(|row| row.loss.probability()).collect();
        assert_eq!(lost.iter().sum::<f64>(), 1.0);
        assert_eq!((lost[4], samples.rows()[4].begins), (1.0, Span::from_secs(4)));
        assert_eq!(samples.rows()[0].delay, Span::from_millis(20));
        let untimed = text.replace("[17", "(17");
        let error = read(untimed.as_bytes(), &Options::default()).unwrap_err().to_string();
        assert_eq!(error, "line 2: there is no time before the answer: `ping -D` writes it");
    }

    #[test]
    fn a_probe_has_the_delay_and_the_loss_of_its_direction() {
        let trip = |n: u64| {
            let lost = if n == 3 { "true_down" } else { "false" };
            json!({"lost": lost, "timestamps": {"client": {"send": {"wall": 1_700_000_000_000_000_000 + n * 1_000_000_000}}},
                   "delay": {"rtt": 50_000_000, "send": 20_000_000, "receive": 30_000_000}})
        };
        let text = json!({"round_trips": (0..12).map(trip).collect::<Vec<_>>()}).to_string();
        let (form, down) = samples(text.as_bytes(), Towards::Mobile);
        assert_eq!(
            (form, down.rows()[0].delay, down.rows()[3].loss.probability()),
            (Form::Irtt, Span::from_millis(30), 1.0)
        );
        let (_, up) = samples(text.as_bytes(), Towards::Server);
        assert_eq!((up.rows()[0].delay, up.rows()[3].loss.probability()), (Span::from_millis(20), 0.0));
    }

    #[test]
    fn a_delay_that_lens_does_not_know_is_half_the_round_trip() {
        let mut text = "timestamp,rtt,uplink,downlink\n".to_owned();
        for n in 0..12_u64 {
            let (up, down) = [(20.0, 30.0), (0.0, 0.0), (20.0, -1.0)][(n % 3) as usize];
            text += &format!("{},50.0,{up},{down}\n", 1_700_000_000_000_000_000 + n * 20_000_000);
        }
        let (form, down) = samples(text.as_bytes(), Towards::Mobile);
        let row = |n: usize| (down.rows()[n].delay, down.rows()[n].loss.probability());
        assert_eq!((form, row(0)), (Form::Lens, (Span::from_millis(30), 0.0)));
        assert_eq!((row(1), row(2)), ((Span::from_millis(25), 0.0), (Span::from_millis(25), 1.0)));
    }

    #[test]
    fn probes_need_a_rate() {
        let error = read(b"timestamp,rtt,uplink,downlink\n1,1,1,1\n", &Options::default()).unwrap_err();
        assert!(error.to_string().contains("--rate"), "{error}");
    }
}
