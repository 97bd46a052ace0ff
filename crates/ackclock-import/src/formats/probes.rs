//! Readers of probes of an idle link, which show delays and losses but no rates.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::super::{TraceError, lines};
use super::rows::Row;
use super::table::Table;
use super::{Certainty, Columns, Grade, Options, Read, Towards};
use crate::json::object;

/// Turns rows of probes into a recording at the rate given by the user.
fn probed(mut rows: Vec<Row>, options: &Options, notes: Vec<String>) -> Result<Read, TraceError> {
    let rate = options.rate.ok_or_else(|| {
        TraceError::whole("probes measure delay and loss and no rate; --rate gives that of the link")
    })?;
    rows.iter_mut().for_each(|row| row.rate = Some(rate.as_bps() as f64));
    let certainty =
        Certainty::new(Grade::Application, "the rate is that of --rate; probes do not measure it");
    Ok(Read { rows, end: None, certainty, notes })
}

const HALF: &str = "half of each round trip is taken for the delay of one direction";

/// One answer of ping: index of its line, time at which the probe was sent, and round-trip time, seconds.
type Answer = (usize, f64, f64);

/// Reads the output of `ping -D`: one line per answer. A number that never comes is a lost round trip; answers may be
/// late, overtaken or repeated (`DUP!`).
pub(super) fn ping(bytes: &[u8], options: &Options) -> Result<Read, TraceError> {
    // The answers of each run of the program, by number. The 16-bit numbers are counted beyond their overflow.
    let (mut runs, mut newest, mut repeated) = (vec![BTreeMap::new()], None, 0_usize);
    for (index, line) in lines(bytes) {
        let line = line?;
        if line.starts_with("PING ") {
            runs.push(BTreeMap::new());
            newest = None;
        }
        let Some((seq, answer)) = answer(index, line)? else { continue };
        let last: i64 = newest.unwrap_or_else(|| i64::from(seq));
        let number = last + i64::from((seq.wrapping_sub(last as u16)) as i16);
        newest = Some(last.max(number));
        let Some(run) = runs.last_mut() else { continue };
        match run.entry(number) {
            Entry::Occupied(_) => repeated += 1,
            Entry::Vacant(place) => _ = place.insert(answer),
        }
    }
    let mut rows: Vec<Row> = runs.iter().flat_map(answered_and_lost).collect();
    rows.sort_by(|one, next| one.begins.total_cmp(&next.begins));
    let mut notes = vec![HALF.to_owned()];
    notes.extend(one_way_losses(&mut rows));
    if repeated > 0 {
        notes.push(format!(
            "{repeated} repeated answers (DUP!) are left out: a table of rates holds no copies"
        ));
    }
    probed(rows, options, notes)
}

/// Parses an answer and its sequence number; `None` for any other line.
fn answer(index: usize, line: &str) -> Result<Option<(u16, Answer)>, TraceError> {
    let Some((head, tail)) = line.split_once(" bytes from ") else { return Ok(None) };
    let stamp = head.strip_prefix('[').and_then(|head| head.split_once(']'));
    let Some(at) = stamp.and_then(|(stamp, _)| stamp.parse::<f64>().ok()) else {
        return Err(TraceError::at(index, "there is no time before the answer: `ping -D` writes it"));
    };
    let field = |name: &str| {
        let (_, rest) = tail.split_once(name)?;
        rest.split_whitespace().next()
    };
    let seq = field("icmp_seq=").and_then(|seq| seq.parse().ok());
    let rtt = field("time=").and_then(|rtt| rtt.parse::<f64>().ok());
    let (Some(seq), Some(rtt)) = (seq, rtt) else {
        return Err(TraceError::at(index, "no icmp_seq and time"));
    };
    Ok(Some((seq, (index, at - rtt / 1e3, rtt / 1e3))))
}

/// Maximum number of consecutive probes that count as lost; a larger gap means another run of the program.
const MOST_LOST: i64 = 30_000;

/// Rows of one run: its answers, and the numbers between them that never came, evenly spaced in time.
fn answered_and_lost(run: &BTreeMap<i64, Answer>) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::with_capacity(run.len());
    let mut last: Option<(i64, f64)> = None;
    for (&number, &(line, sent, rtt)) in run {
        if let Some((before, from)) = last.filter(|(before, _)| number - before <= MOST_LOST) {
            let step = (sent - from) / (number - before) as f64;
            rows.extend((1..number - before).map(|lost| Row {
                line,
                begins: from + step * lost as f64,
                loss: Some(1.0),
                ..Row::default()
            }));
        }
        rows.push(Row { line, begins: sent, delay: Some(rtt / 2.0), loss: Some(0.0), ..Row::default() });
        last = Some((number, sent));
    }
    rows
}

