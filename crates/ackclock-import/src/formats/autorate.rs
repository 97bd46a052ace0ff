//! Logs of cake-autorate, in the forms of its versions.
//!
//! Since version 2, a log has records of several kinds, one a line, with fields separated by `;`: the first field names the
//! kind, and a line `DATA_HEADER; ...` or `LOAD_HEADER; ...` (first only `HEADER; ...`) names the fields of a kind. Rates are
//! in kbit/s and delays in microseconds. Version 1 wrote one table with loads and shaper rates.

use std::collections::BTreeMap;

use super::super::{TraceError, lines};
use super::clock::TimeUnit;
use super::rows::Row;
use super::table::Table;
use super::{Certainty, Grade, Options, Read, Towards};

const WHY: &str = "what the users of a router sent below its shaper";

/// Number of lines among which a header of records must be.
const BEGIN: usize = 1000;

/// Whether a text is a log with records.
pub(super) fn has_records(bytes: &[u8]) -> bool {
    let mut begin = lines(bytes).take(BEGIN).filter_map(|(_, line)| line.ok());
    begin.any(|line| kind_of_header(line).is_some_and(|kind| matches!(kind, "DATA" | "LOAD")))
}

/// Kind of the records whose fields a line names.
fn kind_of_header(line: &str) -> Option<&str> {
    let first = line.split(';').next()?.trim();
    if first == "HEADER" { Some("DATA") } else { first.strip_suffix("_HEADER") }
}

/// Places of the fields that are read from the records of a kind.
#[derive(Clone, Copy, Default)]
struct Places {
    fields: usize,
    stamp: usize,
    time: usize,
    rate: usize,
    /// Delay without a queue, and measured delay, in microseconds, and how much of them is one direction.
    delays: Option<([usize; 2], f64)>,
}

impl Places {
    fn of(header: &str, up: bool) -> Option<Self> {
        let names: Vec<&str> = header.split(';').map(str::trim).collect();
        let place = |name: &str| names.iter().position(|known| *known == name);
        let way = if up { "UL" } else { "DL" };
        let one_way = [format!("{way}_OWD_BASELINE"), format!("{way}_OWD_US")];
        let round_trip = ["RTT_BASELINE".to_owned(), "RTT_US".to_owned()];
        let delays = |names: &[String; 2], share| Some(([place(&names[0])?, place(&names[1])?], share));
        Some(Self {
            fields: names.len(),
            stamp: place("LOG_DATETIME")?,
            time: place("LOG_TIMESTAMP")?,
            rate: place(&format!("{way}_ACHIEVED_RATE_KBPS"))?,
            delays: delays(&one_way, 1.0).or_else(|| delays(&round_trip, 0.5)),
        })
    }

    /// One-way delay of a record, seconds.
    fn delay(&self, options: &Options, number: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        let (delays, share) = self.delays?;
        let micros = number(delays[usize::from(options.measured_delay)]).filter(|us| *us > 0.0)?;
        Some(share * micros * 1e-6)
    }
}

/// Sums of the records of a second.
#[derive(Clone, Copy, Default)]
struct Second {
    line: usize,
    rate: f64,
    records: f64,
    delay: f64,
    delays: f64,
}

impl Second {
    fn add(&mut self, rate: f64, delay: Option<f64>) {
        self.rate += rate;
        self.records += 1.0;
        if let Some(delay) = delay {
            self.delay += delay;
            self.delays += 1.0;
        }
    }

    fn row(self, begins: f64) -> Row {
        Row {
            line: self.line,
            begins,
            rate: Some(self.rate / self.records),
            delay: (self.delays > 0.0).then(|| self.delay / self.delays),
            ..Row::default()
        }
    }
}

const fn delays_are(options: &Options) -> &'static str {
    if options.measured_delay { "are measured, with the queue" } else { "are those of the empty line" }
}

