//! Metrics in the text format of Prometheus, and a web server for the page of metrics.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::AsFd;

use nix::unistd::gethostname;

use crate::clients::{self, Protocol};

/// Page of metrics under construction.
#[derive(Clone, Debug, Default)]
pub struct Page(String);

/// Type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Metric whose value only grows.
    Counter,
    /// Metric whose value rises and falls.
    Gauge,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

/// Labels of a metric value.
pub type Labels = Vec<(&'static str, String)>;

impl Page {
    /// Adds a metric: its name without the prefix `ackclock_`, its help text, and a value for each set of labels. A
    /// missing value is omitted.
    pub fn metric(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels, Option<f64>)>,
    ) -> &mut Self {
        let mut rows = values.into_iter().filter_map(|(labels, value)| Some((labels, value?))).peekable();
        if rows.peek().is_none() {
            return self;
        }
        self.head(kind.name(), name, help);
        rows.for_each(|(labels, value)| self.row(name, &labels, value));
        self
    }

    /// Adds a summary metric: the available quantiles, the sum of all observations, and their number.
    pub fn summary(
        &mut self,
        name: &str,
        help: &str,
        quantiles: impl IntoIterator<Item = (&'static str, Option<f64>)>,
        (sum, count): (f64, u64),
    ) -> &mut Self {
        self.head("summary", name, help);
        for (quantile, value) in
            quantiles.into_iter().filter_map(|(quantile, value)| Some((quantile, value?)))
        {
            self.row(name, &[("quantile", quantile.to_owned())], value);
        }
        self.row(&format!("{name}_sum"), &[], sum);
        self.row(&format!("{name}_count"), &[], count as f64);
        self
    }

    // Writing to a string cannot fail, so the result is ignored.
    fn head(&mut self, kind: &str, name: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP ackclock_{name} {help}\n# TYPE ackclock_{name} {kind}");
    }

    fn row(&mut self, name: &str, labels: &[(&'static str, String)], value: f64) {
        let labels: Vec<_> =
            labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "ackclock_{name}{labels} {value}");
    }

    /// Text of the metrics page.
    pub fn text(&self) -> &str {
        &self.0
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Reason why a server cannot have an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The text is not an address; `port` is an example.
    #[error("`{text}` is neither a port, {port}, nor an address with a port, 127.0.0.1:{port}")]
    Malformed {
        /// Text that was parsed.
        text: String,
        /// Port of the text, or one that it could have.
        port: u16,
    },
    /// Other machines can reach the address.
    #[error("{0} is not a loopback address; write a port, {port}, or 127.0.0.1:{port} or [::1]:{port}", port = .0.port())]
    NotLoopback(SocketAddr),
}

/// Parses a loopback address with a port. A port alone means 127.0.0.1.
///
/// # Errors
/// Fails if the text is not an address, or if the address is not a loopback address.
pub fn parse_loopback(text: &str) -> Result<SocketAddr, AddressError> {
    let address = parse_address(text)?;
    if address.ip().is_loopback() { Ok(address) } else { Err(AddressError::NotLoopback(address)) }
}

/// Parses a socket address. A port alone means the loopback address, so that nothing is exposed by default.
///
/// # Errors
/// Fails if the text is not an address.
pub fn parse_address(text: &str) -> Result<SocketAddr, AddressError> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    text.parse().map_err(|_| {
        let port = text.rsplit(':').next().and_then(|port| port.parse::<u16>().ok()).unwrap_or(9100);
        AddressError::Malformed { text: text.to_owned(), port }
    })
}

/// Serves `page` at `/metrics` until the process ends.
///
/// A web page of an attacker can let its own name resolve to this address, and then read what the server answers (DNS
/// rebinding). So the server answers only requests whose `Host` is its address or this machine's own name.
///
/// # Errors
/// Fails if the kernel does not report new clients, or the listener's address.
pub fn serve(listener: &TcpListener, page: impl Fn() -> String) -> io::Result<()> {
    let http = Http { page, address: listener.local_addr()?.ip().to_canonical() };
    clients::serve(listener.as_fd(), || Ok(listener.accept()?.0.into()), &http)
}

/// Minimal HTTP server for one page.
struct Http<F> {
    page: F,
    /// Address of the listener.
    address: IpAddr,
}

impl<F> Http<F> {
    /// Whether a `Host`, with or without a port, names this server.
    fn is_named(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        let (bound, is_local) = (self.address, self.address.is_loopback());
        match name.parse::<IpAddr>().map(|address| address.to_canonical()) {
            Ok(address) => bound.is_unspecified() || address == bound,
            Err(_) if name.eq_ignore_ascii_case("localhost") => bound.is_unspecified() || is_local,
            Err(_) => !is_local && gethostname().is_ok_and(|own| own.eq_ignore_ascii_case(name)),
        }
    }
}

impl<F: Fn() -> String> Protocol for Http<F> {
    const LONGEST: usize = 16 << 10;

    fn is_whole(request: &[u8]) -> bool {
        [&b"\r\n\r\n"[..], b"\n\n"].iter().any(|end| request.windows(end.len()).any(|part| part == *end))
    }

    fn refusal(&self, _: &File) -> Option<Vec<u8>> {
        None
    }

    fn answer(&self, request: &[u8]) -> Vec<u8> {
        let request = String::from_utf8_lossy(request);
        let mut lines = request.lines();
        let mut words = lines.next().unwrap_or_default().split(' ');
        let fields = lines.filter_map(|line| line.split_once(':'));
        let mut hosts = fields.filter(|(name, _)| name.eq_ignore_ascii_case("host"));
        let is_named = hosts.all(|(_, host)| self.is_named(host.trim()));
        let (status, body) = match (words.next(), words.next()) {
            _ if !is_named => {
                ("403 Forbidden", "the Host is not an address or the name of this server\n".to_owned())
            }
            (Some("GET"), Some("/metrics")) => ("200 OK", (self.page)()),
            (Some("GET"), _) => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
            _ => ("405 Method Not Allowed", String::new()),
        };
        let kind = "text/plain; version=0.0.4; charset=utf-8";
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        [head.into_bytes(), body.into_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn metrics_have_help_type_labels_and_no_row_for_what_does_not_exist() {
        let mut page = Page::default();
        page.metric(
            Kind::Gauge,
            "queue_bytes",
            "Bytes now.",
            [(vec![("direction", "do\"wn".to_owned())], Some(2e6))],
        );
        page.metric(Kind::Counter, "nothing_total", "Nothing.", [(vec![], None)]);
        assert_eq!(
            page.text(),
            "# HELP ackclock_queue_bytes Bytes now.\n# TYPE ackclock_queue_bytes gauge\n\
             ackclock_queue_bytes{direction=\"do\\\"wn\"} 2000000\n"
        );
    }

    #[test]
    fn a_summary_has_quantiles_sum_and_count() {
        let mut page = Page::default();
        page.summary("wait_seconds", "Waits.", [("0.5", Some(0.25)), ("0.99", None)], (7.5, 30));
        assert_eq!(
            page.text(),
            "# HELP ackclock_wait_seconds Waits.\n# TYPE ackclock_wait_seconds summary\n\
             ackclock_wait_seconds{quantile=\"0.5\"} 0.25\nackclock_wait_seconds_sum 7.5\nackclock_wait_seconds_count 30\n"
        );
    }

    #[test]
    fn a_port_alone_is_shown_to_nobody_else() {
        assert_eq!(parse_address("9100"), Ok("127.0.0.1:9100".parse().unwrap()));
        assert_eq!(parse_address(":9100"), Ok("127.0.0.1:9100".parse().unwrap()));
        assert_eq!(parse_address("0.0.0.0:80"), Ok("0.0.0.0:80".parse().unwrap()));
        assert!(parse_address("everywhere").is_err());
        assert_eq!(parse_loopback("8474"), Ok("127.0.0.1:8474".parse().unwrap()));
        assert_eq!(parse_loopback("[::1]:1"), Ok("[::1]:1".parse().unwrap()));
        let open = "0.0.0.0:8474".parse().unwrap();
        assert_eq!(parse_loopback("0.0.0.0:8474"), Err(AddressError::NotLoopback(open)));
    }

    /// Address of a metrics server whose page is `x 1`.
    fn served() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || serve(&listener, || "x 1\n".to_owned()));
        address
    }

    fn fetch(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(format!("{request} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn the_page_is_served_over_http() {
        let address = served();
        let page = fetch(address, "GET /metrics");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\nx 1\n"), "{page}");
        assert!(fetch(address, "GET /").starts_with("HTTP/1.1 404"));
        assert!(fetch(address, "POST /metrics").starts_with("HTTP/1.1 405"));
    }

    #[test]
    fn a_request_for_another_name_is_refused() {
        let own = gethostname().unwrap().into_string().unwrap();
        let named =
            |bound: &str, host: &str| Http { page: (), address: bound.parse().unwrap() }.is_named(host);
        for (bound, hosts) in [
            ("127.0.0.1", &["127.0.0.1:9101", "127.0.0.1", "localhost:1", "LOCALHOST"][..]),
            ("::1", &["[::1]:9101", "localhost"]),
            ("192.0.2.1", &["192.0.2.1:80", "[::ffff:192.0.2.1]", &own]),
            ("0.0.0.0", &["192.0.2.1", "127.0.0.1:80", "localhost", "[2001:db8::1]", &own]),
        ] {
            assert!(hosts.iter().all(|host| named(bound, host)), "{bound}");
            for host in [
                "rebound.example:9101",
                "127.0.0.1.rebound.example",
                "localhost.rebound.example",
                "",
                "[",
                "[x]",
            ] {
                assert!(!named(bound, host), "{bound}: {host}");
            }
        }
        assert!(!named("127.0.0.1", "192.0.2.1") && !named("192.0.2.1", "localhost"));
        let address = served();
        let answer = fetch(address, "GET /metrics HTTP/1.1\r\nhost : x\r\nHost: rebound.example");
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }

    #[test]
    fn three_hundred_idle_clients_and_a_slow_one_stand_in_nobodys_way() {
        let address = served();
        let mut slow = TcpStream::connect(address).unwrap();
        slow.write_all(b"GET /met").unwrap();
        let idle: Vec<_> = (0..300).map(|_| TcpStream::connect(address).unwrap()).collect();
        assert!(fetch(address, "GET /metrics").ends_with("x 1\n"));
        // At most 64 clients are kept: those that have been sending for longest are dropped, among them the slow
        // client.
        let mut nothing = [0];
        for client in [&slow, &idle[0], &idle[200]] {
            assert!(matches!((&*client).read(&mut nothing), Ok(0) | Err(_)));
        }
    }

    #[test]
    fn whoever_asks_too_much_is_not_answered() {
        let mut stream = TcpStream::connect(served()).unwrap();
        let _ = stream.write_all(&[b'x'; 20 << 10]);
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        assert_eq!(text, b"");
    }
}
