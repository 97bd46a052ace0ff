//! Rows of results: what each says of the run that it is of, and whether that is a run of today.

use ackclock_core::results::Provenance;
use ackclock_link::Files;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::inputs::sha256;
use crate::{Job, RunResult, Scenario};

/// The object of a run, as [`crate::json_line`] writes it.
#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    /// The result.
    #[serde(flatten)]
    pub result: RunResult,
    /// The point of the sweep that was run: keys and values.
    #[serde(default)]
    pub point: Map<String, Value>,
}

impl Row {
    /// Reads a row.
    ///
    /// # Errors
    /// Where it is not the object of a run.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("is not the object of a run: {error}"))
    }

    /// What tells this row from those of other runs, of other builds and of other settings.
    pub(crate) fn mark(&self) -> String {
        let RunResult { scenario, seed, run, provenance, .. } = &self.result;
        mark(scenario, *seed, *run, &self.point, provenance)
    }

    /// Why this row is not what `job` would give today, if it is not.
    pub fn differs_from(&self, job: &Job<'_>, files: &dyn Files) -> Option<String> {
        self.differs_in_build(&job.point.scenario.provenance()).or_else(|| {
            let same = self.mark() == mark_of(job);
            (!same).then(|| "its scenario or settings were others than now".to_owned()).or_else(|| {
                let read = |path: &str| files.read(path).map(|bytes| sha256(&bytes));
                self.differs_in_inputs(read)
            })
        })
    }

    /// Why its build is not that of `now`, if it is not.
    pub(crate) fn differs_in_build(&self, now: &Provenance) -> Option<String> {
        let own = &self.result.provenance;
        if own.dirty == Some(true) {
            return Some("its build had changes that no commit has".to_owned());
        }
        let same = (&own.version, &own.commit, own.dirty) == (&now.version, &now.commit, now.dirty);
        (!same).then(|| format!("it is of build {}, this one is {}", named(own), named(now)))
    }

    /// Which of the files that its run read has other contents by now; `digest` gives their SHA-256.
    pub(crate) fn differs_in_inputs(
        &self,
        mut digest: impl FnMut(&str) -> Result<String, String>,
    ) -> Option<String> {
        let mut inputs = self.result.provenance.inputs.iter();
        let changed = inputs.find(|(path, before)| digest(path).as_ref() != Ok(before));
        changed.map(|(path, _)| format!("{path} has changed since"))
    }
}

/// What tells the row of a job from other rows.
pub(crate) fn mark_of(job: &Job<'_>) -> String {
    let scenario: &Scenario = &job.point.scenario;
    let labels = job.point.labels.iter().cloned().collect();
    let mark = mark(scenario.name(), scenario.tables().seed, job.run, &labels, &scenario.provenance());
    // As the numbers of a row have gone through text, so must these.
    serde_json::from_str(&mark).map_or(mark, |value: Value| value.to_string())
}

/// The files that a run reads are known only when it has run, so they are no part of it.
fn mark(scenario: &str, seed: u64, run: u32, point: &Map<String, Value>, provenance: &Provenance) -> String {
    let Provenance { version, commit, dirty, scenario_sha256, configuration_sha256, inputs: _, set } =
        provenance;
    json!([scenario, seed, run, point, version, commit, dirty, scenario_sha256, configuration_sha256, set])
        .to_string()
}

/// What messages call a build.
fn named(build: &Provenance) -> String {
    let commit = build.commit.as_deref().unwrap_or("of an unknown commit");
    let dirty = if build.dirty == Some(true) { " with changes" } else { "" };
    format!("{} {commit}{dirty}", build.version)
}
