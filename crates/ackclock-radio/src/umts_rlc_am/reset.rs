//! Reset of the two RLC entities (TS 25.322 section 11.4).

use ackclock_core::{Span, Time};

use super::pdu::ResetNumber;

/// Resets requested by this entity, and answers to its peer's resets.
#[derive(Debug)]
pub(super) struct Resets {
    /// Timer_RST: time after which an unanswered RESET is sent again.
    timer: Span,
    /// MaxRST: limit of the number of RESET transmissions.
    most: u32,
    /// RSN (reset number) of the next reset.
    number: ResetNumber,
    pending: Option<Pending>,
    /// RSN (reset number) of the peer's last reset.
    of_peer: Option<ResetNumber>,
    /// RESET ACK to be sent.
    answer: Option<ResetNumber>,
    /// Total number of requested resets.
    pub(super) requested: u64,
}

/// Unanswered RESET.
#[derive(Debug)]
struct Pending {
    /// Time at which the unanswered RESET is sent again.
    next: Time,
    /// VT(RST): number of times the RESET was sent.
    sent: u32,
}

impl Resets {
    pub(super) const fn new(timer: Span, most: u32) -> Self {
        Self { timer, most, number: false, pending: None, of_peer: None, answer: None, requested: 0 }
    }

    /// Requests a reset, unless a request is already pending.
    pub(super) fn begin(&mut self, now: Time) {
        if self.pending.is_none() {
            self.requested += 1;
            self.pending = Some(Pending { next: now, sent: 0 });
        }
    }

    /// Whether a RESET is unanswered, so that all other PDUs are ignored.
    pub(super) const fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Returns the RESET to send at `now`, if any.
    pub(super) fn poll(&mut self, now: Time) -> Option<ResetNumber> {
        let (timer, most, number) = (self.timer, self.most, self.number);
        let pending = self.pending.as_mut().filter(|pending| pending.next <= now && pending.sent < most)?;
        pending.sent += 1;
        pending.next = now + timer;
        Some(number)
    }

    /// Whether all RESETs are unanswered, so that the bearer must be set up again.
    pub(super) fn has_failed(&self, now: Time) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.sent >= self.most && pending.next <= now)
    }

    /// Returns the RESET ACK to send, if any.
    pub(super) const fn answer(&mut self) -> Option<ResetNumber> {
        self.answer.take()
    }

    /// Processes a RESET of the peer. Returns false for a repeated request.
    pub(super) fn on_reset(&mut self, number: ResetNumber) -> bool {
        self.answer = Some(number);
        self.of_peer.replace(number) != Some(number)
    }

    /// Processes a RESET ACK: the peer has reset itself. Returns whether this entity awaited a RESET ACK.
    pub(super) fn on_ack(&mut self, number: ResetNumber) -> bool {
        let awaited = number == self.number && self.pending.take().is_some();
        self.number ^= awaited;
        awaited
    }

    /// Earliest time at which a RESET or RESET ACK must be sent.
    pub(super) fn due(&self) -> Time {
        if self.answer.is_some() {
            return Time::ZERO;
        }
        self.pending.as_ref().map_or(Time::NEVER, |pending| pending.next)
    }

    /// Restores the initial state when the bearer is set up again.
    pub(super) const fn renew(&mut self) {
        *self = Self { requested: self.requested, ..Self::new(self.timer, self.most) };
    }
}
