//! Turns of a user whose RLC end stands in the base station: the end sends when the cell grants a block.

use ackclock_core::{Span, Time};

/// Times at which a user needs a grant of the cell.
pub(super) struct Grants {
    /// Time at which the user next has data to send; [`Time::NEVER`] while the cell knows that the user has data.
    next: Time,
    /// Whether the cell knows that the user has data.
    requested: bool,
    /// End of the last hand-over.
    not_before: Time,
}

/// Time after which an RLC end that had nothing to send despite its schedule requests a grant again.
const LOOKS: Span = Span::from_millis(1);

impl Grants {
    pub(super) const fn new() -> Self {
        Self { next: Time::NEVER, requested: false, not_before: Time::ZERO }
    }

    /// Time at which the user needs a grant.
    pub(super) const fn next(&self) -> Time {
        self.next
    }

    /// Schedules the next request: at or after `wanted`, and not before `from`.
    pub(super) fn plan(&mut self, wanted: Time, from: Time) {
        let never = self.requested || wanted == Time::NEVER;
        self.next = if never { Time::NEVER } else { wanted.max(from).max(self.not_before) };
    }

    /// Whether a request is due at `at`. After the request the cell knows that the user has data.
    pub(super) fn requests(&mut self, at: Time) -> bool {
        let due = self.next <= at;
        self.requested |= due;
        self.next = if due { Time::NEVER } else { self.next };
        due
    }

    /// Registers that the end sent `count` PDUs in a grant at `now` and can next send at `wanted`.
    pub(super) fn on_sent(&mut self, now: Time, count: u32, wanted: Time) {
        self.requested = count > 0 && wanted <= now;
        self.plan(wanted, if count > 0 || wanted > now { now } else { now + LOOKS });
    }

    /// Whether the cell knows that the user has data.
    pub(super) const fn is_requested(&self) -> bool {
        self.requested
    }

    /// Starts a hand-over, after which the user must request grants again.
    pub(super) fn hand_over(&mut self, until: Time) {
        (self.requested, self.not_before, self.next) = (false, until, until);
    }
}
