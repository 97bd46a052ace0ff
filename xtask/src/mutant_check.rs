//! Checks in a copy of the workspace that the test of each known mutant notices it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;

use crate::copy::{self, laws};
use crate::known_mutants::{LIST, List, Mutant, VARIABLE, list};

/// Runs the listed tests without a mutant, then the test of each mutant with it, and prints a line for each mutant.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let (copy, List { mutants }) = (copy::complete(root)?, list(root)?);
    let tests: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.test.as_str()).collect();
    let tests: Vec<&str> = tests.into_iter().collect();
    let unchanged = tested(root, &copy, &tests, None)?;
    if !unchanged.status.success() || passed(&unchanged) != tests.len() {
        let [told, errors] = [&unchanged.stdout, &unchanged.stderr].map(|text| String::from_utf8_lossy(text));
        return Err(format!(
            "{told}{errors}{LIST}: without a mutant a test fails, or is not there: {tests:?}"
        ));
    }
    let mut missed = 0;
    for (number, Mutant { file, test, .. }) in (1..).zip(&mutants) {
        let is_noticed = !tested(root, &copy, &[test], Some(number))?.status.success();
        let outcome = if is_noticed { "noticed" } else { "NOT NOTICED" };
        println!("{number:2} {}: {outcome} by {test}", file.display());
        missed += u32::from(!is_noticed);
    }
    if missed == 0 { Ok(()) } else { Err(format!("{LIST}: {missed} mutants are not noticed")) }
}

/// Runs the tests with these complete names, with a mutant or without one.
fn tested(root: &Path, copy: &Path, tests: &[&str], mutant: Option<u32>) -> Result<Output, String> {
    let mut command = copy::command(root, &laws(&[&["--exact"], tests].concat()));
    command.current_dir(copy).env_remove(VARIABLE).envs(mutant.map(|number| (VARIABLE, number.to_string())));
    command.output().map_err(|error| format!("cargo: {error}"))
}

/// Number of tests that passed.
fn passed(output: &Output) -> usize {
    let text = String::from_utf8_lossy(&output.stdout);
    let counts = text.lines().filter_map(|line| line.strip_prefix("test result: ok. ")?.split(' ').next());
    counts.filter_map(|count| count.parse::<usize>().ok()).sum()
}
