//! `ackclock run --from FILE#LINE`: repeats the run of one result line.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use ackclock_scenario::{Axis, DiskFiles, Job, Point, Row};

use crate::failure::Failure;
use crate::output;
use crate::scenario_file::{Repetition, ScenarioFile};

/// Runs to repeat: one run of a sweep point, or all runs of the point.
pub(super) struct Chosen {
    pub(super) file: ScenarioFile,
    pub(super) points: [Point; 1],
    pub(super) files: DiskFiles,
    pub(super) run: Option<u32>,
}

/// Finds the scenario, settings and run of the result line that `from` names. If a repeated run would give a different
/// result line, the repetition is refused unless `anyway` is set.
///
/// # Errors
/// Fails if the line or its scenario is missing or invalid, or if the repeated run would give a different line.
pub(super) fn find(from: &str, anyway: bool) -> Result<Chosen, Failure> {
    let failure = |why: String| Failure::Input(format!("--from {from}: {why}"));
    let row = Row::parse(&line(from)?).map_err(|error| failure(error.to_string()))?;
    let file = ScenarioFile::new(row.result.scenario.clone().into(), row.result.provenance.set.clone());
    let axes: Vec<Axis> =
        row.point.iter().map(|(key, value)| Axis::new(key, vec![value.clone()], from)).collect();
    let (scenario, _, files) = file.load_beside(&Repetition::default(), &axes)?;
    let mut points = scenario.points_over(&axes)?;
    let run = row.result.run;
    if let Some(why) = row.differs_from(&Job { index: 0, point: &points[0], run }, &files) {
        if !anyway {
            return Err(failure(format!("{why}; --anyway repeats it all the same")));
        }
        output::remark(&format!("--from {from}: {why}"));
    }
    Ok(Chosen { file, points: [points.swap_remove(0)], files, run: Some(run) })
}

/// Returns the result line that `FILE#LINE` names.
fn line(from: &str) -> Result<String, Failure> {
    let wrong = || Failure::Input(format!("--from {from}: write it like `runs.jsonl#17` for line 17"));
    let (path, number) = from.rsplit_once('#').ok_or_else(wrong)?;
    let number = number.parse::<usize>().ok().filter(|&number| number > 0).ok_or_else(wrong)?;
    let path = Path::new(path);
    let failure = |error| Failure::reading(path, &error);
    let mut lines = BufReader::new(File::open(path).map_err(failure)?).lines();
    let missing = || Failure::Input(format!("--from {from}: the file has fewer lines"));
    lines.nth(number - 1).ok_or_else(missing)?.map_err(failure)
}