/// Reads a log with records: the mean rate and delay of each second.
pub(super) fn records(bytes: &[u8], options: &Options) -> Result<Read, TraceError> {
    let up = options.towards == Some(Towards::Server);
    let mut places: BTreeMap<&str, Places> = BTreeMap::new();
    let mut seconds: BTreeMap<i64, Second> = BTreeMap::new();
    let (mut cut, mut ahead) = (0_usize, None);
    for (index, line) in lines(bytes) {
        let Ok(line) = line else {
            cut += 1;
            continue;
        };
        if let Some(kind) = kind_of_header(line) {
            places.extend(Places::of(line, up).map(|places| (kind, places)));
            continue;
        }
        let fields: Vec<&str> = line.split(';').map(str::trim).collect();
        let Some(places) = places.get(fields[0]) else { continue };
        let number =
            |place: usize| fields.get(place)?.parse::<f64>().ok().filter(|number| number.is_finite());
        // A rotated log begins or ends within a line.
        let (Some(time), Some(rate), true) =
            (number(places.time), number(places.rate), fields.len() == places.fields)
        else {
            cut += 1;
            continue;
        };
        let second =
            seconds.entry(time.floor() as i64).or_insert(Second { line: index, ..Second::default() });
        let delay = places.delay(options, number);
        second.add(rate * 1e3, delay);
        ahead = ahead.or_else(|| Some(quarters(TimeUnit::Stamp.seconds(fields[places.stamp])? - time)));
    }
    let ahead = ahead.unwrap_or(0.0);
    let rows = seconds.into_iter().map(|(second, sums)| sums.row(second as f64 + ahead)).collect();
    let mut notes =
        vec![format!("each row is the mean of the records of a second; delays {}", delays_are(options))];
    if cut > 0 {
        notes.push(format!("{cut} lines are cut off and were left out"));
    }
    Ok(Read { rows, end: None, certainty: Certainty::new(Grade::Application, WHY), notes })
}

/// Seconds by which a local clock is ahead of UTC: time zones differ by quarters of an hour.
fn quarters(ahead: f64) -> f64 {
    const QUARTER: f64 = 900.0;
    libm::round(ahead / QUARTER) * QUARTER
}

/// Smallest load that is read as a percentage; smaller loads are read as shares from 0 to 1.
const PERCENT: f64 = 2.0;

/// Reads a log of version 1: the delivered rate is the load times the shaper rate.
pub(super) fn table(bytes: &[u8], options: &Options) -> Result<Read, TraceError> {
    let table = Table::of(bytes, &options.columns)?;
    let up = options.towards == Some(Towards::Server);
    let [load, rate] = if up { ["tx_load", "cur_ul_rate"] } else { ["rx_load", "cur_dl_rate"] };
    let (time, load, rate) = (table.column("log_time")?, table.column(load)?, table.column(rate)?);
    let rtt = table.column("rtt").ok();
    let (mut rows, mut largest) = (Vec::new(), 0.0_f64);
    for record in table.data() {
        let record = record?;
        let begins = record.time(time, TimeUnit::Auto, "a time")?;
        let (load, kbps) = (record.number(load)?, record.number(rate)?);
        largest = largest.max(load.unwrap_or(0.0));
        let delay = record.known(rtt, 1.0)?.map(|ms| ms / 2e3);
        let rate = load.zip(kbps).map(|(load, kbps)| load * kbps * 1e3);
        rows.push(Row { line: record.line, begins, rate, delay, ..Row::default() });
    }
    if largest > PERCENT {
        rows.iter_mut().for_each(|row| row.rate = row.rate.map(|rate| rate / 100.0));
    }
    let certainty = Certainty::new(Grade::Application, WHY);
    let unit = if largest > PERCENT { "percent" } else { "shares" };
    let note = format!("loads are {unit}; half of RTT is taken for the delay of one direction");
    Ok(Read { rows, end: None, certainty, notes: vec![note] })
}

#[cfg(test)]
mod tests {
    use super::super::super::{Recording, Samples};
    use super::super::{Form, Imported, read};
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

    #[test]
    fn what_a_router_passed_is_its_load_times_its_rate() {
        let log = |load: f64| {
            let head = "log_time; rx_load; tx_load; baseline_RTT; RTT; delta_RTT; cur_dl_rate; cur_ul_rate\n"
                .to_owned();
            (0..12).fold(head, |text, n| {
                text + &format!("2022-05-20-14:12:{n:02}; {load}; 0.1; 20; 30; 10; 8000; 900\n")
            })
        };
        for load in [0.5, 50.0] {
            let (imported, samples) = imported(&log(load), &Options::default());
            assert_eq!((imported.form, kbps(&samples)[0]), (Form::Autorate, 4000));
            assert_eq!(samples.rows()[0].delay, Span::from_millis(15));
            assert_eq!(imported.certainty.unwrap().grade, Grade::Application);
        }
    }

