//! Calculates the budget of one flow, its right edge, and the number of ACKs that may be held.

use ackclock_core::{Seq, Span, Time};
use ackclock_link::LinkView;

use super::super::shares::FIRST_WINDOW;
use super::super::{Shared, released};
use super::Flow;
use crate::Allowance;

/// Largest window in bytes (RFC 7323 section 2.3).
const LARGEST: u32 = 1 << 30;

/// Link rate assumed before any service was measured, packets per second. Forty packets per second are about half a
/// Mbit/s.
const SLOWEST: u32 = 40;

/// Budget at one instant, calculated once for all decisions at this instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// Budget of all flows together, bytes.
    pub(super) total: f64,
    /// Whether the sender is released from regulation.
    is_released: bool,
}

impl Flow {
    pub(super) fn look(&self, now: Time, shared: &mut Shared) -> Look {
        Look { total: self.total(now, shared), is_released: self.is_released(shared) }
    }

    /// Budget `B(t)` of the flow in bytes: payload in the queue and on the wired path, plus the mean lag of the right
    /// edge. The first packets of a sender are not limited if the link serves the first packets of all new flows within
    /// a second.
    pub(super) fn budget(&self, look: &Look, shared: &Shared) -> u32 {
        let budget = self.budget_of(shared.shares.of(&self.share, look.total));
        if self.source.highest().is_some() {
            return budget;
        }
        let accounts = &self.advertiser.accounts;
        let second = shared.link.usually_in(Span::from_secs(1)) as u32;
        let together = second.max(accounts.window_of(SLOWEST)) / shared.shares.flows();
        budget.max(accounts.window_of(FIRST_WINDOW).min(together))
    }

    pub(super) fn budget_of(&self, part: f64) -> u32 {
        ((self.pace.leash() * part + self.untold) as u32).max(self.advertiser.least())
    }

    /// The flow's share of the total budget, bytes.
    pub(super) fn part(&self, now: Time, shared: &mut Shared) -> f64 {
        let total = self.total(now, shared);
        shared.shares.of(&self.share, total)
    }

    /// Total budget of all flows, bytes.
    pub(super) fn total(&self, now: Time, shared: &mut Shared) -> f64 {
        let payload = f64::from(self.advertiser.accounts.payload());
        let packets = f64::from(shared.config.packets) * shared.shares.root();
        self.served(now, shared) + packets * payload
    }

    /// Expected service until a right edge advertised now takes effect, bytes.
    pub(super) fn served(&self, now: Time, shared: &mut Shared) -> f64 {
        let horizon = self.horizon.unwrap_or_else(|| self.source.wired()) + shared.config.delay;
        shared.link.forecast(shared.seen(now), horizon, self.air.span())
    }

    /// Returns whether the sender is released from regulation, because limiting its window is useless, or because marks
    /// regulate it.
    pub(super) fn is_released(&self, shared: &Shared) -> bool {
        if self.is_marked {
            return true;
        }
        let usual = shared.link.usually_in(self.round_trip());
        released::is_due(&self.advertiser.accounts, usual, shared)
    }

    /// Right edge and budget of the flow. The right edge is at most one buffer size beyond the data that has left the
    /// queue. A released sender gets the receiver's window and has no budget.
    pub(super) fn edge(&mut self, now: Time, look: &Look, shared: &mut Shared) -> (Option<Seq>, Option<u32>) {
        if look.is_released {
            let slowly =
                self.released.edge(self.advertiser.law.edge(), shared.inside == 0 || shared.observed);
            return (slowly.or_else(|| self.advertiser.accounts.edge_at(LARGEST)), None);
        }
        self.released.on_ruled();
        let budget = self.budget(look, shared);
        (self.advertiser.accounts.edge_at(self.fitting(now, budget, shared)), Some(budget))
    }

    /// Allowance of a sender beyond the data that has left an observed queue.
    pub(in super::super) fn allowance(
        &mut self,
        now: Time,
        view: LinkView,
        shared: &mut Shared,
    ) -> Option<Allowance> {
        self.advertiser.accounts.see(view);
        let look = self.look(now, shared);
        if look.is_released {
            return self.advertiser.beyond_left(LARGEST);
        }
        let budget = self.budget(&look, shared);
        self.advertiser.beyond_left(self.fitting(now, budget, shared))
    }

    /// Limits the budget to the buffer.
    fn fitting(&self, now: Time, budget: u32, shared: &mut Shared) -> u32 {
        // Data that leaves an observed queue within one control loop does not occupy the buffer.
        let leaves = self.horizon.map_or(0.0, |horizon| shared.link.served_in(shared.seen(now), horizon));
        let leaves = shared.shares.of(&self.share, leaves) as u32;
        let most = self.advertiser.accounts.buffer().map_or(u32::MAX, |buffer| buffer.saturating_add(leaves));
        budget.min(most)
    }

    /// Returns whether ACKs of this flow may be held. ACKs are not held if the sender is in recovery or is not
    /// window-limited. At an observed queue, ACKs are not held, because idle times of the queue become known too late.
    pub(super) fn may_keep(&self, look: &Look, shared: &Shared) -> bool {
        let may = shared.config.reserve > 0 && !shared.observed && !look.is_released;
        may && self.is_window_limited() && !self.repair.is_under_way()
    }

    /// Number of bytes by which the oldest held ACK may lag behind the newest ACK. All held ACKs
    /// may be released at once, so held ACKs are limited to the room in the buffer. If the link is idle, no ACK may be
    /// held.
    pub(super) fn reserve(&self, look: &Look, shared: &Shared) -> u32 {
        if shared.inside == 0 || !self.may_keep(look, shared) {
            return 0;
        }
        let flows = shared.shares.flows();
        let most = self.advertiser.accounts.payload() * shared.config.reserve.max(2);
        let budgets = look.total + self.untold * f64::from(flows);
        let budgets = (budgets as u32).max(self.advertiser.least().saturating_mul(flows));
        self.advertiser.accounts.buffer().map_or(most, |buffer| most.min(buffer.saturating_sub(budgets)))
    }
}
