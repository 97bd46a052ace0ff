//! Prometheus metrics of a command that runs until it is stopped, and the option `--metrics`.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
        self.metrics.map(|address| Listening::at(address, &format!("--metrics {address}"))).transpose()
    }
}

/// Open address of the metrics page.
pub(crate) struct Listening(TcpListener);

impl Listening {
    /// Starts to listen at an address, which `source` names in an error.
    ///
    /// # Errors
    /// Fails if the address is in use or belongs to another machine.
    pub(crate) fn at(address: SocketAddr, source: &str) -> Result<Self, Failure> {
        TcpListener::bind(address).map(Self).map_err(|error| Failure::Input(format!("{source}: {error}")))
    }

    /// Serves the page from a separate thread until the process ends.
    pub(crate) fn serve(self, page: impl Fn() -> String + Send + 'static) {
        thread::spawn(move || metrics::serve(&self.0, page));
    }
}

/// A page of metrics that a running command replaces from time to time.
#[derive(Clone, Default)]
pub(crate) struct Shown(Arc<Mutex<String>>);

impl Shown {
    /// Replaces the page.
    pub(crate) fn show(&self, page: String) {
        *self.text() = page;
    }

    /// Serves the current page from a separate thread until the process ends.
    pub(crate) fn serve(&self, listening: Listening) {
        let shown = self.clone();
        listening.serve(move || shown.text().clone());
    }

    fn text(&self) -> MutexGuard<'_, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
