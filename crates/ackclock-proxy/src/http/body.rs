//! Body of an HTTP/1 message: where it ends (RFC 9112 section 6), and its chunks (section 7.1).

/// Maximum length of a line before a chunk, and of all trailer fields.
const LONGEST_LINE: usize = 4096;

/// Body of a message, or what remains of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// This many bytes remain.
    Length(u64),
    /// Chunks follow.
    Chunked(Chunked),
    /// The body ends with the connection.
    UntilEnd,
}

/// Position in a body of chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunked {
    /// In the line with the size of a chunk; the part that has arrived.
    Size(Vec<u8>),
    /// In the data of a chunk: this many bytes remain.
    Data(u64),
    /// In the line end after the data.
    DataEnd(Vec<u8>),
    /// In a trailer line; the part that has arrived, and the length of all trailer lines.
    Trailer(Vec<u8>, usize),
    /// After the last line.
    Over,
}

impl Body {
    /// Body of chunks, before its first byte.
    pub const fn chunked() -> Self {
        Self::Chunked(Chunked::Size(Vec::new()))
    }

    /// Whether the body is complete.
    pub const fn is_over(&self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Chunked::Over))
    }

    /// Field that announces the body; empty for a body that ends with the connection.
    pub(super) fn field(&self) -> String {
        match self {
            Self::Length(length) => format!("Content-Length: {length}\r\n"),
            Self::Chunked(_) => "Transfer-Encoding: chunked\r\n".to_owned(),
            Self::UntilEnd => String::new(),
        }
    }

    /// Copies the bytes that belong to the body. Bytes after the body are dropped. Chunks are written without their
    /// extensions, and their trailer fields are dropped (RFC 9112 section 7.1).
    ///
    /// # Errors
    /// Fails if a chunk could be read in two ways.
    pub fn pass(&mut self, mut bytes: &[u8], to: &mut Vec<u8>) -> Result<(), &'static str> {
        match self {
            Self::UntilEnd => to.extend_from_slice(bytes),
            Self::Length(left) => copy(left, &mut bytes, to),
            Self::Chunked(chunked) => {
                while !bytes.is_empty() && *chunked != Chunked::Over {
                    chunked.pass(&mut bytes, to)?;
                }
            }
        }
        Ok(())
    }
}

/// Copies at most `left` bytes.
fn copy(left: &mut u64, bytes: &mut &[u8], to: &mut Vec<u8>) {
    let count = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
    to.extend_from_slice(&bytes[..count]);
    *left -= count as u64;
    *bytes = &bytes[count..];
}

impl Chunked {
    /// Passes the bytes up to the next change of the state.
    fn pass(&mut self, bytes: &mut &[u8], to: &mut Vec<u8>) -> Result<(), &'static str> {
        let next = match self {
            Self::Size(line) => line_of(line, bytes)?.then(|| size(line)).transpose()?.map(|size| {
                if size == 0 {
                    return Self::Trailer(Vec::new(), 0);
                }
                to.extend_from_slice(format!("{size:x}\r\n").as_bytes());
                Self::Data(size)
            }),
            Self::Data(left) => {
                copy(left, bytes, to);
                (*left == 0).then(|| Self::DataEnd(Vec::new()))
            }
            Self::DataEnd(line) => {
                let is_whole = line_of(line, bytes)?;
                if line.len() > usize::from(!is_whole) {
                    return Err("a chunk is longer than its size");
                }
                is_whole.then(|| {
                    to.extend_from_slice(b"\r\n");
                    Self::Size(Vec::new())
                })
            }
            Self::Trailer(line, length) => trailer(line, *length, bytes)?.inspect(|next| {
                if *next == Self::Over {
                    to.extend_from_slice(b"0\r\n\r\n");
                }
            }),
            Self::Over => None,
        };
        if let Some(next) = next {
            *self = next;
        }
        Ok(())
    }
}

/// State after a trailer line, which follows lines of `length` bytes; `None` if the line is not complete.
fn trailer(line: &mut Vec<u8>, length: usize, bytes: &mut &[u8]) -> Result<Option<Chunked>, &'static str> {
    if length + line.len() > LONGEST_LINE {
        return Err("the trailer is too long");
    }
    let is_whole = line_of(line, bytes)?;
    let next =
        if line.is_empty() { Chunked::Over } else { Chunked::Trailer(Vec::new(), length + line.len()) };
    Ok(is_whole.then_some(next))
}

