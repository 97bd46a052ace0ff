//! Acknowledgements of the receiver: when they are sent, and what they contain (RFC 5681 section 4.2, RFC 2018, RFC
//! 2883, RFC 7323).

use ackclock_core::{AccEcn, Flags, SackBlock, Segment, Time, Timestamps};

use super::window::Policy;
use super::{AckPolicy, INITIAL, Receiver, clock, merge};
use crate::config::{HeaderSize, PLAIN_HEADER, TIMESTAMPS};
use crate::ecn::EcnMode;

impl Receiver {
    /// Acknowledges an in-order segment that has the flags `flags`, while no data is missing (RFC 5681 section 4.2). A
    /// FIN is acknowledged at once. As in Linux, segments that the peer pushes or that report a reduced window (CWR)
    /// are also acknowledged at once, and so are `prompt` segments, whose congestion marks must be reported.
    #[inline(always)]
    pub(super) fn acknowledge_in_order(
        &mut self,
        now: Time,
        flags: Flags,
        prompt: bool,
        out: &mut impl FnMut(&Segment),
    ) {
        self.unacknowledged += 1;
        if let AckPolicy::Delayed { count, timeout, .. } = self.config.acks
            && !self.quick.is_on()
            && !prompt
            && self.end.is_none()
        {
            let due = if self.quick.is_used() {
                self.due_when_read(now, flags, count)
            } else if self.unacknowledged < count {
                Time::NEVER
            } else {
                now
            };
            if due > now {
                // The timer runs from the first segment that the ACK covers.
                let timer = match self.deadline {
                    Time::NEVER if self.quick.is_used() => self.quick.wait(now),
                    Time::NEVER => now + timeout,
                    begun => begun,
                };
                self.deadline = due.min(timer);
                return;
            }
        }
        self.acknowledge(now, None, out);
    }

    /// Time at which Linux acknowledges the data received, unless a timer expires earlier. With `count` segments and
    /// unread data that does not shrink the window, Linux acknowledges at once. In other cases Linux acknowledges when
    /// the program has read `count` segments or pushed data.
    fn due_when_read(&self, now: Time, flags: Flags, count: u32) -> Time {
        let enough = self.unacknowledged >= count;
        if !enough && !flags.intersects(Flags::CWR | Flags::PSH) {
            return Time::NEVER;
        }
        match self.policy.as_deref() {
            Some(Policy::Tuned(autotune)) if !flags.intersects(Flags::CWR) => {
                if enough && autotune.is_unchanged_by_unread(now) { now } else { autotune.reads_until() }
            }
            _ => now,
        }
    }

    /// Acknowledges a segment that repeats data, is out of order or fills a gap (RFC 5681 section 4.2). The ACK is sent
    /// at once, unless it is merged with later ACKs. A `waiting` ACK is sent first if merging would hide its content.
    pub(super) fn acknowledge_out_of_order(
        &mut self,
        now: Time,
        duplicate: Option<SackBlock>,
        waiting: Option<Segment>,
        out: &mut impl FnMut(&Segment),
    ) {
        let told_by_sack = self.config.sack && duplicate.is_none() && !self.ahead.is_empty();
        if told_by_sack && self.quick.is_used() && !self.quick.is_on() && self.merge.waits(self.next) {
            if let Some(ack) = waiting {
                self.deadline = Time::NEVER;
                self.merge.begin_again();
                out(&ack);
            }
            self.deadline = self.deadline.min(now + merge::WAIT);
            return;
        }
        self.acknowledge(now, duplicate.filter(|_| self.config.dsack), out);
    }

    #[inline(always)]
    pub(super) fn acknowledge(
        &mut self,
        now: Time,
        duplicate: Option<SackBlock>,
        out: &mut impl FnMut(&Segment),
    ) {
        self.acknowledged = self.next;
        self.unacknowledged = 0;
        self.quick.on_ack(now);
        self.merge.on_ack();
        self.feedback.on_ack();
        self.deadline = Time::NEVER;
        self.offer(now);
        let reports = duplicate.is_some() || (self.config.sack && !self.ahead.is_empty());
        let accurate = self.config.ecn == EcnMode::Accurate;
        if reports || self.config.timestamps || accurate {
            out(&self.ack_with_options(now, duplicate));
        } else {
            out(&self.plain_ack());
        }
    }

    // Builds an ACK without options in place. This function is separate, because the processor stalls when it copies a
    // value that was just written in parts.
    #[inline(always)]
    fn plain_ack(&self) -> Segment {
        let mut ack = Segment::pure_ack(self.flow, self.next, self.header_with(0));
        ack.seq = INITIAL + 1;
        ack.window = self.window_field;
        ack.set_scale(Some(self.scale));
        if self.echo_congestion {
            ack.flags |= Flags::ECE;
        }
        if self.config.encrypted {
            ack.encrypt();
        }
        ack
    }

    #[inline(never)]
    pub(super) fn ack_with_options(&self, now: Time, duplicate: Option<SackBlock>) -> Segment {
        let mut ack = self.plain_ack();
        if self.config.timestamps {
            ack.set_timestamps(Timestamps { value: clock(now), echo: self.echo.unwrap_or(0) });
        }
        if let Some(block) = duplicate {
            ack.push_sack(block);
        }
        if self.config.sack {
            self.ahead.report(&mut ack);
        }
        if self.config.ecn == EcnMode::Accurate {
            self.feedback.report(&mut ack);
        }
        ack.header = self.header_of(&ack);
        ack
    }

    /// Size of the headers with `options` bytes of TCP options, bytes.
    #[inline]
    pub(super) fn header_with(&self, options: u16) -> u16 {
        match self.config.ack_size {
            HeaderSize::Fixed(bytes) => bytes,
            HeaderSize::Real => PLAIN_HEADER + options,
        }
    }

    pub(super) fn header_of(&self, seg: &Segment) -> u16 {
        let timestamps = if seg.timestamps().is_some() { TIMESTAMPS } else { 0 };
        // The SACK option takes 8 bytes per block, 2 bytes of option header and 2 bytes of padding.
        let sack = if seg.sack().is_empty() { 0 } else { 4 + 8 * seg.sack().len() as u16 };
        let syn = seg.syn_options().map_or(0, |offer| offer.header_bytes(timestamps > 0));
        let marks = if seg.acc_ecn().is_some() { AccEcn::HEADER_BYTES } else { 0 };
        self.header_with(timestamps + sack + syn + marks)
    }
}
