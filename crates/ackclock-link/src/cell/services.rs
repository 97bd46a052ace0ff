//! When a user of a cell was served: when a packet would have been whole, had nothing been sent again.

use std::collections::VecDeque;

use ackclock_core::Time;

/// The services of a user, from the first that somebody may ask for.
#[derive(Default)]
pub(super) struct Services {
    /// When each was over.
    ends: VecDeque<Time>,
    /// Number of the first of them.
    first: u64,
    /// How many carried what had failed before, of all so far.
    repetitions: u64,
}

/// A service that carried something new.
#[derive(Clone, Copy, Default)]
pub(super) struct Service {
    number: u64,
    /// How many of those before carried what had failed before.
    repetitions: u64,
}

impl Services {
    /// A service is over at `at` that carried something new.
    pub(super) fn carried_new(&mut self, at: Time) -> Service {
        let service = Service { number: self.next(), repetitions: self.repetitions };
        self.ends.push_back(at);
        service
    }

    /// One is over that carried what had failed before.
    pub(super) fn carried_again(&mut self, at: Time) {
        self.repetitions += 1;
        self.ends.push_back(at);
    }

    /// When the last part of a packet would have been sent that had its first and its last part in these services, had what is new
    /// taken the services in which something was sent again.
    pub(super) fn end(&self, [first, last]: [Service; 2]) -> Time {
        let number = last.number - (last.repetitions - first.repetitions);
        self.ends[(number - self.first) as usize]
    }

    /// Nobody asks for services before this one, or for any before the next.
    pub(super) fn forget_before(&mut self, service: Option<Service>) {
        let keep = service.map_or(self.next(), |service| service.number);
        self.ends.drain(..(keep - self.first) as usize);
        self.first = keep;
    }

    /// The number of the next service.
    fn next(&self) -> u64 {
        self.first + self.ends.len() as u64
    }
}