/// Adds bytes up to the end of a line; returns whether the line is complete, then without its end.
fn line_of(line: &mut Vec<u8>, bytes: &mut &[u8]) -> Result<bool, &'static str> {
    let end = bytes.iter().position(|&byte| byte == b'\n');
    let (more, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
    line.extend_from_slice(more);
    *bytes = rest;
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let before = text.strip_suffix(b"\r").unwrap_or(text);
    if before.contains(&b'\r') || end.is_some() && before.len() == text.len() {
        return Err("a line of the chunks ends without CR LF");
    }
    if before.len() > LONGEST_LINE {
        return Err("a line of the chunks is too long");
    }
    let length = before.len();
    if end.is_some() {
        line.truncate(length);
    }
    Ok(end.is_some())
}

/// Size of a chunk: at most 15 hexadecimal digits, and extensions, which are ignored.
fn size(line: &[u8]) -> Result<u64, &'static str> {
    let digits = line.split(|&byte| byte == b';').next().unwrap_or_default();
    let is_number = (1..=15).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_number);
    text.and_then(|text| u64::from_str_radix(text, 16).ok()).ok_or("the size of a chunk is no number")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn passed(body: &mut Body, bytes: &[u8]) -> Result<String, &'static str> {
        let mut to = Vec::new();
        body.pass(bytes, &mut to).map(|()| String::from_utf8_lossy(&to).into_owned())
    }

    #[test]
    fn a_body_ends_by_its_length_and_drops_the_next_message() {
        let mut body = Body::Length(5);
        assert_eq!(passed(&mut body, b"abc"), Ok("abc".to_owned()));
        assert!(!body.is_over());
        assert_eq!(passed(&mut body, b"deGET / HTTP/1.1"), Ok("de".to_owned()));
        assert!(body.is_over());
    }

    #[test]
    fn chunks_are_written_again_without_extensions_and_trailers() {
        let text = b"0003;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\n\r\n";
        let mut body = Body::chunked();
        assert_eq!(passed(&mut body, text), Ok("3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n".to_owned()));
        assert!(body.is_over());
    }

    #[test]
    fn chunks_that_could_be_read_in_two_ways_are_refused() {
        for text in [
            "3\nabc\r\n",
            "3\rabc\r\n",
            "3;a\rb\r\nabc\r\n",
            "3;a\nabc\r\n",
            " 3\r\nabc\r\n",
            "3 \r\nabc\r\n",
            "+3\r\nabc\r\n",
            "-1\r\n",
            "0x3\r\nabc\r\n",
            "3,3\r\nabc\r\n",
            "\r\n",
            ";a\r\n",
            "g\r\n",
            "0000000000000003\r\nabc\r\n",
            "ffffffffffffffff\r\n",
            "3\r\nabcd\r\n",
            "3\r\nabc\n",
            "3\r\nabc0\r\n",
            "0\r\nA: b\n\r\n",
            "0\r\n\n",
        ] {
            assert!(passed(&mut Body::chunked(), text.as_bytes()).is_err(), "{text:?}");
        }
        let endless = format!("3;{}", "x".repeat(2 * LONGEST_LINE));
        assert!(passed(&mut Body::chunked(), endless.as_bytes()).is_err());
        let endless = format!("0\r\n{}", "A: b\r\n".repeat(LONGEST_LINE));
        assert!(passed(&mut Body::chunked(), endless.as_bytes()).is_err());
    }

    proptest! {
        /// Bytes in any parts give the same body as all bytes at once, and never more bytes than arrived.
        #[test]
        fn parts_make_no_difference(
            text in "([0-3a]{1,2}(;x)?\r\n|[ab0]{0,4}|\r\n|\n|0\r\n\r\n){0,12}", parts in prop::collection::vec(1..9_usize, 60),
        ) {
            let (mut at_once, mut in_parts, mut rest) = (Body::chunked(), Body::chunked(), text.as_bytes());
            let expected = passed(&mut at_once, rest);
            let mut got = Ok::<_, &str>(String::new());
            for length in parts {
                let (part, after) = rest.split_at(length.min(rest.len()));
                rest = after;
                got = got.and_then(|got| Ok(got + &passed(&mut in_parts, part)?));
            }
            got = got.and_then(|got| Ok(got + &passed(&mut in_parts, rest)?));
            prop_assert!(expected.as_ref().map_or(0, String::len) <= text.len());
            // The first of several faults depends on the parts.
            prop_assert_eq!(got.ok(), expected.ok());
        }
    }
}
