//! SDU discard with explicit signalling: MRW and its acknowledgement (TS 25.322 section 11.6).

use ackclock_core::{Span, Time};

use super::loss_cause::LossCause;
use super::rlc::OnMaxDat;
use super::sn::Sn;
use super::status::{Mrw, MrwAck};

/// MRW signalling of a transmitter.
#[derive(Debug)]
pub(super) struct Discard {
    /// Timer_MRW: time after which an MRW is sent again.
    timer: Span,
    /// MaxMRW: limit of the number of MRW transmissions.
    most: u32,
    mode: OnMaxDat,
    /// MRW that is repeated until the peer acknowledges it.
    telling: Option<Mrw>,
    /// Time at which the MRW is sent again, if it is unacknowledged.
    next: Time,
    /// VT(MRW): number of times the MRW was sent.
    told: u32,
    /// Whether all MRW retries are used up, so that a reset is needed.
    failed: bool,
}

impl Discard {
    pub(super) const fn new(timer: Span, most: u32, mode: OnMaxDat) -> Self {
        Self { timer, most, mode, telling: None, next: Time::NEVER, told: 0, failed: false }
    }

    /// Signals to the peer the discard of the SDUs before SDU `mrw.keep`. The new MRW replaces a pending MRW. The
    /// protocol may answer MaxDAT by a reset instead.
    pub(super) fn begin(&mut self, now: Time, mrw: Mrw) {
        if mrw.cause == LossCause::MaxDat && self.mode == OnMaxDat::Reset {
            self.failed = true;
            return;
        }
        self.telling = Some(mrw);
        (self.next, self.told) = (now, 0);
    }

    /// Returns the MRW to send at `now`, if any.
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

    /// Processes the peer's acknowledgement of an MRW. Returns whether the discard is now complete: the peer's window
    /// starts at or beyond SN_MRW. The argument `vt_a` is VT(A), the oldest unacknowledged sequence number.
    pub(super) fn on_ack(&mut self, ack: MrwAck, vt_a: Sn) -> bool {
        let Some(mrw) = self.telling else { return false };
        let (told, moved) = (mrw.sn.above(vt_a), ack.sn.above(vt_a));
        let done = moved > told || moved == told && ack.ends == mrw.ends;
        if done {
            self.telling = None;
        }
        done
    }

    /// Processes an advance of VT(A) from `old` to `new`. When VT(A) passes SN_MRW, the peer has all PDUs before
    /// SN_MRW, and the MRW is obsolete.
    pub(super) fn on_window(&mut self, old: Sn, new: Sn) {
        if self.telling.is_some_and(|mrw| new.above(old) > mrw.sn.above(old)) {
            self.telling = None;
        }
    }

    /// Whether both entities must be reset, because all MRW retries failed.
    pub(super) const fn has_failed(&self) -> bool {
        self.failed
    }

    /// Time at which the MRW is next sent, or a reset is needed.
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

    /// A discard that moves the peer's window to PDU 4; the first two SDUs that end in PDU 4 are discarded.
    fn begun() -> Discard {
        let mut discard = Discard::new(Span::from_millis(100), 3, OnMaxDat::Discard);
        discard.begin(Time::ZERO, Mrw { sn: sn(4), ends: 2, keep: 7, cause: LossCause::MaxDat });
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
