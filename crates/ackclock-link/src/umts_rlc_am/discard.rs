//! Discarding SDUs with explicit signalling: MRW and its acknowledgement (TS 25.322 section 11.6).

use ackclock_core::{Span, Time};

use super::rlc::OnMaxDat;
use super::sn::SduNumber;
use super::sn::Sn;
use super::status::{Mrw, MrwAck};

/// How long a peer is told to move its window.
#[derive(Debug)]
pub(super) struct Discard {
    /// Timer_MRW.
    timer: Span,
    /// MaxMRW.
    most: u32,
    mode: OnMaxDat,
    /// What the peer is told until it acknowledges.
    telling: Option<Mrw>,
    /// When it is told again.
    next: Time,
    /// VT(MRW): how often it was told.
    told: u32,
    /// Nothing but a reset helps.
    failed: bool,
}

impl Discard {
    pub(super) const fn new(timer: Span, most: u32, mode: OnMaxDat) -> Self {
        Self { timer, most, mode, telling: None, next: Time::NEVER, told: 0, failed: false }
    }

    /// Everything before the SDU `keep` is given up: the peer keeps what arrives from `sn` on, but for the SDUs that are the first
    /// `ends` to end there. One that is told already is told the later window.
    pub(super) fn begin(&mut self, now: Time, sn: Sn, ends: u16, keep: SduNumber) {
        match self.mode {
            OnMaxDat::Reset => self.failed = true,
            OnMaxDat::Discard => {
                self.telling = Some(Mrw { sn, ends, keep });
                (self.next, self.told) = (now, 0);
            }
        }
    }

    /// What is sent at `now`.
    pub(super) fn poll(&mut self, now: Time) -> Option<Mrw> {
        let mrw = self.telling.filter(|_| self.next <= now)?;
        if self.told >= self.most {
            self.failed = true;
            return None;
        }
        self.told += 1;
        self.next = now + self.timer;
        Some(mrw)
    }

    /// The peer has moved its window. Whether that ends it: the window begins where it was told, or beyond. VT(A) is `vt_a`.
    pub(super) fn on_ack(&mut self, ack: MrwAck, vt_a: Sn) -> bool {
        let Some(mrw) = self.telling else { return false };
        let (told, moved) = (mrw.sn.above(vt_a), ack.sn.above(vt_a));
        let done = moved > told || moved == told && ack.ends == mrw.ends;
        if done {
            self.telling = None;
        }
        done
    }

    /// VT(A) goes from `old` to `new`. Beyond what the peer was told it has everything, and need not be told.
    pub(super) fn on_window(&mut self, old: Sn, new: Sn) {
        if self.telling.is_some_and(|mrw| new.above(old) > mrw.sn.above(old)) {
            self.telling = None;
        }
    }

    /// Whether the entities must be reset.
    pub(super) const fn has_failed(&self) -> bool {
        self.failed
    }

    /// When the peer is told next, or a reset is needed.
    pub(super) fn due(&self) -> Time {
        if self.failed {
            return Time::ZERO;
        }
        if self.telling.is_some() { self.next } else { Time::NEVER }
    }

    pub(super) const fn reset(&mut self) {
        (self.telling, self.told, self.failed) = (None, 0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn sn(number: u16) -> Sn {
        Sn::ZERO.plus(number)
    }

    /// The peer is told to move its window to PDU 4, in which the first two SDUs that end are discarded.
    fn begun() -> Discard {
        let mut discard = Discard::new(Span::from_millis(100), 3, OnMaxDat::Discard);
        discard.begin(Time::ZERO, sn(4), 2, 7);
        discard
    }

    #[test]
    fn an_mrw_is_no_longer_sent_when_the_window_has_passed_it() {
        let mut discard = begun();
        discard.on_window(sn(0), sn(4));
        assert!(discard.poll(Time::ZERO).is_some(), "the SDUs that end in PDU 4 are still to be discarded");
        discard.on_window(sn(4), sn(5));
        assert_eq!((discard.poll(Time::ZERO + Span::from_secs(1)), discard.due()), (None, Time::NEVER));
    }

    #[test]
    fn the_answer_to_an_earlier_mrw_does_not_end_the_latest() {
        for (answered, ends, done) in [(3, 2, false), (4, 1, false), (4, 2, true), (5, 0, true)] {
            let mut discard = begun();
            assert_eq!(discard.on_ack(MrwAck { sn: sn(answered), ends }, sn(0)), done, "{answered}, {ends}");
            assert_eq!(discard.poll(Time::ZERO).is_none(), done);
        }
    }
}
