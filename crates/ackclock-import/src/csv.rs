//! The CSV format of recordings, whose header names the columns and their units.
//!
//! The header is `time_UNIT,rate_UNIT[,delay_UNIT][,loss]`, columns in any order, as in `time_s,rate_kbps,delay_ms`.
//! Units of time are s, ms and us; units of rate are bps, kbps and Mbps. Each row is valid until the next row. The last
//! row is valid as long as the row before it, unless its rate is empty: an empty rate only marks the end. Any other
//! empty field is an error. Times count from the first row, so seconds since 1970 are allowed. Lines that begin with
//! `#` are comments.

use ackclock_core::units::{rate_unit, time_unit};
use ackclock_core::{Rate, Span};

use super::samples::{Sample, Samples};
use super::{TraceError, excerpt, lines};
use ackclock_link::Loss;

const HEADER_HELP: &str =
    "the header names columns and units: time_s,rate_kbps and if known delay_ms and loss, in any order";

/// Content of a CSV column, with the size of its unit in seconds or bits per second.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Column {
    Time(f64),
    Rate(f64),
    Delay(f64),
    Loss,
}

impl Column {
    /// Name of the CSV column in error messages.
    const fn name(self) -> &'static str {
        match self {
            Self::Time(_) => "time",
            Self::Rate(_) => "rate",
            Self::Delay(_) => "delay",
            Self::Loss => "loss",
        }
    }
}

pub(super) fn parse(bytes: &[u8]) -> Result<Samples, TraceError> {
    let mut lines = lines(bytes)
        .filter(|(_, line)| line.as_ref().map_or(true, |text| !text.is_empty() && !text.starts_with('#')));
    let (index, header) =
        lines.next().ok_or_else(|| TraceError::whole(format!("there is no header; {HEADER_HELP}")))?;
    let columns = parse_header(header?).map_err(|message| TraceError::at(index, message))?;
    let mut rows: Vec<Row> = Vec::new();
    for (index, line) in lines {
        let fail = |message: String| TraceError::at(index, message);
        let row = parse_row(line?, &columns).map_err(fail)?;
        if let Some(last) = rows.last() {
            if row.time <= last.time {
                return Err(fail(format!("{} after {}: times increase", row.time, last.time)));
            }
            if last.rate.is_none() {
                return Err(fail("a row follows the end of the recording, a row without a rate".into()));
            }
        }
        rows.push(row);
    }
    assemble(&rows)
}

/// Whether a line is a header of ackclock's CSV format.
pub(super) fn is_header(line: &str) -> bool {
    parse_header(line).is_ok()
}

/// Whether a line looks like a header of ackclock's CSV format, even an invalid header: the line names a column of
/// times, rates or delays with a possible unit.
pub(super) fn resembles_header(line: &str) -> bool {
    line.split(',')
        .any(|name| ["time_", "rate_", "delay_"].iter().any(|begin| name.trim().starts_with(begin)))
}

pub(super) fn print(samples: &Samples) -> String {
    let delays = samples.rows().iter().any(|row| row.delay != Span::ZERO);
    let losses = samples.rows().iter().any(|row| row.loss != Loss::NONE);
    let (delay_name, loss_name) = (if delays { ",delay_ms" } else { "" }, if losses { ",loss" } else { "" });
    let mut text = format!("time_s,rate_kbps{delay_name}{loss_name}\n");
    for row in samples.rows() {
        text += &format!("{},{}", row.begins.as_secs_f64(), row.rate.as_bps() as f64 / 1e3);
        if delays {
            text += &format!(",{}", row.delay.as_millis_f64());
        }
        if losses {
            text += &format!(",{}", row.loss.probability());
        }
        text.push('\n');
    }
    let blanks = ",".repeat(1 + usize::from(delays) + usize::from(losses));
    text + &format!("{}{blanks}\n", samples.length().as_secs_f64())
}

/// One parsed CSV row; a row without a rate only marks the end of the recording.
struct Row {
    time: f64,
    rate: Option<f64>,
    delay: f64,
    loss: f64,
}