    /// Headers of version 3.2, 3.3 and 2.0.
    const HEADERS: [&str; 3] = [
        "DATA_HEADER; LOG_DATETIME; LOG_TIMESTAMP; PROC_TIME_US; DL_ACHIEVED_RATE_KBPS; UL_ACHIEVED_RATE_KBPS; DL_LOAD_PERCENT; UL_LOAD_PERCENT; ICMP_TIMESTAMP; REFLECTOR; SEQUENCE; DL_OWD_BASELINE; DL_OWD_US; DL_OWD_DELTA_EWMA_US; DL_OWD_DELTA_US; DL_ADJ_DELAY_THR; UL_OWD_BASELINE; UL_OWD_US; UL_OWD_DELTA_EWMA_US; UL_OWD_DELTA_US; UL_ADJ_DELAY_THR; DL_SUM_DELAYS; UL_SUM_DELAYS; DL_LOAD_CONDITION; UL_LOAD_CONDITION; CAKE_DL_RATE_KBPS; CAKE_UL_RATE_KBPS",
        "DATA_HEADER; LOG_DATETIME; LOG_TIMESTAMP; PROC_TIME_US; DL_ACHIEVED_RATE_KBPS; UL_ACHIEVED_RATE_KBPS; DL_OWD_BASELINE; DL_OWD_US; UL_OWD_BASELINE; UL_OWD_US; CAKE_DL_RATE_KBPS; CAKE_UL_RATE_KBPS",
        "HEADER; LOG_DATETIME; LOG_TIMESTAMP; PROC_TIME_US; DL_ACHIEVED_RATE_KBPS; UL_ACHIEVED_RATE_KBPS; RTT_BASELINE; RTT_US; CAKE_DL_RATE_KBPS; CAKE_UL_RATE_KBPS",
    ];

    /// A log of 12 s from 2024-01-01 00:00 UTC in a zone two hours ahead: two records a second with 4000 and 6000 kbit/s.
    fn log(header: &str) -> String {
        let names: Vec<&str> = header.split("; ").collect();
        let mut text = format!(
            "DEBUG; 2024-01-01-02:00:00; 1704067200.000001; Starting\n{header}\nLOAD_HEADER; LOG_DATETIME; LOG_TIMESTAMP; PROC_TIME_US; DL_ACHIEVED_RATE_KBPS; UL_ACHIEVED_RATE_KBPS\n"
        );
        for n in 0..24 {
            let record: Vec<String> = names
                .iter()
                .map(|name| match *name {
                    "DATA_HEADER" | "HEADER" => "DATA".to_owned(),
                    "LOG_DATETIME" => format!("2024-01-01-02:00:{:02}", n / 2),
                    "LOG_TIMESTAMP" => format!("17040672{:02}.{}00000", n / 2, 5 * (n % 2)),
                    "DL_ACHIEVED_RATE_KBPS" => format!("{}", 4000 + 2000 * (n % 2)),
                    "UL_ACHIEVED_RATE_KBPS" => "900".to_owned(),
                    "DL_OWD_BASELINE" => "15000".to_owned(),
                    "RTT_BASELINE" => "30000".to_owned(),
                    "DL_OWD_US" => "65000".to_owned(),
                    "RTT_US" => "130000".to_owned(),
                    _ => "7".to_owned(),
                })
                .collect();
            text += &format!("{}\nSUMMARY; 2024-01-01-02:00:00; 1704067200.1; 1; 2\n", record.join("; "));
        }
        text + "DATA; 2024-01-01-02:00:12; 17040672"
    }

    #[test]
    fn records_of_every_version_are_means_of_seconds() {
        for header in HEADERS {
            let (imported, samples) = imported(&log(header), &Options::default());
            assert_eq!(
                (imported.form, kbps(&samples), samples.length()),
                (Form::Autorate, vec![5000; 12], Span::from_secs(12))
            );
            assert_eq!(samples.rows()[0].delay, Span::from_millis(15));
            assert_eq!(imported.certainty.unwrap().grade, Grade::Application);
            // 2024-01-01 02:00 of the router's clock.
            assert_eq!(imported.begins, Some(1_704_074_400.0));
            assert!(
                imported.notes.iter().any(|note| note == "1 lines are cut off and were left out"),
                "{:?}",
                imported.notes
            );
            let measured = Options { measured_delay: true, ..Options::default() };
            assert_eq!(
                super::tests::imported(&log(header), &measured).1.rows()[0].delay,
                Span::from_millis(65)
            );
            let up = Options { towards: Some(Towards::Server), ..Options::default() };
            assert_eq!(kbps(&super::tests::imported(&log(header), &up).1)[0], 900);
        }
    }

    #[test]
    fn loads_alone_are_a_recording_without_delays() {
        let head = "LOAD_HEADER; LOG_DATETIME; LOG_TIMESTAMP; PROC_TIME_US; DL_ACHIEVED_RATE_KBPS; UL_ACHIEVED_RATE_KBPS; CAKE_DL_RATE_KBPS; CAKE_UL_RATE_KBPS\n";
        let log = (0..12).fold(head.to_owned(), |text, n| {
            text + &format!("LOAD; 2024-01-01-00:00:{n:02}; {}.5; 1; 300; 20; 900; 90\n", 1_704_067_200 + n)
        });
        let (imported, samples) = imported(&log, &Options::default());
        assert_eq!((imported.form, kbps(&samples)[11]), (Form::Autorate, 300));
        assert_eq!(samples.rows()[0].delay, Span::ZERO);
    }
}
