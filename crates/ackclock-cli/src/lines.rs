//! Writes JSON result lines in job order, although jobs finish in any order.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use ackclock_scenario::Kept;

use crate::failure::Failure;
use crate::output;

/// Destination of JSON result lines.
#[derive(Debug)]
pub(crate) enum Sink {
    /// Standard output, to which each line is written as soon as all earlier lines are complete.
    Printed,
    /// File that receives each line as soon as the line's job finishes. The output file gets its final name when all
    /// lines are complete.
    File(Kept),
    /// Memory that holds the lines. Only an interruption writes the lines to the named file, or to a numbered file if
    /// the named file exists.
    Memory(PathBuf, String),
}

/// Collector of the JSON lines of finished jobs.
#[derive(Debug)]
pub(crate) struct Lines {
    sinks: Vec<Sink>,
    /// Index of the first job whose line is not yet written.
    next: usize,
    /// Lines that wait for the line of an earlier job; `None` for a failed job.
    waiting: BTreeMap<usize, Option<String>>,
    written: usize,
    jobs: usize,
}

impl Lines {
    /// Creates a collector for the lines of jobs 0 to `jobs` - 1.
    pub(crate) fn new(sinks: Vec<Sink>, jobs: usize) -> Self {
        Self { sinks, next: 0, waiting: BTreeMap::new(), written: 0, jobs }
    }

    /// Accepts the line of job `index`, or `None` if the job failed.
    ///
    /// # Errors
    /// Fails if the line cannot be written.
    pub(crate) fn put(&mut self, index: usize, line: Option<String>) -> Result<(), Failure> {
        for sink in &mut self.sinks {
            if let (Sink::File(file), Some(line)) = (sink, &line) {
                file.put(index, line.clone())?;
            }
        }
        self.pass_on(index, line)
    }

    /// Accepts the lines of jobs that an earlier process finished.
    ///
    /// # Errors
    /// Fails if a line cannot be written.
    pub(crate) fn take_up(&mut self) -> Result<(), Failure> {
        let file =
            self.sinks.iter().find_map(|sink| if let Sink::File(file) = sink { Some(file) } else { None });
        let row = |job| Some((job, file?.row(job)?.to_owned()));
        let found: Vec<_> = (0..self.jobs).filter_map(row).collect();
        found.into_iter().try_for_each(|(job, line)| self.pass_on(job, Some(line)))
    }

    /// Gives the output files their final names after every job is done.
    ///
    /// # Errors
    /// Fails if a file cannot be renamed to its final name.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        for sink in self.sinks {
            if let Sink::File(file) = sink {
                file.finish()?;
            }
        }
        Ok(())
    }

    /// States in which files the lines are kept after a job failed.
    pub(crate) fn abandon(self) -> String {
        naming("the others are in", &self.unfinished())
    }

    /// Writes all finished lines, even out of job order, and states in which files they are.
    ///
    /// # Errors
    /// Fails if a line cannot be written.
    pub(crate) fn interrupt(mut self) -> Result<String, Failure> {
        for line in std::mem::take(&mut self.waiting).into_values() {
            self.write(line)?;
        }
        let mut places = self.unfinished();
        for sink in self.sinks {
            if let Sink::Memory(path, lines) = sink
                && !lines.is_empty()
            {
                let path = free_name(path);
                ackclock_output::write_whole(&path, lines.as_bytes())?;
                places.push(path);
            }
        }
        let done = match self.jobs {
            1 => "interrupted: the run is not finished".to_owned(),
            jobs => format!("interrupted: {} of {jobs} runs are finished", self.written),
        };
        Ok(done + &naming("they are in", &places))
    }

    /// Paths of the files that keep the lines until all jobs are complete.
    fn unfinished(&self) -> Vec<PathBuf> {
        let kept = |sink: &Sink| if let Sink::File(file) = sink { file.unfinished() } else { None };
        self.sinks.iter().filter_map(kept).collect()
    }

    /// Writes the lines of consecutive finished jobs in job order.
    fn pass_on(&mut self, index: usize, line: Option<String>) -> Result<(), Failure> {
        self.waiting.insert(index, line);
        while let Some(line) = self.waiting.remove(&self.next) {
            self.next += 1;
            self.write(line)?;
        }
        Ok(())
    }

    fn write(&mut self, line: Option<String>) -> Result<(), Failure> {
        let Some(line) = line else { return Ok(()) };
        let line = line + "\n";
        self.written += 1;
        for sink in &mut self.sinks {
            match sink {
                Sink::Printed => output::print(&line)?,
                Sink::Memory(_, kept) => kept.push_str(&line),
                Sink::File(_) => {}
            }
        }
        Ok(())
    }
}

/// Returns `path`, or a numbered variant if `path` exists. Files of earlier interruptions are therefore kept.
fn free_name(path: PathBuf) -> PathBuf {
    let numbered = |number: u32| path.with_extension(format!("{number}.jsonl"));
    let mut names = std::iter::once(path.clone()).chain((2..).map(numbered));
    names.find(|name| fs::symlink_metadata(name).is_err()).unwrap_or(path)
}

/// Formats a list of files as `; they are in A and B`, or as an empty string without files.
fn naming(what: &str, places: &[PathBuf]) -> String {
    let places: Vec<_> = places.iter().map(|path| path.display().to_string()).collect();
    if places.is_empty() { String::new() } else { format!("; {what} {}", places.join(" and ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(folder: &tempfile::TempDir, jobs: usize) -> (PathBuf, Lines) {
        let path = folder.path().join("kept.jsonl");
        (path.clone(), Lines::new(vec![Sink::Memory(path, String::new())], jobs))
    }

    #[test]
    fn lines_stand_in_the_order_of_the_jobs_whatever_finishes_first() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut lines) = memory(&folder, 5);
        lines.put(2, Some("c".into())).unwrap();
        lines.put(0, Some("a".into())).unwrap();
        lines.put(4, Some("e".into())).unwrap();
        lines.put(1, None).unwrap();
        let message = lines.interrupt().unwrap();
        assert!(message.starts_with("interrupted: 3 of 5 runs are finished; they are in "), "{message}");
        assert_eq!(fs::read_to_string(path).unwrap(), "a\nc\ne\n");
    }

    #[test]
    fn kept_lines_reach_the_disk_only_by_an_interruption_and_replace_none_of_an_earlier_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut lines) = memory(&folder, 2);
        lines.put(0, Some("a".into())).unwrap();
        lines.finish().unwrap();
        assert!(!path.exists());
        for text in ["b", "c"] {
            let (_, mut lines) = memory(&folder, 2);
            lines.put(1, Some(text.into())).unwrap();
            lines.interrupt().unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "b\n");
        assert_eq!(fs::read_to_string(folder.path().join("kept.2.jsonl")).unwrap(), "c\n");
    }
}
