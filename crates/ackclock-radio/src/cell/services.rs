//! Service times of a user, from which the delay caused by HARQ retransmissions is calculated.

use std::collections::VecDeque;

use ackclock_core::Time;

/// Services that a user has received, from the oldest service that is still needed.
#[derive(Default)]
pub(super) struct Services {
    /// End time of each service.
    ends: VecDeque<Time>,
    /// Number of the first stored service.
    first: u64,
    /// Total number of services with retransmissions so far.
    repetitions: u64,
}

/// A service that sent new data.
#[derive(Clone, Copy, Default)]
pub(super) struct Service {
    number: u64,
    /// Number of earlier services that sent a retransmission.
    repetitions: u64,
}

impl Services {
    /// Adds a service with new data that ends at `at`.
    pub(super) fn carried_new(&mut self, at: Time) -> Service {
        let service = Service { number: self.next(), repetitions: self.repetitions };
        self.ends.push_back(at);
        service
    }

    /// Adds a service with a retransmission that ends at `at`.
    pub(super) fn carried_again(&mut self, at: Time) {
        self.repetitions += 1;
        self.ends.push_back(at);
    }

    /// Time at which a packet would have been complete if no retransmission had occurred between its parts; `first` and
    /// `last` sent the packet's first and last part.
    pub(super) fn end(&self, [first, last]: [Service; 2]) -> Time {
        let number = last.number - (last.repetitions - first.repetitions);
        self.ends[(number - self.first) as usize]
    }

    /// Forgets all services before `service`, or all services if `service` is `None`.
    pub(super) fn forget_before(&mut self, service: Option<Service>) {
        let keep = service.map_or(self.next(), |service| service.number);
        self.ends.drain(..(keep - self.first) as usize);
        self.first = keep;
    }

    /// Number of the next service.
    fn next(&self) -> u64 {
        self.first + self.ends.len() as u64
    }
}