/// Smallest number of consecutive lost round trips that shows an outage of the link, in both directions.
const OUTAGE: usize = 3;

/// Turns lost round trips into losses of one direction, and says so: which direction lost the packet is unknown, so
/// that each has half of the losses; in an outage both directions lose everything.
fn one_way_losses(rows: &mut [Row]) -> Option<String> {
    let is_lost = |row: &Row| row.loss == Some(1.0);
    let (mut single, mut outages) = (0, 0);
    for series in rows.chunk_by_mut(|one, next| is_lost(one) == is_lost(next)) {
        if !is_lost(&series[0]) {
            continue;
        }
        if series.len() >= OUTAGE {
            outages += series.len();
        } else {
            single += series.len();
            series.iter_mut().for_each(|row| row.loss = Some(0.5));
        }
    }
    (single + outages > 0).then(|| {
        format!(
            "{} round trips were lost, in an unknown direction: {single} count half in each, and {outages} in series of at least {OUTAGE} are outages of both",
            single + outages
        )
    })
}

/// Largest relative difference between a round trip and the sum of its one-way delays, and the smallest in ns.
const SUM: f64 = 0.01;
const LEAST_SUM: f64 = 100e3;

/// Reads the JSON output of `irtt client -o`, with times in ns. One-way delays count if their sum is the round trip and
/// both are above 0; otherwise the clocks differ, and half of the round trip is the delay of each direction.
pub(super) fn irtt(bytes: &[u8], options: &Options) -> Result<Read, TraceError> {
    let file = object(bytes)?;
    let trips = file["round_trips"].as_array().map_or(&[][..], Vec::as_slice);
    let (lost_here, own) =
        if options.towards == Some(Towards::Server) { ("true_up", "send") } else { ("true_down", "receive") };
    let (mut rows, mut halved, mut unknown) = (Vec::new(), 0, Vec::new());
    for (index, trip) in trips.iter().enumerate() {
        let sent = trip["timestamps"]["client"]["send"]["wall"].as_f64().ok_or_else(|| {
            TraceError::whole(format!("round trip {index}: no timestamps.client.send.wall"))
        })?;
        let ns = |name: &str| trip["delay"][name].as_f64();
        let is_sum = |up: f64, down: f64, rtt: f64| {
            up > 0.0 && down > 0.0 && (up + down - rtt).abs() <= (SUM * rtt).max(LEAST_SUM)
        };
        let delay = match (ns("send"), ns("receive"), ns("rtt").filter(|&rtt| rtt > 0.0)) {
            (Some(up), Some(down), Some(rtt)) if is_sum(up, down, rtt) => ns(own),
            (_, _, Some(rtt)) => {
                halved += 1;
                Some(rtt / 2.0)
            }
            _ => None,
        };
        let loss = Some(f64::from(u8::from(trip["lost"] == "true" || trip["lost"] == lost_here)));
        unknown.push(trip["lost"] == "true");
        let delay = delay.map(|ns| ns / 1e9);
        rows.push(Row { line: index, begins: sent / 1e9, delay, loss, ..Row::default() });
    }
    let notes = of_irtt(&mut rows, halved, &unknown);
    probed(rows, options, notes)
}

/// Notes about irtt's delays; also turns losses of an unknown direction into those of one direction.
fn of_irtt(rows: &mut [Row], halved: usize, unknown: &[bool]) -> Vec<String> {
    let known: Vec<Option<f64>> = rows.iter().map(|row| row.loss).collect();
    let note = if unknown.contains(&true) { one_way_losses(rows) } else { None };
    for ((row, loss), unknown) in rows.iter_mut().zip(known).zip(unknown) {
        row.loss = if *unknown { row.loss } else { loss };
    }
    let clocks = match halved {
        0 => "where clocks are not synchronised, delays of one direction are off by their difference"
            .to_owned(),
        _ => format!(
            "{halved} of {} round trips: their one-way delays are not both above 0 with the round trip as sum, so the clocks differ; half of each round trip is taken",
            rows.len()
        ),
    };
    [clocks].into_iter().chain(note).collect()
}

