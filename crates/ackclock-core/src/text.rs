//! Escapes untrusted text for display: names, keys and values from files, and output of other programs.
//!
//! Terminals interpret control characters, and bidirectional controls can disguise a line. Control characters and
//! bidirectional controls are escaped as in JSON and TOML, `\u001b`, so that JSON and TOML text keeps its meaning.

use std::borrow::Cow;
use std::fmt::Write;

/// Escapes multi-line text: all control characters except line ends and tabs are escaped.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_obeyed(c) && !matches!(c, '\n' | '\t'))
}

/// Escapes text that must stay on one line. Unlike [`printable`], this function also escapes line ends and tabs.
pub fn printable_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_obeyed)
}

fn escaped(text: &str, is_unfit: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_unfit) {
        return Cow::Borrowed(text);
    }
    let mut fit = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_unfit(c) {
            // Writing to a string cannot fail.
            let _ = write!(fit, "\\u{:04x}", u32::from(c));
        } else {
            fit.push(c);
        }
    }
    Cow::Owned(fit)
}

/// Returns whether `c` is a control character (C0, DEL, C1), a line or paragraph separator, or a bidirectional control.
fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped() {
        let evil = "a\u{1b}[2J\u{7f}\u{9b}1m\u{202e}b\r";
        assert_eq!(printable(evil), "a\\u001b[2J\\u007f\\u009b1m\\u202eb\\u000d");
        assert_eq!(printable("two\n\tlines, ümläut"), "two\n\tlines, ümläut");
        assert_eq!(printable_line("two\n\tlines"), "two\\u000a\\u0009lines");
        assert!(matches!(printable_line("plain"), Cow::Borrowed(_)));
    }
}
