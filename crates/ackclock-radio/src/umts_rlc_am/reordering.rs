//! Reordering of PDCP (TS 38.323 section 5.2.2.2): SDUs that arrive before an earlier one wait for it.
//!
//! RX_DELIV is the number of the first SDU that was not delivered, RX_NEXT the number after the highest one that has
//! arrived. While SDUs wait, the timer t-Reordering runs; when it expires, SDUs below RX_REORD, which is RX_NEXT at the
//! timer's start, no longer wait.

use std::collections::BTreeMap;

use ackclock_core::{Segment, Span, Time};

use super::sn::SduNumber;
use ackclock_link::Repetitions;

/// An SDU of which all parts have arrived.
pub(super) struct Complete {
    pub(super) segment: Segment,
    /// Time at which the SDU was complete.
    pub(super) whole: Time,
    pub(super) repetitions: Repetitions,
}

/// An SDU that arrived after SDUs behind it were delivered.
pub(super) struct Late(pub(super) Segment);

/// SDUs of a direction that wait for earlier ones.
pub(super) struct Reordering {
    /// t-Reordering.
    time: Span,
    /// RX_DELIV.
    first: SduNumber,
    waiting: BTreeMap<SduNumber, Complete>,
    /// Time at which the timer expires, and RX_REORD; `None` if the timer does not run.
    timer: Option<(Time, SduNumber)>,
}

impl Reordering {
    pub(super) const fn new(time: Span) -> Self {
        Self { time, first: 0, waiting: BTreeMap::new(), timer: None }
    }

    /// Time at which the timer expires; [`Time::NEVER`] if it does not run.
    pub(super) fn due(&self) -> Time {
        self.timer.map_or(Time::NEVER, |(at, _)| at)
    }

    /// Takes an SDU that is complete now; `release` then returns those that need not wait.
    ///
    /// # Errors
    /// Returns the SDU if a later one was delivered.
    pub(super) fn receive(&mut self, now: Time, number: SduNumber, complete: Complete) -> Result<(), Late> {
        self.expire(now);
        if number < self.first {
            return Err(Late(complete.segment));
        }
        self.waiting.insert(number, complete);
        Ok(())
    }

    /// Returns the next SDU that does not wait at `now`, in order. Call until `None` after each other call.
    pub(super) fn release(&mut self, now: Time) -> Option<Complete> {
        self.expire(now);
        let may_go = |number: SduNumber| number <= self.first;
        if let Some(entry) = self.waiting.first_entry().filter(|entry| may_go(*entry.key())) {
            let (number, complete) = entry.remove_entry();
            // After an expiry, `first` is beyond the SDUs that are released.
            self.first = self.first.max(number + 1);
            return Some(complete);
        }
        if self.timer.is_some_and(|(_, reorder)| self.first >= reorder) {
            self.timer = None;
        }
        if self.timer.is_none()
            && let Some((&highest, _)) = self.waiting.last_key_value()
        {
            self.timer = Some((now + self.time, highest + 1));
        }
        None
    }

    /// Lets the SDUs below RX_REORD go if the timer has expired by `now`.
    fn expire(&mut self, now: Time) {
        if let Some((_, reorder)) = self.timer.filter(|&(at, _)| at <= now) {
            (self.timer, self.first) = (None, self.first.max(reorder));
        }
    }

    /// Lets all waiting SDUs go; the next one has the number `first`.
    pub(super) fn restart(&mut self, first: SduNumber) {
        (self.first, self.timer) = (first, None);
    }

    /// Frees all SDUs.
    pub(super) fn let_go(&mut self) {
        (self.waiting, self.timer) = (BTreeMap::new(), None);
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::FlowId;

    use super::*;

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    /// SDUs that are delivered at `at` when `number` arrives; each is named by its size.
    fn arrives(own: &mut Reordering, at: Time, number: SduNumber) -> Result<Vec<u16>, u16> {
        let segment = Segment::data(FlowId(0), ackclock_core::Seq(0), number as u16, 0);
        let complete = Complete { segment, whole: at, repetitions: Repetitions::NONE };
        own.receive(at, number, complete).map_err(|Late(segment)| segment.payload)?;
        Ok(released(own, at))
    }

    fn released(own: &mut Reordering, at: Time) -> Vec<u16> {
        std::iter::from_fn(|| own.release(at)).map(|complete| complete.segment.payload).collect()
    }

    #[test]
    fn an_sdu_waits_for_an_earlier_one() {
        let mut own = Reordering::new(Span::from_millis(50));
        assert_eq!(arrives(&mut own, ms(1), 0), Ok(vec![0]));
        assert_eq!(arrives(&mut own, ms(2), 2), Ok(vec![]));
        assert_eq!((arrives(&mut own, ms(3), 4), own.due()), (Ok(vec![]), ms(52)));
        // RX_REORD was 3, so that the timer stops, and starts again for SDU 4.
        assert_eq!((arrives(&mut own, ms(9), 1), own.due()), (Ok(vec![1, 2]), ms(59)));
        assert_eq!((arrives(&mut own, ms(10), 3), own.due()), (Ok(vec![3, 4]), Time::NEVER));
    }

    #[test]
    fn after_the_timer_nothing_below_rx_reord_waits_and_what_comes_later_is_discarded() {
        let mut own = Reordering::new(Span::from_millis(50));
        assert_eq!(arrives(&mut own, ms(0), 3), Ok(vec![]));
        assert_eq!((arrives(&mut own, ms(1), 1), arrives(&mut own, ms(2), 6)), (Ok(vec![]), Ok(vec![])));
        // RX_REORD is 4: the SDUs 1 and 3 go at 50 ms, and SDU 6 waits from then on.
        assert_eq!((released(&mut own, ms(50)), own.due()), (vec![1, 3], ms(100)));
        assert_eq!(arrives(&mut own, ms(60), 2), Err(2));
        assert_eq!(arrives(&mut own, ms(61), 4), Ok(vec![4]));
        assert_eq!((released(&mut own, ms(100)), own.due()), (vec![6], Time::NEVER));
    }

    #[test]
    fn a_restart_lets_all_go() {
        let mut own = Reordering::new(Span::from_millis(50));
        assert_eq!(arrives(&mut own, ms(0), 3), Ok(vec![]));
        own.restart(7);
        assert_eq!((released(&mut own, ms(1)), own.due()), (vec![3], Time::NEVER));
        assert_eq!(arrives(&mut own, ms(2), 7), Ok(vec![7]));
    }
}
