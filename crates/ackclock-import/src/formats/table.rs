//! Tables with a header: columns of time, rate, delay and loss, and their units.

use ackclock_core::units::{rate_unit, time_unit};

use super::super::{TraceError, excerpt, lines};
use super::clock::TimeUnit;
use super::rows::Row;
use super::{Options, Towards, UnknownName};

/// Columns of a table to read, by name or by number from 1, and their units. Columns that are not given are guessed
/// from the names in the header.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    /// Name or number of the column of times.
    pub time: Option<String>,
    /// Unit of the column of times.
    pub time_unit: TimeUnit,
    /// Name or number of the column of rates.
    pub rate: Option<String>,
    /// Unit of the column of rates.
    pub unit: Option<Unit>,
    /// Name or number of the column of delays.
    pub delay: Option<String>,
    /// Unit of the column of delays, in seconds; by default that in the header, or 1 ms.
    pub delay_unit: Option<f64>,
    /// Name or number of the column of losses.
    pub loss: Option<String>,
    /// Whether the column of losses is in percent.
    pub percent: bool,
    /// Character between two fields; detected from the header by default.
    pub separator: Option<char>,
    /// Whether numbers use a decimal comma.
    pub decimal_comma: bool,
    /// Number of lines to skip before the header.
    pub skip: usize,
}

/// Unit of a column of rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// Rate unit, with its size in bit/s.
    Bps(f64),
    /// Bytes transferred since the previous row.
    Bytes,
}

impl Unit {
    /// Parses the name of a rate unit: `kbit/s`, `MB/s`, `B`.
    ///
    /// # Errors
    /// Fails if the name is unknown; the error lists the valid names.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        let bytes = |unit: &str| match unit {
            "B" => Some(8.0),
            "kB" | "KB" => Some(8e3),
            "MB" => Some(8e6),
            _ => None,
        };
        let unit = match name.strip_suffix("/s").and_then(bytes) {
            Some(bps) => Some(Self::Bps(bps)),
            None if name == "B" => Some(Self::Bytes),
            None => rate_unit(name).map(Self::Bps),
        };
        let names = ["bit/s", "kbit/s", "Mbit/s", "B/s", "kB/s", "MB/s", "B"];
        unit.ok_or_else(|| UnknownName::of(names))
    }
}

/// Parses the name of a field separator: `,`, `;`, `tab`, `space`.
///
/// # Errors
/// Fails if the name is unknown; the error lists the valid names.
pub fn separator_named(name: &str) -> Result<char, UnknownName> {
    match name {
        "tab" => Ok('\t'),
        "space" => Ok(' '),
        "," => Ok(','),
        ";" => Ok(';'),
        _ => Err(UnknownName::of(["`,`", "`;`", "tab", "space"])),
    }
}

/// Names of columns of times and of rates, without their units.
const TIMES: [&str; 6] = ["time", "t", "timestamp", "elapsed", "ts", "datetime"];
const RATES: [&str; 6] = ["rate", "throughput", "bandwidth", "bitrate", "dl_bitrate", "download"];

/// Ends of names that say that a column holds rates, even if its unit names no time.
const RATE_ENDS: [&str; 5] = ["rate", "throughput", "bandwidth", "goodput", "capacity"];

/// Words of the names of columns that are no rates of a link.
const NO_LINK: [&str; 3] = ["target", "limit", "delay"];

/// Words of the names of columns of the uplink and of the downlink. Short words are complete words of a name.
const UPLINK: ([&str; 3], [&str; 3]) = (["upload", "uplink", "upstream"], ["up", "ul", "tx"]);
const DOWNLINK: ([&str; 3], [&str; 3]) = (["download", "downlink", "downstream"], ["down", "dl", "rx"]);

/// Words in the names of columns of delays and of losses, and the option that reads such a column.
const MORE: [(&str, &str); 3] =
    [("delay", "--delay-column"), ("latency", "--delay-column"), ("loss", "--loss-column")];

/// Text table with a header line.
pub(super) struct Table<'a> {
    bytes: &'a [u8],
    separator: char,
    /// Index of the header line in the file.
    header_line: usize,
    header: Vec<&'a str>,
    decimal_comma: bool,
}

