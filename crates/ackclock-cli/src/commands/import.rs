//! `ackclock import`: converts link recordings that other tools and data sets wrote.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ackclock_core::units::time_unit;
use ackclock_core::{Rate, Span};
use ackclock_import::formats::{
    Columns, Form, Grade, Imported, Options, TimeUnit, Towards, Unit, separator_named,
};
use clap::ValueEnum;
use serde_json::{Value, json};

use super::time_above_zero;
use super::trace::{described, read, say, write};
use super::treatment::Treatment;
use crate::failure::Failure;
use crate::output;
use crate::table::terminal_width;

/// Input file and options for reading it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ackclock import iperf3.json -o down.csv
  ackclock import phone.csv --direction both -o drive.csv
  ackclock import capture.pcapng --direction down --bin 100ms -o down.csv
  ackclock import log.csv --time-column when --rate-column down --unit Mbit/s -o log.rates.csv

Without -o the recording is described and nothing is written.")]
pub(crate) struct Args {
    /// Recording file to import.
    file: PathBuf,
    /// File to write: CSV with `time_s,rate_kbps`, or mahimahi's format if the recording contains delivery
    /// opportunities.
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Format of the input file: mahimahi, rates, json-list, iperf3, flent, ucc, lumos5g, norway, ghent, irtt, lens,
    /// ping, saturatr, autorate, pcap, columns.
    #[arg(long = "as", value_name = "FORM", value_parser = Form::named)]
    form: Option<Form>,
    /// Direction to read, seen from the mobile. With `both`, two files are written: OUT.down.csv and OUT.up.csv.
    #[arg(long, value_enum)]
    direction: Option<Way>,
    /// Link rate to assume for probe recordings (irtt, ping), which do not measure a rate.
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Number of the run to read from a file with several runs. By default the longest run of the file is read.
    #[arg(long, value_name = "N")]
    run: Option<u64>,
    /// Sort the rows by time.
    #[arg(long)]
    sort: bool,
    /// Treatment of rows without a rate and of gaps above three median steps: refuse the file, hold the previous rate,
    /// or use rate zero.
    #[arg(long, value_enum, default_value_t = Treatment::Refuse)]
    missing: Treatment,
    /// Print one JSON object per recording instead of the table.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    capture: CaptureArgs,
    #[command(flatten)]
    table: TableArgs,
}

/// Options for packet captures.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Packet captures")]
struct CaptureArgs {
    /// Interval over which rates are averaged, 100 ms by default.
    #[arg(long, value_name = "TIME", value_parser = time_above_zero)]
    bin: Option<Span>,
    /// Address of the mobile. By default the packets that were captured at their receiver are read.
    #[arg(long, value_name = "ADDRESS")]
    host: Option<IpAddr>,
    /// Number of the interface to read, from 0 as in the file. By default the interface with the most bytes is read.
    #[arg(long, value_name = "N")]
    interface: Option<u32>,
    /// Interpolate the rates at times when the link was not busy.
    #[arg(long)]
    fill: bool,
    /// Write the rates even if they show application traffic and not the capacity of the link.
    #[arg(long)]
    force: bool,
}

/// Options for tables that have none of the known formats.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Columns of other tables")]
struct TableArgs {
    /// Column of the times, by name or by number from 1.
    #[arg(long, value_name = "COLUMN")]
    time_column: Option<String>,
    /// Unit of the time column: s, ms, us, ns, iso (date and time), auto.
    #[arg(long, value_name = "UNIT", default_value = "auto", value_parser = TimeUnit::named)]
    time_unit: TimeUnit,
    /// Column of the rates, by name or by number from 1.
    #[arg(long, value_name = "COLUMN")]
    rate_column: Option<String>,
    /// Unit of the rate column: bit/s, kbit/s, Mbit/s, B/s, kB/s, MB/s, or B (bytes since the previous row).
    #[arg(long, value_name = "UNIT", value_parser = Unit::named)]
    unit: Option<Unit>,
    /// Column of the one-way delays, by name or by number from 1.
    #[arg(long, value_name = "COLUMN")]
    delay_column: Option<String>,
    /// Unit of the delay column: s, ms, us, ns. By default that in the header, or ms.
    #[arg(long, value_name = "UNIT", value_parser = unit_of_delay)]
    delay_unit: Option<f64>,
    /// Column of the loss ratios from 0 to 1, by name or by number from 1.
    #[arg(long, value_name = "COLUMN")]
    loss_column: Option<String>,
    /// Read the loss column as percent.
    #[arg(long)]
    percent: bool,
    /// Separator between the fields of a row: `,`, `;`, tab, space.
    #[arg(long, value_name = "CHARACTER", value_parser = separator_named)]
    separator: Option<char>,
    /// Decimal separator in numbers: `.` or `,`.
    #[arg(long, value_name = "SIGN", default_value = ".", value_parser = [".", ","])]
    decimal: String,
    /// Number of lines to skip before the header.
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: usize,
}

/// Directions of a recording to import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Way {
    /// Downlink direction, towards the mobile.
    Down,
    /// Uplink direction, from the mobile.
    Up,
    /// Downlink and uplink, each written to a separate file.
    Both,
}

