//! Checks that functions have at most 40 lines. File size is a hint: above 500 lines before the tests, a file may hold
//! two ideas.

use std::path::{Path, PathBuf};

use crate::Problems;
use crate::source::{bare, before_tests, read, tracked};

const HINT_IN_FILE: usize = 500;
const MOST_IN_FUNCTION: usize = 40;

/// Checks every source file except tests. Long files are only hints; long functions are problems.
pub(crate) fn check(root: &Path) -> Result<Problems, String> {
    let mut problems = Problems::new();
    for file in code_files(root)? {
        let text = read(root, &file)?;
        let code = before_tests(&text);
        let lines = code.lines().count();
        if lines > HINT_IN_FILE {
            println!("hint: {}: {lines} lines before the tests: two ideas?", file.display());
        }
        if file.extension().is_some_and(|ending| ending == "rs") {
            problems.extend(long_functions(&bare(code)).map(|(line, length)| {
                format!("{}:{line}: a function of {length} lines, {MOST_IN_FUNCTION} at most", file.display())
            }));
        }
    }
    Ok(problems)
}

fn code_files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = tracked(root, ".rs")?;
    files.extend(tracked(root, ".py")?);
    files.retain(|file| {
        let test_folder = file.components().any(|part| part.as_os_str() == "tests");
        !test_folder && file.file_name().is_some_and(|name| name != "tests.rs")
    });
    Ok(files)
}

/// First line and length of every function that is too long.
fn long_functions(code: &str) -> impl Iterator<Item = (usize, usize)> {
    function_starts(code)
        .filter_map(|start| {
            let first = code[..start].matches('\n').count() + 1;
            body_lines(&code[start..]).map(|lines| (first, lines))
        })
        .filter(|&(_, lines)| lines > MOST_IN_FUNCTION)
}

fn function_starts(code: &str) -> impl Iterator<Item = usize> {
    code.match_indices("fn ").map(|(at, _)| at).filter(|&at| {
        let before = code[..at].chars().next_back();
        // The keyword `fn` followed by a name: neither the end of a word nor a type `fn (..)`.
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
            && code[at + 3..].starts_with(|c: char| c.is_alphabetic() || c == '_')
    })
}

/// Lines from `fn` to the closing brace of its body; `None` without a body.
fn body_lines(code: &str) -> Option<usize> {
    let body = code.find(['{', ';']).filter(|&at| code.as_bytes()[at] == b'{')?;
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(body) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(code[..at].matches('\n').count() + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function_of(lines: usize) -> String {
        // Signature and closing brace count as lines of the function.
        format!("impl X {{\n    fn long() {{\n{}    }}\n}}\nfn next() {{ }}\n", "x;\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_of_forty_lines_is_the_longest() {
        assert_eq!(long_functions(&function_of(40)).count(), 0);
        assert_eq!(long_functions(&function_of(41)).collect::<Vec<_>>(), [(2, 41)]);
    }

    #[test]
    fn declarations_and_function_types_have_no_body() {
        assert_eq!(function_starts("fn declared();\nparse: fn (Value) -> X,\nfnord {}").count(), 1);
        assert_eq!(body_lines("fn declared();\nfn other() {}"), None);
    }
}
