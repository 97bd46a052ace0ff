//! Checks that every test file belongs to its crate's single test binary; a file missing in `tests/main.rs` would never
//! run.

use std::path::Path;

use crate::Problems;
use crate::source::{read, tracked};

/// Checks every file in the `tests` folder of each crate.
pub(crate) fn check(root: &Path) -> Result<Problems, String> {
    let mut problems = Problems::new();
    for file in tracked(root, ".rs")?.iter().filter(|file| is_of_tests(file)) {
        let main = file.with_file_name("main.rs");
        let named = root.join(&main).is_file() && names(&read(root, &main)?, file);
        if !named && *file != main {
            problems.push(format!("{}: {} does not name it", file.display(), main.display()));
        }
    }
    Ok(problems)
}

/// `crates/NAME/tests/FILE`.
fn is_of_tests(file: &Path) -> bool {
    let parts: Vec<_> = file.iter().collect();
    parts.len() == 4 && parts[0] == "crates" && parts[2] == "tests"
}

/// Whether a `mod` line names the file.
fn names(main: &str, file: &Path) -> bool {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    main.lines().any(|line| line == format!("mod {stem};"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_by_a_line_of_its_own() {
        let file = Path::new("crates/ackclock-edge/tests/laws.rs");
        assert!(is_of_tests(file) && names("mod common;\nmod laws;\n", file));
        assert!(!names("mod laws_of_links;\n", file));
        assert!(!is_of_tests(Path::new("crates/ackclock-edge/tests/links/common/mod.rs")));
        assert!(!is_of_tests(Path::new("crates/ackclock-link/src/tests/laws.rs")));
    }
}
