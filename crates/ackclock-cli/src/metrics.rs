//! Option `--metrics`: Prometheus metrics of a command that runs until it is stopped.

use std::net::{SocketAddr, TcpListener};
use std::thread;

use ackclock_live::metrics;

use crate::failure::Failure;

/// The option `--metrics`.
#[derive(Debug, clap::Args)]
pub(crate) struct Metrics {
    /// Serve Prometheus metrics at this port of the loopback address, or at this address.
    #[arg(long, value_name = "ADDR", value_parser = metrics::parse_address)]
    metrics: Option<SocketAddr>,
}

impl Metrics {
    /// Starts to listen at the address of the option; `None` without the option. Scrapers wait until the page is
    /// [served](Listening::serve).
    ///
    /// # Errors
    /// Fails if the address is in use or belongs to another machine.
    pub(crate) fn listen(&self) -> Result<Option<Listening>, Failure> {
        let listen = |address| match TcpListener::bind(address) {
            Ok(listener) => Ok(Listening(listener)),
            Err(error) => Err(Failure::Input(format!("--metrics {address}: {error}"))),
        };
        self.metrics.map(listen).transpose()
    }
}

/// Open address of the metrics page.
pub(crate) struct Listening(TcpListener);

impl Listening {
    /// Serves the page from a separate thread until the process ends.
    pub(crate) fn serve(self, page: impl Fn() -> String + Send + 'static) {
        thread::spawn(move || metrics::serve(&self.0, page));
    }
}
