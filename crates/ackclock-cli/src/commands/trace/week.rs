//! `ackclock trace week`: a recording of days by hour of the day and by weekday, and its worst hours.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ackclock_import::formats::{Imported, Options, Towards};
use ackclock_import::{Recording, Samples};
use serde_json::{Value, json};

use super::super::treatment::Treatment;
use super::{read, say, write};
use crate::failure::Failure;
use crate::output;
use crate::table::{Align, Table, number, rate_unit, terminal_width};

/// Options of `ackclock trace week`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Recording with times since 1970, such as a log of cake-autorate of a week.
    file: PathBuf,
    /// Direction of a recording with two directions: down or up.
    #[arg(long, value_name = "down|up", default_value = "down", value_parser = Towards::named)]
    direction: Towards,
    /// Write the worst hour as a recording to this CSV file.
    #[arg(long, value_name = "FILE")]
    worst: Option<PathBuf>,
    /// Treatment of rows without a rate and of gaps above three median steps.
    #[arg(long, value_enum, default_value_t = Treatment::Hold)]
    missing: Treatment,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  ackclock trace week cake-autorate.primary.log
  ackclock trace week cake-autorate.primary.log --worst worst.csv && ackclock advise worst.csv";

const HOUR: f64 = 3600.0;
const HOURS: i64 = 24;
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/// Weekday of 1970-01-01, a Thursday, counted from Monday.
const FIRST_DAY: i64 = 3;
/// Number of worst hours that are listed.
const MOST_WORST: usize = 5;
/// Smallest part of an hour with rows that is ranked among the worst.
const LEAST_SECONDS: f64 = 600.0;

/// Rates, delays and losses of a part of the recording, each with the seconds for which it was valid.
#[derive(Clone, Debug, Default)]
struct Part {
    seconds: f64,
    /// Rate in bit/s times seconds.
    bits: f64,
    lost: f64,
    rates: Vec<(f64, f64)>,
    delays: Vec<(f64, f64)>,
}

impl Part {
    fn add(&mut self, rate: f64, delay: f64, loss: f64, seconds: f64) {
        self.seconds += seconds;
        self.bits += rate * seconds;
        self.lost += loss * seconds;
        self.rates.push((rate, seconds));
        self.delays.push((delay, seconds));
    }

    fn mean(&self) -> f64 {
        self.bits / self.seconds
    }

    fn loss(&self) -> f64 {
        self.lost / self.seconds
    }

    fn delay(&self, share: f64) -> f64 {
        quantile(&self.delays, share)
    }

    fn json(&self) -> Value {
        json!({
            "seconds": self.seconds,
            "mean_bps": self.mean().round(),
            "p95_bps": quantile(&self.rates, 0.95).round(),
            "delay_ms": {"p50": self.delay(0.5), "p95": self.delay(0.95)},
            "loss": self.loss(),
        })
    }
}

/// Smallest value that is not exceeded for this share of the time.
fn quantile(values: &[(f64, f64)], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(|one, next| one.0.total_cmp(&next.0));
    let wanted = share * sorted.iter().map(|(_, seconds)| seconds).sum::<f64>();
    let mut so_far = 0.0;
    for (value, seconds) in &sorted {
        so_far += seconds;
        if so_far >= wanted {
            return *value;
        }
    }
    sorted.last().map_or(0.0, |(value, _)| *value)
}

/// Parts of a recording by hour since 1970.
struct Hours(BTreeMap<i64, Part>);

impl Hours {
    fn of(begins: f64, samples: &Samples) -> Self {
        let mut hours = BTreeMap::<i64, Part>::new();
        for (index, row) in samples.rows().iter().enumerate() {
            let (from, to) = (row.begins.as_secs_f64(), samples.end(index).as_secs_f64());
            let hour = ((begins + from) / HOUR).floor() as i64;
            let values = (row.rate.as_bps() as f64, row.delay.as_secs_f64() * 1e3, row.loss.probability());
            hours.entry(hour).or_default().add(values.0, values.1, values.2, to - from);
        }
        Self(hours)
    }

    fn by(&self, key: impl Fn(i64) -> i64) -> BTreeMap<i64, Part> {
        let mut parts = BTreeMap::<i64, Part>::new();
        for (hour, part) in &self.0 {
            let sum = parts.entry(key(*hour)).or_default();
            sum.seconds += part.seconds;
            sum.bits += part.bits;
            sum.lost += part.lost;
            sum.rates.extend(&part.rates);
            sum.delays.extend(&part.delays);
        }
        parts
    }

    /// Hours with the longest p95 delay, or without delays with the lowest mean rate; the worst first.
    fn worst(&self) -> Vec<(i64, &Part)> {
        let mut hours: Vec<_> = self
            .0
            .iter()
            .filter(|(_, part)| part.seconds >= LEAST_SECONDS)
            .map(|(hour, part)| (*hour, part))
            .collect();
        hours.sort_by(|(_, one), (_, next)| {
            next.delay(0.95).total_cmp(&one.delay(0.95)).then(one.mean().total_cmp(&next.mean()))
        });
        hours.truncate(MOST_WORST);
        hours
    }
}

fn hour_of_day(hour: i64) -> i64 {
    hour.rem_euclid(HOURS)
}

fn weekday(hour: i64) -> i64 {
    (hour.div_euclid(HOURS) + FIRST_DAY).rem_euclid(DAYS.len() as i64)
}

