//! Propagation delays drawn for each packet or for each interval.

use ackclock_core::{Law, Span, Stream, Streams, Time};

use crate::Redraw;

/// A distribution of delays and the random stream from which they are drawn: one delay per packet, in order of
/// transmission, or one per interval.
#[derive(Debug)]
pub struct Delays {
    law: Law<Span>,
    stream: Stream,
    /// Length of the intervals and their delays, if delays are not drawn for each packet.
    intervals: Option<(Span, ByNumber<Span>)>,
    /// Delay of every packet if the delay is constant, so that no random draw is needed.
    constant: Option<Span>,
}

impl Delays {
    /// Delays drawn from `law` with the random numbers of `stream`.
    pub fn new(law: Law<Span>, stream: Stream) -> Self {
        let constant = law.constant();
        Self { law, stream, intervals: None, constant }
    }

    /// Delays drawn at these times, for [`draw_at`](Self::draw_at).
    pub fn redrawn(law: Law<Span>, redraw: Redraw, mut stream: Stream) -> Self {
        let intervals = match redraw {
            Redraw::Packet => None,
            Redraw::Interval(length) => Some((length, ByNumber { law: law.clone(), seed: stream.bits() })),
        };
        Self { intervals, ..Self::new(law, stream) }
    }

    /// Draws all later delays from another distribution.
    pub fn change(&mut self, law: Law<Span>) {
        self.constant = law.constant();
        self.law = law;
    }

    /// The delay of a packet that departs at `at`.
    pub fn draw_at(&mut self, at: Time) -> Span {
        match &self.intervals {
            Some((length, delays)) if self.constant.is_none() => {
                delays.draw(at.as_nanos() / length.as_nanos())
            }
            _ => self.draw(),
        }
    }

    /// Delay of the next packet.
    #[inline]
    pub fn draw(&mut self) -> Span {
        match self.constant {
            Some(delay) => delay,
            None => self.law.draw(&mut self.stream),
        }
    }

    /// Whether different packets have different delays.
    pub const fn vary(&self) -> bool {
        self.constant.is_none()
    }

    /// Lower bound of the propagation delays.
    pub fn least(&self) -> Span {
        self.constant.unwrap_or(Span::ZERO)
    }
}

/// Random values by number: each number has a separate random stream. The separate streams make values independent of
/// the order of draws, and an idle link need not draw.
#[derive(Debug)]
pub(crate) struct ByNumber<Q> {
    pub(crate) law: Law<Q>,
    pub(crate) seed: u64,
}

impl<Q: ackclock_core::Quantity> ByNumber<Q> {
    pub(crate) fn draw(&self, number: u64) -> Q {
        self.law.draw(&mut Streams::new(self.seed, number).stream(""))
    }
}
