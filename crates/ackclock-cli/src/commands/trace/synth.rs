//! `ackclock trace synth`: generates a recording from models of a cell.

use std::path::{Path, PathBuf};

use ackclock_core::{ConfigError, Span};
use ackclock_import::formats::{Imported, Options};
use ackclock_import::{Recording, Samples};
use ackclock_radio::cell::Synthetic;
use ackclock_radio::synthetic::Starlink;
use clap::ValueEnum;

use super::{Form, described, read, write};
use crate::commands::time_above_zero;
use crate::failure::Failure;
use crate::output;
use crate::table::terminal_width;

/// Models and parameters of the generated recording. Parameters that are not given come from the preset.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Preset that supplies the parameters not given.
    #[arg(long, value_enum, default_value = "evdo")]
    preset: Preset,
    /// Mean SNR at the median of the shadowing, dB.
    #[arg(long, value_name = "DB", value_parser = decibels, allow_hyphen_values = true)]
    mean_snr: Option<f64>,
    /// Maximum Doppler frequency of the fading, Hz.
    #[arg(long, value_name = "HZ", value_parser = hertz)]
    doppler: Option<f64>,
    /// Standard deviation of the shadowing, dB.
    #[arg(long, value_name = "DB", value_parser = decibels)]
    shadowing: Option<f64>,
    /// Time after which the correlation of the shadowing falls to 1/e.
    #[arg(long, value_name = "TIME", value_parser = time_above_zero)]
    correlation: Option<Span>,
    /// Number of users of the cell. All users always have data to receive, and the first user's rate is recorded.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    users: Option<u32>,
    /// Scheduler of the simulated cell.
    #[arg(long, value_name = "NAME")]
    scheduler: Option<String>,
    /// Length of the recording, at most 10 hours.
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = time_above_zero)]
    duration: Span,
    /// Seed of the models' random numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Output format of the recording. The default format is mahimahi, and csv for recordings with delays.
    #[arg(long, value_enum)]
    format: Option<Form>,
    /// Interval over which each rate of the CSV is averaged.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = time_above_zero)]
    bin: Span,
    /// Output file for the recording; its description is then printed. Without an output file, the recording goes to
    /// standard output.
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Another recording to describe for comparison with the generated one. `--beside` can be repeated.
    #[arg(long, value_name = "FILE", requires = "out")]
    beside: Vec<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  ackclock trace synth --preset evdo-driving --out drive.down
  ackclock trace synth --mean-snr 2.3dB --doppler 10Hz --users 4 --scheduler pf --format csv --out shared.csv";

/// Named sets of parameters for the models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Preset {
    /// One user of a 1xEV-DO cell without shadowing.
    Evdo,
    /// Parameters fitted to a 1xEV-DO recording while driving: mean rate, distribution of the rate per second, outages.
    EvdoDriving,
    /// Parameters fitted to an LTE recording while driving: mean rate, distribution of the rate per second, longest gap.
    LteDriving,
    /// Starlink: rate and delay change every 15 s, with delay spikes and losses at the change. No cell: `--duration`,
    /// `--seed` and `--out` apply, and the format is CSV.
    Starlink,
}

/// Maximum length of a recording.
const LONGEST: Span = Span::from_secs(36_000);

/// Generates the recording and writes it.
pub(super) fn perform(args: &Args) -> Result<(), Failure> {
    if args.duration > LONGEST {
        return Err(Failure::Input(format!("--duration {}: at most {LONGEST} is made", args.duration)));
    }
    let wrong = |error: &dyn std::fmt::Display| Failure::Input(format!("trace synth: {error}"));
    let csv = |samples: Result<Samples, ConfigError>| -> Result<String, Failure> {
        let rows = Recording::Samples(samples.map_err(|error| wrong(&error))?).to_csv(args.bin);
        rows.map(|rows| format!("# Synthetic, made by `ackclock trace synth` from models.\n{rows}"))
            .map_err(|error| wrong(&error))
    };
    let synthetic = args.synthetic();
    let text = match (args.preset, args.format) {
        (Preset::Starlink, _) => {
            args.refuse_cell()?;
            csv(Starlink::default().record(args.duration, args.seed))?
        }
        (_, Some(Form::Csv)) => csv(synthetic.record(args.duration, args.bin, args.seed))?,
        (_, None | Some(Form::Mahimahi)) => {
            synthetic.to_mahimahi(args.duration, args.seed).map_err(|error| wrong(&error))?
        }
    };
    let Some(path) = &args.out else { return output::print(&text) };
    write(path, &text)?;
    let files = std::iter::once(path).chain(&args.beside).map(PathBuf::as_path);
    let of_file = |path: &Path| Ok((path.display().to_string(), read(path, &Options::default())?));
    let recordings: Vec<(String, Imported)> = files.map(of_file).collect::<Result<_, Failure>>()?;
    output::print(&described(&recordings).render(terminal_width()))
}

impl Args {
    /// Refuses options that the preset `starlink` has no use for.
    fn refuse_cell(&self) -> Result<(), Failure> {
        let given = [
            ("--mean-snr", self.mean_snr.is_some()),
            ("--doppler", self.doppler.is_some()),
            ("--shadowing", self.shadowing.is_some()),
            ("--correlation", self.correlation.is_some()),
            ("--users", self.users.is_some()),
            ("--scheduler", self.scheduler.is_some()),
            ("--format mahimahi", self.format == Some(Form::Mahimahi)),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(Failure::Input(format!(
                "{option}: the preset starlink is no cell and has delays and losses, which only csv can hold; leave {option} out"
            ))),
            None => Ok(()),
        }
    }

    /// Returns the preset's parameters, with the values of the given options in place of the preset's values.
    fn synthetic(&self) -> Synthetic {
        let preset = match self.preset {
            Preset::Evdo | Preset::Starlink => Synthetic::default(),
            Preset::EvdoDriving => Synthetic::evdo_driving(),
            Preset::LteDriving => Synthetic::lte_driving(),
        };
        Synthetic {
            users: self.users.unwrap_or(preset.users),
            mean_snr: self.mean_snr.unwrap_or(preset.mean_snr),
            doppler: self.doppler.unwrap_or(preset.doppler),
            shadowing: self.shadowing.unwrap_or(preset.shadowing),
            correlation: self.correlation.unwrap_or(preset.correlation),
            scheduler: self.scheduler.clone().unwrap_or(preset.scheduler),
            radio: preset.radio,
        }
    }
}

fn decibels(text: &str) -> Result<f64, String> {
    quantity(text, "dB")
}

fn hertz(text: &str) -> Result<f64, String> {
    quantity(text, "Hz")
}

/// Parses a number with or without its unit.
fn quantity(text: &str, unit: &str) -> Result<f64, String> {
    let number = text.strip_suffix(unit).unwrap_or(text).trim_end();
    number
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
        .ok_or_else(|| format!("must be a number such as 2.3{unit}"))
}
