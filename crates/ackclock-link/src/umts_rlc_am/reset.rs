//! Reset of both entities (TS 25.322 section 11.4).

use ackclock_core::{Span, Time};

use super::pdu::ResetNumber;

/// Resets requested by this entity, and answers to its peer's.
#[derive(Debug)]
pub(super) struct Resets {
    /// Timer_RST.
    timer: Span,
    /// MaxRST.
    most: u32,
    /// RSN of the next reset.
    number: ResetNumber,
    pending: Option<Pending>,
    /// RSN of the last reset of the peer.
    of_peer: Option<ResetNumber>,
    /// A pending RESET ACK.
    answer: Option<ResetNumber>,
}

/// A RESET without answer.
#[derive(Debug)]
struct Pending {
    /// When it is sent again.
    next: Time,
    /// VT(RST): how often it was sent.
    sent: u32,
}

impl Resets {
    pub(super) const fn new(timer: Span, most: u32) -> Self {
        Self { timer, most, number: false, pending: None, of_peer: None, answer: None }
    }

    /// Requests a reset, unless one is pending.
    pub(super) fn begin(&mut self, now: Time) {
        self.pending.get_or_insert(Pending { next: now, sent: 0 });
    }

    /// Whether only the answer to a RESET counts.
    pub(super) const fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// The RESET to send at `now`.
    pub(super) fn poll(&mut self, now: Time) -> Option<ResetNumber> {
        let (timer, most, number) = (self.timer, self.most, self.number);
        let pending = self.pending.as_mut().filter(|pending| pending.next <= now && pending.sent < most)?;
        pending.sent += 1;
        pending.next = now + timer;
        Some(number)
    }

    /// Whether all retries are unanswered: only a new bearer helps.
    pub(super) fn has_failed(&self, now: Time) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.sent >= self.most && pending.next <= now)
    }

    /// The RESET ACK to send.
    pub(super) const fn answer(&mut self) -> Option<ResetNumber> {
        self.answer.take()
    }

    /// The peer requests a reset. Returns false for a repeated request.
    pub(super) fn on_reset(&mut self, number: ResetNumber) -> bool {
        self.answer = Some(number);
        self.of_peer.replace(number) != Some(number)
    }

    /// The peer has reset itself. Returns whether that was awaited.
    pub(super) fn on_ack(&mut self, number: ResetNumber) -> bool {
        let awaited = number == self.number && self.pending.take().is_some();
        self.number ^= awaited;
        awaited
    }

    /// Earliest time at which there is something to send.
    pub(super) fn due(&self) -> Time {
        if self.answer.is_some() {
            return Time::ZERO;
        }
        self.pending.as_ref().map_or(Time::NEVER, |pending| pending.next)
    }

    /// Both entities are set up again.
    pub(super) const fn renew(&mut self) {
        *self = Self::new(self.timer, self.most);
    }
}
