//! Recordings that a scenario plays: the detected file format, and the certainty of the rates.

use std::collections::{BTreeMap, BTreeSet};

use ackclock_import::formats as import;
use ackclock_link::Files;

use crate::{Scenario, Tables};

/// Certainty of the rates of each recording, by path. Recordings of unknown certainty are left out.
pub fn certainties(tables: &Tables, files: &dyn Files) -> BTreeMap<String, String> {
    let certainty = |path: &str| Some(import::certainty(&files.read(path).ok()?)?.to_string());
    let paths = tables.edge.recordings().into_iter();
    paths.filter_map(|path| Some((path.to_owned(), certainty(path)?))).collect()
}

/// One message for each recording in a foreign format. The message names the detected format and the certainty of the
/// rates.
pub fn said_of_recordings<'a>(
    scenarios: impl IntoIterator<Item = &'a Scenario>,
    files: &dyn Files,
) -> Vec<String> {
    let paths: BTreeSet<&str> =
        scenarios.into_iter().flat_map(|scenario| scenario.tables().edge.recordings()).collect();
    let said = |path: &str| {
        let imported = import::read(&files.read(path).ok()?, &import::Options::default()).ok()?;
        let certainty = imported.certainty.filter(|_| !imported.form.is_own())?;
        Some(format!("{path}: taken for {}; its rates are {certainty}", imported.form.name()))
    };
    paths.into_iter().filter_map(said).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{RunOptions, run};

    /// A file system that has one file, found under any name.
    struct One(String);

    impl Files for One {
        fn read(&self, _: &str) -> Result<Arc<[u8]>, String> {
            Ok(self.0.as_bytes().into())
        }
    }

    fn scenario() -> Scenario {
        let text = "version = 1\nduration = \"5s\"\n[edge]\ndown = { kind = \"trace\", file = \"a.csv\" }\n[[flow]]\n";
        Scenario::load("x.toml", text, &[]).unwrap()
    }

    #[test]
    fn results_repeat_how_sure_a_recording_is() {
        let raw: String = (1..=12).map(|n| format!("1284560000 {n}000 59.9 10.7 125000 1000\n")).collect();
        let graded = "# certainty: application: by hand\ntime_s,rate_kbps\n0,1000\n9,\n";
        for (text, expected) in [
            (raw.as_str(), Some("lower-bound: one download over HTTP")),
            ("10\n20\n", Some("capacity: each line is a chance to send that the link gave")),
            (graded, Some("application: by hand")),
            ("time_s,rate_kbps\n0,1000\n9,\n", None),
        ] {
            let files = One(text.to_owned());
            let outcome = run(&scenario(), 0, &files, RunOptions::default()).unwrap();
            let recordings = outcome.result.provenance.recordings;
            assert_eq!(recordings.get("a.csv").map(String::as_str), expected, "{text}");
        }
    }

    #[test]
    fn a_foreign_recording_is_said_once_and_ours_are_not() {
        let raw: String = (1..=12).map(|n| format!("1284560000 {n}000 59.9 10.7 125000 1000\n")).collect();
        let said = said_of_recordings([&scenario(), &scenario()], &One(raw));
        assert_eq!(said, ["a.csv: taken for norway; its rates are lower-bound: one download over HTTP"]);
        assert!(said_of_recordings([&scenario()], &One("10\n20\n".to_owned())).is_empty());
    }
}
