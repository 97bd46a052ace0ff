//! `ackclock proxy`: splits TCP connections before a radio link.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ackclock_core::Prefix;
use ackclock_proxy::file::File;
use ackclock_proxy::server::{Counts, Options, Server, StartError};

use crate::failure::Failure;
use crate::{keys, output};

/// Split each connection in two before a radio link. The near end repairs losses of the radio, and delays of the radio
/// do not reach the server's connection.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Configuration file with the tables [proxy], [proxy.reports] and [relay], in place of the options.
    #[arg(value_name = "FILE", conflicts_with_all = ["listen", "allow", "max_connections"])]
    file: Option<PathBuf>,
    /// Address on which the proxy listens. SOCKS5, HTTP CONNECT and plain HTTP requests are accepted at every address.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: Vec<SocketAddr>,
    /// Network whose clients may use the proxy. Programs of this machine may always use the proxy.
    #[arg(long, value_name = "NETWORK")]
    allow: Vec<Prefix>,
    /// Maximum number of concurrent connections. A client on another machine gets at most a quarter of the connections.
    #[arg(long, value_name = "COUNT", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(4..=100_000))]
    max_connections: u32,
}

const EXAMPLES: &str = "\
Examples:
  ackclock proxy
  curl --proxy socks5h://127.0.0.1:8080 https://example.net/
  ackclock proxy --listen 10.0.0.1:8080 --allow 10.0.0.0/24";

/// Maximum time that the event loop waits for an event.
const PATIENCE: Duration = Duration::from_millis(200);

/// Runs the proxy until it is interrupted.
#[allow(clippy::disallowed_methods)] // The command may ask a clock.
pub(crate) fn perform(args: &Args) -> Result<(), Failure> {
    let options = options(args)?;
    let source = |key: &str| match &args.file {
        Some(file) => format!("{}: proxy.{key}", file.display()),
        None => format!("--{key}"),
    };
    let mut server = Server::start(options, Instant::now()).map_err(|error| match error {
        StartError::Io(error) => Failure::Run(error.to_string()),
        StartError::Reports(..) => Failure::Input(format!("{}: {error}", source("reports.listen"))),
        error => Failure::Input(format!("{}: {error}", source("listen"))),
    })?;
    let run = |error: std::io::Error| Failure::Run(error.to_string());
    let addresses: Vec<_> = server.addresses().map_err(run)?.iter().map(ToString::to_string).collect();
    output::remark(&format!("proxy on {}; Ctrl-C ends it", addresses.join(", ")));
    let ends = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&ends);
    ctrlc::set_handler(move || asked.store(true, Ordering::Relaxed))
        .map_err(|error| Failure::Run(format!("signals cannot be handled: {error}")))?;
    while !ends.load(Ordering::Relaxed) {
        server.turn(Instant::now(), PATIENCE).map_err(run)?;
    }
    output::print(&summary(server.counts()))
}

/// Settings from the file or from the options.
fn options(args: &Args) -> Result<Options, Failure> {
    let Some(path) = &args.file else {
        let (listen, allow) = (args.listen.clone(), args.allow.clone());
        return Ok(Options { listen, allow, max_connections: args.max_connections as usize, reports: None });
    };
    let wrong = |error: String| Failure::Input(format!("{}: {error}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| Failure::reading(path, &error))?;
    let file = File::parse(&text).map_err(wrong)?;
    let keys = match &file.proxy.reports {
        Some(reports) => keys::read(&path.parent().unwrap_or(Path::new("")).join(&reports.keys))?,
        None => Vec::new(),
    };
    file.options(keys).map_err(wrong)
}

fn summary(counts: Counts) -> String {
    let Counts { opened, refused, broken, bytes, connections, reports, refused_reports } = counts;
    let heard = match reports + refused_reports {
        0 => String::new(),
        _ => format!("{reports} radio reports accepted, {refused_reports} refused\n"),
    };
    format!(
        "{heard}{opened} connections to servers, {bytes} bytes; {refused} refused, {broken} ended by a reset, {connections} cut off now\n"
    )
}
