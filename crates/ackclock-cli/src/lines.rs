//! Results as JSON lines, written in the order of the jobs while the jobs finish in any order.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use ackclock_output::{Folders, WholeFile};

use crate::failure::Failure;
use crate::output;

/// Where lines go.
#[derive(Debug)]
pub(crate) enum Sink {
    /// Standard output, a line as soon as all before it are there.
    Printed,
    /// A file that takes its name when all lines are in it.
    File(WholeFile),
    /// Memory; the lines are put into this file only if the work is interrupted.
    Kept(PathBuf, String),
}

/// Lines of finished jobs.
#[derive(Debug)]
pub(crate) struct Lines {
    sinks: Vec<Sink>,
    /// The first job whose line is not written yet.
    next: usize,
    /// Lines that wait for an earlier one; `None` for a job that failed.
    waiting: BTreeMap<usize, Option<String>>,
    written: usize,
    jobs: usize,
}

impl Lines {
    /// Lines of jobs 0 to `jobs` - 1.
    pub(crate) fn new(sinks: Vec<Sink>, jobs: usize) -> Self {
        Self { sinks, next: 0, waiting: BTreeMap::new(), written: 0, jobs }
    }

    /// Takes the line of job `index`, or the fact that it failed.
    ///
    /// # Errors
    /// Where a line cannot be written.
    pub(crate) fn put(&mut self, index: usize, line: Option<String>) -> Result<(), Failure> {
        self.waiting.insert(index, line);
        while let Some(line) = self.waiting.remove(&self.next) {
            self.next += 1;
            self.write(line)?;
        }
        Ok(())
    }

    /// Gives files their names, now that every job is done.
    ///
    /// # Errors
    /// Where a file cannot be completed.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        for sink in self.sinks {
            if let Sink::File(file) = sink {
                file.finish()?;
            }
        }
        Ok(())
    }

    /// Leaves files under their unfinished names, because a job failed; says where they are.
    ///
    /// # Errors
    /// Where something cannot be written.
    pub(crate) fn abandon(self) -> Result<String, Failure> {
        let mut places = Vec::new();
        for sink in self.sinks {
            if let Sink::File(file) = sink {
                places.push(file.leave_unfinished()?);
            }
        }
        Ok(naming("the others are in", &places))
    }

    /// Writes what is finished out of its turn too, and says where it is.
    ///
    /// # Errors
    /// Where something cannot be written.
    pub(crate) fn interrupt(mut self) -> Result<String, Failure> {
        for line in std::mem::take(&mut self.waiting).into_values() {
            self.write(line)?;
        }
        let mut places = Vec::new();
        for sink in self.sinks {
            match sink {
                Sink::File(file) => places.push(file.leave_unfinished()?),
                Sink::Kept(path, lines) if !lines.is_empty() => {
                    let mut file = WholeFile::create(&path, Folders::Existing)?;
                    file.write_all(lines.as_bytes()).map_err(|error| file.failure(error))?;
                    file.finish()?;
                    places.push(path);
                }
                Sink::Printed | Sink::Kept(..) => {}
            }
        }
        let done = match self.jobs {
            1 => "interrupted: the run is not finished".to_owned(),
            jobs => format!("interrupted: {} of {jobs} runs are finished", self.written),
        };
        Ok(done + &naming("they are in", &places))
    }

    fn write(&mut self, line: Option<String>) -> Result<(), Failure> {
        let Some(line) = line else { return Ok(()) };
        let line = line + "\n";
        self.written += 1;
        for sink in &mut self.sinks {
            match sink {
                Sink::Printed => output::print(&line)?,
                Sink::Kept(_, kept) => kept.push_str(&line),
                Sink::File(file) => {
                    file.write_all(line.as_bytes())
                        .and_then(|()| file.flush())
                        .map_err(|error| file.failure(error))?;
                }
            }
        }
        Ok(())
    }
}

/// `; they are in A and B`, or nothing.
fn naming(what: &str, places: &[PathBuf]) -> String {
    let places: Vec<_> = places.iter().map(|path| path.display().to_string()).collect();
    if places.is_empty() { String::new() } else { format!("; {what} {}", places.join(" and ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn into_file(folder: &tempfile::TempDir) -> (PathBuf, Lines) {
        let path = folder.path().join("out.jsonl");
        let sink = Sink::File(WholeFile::create(&path, Folders::Existing).unwrap());
        (path, Lines::new(vec![sink], 4))
    }

    #[test]
    fn lines_stand_in_the_order_of_the_jobs_whatever_finishes_first() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut lines) = into_file(&folder);
        lines.put(2, Some("c".into())).unwrap();
        lines.put(0, Some("a".into())).unwrap();
        lines.put(3, Some("d".into())).unwrap();
        lines.put(1, None).unwrap();
        lines.finish().unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "a\nc\nd\n");
    }

    #[test]
    fn an_interruption_keeps_what_is_finished_under_an_unfinished_name() {
        let folder = tempfile::tempdir().unwrap();
        let (path, mut lines) = into_file(&folder);
        lines.put(0, Some("a".into())).unwrap();
        lines.put(2, Some("c".into())).unwrap();
        let message = lines.interrupt().unwrap();
        assert!(message.starts_with("interrupted: 2 of 4 runs are finished; they are in "), "{message}");
        assert!(message.ends_with("out.jsonl.partial"), "{message}");
        assert!(!path.exists());
        assert_eq!(fs::read_to_string(folder.path().join("out.jsonl.partial")).unwrap(), "a\nc\n");
    }

    #[test]
    fn kept_lines_reach_the_disk_only_by_an_interruption() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.jsonl");
        let kept = || Lines::new(vec![Sink::Kept(path.clone(), String::new())], 2);
        let mut lines = kept();
        lines.put(0, Some("a".into())).unwrap();
        lines.finish().unwrap();
        assert!(!path.exists());
        let mut lines = kept();
        lines.put(1, Some("b".into())).unwrap();
        lines.interrupt().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "b\n");
    }
}
