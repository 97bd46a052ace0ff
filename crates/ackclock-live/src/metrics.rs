//! Metrics in the text format of Prometheus, and a server of one page.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A page of metrics, under construction.
#[derive(Clone, Debug, Default)]
pub struct Page(String);

/// Whether a metric only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It does.
    Counter,
    /// It goes up and down.
    Gauge,
}

impl Page {
    /// Adds a metric: its name without the prefix `ackclock_`, what it means, and a value for each set of labels. A value
    /// that does not exist is left out.
    pub fn metric(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Vec<(&'static str, String)>, Option<f64>)>,
    ) -> &mut Self {
        let mut rows = values.into_iter().filter_map(|(labels, value)| Some((labels, value?))).peekable();
        if rows.peek().is_none() {
            return self;
        }
        let kind = if kind == Kind::Counter { "counter" } else { "gauge" };
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP ackclock_{name} {help}\n# TYPE ackclock_{name} {kind}");
        for (labels, value) in rows {
            let labels: Vec<_> =
                labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(self.0, "ackclock_{name}{labels} {value}");
        }
        self
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The address that a user wrote: a port alone is one of the loopback address, so that nothing is shown to others unless
/// asked.
///
/// # Errors
/// Says how an address is written.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    text.parse()
        .map_err(|_| format!("`{text}` is neither a port, 9100, nor an address with a port, 127.0.0.1:9100"))
}

/// Serves `page` at `/metrics` until the process ends.
pub fn serve(listener: &TcpListener, page: impl Fn() -> String) {
    for stream in listener.incoming().flatten() {
        // A client that goes away before its answer is its own affair.
        let _ = answer(stream, &page);
    }
}

fn answer(mut stream: TcpStream, page: impl Fn() -> String) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(&stream).take(LONGEST).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (status, body) = match request.split(' ').next() {
        Some("GET") if path == "/metrics" => ("200 OK", page()),
        Some("GET") => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", String::new()),
    };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST: u64 = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_help_type_labels_and_no_row_for_what_does_not_exist() {
        let mut page = Page::default();
        page.metric(
            Kind::Gauge,
            "rate_bps",
            "Rate now.",
            [(vec![("direction", "do\"wn".to_owned())], Some(2e6))],
        );
        page.metric(Kind::Counter, "nothing_total", "Nothing.", [(vec![], None)]);
        assert_eq!(
            page.text(),
            "# HELP ackclock_rate_bps Rate now.\n# TYPE ackclock_rate_bps gauge\n\
             ackclock_rate_bps{direction=\"do\\\"wn\"} 2000000\n"
        );
    }

    #[test]
    fn a_port_alone_is_shown_to_nobody_else() {
        assert_eq!(parse_address("9100"), Ok("127.0.0.1:9100".parse().unwrap()));
        assert_eq!(parse_address(":9100"), Ok("127.0.0.1:9100".parse().unwrap()));
        assert_eq!(parse_address("0.0.0.0:80"), Ok("0.0.0.0:80".parse().unwrap()));
        assert!(parse_address("everywhere").is_err());
    }

    #[test]
    fn the_page_is_served_over_http() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || serve(&listener, || "x 1\n".to_owned()));
        let fetch = |request: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(format!("{request} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        };
        let page = fetch("GET /metrics");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\nx 1\n"), "{page}");
        assert!(fetch("GET /").starts_with("HTTP/1.1 404"));
        assert!(fetch("POST /metrics").starts_with("HTTP/1.1 405"));
    }
}