/// Imports the recording and writes the converted file.
pub(crate) fn perform(args: &Args) -> Result<(), Failure> {
    let ways: &[Option<Towards>] = match args.direction {
        None => &[None],
        Some(Way::Down) => &[Some(Towards::Mobile)],
        Some(Way::Up) => &[Some(Towards::Server)],
        Some(Way::Both) => &[Some(Towards::Mobile), Some(Towards::Server)],
    };
    let read_way = |towards: &Option<Towards>| {
        let imported = read(&args.file, &options(args, *towards))?;
        Ok((named(&args.file, *towards, ways.len()).display().to_string(), *towards, imported))
    };
    let read: Vec<(String, Option<Towards>, Imported)> =
        ways.iter().map(read_way).collect::<Result<_, Failure>>()?;
    check_both(&args.file, &read.iter().map(|(_, _, imported)| imported).collect::<Vec<_>>())?;
    for (name, towards, imported) in &read {
        say(name, imported);
        if let Some(out) = &args.out {
            check_grade(name, imported, args.capture.force)?;
            write(&named(out, *towards, ways.len()), &text(name, imported)?)?;
        }
    }
    if args.json {
        let lines =
            read.iter().map(|(name, _, imported)| format!("{}\n", as_json(name, imported, args.missing)));
        return output::print(&lines.collect::<String>());
    }
    let recordings: Vec<_> = read.into_iter().map(|(name, _, imported)| (name, imported)).collect();
    output::print(&described(&recordings).render(terminal_width()))
}

/// Refuses to read both directions from a recording of one.
fn check_both(file: &Path, read: &[&Imported]) -> Result<(), Failure> {
    let [down, up] = read else { return Ok(()) };
    let why = if down.form == Form::Columns {
        "each direction has a separate column: import them one by one with --rate-column"
    } else if down.recording == up.recording {
        "it is a recording of one direction: leave out --direction"
    } else {
        return Ok(());
    };
    Err(Failure::Input(format!("{}: --direction both: {why}", file.display())))
}

/// Refuses to write a capture of application traffic without `--force`.
fn check_grade(name: &str, imported: &Imported, force: bool) -> Result<(), Failure> {
    match &imported.certainty {
        Some(certainty) if imported.form == Form::Pcap && certainty.grade == Grade::Application && !force => {
            Err(Failure::Input(format!(
                "{name}: its rates are not the link's, they are {certainty}; --force writes them nevertheless"
            )))
        }
        _ => Ok(()),
    }
}

fn options(args: &Args, towards: Option<Towards>) -> Options {
    let table = &args.table;
    Options {
        form: args.form,
        towards,
        columns: Columns {
            time: table.time_column.clone(),
            time_unit: table.time_unit,
            rate: table.rate_column.clone(),
            unit: table.unit,
            delay: table.delay_column.clone(),
            delay_unit: table.delay_unit,
            loss: table.loss_column.clone(),
            percent: table.percent,
            separator: table.separator,
            decimal_comma: table.decimal == ",",
            skip: table.skip,
        },
        rate: args.rate,
        run: args.run,
        sort: args.sort,
        missing: args.missing.into(),
        host: args.capture.host,
        interface: args.capture.interface,
        bin: args.capture.bin,
        fill: args.capture.fill,
        measured_delay: false,
    }
}

/// Output path for one direction. With several directions, the path `drive.csv` becomes `drive.down.csv` or
/// `drive.up.csv`.
fn named(path: &Path, towards: Option<Towards>, directions: usize) -> PathBuf {
    let (Some(towards), 2..) = (towards, directions) else { return path.to_owned() };
    let direction = if towards == Towards::Mobile { "down" } else { "up" };
    match path.extension() {
        Some(extension) => path.with_extension(format!("{direction}.{}", extension.to_string_lossy())),
        None => path.with_extension(direction),
    }
}

fn text(name: &str, imported: &Imported) -> Result<String, Failure> {
    imported.text().map_err(|error| Failure::Input(format!("{name}: {error}")))
}

/// Adds to the object of a packet capture the intervals in which its rates are the capacity of the link.
fn add_capacity(object: &mut Value, imported: &Imported) {
    if imported.form == Form::Pcap {
        let seconds = imported.capacity.iter().map(|(begin, end)| [begin.as_secs_f64(), end.as_secs_f64()]);
        object["capacity_s"] = json!(seconds.collect::<Vec<_>>());
    }
}

fn as_json(name: &str, imported: &Imported, missing: Treatment) -> Value {
    let of = imported.recording.statistics();
    let kbps = |rate: Rate| rate.as_bps() as f64 / 1e3;
    let percentile = |share| of.percentile(share).map(kbps);
    let mut object = json!({
        "recording": name,
        "form": imported.form.name(),
        "rows": imported.rows(),
        "length_s": of.length.as_secs_f64(),
        "mean_kbps": kbps(of.mean),
        "p5": percentile(0.05),
        "p50": percentile(0.5),
        "p95": percentile(0.95),
        "outages": of.outages.len(),
        "missing": {"rows": imported.missing, "treatment": missing.to_possible_value().map(|value| value.get_name().to_owned())},
        "clock": if imported.even { "even" } else { "uneven" },
        "certainty": imported.certainty,
        "notes": imported.notes,
    });
    add_capacity(&mut object, imported);
    object
}

fn unit_of_delay(text: &str) -> Result<f64, String> {
    time_unit(text).ok_or_else(|| "it is one of s, ms, us, ns".to_owned())
}
