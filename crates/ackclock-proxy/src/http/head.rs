//! Fields of an HTTP/1 head that say how the message is framed and which fields end at the proxy.

use httparse::Header;

use super::body::Body;

/// Maximum length of the head of a request in bytes; longer heads are refused.
pub const LONGEST_HEAD: usize = 16 * 1024;
/// Maximum length of the head of an answer in bytes; longer heads are refused.
pub(super) const LONGEST_ANSWER_HEAD: usize = 64 * 1024;
/// Maximum number of fields of a head.
pub(super) const MOST_FIELDS: usize = 128;

/// Fields that end at the proxy (RFC 9110 section 7.6.1), and those that frame the message: the proxy writes its own.
const OF_THIS_HOP: [&str; 8] = [
    "connection",
    "proxy-connection",
    "keep-alive",
    "proxy-authorization",
    "te",
    "upgrade",
    "content-length",
    "transfer-encoding",
];

/// Fields of a head, in the order of the message.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [Header<'a>]);

impl<'a> Fields<'a> {
    /// Values of the fields with this name.
    pub(super) fn values(self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
    }

    /// Members of the lists in the fields with this name, in lower case.
    pub(super) fn words(self, name: &'a str) -> Vec<Vec<u8>> {
        let words = self.values(name).flat_map(|value| value.split(|&byte| byte == b','));
        words.map(|word| word.trim_ascii().to_ascii_lowercase()).filter(|word| !word.is_empty()).collect()
    }

    /// Framing of the body; `None` for a message without a length.
    ///
    /// # Errors
    /// Fails if two recipients could find different lengths.
    pub(super) fn framing(self, minor_version: u8) -> Result<Option<Body>, &'static str> {
        let [lengths, codings] = ["content-length", "transfer-encoding"]
            .map(|name| self.values(name).map(<[u8]>::trim_ascii).collect::<Vec<_>>());
        match (&lengths[..], &codings[..]) {
            ([], []) => Ok(None),
            ([length], []) => {
                decimal(length).map(|length| Some(Body::Length(length))).ok_or("Content-Length is no number")
            }
            ([], [coding]) if coding.eq_ignore_ascii_case(b"chunked") && minor_version == 1 => {
                Ok(Some(Body::chunked()))
            }
            ([], [_]) => Err("the only Transfer-Encoding is chunked, of HTTP/1.1"),
            _ => Err("the length of the body could be read in two ways"),
        }
    }

    /// Writes the fields that do not end at the proxy, except those with a name in `others`.
    pub(super) fn write(self, others: &[Vec<u8>], to: &mut Vec<u8>) {
        for Header { name, value } in self.0 {
            let lower = name.to_ascii_lowercase();
            if OF_THIS_HOP.contains(&lower.as_str()) || others.iter().any(|other| other == lower.as_bytes()) {
                continue;
            }
            to.extend_from_slice(name.as_bytes());
            to.extend_from_slice(b": ");
            // Only a folded value of a response contains line ends (RFC 9112 section 5.2).
            to.extend(value.iter().map(|&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
            to.extend_from_slice(b"\r\n");
        }
    }
}

/// Number of at most 18 decimal digits, and nothing else.
fn decimal(text: &[u8]) -> Option<u64> {
    let is_number = (1..=18).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| is_number)?.parse().ok()
}
