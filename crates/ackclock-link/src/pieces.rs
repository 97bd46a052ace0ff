//! Transmission at a rate that is constant by pieces: what is left of a packet goes on at the rate of the next piece
//! (`links.md` section 5).

use ackclock_core::{Rate, Time};

/// Work is counted in nanobits: a rate of 1 bit/s does 1 in a nanosecond.
pub(crate) const NANOBITS_PER_BYTE: u64 = 8_000_000_000;

/// When `work` nanobits begun at `start` are done, to the nearest nanosecond; never, where the rate stays zero. `piece`
/// gives the rate at an instant and the later instant until which it holds; it is asked for instants in order.
pub(crate) fn finish(start: Time, mut work: u64, mut piece: impl FnMut(Time) -> (Rate, Time)) -> Time {
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

fn rate_time(work: u64, rate: Rate) -> ackclock_core::Span {
    let bps = rate.as_bps().max(1);
    ackclock_core::Span::from_nanos(work.saturating_add(bps / 2) / bps)
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
        assert_eq!(finish(ms(5), 125 * NANOBITS_PER_BYTE, piece), ms(10), "exactly as much as fits");
        assert_eq!(finish(ms(3), NANOBITS_PER_BYTE, |_| (Rate::ZERO, Time::NEVER)), Time::NEVER);
    }
}
