//! Uplink that the base station schedules: the terminal sends only in TTIs for which it got a grant.
//!
//! A terminal that has data and no grant sends a scheduling request (TS 36.321 section 5.4.4) at its next opportunity:
//! opportunities have a period, and a random phase for each user. Each PDU reports the data that waits behind it (section
//! 5.4.5). The base station answers a request or report by a grant of the reported size, which the terminal can use
//! after a delay. Data that arrives in between waits for the next report or request, so that small packets leave in
//! clumps.
//!
//! The size of a report is the upper end of its level in table 6.1.3.1-1, which a formula gives. The request reports the
//! size as well: the base station does not have to guess the first grant. A grant that finds no data is lost.

use std::collections::VecDeque;

use ackclock_core::{Config, ConfigError, Span, Time};
use ackclock_link::errors::ErrorContext;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cell::ControlSlots;

/// Scheduling of an uplink by grants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GrantsConfig {
    /// Period of a user's opportunities for a scheduling request; the phase is drawn for each user.
    pub period: Span,
    /// Delay from a scheduling request, or from a TTI with a buffer status report, until the first TTI that it is granted.
    pub delay: Span,
}

impl Default for GrantsConfig {
    /// Period of 20 ms (TS 36.213 table 10.1.5-1), and delay of 8 ms: 4 ms until the grant, and 4 ms more until the TTI
    /// (section 8).
    fn default() -> Self {
        Self { period: Span::from_millis(20), delay: Span::from_millis(8) }
    }
}

/// Maximum of the period and of the delay.
const MOST: Span = Span::from_secs(1);

impl Config for GrantsConfig {
    fn check(&self) -> Result<(), ConfigError> {
        for (key, value) in [("period", self.period), ("delay", self.delay)] {
            if value == Span::ZERO || value > MOST {
                return Err(ConfigError::new(key, format!("{value} is not above 0s and at most {MOST}")));
            }
        }
        Ok(())
    }
}

impl GrantsConfig {
    /// Checks that opportunities lie at the start of TTIs, and that all of them can lie in TTIs with data.
    pub(super) fn check_ttis(&self, tti: Span, control: Option<&ControlSlots>) -> Result<(), ConfigError> {
        let (of, pattern) = match control.map(ControlSlots::period) {
            None => (format!("tti = {tti}"), tti),
            Some(Some(ttis)) => (format!("the {} of `control`", tti * ttis), tti * ttis),
            Some(None) => {
                let message = "opportunities need `control` with a pattern of TTIs, not a share";
                return Err(ConfigError::new("period", message));
            }
        };
        if self.period.as_nanos().is_multiple_of(pattern.as_nanos()) {
            return Ok(());
        }
        Err(ConfigError::new("period", format!("{} is not a multiple of {of}", self.period)))
    }

    /// Mean time from the arrival of a packet at an idle terminal until its TTI.
    pub(super) fn mean_delay(&self) -> Span {
        self.period / 2 + self.delay
    }
}

/// Grants of one user.
pub(super) struct Scheduled {
    period: Span,
    delay: Span,
    /// Time of the first opportunity for a scheduling request.
    phase: Span,
    /// Grants, each with the time from which it can be used, and its size in octets.
    grants: VecDeque<(Time, u32)>,
    /// Time from which the terminal had data when its next TTI was last planned.
    wanted: Time,
}

impl Scheduled {
    /// Creates the grants of a user whose stream of errors has the name of `errors`.
    pub(super) fn new(
        config: &GrantsConfig,
        tti: Span,
        control: Option<&ControlSlots>,
        errors: ErrorContext<'_>,
    ) -> Self {
        let GrantsConfig { period, delay } = *config;
        let mut stream = errors.streams.stream(&errors.name.replacen("errors", "grants", 1));
        let has_data = |tti: &u64| control.is_none_or(|control| control.first_free(*tti) == *tti);
        let mut opportunities = (0..period.as_nanos() / tti.as_nanos()).filter(has_data);
        // The configuration check accepts only periods with a TTI that has data.
        let drawn = stream.bits() % (opportunities.clone().count() as u64).max(1);
        let phase = tti * opportunities.nth(drawn as usize).unwrap_or_default();
        Self { period, delay, phase, grants: VecDeque::new(), wanted: Time::NEVER }
    }

    /// Plans the next TTI of a terminal that has data from `wanted` on; [`Time::NEVER`] without data. Returns the time of
    /// a grant or of an opportunity for a request, not before `from`.
    pub(super) fn plan(&mut self, wanted: Time, from: Time) -> Time {
        // A grant for a time at which the terminal had no data is lost.
        let before = std::mem::replace(&mut self.wanted, wanted).min(from);
        while self.grants.pop_front_if(|&mut (at, _)| at < before).is_some() {}
        match self.grants.front() {
            _ if wanted == Time::NEVER => Time::NEVER,
            Some(&(at, _)) => at.max(wanted).max(from),
            None => self.opportunity(wanted.max(from)),
        }
    }

