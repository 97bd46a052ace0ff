//! Reader of the JSON of iperf3: `iperf3 -J` of a client or a server, one row per interval.
//!
//! Only a receiver's rows show what the link delivered. Whether rows are a sender's or a receiver's, and of which
//! direction, follows from the role of the program that wrote them and from `sender` of each sum. iperf3 3.12 to 3.20
//! print losses that late datagrams have undone as negative numbers, or as unsigned numbers near 2^64.

use serde_json::Value;

use super::super::TraceError;
use super::rows::Row;
use super::{Certainty, Form, Grade, Options, Read, Towards, flent, refused};

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
    if flent::is_flent(&object) {
        return Ok(Some(Form::Flent));
    }
    Ok(object.get("round_trips").map(|_| Form::Irtt))
}

/// Rows of one direction, as one of the two programs counted them.
struct Side {
    towards: Towards,
    /// Whether the rows count what a sender's socket took.
    is_sender: bool,
    rows: Vec<Interval>,
}

/// One interval of a test.
#[derive(Clone, Copy, Debug)]
struct Interval {
    begins: f64,
    end: f64,
    /// Payload, bit/s.
    rate: f64,
    /// Datagrams lost and datagrams expected. Late and repeated datagrams make the first negative.
    lost: Option<(f64, f64)>,
}

pub(super) fn read(bytes: &[u8], options: &Options) -> Result<Read, TraceError> {
    let mut notes = Vec::new();
    let file = chosen_test(bytes, options, &mut notes)?;
    let test = &file["start"]["test_start"];
    let side = side(&file, options)?;
    let is_udp = test["protocol"] == "UDP";
    if is_udp && side.is_sender {
        return Err(TraceError::whole(
            "its rows are what a UDP sender offered, not what arrived: `iperf3 -R -J` measures down; `iperf3 -J --get-server-output`, or `-J` at the server, measures up",
        ));
    }
    let factor = ip_bytes(&file, is_udp, &mut notes);
    let (mut rows, end) = (rows(&side.rows, factor), side.rows.last().map(|last| last.end));
    let certainty = if is_udp {
        datagrams(&file, &side.rows, &mut rows, &mut notes)
    } else {
        if file["intervals"][0]["streams"][0]["rtt"].as_u64() > Some(0) {
            notes.push("round trips of the sender are left out: they include its queue".to_owned());
        }
        of_stream(&file, &side)
    };
    Ok(Read { certainty, rows, end, notes })
}

/// Test of a file with one or several tests: the one of `--run`, otherwise the longest.
fn chosen_test(bytes: &[u8], options: &Options, notes: &mut Vec<String>) -> Result<Value, TraceError> {
    let tests: Result<Vec<Value>, _> = serde_json::Deserializer::from_slice(bytes).into_iter().collect();
    let mut tests = tests
        .map_err(|error| TraceError { line: Some(error.line()), message: format!("not JSON: {error}") })?;
    let count = |test: &Value| test["intervals"].as_array().map_or(0, Vec::len);
    let longest = (0..tests.len()).max_by_key(|&at| (count(&tests[at]), std::cmp::Reverse(at))).unwrap_or(0);
    let number = options.run.unwrap_or(longest as u64 + 1);
    if number == 0 || number > tests.len() as u64 {
        return Err(TraceError::whole(format!("there is no run {number}; runs are 1 to {}", tests.len())));
    }
    if tests.len() > 1 {
        notes.push(format!("test {number} of {}: --run reads another", tests.len()));
    }
    let test = tests.swap_remove(number as usize - 1);
    match test["error"].as_str() {
        Some(error) if count(&test) == 0 => Err(TraceError::whole(format!("the test failed: {error}"))),
        Some(error) => {
            notes.push(format!("the test ended with an error: {error}"));
            Ok(test)
        }
        None => Ok(test),
    }
}