impl<'a> Table<'a> {
    pub(super) fn of(bytes: &'a [u8], columns: &Columns) -> Result<Self, TraceError> {
        let (header_line, header) =
            content(bytes, columns.skip).next().ok_or_else(|| TraceError::whole("there is no header"))?;
        let header = header?;
        let known = ['\t', ';', ','].into_iter().find(|&separator| header.contains(separator));
        let separator = columns.separator.or(known).unwrap_or(' ');
        let header = fields(header, separator);
        Ok(Self { bytes, separator, header_line, header, decimal_comma: columns.decimal_comma })
    }

    /// Names of the table's columns in lower case, without quotes and spaces.
    pub(super) fn names(&self) -> Vec<String> {
        self.header.iter().map(|name| plain(name)).collect()
    }

    /// Index of the column with this name or number.
    pub(super) fn column(&self, name: &str) -> Result<usize, TraceError> {
        if let Some(index) = self.names().iter().position(|known| *known == plain(name)) {
            return Ok(index);
        }
        let number = name.parse::<usize>().ok().filter(|number| (1..=self.header.len()).contains(number));
        number.map(|number| number - 1).ok_or_else(|| {
            let there = self.header.join(", ");
            TraceError::at(
                self.header_line,
                format!("there is no column `{name}`: {}", excerpt_of(&there, 200)),
            )
        })
    }

    /// Whether the first line holds a number in the column of times, so that the table has no header.
    fn is_headless(&self, time: usize) -> bool {
        self.header[time].starts_with(|c: char| c.is_ascii_digit())
    }

    /// Records below the header.
    pub(super) fn data(&self) -> impl Iterator<Item = Result<Record<'_>, TraceError>> {
        self.records(self.header_line + 1)
    }

    fn records(&self, skip: usize) -> impl Iterator<Item = Result<Record<'_>, TraceError>> {
        let columns = self.header.len();
        content(self.bytes, skip).map(move |(line, text)| {
            let fields = fields(text?, self.separator);
            if fields.len() != columns {
                let message = format!("{} fields; the header names {columns} columns", fields.len());
                return Err(TraceError::at(line, message));
            }
            Ok(Record { table: self, line, fields })
        })
    }
}

/// One line of a table. Columns are given by their index.
pub(super) struct Record<'a> {
    table: &'a Table<'a>,
    /// Index of the line in the file.
    pub(super) line: usize,
    pub(super) fields: Vec<&'a str>,
}

impl Record<'_> {
    /// Number in a column; `None` for a placeholder of a missing value.
    pub(super) fn number(&self, column: usize) -> Result<Option<f64>, TraceError> {
        let field = self.fields[column].trim_matches('"');
        if matches!(field, "" | "-" | "--" | "NA" | "N/A" | "nan" | "NaN" | "null" | "None") {
            return Ok(None);
        }
        let comma = self.table.decimal_comma;
        let number = if comma { field.replace(',', ".").parse() } else { field.parse::<f64>() };
        match number {
            Ok(number) if number.is_finite() => Ok(Some(number)),
            _ => Err(self.wrong(column, "a number")),
        }
    }

    /// Number in a column that has a value in every row; `what` describes the number.
    pub(super) fn needed(&self, column: usize, what: &str) -> Result<f64, TraceError> {
        self.number(column)?.ok_or_else(|| self.wrong(column, what))
    }

    /// Number in a column that the table may lack, in this unit.
    pub(super) fn known(&self, column: Option<usize>, unit: f64) -> Result<Option<f64>, TraceError> {
        let number = column.map(|column| self.number(column)).transpose()?.flatten();
        Ok(number.map(|number| number * unit))
    }

    /// Time in a column, in seconds; `what` describes its format.
    pub(super) fn time(&self, column: usize, unit: TimeUnit, what: &str) -> Result<f64, TraceError> {
        unit.seconds(self.fields[column]).ok_or_else(|| self.wrong(column, what))
    }

    fn wrong(&self, column: usize, what: &str) -> TraceError {
        let name = self.table.header.get(column).copied().unwrap_or_default();
        let field = excerpt(self.fields[column].trim_matches('"'));
        TraceError::at(self.line, format!("column `{name}`: `{field}` is not {what}"))
    }
}

