//! `ackclock proxy`: splits TCP connections before a radio link.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io};

use ackclock_core::{ConfigError, Prefix};
use ackclock_live::metrics::{Kind, Labels, Page};
use ackclock_proxy::file::File;
use ackclock_proxy::listeners::Way;
use ackclock_proxy::reports::gate::Refusal as ReportRefusal;
use ackclock_proxy::server::refusals::Refusal;
use ackclock_proxy::server::{Counts, Options, Server, StartError};
use clap::builder::ArgPredicate;

use crate::failure::Failure;
use crate::metrics::{Listening, Metrics, Shown};
use crate::{keys, output};

/// Split each connection in two before a radio link. The near end repairs losses of the radio, and delays of the radio
/// do not reach the server's connection.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Configuration file with the tables [proxy], [proxy.reports] and [relay], in place of the options.
    #[arg(value_name = "FILE", conflicts_with_all = ["listen", "transparent", "allow", "max_connections"])]
    file: Option<PathBuf>,
    /// Address on which the proxy listens. SOCKS5, HTTP CONNECT and plain HTTP requests are accepted at every address.
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8080",
        default_value_if("transparent", ArgPredicate::IsPresent, None)
    )]
    listen: Vec<SocketAddr>,
    /// Address at which the proxy takes connections that the firewall diverts (TPROXY), as 0.0.0.0:7300 or [::]:7300.
    /// Servers see the clients' own addresses. The option needs the capability CAP_NET_ADMIN, and `--listen` then has
    /// no default.
    #[arg(long, value_name = "ADDRESS")]
    transparent: Vec<SocketAddr>,
    /// Network whose clients may use the proxy. Programs of this machine may always use the proxy.
    #[arg(long, value_name = "NETWORK")]
    allow: Vec<Prefix>,
    /// Maximum number of concurrent connections. A client on another machine gets at most a quarter of the connections.
    #[arg(long, value_name = "COUNT", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(4..=100_000))]
    max_connections: u32,
    #[command(flatten)]
    metrics: Metrics,
}

const EXAMPLES: &str = "\
Examples:
  ackclock proxy
  curl --proxy socks5h://127.0.0.1:8080 https://example.net/
  ackclock proxy --listen 10.0.0.1:8080 --allow 10.0.0.0/24";

/// Port of an address that was written without one.
const DEFAULT_PORT: u16 = 8080;
/// Maximum time that the event loop waits for an event.
const PATIENCE: Duration = Duration::from_millis(200);
/// Interval at which the page of metrics is updated.
const REFRESH: Duration = Duration::from_millis(500);
/// Minimum interval between two log lines of one kind, because a client could fill the log.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Runs the proxy until it is interrupted.
#[allow(clippy::disallowed_methods)] // The command may ask a clock.
pub(crate) fn perform(args: &Args) -> Result<(), Failure> {
    let options = options(args)?;
    let listening = args.metrics.listen()?;
    let source = |key: &str| match &args.file {
        Some(file) => format!("{}: proxy.{key}", file.display()),
        None => format!("--{key}"),
    };
    let mut server = Server::start(options, Instant::now()).map_err(|error| match error {
        StartError::Io(error) => Failure::Run(error.to_string()),
        StartError::Reports(..) => Failure::Input(format!("{}: {error}", source("reports.listen"))),
        StartError::Open(way, _) | StartError::Listen(way, ..) => {
            Failure::Input(format!("{}: {error}", source(way.key())))
        }
        StartError::Files(..) => {
            let key = if args.file.is_some() { "max_connections" } else { "max-connections" };
            Failure::Input(format!("{}: {error}", source(key)))
        }
        StartError::Privilege(_) => Failure::Run(format!("{}: {error}", source(Way::Diverted.key()))),
    })?;
    let run = |error: std::io::Error| Failure::Run(error.to_string());
    let addresses: Vec<_> = server.addresses().map_err(run)?.iter().map(ToString::to_string).collect();
    output::remark(&format!("proxy on {}; Ctrl-C ends it", addresses.join(", ")));
    let ends = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&ends);
    ctrlc::set_handler(move || asked.store(true, Ordering::Relaxed))
        .map_err(|error| Failure::Run(format!("signals cannot be handled: {error}")))?;
    relay(&mut server, listening, || ends.load(Ordering::Relaxed)).map_err(run)?;
    output::print(&summary(server.counts()))
}

/// Relays until `ends`, and serves the metrics.
#[allow(clippy::disallowed_methods, reason = "real connections are relayed in real time")]
fn relay(server: &mut Server, listening: Option<Listening>, ends: impl Fn() -> bool) -> io::Result<()> {
    let shown = Shown::default();
    shown.show(page(server));
    if let Some(listening) = listening {
        shown.serve(listening);
    }
    let mut refreshed = Instant::now();
    let [mut forbidden, mut limited] = [Log::default(); 2];
    while !ends() {
        let now = Instant::now();
        server.turn(now, PATIENCE)?;
        if now.duration_since(refreshed) >= REFRESH {
            refreshed = now;
            shown.show(page(server));
        }
        forbidden.say(now, || {
            let (client, to) = server.take_forbidden()?;
            Some(format!("{client} requested {to}: refused, because it is not an address of another machine"))
        });
        limited.say(now, || {
            let client = server.take_limited()?;
            Some(format!("limit of connections reached for {client}: the longest idle one makes room; if none is idle, new ones are refused"))
        });
    }
    Ok(())
}