    /// First opportunity for a scheduling request at or after `from`.
    fn opportunity(&self, from: Time) -> Time {
        let since = from.as_nanos().saturating_sub(self.phase.as_nanos());
        Time::ZERO + self.phase + self.period * since.div_ceil(self.period.as_nanos())
    }

    /// Whether `at` is an opportunity for a scheduling request.
    pub(super) fn may_request(&self, at: Time) -> bool {
        self.opportunity(at) == at
    }

    /// Takes the octets that are granted for the TTI at `at`, at most `room`.
    pub(super) fn take(&mut self, at: Time, room: u32) -> u32 {
        let mut taken = 0;
        while let Some((from, octets)) = self.grants.front_mut()
            && *from <= at
            && taken < room
        {
            let part = (*octets).min(room - taken);
            taken += part;
            *octets -= part;
            if *octets == 0 {
                self.grants.pop_front();
            }
        }
        taken
    }

    /// Reports at `at` that `waiting` octets wait. The base station grants what it has not granted yet.
    pub(super) fn report(&mut self, at: Time, waiting: u32) {
        let granted: u32 = self.grants.iter().map(|&(_, octets)| octets).sum();
        if waiting > granted {
            self.grants.push_back((at + self.delay, level(waiting - granted)));
        }
    }

    /// Loses all grants.
    pub(super) fn clear(&mut self) {
        self.grants.clear();
    }
}

/// Smallest and largest level of a buffer status report, octets, and number of steps between them.
const LEVELS: [f64; 3] = [10.0, 150_000.0, 61.0];

/// Upper end of the level of a buffer status report of `octets` octets. Larger reports are exact.
fn level(octets: u32) -> u32 {
    let [least, most, steps] = LEVELS;
    let octets_of = |step: f64| libm::ceil(least * libm::pow(most / least, step / steps)) as u32;
    if f64::from(octets) > most {
        return octets;
    }
    let step = libm::ceil(steps * libm::log(f64::from(octets) / least) / libm::log(most / least)).max(0.0);
    // Rounding may select the level below.
    if octets_of(step) < octets { octets_of(step + 1.0) } else { octets_of(step) }
}

#[cfg(test)]
mod tests {
    use ackclock_core::Streams;

    use super::*;
    use ackclock_link::NoFiles;

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    fn scheduled() -> Scheduled {
        let streams = &Streams::new(1, 0);
        let errors = ErrorContext { streams, name: "up/errors", files: &NoFiles, block: Span::ZERO };
        Scheduled {
            phase: Span::from_millis(3),
            ..Scheduled::new(&GrantsConfig::default(), Span::from_millis(1), None, errors)
        }
    }

    #[test]
    fn levels_are_those_of_table_6_1_3_1_1() {
        for (octets, expected) in
            [(1, 10), (10, 10), (11, 12), (13, 14), (15, 17), (52, 57), (149_000, 150_000)]
        {
            assert_eq!(level(octets), expected, "{octets}");
        }
        assert_eq!(level(200_000), 200_000);
    }

    #[test]
    fn a_terminal_without_a_grant_waits_for_an_opportunity_and_the_grant() {
        let mut own = scheduled();
        assert_eq!(own.plan(ms(4), Time::ZERO), ms(23));
        assert!(own.may_request(ms(23)) && !own.may_request(ms(24)));
        own.report(ms(23), 100);
        assert_eq!(own.plan(ms(4), ms(24)), ms(31));
        // 100 octets are in the level up to 107.
        assert_eq!((own.take(ms(30), 1000), own.take(ms(31), 1000), own.take(ms(31), 1000)), (0, 107, 0));
    }

    #[test]
    fn a_large_grant_lasts_for_several_ttis_and_is_not_granted_twice() {
        let mut own = scheduled();
        own.report(ms(3), 200_000);
        assert_eq!(own.take(ms(11), 1250), 1250);
        own.report(ms(11), 200_000 - 1250);
        assert_eq!(own.grants, [(ms(11), 198_750)]);
        own.report(ms(12), 200_000);
        assert_eq!(own.grants, [(ms(11), 198_750), (ms(20), level(1250))]);
    }

    #[test]
    fn a_grant_that_finds_no_data_is_lost() {
        let mut own = scheduled();
        own.report(ms(3), 100);
        assert_eq!(own.plan(Time::NEVER, ms(4)), Time::NEVER);
        assert_eq!(own.plan(ms(15), ms(15)), ms(23));
    }
}