fn parse_header(header: &str) -> Result<Vec<Column>, String> {
    let mut columns = Vec::new();
    for name in header.split(',').map(str::trim) {
        let column = match name.split_once('_') {
            Some(("time", unit)) => time_unit(unit).map(Column::Time),
            Some(("rate", unit)) => rate_unit(unit).map(Column::Rate),
            Some(("delay", unit)) => time_unit(unit).map(Column::Delay),
            _ => (name == "loss").then_some(Column::Loss),
        };
        let column = column.ok_or_else(|| match name {
            "time" | "rate" | "delay" => format!("`{name}` has no unit; {HEADER_HELP}"),
            _ => format!("`{}` is not a column; {HEADER_HELP}", excerpt(name)),
        })?;
        if columns.iter().any(|other| std::mem::discriminant(other) == std::mem::discriminant(&column)) {
            return Err(format!("`{}` repeats an earlier column; {HEADER_HELP}", excerpt(name)));
        }
        columns.push(column);
    }
    let has = |what: fn(&Column) -> bool| columns.iter().any(what);
    if !has(|c| matches!(c, Column::Time(_))) || !has(|c| matches!(c, Column::Rate(_))) {
        return Err(format!("a column of times or of rates is missing; {HEADER_HELP}"));
    }
    Ok(columns)
}

fn parse_row(line: &str, columns: &[Column]) -> Result<Row, String> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    if fields.len() != columns.len() {
        return Err(format!("{} fields; the header names {} columns", fields.len(), columns.len()));
    }
    let mut row = Row { time: 0.0, rate: None, delay: 0.0, loss: 0.0 };
    // Only the row that marks the end of the recording may have empty fields.
    let is_end = fields
        .iter()
        .zip(columns)
        .all(|(field, column)| !matches!(column, Column::Rate(_)) || field.is_empty());
    for (field, column) in fields.into_iter().zip(columns) {
        match (field.is_empty(), column) {
            (false, _) | (true, Column::Time(_)) => {}
            (true, _) if is_end => continue,
            (true, column) => {
                let name = column.name();
                return Err(format!("no {name}: give the {name} in every row, 0 if there is none"));
            }
        }
        match *column {
            Column::Time(unit) => row.time = number(field, MOST_SECONDS / unit)? * unit,
            Column::Rate(unit) => row.rate = Some(number(field, 1e15 / unit)? * unit),
            Column::Delay(unit) => row.delay = number(field, 1e6 / unit)? * unit,
            Column::Loss => row.loss = number(field, 1.0)?,
        }
    }
    Ok(row)
}

fn number(field: &str, most: f64) -> Result<f64, String> {
    match field.parse::<f64>() {
        Ok(value) if (0.0..=most).contains(&value) => Ok(value),
        _ => Err(format!("`{}` is not a number from 0 to {most}", excerpt(field))),
    }
}

/// Largest time allowed in a file, in seconds since 1970: the year 2286.
const MOST_SECONDS: f64 = 1e10;
/// Maximum length of a recording in seconds; larger times count as seconds since 1970 (from 2001 on).
const LONGEST_SECONDS: f64 = 1e9;

/// Time between two rows of a CSV file. An `f64` holds seconds since 1970 to a quarter of a microsecond, so whole
/// microseconds are exact.
pub(super) fn since(first: f64, time: f64) -> Span {
    let seconds = time - first;
    if first < LONGEST_SECONDS {
        return Span::from_secs_f64(seconds);
    }
    Span::from_micros(libm::round(seconds * 1e6) as u64)
}

