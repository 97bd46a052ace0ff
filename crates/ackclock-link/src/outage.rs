//! # Outages
//!
//! ## Source
//! Source: the radio link of the RNF proxy documents, with piecewise constant bandwidth and outages (`links.md` section
//! 10).
//!
//! ## What it does
//! During an outage the rate is zero and nothing is lost: a packet in transmission pauses and continues after the
//! outage. An outage happens once or periodically.
//!
//! ## Differences from the source
//! The model does not differ from the source.
//!
//! ## Validation
//! Unit tests compare start and end times worked out by hand.

use ackclock_core::{ConfigError, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An interval in which the rate of the link is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Time at which the first outage starts.
    pub at: Span,
    /// Duration of each outage.
    #[serde(rename = "for")]
    pub lasts: Span,
    /// Time from the start of one outage to the start of the next; without this key the outage happens once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Span>,
}

/// Whether the radio is in an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Radio {
    On,
    Out,
}

/// Checked list of all outages of a link.
#[derive(Clone, Debug, Default)]
pub struct Outages(Vec<Outage>);

/// Maximum number of starts and ends of outages that are examined one by one.
const MOST_CHANGES: u32 = 1 << 20;

const SHORTEST_PERIOD: Span = Span::from_millis(1);

impl Outages {
    /// Checks the list of outages from a link's table.
    pub fn new(outages: &[Outage]) -> Result<Self, ConfigError> {
        let error = |index: usize, key: &str, message: &str| {
            Err(ConfigError::new(format!("outages[{index}]{key}"), message))
        };
        for (index, outage) in outages.iter().enumerate() {
            if outage.lasts == Span::ZERO {
                return error(index, ".for", "an outage must last longer than 0");
            }
            if outage.every.is_some_and(|every| every <= outage.lasts || every < SHORTEST_PERIOD) {
                return error(index, ".every", "must be longer than `for`, and at least 1ms");
            }
        }
        let all = Self(outages.to_vec());
        if all.share_on() <= 0.0 {
            return Err(ConfigError::new("outages", "together they leave no time without outage"));
        }
        Ok(all)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// State of the radio at `now`, and a time until which this state holds at least.
    pub(crate) fn at(&self, now: Time) -> (Radio, Time) {
        let (mut radio, mut until) = (Radio::On, Time::NEVER);
        for outage in &self.0 {
            let (this, changes) = outage.at(now);
            until = until.min(changes);
            if this == Radio::Out {
                radio = Radio::Out;
            }
        }
        (radio, until)
    }

    /// First time at or after `from` that is not in an outage.
    pub fn on_from(&self, mut from: Time) -> Time {
        while let (Radio::Out, until) = self.at(from) {
            from = until;
        }
        from
    }

    /// Share of time without outage in the long run, calculated from periodic outages.
    pub fn share_on(&self) -> f64 {
        let lasting = Self(self.0.iter().filter(|outage| outage.every.is_some()).copied().collect());
        match lasting.0.as_slice() {
            [] => 1.0,
            [Outage { lasts, every: Some(every), .. }] => 1.0 - lasts.as_secs_f64() / every.as_secs_f64(),
            several => {
                // The share is evaluated after all outages have started, over many times the longest period.
                let longest = |of: fn(&Outage) -> Option<Span>| {
                    several.iter().filter_map(of).max().unwrap_or(Span::ZERO)
                };
                let (begun, long) = (longest(|outage| Some(outage.at)), longest(|outage| outage.every) * 60);
                let on = lasting.on_until(begun + long).saturating_sub(lasting.on_until(begun));
                on.as_secs_f64() / long.as_secs_f64()
            }
        }
    }

    /// Time without outage from time zero until `until`. After [`MOST_CHANGES`] starts and ends of outages the time is
    /// extrapolated.
    pub fn on_until(&self, until: Span) -> Span {
        let end = Time::ZERO + until;
        let (mut now, mut on) = (Time::ZERO, Span::ZERO);
        for _ in 0..MOST_CHANGES {
            let (radio, changes) = self.at(now);
            let changes = changes.min(end);
            if radio == Radio::On {
                on += changes.since(now);
            }
            now = changes;
            if now == end {
                return on;
            }
        }
        let seen = now.since(Time::ZERO);
        let more =
            u128::from(on.as_nanos()) * u128::from(until.as_nanos()) / u128::from(seen.as_nanos().max(1));
        Span::from_nanos(u64::try_from(more).unwrap_or(u64::MAX))
    }
}

impl Outage {
    fn at(&self, now: Time) -> (Radio, Time) {
        let first = Time::ZERO + self.at;
        if now < first {
            return (Radio::On, first);
        }
        let begun = match self.every {
            Some(every) => now - Span::from_nanos(now.since(first).as_nanos() % every.as_nanos()),
            None => first,
        };
        let ends = begun + self.lasts;
        match self.every {
            _ if now < ends => (Radio::Out, ends),
            Some(every) => (Radio::On, begun + every),
            None => (Radio::On, Time::NEVER),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(n: u64) -> Time {
        Time::ZERO + Span::from_secs(n)
    }

    fn outage(at: u64, lasts: u64, every: Option<u64>) -> Outage {
        Outage { at: Span::from_secs(at), lasts: Span::from_secs(lasts), every: every.map(Span::from_secs) }
    }

    #[test]
    fn outages_begin_end_and_come_again() {
        let outages = Outages::new(&[outage(10, 2, Some(60)), outage(11, 5, None)]).unwrap();
        for (now, radio, until) in [
            (0, Radio::On, 10),
            (10, Radio::Out, 11),
            (11, Radio::Out, 12),
            (12, Radio::Out, 16),
            (16, Radio::On, 70),
            (71, Radio::Out, 72),
            (72, Radio::On, 130),
        ] {
            assert_eq!(outages.at(secs(now)), (radio, secs(until)), "at {now} s");
        }
        assert!((outages.share_on() - 58.0 / 60.0).abs() < 1e-12);
        assert_eq!([5, 10, 15].map(|now| outages.on_from(secs(now))), [5, 16, 16].map(secs));
    }

    #[test]
    fn the_time_between_outages_counts_overlaps_once() {
        // 5 s and 6 s of every 10 s, both from the start: 4 s remain.
        let outages = Outages::new(&[outage(0, 5, Some(10)), outage(0, 6, Some(10))]).unwrap();
        assert!((outages.share_on() - 0.4).abs() < 1e-9);
        assert_eq!(outages.on_until(Span::from_secs(18)), Span::from_secs(6));
        // Half an hour of every two hours remains.
        let long = Outages::new(&[outage(0, 3600, Some(7200)), outage(1800, 3600, Some(7200))]).unwrap();
        assert!((long.share_on() - 0.25).abs() < 1e-9);
        let once = Outages::new(&[outage(10, 40, None)]).unwrap();
        assert_eq!(once.on_until(Span::from_secs(60)), Span::from_secs(20));
        assert!(Outages::new(&[outage(0, 5, Some(10)), outage(5, 5, Some(10))]).is_err());
    }

    #[test]
    fn outages_that_leave_nothing_are_refused() {
        for (list, path) in [
            (vec![outage(0, 0, None)], "outages[0].for"),
            (vec![outage(0, 1, None), outage(0, 5, Some(5))], "outages[1].every"),
            (vec![outage(0, 5, Some(10)), outage(5, 5, Some(10))], "outages"),
        ] {
            assert_eq!(Outages::new(&list).unwrap_err().path, path);
        }
    }
}