/// Rows of the requested direction; a receiver's if the file has them.
fn side(file: &Value, options: &Options) -> Result<Side, TraceError> {
    let mut sides = Vec::new();
    for report in [file, &file["server_output_json"]] {
        for name in ["sum", "sum_bidir_reverse"] {
            sides.extend(sums(report, file, name)?);
        }
    }
    // In a reverse test the server sends.
    if file["start"]["test_start"]["reverse"] != 1
        && let Some(text) = file["server_output_text"].as_str()
    {
        sides.extend(server_text(text));
    }
    let has = |towards| sides.iter().any(|side: &Side| side.towards == towards);
    let towards =
        options.towards.unwrap_or(if has(Towards::Mobile) { Towards::Mobile } else { Towards::Server });
    let of_direction = sides.into_iter().filter(|side| side.towards == towards);
    of_direction.min_by_key(|side| side.is_sender).ok_or_else(|| {
        TraceError::whole(match towards {
            Towards::Mobile => "the test has only the direction up; `iperf3 -R` measures down",
            Towards::Server => "the test has only the direction down (`-R`)",
        })
    })
}

/// Sums named `name` in a report of `file`. The client of iperf3 is the mobile.
fn sums(report: &Value, file: &Value, name: &str) -> Result<Option<Side>, TraceError> {
    let intervals = report["intervals"].as_array().map_or(&[][..], Vec::as_slice);
    let sums = || intervals.iter().map(|interval| &interval[name]).filter(|sum| sum.is_object());
    let Some(first) = sums().next() else { return Ok(None) };
    let is_server = report["start"]["accepted_connection"].is_object();
    let is_reverse = file["start"]["test_start"]["reverse"] == 1;
    // Versions before 3.7 do not write `sender`.
    let is_sender = first["sender"].as_bool().unwrap_or((name == "sum") != (is_reverse != is_server));
    let towards = if is_sender == is_server { Towards::Mobile } else { Towards::Server };
    let mut rows = Vec::new();
    for (index, sum) in sums().filter(|sum| sum["omitted"] != true).enumerate() {
        let number = |field: &str| {
            let missing = || TraceError::whole(format!("interval {index}: no number `{name}.{field}`"));
            sum[field].as_f64().ok_or_else(missing)
        };
        let lost = signed(&sum["lost_packets"]).zip(sum["packets"].as_f64());
        let (begins, end, rate) = (number("start")?, number("end")?, number("bits_per_second")?);
        rows.push(Interval { begins, end, rate, lost });
    }
    Ok(Some(Side { towards, is_sender, rows }))
}

/// A count that iperf3 may print modulo 2^64.
fn signed(count: &Value) -> Option<f64> {
    count.as_u64().map(|count| count as i64 as f64).or_else(|| count.as_f64())
}

/// Rows of a server that received, in the text of `--get-server-output`: `0.00-1.00 sec 31.1 KBytes 255 Kbits/sec`,
/// for UDP with `0.013 ms  0/86 (0%)` behind. With several streams, the rows of their sum.
fn server_text(text: &str) -> Option<Side> {
    let is_row =
        |line: &&str| line.contains("bits/sec") && !line.contains("receiver") && !line.contains("sender");
    let received = |line: &&str| !line.contains("[TX-S]") && !line.contains("(omitted)");
    let lines: Vec<&str> = text.lines().filter(is_row).filter(received).collect();
    let has_sums = lines.iter().any(|line| line.starts_with("[SUM]"));
    let rows = lines.iter().filter(|line| !has_sums || line.starts_with("[SUM]"));
    let rows: Option<Vec<Interval>> = rows.map(|line| text_row(line)).collect();
    let rows = rows.filter(|rows| !rows.is_empty())?;
    Some(Side { towards: Towards::Server, is_sender: false, rows })
}

fn text_row(line: &str) -> Option<Interval> {
    let (_, fields) = line.rsplit_once(']')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let (begins, end) = fields.first()?.split_once('-')?;
    let unit = fields.iter().position(|field| field.ends_with("bits/sec"))?;
    let scale = match fields[unit] {
        "bits/sec" => 1.0,
        "Kbits/sec" => 1e3,
        "Mbits/sec" => 1e6,
        "Gbits/sec" => 1e9,
        _ => return None,
    };
    let lost = fields.iter().find_map(|field| {
        let (lost, packets) = field.split_once('/')?;
        Some((lost.parse().ok()?, packets.parse().ok()?))
    });
    let rate = fields[unit.checked_sub(1)?].parse::<f64>().ok()? * scale;
    Some(Interval { begins: begins.parse().ok()?, end: end.parse().ok()?, rate, lost })
}