/// Lines of the file that are neither empty nor comments, after the first `skip` lines.
fn content(bytes: &[u8], skip: usize) -> impl Iterator<Item = (usize, Result<&str, TraceError>)> {
    lines(bytes)
        .skip(skip)
        .filter(|(_, line)| line.as_ref().map_or(true, |text| !text.is_empty() && !text.starts_with('#')))
}

fn fields(line: &str, separator: char) -> Vec<&str> {
    if separator == ' ' {
        return line.split_whitespace().collect();
    }
    line.split(separator).map(|field| field.trim().trim_matches('"')).collect()
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| !c.is_whitespace() && *c != '"').flat_map(char::to_lowercase).collect()
}

fn excerpt_of(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// Name of a column without its unit, in lower case, and the unit. A column that is named by its unit has no name.
struct Named<'a> {
    /// Name without the unit, as written.
    written: &'a str,
    stem: String,
    unit: Option<&'a str>,
}

impl<'a> Named<'a> {
    /// Splits a name such as `throughput_mbps`, `Throughput (Mbit/s)` or `Mbps`. Upper case matters in the unit: `MBps`
    /// counts bytes.
    fn of(name: &'a str) -> Self {
        let bracketed = name.strip_suffix([')', ']']).and_then(|name| name.split_once(['(', '[']));
        let (stem, unit) =
            bracketed.map_or_else(|| split_unit(name), |(stem, unit)| (stem, Some(unit.trim())));
        Self { written: stem, stem: plain(stem).trim_end_matches('_').to_owned(), unit }
    }

    /// Number of bits per second in one unit. A unit without a time (`downloaded_mbit`) is one of rate only in a column
    /// that is called a rate.
    fn rate(&self) -> Option<f64> {
        let of_rate = RATE_ENDS.iter().any(|end| self.stem.ends_with(end));
        self.unit.filter(|unit| of_rate || unit.contains(['/', 'p', '_'])).and_then(bits_per_second)
    }

    /// Whether the name contains one of the long words, or one of the short words as a complete word.
    fn says(&self, (long, short): ([&str; 3], [&str; 3])) -> bool {
        let is_short = |word: &str| short.contains(&plain(word).as_str());
        long.iter().any(|word| self.stem.contains(word))
            || self.written.split(|c: char| !c.is_alphanumeric()).any(is_short)
    }

    /// What a rate of this name is instead of the link's rate in this direction; `None` if the name leaves no doubt.
    fn doubt(&self, towards: Option<Towards>) -> Option<&'static str> {
        let (other, name) = match towards {
            Some(Towards::Server) => (DOWNLINK, "the downlink"),
            _ => (UPLINK, "the uplink"),
        };
        let is_link = !NO_LINK.iter().any(|word| self.stem.contains(word));
        if is_link { self.says(other).then_some(name) } else { Some("a setting") }
    }

    /// Number of seconds in one unit.
    fn seconds(&self) -> Option<f64> {
        self.unit.and_then(seconds)
    }
}

/// Splits off the longest unit at the end of a name. A whole name is a unit of rate only if it names a time.
fn split_unit(name: &str) -> (&str, Option<&str>) {
    let starts = name.match_indices(['_', ' ']).map(|(index, _)| index + 1);
    let is_unit = |start: usize| {
        let unit = &name[start..];
        let is_rate = bits_per_second(unit).is_some() && (start > 0 || unit.contains(['/', 'p']));
        is_rate || seconds(unit).is_some()
    };
    match [0].into_iter().chain(starts).find(|&start| is_unit(start)) {
        Some(start) => (&name[..start], Some(&name[start..])),
        None => (name, None),
    }
}

/// Number of bits per second in one unit, as written in a header: `mbps`, `Mbit/s`, `mbit_s`, `MB/s`, `MBps`,
/// `bits_per_second`.
fn bits_per_second(unit: &str) -> Option<f64> {
    let unit = unit.replace("_per_", "/").replace('_', "/").replace("bits/", "bit/").replace("/second", "/s");
    let unit = unit.strip_suffix("Bps").map_or(unit.clone(), |prefix| format!("{prefix}B/s"));
    match Unit::named(&unit) {
        Ok(Unit::Bps(bps)) => Some(bps),
        _ => None,
    }
}

