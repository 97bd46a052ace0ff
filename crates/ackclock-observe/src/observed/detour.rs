//! Measures the excess delay of the part of a loop that does not include the queue.
//!
//! A loop, the round trip that the box measures, has two parts, and one part includes the queue. Delay in the part
//! without the queue, such as the delay of ACKs in a varying uplink, must not be mistaken for queueing delay; nor must
//! time in which the sender has no data. Between the two parts is an end that timestamps its segments (TSval, RFC 7323
//! section 3): the mobile if the box is before the queue, the server if the box is behind the queue. The timestamp
//! divides the loop into its two parts, up to a constant offset of the clock; so only differences to the minimum are
//! used.

use ackclock_core::{Span, Time};

use ackclock_link::Side;

/// State of the part of a loop that does not include the queue.
#[derive(Debug, Default)]
pub(super) struct Detour {
    clock: Clock,
    /// Minimum delay so far, on the scale of the end's clock, and the time at which it was measured.
    least: Option<(Time, i64)>,
}

/// Maximum relative drift of two clocks. The minimum delay increases at the rate of the drift, so that a slow clock is
/// not mistaken for a longer path.
const DRIFT: f64 = 1e-4;

impl Detour {
    /// Handles a segment with TSval `value`, which closes a loop of length `all` if given. Returns the excess of the
    /// part's delay over its minimum, less one clock tick; zero until the rate of the clock is known.
    pub(super) fn beyond(&mut self, now: Time, value: u32, side: Side, all: Option<Span>) -> Span {
        let pace = self.clock.tick;
        let sent = self.clock.on_stamp(now, value);
        if pace.is_some() && self.clock.tick != pace {
            self.least = None;
        }
        let took = match (side, sent, all) {
            (Side::Network, Some(sent), _) => nanos(now) - sent,
            (Side::Mobile, Some(sent), Some(all)) => sent - nanos(now - all),
            _ => return Span::ZERO,
        };
        let least = self.least.map_or(took, |(at, least)| {
            let risen = least + (now.since(at).as_nanos() as f64 * DRIFT) as i64;
            took.min(risen)
        });
        self.least = Some((now, least));
        let beyond =
            Span::from_nanos((took - least) as u64).saturating_sub(self.clock.tick.unwrap_or(Span::ZERO));
        if all.is_some_and(|all| beyond > all) {
            // A part cannot be longer than its loop, so the clock must have been adjusted.
            *self = Self::default();
            return Span::ZERO;
        }
        beyond
    }
}

/// The timestamp clock of the end that divides a loop.
#[derive(Debug, Default)]
struct Clock {
    /// Time at which the first TSval passed, and the TSval.
    first: Option<(Time, u32)>,
    /// Latest TSval, in ticks since the first TSval.
    ticks: i64,
    /// Length of a clock tick; `None` until it is known.
    tick: Option<Span>,
    /// Time for which the clock had been observed when its tick was last measured.
    watched: Span,
}

/// Common lengths of a tick: a millisecond (Linux), and other lengths that are short enough to measure a path.
const TICKS: [Span; 4] =
    [Span::from_millis(1), Span::from_millis(4), Span::from_millis(10), Span::from_micros(1)];
/// Relative tolerance of a measured tick length.
const TOLERANCE: f64 = 0.25;
/// Observation time before the first measurement of a tick; each further measurement follows after twice the time.
const FIRST_MEASURED: Span = Span::from_secs(1);

impl Clock {
    /// Time at which a segment with TSval `value` was sent, in nanoseconds with a constant offset.
    fn on_stamp(&mut self, now: Time, value: u32) -> Option<i64> {
        let Some((begun, first)) = self.first else {
            self.first = Some((now, value));
            return Some(nanos(now));
        };
        let latest = first.wrapping_add(self.ticks as u32);
        let ticks = self.ticks + i64::from(value.wrapping_sub(latest) as i32);
        self.ticks = self.ticks.max(ticks);
        let watched = now.since(begun);
        if watched >= FIRST_MEASURED && watched >= self.watched * 2 {
            self.watched = watched;
            self.tick = measured(watched, self.ticks);
        }
        self.tick.map(|tick| nanos(begun) + ticks * tick.as_nanos() as i64)
    }
}

/// Length of a tick, calculated from the number of ticks in the observed time `watched`.
fn measured(watched: Span, ticks: i64) -> Option<Span> {
    let is_near = |tick: &Span| {
        let ratio = ticks as f64 * tick.as_secs_f64() / watched.as_secs_f64();
        (ratio - 1.0).abs() <= TOLERANCE
    };
    TICKS.into_iter().find(is_near)
}