fn rows(intervals: &[Interval], factor: f64) -> Vec<Row> {
    let row = |(line, of): (usize, &Interval)| Row {
        line,
        begins: of.begins,
        ends: Some(of.end),
        rate: Some(of.rate * factor),
        ..Row::default()
    };
    intervals.iter().enumerate().map(row).collect()
}

/// Bytes of IP packets per byte of payload, with a note. TCP segments are assumed to be full.
fn ip_bytes(file: &Value, is_udp: bool, notes: &mut Vec<String>) -> f64 {
    let start = &file["start"];
    let is_v6 = start["connected"][0]["remote_host"].as_str().is_some_and(|host| host.contains(':'));
    let ip = if is_v6 { 40.0 } else { 20.0 };
    let (payload, packets) = if is_udp {
        let payload = start["test_start"]["blksize"].as_f64().filter(|&bytes| bytes >= 1.0).unwrap_or(1448.0);
        let fragments = ((payload + UDP_HEADER) / (FRAME - ip)).ceil();
        (payload, payload + UDP_HEADER + ip * fragments)
    } else {
        // The MSS is less than the room in a frame by the TCP timestamps, if the connection has them.
        let full = FRAME - ip - TCP_HEADER;
        let mss = start["tcp_mss_default"].as_f64().filter(|&mss| mss >= 1.0).unwrap_or(full - TIMESTAMPS);
        let options = if mss == full { 0.0 } else { TIMESTAMPS };
        (mss, mss + options + TCP_HEADER + ip)
    };
    notes.push(format!("rates count IP bytes: iperf3 counts payload, {payload} of {packets} bytes a packet"));
    packets / payload
}

/// IP packet of an Ethernet frame, and headers behind the IP header, bytes.
const FRAME: f64 = 1500.0;
const UDP_HEADER: f64 = 8.0;
const TCP_HEADER: f64 = 20.0;
const TIMESTAMPS: f64 = 12.0;

/// Minimum share of the offered rate at which the transfer counts as limited by its sender. The second constant is the
/// largest ratio between the 95th and 5th percentile of a flat rate.
const REACHED: f64 = 0.98;
const FLAT: f64 = 1.05;

/// Sets the losses of datagrams, and grades the rates at which they arrived.
fn datagrams(file: &Value, sums: &[Interval], rows: &mut [Row], notes: &mut Vec<String>) -> Certainty {
    notes.push("jitter is left out: a table of rates holds none".to_owned());
    let streams = file["end"]["streams"].as_array().map_or(&[][..], Vec::as_slice);
    let late: u64 = streams.iter().filter_map(|stream| stream["udp"]["out_of_order"].as_u64()).sum();
    if late > 0 {
        notes.push(format!("{late} datagrams arrived out of order: a table of rates holds no reordering"));
    }
    let total = |value: fn((f64, f64)) -> f64| sums.iter().filter_map(|sum| sum.lost).map(value).sum::<f64>();
    let (lost, packets) = (total(|(lost, _)| lost).max(0.0), total(|(_, packets)| packets));
    let arrived = if packets > 0.0 { 1.0 - lost / packets } else { 1.0 };
    if arrived < REACHED {
        notes.push(format!(
            "{:.1} % were lost: more was sent than arrived, so the losses count as those of a full queue and are left out; `iperf3 -u -b RATE` below the capacity measures random loss",
            100.0 * (1.0 - arrived)
        ));
        return Certainty::new(Grade::LowerBound, "UDP that offered more than arrived");
    }
    for (row, loss) in rows.iter_mut().zip(shares(sums)) {
        row.loss = loss;
    }
    let cleared = clear_outages(sums, rows);
    if cleared > 0 {
        notes.push(format!(
            "losses of {cleared} rows within 1 s after an outage are the outage's and are left out"
        ));
    }
    Certainty::new(Grade::SenderLimited, "UDP of which all but random losses arrived")
}

