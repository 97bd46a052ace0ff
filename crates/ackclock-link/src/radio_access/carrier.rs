//! The channel under the sending RLC end of a direction of one user.

use ackclock_core::{Rate, Time};

use super::dedicated::Dedicated;
use super::iub::Iub;

/// The channel to which an RLC end gives its PDUs.
// A bearer has one; a box would cost a look-up for each packet.
#[allow(clippy::large_enum_variant)]
pub(super) enum Carrier {
    /// A dedicated channel.
    Dedicated(Dedicated),
    /// The Iub to a base station shared by all users.
    Iub(Box<Iub>),
}

impl Carrier {
    /// When a PDU next arrives at the far end.
    pub(super) fn due(&self) -> Time {
        match self {
            Self::Dedicated(air) => air.due(),
            Self::Iub(iub) => iub.due(),
        }
    }

    /// When the end may next send.
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

    /// Loses everything in transit. PDUs on the Iub still arrive, but ends that were set up again ignore them.
    pub(super) fn clear(&mut self) {
        if let Self::Dedicated(air) = self {
            air.clear();
        }
    }

    /// Rate of the payload; unknown to a controller whose users share a cell.
    pub(super) const fn rate(&self) -> Rate {
        match self {
            Self::Dedicated(air) => air.rate,
            Self::Iub(_) => Rate::ZERO,
        }
    }
}