/// Number of seconds in one unit, as written in a header.
fn seconds(unit: &str) -> Option<f64> {
    match unit.to_lowercase().as_str() {
        "sec" | "secs" | "second" | "seconds" => Some(1.0),
        "msec" | "millis" | "milliseconds" => Some(1e-3),
        "usec" | "micros" | "microseconds" => Some(1e-6),
        _ => time_unit(unit),
    }
}

impl Table<'_> {
    fn named(&self) -> impl Iterator<Item = Named<'_>> {
        self.header.iter().map(|name| Named::of(name))
    }

    /// Columns with one of these names, the first name first; otherwise all columns for which `holds`.
    fn guessed(&self, known: &[&str], holds: impl Fn(&Named<'_>) -> bool) -> Vec<usize> {
        let by_name = known.iter().find_map(|known| self.named().position(|name| name.stem == *known));
        by_name.map_or_else(
            || (0..).zip(self.named()).filter(|(_, name)| holds(name)).map(|(column, _)| column).collect(),
            |column| vec![column],
        )
    }

    fn times(&self) -> Vec<usize> {
        self.guessed(&TIMES, |name| name.stem.is_empty() && name.seconds().is_some())
    }

    fn rates(&self) -> Vec<usize> {
        self.guessed(&RATES, |name| name.rate().is_some())
    }

    /// Whether the names of the columns show which hold times and rates.
    pub(super) fn is_guessable(&self) -> bool {
        !self.times().is_empty() && !self.rates().is_empty()
    }
}

/// Reads the rows of a table, and the end time of its last row if the table contains that time.
pub(super) fn read(bytes: &[u8], options: &Options) -> Result<(Vec<Row>, Option<f64>), TraceError> {
    let columns = &options.columns;
    let table = Table::of(bytes, columns)?;
    let time = find(&table, columns.time.as_deref(), &table.times(), "--time-column")?;
    let rate = find(&table, columns.rate.as_deref(), &table.rates(), "--rate-column")?;
    if columns.rate.is_none() {
        check_direction(&table, rate, options.towards)?;
        check_others(&table, rate, columns)?;
    }
    let optional = |name: &Option<String>| name.as_deref().map(|name| table.column(name)).transpose();
    let (delay, loss) = (optional(&columns.delay)?, optional(&columns.loss)?);
    let time_unit = match (columns.time_unit, Named::of(table.header[time]).seconds()) {
        (TimeUnit::Auto, Some(unit)) => TimeUnit::Seconds(unit),
        (unit, _) => unit,
    };
    let unit = unit_of(&table, rate, columns)?;
    let delay_unit = columns.delay_unit.or_else(|| delay_unit(table.header[delay?])).unwrap_or(1e-3);
    let loss_unit = if columns.percent { 1e-2 } else { 1.0 };
    let skip = if table.is_headless(time) { table.header_line } else { table.header_line + 1 };
    let mut rows = Vec::new();
    for record in table.records(skip) {
        let record = record?;
        let bps = if let Unit::Bps(bps) = unit { bps } else { 8.0 };
        rows.push(Row {
            line: record.line,
            begins: record.time(time, time_unit, "a time")?,
            rate: record.known(Some(rate), bps)?,
            delay: record.known(delay, delay_unit)?,
            loss: record.known(loss, loss_unit)?,
            ..Row::default()
        });
    }
    let end = rows.last().map(|last| last.begins);
    Ok(if unit == Unit::Bytes { (since_the_row_before(&rows), end) } else { (rows, None) })
}

/// Number of seconds in the unit of a column of delays; `min` in its name is a minimum and not a minute.
fn delay_unit(name: &str) -> Option<f64> {
    Named::of(name).seconds().filter(|&unit| unit <= 1.0)
}

