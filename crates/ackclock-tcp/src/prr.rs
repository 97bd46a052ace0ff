//! # Proportional rate reduction
//!
//! PRR spreads the reduction of the window over the recovery, instead of pausing for half a round trip.
//!
//! ## Source
//! RFC 6937 section 3 with the slow-start bound. RFC 9937 defines when PRR may send one more segment.
//!
//! ## What it does
//! While bytes in flight exceed the target, PRR sends a fraction of the data delivered: the target divided by the
//! previous window. Below the target, PRR sends one segment for each segment delivered. PRR sends one additional
//! segment at each acknowledgement that advances the left edge and shows no further loss.
//!
//! ## Differences from the source
//! This implementation of PRR rounds the allowance up to whole segments. The Linux stack counts in segments, and counts
//! a partial segment as whole (tcp_cwnd_reduction).
//!
//! ## Validation
//! The unit tests check a worked example. `make agree` compares the sender with the kernel's sender in many scenarios.

use crate::stack::Stack;

/// State of one window reduction. All amounts are bytes of payload.
#[derive(Clone, Copy, Debug)]
pub struct Prr {
    mss: u32,
    stack: Stack,
    /// RecoverFS: bytes in flight before the reduction. If a loss halves the window, as in Linux, this field is the
    /// previous window.
    prior: u32,
    /// ssthresh: congestion window after the reduction.
    target: u32,
    /// prr_delivered and prr_out: bytes delivered and bytes sent during the reduction.
    delivered: u32,
    out: u32,
    window: u32,
}

/// Facts about an acknowledgement during a reduction.
#[derive(Clone, Copy, Debug)]
pub struct Delivery {
    /// Bytes newly delivered, in order or out of order.
    pub delivered: u32,
    /// Bytes in flight after the acknowledgement.
    pub in_flight: u32,
    /// Whether the left edge advanced and no further loss was found.
    pub safe: bool,
}

impl Prr {
    /// Starts a reduction from `prior` bytes to the congestion window `target`.
    pub fn new(prior: u32, target: u32, mss: u32, stack: Stack) -> Self {
        Self { mss, stack, prior: prior.max(1), target, delivered: 0, out: 0, window: target }
    }

    /// Processes an acknowledgement during the reduction.
    pub fn on_ack(&mut self, ack: &Delivery) {
        if ack.delivered == 0 {
            return;
        }
        let (delivered, in_flight) = (self.whole(ack.delivered), self.whole(ack.in_flight));
        self.delivered = self.delivered.saturating_add(delivered);
        let may = if in_flight > self.target {
            let share = u64::from(self.target) * u64::from(self.delivered);
            let share = share.div_ceil(u64::from(self.prior)) as u32;
            share.div_ceil(self.mss).saturating_mul(self.mss).saturating_sub(self.out)
        } else {
            let owed = self.delivered.saturating_sub(self.out).max(delivered);
            let owed = owed.saturating_add(if ack.safe { self.mss } else { 0 });
            owed.min(self.target - in_flight)
        };
        // The first retransmission is always allowed.
        let may = may.max(if self.out == 0 { self.mss } else { 0 });
        self.window = in_flight.saturating_add(may);
    }

    /// Lowers the congestion window to `window` because the sender did not use it fully.
    pub fn restart(&mut self, window: u32) {
        self.window = window;
    }

    /// Counts `bytes` as sent during the reduction.
    pub fn on_sent(&mut self, bytes: u32) {
        self.out = self.out.saturating_add(self.whole(bytes));
    }

    /// Rounds bytes up to whole segments in the Linux stack.
    fn whole(&self, bytes: u32) -> u32 {
        match self.stack {
            Stack::Rfc => bytes,
            Stack::Linux => bytes.div_ceil(self.mss).saturating_mul(self.mss),
        }
    }

    /// Current congestion window, bytes.
    pub fn window(&self) -> u32 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    fn ack(prr: &mut Prr, in_flight: u32) -> u32 {
        prr.on_ack(&Delivery { delivered: MSS, in_flight: in_flight * MSS, safe: false });
        let sent = (prr.window() / MSS).saturating_sub(in_flight);
        prr.on_sent(sent * MSS);
        sent
    }

    #[test]
    fn a_halved_window_sends_one_segment_for_two_delivered() {
        // The window falls from 20 to 10 segments. One of 20 segments is lost and three are SACKed, so 16 are in
        // flight.
        let mut prr = Prr::new(20 * MSS, 10 * MSS, MSS, Stack::Rfc);
        let (mut in_flight, mut sent) = (16, Vec::new());
        for _ in 0..8 {
            let now = ack(&mut prr, in_flight);
            in_flight = in_flight + now - 1;
            sent.push(now);
        }
        // PRR allows ceil(n / 2) segments after n are delivered: one at once, then one per two delivered.
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0]);
    }

    #[test]
    fn below_the_target_it_grows_by_one_more_only_where_that_is_safe() {
        for (safe, expected) in [(false, 6), (true, 7)] {
            let mut prr = Prr::new(20 * MSS, 10 * MSS, MSS, Stack::Rfc);
            prr.on_sent(MSS);
            prr.on_ack(&Delivery { delivered: 2 * MSS, in_flight: 4 * MSS, safe });
            // PRR allows max(2 - 1, 2) segments.
            assert_eq!(prr.window() / MSS, expected);
        }
    }

    #[test]
    fn in_linux_a_short_segment_that_is_delivered_lets_a_full_one_leave() {
        for (stack, expected) in [(Stack::Rfc, 0), (Stack::Linux, 1)] {
            let mut prr = Prr::new(20 * MSS, 10 * MSS, MSS, stack);
            prr.on_ack(&Delivery { delivered: MSS, in_flight: 200, safe: false });
            prr.on_sent(MSS);
            prr.on_ack(&Delivery { delivered: 200, in_flight: MSS, safe: false });
            assert_eq!((prr.window() - MSS) / MSS, expected, "{stack:?}");
        }
    }

    #[test]
    fn it_never_exceeds_the_target_from_below() {
        let mut prr = Prr::new(20 * MSS, 10 * MSS, MSS, Stack::Rfc);
        prr.on_ack(&Delivery { delivered: 15 * MSS, in_flight: 3 * MSS, safe: true });
        assert_eq!(prr.window(), 10 * MSS);
    }
}
