//! Propagation delays drawn per packet.

use ackclock_core::{Law, Span, Stream};

/// A law of delays and the stream to draw from, once per packet in order of transmission.
#[derive(Debug)]
pub(crate) struct Delays {
    law: Law<Span>,
    stream: Stream,
    /// The delay if it is constant: it needs no draw.
    constant: Option<Span>,
}

impl Delays {
    pub(crate) fn new(law: Law<Span>, stream: Stream) -> Self {
        let constant = law.constant();
        Self { law, stream, constant }
    }

    pub(crate) fn draw(&mut self) -> Span {
        match self.constant {
            Some(delay) => delay,
            None => self.law.draw(&mut self.stream),
        }
    }

    /// Whether delays differ between packets.
    pub(crate) const fn vary(&self) -> bool {
        self.constant.is_none()
    }

    /// Lower bound of the delays.
    pub(crate) fn least(&self) -> Span {
        self.constant.unwrap_or(Span::ZERO)
    }
}
