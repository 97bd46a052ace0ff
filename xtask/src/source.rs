//! Rust source for the checks: file lists, and text without comments and literals.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files under version control whose names end in `ending`, relative to `root`, sorted.
pub(crate) fn tracked(root: &Path, ending: &str) -> Result<Vec<PathBuf>, String> {
    // New files count before they are committed; ignored ones never do.
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git ls-files: {error}"))?;
    if !output.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let listing = String::from_utf8_lossy(&output.stdout);
    let mut files: Vec<PathBuf> = listing
        .split('\0')
        .filter(|name| !name.is_empty() && name.ends_with(ending))
        .map(PathBuf::from)
        .collect();
    files.retain(|file| root.join(file).is_file());
    files.sort();
    files.dedup();
    Ok(files)
}

/// Reads a file relative to `root`.
pub(crate) fn read(root: &Path, file: &Path) -> Result<String, String> {
    fs::read_to_string(root.join(file)).map_err(|error| format!("{}: {error}", file.display()))
}

/// The part of a file before its inline test module.
pub(crate) fn before_tests(text: &str) -> &str {
    let mut from = 0;
    while let Some(found) = text[from..].find("#[cfg(test)]") {
        let at = from + found;
        let module = text[at..].lines().find(|line| !line.trim_start().starts_with("#["));
        if module.is_some_and(|line| line.starts_with("mod ") && line.trim_end().ends_with('{')) {
            return &text[..at];
        }
        from = at + 1;
    }
    text
}

/// The text with comments and the contents of string and character literals blanked; line numbers stay the same.
pub(crate) fn bare(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut bare = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let length = literal_or_comment(&bytes[at..]);
        let blank = length.unwrap_or(1);
        for &byte in &bytes[at..at + blank] {
            bare.push(if length.is_none() || byte == b'\n' { byte } else { b' ' });
        }
        at += blank;
    }
    String::from_utf8_lossy(&bare).into_owned()
}

/// Length of the comment or literal that starts here, if any.
fn literal_or_comment(rest: &[u8]) -> Option<usize> {
    match rest {
        [b'/', b'/', ..] => Some(rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())),
        [b'/', b'*', ..] => Some(find(&rest[2..], b"*/").map_or(rest.len(), |end| end + 4)),
        [b'r', b'"' | b'#', ..] => raw_string(rest),
        [b'"', ..] => Some(quoted(rest, b'"')),
        [b'\'', b'\\', ..] => Some(quoted(rest, b'\'')),
        [b'\'', _, b'\'', ..] => Some(3),
        _ => None,
    }
}

fn raw_string(rest: &[u8]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|&&byte| byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let end: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let inside = 2 + hashes;
    Some(find(&rest[inside..], &end).map_or(rest.len(), |found| inside + found + end.len()))
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_in_literals_and_comments_vanish() {
        let text = "a { \"{\\\"{\" '{' '\\'' r#\"{\"# // {\n /* {\n */ 'life }";
        let bare = bare(text);
        assert_eq!(bare.matches('{').count(), 1);
        assert_eq!(bare.matches('}').count(), 1);
        assert_eq!(bare.lines().count(), text.lines().count());
        assert!(bare.contains("'life"));
    }

    #[test]
    fn a_test_module_in_its_own_file_does_not_end_the_code() {
        let text = "#[cfg(test)]\nmod tests;\nfn code() {}\n#[cfg(test)]\nmod more {\n}\n";
        assert_eq!(before_tests(text), "#[cfg(test)]\nmod tests;\nfn code() {}\n");
    }
}
