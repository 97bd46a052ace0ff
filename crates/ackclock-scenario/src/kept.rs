//! Result rows, saved in a file as soon as each run finishes, so that interrupted work can be resumed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ackclock_core::results::Provenance;
use ackclock_link::Files;
use ackclock_output::{Folders, FoundRow, Rows, WholeFile, WriteError};

use crate::inputs::sha256;
use crate::row::mark_of;
use crate::{Job, Row, RunResult};

/// Result rows of jobs, written to a file one by one.
#[derive(Debug)]
pub struct Kept {
    into: Into,
    /// Result row of each job; `None` until the job has finished.
    rows: Vec<Option<String>>,
}

/// Destination of the result rows.
#[derive(Debug)]
enum Into {
    /// A file that receives each row at once.
    File(Rows),
    /// A device or pipe that receives all rows at the end.
    Stream(WholeFile),
    /// Keeps the rows in memory only.
    Nothing,
}

/// Description of the result rows that a file should contain.
pub struct Want<'a> {
    /// The runs, one for each row, in row order.
    pub jobs: &'a [Job<'a>],
    /// Source of the input files of the scenarios.
    pub files: &'a dyn Files,
    /// Whether the results include CPU times.
    pub timed: bool,
    /// Path of the running executable. If the build's commit is unknown, rows older than this file count as rows of
    /// another build.
    pub program: Option<&'a Path>,
    /// Treatment of rows that belong to other runs.
    pub others: Others,
}

/// Treatment of rows in a file that belong to other runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Reports an error if the file has rows of other runs.
    Refused,
    /// Ignores rows of other runs; the complete file will not contain them.
    Overwritten,
}

/// Error while saving rows in a file.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// Writing the file failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The file has rows of other runs.
    #[error("{0}")]
    Others(String),
}

impl Kept {
    /// Creates storage for the rows of `jobs` jobs, in memory only.
    pub fn in_memory(jobs: usize) -> Self {
        Self { into: Into::Nothing, rows: vec![None; jobs] }
    }

    /// Opens the rows of `out`, and returns the results of the jobs that already have rows.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or has rows of other runs.
    pub fn open(
        out: &Path,
        folders: Folders,
        want: &Want<'_>,
    ) -> Result<(Self, BTreeMap<usize, RunResult>), KeptError> {
        let mut kept = vec![None; want.jobs.len()];
        let Some(mut file) = Rows::open(out, folders)? else {
            let stream = WholeFile::create(out, folders)?;
            return Ok((Self { into: Into::Stream(stream), rows: kept }, BTreeMap::new()));
        };
        let mut results = BTreeMap::new();
        for (job, text, result) in want.sorted(file.found()?)? {
            kept[job] = Some(text);
            results.insert(job, result);
        }
        Ok((Self { into: Into::File(file), rows: kept }, results))
    }

    /// Result row of a job; `None` if the row is missing.
    pub fn row(&self, job: usize) -> Option<&str> {
        self.rows[job].as_deref()
    }

    /// Indices of the jobs whose rows are missing.
    pub fn missing(&self) -> Vec<usize> {
        (0..self.rows.len()).filter(|&job| self.rows[job].is_none()).collect()
    }

    /// Saves the row of a job.
    ///
    /// # Errors
    /// Returns an error if writing fails, for instance because the disk is full.
    pub fn put(&mut self, job: usize, row: String) -> Result<(), WriteError> {
        if let Into::File(file) = &mut self.into {
            file.put(&row)?;
        }
        self.rows[job] = Some(row);
        Ok(())
    }

    /// Temporary file that holds the rows until all runs are done; `None` for a stream or memory.
    pub fn unfinished(&self) -> Option<PathBuf> {
        match &self.into {
            Into::File(file) => file.unfinished(),
            Into::Stream(_) | Into::Nothing => None,
        }
    }

    /// Writes the rows in the order of their jobs, gives the file its final name, and returns the rows.
    ///
    /// # Errors
    /// Returns an error if writing fails, for instance because the disk is full.
    pub fn finish(self) -> Result<Vec<String>, WriteError> {
        let rows: Vec<String> = self.rows.into_iter().flatten().collect();
        let each = rows.iter().map(String::as_str);
        match self.into {
            Into::File(file) => file.finish(each)?,
            Into::Stream(mut stream) => {
                stream.put_lines(each)?;
                stream.finish()?;
            }
            Into::Nothing => {}
        }
        Ok(rows)
    }
}

impl Want<'_> {
    /// Assigns the rows found in a file to their jobs.
    fn sorted(&self, found: Vec<FoundRow>) -> Result<Vec<(usize, String, RunResult)>, KeptError> {
        let Some(first) = self.jobs.first().filter(|_| !found.is_empty()) else { return Ok(Vec::new()) };
        let now = first.point.scenario.provenance();
        let jobs: BTreeMap<String, usize> =
            self.jobs.iter().enumerate().map(|(number, job)| (mark_of(job), number)).collect();
        let mut digests = BTreeMap::new();
        let mut digest = |path: &str| {
            let read = || self.files.read(path).map(|bytes| sha256(&bytes));
            digests.entry(path.to_owned()).or_insert_with(read).clone()
        };
        let mut rows = Vec::new();
        for FoundRow { place, text, written } in found {
            let job = Row::parse(&text).map_err(|error| error.to_string()).and_then(|row| {
                self.check_build(&row, written, &now)?;
                row.differs_in_inputs(&mut digest).map_or(Ok(()), Err)?;
                Ok((self.job_of(&row, &jobs)?, row.result))
            });
            match job {
                Ok((job, result)) => rows.push((job, text, result)),
                Err(why) if self.others == Others::Refused => {
                    let message = format!("{place}: {why}; name another file, or --overwrite it");
                    return Err(KeptError::Others(message));
                }
                Err(_) => {}
            }
        }
        Ok(rows)
    }

    /// Checks that a row is from this build, whose provenance is `now`.
    fn check_build(&self, row: &Row, written: SystemTime, now: &Provenance) -> Result<(), String> {
        row.differs_in_build(now).map_or(Ok(()), Err)?;
        let built = self.program.and_then(|program| program.metadata().ok()?.modified().ok());
        if now.commit.is_none() && built.is_some_and(|built| written < built) {
            return Err("it is older than this program, which does not know its commit".to_owned());
        }
        Ok(())
    }

    /// Index of the job that a row belongs to.
    fn job_of(&self, row: &Row, jobs: &BTreeMap<String, usize>) -> Result<usize, String> {
        if row.result.engine.cpu_s.is_some() != self.timed {
            return Err("only one of the two sweeps has --timing".to_owned());
        }
        jobs.get(&row.mark()).copied().ok_or_else(|| {
            let RunResult { scenario, seed, run, .. } = &row.result;
            let point = serde_json::Value::from(row.point.clone());
            format!("it is not one of these runs: {scenario}, seed {seed}, run {run}, {point}")
        })
    }
}
