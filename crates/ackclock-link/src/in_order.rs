//! No overtaking: packets of one flow arrive in the order in which they left (`links.md` section 3). Flows do not hold each
//! other up.

use ackclock_core::{FlowId, Time};

/// Whether packets leave the medium in the order in which they entered it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// They do by themselves.
    Kept,
    /// The link must see to it, flow by flow.
    Enforced,
}

/// The latest arrival of each flow, where delays vary.
#[derive(Debug)]
pub(crate) struct InOrder {
    pub(crate) order: Order,
    last: Vec<Time>,
}

impl InOrder {
    pub(crate) fn new(order: Order) -> Self {
        Self { order, last: Vec::new() }
    }

    /// The arrival of a packet of `flow` that would arrive at `natural` by itself.
    #[inline]
    pub(crate) fn arrival(&mut self, flow: FlowId, natural: Time) -> Time {
        match self.order {
            Order::Kept => natural,
            Order::Enforced => self.enforce(flow, natural),
        }
    }

    /// From now on order is enforced behind those that are still under way.
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