/// Share lost in each row. A row whose losses are negative or exceed its datagrams counts together with its neighbours.
fn shares(sums: &[Interval]) -> Vec<Option<f64>> {
    // Lost and expected datagrams, and number of rows, of each group.
    let mut groups: Vec<(f64, f64, usize)> = Vec::new();
    let is_possible = |&(lost, packets, _): &(f64, f64, usize)| (0.0..=packets).contains(&lost);
    for (lost, packets) in sums.iter().map(|sum| sum.lost.unwrap_or((0.0, 0.0))) {
        // The first groups may still be impossible, and take the next row.
        let mut group = (lost, packets, 1);
        while let Some(before) = groups.pop_if(|before| !is_possible(before) || !is_possible(&group)) {
            group = (before.0 + group.0, before.1 + group.1, before.2 + group.2);
        }
        groups.push(group);
    }
    let share =
        |(lost, packets, _): (f64, f64, usize)| (packets > 0.0).then(|| (lost / packets).clamp(0.0, 1.0));
    groups.into_iter().flat_map(|group| std::iter::repeat_n(share(group), group.2)).collect()
}

/// Removes the losses of rows without datagrams, and of rows that begin within a second behind them. Returns how many
/// rows had losses.
fn clear_outages(sums: &[Interval], rows: &mut [Row]) -> usize {
    let (mut until, mut cleared) = (f64::NEG_INFINITY, 0);
    for (sum, row) in sums.iter().zip(rows) {
        if sum.rate == 0.0 {
            until = sum.end + 1.0;
        }
        // Ends of intervals jitter by a fraction of a millisecond.
        if sum.begins < until - 1e-3 {
            cleared += usize::from(row.loss.is_some_and(|loss| loss > 0.0));
            row.loss = Some(0.0);
        }
    }
    cleared
}

/// Grade of a TCP transfer.
fn of_stream(file: &Value, side: &Side) -> Certainty {
    if side.is_sender {
        return Certainty::new(
            Grade::SenderLimited,
            "what the sender's socket took, which is not what arrived: `iperf3 -J --get-server-output` adds the rows of the server, `iperf3 -R -J` measures down",
        );
    }
    let mut rates: Vec<f64> = side.rows.iter().map(|row| row.rate).collect();
    rates.sort_by(f64::total_cmp);
    let at = |share: f64| {
        rates.get((share * rates.len().saturating_sub(1) as f64) as usize).copied().unwrap_or(0.0)
    };
    let target = file["start"]["test_start"]["target_bitrate"].as_f64().unwrap_or(0.0);
    if target > 0.0 && at(0.95) >= REACHED * target {
        let why = format!("it reached its target of {} kbit/s", target / 1e3);
        return Certainty::new(Grade::SenderLimited, why);
    }
    let retransmits = file["end"]["sum_sent"]["retransmits"].as_u64();
    if retransmits == Some(0) && at(0.95) <= FLAT * at(0.05) {
        return Certainty::new(Grade::SenderLimited, "nothing was retransmitted and the rate is flat");
    }
    Certainty::new(Grade::LowerBound, "a bulk transfer of iperf3")
}

#[cfg(test)]
mod tests {
    use super::super::super::{Recording, Samples};
    use super::super::{Imported, read};
    use super::*;
    use serde_json::json;

    /// Sum of a second with `bytes` of payload.
    fn sum(second: u64, rate: f64, sender: bool) -> Value {
        json!({"start": second, "end": second + 1, "bits_per_second": rate, "omitted": second == 0, "sender": sender})
    }

    /// A test of 12 seconds, of which the first is omitted; `interval` writes the rows of a second.
    fn test(test_start: &Value, interval: impl Fn(u64) -> Value) -> Value {
        let intervals: Vec<Value> = (0..12).map(interval).collect();
        let start = json!({"test_start": test_start, "tcp_mss_default": 1448});
        json!({"start": start, "intervals": intervals, "end": {"sum_sent": {"retransmits": 7}}})
    }

