//! Known mutants: small faults, each of which a named test must notice. All are compiled at once, and an environment
//! variable chooses one at run time.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::source::read;

/// Environment variable with the number of a mutant, from 1 on; without it no code is changed.
pub(crate) const VARIABLE: &str = "ACKCLOCK_MUTANT";
pub(crate) const LIST: &str = "xtask/known_mutants.toml";

/// The list of the mutants.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    #[serde(rename = "mutant")]
    pub(crate) mutants: Vec<Mutant>,
}

/// A fault, and the test that notices it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutant {
    /// File, relative to the workspace.
    pub(crate) file: PathBuf,
    /// Expression that occurs once in the file.
    text: String,
    /// Expression in its place.
    change: String,
    /// Complete name of a law or another integration test.
    pub(crate) test: String,
}

/// Reads the list.
pub(crate) fn list(root: &Path) -> Result<List, String> {
    toml::from_str(&read(root, Path::new(LIST))?).map_err(|error| format!("{LIST}: {error}"))
}

impl List {
    /// Writes all mutants into a copy of the workspace.
    pub(crate) fn write(&self, copy: &Path) -> Result<(), String> {
        for (number, mutant) in (1..).zip(&self.mutants) {
            let text = mutant.written(number, &read(copy, &mutant.file)?)?;
            fs::write(copy.join(&mutant.file), text)
                .map_err(|error| format!("{}: {error}", mutant.file.display()))?;
        }
        Ok(())
    }
}

impl Mutant {
    /// Text of a file with this mutant, which has the number `number`.
    fn written(&self, number: u32, file: &str) -> Result<String, String> {
        let Self { text, change, .. } = self;
        let found = file.matches(text.as_str()).count();
        if found != 1 {
            let file = self.file.display();
            return Err(format!(
                "{LIST}: mutant {number}: `text` must occur once in {file}, and occurs {found} times: {text}"
            ));
        }
        let chosen = format!("std::env::var_os(\"{VARIABLE}\").is_some_and(|chosen| chosen == \"{number}\")");
        // An argument needs no parentheses, which lints of the copy would refuse.
        let either = format!("std::convert::identity(if {chosen} {{ {change} }} else {{ {text} }})");
        Ok(file.replace(text, &either))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(text: &str) -> Mutant {
        Mutant { file: "a.rs".into(), text: text.into(), change: "a <= b".into(), test: "t".into() }
    }

    #[test]
    fn a_mutant_is_chosen_by_its_number_and_keeps_the_expression() {
        let written = mutant("a < b").written(7, "let x = a < b && c;").unwrap();
        assert!(written.contains("== \"7\") { a <= b } else { a < b }) && c;"), "{written}");
    }

    #[test]
    fn a_text_that_is_not_there_once_is_refused() {
        for (file, count) in [("a > b", "0 times"), ("a < b || a < b", "2 times")] {
            let refusal = mutant("a < b").written(1, file).unwrap_err();
            assert!(refusal.contains("a.rs") && refusal.contains(count), "{refusal}");
        }
    }

    #[test]
    fn every_listed_text_is_in_its_file() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for (number, mutant) in (1..).zip(&list(root).unwrap().mutants) {
            mutant.written(number, &read(root, &mutant.file).unwrap()).unwrap();
        }
    }
}