/// Reads the CSV files of LENS: `timestamp` in ns; `rtt`, `uplink`, `downlink` in ms. In LENS files, the value -1 means
/// a lost packet, and the value 0 means an unknown delay.
pub(super) fn lens(bytes: &[u8], options: &Options) -> Result<Read, TraceError> {
    let table = Table::of(bytes, &Columns::default())?;
    let own = if options.towards == Some(Towards::Server) { "uplink" } else { "downlink" };
    let (time, rtt, own) = (table.column("timestamp")?, table.column("rtt")?, table.column(own)?);
    let mut rows = Vec::new();
    for record in table.data() {
        let record = record?;
        let begins = record.needed(time, "a time")? / 1e9;
        let (rtt, own) = (record.number(rtt)?.unwrap_or(0.0), record.number(own)?.unwrap_or(0.0));
        let ms = if own > 0.0 { Some(own) } else { (rtt > 0.0).then_some(rtt / 2.0) };
        let loss = Some(f64::from(u8::from(own == -1.0)));
        rows.push(Row { line: record.line, begins, delay: ms.map(|ms| ms / 1e3), loss, ..Row::default() });
    }
    probed(rows, options, Vec::new())
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
        // The direction of the loss is unknown: each has half of it.
        assert_eq!(lost.iter().sum::<f64>(), 0.5);
        assert_eq!((lost[4], samples.rows()[4].begins), (0.5, Span::from_secs(4)));
        assert_eq!(samples.rows()[0].delay, Span::from_millis(20));
        let untimed = text.replace("[17", "(17");
        let error = read(untimed.as_bytes(), &Options::default()).unwrap_err().to_string();
        assert_eq!(error, "line 2: there is no time before the answer: `ping -D` writes it");
    }

    /// Text of answers with their sequence numbers and round-trip times in ms; one probe a second.
    fn pings(answers: &[(u16, f64)]) -> String {
        let begin = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n".to_owned();
        answers.iter().fold(begin, |text, &(seq, rtt)| {
            let at = 1_700_000_000.0 + f64::from(seq) + rtt / 1e3;
            text + &format!("[{at:.6}] 64 bytes from 192.0.2.1: icmp_seq={seq} ttl=57 time={rtt} ms\n")
        })
    }

    fn losses(text: &str) -> Vec<f64> {
        let (_, samples) = samples(text.as_bytes(), Towards::Mobile);
        samples.rows().iter().map(|row| row.loss.probability()).collect()
    }

    #[test]
    fn an_answer_that_is_late_overtaken_or_repeated_is_not_lost() {
        let rtt = |seq: u16| if seq == 5 { 2500.0 } else { 40.0 };
        let mut answers: Vec<(u16, f64)> = (1..=12).map(|seq| (seq, rtt(seq))).collect();
        answers.sort_by(|one, next| {
            let at = |answer: &(u16, f64)| f64::from(answer.0) + answer.1 / 1e3;
            at(one).total_cmp(&at(next))
        });
        assert_eq!(answers[6].0, 5);
        assert_eq!(losses(&pings(&answers)), [0.0; 12]);
        answers.insert(4, (4, 41.0));
        assert_eq!(losses(&pings(&answers)), [0.0; 12], "a repeated answer");
    }

    #[test]
    fn lost_round_trips_in_series_are_an_outage_of_both_directions() {
        let answers: Vec<(u16, f64)> =
            (1..=14).filter(|seq| !(5..8).contains(seq) && *seq != 10).map(|seq| (seq, 40.0)).collect();
        assert_eq!(
            losses(&pings(&answers)),
            [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0]
        );
    }

    #[test]
    fn numbers_of_ping_go_on_behind_65535() {
        let text: String = (0..20_u32).filter(|n| *n != 7).fold("PING x\n".to_owned(), |text, n| {
            let at = 1_700_000_000 + n;
            text + &format!(
                "[{at}.0] 64 bytes from 192.0.2.1: icmp_seq={} ttl=57 time=40 ms\n",
                (65_530 + n) % 65_536
            )
        });
        assert_eq!(losses(&text).iter().sum::<f64>(), 0.5);
    }

    #[test]
    fn one_way_delays_that_are_impossible_are_halves_in_both_directions() {
        let trip = |n: u64| {
            let (up, down) = if n == 3 { (-10_000_000, 50_000_000) } else { (25_000_000, 15_000_000) };
            json!({"lost": if n == 5 { "true" } else { "false" },
                   "timestamps": {"client": {"send": {"wall": 1_700_000_000_000_000_000 + n * 1_000_000_000}}},
                   "delay": {"rtt": 40_000_000, "send": up, "receive": down}})
        };
        let text = json!({"round_trips": (0..12).map(trip).collect::<Vec<_>>()}).to_string();
        let of = |towards| {
            let (_, samples) = samples(text.as_bytes(), towards);
            (0..12).map(|n| samples.rows()[n].delay).collect::<Vec<_>>()
        };
        for (up, down) in of(Towards::Server).into_iter().zip(of(Towards::Mobile)) {
            assert_eq!(up + down, Span::from_millis(40));
        }
        assert_eq!(of(Towards::Server)[3], Span::from_millis(20));
        assert_eq!(losses(&text)[5], 0.5, "the direction is unknown");
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
