//! Preserves the order of packets: packets of one flow arrive in the order of departure (`links.md` section 3).
//! Different flows do not delay each other.

use ackclock_core::{FlowId, Time};

use crate::DeliveryOrder;

/// Whether packets leave the medium in the order in which they entered it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The medium itself preserves order.
    Kept,
    /// The link must preserve the order of packets within each flow.
    Enforced,
}

impl From<DeliveryOrder> for Order {
    fn from(order: DeliveryOrder) -> Self {
        match order {
            DeliveryOrder::InSequence => Self::Enforced,
            DeliveryOrder::OutOfSequence => Self::Kept,
        }
    }
}

/// Latest arrival time of each flow; needed only if delays vary.
#[derive(Debug)]
pub struct InOrder {
    pub(crate) order: Order,
    last: Vec<Time>,
}

impl InOrder {
    /// Without a packet yet.
    #[inline]
    pub fn new(order: Order) -> Self {
        Self { order, last: Vec::new() }
    }

    /// Arrival time of a packet of `flow` that would arrive at `natural` without ordering.
    #[inline]
    pub fn arrival(&mut self, flow: FlowId, natural: Time) -> Time {
        match self.order {
            Order::Kept => natural,
            Order::Enforced => self.enforce(flow, natural),
        }
    }

    /// Enforces order from now on; later packets also arrive after packets that are still in flight.
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
