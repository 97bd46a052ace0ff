//! Readers of published data sets and logs whose columns are known.

use std::collections::BTreeMap;

use super::super::{TraceError, lines};
use super::clock::TimeUnit;
use super::rows::Row;
use super::table::Table;
use super::{Certainty, Form, Grade, Options, Read, Towards};

/// Minimum share of application rows at which a log of mixed states is graded as application traffic.
const MUCH: f64 = 0.1;

/// Reads a phone log of G-NetTrack: rates in kbit/s, the state of the transfer, and the mean ping time if pings were
/// sent.
pub(super) fn ucc(bytes: &[u8], options: &Options) -> Result<Read, TraceError> {
    let table = Table::of(bytes, &options.columns)?;
    let up = options.towards == Some(Towards::Server);
    let (time, rate) =
        (table.column("timestamp")?, table.column(if up { "ul_bitrate" } else { "dl_bitrate" })?);
    let [state, ping, ping_loss] = ["state", "pingavg", "pingloss"].map(|name| table.column(name).ok());
    let (mut rows, mut idle) = (Vec::new(), 0_usize);
    for record in table.data() {
        let record = record?;
        idle += usize::from(state.is_some_and(|state| record.fields[state] == "I"));
        rows.push(Row {
            line: record.line,
            begins: record.time(time, TimeUnit::Stamp, "YYYY.MM.DD_HH.MM.SS")?,
            rate: record.known(Some(rate), 1e3)?,
            delay: record.known(ping, 0.5e-3)?,
            // A lost ping may be lost in either direction.
            loss: record.known(ping_loss, 1e-2)?.map(|lost| 1.0 - libm::sqrt((1.0 - lost).max(0.0))),
            ..Row::default()
        });
    }
    let certainty = if idle as f64 > MUCH * rows.len() as f64 {
        Certainty::new(Grade::Application, format!("in {idle} of {} rows the phone was idle", rows.len()))
    } else {
        Certainty::new(Grade::LowerBound, "a bulk transfer to a phone")
    };
    let pings = rows.iter().any(|row| row.delay.is_some());
    let note = pings.then(|| "half of PINGAVG is taken for the delay of one direction".to_owned());
    Ok(Read { rows: averaged(&rows), end: None, certainty, notes: note.into_iter().collect() })
}

