//! `ackclock trace`: inspects, converts and generates recordings of a link.

mod synth;
mod week;

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use ackclock_core::{Rate, Span};
use ackclock_import::formats::{self as import, Certainty, Imported, Options};
use ackclock_import::{Recording, Statistics};
use ackclock_output::{Folders, WholeFile};
use ackclock_scenario::{DiskFiles, Files};
use clap::{Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::time_above_zero;
use super::treatment::Treatment;
use crate::failure::Failure;
use crate::output;
use crate::python::Words;
use crate::scenario_file::patiently;
use crate::table::{Align, Table, number, rate_unit, terminal_width};

/// Operations on recordings of links.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print length, rates and outages of recordings.
    Info(InfoArgs),
    /// Print rate, delay and loss of a long recording by hour of the day and by weekday, and its worst hours.
    Week(week::Args),
    /// Convert a recording to another format.
    Convert(ConvertArgs),
    /// Generate a recording from the models of a cell: fading and shadowing.
    Synth(synth::Args),
    /// Plot the rate of a recording over time and its distribution (Python).
    Plot(Words),
}

/// Options of `ackclock trace info`: the recordings to describe.
#[derive(Debug, clap::Args)]
pub(crate) struct InfoArgs {
    /// Recordings: mahimahi files, CSV with columns like `time_s,rate_kbps[,delay_ms][,loss]`, or JSON lists.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Treatment of rows without a rate and of gaps above three median steps in imported formats.
    #[arg(long, value_enum, default_value_t = Treatment::Refuse)]
    missing: Treatment,
    /// Print one JSON object per recording, each on its own line.
    #[arg(long)]
    json: bool,
}

/// Options of `ackclock trace convert`: the recording and its new format.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ackclock trace convert drive.csv --to mahimahi --out drive.down")]
pub(crate) struct ConvertArgs {
    /// Recording file to convert.
    file: PathBuf,
    /// Output format of the recording.
    #[arg(long, value_enum)]
    to: Form,
    /// Interval over which each rate of the CSV is averaged.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = time_above_zero)]
    bin: Span,
    /// Output file; without it, the recording goes to standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// File format of a link recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// mahimahi's format: one line per delivery opportunity of 1500 bytes, which contains the time in ms.
    Mahimahi,
    /// CSV with one row per time and rate.
    Csv,
}

/// Runs the subcommand of `ackclock trace`.
pub(crate) fn perform(command: Command) -> Result<(), Failure> {
    match command {
        Command::Info(args) => info(&args),
        Command::Week(args) => week::perform(&args),
        Command::Convert(args) => convert(&args),
        Command::Synth(args) => synth::perform(&args),
        Command::Plot(words) => Err(words.become_module(&["trace", "plot"])),
    }
}

fn info(args: &InfoArgs) -> Result<(), Failure> {
    let options = Options { missing: args.missing.into(), ..Options::default() };
    let of_file = |path: &PathBuf| Ok((path.display().to_string(), read(path, &options)?));
    let recordings: Vec<(String, Imported)> =
        args.files.iter().map(of_file).collect::<Result<_, Failure>>()?;
    for (name, imported) in &recordings {
        say(name, imported);
    }
    if args.json {
        let line = |(name, imported): (&String, &Imported)| format!("{}\n", as_json(name, imported));
        return output::print(
            &recordings.iter().map(|(name, imported)| line((name, imported))).collect::<String>(),
        );
    }
    output::print(&described(&recordings).render(terminal_width()))
}

fn convert(args: &ConvertArgs) -> Result<(), Failure> {
    let imported = read(&args.file, &Options::default())?;
    say(&args.file.display().to_string(), &imported);
    let recording = &imported.recording;
    let text = match args.to {
        Form::Mahimahi => recording.to_mahimahi(),
        Form::Csv => recording.to_csv(args.bin).map(|rows| certainty(&imported) + &rows),
    };
    let text = text.map_err(|error| Failure::Input(format!("{}: {error}", args.file.display())))?;
    if args.to == Form::Mahimahi {
        say_lost(&args.file.display().to_string(), recording, &text);
    }
    args.out.as_ref().map_or_else(|| output::print(&text), |path| write(path, &text))
}

/// Reports the properties of a recording that its `text` in mahimahi's format cannot express.
fn say_lost(name: &str, recording: &Recording, text: &str) {
    let impairments = recording.impairments();
    if !impairments.is_empty() {
        output::remark(&format!(
            "{name}: mahimahi files hold no {}: it is left out",
            impairments.join(" and no ")
        ));
    }
    let [before, after] =
        [Some(recording.mean_rate()), Recording::parse(text.as_bytes()).ok().map(|new| new.mean_rate())]
            .map(|rate| rate.map_or(0.0, |rate| rate.as_bps() as f64));
    if (after / before - 1.0).abs() > SMALL {
        output::remark(&format!(
            "{name}: its mean rate is {} kbit/s and becomes {}: mahimahi files hold whole chances to send 1500 bytes",
            number(before / 1e3),
            number(after / 1e3)
        ));
    }
}

