//! Service times of a user, from which the delay caused by retransmissions is calculated.

use std::collections::VecDeque;

use ackclock_core::Time;

/// The services of a user, from the oldest still needed.
#[derive(Default)]
pub(super) struct Services {
    /// End of each service.
    ends: VecDeque<Time>,
    /// Number of the first service.
    first: u64,
    /// Total number of services with retransmissions so far.
    repetitions: u64,
}

/// A service with new data.
#[derive(Clone, Copy, Default)]
pub(super) struct Service {
    number: u64,
    /// Number of earlier services with retransmissions.
    repetitions: u64,
}

impl Services {
    /// A service with new data ends at `at`.
    pub(super) fn carried_new(&mut self, at: Time) -> Service {
        let service = Service { number: self.next(), repetitions: self.repetitions };
        self.ends.push_back(at);
        service
    }

    /// A service with a retransmission ends at `at`.
    pub(super) fn carried_again(&mut self, at: Time) {
        self.repetitions += 1;
        self.ends.push_back(at);
    }

    /// When a packet whose first and last parts were in these services would have been complete without any
    /// retransmission in between.
    pub(super) fn end(&self, [first, last]: [Service; 2]) -> Time {
        let number = last.number - (last.repetitions - first.repetitions);
        self.ends[(number - self.first) as usize]
    }

    /// Forgets services before this one, or all if `None`.
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