/// Merges rows with equal times into one row with the mean of the known values.
fn averaged(rows: &[Row]) -> Vec<Row> {
    let mean = |of: &[Row], value: fn(&Row) -> Option<f64>| {
        let known: Vec<f64> = of.iter().filter_map(value).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    rows.chunk_by(|one, next| one.begins == next.begins)
        .map(|of| Row {
            rate: mean(of, |row| row.rate),
            delay: mean(of, |row| row.delay),
            loss: mean(of, |row| row.loss),
            ..of[0]
        })
        .collect()
}

/// Reads Lumos5G: runs with one row per second, rates in Mbit/s.
pub(super) fn lumos5g(bytes: &[u8], options: &Options) -> Result<Read, TraceError> {
    let table = Table::of(bytes, &options.columns)?;
    let (run, time) = (table.column("run_num")?, table.column("seq_num")?);
    let rate = table.column("throughput")?;
    let mut runs: BTreeMap<u64, Vec<Row>> = BTreeMap::new();
    for record in table.data() {
        let record = record?;
        let (rate, begins) = (record.known(Some(rate), 1e6)?, record.needed(time, "a number")?);
        let row = Row { line: record.line, begins, rate, ..Row::default() };
        runs.entry(record.needed(run, "a number")? as u64).or_default().push(row);
    }
    let longest = runs.iter().max_by_key(|(number, rows)| (rows.len(), std::cmp::Reverse(**number)));
    let chosen = options.run.or(longest.map(|(number, _)| *number)).unwrap_or(0);
    let numbers: Vec<String> = runs.keys().take(20).map(u64::to_string).collect();
    let rows = runs.remove(&chosen).ok_or_else(|| {
        TraceError::whole(format!("there is no run {chosen}; runs are {}", numbers.join(", ")))
    })?;
    let certainty = Certainty::new(Grade::LowerBound, "a bulk transfer of iperf3 to a phone");
    Ok(Read { rows, end: None, certainty, notes: vec![format!("run {chosen} of {}", runs.len() + 1)] })
}

/// Number of fields in the raw logs of Norway and Ghent: time, ms since the start, latitude, longitude, bytes and ms
/// since the previous row.
const FIELDS: usize = 6;
/// Smallest first time that is read as ms since 1970, as in Ghent; smaller first times are read as seconds, as in
/// Norway.
const MILLISECONDS: f64 = 1e11;

/// Detects the format of a recording by its first line, which holds numbers and is not of a mahimahi file.
pub(super) fn recognise_numbers(first: &str) -> Option<Form> {
    let numbers: Vec<f64> = first.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let all = first.split_whitespace().count() == FIELDS && numbers.len() == FIELDS;
    all.then(|| if numbers[0] < MILLISECONDS { Form::Norway } else { Form::Ghent })
}

/// Reads raw logs of Norway and Ghent: bytes received since the previous row, and the elapsed ms.
pub(super) fn bytes_and_times(bytes: &[u8], form: Form) -> Result<Read, TraceError> {
    let (mut rows, mut begins) = (Vec::new(), 0.0);
    for (line, text) in lines(bytes) {
        let text = text?;
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let fields: Vec<f64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
        let &[_, _, _, _, received, ms] = &fields[..] else {
            return Err(TraceError::at(line, format!("{} numbers; a row has {FIELDS}", fields.len())));
        };
        if !(0.0..=1e9).contains(&ms) {
            return Err(TraceError::at(
                line,
                format!("column 6: {ms} is not a time from 0 to 1000000000 ms"),
            ));
        }
        if ms > 0.0 {
            let ends = begins + ms / 1e3;
            rows.push(Row {
                line,
                begins,
                ends: Some(ends),
                rate: Some(8e3 * received / ms),
                ..Row::default()
            });
            begins = ends;
        }
    }
    let note = match form {
        Form::Ghent => "the access of the server, 100 Mbit/s, limits the rates too",
        _ => "a long row is an outage: nothing arrived until its end",
    };
    let certainty = Certainty::new(Grade::LowerBound, "one download over HTTP");
    Ok(Read { rows, end: Some(begins), certainty, notes: vec![note.to_owned()] })
}

#[cfg(test)]
mod tests {
    use super::super::super::{Recording, Samples};
    use super::super::{Imported, read};
    use super::*;
    use ackclock_core::Span;

    fn imported(text: &str, options: &Options) -> (Imported, Samples) {
        let imported = read(text.as_bytes(), options).unwrap();
        let Recording::Samples(samples) = imported.recording.clone() else { unreachable!("tables of rates") };
        (imported, samples)
    }

    fn kbps(samples: &Samples) -> Vec<u64> {
        samples.rows().iter().map(|row| row.rate.as_bps() / 1000).collect()
    }

    /// A phone log of 12 seconds with two rows in the first second, and with `state` in every row.
    fn phone(state: &str) -> String {
        let mut text =
            "Timestamp,Longitude,Operatorname,State,DL_bitrate,UL_bitrate,PINGAVG,PINGLOSS\n".to_owned();
        text += &format!("2019.12.31_23.59.58,-8.4,B,{state},100,10,-,-\n");
        for second in 0..12 {
            let at = if second < 2 {
                format!("2019.12.31_23.59.{}", 58 + second)
            } else {
                format!("2020.01.01_00.00.{:02}", second - 2)
            };
            text += &format!("{at},-8.4,B,{state},{},20,40,50\n", 300 + second);
        }
        text
    }

    #[test]
    fn rows_of_one_second_are_averaged() {
        let (imported, samples) = imported(&phone("D"), &Options::default());
        assert_eq!((imported.form, imported.even, samples.length()), (Form::Ucc, true, Span::from_secs(12)));
        // The first second has the rates 100 and 300 kbit/s; half of the 40 ms pings counts as delay.
        assert_eq!(kbps(&samples)[..3], [200, 301, 302]);
        assert_eq!(samples.rows()[0].delay, Span::from_millis(20));
        // Half of the round trips get through: sqrt(1/2) of the packets in each direction.
        assert!((1.0 - samples.rows()[0].loss.probability() - 0.5f64.sqrt()).abs() < 1e-9);
        assert_eq!(imported.certainty.unwrap().grade, Grade::LowerBound);
        let up = Options { towards: Some(Towards::Server), ..Options::default() };
        assert_eq!(kbps(&super::tests::imported(&phone("D"), &up).1)[..2], [15, 20]);
    }

    #[test]
    fn an_idle_phone_shows_no_capacity() {
        assert_eq!(imported(&phone("I"), &Options::default()).0.certainty.unwrap().grade, Grade::Application);
    }

    #[test]
    fn the_longest_run_is_read_unless_another_is_asked_for() {
        let mut text = "run_num,seq_num,abstractSignalStr,nrStatus,Throughput,mobility_mode\n".to_owned();
        for (run, seconds) in [(1, 11), (2, 13)] {
            for second in 1..=seconds {
                text += &format!("{run},{second},2,CONNECTED,{},walking\n", 100 * run);
            }
        }
        let (longest, samples) = imported(&text, &Options::default());
        assert_eq!((longest.form, longest.rows(), kbps(&samples)[0]), (Form::Lumos5g, 13, 200_000));
        let first = Options { run: Some(1), ..Options::default() };
        assert_eq!(kbps(&imported(&text, &first).1)[0], 100_000);
        let none = Options { run: Some(3), ..Options::default() };
        assert_eq!(read(text.as_bytes(), &none).unwrap_err().to_string(), "there is no run 3; runs are 1, 2");
    }

    #[test]
    fn a_long_row_of_a_raw_log_is_an_outage() {
        for (first, form) in [("1284560000", Form::Norway), ("1450000000000", Form::Ghent)] {
            let mut text: String =
                (1..=11).map(|n| format!("{first} {} 59.9 10.7 125000 1000\n", 1000 * n)).collect();
            text += &format!("{first} 30000 59.9 10.7 0 19000\n");
            let (imported, samples) = imported(&text, &Options::default());
            assert_eq!((imported.form, samples.length()), (form, Span::from_secs(30)));
            assert_eq!((kbps(&samples)[0], kbps(&samples)[11]), (1000, 0));
        }
    }
}
