//! A medium that loses packets by an error process.

use ackclock_core::{ConfigError, Rate, Segment, Span, Time};
use delegate::delegate;

use crate::MediumContext;
use crate::errors::{AnyErrorProcess, ErrorContext, ErrorProcess, Errors};
use crate::medium::{AnyMedium, Fate, Found, Medium, Transmission};

/// Wraps a medium, `inner`, and loses packets by an error process, which is evaluated when a packet departs. A lost
/// packet still takes its transmission time.
pub struct Lossy<M> {
    inner: M,
    errors: AnyErrorProcess,
}

impl<M> Lossy<M> {
    /// Creates a medium around `inner` with losses by `errors`.
    pub const fn new(inner: M, errors: AnyErrorProcess) -> Self {
        Self { inner, errors }
    }
}

impl<M: Medium> Medium for Lossy<M> {
    fn transmit(&mut self, arrived: Time, start: Time, segment: &Segment) -> Transmission {
        let transmission = self.inner.transmit(arrived, start, segment);
        // The error process is evaluated for every packet, so that the fate of one packet does not depend on the fate
        // of earlier packets.
        match self.errors.fate(transmission.departs) {
            Fate::Lost => Transmission { fate: Fate::Lost, ..transmission },
            Fate::Arrives => transmission,
        }
    }

    delegate! {
        to self.inner {
            fn ready(&mut self, now: Time, found: Found) -> Time;
            fn rate(&self, now: Time) -> Rate;
            fn rate_until(&self, now: Time) -> Time;
            fn work(&mut self, from: Time, until: Time) -> Option<u128>;
            fn restart_work(&mut self, now: Time);
            fn varies(&self) -> bool;
            fn least_delay(&self) -> Span;
        }
    }

    fn foreseeable(&self) -> bool {
        false
    }
}

/// Interval of an error process whose table sets no interval: the radio frame of UMTS.
const RADIO_FRAME: Span = Span::from_millis(10);

/// Adds to a medium the errors that the link's table has under `loss`.
pub fn with_errors<M: Medium + 'static>(
    medium: M,
    errors: &Errors,
    context: MediumContext<'_>,
) -> Result<AnyMedium, ConfigError> {
    let MediumContext { streams, name, files } = context;
    if errors.is_none() {
        return Ok(medium.any());
    }
    let name = &format!("{name}/loss");
    let errors = errors.build(ErrorContext { streams, name, files, block: RADIO_FRAME });
    Ok(Lossy::new(medium, errors.map_err(|error| error.under("loss"))?).any())
}
