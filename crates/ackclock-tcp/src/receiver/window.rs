//! Advertised window of the receiver: the largest window, or a window set by a policy.

use ackclock_core::{Segment, Seq, Span, Time, scaled_window};

use super::autotune::{Arrival, Autotune};
use super::unread::Unread;
use super::{LONGEST_ROUND_TRIP, Receiver, ReceiverConfig, WindowPolicy, clock};
use crate::config::TIMESTAMPS;

/// Policy that sets the advertised window.
#[derive(Clone, Debug)]
pub(super) enum Policy {
    /// The window grows as data arrives.
    Tuned(Autotune),
    /// The window equals the free part of the buffer.
    Unread(Unread),
}

impl Policy {
    /// Window policy of a receiver that expects `next`, and the first value of the window field.
    pub(super) fn of(config: &ReceiverConfig, next: Seq) -> (Option<Box<Self>>, u16) {
        let scale = config.scale();
        let largest = scaled_window(config.max_window).1;
        match config.window {
            WindowPolicy::Whole => (None, largest),
            WindowPolicy::Tuned => {
                let options = if config.timestamps { TIMESTAMPS } else { 0 };
                let tune = Autotune::new(config.mss, options, config.max_window, scale, next);
                let first = field(tune.free(Time::ZERO), scale);
                (Some(Box::new(Self::Tuned(tune))), first)
            }
            WindowPolicy::Unread => {
                let unread = Unread::new(next + (u32::from(largest) << scale));
                (Some(Box::new(Self::Unread(unread))), largest)
            }
        }
    }
}

impl Receiver {
    /// Advertised window of the receiver, bytes.
    pub(super) fn window(&self) -> u32 {
        u32::from(self.window_field) << self.scale
    }

    /// Right edge of the advertised window.
    pub(super) fn limit(&self) -> Seq {
        match self.policy.as_deref() {
            Some(Policy::Unread(unread)) => unread.edge(),
            Some(Policy::Tuned(autotune)) => autotune.edge(),
            None => self.next + self.window(),
        }
    }

    /// Sets the window for the next ACK at `now`. The right edge of the window does not move back.
    #[inline(always)]
    pub(super) fn offer(&mut self, now: Time) {
        if self.policy.is_some() {
            self.offer_tuned(now);
        }
    }

    fn offer_tuned(&mut self, now: Time) {
        let Some(Policy::Tuned(autotune)) = self.policy.as_deref_mut() else { return };
        let told = autotune.edge().since(self.next);
        self.window_field = field(autotune.free(now).max(told), self.scale);
        autotune.on_advertised(self.next, u32::from(self.window_field) << self.scale);
    }

    /// Updates the advertised window after a segment has arrived. Without SACK, out-of-order data does not count: an
    /// ACK with a changed window would be no duplicate (RFC 5681 section 2).
    #[inline(always)]
    pub(super) fn tune(&mut self, now: Time, seg: &Segment, counts: bool) {
        match self.policy.as_deref() {
            None => {}
            Some(Policy::Tuned(_)) => self.grow(now, seg, counts),
            Some(Policy::Unread(_)) if counts => self.advertise_free(),
            Some(Policy::Unread(_)) => {}
        }
    }

    fn grow(&mut self, now: Time, seg: &Segment, counts: bool) {
        let Some(Policy::Tuned(autotune)) = self.policy.as_deref_mut() else { return };
        let stamps = seg.timestamps().filter(|_| self.config.timestamps);
        let echo = stamps.map(|stamps| {
            // The clock for timestamp echoes counts whole milliseconds.
            let round_trip = u64::from(clock(now).wrapping_sub(stamps.echo)).clamp(1, LONGEST_ROUND_TRIP);
            (stamps.echo, Span::from_millis(round_trip))
        });
        let ahead = self.ahead.end().map_or(0, |end| end.since(self.next));
        let held = self.ahead.bytes();
        if autotune.on_data(&Arrival { now, delivered: self.delivered, ahead, held, counts, echo }) {
            self.quick.on_growth();
        }
    }

    /// Records that the application has read `bytes` of payload in total. Sends a window update if the right edge moves
    /// by two segments or half of the buffer. The call has an effect only with the policy
    /// [`WindowPolicy::Unread`](super::WindowPolicy::Unread).
    pub fn read_up_to(&mut self, now: Time, bytes: u64, out: &mut impl FnMut(&Segment)) {
        let worthwhile = (2 * u32::from(self.config.mss)).min(self.config.max_window / 2);
        let Some(Policy::Unread(unread)) = self.policy.as_deref_mut() else { return };
        unread.read_up_to(bytes.min(self.delivered));
        let free = unread.free(self.config.max_window, self.delivered);
        let moves = !(self.next + free).before(unread.edge() + worthwhile);
        if moves && self.is_established() {
            self.advertise_free();
            self.acknowledge(now, None, out);
        }
    }

    /// Starts the window at the peer's first sequence number, which is known at `now`.
    pub(super) fn anchor(&mut self, now: Time) {
        let window = self.window();
        match self.policy.as_deref_mut() {
            Some(Policy::Unread(unread)) => *unread = Unread::new(self.next),
            Some(Policy::Tuned(autotune)) => {
                autotune.on_advertised(self.next, window);
                autotune.on_established(now);
            }
            None => {}
        }
        self.advertise_free();
    }

    /// Advertises the free buffer space in the next ACK.
    pub(super) fn advertise_free(&mut self) {
        let Some(Policy::Unread(unread)) = self.policy.as_deref_mut() else { return };
        let free = unread.free(self.config.max_window, self.delivered);
        self.window_field = u16::try_from(free >> self.scale).unwrap_or(u16::MAX);
        unread.advertise(self.next + (u32::from(self.window_field) << self.scale));
    }
}

/// Value of the window field that advertises at least `bytes`.
fn field(bytes: u32, scale: u8) -> u16 {
    u16::try_from((u64::from(bytes) + (1 << scale) - 1) >> scale).unwrap_or(u16::MAX)
}
