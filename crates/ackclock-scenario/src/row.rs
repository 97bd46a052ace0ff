//! Result rows: identifies the run that a row belongs to, and checks whether the row is up to date.

use ackclock_core::results::Provenance;
use ackclock_link::Files;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::inputs::sha256;
use crate::{Job, RunResult, Scenario};

/// JSON object of a run, as written by [`crate::json_line`].
#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    /// Result of the run.
    #[serde(flatten)]
    pub result: RunResult,
    /// Keys and values of the sweep point.
    #[serde(default)]
    pub point: Map<String, Value>,
}

/// Text that is not the JSON object of a run.
#[derive(Debug, thiserror::Error)]
#[error("is not the object of a run: {0}")]
pub struct NotARun(#[from] serde_json::Error);

impl Row {
    /// Parses a result row from its JSON text.
    ///
    /// # Errors
    /// Returns an error if the text is not the JSON object of a run.
    pub fn parse(text: &str) -> Result<Self, NotARun> {
        Ok(serde_json::from_str(text)?)
    }

    /// Identifier of this result row. Rows of other runs, builds and settings have different identifiers.
    pub(crate) fn mark(&self) -> String {
        let RunResult { scenario, seed, run, provenance, .. } = &self.result;
        mark(scenario, *seed, *run, &self.point, provenance)
    }

    /// Reason why this row is not the result that `job` would give now; `None` if the row is up to date.
    pub fn differs_from(&self, job: &Job<'_>, files: &dyn Files) -> Option<String> {
        self.differs_in_build(&job.point.scenario.provenance()).or_else(|| {
            let same = self.mark() == mark_of(job);
            (!same).then(|| "its scenario or settings have changed".to_owned()).or_else(|| {
                let read = |path: &str| files.read(path).map(|bytes| sha256(&bytes));
                self.differs_in_inputs(read)
            })
        })
    }

    /// Difference between the row's build and the build `now`; `None` if the builds are equal.
    pub(crate) fn differs_in_build(&self, now: &Provenance) -> Option<String> {
        let own = &self.result.provenance;
        if own.dirty == Some(true) {
            return Some("its build had uncommitted changes".to_owned());
        }
        let same = (&own.version, &own.commit, own.dirty) == (&now.version, &now.commit, now.dirty);
        (!same).then(|| format!("it is of build {}, this one is {}", named(own), named(now)))
    }

    /// Names an input file that has changed since the row's run. `digest` gives the current SHA-256 of a file.
    pub(crate) fn differs_in_inputs(
        &self,
        mut digest: impl FnMut(&str) -> Result<String, String>,
    ) -> Option<String> {
        let mut inputs = self.result.provenance.inputs.iter();
        let changed = inputs.find(|(path, before)| digest(path).as_ref() != Ok(before));
        changed.map(|(path, _)| format!("{path} has changed since"))
    }
}

/// Identifier of the row that a job will write, in the form of [`Row::mark`].
pub(crate) fn mark_of(job: &Job<'_>) -> String {
    let scenario: &Scenario = &job.point.scenario;
    let labels = job.point.labels.iter().cloned().collect();
    let mark = mark(scenario.name(), scenario.tables().seed, job.run, &labels, &scenario.provenance());
    // The numbers of a saved row were parsed from text, so the numbers of the new identifier must be parsed from text
    // too.
    serde_json::from_str(&mark).map_or(mark, |value: Value| value.to_string())
}

/// Identifier of a result row. Input files are not part of the identifier, because they are unknown before the run.
fn mark(scenario: &str, seed: u64, run: u32, point: &Map<String, Value>, provenance: &Provenance) -> String {
    let Provenance {
        version,
        commit,
        dirty,
        scenario_sha256,
        configuration_sha256,
        inputs: _,
        recordings: _,
        set,
    } = provenance;
    json!([scenario, seed, run, point, version, commit, dirty, scenario_sha256, configuration_sha256, set])
        .to_string()
}

/// Name of a build for messages.
fn named(build: &Provenance) -> String {
    let commit = build.commit.as_deref().unwrap_or("of an unknown commit");
    let dirty = if build.dirty == Some(true) { " with changes" } else { "" };
    format!("{} {commit}{dirty}", build.version)
}