const fn nanos(time: Time) -> i64 {
    time.as_nanos() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    const fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    /// A detour whose clock has been observed for two seconds: it shows 7000 at the start, and segments pass 30 ms
    /// after they are stamped.
    fn known(per_second: u64) -> Detour {
        let mut detour = Detour::default();
        for sent in (0..=2000).step_by(100) {
            let _ = detour.beyond(at(sent + 30), stamp(per_second, sent), Side::Network, None);
        }
        detour
    }

    const fn stamp(per_second: u64, millis: u64) -> u32 {
        7000 + (millis * per_second / 1000) as u32
    }

    #[test]
    fn an_ack_that_waits_on_its_way_back_is_told_from_one_that_was_sent_late() {
        for per_second in [100, 250, 1000, 1_000_000] {
            let mut detour = known(per_second);
            let mut beyond = |sent, passes| {
                detour.beyond(at(passes), stamp(per_second, sent), Side::Network, None).as_millis_f64()
            };
            assert_eq!(beyond(2500, 2530), 0.0, "{per_second}: sent late");
            let (waits, tick) = (beyond(2600, 2930), 1000.0 / per_second as f64);
            // The drift of two seconds and one tick are subtracted.
            assert!((300.0 - tick - 0.3..300.0).contains(&waits), "{per_second}: {waits}");
            assert_eq!(beyond(2940, 2960), 0.0, "{per_second}: less than ever");
            assert!(beyond(3000, 3030) <= 10.0, "{per_second}: which is the least now");
        }
    }

    #[test]
    fn the_way_to_a_server_is_what_is_left_of_a_loop_by_its_stamp() {
        let mut detour = Detour::default();
        for sent in (100..=2100).step_by(100) {
            // 20 ms to the server and 40 ms back through the queue.
            let _ = detour.beyond(at(sent + 40), stamp(1000, sent), Side::Mobile, Some(ms(60)));
        }
        let mut beyond = |sent, passes, all| {
            detour.beyond(at(passes), stamp(1000, sent), Side::Mobile, Some(ms(all))).as_millis_f64()
        };
        assert_eq!(beyond(3000, 3540, 560), 0.0, "half a second in the queue");
        let waits = beyond(4000, 4040, 560);
        assert!(
            (498.0..500.0).contains(&waits),
            "{waits}: half a second before it, in the uplink or for want of data"
        );
    }

    #[test]
    fn nothing_is_told_by_a_clock_of_no_known_pace() {
        for per_second in [2, 60, 600] {
            let mut detour = known(per_second);
            assert_eq!(detour.beyond(at(2900), stamp(per_second, 2500), Side::Network, None), Span::ZERO);
        }
    }

    #[test]
    fn a_clock_that_wraps_goes_on() {
        let mut detour = Detour::default();
        for sent in (0..=2000u64).step_by(100) {
            let value = (u32::MAX - 500).wrapping_add(sent as u32);
            assert_eq!(detour.beyond(at(sent + 30), value, Side::Network, None), Span::ZERO);
        }
    }

    #[test]
    fn a_clock_that_is_slow_by_little_is_no_way_that_grows() {
        let mut detour = Detour::default();
        // 50 ppm slow: 180 ms in an hour.
        for second in 0..=3600u64 {
            let value = (second * 1000) as u32 - (second / 20) as u32;
            let beyond = detour.beyond(at(second * 1000), value, Side::Network, None);
            assert!(beyond <= ms(1), "{beyond:?} after {second} s");
        }
    }

    /// The first second shows one length of a tick, and the first four seconds another.
    #[test]
    fn a_clock_that_is_measured_anew_makes_no_way_longer() {
        for [first, later] in [[100, 250], [100, 1000], [250, 1000]] {
            let mut detour = Detour::default();
            let mut ticks = Vec::new();
            for sent in (0..=10_000u64).step_by(100) {
                let stamp = sent.min(1000) * first / 1000 + sent.saturating_sub(1000) * later / 1000;
                let beyond = detour.beyond(at(sent + 30), stamp as u32, Side::Network, None);
                assert_eq!(beyond, Span::ZERO, "{first} and {later} ticks a second, after {sent} ms");
                ticks.extend(detour.clock.tick);
            }
            ticks.dedup();
            assert_eq!(ticks, [1000 / first, 1000 / later].map(ms));
        }
    }

    #[test]
    fn a_clock_that_was_set_is_begun_with_anew() {
        let mut detour = known(1000);
        // Set back by a second: no ACK takes that long within a round trip of 80 ms.
        assert_eq!(detour.beyond(at(3030), stamp(1000, 2000), Side::Network, Some(ms(80))), Span::ZERO);
        assert!(detour.least.is_none() && detour.clock.first.is_none());
    }
}
