//! Answers of the proxy in place of a server's.

/// Answer with this status that closes the connection.
pub fn refusal(status: &str, why: &str) -> Vec<u8> {
    let body = format!("ackclock proxy: {why}\n");
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Answer to a request that is malformed or could be read in two ways.
pub(crate) fn bad(why: &str) -> Vec<u8> {
    refusal("400 Bad Request", why)
}
