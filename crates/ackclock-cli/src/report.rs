//! `--report`: writes an HTML page about finished runs, drawn by Python.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde_json::Value;
use tempfile::TempDir;

use ackclock_core::{Span, name_of};
use ackclock_link::Files;
use ackclock_scenario::{Job, Scenario, Series, json_line};

use crate::batch::{self, Ended};
use crate::failure::Failure;
use crate::python;
use crate::statistics::Confidence;
use crate::summary;

/// Maximum number of rows in a time series of a report.
const ROWS: u64 = 3000;

/// Maximum number of senders that are shown over time.
const MOST_SHOWN: usize = 6;

/// Report about a finished batch.
pub(crate) struct Report<'a> {
    jobs: &'a [Job<'a>],
    ended: &'a [Ended],
    interrupted: &'a AtomicBool,
    files: &'a (dyn Files + Sync),
    confidence: Confidence,
}

impl<'a> Report<'a> {
    /// Creates the report of one scenario from its `jobs` and the outcome of each job.
    pub(crate) fn new(
        jobs: &'a [Job<'a>],
        ended: &'a [Ended],
        interrupted: &'a AtomicBool,
        files: &'a (dyn Files + Sync),
        confidence: Confidence,
    ) -> Self {
        Self { jobs, ended, interrupted, files, confidence }
    }

    /// Writes the report to `path`. The runs shown over time are simulated again to record their series.
    ///
    /// # Errors
    /// Fails if the Python package is missing or fails, or if a temporary file cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let Some(scenario) = self.jobs.first().map(|job| &job.point.scenario) else { return Ok(()) };
        let mut draft = Draft::new(scenario, self.lines())?;
        draft.arguments.extend(["--confidence".into(), self.confidence.level().to_string().into()]);
        let shown = self.shown();
        let outcomes = batch::with_series(&shown, self.files, interval(scenario), self.interrupted)?;
        for (job, outcome) in shown.iter().zip(outcomes) {
            let Some(series) = outcome.series else { continue };
            draft.add_series(&self.named(job), &series)?;
        }
        draft.draw(path)
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        let ended = self.jobs.iter().zip(self.ended);
        ended.filter_map(|(job, outcome)| Some(json_line(&outcome.as_ref().ok()?.result, &job.point.labels)))
    }

    /// Chooses the runs that the report shows over time. If regulators do not vary, a run of every sender is shown, or of
    /// every queue if senders do not vary either. Otherwise the first shown run belongs to the first point without a
    /// regulator, or to the first point. The second shown run belongs to the regulator with the largest power (goodput
    /// divided by p95 queueing delay) among points with otherwise equal keys. For each shown point, the run with the
    /// median goodput is chosen.
    fn shown(&self) -> Vec<Job<'_>> {
        let unregulated = |job: &&Job<'_>| regulator(job).is_some_and(|name| name == "none");
        let Some(base) = self.jobs.iter().find(unregulated).or(self.jobs.first()) else { return Vec::new() };
        let keys = ["edge.regulator", "flow.sender", "edge.queue"];
        let key = keys.into_iter().find(|key| self.varies(key)).unwrap_or("flow.sender");
        let rivals = self.jobs.iter().filter(|job| job.run == 0 && differs_only_in(key, base, job));
        if key != "edge.regulator" {
            let each = std::iter::once(base).chain(rivals).take(MOST_SHOWN);
            return each.filter_map(|job| self.median(job.index)).collect();
        }
        let best = rivals.max_by(|a, b| self.power(a.index).total_cmp(&self.power(b.index)));
        [Some(base), best].into_iter().flatten().filter_map(|job| self.median(job.index)).collect()
    }

    /// Whether the points have several values of a key.
    fn varies(&self, key: &str) -> bool {
        let mut values = self.jobs.iter().map(|job| value(job, key));
        let first = values.next();
        values.any(|value| Some(value) != first)
    }

    /// Name of a run in figures: the values in which its point differs from others, or its number.
    fn named(&self, job: &Job<'_>) -> String {
        let name = |value: &Value| Some(name_of(value)).filter(|name| !name.is_empty());
        let varied = job.point.labels.iter().filter(|(key, _)| self.varies(key));
        let values: Vec<_> =
            varied.map(|(_, value)| name(value).unwrap_or_else(|| value.to_string())).collect();
        if values.is_empty() { format!("run {}", job.run) } else { values.join(", ") }
    }

    fn of_point(&self, index: usize) -> impl Iterator<Item = (&Job<'a>, &Ended)> {
        self.jobs.iter().zip(self.ended).filter(move |(job, _)| job.index == index)
    }

    fn power(&self, index: usize) -> f64 {
        let powers = self.of_point(index).filter_map(|(_, ended)| {
            let result = &ended.as_ref().ok()?.result;
            let link =
                if result.bottleneck.goodput_bps.is_some() { &result.bottleneck } else { &result.uplink };
            Some(summary::goodput(result)? / link.queue_ms.p95?.max(1.0))
        });
        crate::statistics::mean(&powers.collect::<Vec<_>>()).unwrap_or(0.0)
    }

    fn median(&self, index: usize) -> Option<Job<'_>> {
        let mut runs: Vec<_> = self
            .of_point(index)
            .filter_map(|(job, ended)| Some((summary::goodput(&ended.as_ref().ok()?.result), job)))
            .collect();
        runs.sort_by(|(a, _), (b, _)| a.unwrap_or(0.0).total_cmp(&b.unwrap_or(0.0)));
        let (_, job) = *runs.get(runs.len().checked_sub(1)? / 2)?;
        Some(Job { index, point: job.point, run: job.run })
    }
}