    fn import(file: &Value, towards: Option<Towards>) -> Result<Imported, String> {
        let options = Options { towards, ..Options::default() };
        read(file.to_string().as_bytes(), &options).map_err(|error| error.to_string())
    }

    fn samples(imported: &Imported) -> &Samples {
        match &imported.recording {
            Recording::Samples(samples) => samples,
            Recording::Opportunities(_) => unreachable!("iperf3 gives rates"),
        }
    }

    fn mean_and_grade(imported: &Imported) -> (u64, Grade) {
        (imported.recording.mean_rate().as_bps(), imported.certainty.clone().unwrap().grade)
    }

    #[test]
    fn a_receivers_intervals_are_rows_of_ip_bytes_and_those_omitted_are_not() {
        let file = test(
            &json!({"protocol": "TCP", "reverse": 1}),
            |second| json!({"sum": sum(second, 1.448e6 * second as f64, false), "streams": [{"rtt": 40_000}]}),
        );
        let imported = import(&file, None).unwrap();
        assert_eq!((imported.form, imported.rows(), imported.even), (Form::Iperf3, 11, true));
        // 1448 of 1500 bytes are payload, and the rates are 1 to 11 times 1.5 Mbit/s.
        assert_eq!(mean_and_grade(&imported), (9_000_000, Grade::LowerBound));
        assert!(imported.notes.iter().any(|note| note.contains("1448 of 1500")), "{:?}", imported.notes);
        assert!(import(&file, Some(Towards::Server)).unwrap_err().contains("only the direction down"));
    }

    #[test]
    fn rows_of_a_sender_are_graded_below_those_of_its_server() {
        let mut file = test(&json!({"protocol": "TCP"}), |second| json!({"sum": sum(second, 1.448e6, true)}));
        let imported = import(&file, None).unwrap();
        assert_eq!(mean_and_grade(&imported).1, Grade::SenderLimited);
        assert!(imported.certainty.unwrap().why.contains("--get-server-output"));
        assert!(import(&file, Some(Towards::Mobile)).unwrap_err().contains("only the direction up"));
        let rows: String = (0..12)
            .map(|second| {
                format!(
                    "[  5]  {second}.00-{}.00  sec  31.1 KBytes   {} Kbits/sec\n",
                    second + 1,
                    1448 * (1 + second % 2)
                )
            })
            .collect();
        let text = format!(
            "[ ID] Interval           Transfer     Bitrate\n{rows}[  5]   0.00-12.04  sec   714 KBytes   286 Kbits/sec                  receiver\n"
        );
        file["server_output_text"] = text.into();
        assert_eq!(mean_and_grade(&import(&file, None).unwrap()), (2_250_000, Grade::LowerBound));
        let mut server = test(
            &json!({"protocol": "TCP"}),
            |second| json!({"sum": sum(second, 2.896e6 * (1 + second % 2) as f64, false)}),
        );
        server["start"]["accepted_connection"] = json!({"host": "192.0.2.9"});
        // 11 seconds: six of 6 Mbit/s and five of 3.
        let expected = (4_636_364, Grade::LowerBound);
        assert_eq!(mean_and_grade(&import(&server, Some(Towards::Server)).unwrap()), expected);
        file["server_output_json"] = server;
        assert_eq!(mean_and_grade(&import(&file, None).unwrap()), expected);
    }

    #[test]
    fn both_directions_are_known_by_their_sums() {
        let both = test(
            &json!({"protocol": "TCP", "reverse": 0}),
            |second| json!({"sum": sum(second, 1.448e6, true), "sum_bidir_reverse": sum(second, 2.896e6, false)}),
        );
        let of = |towards| mean_and_grade(&import(&both, towards).unwrap());
        assert_eq!(of(None).0, 3_000_000);
        assert_eq!(of(Some(Towards::Mobile)).0, 3_000_000);
        assert_eq!(of(Some(Towards::Server)), (1_500_000, Grade::SenderLimited));
    }