/// Date and hour as text, `2024-01-01 02:00`.
fn date(hour: i64) -> String {
    // Years are counted from March, so that the leap day comes last; eras have 400 years.
    let days = hour.div_euclid(HOURS) + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = 400 * era + year + i64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:00", hour_of_day(hour))
}

/// Prints the tables, and writes the worst hour.
pub(crate) fn perform(args: &Args) -> Result<(), Failure> {
    let options = Options {
        towards: Some(args.direction),
        missing: args.missing.into(),
        measured_delay: true,
        ..Options::default()
    };
    let name = args.file.display().to_string();
    let imported = read(&args.file, &options)?;
    say(&name, &imported);
    let (Recording::Samples(samples), Some(begins)) = (&imported.recording, imported.begins) else {
        return Err(Failure::Input(format!(
            "{name}: its times do not say the hour of the day; a recording with times since 1970 is needed"
        )));
    };
    let hours = Hours::of(begins, samples);
    if let (Some(path), Some((hour, _))) = (&args.worst, hours.worst().first()) {
        let options = Options { measured_delay: false, ..options };
        write(path, &one_hour(&read(&args.file, &options)?, *hour as f64 * HOUR - begins)?)?;
    }
    if args.json {
        return output::print(&format!("{}\n", as_json(&name, begins, &hours)));
    }
    output::print(&tables(&hours))
}

/// CSV of the rows of the hour that starts at this second of a recording.
fn one_hour(imported: &Imported, from: f64) -> Result<String, Failure> {
    let Recording::Samples(samples) = &imported.recording else { return Ok(String::new()) };
    let mut text = super::certainty(imported) + "time_s,rate_kbps,delay_ms,loss\n";
    for (index, row) in samples.rows().iter().enumerate() {
        let (begins, ends) = (row.begins.as_secs_f64() - from, samples.end(index).as_secs_f64() - from);
        if ends > 0.0 && begins < HOUR {
            let (rate, delay) = (row.rate.as_bps() as f64 / 1e3, row.delay.as_secs_f64() * 1e3);
            text += &format!("{},{rate},{delay},{}\n", begins.max(0.0), row.loss.probability());
        }
    }
    Ok(text)
}

fn as_json(name: &str, begins: f64, hours: &Hours) -> Value {
    let with = |key: &str, value: Value, part: &Part| {
        let mut object = part.json();
        object[key] = value;
        object
    };
    let by_hour: Vec<_> =
        hours.by(hour_of_day).iter().map(|(hour, part)| with("hour", json!(hour), part)).collect();
    let by_day: Vec<_> = hours
        .by(weekday)
        .iter()
        .map(|(day, part)| with("weekday", json!(DAYS[*day as usize]), part))
        .collect();
    let worst: Vec<_> =
        hours.worst().into_iter().map(|(hour, part)| with("begins", json!(date(hour)), part)).collect();
    json!({ "recording": name, "begins_s": begins, "hours": by_hour, "weekdays": by_day, "worst": worst })
}

fn tables(hours: &Hours) -> String {
    let fastest = hours.0.values().map(Part::mean).fold(0.0, f64::max);
    let named = |parts: BTreeMap<i64, Part>, name: &dyn Fn(i64) -> String| {
        parts.into_iter().map(|(key, part)| (name(key), part)).collect::<Vec<_>>()
    };
    let by_hour = named(hours.by(hour_of_day), &|hour| format!("{hour:02}:00"));
    let by_day = named(hours.by(weekday), &|day| DAYS[day as usize].to_owned());
    let worst: Vec<_> = hours.worst().into_iter().map(|(hour, part)| (date(hour), part.clone())).collect();
    [("hour", by_hour), ("weekday", by_day), ("worst hours", worst)]
        .map(|(heading, rows)| table(heading, &rows, fastest).render(terminal_width()))
        .join("\n")
}

fn table(heading: &str, rows: &[(String, Part)], fastest: f64) -> Table {
    let (unit, bps) = rate_unit(fastest);
    let mut table = Table::default();
    table.column(heading, Align::Left);
    for column in ["hours".to_owned(), format!("mean {unit}"), format!("p95 {unit}")] {
        table.column(column, Align::Right);
    }
    for column in ["delay p50 ms", "delay p95 ms", "loss %"] {
        table.column(column, Align::Right);
    }
    for (name, part) in rows {
        table.row(vec![
            name.clone(),
            number(part.seconds / HOUR),
            number(part.mean() / bps),
            number(quantile(&part.rates, 0.95) / bps),
            number(part.delay(0.5)),
            number(part.delay(0.95)),
            number(100.0 * part.loss()),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_have_their_date_and_weekday() {
        // 2024-02-29 was a Thursday, 1970-01-01 too; seconds by `date -u -d ... +%s`, divided by 3600.
        for (hour, text, day) in [
            (0, "1970-01-01 00:00", 3),
            (474_766, "2024-02-28 22:00", 2),
            (474_769, "2024-02-29 01:00", 3),
            (474_792, "2024-03-01 00:00", 4),
        ] {
            assert_eq!((date(hour).as_str(), weekday(hour)), (text, day));
        }
    }

    #[test]
    fn quantiles_weigh_values_by_their_time() {
        assert_eq!(quantile(&[(5.0, 1.0), (1.0, 9.0)], 0.5), 1.0);
        assert_eq!(quantile(&[(5.0, 1.0), (1.0, 9.0)], 0.95), 5.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}
