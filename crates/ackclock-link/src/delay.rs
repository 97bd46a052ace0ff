//! Delays drawn by packet.

use ackclock_core::{Law, Span, Stream};

/// A law of delays and the stream from which they are drawn, one a packet in the order of transmission.
#[derive(Debug)]
pub(crate) struct Delays {
    law: Law<Span>,
    stream: Stream,
    /// The delay, where it is always the same: no draw is needed then.
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

    /// Whether they differ from packet to packet.
    pub(crate) const fn vary(&self) -> bool {
        self.constant.is_none()
    }

    /// None is less.
    pub(crate) fn least(&self) -> Span {
        self.constant.unwrap_or(Span::ZERO)
    }
}
