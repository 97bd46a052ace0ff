//! `ackclock import`: recordings that other tools and data sets wrote.

use std::path::{Path, PathBuf};

use ackclock_core::Rate;
use ackclock_core::units::time_unit;
use ackclock_link::trace::import::{
    Columns, Form, Imported, Missing, Options, TimeUnit, Towards, Unit, separator_named,
};
use clap::ValueEnum;
use serde_json::{Value, json};

use super::trace::{described, read, say, write};
use crate::failure::Failure;
use crate::output;
use crate::table::terminal_width;

/// Which file, and how it is read.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ackclock import iperf3.json -o down.csv
  ackclock import phone.csv --direction both -o drive.csv
  ackclock import log.csv --time-column when --rate-column down --unit Mbit/s -o log.rates.csv

Without -o the recording is described and nothing is written.")]
pub(crate) struct Args {
    /// The recording.
    file: PathBuf,
    /// File to write: CSV with `time_s,rate_kbps`, or mahimahi's form where the recording has opportunities.
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Read the file as this form: mahimahi, rates, json-list, iperf3, ucc, lumos5g, norway, ghent, irtt, lens, ping, saturatr,
    /// autorate, columns.
    #[arg(long = "as", value_name = "FORM", value_parser = Form::named)]
    form: Option<Form>,
    /// Direction to read, seen from the mobile; both are written to OUT.down.csv and OUT.up.csv.
    #[arg(long, value_enum)]
    direction: Option<Way>,
    /// Rate of the link of probes (irtt, ping), which measure none.
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Run to read of a file with several; the longest unless given.
    #[arg(long, value_name = "N")]
    run: Option<u64>,
    /// Put the rows in order of time.
    #[arg(long)]
    sort: bool,
    /// Rows without a rate: refuse them, hold the rate before, or take zero.
    #[arg(long, value_enum, default_value_t = Treatment::Refuse)]
    missing: Treatment,
    /// Print one JSON object a recording instead of the table.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    table: TableArgs,
}

/// Columns of a table that is none of the known forms.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Columns of other tables")]
struct TableArgs {
    /// Column of times, by name or number from 1.
    #[arg(long, value_name = "COLUMN")]
    time_column: Option<String>,
    /// Unit of the times: s, ms, us, ns, iso (a date and time), auto.
    #[arg(long, value_name = "UNIT", default_value = "auto", value_parser = TimeUnit::named)]
    time_unit: TimeUnit,
    /// Column of rates.
    #[arg(long, value_name = "COLUMN")]
    rate_column: Option<String>,
    /// Unit of the rates: bit/s, kbit/s, Mbit/s, B/s, kB/s, MB/s, or B (bytes since the row before).
    #[arg(long, value_name = "UNIT", value_parser = Unit::named)]
    unit: Option<Unit>,
    /// Column of delays of one direction.
    #[arg(long, value_name = "COLUMN")]
    delay_column: Option<String>,
    /// Unit of the delays: s, ms, us, ns.
    #[arg(long, value_name = "UNIT", value_parser = unit_of_delay)]
    delay_unit: Option<f64>,
    /// Column of losses, shares from 0 to 1.
    #[arg(long, value_name = "COLUMN")]
    loss_column: Option<String>,
    /// Losses are in percent.
    #[arg(long)]
    percent: bool,
    /// What stands between fields: `,`, `;`, tab, space.
    #[arg(long, value_name = "CHARACTER", value_parser = separator_named)]
    separator: Option<char>,
    /// Sign before the decimals of a number: `.` or `,`.
    #[arg(long, value_name = "SIGN", default_value = ".", value_parser = [".", ","])]
    decimal: String,
    /// Lines before the header.
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: usize,
}

/// Directions of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Way {
    /// Towards the mobile.
    Down,
    /// From the mobile.
    Up,
    /// Each into its own file.
    Both,
}

/// What becomes of rows without a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Treatment {
    /// An error.
    Refuse,
    /// The rate of the row before.
    Hold,
    /// Rate 0.
    Zero,
}

/// Imports it.
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
    for (name, towards, imported) in &read {
        say(name, imported);
        if let Some(out) = &args.out {
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
        missing: match args.missing {
            Treatment::Refuse => Missing::Refuse,
            Treatment::Hold => Missing::Hold,
            Treatment::Zero => Missing::Zero,
        },
    }
}

/// The path of one of several directions: `drive.csv` is `drive.down.csv`.
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

fn as_json(name: &str, imported: &Imported, missing: Treatment) -> Value {
    let of = imported.recording.statistics();
    let kbps = |rate: Rate| rate.as_bps() as f64 / 1e3;
    let percentile = |share| of.percentile(share).map(kbps);
    json!({
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
    })
}

fn unit_of_delay(text: &str) -> Result<f64, String> {
    time_unit(text).ok_or_else(|| "it is one of s, ms, us, ns".to_owned())
}
