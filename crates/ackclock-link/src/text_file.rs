//! Text files that a table names: their errors, and checks that a file is text.

/// An error in a recording, with its line number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Number of the invalid line, from 1; `None` if the error concerns the entire file.
    pub line: Option<usize>,
    /// Error message with the text found and the text allowed.
    pub message: String,
}

impl std::error::Error for TraceError {}

impl std::fmt::Display for TraceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl TraceError {
    /// Error of the entire file.
    pub fn whole(message: impl Into<String>) -> Self {
        Self { line: None, message: message.into() }
    }

    /// Error of the line with this index, from 0.
    pub fn at(index: usize, message: impl Into<String>) -> Self {
        Self { line: Some(index + 1), message: message.into() }
    }
}

/// Maximum size of a text file that is read, bytes.
pub const MAX_BYTES: usize = 256 << 20;

/// First bytes of unsupported file types, with the names of the types.
const OTHER_FORMS: [(&[u8], &str); 6] = [
    (b"\x0a\x0d\x0d\x0a", "a capture of packets (pcapng)"),
    (b"\xd4\xc3\xb2\xa1", "a capture of packets (pcap)"),
    (b"\xa1\xb2\xc3\xd4", "a capture of packets (pcap)"),
    (b"\x4d\x3c\xb2\xa1", "a capture of packets (pcap)"),
    (b"\x1f\x8b", "compressed by gzip (unpack it: zcat)"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd (unpack it: zstdcat)"),
];

/// Returns the bytes of a text file without a UTF-8 byte order mark; `forms` lists the possible formats for error
/// messages.
///
/// # Errors
/// Fails if the file is empty, too long, or of a type that is not text.
pub fn plain_text<'a>(bytes: &'a [u8], forms: &str) -> Result<&'a [u8], TraceError> {
    if bytes.len() > MAX_BYTES {
        return Err(TraceError::whole(format!(
            "the file has {} bytes; at most {MAX_BYTES} are read",
            bytes.len()
        )));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if let Some((_, what)) = OTHER_FORMS.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Err(TraceError::whole(format!("it is {what}; {forms}")));
    }
    if bytes.is_empty() {
        return Err(TraceError::whole("the file is empty"));
    }
    Ok(bytes)
}
