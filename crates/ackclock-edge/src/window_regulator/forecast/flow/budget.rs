//! What one flow may have outstanding, its right edge, and how much of that may be kept back.

use ackclock_core::{Seq, Span, Time};
use ackclock_link::LinkView;

use super::super::Shared;
use super::super::shares::FIRST_WINDOW;
use super::Flow;
use crate::Allowance;

/// No window is larger (RFC 7323 section 2.3).
const LARGEST: u32 = 1 << 30;

/// Packets that the slowest of links is thought to serve in a second before it has served any: half a Mbit/s.
const SLOWEST: u32 = 40;

/// What a flow may have at an instant, worked out once for all that is decided then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// What all flows may have together, bytes.
    pub(super) total: f64,
    /// Whether the source is let go.
    lets_go: bool,
}

impl Flow {
    pub(super) fn look(&self, now: Time, shared: &mut Shared) -> Look {
        Look { total: self.total(now, shared), lets_go: self.lets_go(shared) }
    }

    /// `B(t)`: bytes of payload, in the queue and on the wire. What stays untold comes on top: the edge is right in the mean.
    /// The first packets of a source are not held back where the link serves those of all within a second.
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

    /// What it has of the whole.
    pub(super) fn part(&self, now: Time, shared: &mut Shared) -> f64 {
        let total = self.total(now, shared);
        shared.shares.of(&self.share, total)
    }

    /// What all flows have together.
    fn total(&self, now: Time, shared: &mut Shared) -> f64 {
        let payload = f64::from(self.advertiser.accounts.payload());
        let packets = f64::from(shared.config.packets) * shared.shares.root();
        self.served(now, shared) + packets * payload
    }

    /// What the link is expected to serve until an edge told now has come to effect.
    pub(super) fn served(&self, now: Time, shared: &mut Shared) -> f64 {
        let horizon = self.horizon.unwrap_or_else(|| self.source.wired()) + shared.config.delay;
        let payload = self.advertiser.accounts.payload();
        let yields = !shared.observed && shared.shares.yields(&self.share, payload);
        shared.link.forecast(shared.seen(now), horizon, self.air.span(), yields)
    }

    /// Whether the source is let go.
    pub(super) fn lets_go(&self, shared: &Shared) -> bool {
        let usual = shared.link.usually_in(self.round_trip());
        self.letting_go.is_due(&self.advertiser.accounts, usual, shared)
    }

    /// How far the source may send, what has left and at most what the buffer holds, and its budget; let go, as offered.
    pub(super) fn edge(&mut self, now: Time, look: &Look, shared: &mut Shared) -> (Option<Seq>, Option<u32>) {
        if look.lets_go {
            let slowly = self.letting_go.edge(self.advertiser.law.edge(), shared.inside == 0);
            return (slowly.or_else(|| self.advertiser.accounts.edge_at(LARGEST)), None);
        }
        self.letting_go.on_ruled();
        let budget = self.budget(look, shared);
        (self.advertiser.accounts.edge_at(self.fitting(now, budget, shared)), Some(budget))
    }

    /// How far the source of an observed queue may send beyond what has left it.
    pub(in super::super) fn allowance(
        &mut self,
        now: Time,
        view: LinkView,
        shared: &mut Shared,
    ) -> Option<Allowance> {
        self.advertiser.accounts.see(view);
        let look = self.look(now, shared);
        let budget = self.budget(&look, shared);
        self.advertiser.beyond_left(self.fitting(now, budget, shared))
    }

    /// What of the budget fits into the buffer.
    fn fitting(&self, now: Time, budget: u32, shared: &mut Shared) -> u32 {
        // What leaves an observed queue in a loop is not in it.
        let leaves = self.horizon.map_or(0.0, |horizon| shared.link.served_in(shared.seen(now), horizon));
        let leaves = (leaves / f64::from(shared.shares.flows())) as u32;
        let most = self.advertiser.accounts.buffer().map_or(u32::MAX, |buffer| buffer.saturating_add(leaves));
        budget.min(most)
    }

    /// Whether ACKs may be kept: none where the source is not ruled, or repairs a loss; nobody knows whether an observed link is
    /// idle.
    pub(super) fn may_keep(&self, look: &Look, shared: &Shared) -> bool {
        let may = shared.config.reserve > 0 && !shared.observed && !look.lets_go;
        may && self.is_ruled() && !self.repair.is_under_way()
    }

    /// How many bytes the oldest ACK kept may be behind the newest: less of each flow where there are many, no more than the
    /// buffer has room for, since all may go at once; none where the link is idle.
    pub(super) fn reserve(&self, look: &Look, shared: &Shared) -> u32 {
        if shared.inside == 0 || !self.may_keep(look, shared) {
            return 0;
        }
        let flows = shared.shares.flows();
        let packets = f64::from(shared.config.reserve) / f64::from(flows).sqrt();
        let most = self.advertiser.accounts.payload() * packets.max(2.0) as u32;
        let budgets = look.total + self.untold * f64::from(flows);
        let budgets = (budgets as u32).max(self.advertiser.least().saturating_mul(flows));
        self.advertiser.accounts.buffer().map_or(most, |buffer| most.min(buffer.saturating_sub(budgets)))
    }
}
