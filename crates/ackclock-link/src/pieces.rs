//! Transmission at a piecewise constant rate: if the rate changes, the rest of a packet continues at the new rate
//! (`links.md` section 5).

use ackclock_core::{Rate, Span, Time};

/// Data is counted in nanobits: a rate of 1 bit/s sends 1 nanobit per nanosecond.
pub const NANOBITS_PER_BYTE: u64 = 8_000_000_000;

/// Time at which `work` nanobits are sent if transmission starts at `start`, to the nearest nanosecond; never if the
/// rate stays zero. `piece` returns the rate at an instant and the time until which it holds; `piece` is called for
/// instants in order.
pub fn finish(start: Time, mut work: u64, mut piece: impl FnMut(Time) -> (Rate, Time)) -> Time {
    let mut now = start;
    loop {
        let (rate, until) = piece(now);
        let room = rate.as_bps().saturating_mul(until.since(now).as_nanos());
        if work <= room {
            return now + rate_time(work, rate);
        }
        if until == Time::NEVER {
            return Time::NEVER;
        }
        work -= room;
        now = until;
    }
}

/// Number of nanobits that a rate sends in a time.
pub fn work_at(rate: Rate, time: Span) -> u128 {
    u128::from(rate.as_bps()) * u128::from(time.as_nanos())
}

/// Data that could have been sent so far, summed piece by piece. Each call continues from the last call, so frequent
/// calls cost no more than one call.
#[derive(Debug, Default)]
pub(crate) struct Potential {
    until: Time,
    work: u128,
}

impl Potential {
    /// Time up to which the data is summed.
    pub(crate) fn reached(&self) -> Time {
        self.until
    }

    /// Number of nanobits that could have been sent from `from`, always the same instant, until `until`, which never
    /// decreases. `piece` is the function described at [`finish`].
    pub(crate) fn reach(
        &mut self,
        from: Time,
        until: Time,
        mut piece: impl FnMut(Time) -> (Rate, Time),
    ) -> u128 {
        self.until = self.until.max(from);
        while self.until < until {
            let (rate, ends) = piece(self.until);
            let ends = ends.min(until);
            self.work += work_at(rate, ends.since(self.until));
            self.until = ends;
        }
        self.work
    }
}

fn rate_time(work: u64, rate: Rate) -> Span {
    let bps = rate.as_bps().max(1);
    Span::from_nanos(work.saturating_add(bps / 2) / bps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_packet_goes_on_at_the_next_rate() {
        // 1000 B = 8000 bit: 10 ms at 200 kbit/s carry 2000, 10 ms of outage nothing, 6000 take 60 ms at 100 kbit/s.
        let ms = |n: u64| Time::from_nanos(n * 1_000_000);
        let piece = |now: Time| match now.as_nanos() / 1_000_000 {
            0..10 => (Rate::from_bps(200_000), ms(10)),
            10..20 => (Rate::ZERO, ms(20)),
            _ => (Rate::from_bps(100_000), Time::NEVER),
        };
        assert_eq!(finish(Time::ZERO, 1000 * NANOBITS_PER_BYTE, piece), ms(80));
        assert_eq!(finish(ms(5), 125 * NANOBITS_PER_BYTE, piece), ms(10), "exactly what fits");
        assert_eq!(finish(ms(3), NANOBITS_PER_BYTE, |_| (Rate::ZERO, Time::NEVER)), Time::NEVER);
    }

    #[test]
    fn what_could_have_passed_is_the_same_however_often_it_is_asked() {
        let ms = |n: u64| Time::from_nanos(n * 1_000_000);
        // 1 kbit/s, 2 kbit/s, 3 kbit/s and so on for 10 ms each.
        let piece = |now: Time| {
            let number = now.as_nanos() / 10_000_000;
            (Rate::from_bps(1000 * (number + 1)), ms(10 * (number + 1)))
        };
        let mut potential = Potential::default();
        let mut until = |at| potential.reach(ms(5), ms(at), piece) / 1_000_000_000;
        // 5 ms of 1, 10 of 2 and 3 of 3 kbit/s are 5 + 20 + 9 bit.
        assert_eq!((until(3), until(5), until(12), until(12), until(28)), (0, 0, 9, 9, 49));
    }
}