/// Converts rows that hold the bits since the previous row to rates; each rate is valid from the time of the previous
/// row on.
fn since_the_row_before(rows: &[Row]) -> Vec<Row> {
    let pairs = rows.windows(2);
    pairs
        .map(|pair| {
            let lasts = pair[1].begins - pair[0].begins;
            let rate = pair[1].rate.map(|bits| bits / lasts);
            Row { begins: pair[0].begins, ends: Some(pair[1].begins), rate, ..pair[1] }
        })
        .collect()
}

/// The column of this name, or the only guessed one.
fn find(table: &Table<'_>, name: Option<&str>, guessed: &[usize], option: &str) -> Result<usize, TraceError> {
    match (name, guessed) {
        (Some(name), _) => table.column(name),
        (None, [column]) => Ok(*column),
        (None, _) => {
            let there = excerpt_of(&table.header.join(", "), 200);
            let message = format!("which column? `ackclock import FILE {option} NAME` reads one of {there}");
            Err(TraceError::at(table.header_line, message))
        }
    }
}

/// Refuses a guessed column of rates whose name is that of another direction or of a setting.
fn check_direction(table: &Table<'_>, rate: usize, towards: Option<Towards>) -> Result<(), TraceError> {
    let name = table.header[rate];
    let Some(doubt) = Named::of(name).doubt(towards) else { return Ok(()) };
    let column = argument(name, rate);
    let message = format!("`{name}` is {doubt}: `ackclock import FILE --rate-column {column}` reads it");
    Err(TraceError::at(table.header_line, message))
}

/// A column as an argument in a shell: its name in quotes, or its number if the name has a quote.
fn argument(name: &str, column: usize) -> String {
    if name.contains('\'') { (column + 1).to_string() } else { format!("'{name}'") }
}

/// Refuses a table with columns of delays or losses that are not selected, beside a guessed column of rates.
fn check_others(table: &Table<'_>, rate: usize, columns: &Columns) -> Result<(), TraceError> {
    let selected = |option: &str| match option {
        "--loss-column" => columns.loss.is_some(),
        _ => columns.delay.is_some(),
    };
    let names = table.header.iter().zip(table.named()).enumerate();
    let mut unread = names.filter_map(|(column, (name, named))| {
        let (_, option) = MORE.into_iter().find(|(word, _)| named.stem.contains(word))?;
        (!selected(option)).then_some((*name, column, option))
    });
    let Some((name, column, option)) = unread.next() else { return Ok(()) };
    let (column, rate) = (argument(name, column), argument(table.header[rate], rate));
    let message = format!(
        "`{name}` is not read: `ackclock import FILE {option} {column}` reads it, and --rate-column {rate} leaves it out"
    );
    Err(TraceError::at(table.header_line, message))
}

