//! Preserves order: packets of one flow arrive in the order of departure (`links.md` section 3). Different flows do
//! not delay each other.

use ackclock_core::{FlowId, Time};

/// Whether packets leave the medium in the order in which they entered it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// The medium preserves order itself.
    Kept,
    /// The link must preserve order within each flow.
    Enforced,
}

/// Latest arrival of each flow; used if delays vary.
#[derive(Debug)]
pub(crate) struct InOrder {
    pub(crate) order: Order,
    last: Vec<Time>,
}

impl InOrder {
    pub(crate) fn new(order: Order) -> Self {
        Self { order, last: Vec::new() }
    }

    /// Arrival of a packet of `flow`, given the instant `natural` at which it would arrive without ordering.
    #[inline]
    pub(crate) fn arrival(&mut self, flow: FlowId, natural: Time) -> Time {
        match self.order {
            Order::Kept => natural,
            Order::Enforced => self.enforce(flow, natural),
        }
    }

    /// From now on enforces order, also behind packets that are still in flight.
    pub(crate) fn restart(&mut self, under_way: impl Iterator<Item = (Time, FlowId)>) {
        self.order = Order::Enforced;
        self.last.clear();
        for (arrives, flow) in under_way {
            self.enforce(flow, arrives);
        }
    }

    #[inline]
    fn enforce(&mut self, flow: FlowId, natural: Time) -> Time {
        let index = flow.index();
        if self.last.len() <= index {
            self.last.resize(index + 1, Time::ZERO);
        }
        let arrives = natural.max(self.last[index]);
        self.last[index] = arrives;
        arrives
    }
}
