//! Channel over which an RLC end of one user sends its PDUs in one direction.

use ackclock_core::{Rate, Time};

use super::dedicated::Dedicated;
use super::iub::Iub;
use crate::{Handover, HandoverTo, OutageKind};

/// Channel over which an RLC end sends its PDUs.
// The size difference of the variants is accepted: a pointer would cost a look-up for each packet.
#[allow(clippy::large_enum_variant)]
pub(super) enum Carrier {
    /// A dedicated channel of the user.
    Dedicated(Dedicated),
    /// The Iub interface to a base station that all users share.
    Iub(Box<Iub>),
}

impl Carrier {
    /// Time at which the next PDU arrives at the far end.
    pub(super) fn due(&self) -> Time {
        match self {
            Self::Dedicated(air) => air.due(),
            Self::Iub(iub) => iub.due(),
        }
    }

    /// Time at which the RLC end may next send.
    pub(super) fn next(&self) -> Time {
        match self {
            Self::Dedicated(air) => air.next(),
            Self::Iub(iub) => iub.next(),
        }
    }

    /// Schedules the next transmission: at or after `wanted`, and not before `from`.
    pub(super) fn plan(&mut self, wanted: Time, from: Time) {
        match self {
            Self::Dedicated(air) => air.plan(wanted, from),
            Self::Iub(iub) => iub.plan(wanted, from),
        }
    }

    /// Interrupts the channel for a hand-over at `now`. To another cell, PDUs in transit still arrive, and the Iub goes
    /// on. To another controller, PDUs in transit are lost, and the new Iub starts when the hand-over ends.
    pub(super) fn hand_over(&mut self, now: Time, handover: &Handover) {
        match self {
            Self::Dedicated(air) => air.interrupt(now, handover.until, OutageKind::Silent),
            Self::Iub(iub) if handover.to == HandoverTo::Controller => iub.restart(handover.until),
            Self::Iub(_) => {}
        }
        if handover.to == HandoverTo::Controller {
            self.clear();
        }
    }

    /// Loses all PDUs in transit. PDUs on the Iub still arrive, but RLC ends that were re-established ignore them.
    pub(super) fn clear(&mut self) {
        if let Self::Dedicated(air) = self {
            air.clear();
        }
    }

    /// Payload rate of the channel at `now`; zero on the Iub, because the controller does not know the rate of a shared
    /// cell.
    pub(super) fn rate(&self, now: Time) -> Rate {
        match self {
            Self::Dedicated(air) => air.rate(now),
            Self::Iub(_) => Rate::ZERO,
        }
    }
}
