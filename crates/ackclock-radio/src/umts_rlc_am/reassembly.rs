//! t-Reassembly (TS 38.322 section 5.2.3.2): a receiver below which PDUs arrive out of order waits for this time until it
//! reports a PDU as missing.

use ackclock_core::{Span, Time};

use super::sn::{Sn, SnSet};

/// Range of sequence numbers of a receiver: VR(R), which is RX_Next, and VR(H), which is RX_Next_Highest.
#[derive(Clone, Copy)]
pub(super) struct Received {
    pub(super) next: Sn,
    pub(super) highest: Sn,
}

/// Part of the received PDUs that a STATUS may report on.
pub(super) struct Reassembly {
    /// t-Reassembly.
    time: Span,
    /// RX_Highest_Status: a STATUS reports on PDUs below it.
    reported: Sn,
    /// Time at which the timer expires, and RX_Next_Status_Trigger; `None` if the timer does not run.
    timer: Option<(Time, Sn)>,
    /// Highest PDU with a poll that is not answered, because it is not below RX_Highest_Status.
    polled: Option<Sn>,
    /// VR(R) as of the last call: sequence numbers are compared from there on.
    base: Sn,
}

impl Reassembly {
    pub(super) const fn new(time: Span) -> Self {
        Self { time, reported: Sn::ZERO, timer: None, polled: None, base: Sn::ZERO }
    }

    /// RX_Highest_Status.
    pub(super) const fn reported(&self) -> Sn {
        self.reported
    }

    /// Time at which the timer expires; [`Time::NEVER`] if it does not run.
    pub(super) fn due(&self) -> Time {
        self.timer.map_or(Time::NEVER, |(at, _)| at)
    }

    /// Registers a poll in a PDU of the window.
    pub(super) fn on_poll(&mut self, sn: Sn) {
        let higher = self.polled.filter(|polled| polled.above(self.base) > sn.above(self.base));
        self.polled = Some(higher.unwrap_or(sn));
    }

    /// Registers the PDUs that have arrived by `now`. Returns whether this triggers a STATUS: the timer has expired, or a
    /// polled PDU can be reported on.
    pub(super) fn update(
        &mut self,
        now: Time,
        received: &SnSet,
        Received { next, highest }: Received,
    ) -> bool {
        let moved = next.above(self.base);
        let expired = self.timer.filter(|&(at, _)| at <= now);
        let from = expired.map_or(self.reported, |(_, trigger)| trigger);
        // The first PDU at or after `from` and VR(R) that has not arrived.
        let mut reported = if from.above(self.base) < moved { next } else { from };
        while received.contains(reported) {
            reported = reported.plus(1);
        }
        self.reported = reported;
        let passed = self.timer.is_some_and(|(_, trigger)| trigger.above(self.base) <= moved);
        if expired.is_some() || passed {
            self.timer = None;
        }
        let answers =
            self.polled.take_if(|polled| polled.above(self.base) < reported.above(self.base)).is_some();
        self.base = next;
        let start = if expired.is_some() { reported } else { next };
        if self.timer.is_none() && highest.above(next) > start.above(next) + 1 {
            self.timer = Some((now + self.time, highest));
        }
        expired.is_some() || answers
    }

    /// Forgets all PDUs.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.time);
    }
}
