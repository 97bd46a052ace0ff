//! The way of a loop on which the queue does not stand: how much longer than the least it took.
//!
//! A loop leads over two ways, and the queue stands on one of them. What waits on the other, as ACKs do in an uplink that varies, must not be taken to wait
//! in the queue; nor must the time in which a source has nothing to send. Between the two ways stands an end that stamps what it sends with its
//! clock (TSval, RFC 7323 section 3): the mobile where the box is before the queue, the server where it is behind it. The stamp says how long each way took,
//! but for a constant that belongs to the clock; so only differences to the least are read.

use ackclock_core::{Span, Time};

use super::Side;

/// The way of a loop on which the queue does not stand.
#[derive(Debug, Default)]
pub(super) struct Detour {
    clock: Clock,
    /// The least of it so far, on a scale of the clock's own, and when that was.
    least: Option<(Time, i64)>,
}

/// Two clocks differ by so much at most; the least rises by it, so that one that is slow is not taken for a way that grows.
const DRIFT: f64 = 1e-4;

impl Detour {
    /// A segment with the stamp `value` passes and closes a loop of the length `all`, if it closes one: how much longer than the least the way
    /// took, a tick of the clock left out. Nothing is known before the pace of the clock is.
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
            // No part is longer than the whole: the clock was set.
            *self = Self::default();
            return Span::ZERO;
        }
        beyond
    }
}

/// The clock that one end stamps with.
#[derive(Debug, Default)]
struct Clock {
    /// The first stamp, and when it passed.
    first: Option<(Time, u32)>,
    /// The latest, as ticks since the first.
    ticks: i64,
    /// What a tick is, once that is known, and for how long the clock had been watched when it was last measured.
    tick: Option<Span>,
    watched: Span,
}

/// The ticks of clocks in use: a millisecond, that of Linux, and others down to which a way can be told from another.
const TICKS: [Span; 4] =
    [Span::from_millis(1), Span::from_millis(4), Span::from_millis(10), Span::from_micros(1)];
/// A tick is measured as well as that before it is known.
const TOLERANCE: f64 = 0.25;
/// It is measured after so long, and each time that twice as long has passed.
const FIRST_MEASURED: Span = Span::from_secs(1);

impl Clock {
    /// When a segment was sent with the stamp `value`: nanoseconds that are wrong by the same for all.
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

/// The tick of a clock that made so many in a time.
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

    /// A detour whose clock has been watched for two seconds: it shows 7000 at the beginning, and what is stamped passes 30 ms later.
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
            // The drift of two seconds and the tick are left out.
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
        // 50 of a million behind: 180 ms in an hour.
        for second in 0..=3600u64 {
            let value = (second * 1000) as u32 - (second / 20) as u32;
            let beyond = detour.beyond(at(second * 1000), value, Side::Network, None);
            assert!(beyond <= ms(1), "{beyond:?} after {second} s");
        }
    }

    #[test]
    fn a_clock_that_was_set_is_begun_with_anew() {
        let mut detour = known(1000);
        // Set back by a second: no ACK takes as long within a round trip of 80 ms.
        assert_eq!(detour.beyond(at(3030), stamp(1000, 2000), Side::Network, Some(ms(80))), Span::ZERO);
        assert!(detour.least.is_none() && detour.clock.first.is_none());
    }
}