    #[test]
    fn a_sender_that_reached_its_target_was_the_limit() {
        for (target, grade) in [(10e6, Grade::SenderLimited), (100e6, Grade::LowerBound)] {
            let file = test(
                &json!({"reverse": 1, "target_bitrate": target}),
                |second| json!({"sum": sum(second, 1e6 * second as f64, false)}),
            );
            assert_eq!(mean_and_grade(&import(&file, None).unwrap()).1, grade, "{target}");
        }
        let mut flat = test(&json!({"reverse": 1}), |second| json!({"sum": sum(second, 1e6, false)}));
        flat["end"]["sum_sent"]["retransmits"] = 0.into();
        assert_eq!(mean_and_grade(&import(&flat, None).unwrap()).1, Grade::SenderLimited);
    }

    /// A UDP download of 12 seconds with `lost` of 100 datagrams a second.
    fn udp(lost: impl Fn(u64) -> i64) -> Value {
        test(&json!({"protocol": "UDP", "reverse": 1, "blksize": 1448}), |second| {
            let mut sum = sum(second, 1.448e6, false);
            (sum["packets"], sum["lost_packets"]) = (100.into(), (lost(second) as u64).into());
            json!({ "sum": sum })
        })
    }

    fn losses(file: &Value) -> Vec<f64> {
        let imported = import(file, None).unwrap();
        samples(&imported).rows().iter().map(|row| row.loss.probability()).collect()
    }

    #[test]
    fn losses_below_the_capacity_are_kept_and_those_of_an_overload_are_not() {
        assert_eq!(losses(&udp(|_| 1)), [0.01; 11]);
        assert_eq!(losses(&udp(|_| 40)), [0.0; 11]);
        let imported = import(&udp(|_| 40), None).unwrap();
        assert!(
            imported.notes.iter().any(|note| note.starts_with("40.0 % were lost")),
            "{:?}",
            imported.notes
        );
        // Datagrams of 1448 bytes have 28 bytes of headers.
        assert_eq!(mean_and_grade(&imported), (1_476_000, Grade::LowerBound));
        let sent = test(&json!({"protocol": "UDP"}), |second| json!({"sum": sum(second, 1e6, true)}));
        assert!(import(&sent, None).unwrap_err().contains("what a UDP sender offered"));
    }

    #[test]
    fn late_datagrams_undo_the_losses_of_their_neighbours() {
        // The second of six lost datagrams counts with the next, in which four of them arrive.
        let late = losses(&udp(|second| [0, 0, 0, 6, -4][second.min(5) as usize % 5]));
        assert_eq!(late, [0.0, 0.0, 0.01, 0.01, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        let first = losses(&udp(|second| if second == 1 { -2 } else { i64::from(second == 2) * 4 }));
        assert_eq!(first[..3], [0.01, 0.01, 0.0]);
        assert!(losses(&udp(|second| if second == 1 { -2 } else { 0 })).iter().all(|&loss| loss == 0.0));
    }

    #[test]
    fn losses_behind_an_outage_are_the_outages() {
        let mut file = udp(|second| [0, 0, 0, 0, 0, 9, 1][second.min(6) as usize]);
        file["intervals"][4]["sum"]["bits_per_second"] = 0.into();
        let expected = [0.0, 0.0, 0.0, 0.0, 0.0, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01];
        assert_eq!(losses(&file), expected);
    }

    #[test]
    fn a_file_of_several_tests_has_runs() {
        let one = |rate: f64| test(&json!({"reverse": 1}), |second| json!({"sum": sum(second, rate, false)}));
        let text = format!("{}\n{}\n", one(1.448e6), one(2.896e6));
        let mean = |run| {
            let options = Options { run, ..Options::default() };
            read(text.as_bytes(), &options).map(|imported| imported.recording.mean_rate().as_bps())
        };
        assert_eq!([None, Some(1), Some(2)].map(|run| mean(run).unwrap()), [1_500_000, 1_500_000, 3_000_000]);
        assert!(mean(Some(3)).unwrap_err().to_string().contains("runs are 1 to 2"));
    }
}
