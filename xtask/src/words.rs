//! Checks for words that no file under version control may contain: left-overs, and settings of a single machine.

use std::path::Path;

use crate::Problems;
use crate::source::tracked;

/// Files that may contain the words: this list, and texts about it.
const AT_HOME: [&str; 1] = ["xtask/src/words.rs"];

const LEFT_OVERS: [&str; 8] =
    ["TODO", "FIXME", "XXX:", "todo!(", "unimplemented!(", "#[ignore", "assert!(true)", "assert True\n"];

/// Package sources are a setting of the machine, never of the project.
const PACKAGE_SOURCES: [&str; 4] = ["--index-url", "extra-index-url", "replace-with", "trusted-host"];

/// Top-level folders that contain files of one person or machine.
const PRIVATE_FOLDERS: [&str; 3] = ["root", "home", "work"];

/// Checks every file under version control.
pub(crate) fn check(root: &Path) -> Result<Problems, String> {
    let mut problems = Problems::new();
    for file in tracked(root, "")? {
        if AT_HOME.iter().any(|home| file == Path::new(home)) {
            continue;
        }
        let bytes =
            std::fs::read(root.join(&file)).map_err(|error| format!("{}: {error}", file.display()))?;
        // Images and recordings contain no words.
        let Ok(text) = String::from_utf8(bytes) else { continue };
        problems
            .extend(found(&text).map(|(line, word)| format!("{}:{line}: `{}`", file.display(), word.trim())));
    }
    Ok(problems)
}

fn found(text: &str) -> impl Iterator<Item = (usize, String)> {
    let fixed = LEFT_OVERS.into_iter().chain(PACKAGE_SOURCES).map(str::to_owned);
    // A path follows a quote or a space; a web address may contain such a folder.
    let folders = PRIVATE_FOLDERS
        .iter()
        .flat_map(|folder| [' ', '"', '\'', '`', '=', '('].map(|c| format!("{c}/{folder}/")));
    fixed.chain(folders).flat_map(move |word| {
        let lines: Vec<usize> =
            text.match_indices(&word).map(|(at, _)| text[..at].matches('\n').count() + 1).collect();
        lines.into_iter().map(move |line| (line, word.clone()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn left_overs_and_private_paths_are_found_with_their_line() {
        let text = "fine\n// TODO later\nopen(\"/home/me/x\")\n";
        let found: Vec<_> = found(text).map(|(line, _)| line).collect();
        assert_eq!(found, [2, 3]);
    }

    #[test]
    fn addresses_on_the_web_are_no_paths() {
        assert_eq!(found("see https://example.org/home/page").count(), 0);
    }
}
