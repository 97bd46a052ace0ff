//! What carries the PDUs of a direction of a user, on the side that sends.

use ackclock_core::{Rate, Time};

use super::dedicated::Dedicated;
use super::iub::Iub;

/// What an end of the RLC gives its PDUs to.
pub(super) enum Carrier {
    /// A channel of its own.
    Dedicated(Dedicated),
    /// The Iub to a base station that users share.
    Iub(Box<Iub>),
}

impl Carrier {
    /// When something arrives at the far end.
    pub(super) fn due(&self) -> Time {
        match self {
            Self::Dedicated(air) => air.due(),
            Self::Iub(iub) => iub.due(),
        }
    }

    /// When something is to be sent.
    pub(super) fn next(&self) -> Time {
        match self {
            Self::Dedicated(air) => air.next(),
            Self::Iub(iub) => iub.next(),
        }
    }

    /// Something is to be sent at `wanted` or later, and not before `from`.
    pub(super) fn plan(&mut self, wanted: Time, from: Time) {
        match self {
            Self::Dedicated(air) => air.plan(wanted, from),
            Self::Iub(iub) => iub.plan(wanted, from),
        }
    }

    /// Loses what is on its way. PDUs on the Iub arrive, and are of no use to ends that were set up anew.
    pub(super) fn clear(&mut self) {
        if let Self::Dedicated(air) = self {
            air.clear();
        }
    }

    /// The rate of the payload; unknown to a controller behind which users share a cell.
    pub(super) const fn rate(&self) -> Rate {
        match self {
            Self::Dedicated(air) => air.rate,
            Self::Iub(_) => Rate::ZERO,
        }
    }
}
