//! Propagation delays drawn for each packet.

use ackclock_core::{Law, Span, Stream};

/// A distribution of delays and the random stream from which one delay per packet is drawn, in order of transmission.
#[derive(Debug)]
pub(crate) struct Delays {
    law: Law<Span>,
    stream: Stream,
    /// Delay of every packet if the delay is constant, so that no random draw is needed.
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

    /// Whether different packets have different delays.
    pub(crate) const fn vary(&self) -> bool {
        self.constant.is_none()
    }

    /// Lower bound of the delays.
    pub(crate) fn least(&self) -> Span {
        self.constant.unwrap_or(Span::ZERO)
    }
}