/// Data of a report in a temporary folder, from which Python draws the page.
pub(crate) struct Draft {
    folder: TempDir,
    /// Options of `ackclock report`.
    arguments: Vec<OsString>,
    /// Number of time series.
    series: usize,
}

impl Draft {
    /// Writes the configuration of a scenario and the lines of its finished runs.
    ///
    /// # Errors
    /// Fails if a temporary file cannot be written.
    pub(crate) fn new(scenario: &Scenario, lines: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let folder = tempfile::tempdir().map_err(|error| Failure::writing("a temporary folder", &error))?;
        let [runs, configuration] = ["runs.jsonl", "scenario.toml"].map(|name| folder.path().join(name));
        write_lines(&runs, lines).map_err(|error| Failure::writing(runs.display(), &error))?;
        let text = toml::to_string(&scenario.configuration())
            .map_err(|error| Failure::Run(format!("{}: cannot be shown: {error}", scenario.name())))?;
        fs::write(&configuration, text).map_err(|error| Failure::writing(configuration.display(), &error))?;
        let arguments = ["report".into(), runs.into(), "--scenario".into(), configuration.into()];
        let command = ["--command".into(), command_line(env::args_os()).into()];
        Ok(Self { folder, arguments: arguments.into_iter().chain(command).collect(), series: 0 })
    }

    /// Adds the time series of a run with this name.
    ///
    /// # Errors
    /// Fails if a temporary file cannot be written.
    pub(crate) fn add_series(&mut self, of: &str, series: &Series) -> Result<(), Failure> {
        let target = self.folder.path().join(format!("{}.csv", self.series));
        File::create(&target)
            .and_then(|file| series.write_csv(BufWriter::new(file)))
            .map_err(|error| Failure::writing(target.display(), &error))?;
        self.series += 1;
        self.arguments.extend(["--series".into(), target.into(), "--of".into(), of.into()]);
        Ok(())
    }

    /// Draws the page.
    ///
    /// # Errors
    /// Fails if the Python package is missing or fails.
    pub(crate) fn draw(mut self, path: &Path) -> Result<(), Failure> {
        self.arguments.extend(["--out".into(), path.into()]);
        python::call_module(&self.arguments)
    }
}

fn write_lines(path: &Path, lines: impl Iterator<Item = String>) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for line in lines {
        writeln!(file, "{line}")?;
    }
    file.flush()
}

/// The words of a command line as a shell reads them; the first word is the name of the command, not its path.
fn command_line(words: impl Iterator<Item = OsString>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+=./,:@%".contains(c);
    let words = words.skip(1).map(|word| word.to_string_lossy().into_owned());
    let quoted = words.map(|word| match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    });
    ["ackclock".to_owned()].into_iter().chain(quoted).collect::<Vec<_>>().join(" ")
}

/// Time between two rows of a time series in the report.
fn interval(scenario: &Scenario) -> Span {
    Span::from_nanos(scenario.tables().duration.as_nanos() / ROWS).max(Span::from_millis(100))
}

fn value<'a>(job: &'a Job<'_>, key: &str) -> Option<&'a Value> {
    job.point.labels.iter().find(|(name, _)| name == key).map(|(_, value)| value)
}

fn regulator(job: &Job<'_>) -> Option<String> {
    value(job, "edge.regulator").map(name_of)
}

/// Returns whether two points differ only in this key.
fn differs_only_in(key: &str, base: &Job<'_>, other: &Job<'_>) -> bool {
    let differs = |(a, b): (&(String, _), &(String, _))| a != b && a.0 != key;
    let (a, b) = (&base.point.labels, &other.point.labels);
    base.index != other.index && !a.iter().zip(b).any(differs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_words_of_a_command_line() {
        let words =
            ["/bin/ackclock", "link", "1mbit", "--", "sh", "-c", "echo 'a' $B", ""].map(OsString::from);
        assert_eq!(command_line(words.into_iter()), r"ackclock link 1mbit -- sh -c 'echo '\''a'\'' $B' ''");
    }
}