fn assemble(rows: &[Row]) -> Result<Samples, TraceError> {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
        return Err(TraceError::whole("there is a header but no row"));
    };
    if last.time - first.time > LONGEST_SECONDS {
        return Err(TraceError::whole(format!(
            "it lasts {} s; a recording lasts at most {LONGEST_SECONDS} s",
            last.time - first.time
        )));
    }
    let since_first = |time: f64| since(first.time, time);
    let samples: Result<Vec<Sample>, TraceError> = rows
        .iter()
        .filter_map(|row| row.rate.map(|rate| (row, rate)))
        .map(|(row, rate)| {
            Ok(Sample {
                begins: since_first(row.time),
                rate: Rate::from_bps_f64(rate),
                delay: Span::from_secs_f64(row.delay),
                loss: Loss::try_from(row.loss).map_err(TraceError::whole)?,
            })
        })
        .collect();
    let end = match (last.rate, rows) {
        (None, _) => last.time,
        (Some(_), [.., before, _]) => last.time + (last.time - before.time),
        // The only row of a recording is valid forever, so the length of the row does not matter.
        (Some(_), _) => last.time + 1.0,
    };
    Samples::new(samples?, since_first(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_in_any_order_and_unit() {
        let text =
            "# made by hand\nrate_Mbps,time_ms,loss,delay_s\n1.5,1000,0.1,0.02\n0,3000,0,0\n2,4500,0,0\n";
        let samples = parse(text.as_bytes()).unwrap();
        let row = samples.rows()[0];
        assert_eq!((row.rate, row.delay), (Rate::from_bps(1_500_000), Span::from_millis(20)));
        assert_eq!(row.loss.probability(), 0.1);
        // The first row is at 1 s, and the last two rows are 1.5 s apart, so the length is 2 + 1.5 + 1.5 s.
        assert_eq!((samples.rows()[1].begins, samples.length()), (Span::from_secs(2), Span::from_secs(5)));
    }

    #[test]
    fn seconds_since_1970_count_from_the_first_row() {
        let since_1970 = "time_s,rate_kbps\n1700000000.1,100\n1700000000.2,300\n1700000001.1,\n";
        let from_zero = "time_s,rate_kbps\n0,100\n0.1,300\n1,\n";
        assert_eq!(parse(since_1970.as_bytes()).unwrap(), parse(from_zero.as_bytes()).unwrap());
        let milliseconds = "time_ms,rate_kbps\n1700000000100,100\n1700000000200,300\n1700000001100,\n";
        assert_eq!(parse(milliseconds.as_bytes()).unwrap(), parse(from_zero.as_bytes()).unwrap());
    }

    #[test]
    fn what_is_printed_is_what_is_parsed() {
        for text in [
            "time_s,rate_kbps\n0,100\n1.5,0\n2,250.5\n7,\n",
            "time_s,rate_kbps,delay_ms,loss\n0,100,20,0.5\n1,200,0.001,0\n2,,,\n",
        ] {
            assert_eq!(print(&parse(text.as_bytes()).unwrap()), text);
        }
    }

    #[test]
    fn bad_files_are_refused_with_their_line() {
        for (text, part) in [
            ("time_s\n", "line 1: a column of times or of rates is missing"),
            ("time_s,rate_kbps,colour\n0,1,2\n", "`colour` is not a column"),
            ("time_s,rate_furlong\n0,1\n", "`rate_furlong` is not a column"),
            ("time_s,rate_kbps,rate_bps\n", "repeats an earlier column"),
            ("time_s,rate_kbps\n", "no row"),
            ("# nothing\n", "no header"),
            ("time_s,rate_kbps\n0,1\n2\n", "line 3: 1 fields"),
            ("time_s,rate_kbps\n0,-1\n", "line 2: `-1` is not a number"),
            ("time_s,rate_kbps\n0,NaN\n", "`NaN`"),
            ("time_s,rate_kbps\n0,inf\n", "`inf`"),
            ("time_s,rate_kbps\n,5\n", "`` is not a number"),
            ("time_s,rate_kbps\n1,1\n0.5,1\n", "line 3: 0.5 after 1"),
            ("time_s,rate_kbps\n0,1\n1,\n2,3\n", "line 4: a row follows the end"),
            ("time_s,rate_kbps\n0,0\n1,0\n", "every rate is zero"),
            ("time_s,rate_kbps,delay_ms\n0,1,20\n1,1,\n2,1,20\n", "line 3: no delay"),
            ("time_s,rate_kbps,loss\n0,1,\n1,,\n", "line 2: no loss"),
            ("time_s,rate_kbps,loss\n0,1,2\n", "`2` is not a number from 0 to 1"),
            ("time_s,rate_kbps\n0,1\n1700000000,1\n", "it lasts 1700000000 s; a recording lasts at most"),
            ("time_s,rate_kbps\n1700000000000,1\n", "is not a number from 0 to 10000000000"),
            ("time_s,rate_kbps\n0,\n", "no row at the start"),
            ("time_s,rate_kbps\n0,1\n0.0000000001,1\n", "times increase"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }
}
