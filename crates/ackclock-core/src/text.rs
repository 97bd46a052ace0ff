//! Text from outside, made fit to be shown: names, keys and values of files, answers of other programs.
//!
//! A terminal obeys control characters, and what turns the direction of writing round makes a line read as another. Both
//! are written as JSON and TOML escape them, `\u001b`, so that text of either stays what it was.

use std::borrow::Cow;
use std::fmt::Write;

/// Text of several lines: everything but line ends and tabs that a terminal would obey is escaped.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_obeyed(c) && !matches!(c, '\n' | '\t'))
}

/// Text that must stay in its line: as [`printable`], with line ends and tabs escaped too.
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

/// Control characters (C0, DEL, C1), separators of lines and paragraphs, and what sets the direction of writing.
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