/// Smallest relative change of the mean rate that is reported.
const SMALL: f64 = 0.001;

pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let mut file = WholeFile::create(path, Folders::Existing)?;
    file.write_all(text.as_bytes()).map_err(|error| file.failure(error))?;
    Ok(file.finish()?)
}

/// Reads a recording in any supported format. Packet captures may be large and are not kept in memory.
pub(super) fn read(path: &Path, options: &Options) -> Result<Imported, Failure> {
    let is_for_captures = options.form.is_none_or(|form| form == import::Form::Pcap);
    let read = match capture(path).filter(|_| is_for_captures) {
        Some(mut file) => import::capture::read(&mut file, options),
        None => {
            let files = DiskFiles::in_folder("").reading(patiently);
            import::read(
                &files
                    .read(&path.to_string_lossy())
                    .map_err(|message| Failure::Input(message).or_rate(path))?,
                options,
            )
        }
    };
    read.map_err(|error| match error.line {
        Some(line) => Failure::Input(format!("{}:{line}: {}", path.display(), error.message)),
        None => Failure::Input(format!("{}: {}", path.display(), error.message)),
    })
}

/// Opens a regular file that begins like a packet capture. A pipe is not opened, because it can be read only once.
fn capture(path: &Path) -> Option<File> {
    let mut file = path.is_file().then(|| File::open(path).ok())??;
    let mut begin = [0; 4];
    file.read_exact(&mut begin).ok()?;
    import::capture::is_capture(&begin).then_some(file)
}

/// Prints to standard error the detected format of a recording, and the assumptions and omissions of its import.
pub(super) fn say(name: &str, imported: &Imported) {
    if let Some(certainty) = imported.certainty.as_ref().filter(|_| !imported.form.is_own()) {
        output::remark(&format!("{name}: taken for {}; its rates are {certainty}", imported.form.name()));
    }
    for note in &imported.notes {
        output::remark(&format!("{name}: {note}"));
    }
}

/// Comment line of a CSV that states how certain the rates are; empty if the certainty is unknown.
pub(super) fn certainty(imported: &Imported) -> String {
    imported.certainty.as_ref().map(Certainty::comment).unwrap_or_default()
}

/// Percentiles of the rate per second that are shown.
const PERCENTILES: [(&str, f64); 3] = [("p5", 0.05), ("p50", 0.5), ("p95", 0.95)];

pub(super) fn described(recordings: &[(String, Imported)]) -> Table {
    let statistics: Vec<Statistics> =
        recordings.iter().map(|(_, imported)| imported.recording.statistics()).collect();
    let fastest =
        statistics.iter().filter_map(|one| one.percentile(0.95)).chain(statistics.iter().map(|one| one.mean));
    let (unit, bps) = rate_unit(fastest.map(|rate| rate.as_bps() as f64).fold(0.0, f64::max));
    let rate = |rate: Rate| number(rate.as_bps() as f64 / bps);
    let mut table = Table::default();
    table.column("recording", Align::Left);
    table.column("form", Align::Left);
    table.column("length s", Align::Right);
    table.column(format!("mean {unit}"), Align::Right);
    for (name, _) in PERCENTILES {
        table.column(format!("{name} of 1 s"), Align::Right);
    }
    for heading in ["empty seconds %", "outages >= 1 s", "their mean s", "longest gap s"] {
        table.column(heading, Align::Right);
    }
    table.column("certainty", Align::Left);
    for ((name, imported), of) in recordings.iter().zip(&statistics) {
        let mut row = vec![
            name.clone(),
            imported.form.name().to_owned(),
            number(of.length.as_secs_f64()),
            rate(of.mean),
        ];
        row.extend(PERCENTILES.map(|(_, share)| of.percentile(share).map_or_else(|| "-".to_owned(), rate)));
        row.push(number(100.0 * of.share_at_zero()));
        row.push(of.outages.len().to_string());
        row.push(of.mean_outage().map_or_else(|| "-".to_owned(), |mean| number(mean.as_secs_f64())));
        row.push(number(of.longest_gap.as_secs_f64()));
        row.push(imported.certainty.as_ref().map_or("-", |certainty| certainty.grade.name()).to_owned());
        table.row(row);
    }
    table
}

fn as_json(name: &str, imported: &Imported) -> Value {
    let of = imported.recording.statistics();
    let percentile =
        |(name, share): (&str, f64)| (name.to_owned(), of.percentile(share).map(Rate::as_bps).into());
    json!({
        "recording": name,
        "form": imported.form.name(),
        "certainty": imported.certainty,
        "length_s": of.length.as_secs_f64(),
        "mean_bps": of.mean.as_bps(),
        "second_bps": Value::Object(PERCENTILES.into_iter().map(percentile).collect()),
        "empty_seconds": of.share_at_zero(),
        "longest_gap_s": of.longest_gap.as_secs_f64(),
        "outages_s": of.outages.iter().map(|outage| outage.as_secs_f64()).collect::<Vec<_>>(),
    })
}
