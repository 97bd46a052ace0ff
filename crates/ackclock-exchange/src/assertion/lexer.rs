//! Splits a block of assertions into tokens.

use crate::refusal::Refusal;

/// A token of an assertion.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Token<'a> {
    /// Line of the token in the script.
    pub(super) line: usize,
    /// Byte offset of the token in the block of assertions.
    pub(super) at: usize,
    pub(super) text: &'a str,
    pub(super) kind: Kind,
}

/// Kind of a token: word, quoted text, number, operator or end of statement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Kind {
    Number(f64),
    /// A name, or a keyword such as `and`.
    Word,
    /// Text in quotation marks.
    Text,
    Operator,
    /// The end of a statement: a line end or a `;`.
    End,
}

impl Token<'_> {
    pub(super) fn is_end(&self) -> bool {
        self.kind == Kind::End
    }
}

/// Operators, longest first, so that `<=` is not mistaken for `<`.
const OPERATORS: [&str; 18] =
    ["==", "!=", "<=", ">=", "//", "<", ">", "+", "-", "*", "/", "%", "&", "|", "(", ")", ",", ";"];

/// Splits a block that starts on `line` into tokens. As in Python, line ends within parentheses are ignored.
///
/// # Errors
/// Returns an error that names the line of an invalid token.
pub(super) fn tokens(line: usize, block: &str) -> Result<Vec<Token<'_>>, Refusal> {
    let (mut found, mut at, mut line, mut depth) = (Vec::new(), 0, line, 0u32);
    while let Some(first) = block[at..].chars().next() {
        let rest = &block[at..];
        let (len, kind) = match first {
            '\n' => (1, (depth == 0).then_some(Kind::End)),
            c if c.is_whitespace() => (c.len_utf8(), None),
            '#' => (rest.find('\n').unwrap_or(rest.len()), None),
            _ => token(rest).map(|(len, kind)| (len, Some(kind))).map_err(|why| Refusal::new(line, why))?,
        };
        let text = &rest[..len];
        if let Some(kind) = kind {
            match text {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                _ => {}
            }
            found.push(Token { line, at, text, kind });
        }
        at += len;
        line += usize::from(first == '\n');
    }
    Ok(found)
}

/// Returns the length and the kind of the token at the start of `rest`.
fn token(rest: &str) -> Result<(usize, Kind), String> {
    let first = rest.chars().next().unwrap_or_default();
    if first.is_ascii_alphanumeric() || first == '_' || first == '.' {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let len = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let is_word = first.is_ascii_alphabetic() || first == '_';
        return Ok((len, if is_word { Kind::Word } else { Kind::Number(number(&rest[..len])?) }));
    }
    if first == '\'' || first == '"' {
        let line = rest.lines().next().unwrap_or_default();
        let end = line[1..].find(first).ok_or_else(|| format!("`{line}` does not end with {first}"))?;
        return Ok((end + 2, Kind::Text));
    }
    match OPERATORS.iter().find(|operator| rest.starts_with(**operator)) {
        Some(&";") => Ok((1, Kind::End)),
        Some(operator) => Ok((operator.len(), Kind::Operator)),
        None => Err(format!("`{first}` means nothing in an assertion")),
    }
}

/// Parses a number in Python notation: `10`, `0.5`, `0x7f`.
fn number(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is not a number");
    if let Some(digits) = text.strip_prefix("0x") {
        return u32::from_str_radix(digits, 16).map(f64::from).map_err(|_| wrong());
    }
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| plain).ok_or_else(wrong)
}