/// Log lines of one kind, at most one in each interval.
#[derive(Clone, Copy, Default)]
struct Log(Option<Instant>);

impl Log {
    fn say(&mut self, now: Instant, line: impl FnOnce() -> Option<String>) {
        let is_due = self.0.is_none_or(|at| now.duration_since(at) >= LOG_INTERVAL);
        if let Some(line) = is_due.then(line).flatten() {
            self.0 = Some(now);
            output::remark(&line);
        }
    }
}

/// Settings from the file or from the options.
fn options(args: &Args) -> Result<Options, Failure> {
    let Some(path) = &args.file else {
        return Ok(Options {
            listen: args.listen.clone(),
            transparent: args.transparent.clone(),
            allow: args.allow.clone(),
            max_connections: args.max_connections as usize,
            reports: None,
        });
    };
    let wrong = |error: ConfigError| Failure::Input(format!("{}: {error}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| match as_address(path) {
        Some(address) if error.kind() == io::ErrorKind::NotFound => Failure::Input(format!(
            "proxy: there is no file `{}`; an address is an option: ackclock proxy --listen {address}",
            path.display()
        )),
        _ => Failure::reading(path, &error),
    })?;
    let file = File::parse(&text).map_err(wrong)?;
    let keys = match &file.proxy.reports {
        Some(reports) => keys::read(&path.parent().unwrap_or(Path::new("")).join(&reports.keys))?,
        None => Vec::new(),
    };
    file.options(keys).map_err(wrong)
}

/// Address to listen on that was written in place of a file: a port, an address, or both, also as a URL.
fn as_address(path: &Path) -> Option<SocketAddr> {
    const OWN: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let text = path.to_str()?;
    let text = text.split_once("://").map_or(text, |(_, rest)| rest).trim_end_matches('/');
    let host = |text: &str| match text {
        "" | "localhost" => Some(OWN),
        _ => text.parse().ok(),
    };
    if let Ok(port) = text.parse() {
        return Some(SocketAddr::new(OWN, port));
    }
    text.parse().ok().or_else(|| match (host(text), text.rsplit_once(':')) {
        (Some(address), _) => Some(SocketAddr::new(address, DEFAULT_PORT)),
        (None, Some((name, port))) => Some(SocketAddr::new(host(name)?, port.parse().ok()?)),
        (None, None) => None,
    })
}

fn summary(counts: Counts) -> String {
    let Counts { opened, broken, bytes, connections, reports, lost_reports, .. } = counts;
    let (refused, refused_reports) = (counts.refused.total(), counts.refused_reports.total());
    let heard = match reports + refused_reports + lost_reports {
        0 => String::new(),
        _ => format!("{reports} radio reports accepted, {refused_reports} refused, {lost_reports} lost\n"),
    };
    format!(
        "{heard}{opened} connections to servers, {bytes} bytes; {refused} refused, {broken} ended by a reset, {connections} cut off now\n"
    )
}

/// Page of the proxy's metrics in the base units of Prometheus.
fn page(server: &Server) -> String {
    let counts = server.counts();
    let one = |value: u64| [(Labels::new(), Some(value as f64))];
    let mut page = Page::default();
    page.metric(Kind::Gauge, "proxy_connections", "Open connections.", one(counts.connections as u64));
    for (name, help, value) in [
        ("proxy_connections_total", "Connections opened to servers.", counts.opened),
        ("proxy_displaced_total", "Idle connections closed for new ones at a limit.", counts.displaced),
        ("proxy_resets_total", "Connections that ended with a reset.", counts.broken),
        ("proxy_bytes_total", "Bytes relayed, both directions together.", counts.bytes),
        ("proxy_reports_total", "Accepted radio reports.", counts.reports),
        ("proxy_lost_reports_total", "Radio reports that the full socket dropped.", counts.lost_reports),
    ] {
        page.metric(Kind::Counter, name, help, one(value));
    }
    let reason = |name: &str, count: u64| (vec![("reason", name.to_owned())], Some(count as f64));
    let clients = Refusal::ALL.map(|refusal| reason(refusal.name(), counts.refused.of(refusal)));
    page.metric(Kind::Counter, "proxy_refused_total", "Refused clients.", clients);
    let reports =
        ReportRefusal::ALL.map(|refusal| reason(refusal.name(), counts.refused_reports.of(refusal)));
    page.metric(Kind::Counter, "proxy_refused_reports_total", "Refused radio reports.", reports);
    let windows = server.windows();
    page.metric(
        Kind::Gauge,
        "proxy_limited_users",
        "Users whose windows are limited.",
        one(windows.len() as u64),
    );
    let window = |(user, bytes): &(IpAddr, u64)| (vec![("user", user.to_string())], Some(*bytes as f64));
    let shown = windows.iter().take(USERS_SHOWN).map(window);
    page.metric(Kind::Gauge, "proxy_window_bytes", "Window that the connections of a user share.", shown);
    page.text().to_owned()
}

/// Maximum number of users with separate metrics.
const USERS_SHOWN: usize = 100;
