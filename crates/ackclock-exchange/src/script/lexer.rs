//! Splits a script into statements: lines, blocks of assertions, blocks of commands.

use crate::refusal::Refusal;

/// A statement of a script, with the number of its line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Statement<'a> {
    /// First line of the statement, counted from 1.
    pub(super) line: usize,
    pub(super) says: Says<'a>,
}

/// Kind of a statement and its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Says<'a> {
    /// A line `//!name value`, without the `//!`.
    Setting(&'a str),
    /// A line `--name=value`.
    Flag(&'a str),
    /// A time followed by an event.
    Event(&'a str),
    /// A time followed by a block of assertions `%{ }%`.
    Assertions(&'a str, &'a str),
    /// A block of shell commands between backticks.
    Commands(&'a str),
}

/// Splits a script into statements, and removes comments.
///
/// # Errors
/// Returns an error if a block does not end.
pub(super) fn statements(text: &str) -> Result<Vec<Statement<'_>>, Refusal> {
    let mut cursor = Cursor { text, at: 0, line: 1 };
    let mut found = Vec::new();
    while let Some(statement) = cursor.next()? {
        found.push(statement);
    }
    Ok(found)
}

/// Tokens that end the text of an event.
const STOPS: [&str; 5] = ["\n", "//", "/*", "`", "%{"];

struct Cursor<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Cursor<'a> {
    fn next(&mut self) -> Result<Option<Statement<'a>>, Refusal> {
        loop {
            self.skip_space();
            let (line, rest) = (self.line, self.rest());
            if rest.is_empty() {
                return Ok(None);
            }
            let says = if rest.starts_with("//!") {
                Says::Setting(self.take_line()[3..].trim())
            } else if rest.starts_with("//") {
                self.take_line();
                continue;
            } else if rest.starts_with("/*") {
                self.take_block("/*", "*/")?;
                continue;
            } else if rest.starts_with("--") {
                Says::Flag(self.take_words())
            } else {
                self.take_event()?
            };
            return Ok(Some(Statement { line, says }));
        }
    }

    /// Consumes a time and the event or block after it.
    fn take_event(&mut self) -> Result<Says<'a>, Refusal> {
        let words = self.take_words();
        let rest = self.rest();
        if rest.starts_with('`') {
            return self.take_block("`", "`").map(Says::Commands);
        }
        if rest.starts_with("%{") {
            return self.take_block("%{", "}%").map(|block| Says::Assertions(words, block));
        }
        Ok(Says::Event(words))
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self, bytes: usize) -> &'a str {
        let passed = &self.rest()[..bytes];
        self.at += bytes;
        self.line += passed.matches('\n').count();
        passed
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.skip(rest.len() - rest.trim_start().len());
    }

    /// Consumes the rest of the line.
    fn take_line(&mut self) -> &'a str {
        let rest = self.rest();
        self.skip(rest.find('\n').unwrap_or(rest.len()))
    }

    /// Consumes text up to the end of the line, a comment or a block.
    fn take_words(&mut self) -> &'a str {
        let rest = self.rest();
        let end = STOPS.iter().filter_map(|stop| rest.find(stop)).min().unwrap_or(rest.len());
        self.skip(end).trim()
    }

    /// Consumes a block that starts with `open` and ends with `close`; returns the text inside.
    fn take_block(&mut self, open: &str, close: &str) -> Result<&'a str, Refusal> {
        let inside = &self.rest()[open.len()..];
        let Some(end) = inside.find(close) else {
            return Err(Refusal::new(self.line, format!("`{open}` has no `{close}` that ends it")));
        };
        self.skip(open.len() + end + close.len());
        Ok(&inside[..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(text: &str) -> Vec<(usize, Says<'_>)> {
        statements(text).unwrap().iter().map(|statement| (statement.line, statement.says)).collect()
    }

    #[test]
    fn a_script_is_cut_into_lines_and_blocks_with_their_lines() {
        let text = "//!nosyn\n// a comment\n--tolerance_usecs=5 // why\n`a\nb`\n+0 > . 1:1(0) ack 1 /* more\n*/\n0 %{ assert 7 // 2 == 3\n}% `c`\n";
        let found = [
            (1, Says::Setting("nosyn")),
            (3, Says::Flag("--tolerance_usecs=5")),
            (4, Says::Commands("a\nb")),
            (6, Says::Event("+0 > . 1:1(0) ack 1")),
            (8, Says::Assertions("0", " assert 7 // 2 == 3\n")),
            (9, Says::Commands("c")),
        ];
        assert_eq!(says(text), found);
    }

    #[test]
    fn a_block_without_an_end_is_refused_where_it_begins() {
        for text in ["\n+0 %{ assert 1", "\n`sysctl", "\n/* why"] {
            assert_eq!(statements(text).unwrap_err().line, 2, "{text}");
        }
    }
}