fn unit_of(table: &Table<'_>, rate: usize, columns: &Columns) -> Result<Unit, TraceError> {
    let name = table.header[rate];
    columns.unit.or_else(|| Named::of(name).rate().map(Unit::Bps)).ok_or_else(|| {
        let message = format!(
            "is `{name}` in kbit/s or Mbit/s? `ackclock import FILE --unit Mbit/s` reads it (or another --unit)"
        );
        TraceError::at(table.header_line, message)
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::Recording;
    use super::super::{Form, Grade, Missing, Options, read};
    use super::*;
    use ackclock_core::Span;

    /// A table with this header and twelve rows, each written by `row`.
    fn table(header: &str, row: impl Fn(u32) -> String) -> String {
        (0..12).fold(format!("{header}\n"), |text, n| text + &row(n) + "\n")
    }

    fn mean_kbps(text: &str, columns: Columns) -> Result<u64, String> {
        let options = Options { columns, ..Options::default() };
        let imported = read(text.as_bytes(), &options).map_err(|error| error.to_string())?;
        assert_eq!((imported.form, imported.certainty.unwrap().grade), (Form::Columns, Grade::LowerBound));
        Ok(imported.recording.mean_rate().as_bps() / 1000)
    }

    #[test]
    fn columns_are_guessed_by_name_and_unit() {
        for (header, expected) in [
            ("time,throughput_mbps", 2000),
            ("Time (s), Throughput (kbit/s)", 2),
            ("\"timestamp\",\"Bandwidth_kbps\"", 2),
            ("t;bitrate_bps;x", 0),
            ("time,mbps", 2000),
            ("timestamp,kbps", 2),
            ("Time,Mbps", 2000),
            ("seconds,bandwidth_mbps", 2000),
            ("time_s,link_mbps", 2000),
            ("elapsed_ms,Mbit/s", 2000),
            ("sec,DL [Mbit/s]", 2000),
            ("time;capacity MB/s;x", 16_000),
            ("t,goodput_MBps", 16_000),
            ("t,bits_per_second", 0),
            ("t,cell_kbit_s", 2),
            ("time_s;rate_kbps;x", 2),
            ("time,rate_mbps", 2000),
            ("timestamp,rate_mbps", 2000),
            ("t,goodput_mbit", 2000),
            ("t,Link throughput [kbit]", 2),
        ] {
            let separator = if header.contains(';') { ';' } else { ',' };
            let more = if separator == ';' { ";7" } else { "" };
            let text = table(header, |n| format!("{n}{separator}2{more}"));
            assert_eq!(mean_kbps(&text, Columns::default()), Ok(expected), "{header}");
        }
        let error =
            mean_kbps(&table("time,throughput", |n| format!("{n},2")), Columns::default()).unwrap_err();
        assert_eq!(
            error,
            "line 1: is `throughput` in kbit/s or Mbit/s? `ackclock import FILE --unit Mbit/s` reads it (or another --unit)"
        );
    }

    #[test]
    fn a_header_that_leaves_a_choice_is_refused_with_the_option() {
        let two = "line 1: which column? `ackclock import FILE --rate-column NAME` reads one of time, dl_mbps, ul_mbps";
        let unit = "line 1: is `rate` in kbit/s or Mbit/s? `ackclock import FILE --unit Mbit/s` reads it";
        for (header, message) in [
            ("time,dl_mbps,ul_mbps", two),
            ("seconds,rate,x", unit),
            ("time,mbit,x", "no known form begins with"),
            ("time,wait_ms,x", "no known form begins with"),
            ("time_s,rate_mbps,colour", "line 1: `colour` is not a column"),
            ("time,THROUGHPUT_MBPS,x", "no known form begins with"),
            ("mbps,kbps,wait", "no known form begins with"),
            ("time,downloaded_mbit,x", "no known form begins with"),
            ("time,volume_mbit,x", "no known form begins with"),
            ("elapsed_s,transferred [kbit],x", "no known form begins with"),
            ("time,download_mbit,x", "line 1: is `download_mbit` in kbit/s or Mbit/s?"),
        ] {
            let error = mean_kbps(&table(header, |n| format!("{n},2,2")), Columns::default()).unwrap_err();
            assert!(error.starts_with(message), "{header}: {error}");
        }
    }

    #[test]
    fn a_rate_of_the_other_direction_or_of_a_setting_is_refused_with_the_option() {
        let told = |header: &str, towards| {
            let text = table(header, |n| format!("{n},2"));
            let options = Options { towards, ..Options::default() };
            read(text.as_bytes(), &options).map_or_else(|error| error.to_string(), |_| String::new())
        };
        for (name, what) in [
            ("upload_mbps", "the uplink"),
            ("UL [Mbit/s]", "the uplink"),
            ("tx_mbps", "the uplink"),
            ("link_up_mbps", "the uplink"),
            ("target_mbps", "a setting"),
            ("rate_limit_mbps", "a setting"),
            ("delay_mbps", "a setting"),
        ] {
            let header = format!("time,{name}");
            let expected =
                format!("line 1: `{name}` is {what}: `ackclock import FILE --rate-column '{name}'` reads it");
            assert_eq!(told(&header, None), expected);
            assert_eq!(told(&header, Some(Towards::Mobile)), expected);
            assert_eq!(told(&header, Some(Towards::Server)).is_empty(), what == "the uplink", "{header}");
            let columns = Columns { rate: Some(name.to_owned()), ..Columns::default() };
            assert_eq!(mean_kbps(&table(&header, |n| format!("{n},2")), columns), Ok(2000));
        }
        // What a shell would take for more than a name is named by its number.
        let quoted =
            "line 1: `it's upload_mbps` is the uplink: `ackclock import FILE --rate-column 2` reads it";
        assert_eq!(told("time,it's upload_mbps", None), quoted);
        let down =
            "line 1: `dl_mbps` is the downlink: `ackclock import FILE --rate-column 'dl_mbps'` reads it";
        assert_eq!(told("time,dl_mbps", Some(Towards::Server)), down);
        for name in ["dl_mbps", "supply_mbps", "update_mbps", "download_mbps"] {
            assert_eq!(told(&format!("time,{name}"), None), "");
        }
    }

    #[test]
    fn delays_and_losses_beside_guessed_rates_are_selected_or_left_out_explicitly() {
        let text = table("time_s,throughput_mbps,loss,delay_s", |n| format!("{n},2,0.25,0.04"));
        let [rate, loss, delay] = ["throughput_mbps", "loss", "delay_s"].map(|name| Some(name.to_owned()));
        let unread = |name: &str, option: &str| {
            format!(
                "line 1: `{name}` is not read: `ackclock import FILE {option} '{name}'` reads it, and --rate-column \
                 'throughput_mbps' leaves it out"
            )
        };
        let error = |columns| mean_kbps(&text, columns).unwrap_err();
        assert_eq!(error(Columns::default()), unread("loss", "--loss-column"));
        let columns = Columns { loss, ..Columns::default() };
        assert_eq!(error(columns.clone()), unread("delay_s", "--delay-column"));
        assert_eq!(mean_kbps(&text, Columns { rate, ..Columns::default() }), Ok(2000));
        let options = Options { columns: Columns { delay, ..columns }, ..Options::default() };
        let Recording::Samples(samples) = read(text.as_bytes(), &options).unwrap().recording else {
            unreachable!("tables of rates")
        };
        let row = samples.rows()[1];
        assert_eq!((row.delay, row.loss.probability()), (Span::from_millis(40), 0.25));
        assert_eq!(["delay_us", "delay_min", "delay"].map(delay_unit), [Some(1e-6), None, None]);
        for name in ["packet_loss", "Mean delay (ms)", "latency_ms"] {
            let text = table(&format!("time,throughput_mbps,{name}"), |n| format!("{n},2,0"));
            let message = mean_kbps(&text, Columns::default()).unwrap_err();
            assert!(message.starts_with(&format!("line 1: `{name}` is not read")), "{message}");
        }
    }

    #[test]
    fn columns_are_named_or_numbered_and_have_units() {
        let text = table("when\twhat\twait\tgone", |n| format!("{n}000\t1,5\t40\t25"));
        let columns = |rate: &str, unit: &str| Columns {
            time: Some("When".to_owned()),
            time_unit: TimeUnit::Seconds(1e-3),
            rate: Some(rate.to_owned()),
            unit: Unit::named(unit).ok(),
            delay: Some("wait".to_owned()),
            loss: Some("4".to_owned()),
            percent: true,
            decimal_comma: true,
            ..Columns::default()
        };
        for (rate, unit, expected) in [("what", "Mbit/s", 1500), ("2", "kB/s", 12), ("what", "MB/s", 12_000)]
        {
            assert_eq!(mean_kbps(&text, columns(rate, unit)), Ok(expected), "{unit}");
        }
        let options = Options { columns: columns("what", "Mbit/s"), ..Options::default() };
        let Recording::Samples(samples) = read(text.as_bytes(), &options).unwrap().recording else {
            unreachable!()
        };
        let row = samples.rows()[1];
        assert_eq!(
            (row.begins, row.delay, row.loss.probability()),
            (Span::from_secs(1), Span::from_millis(40), 0.25)
        );
        let error = mean_kbps(&text, columns("watt", "Mbit/s")).unwrap_err();
        assert_eq!(error, "line 1: there is no column `watt`: when, what, wait, gone");
    }

    #[test]
    fn bytes_are_those_since_the_row_before() {
        // 1000 B per half second are 16 kbit/s; the first row only states when the recording starts.
        let text = table("time_ms,received", |n| format!("{},1000", 500 * n));
        let columns =
            Columns { rate: Some("received".to_owned()), unit: Some(Unit::Bytes), ..Columns::default() };
        assert_eq!(mean_kbps(&text, columns), Ok(16));
    }

    #[test]
    fn a_table_without_a_header_has_numbered_columns() {
        let text: String = (0..12).map(|n| format!("{n} 7 300\n")).collect();
        let numbered = |column: &str| Some(column.to_owned());
        let columns = Columns {
            time: numbered("1"),
            rate: numbered("3"),
            unit: Unit::named("kbit/s").ok(),
            ..Columns::default()
        };
        assert_eq!(mean_kbps(&text, columns), Ok(300));
    }

    #[test]
    fn what_is_missing_is_refused_held_or_zero() {
        let text = table("time,rate_kbps", |n| format!("{n},{}", if n == 3 { "-" } else { "120" }));
        let columns = Columns { time: Some("time".to_owned()), ..Columns::default() };
        let read = |missing| {
            read(text.as_bytes(), &Options { columns: columns.clone(), missing, ..Options::default() })
        };
        let error = read(Missing::Refuse).unwrap_err().to_string();
        assert!(error.starts_with("line 5: no rate is given; --missing hold"), "{error}");
        for (missing, kbps) in [(Missing::Hold, 120), (Missing::Zero, 110)] {
            let imported = read(missing).unwrap();
            assert_eq!((imported.missing, imported.recording.mean_rate().as_bps()), (1, 1000 * kbps));
        }
    }

    #[test]
    fn a_missing_delay_is_that_of_the_row_before() {
        let text = table("time,rate_kbps,wait", |n| format!("{n},5,{}", ["40", "-", "60"][n as usize % 3]));
        let [time, delay] = ["time", "wait"].map(|name| Some(name.to_owned()));
        let options =
            Options { columns: Columns { time, delay, ..Columns::default() }, ..Options::default() };
        let Recording::Samples(samples) = read(text.as_bytes(), &options).unwrap().recording else {
            unreachable!("tables of rates")
        };
        let delays: Vec<_> = samples.rows().iter().take(6).map(|row| row.delay).collect();
        assert_eq!(delays, [40, 40, 60, 40, 40, 60].map(Span::from_millis));
    }

    #[test]
    fn bad_rows_are_told_by_their_line() {
        let columns = || Columns { time: Some("time".to_owned()), ..Columns::default() };
        for (row, message) in [
            ("0,1", "line 14: the time 0 s follows 11 s: times increase; --sort puts the rows in order"),
            ("11,1", "line 14: a second row at the time 11 s"),
            ("12,x", "line 14: column `rate_kbps`: `x` is not a number"),
            ("noon,1", "line 14: column `time`: `noon` is not a time"),
            ("12,1,1", "line 14: 3 fields; the header names 2 columns"),
            ("12,-1", "line 14: the rate in bit/s -1000 is not from 0 to 1000000000000000"),
        ] {
            let text = table("time,rate_kbps", |n| format!("{n},5")) + row + "\n";
            assert_eq!(mean_kbps(&text, columns()).unwrap_err(), message);
        }
        let short = "time,rate_kbps\n0,1\n1,1\n";
        assert_eq!(mean_kbps(short, columns()).unwrap_err(), "it has 2 rows; fewer than 10 are no recording");
        let sorted = Options { sort: true, columns: columns(), ..Options::default() };
        let text = table("time,rate_kbps", |n| format!("{},5", 20 - n));
        assert_eq!(read(text.as_bytes(), &sorted).unwrap().recording.length(), Span::from_secs(12));
    }

    #[test]
    fn what_is_no_recording_is_refused_with_the_reason() {
        for (text, part) in [
            ("timestamp_start,timestamp_end,download,upload\n", "WetLinks"),
            (
                "{\"TimeStamp\": 1, \"Bytes\": 1, \"TotalTime\": 1, \"SetupTime\": 1, \"Speed\": 1}\n{}\n",
                "MONROE",
            ),
            ("hello world\n", "no known form begins with \"hello world\\n\"; forms are mahimahi"),
            ("{\"a\": 1}", "no known form"),
            ("{\"a\": ", "not JSON"),
            ("\u{1f}\u{8b}", "no known form"),
        ] {
            let error = read(text.as_bytes(), &Options::default()).unwrap_err().to_string();
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }
}
