//! Bytes in flight and losses at the departure of segments, found again by the bytes delivered until then.

use std::collections::VecDeque;

/// State when a segment was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flight {
    /// C.delivered at the departure.
    delivered: u64,
    /// Bytes in flight including the segment.
    pub(super) in_flight: u32,
    /// Number of segments lost until the departure.
    pub(super) lost: u32,
}

/// Departures that an ACK may still sample.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights {
    sent: VecDeque<Flight>,
    lost: u32,
}

impl Flights {
    /// Records a departure. Departures at the same total of delivered bytes count as one: the last.
    pub(super) fn push(&mut self, delivered: u64, in_flight: u32) {
        let flight = Flight { delivered, in_flight, lost: self.lost };
        match self.sent.back_mut() {
            Some(last) if last.delivered == delivered => *last = flight,
            _ => self.sent.push_back(flight),
        }
    }

    /// Records the number of segments lost since the start.
    pub(super) fn on_lost(&mut self, lost_in_all: u32) {
        self.lost = lost_in_all;
    }

    #[cfg(test)]
    pub(super) fn lost_so_far(&self) -> u32 {
        self.lost
    }

    /// Departure of the segment that was sent when `prior_delivered` bytes had been delivered. Forgets earlier ones.
    pub(super) fn sampled(&mut self, prior_delivered: u64) -> Flight {
        while self.sent.get(1).is_some_and(|next| next.delivered <= prior_delivered) {
            self.sent.pop_front();
        }
        self.sent.front().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_departure_with_the_same_total_is_found_and_earlier_ones_are_forgotten() {
        let mut flights = Flights::default();
        for (delivered, in_flight) in [(0, 1000), (0, 2000), (1000, 3000), (5000, 4000)] {
            flights.push(delivered, in_flight);
        }
        assert_eq!(flights.sampled(0).in_flight, 2000);
        assert_eq!(flights.sampled(2000).in_flight, 3000);
        assert_eq!((flights.sampled(9000).in_flight, flights.sent.len()), (4000, 1));
    }
}
