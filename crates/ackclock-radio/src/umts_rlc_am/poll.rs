//! Polls, with which the transmitter requests a STATUS (TS 25.322 sections 9.7.1 and 11.3.2).

use ackclock_core::{ConfigError, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{TIMERS, in_bounds};
use super::sn::Sn;

/// Rules for when the transmitter requests a STATUS (polls).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PollConfig {
    /// Timer_Poll: time after which an unanswered poll is repeated.
    pub timer: Span,
    /// Timer_Poll_Prohibit: minimum time between two polls; 0s: no minimum.
    pub prohibit: Span,
    /// Timer_Poll_Periodic: period of polls; 0s: no periodic polls.
    pub period: Span,
    /// Whether a poll is sent with the last PDU in the buffer, and with the last PDU that the window allows.
    pub last_pdu: bool,
    /// Whether a poll is sent with the last scheduled retransmission.
    pub last_retransmission: bool,
    /// Poll_Window: share of the window in use, in percent, from which on PDUs are sent with a poll; 0: no window
    /// polls.
    pub window_percent: u32,
    /// PDUs that are sent with a poll above `window_percent`: all ("every-pdu"), or the first each time the share is
    /// reached ("first").
    pub window_polls: WindowPolls,
    /// Poll_PDU: number of PDUs between two polls; 0: no polls by PDU count.
    pub every_pdus: u32,
    /// Poll_SDU: number of packets between two polls; 0: no polls by packet count.
    pub every_sdus: u32,
}

/// Choice of PDUs that are sent with a poll above a share of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowPolls {
    /// Every PDU above the window share is sent with a poll, as in TS 25.322 section 9.6.
    #[default]
    EveryPdu,
    /// Only the first PDU is sent with a poll each time the window share is reached.
    First,
}

impl Default for PollConfig {
    fn default() -> Self {
        Self {
            timer: Span::from_millis(200),
            prohibit: Span::ZERO,
            period: Span::ZERO,
            last_pdu: true,
            last_retransmission: true,
            window_percent: 50,
            window_polls: WindowPolls::default(),
            every_pdus: 0,
            every_sdus: 1,
        }
    }
}

impl PollConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        in_bounds("timer", self.timer, TIMERS)?;
        if self.period != Span::ZERO {
            in_bounds("period", self.period, TIMERS)?;
        }
        if self.prohibit > TIMERS[1] {
            return Err(ConfigError::new(
                "prohibit",
                format!("{} is more than {}", self.prohibit, TIMERS[1]),
            ));
        }
        if !(self.last_pdu && self.last_retransmission) && self.period == Span::ZERO {
            let message = "false: without a `period` the last PDUs would never be polled";
            let key = if self.last_pdu { "last_retransmission" } else { "last_pdu" };
            return Err(ConfigError::new(key, message));
        }
        if self.window_percent > 100 {
            return Err(ConfigError::new(
                "window_percent",
                format!("{} is not 0 to 100", self.window_percent),
            ));
        }
        Ok(())
    }
}

/// Triggers and timers of polls.
#[derive(Debug)]
pub(super) struct Polling {
    config: PollConfig,
    /// Whether a poll was triggered and must be sent with the next PDU.
    wanted: bool,
    /// Timer_Poll: time at which an unanswered poll is repeated.
    unanswered: Option<Time>,
    /// VT(S) when the last poll was sent.
    asked_before: Sn,
    /// Timer_Poll_Prohibit: earliest time of the next poll.
    prohibited: Time,
    /// Timer_Poll_Periodic: time of the next periodic poll.
    next_periodic: Option<Time>,
    /// VT(PDU): number of PDUs sent since the last poll triggered by this count.
    pdus: u32,
    /// VT(SDU): number of SDUs sent since the last poll triggered by this count.
    sdus: u32,
    /// Whether the used share of the window exceeds the threshold.
    beyond: bool,
}

/// Properties of a PDU that is about to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Whether no further new PDU, or no further retransmission, can be sent after this PDU.
    pub(super) last: bool,
    /// Whether the PDU is a retransmission.
    pub(super) is_repeated: bool,
    /// Number of SDUs that end in the PDU.
    pub(super) ends: u16,
    /// Count of sequence numbers from VT(A) to VT(S), inclusive, before the PDU is sent.
    pub(super) used: u16,
    /// Window size, PDUs.
    pub(super) window: u16,
    /// VT(S) after the PDU is sent.
    pub(super) vt_s: Sn,
}

impl Polling {
    pub(super) fn new(config: PollConfig) -> Self {
        Self {
            next_periodic: (config.period != Span::ZERO).then_some(Time::ZERO + config.period),
            config,
            wanted: false,
            unanswered: None,
            asked_before: Sn::ZERO,
            prohibited: Time::ZERO,
            pdus: 0,
            sdus: 0,
            beyond: false,
        }
    }

    /// Whether a PDU sent at `now` must have a poll; if so, starts the poll timers.
    pub(super) fn polls(&mut self, now: Time, sent: Sent) -> bool {
        self.wanted |= self.triggers(sent);
        let polls = self.wanted && now >= self.prohibited;
        if polls {
            self.wanted = false;
            self.await_answer(now, sent.vt_s);
            self.prohibited = now + self.config.prohibit;
        }
        polls
    }

    /// Number of new PDUs that are sent next with a poll each, or without one each, if no SDU ends in them and none is the
    /// last PDU: `used` PDUs are unacknowledged, and `window` may be. Zero means that only the next PDU is known.
    pub(super) fn alike(&self, used: u16, window: u16) -> u32 {
        let PollConfig { every_pdus, window_percent, window_polls, prohibit, .. } = self.config;
        let reached = (window_percent * u32::from(window)).div_ceil(100);
        if reached > 0 && u32::from(used) + 1 >= reached {
            let each = window_polls == WindowPolls::EveryPdu && prohibit == Span::ZERO;
            return if each { u32::MAX } else { 0 };
        }
        let below = |threshold: u32, now: u32| match threshold {
            0 => u32::MAX,
            _ => (threshold - 1).saturating_sub(now),
        };
        if self.wanted { 0 } else { below(every_pdus, self.pdus).min(below(reached, used.into())) }
    }

    /// Whether the PDUs of a run that is sent at `now` must have a poll. The run has `before` PDUs [alike](Self::alike), and
    /// then the PDU `last`.
    pub(super) fn run_polls(&mut self, now: Time, before: u16, last: Sent) -> bool {
        self.pdus += u32::from(before);
        if self.config.every_pdus > 0 {
            self.pdus %= self.config.every_pdus;
        }
        self.polls(now, last)
    }

    fn triggers(&mut self, sent: Sent) -> bool {
        let config = &self.config;
        let last = if sent.is_repeated { config.last_retransmission } else { config.last_pdu };
        self.pdus += 1;
        self.sdus += u32::from(if sent.is_repeated { 0 } else { sent.ends });
        let reaches = |sent: u32, every: u32| every > 0 && sent >= every;
        let by_pdus = reaches(self.pdus, config.every_pdus);
        let by_sdus = reaches(self.sdus, config.every_sdus);
        self.pdus *= u32::from(!by_pdus);
        self.sdus *= u32::from(!by_sdus);
        let beyond = reaches(u32::from(sent.used) * 100, config.window_percent * u32::from(sent.window));
        let was_beyond = std::mem::replace(&mut self.beyond, beyond);
        let by_window = beyond && (config.window_polls == WindowPolls::EveryPdu || !was_beyond);
        (sent.last && last) || by_pdus || by_sdus || by_window
    }

    /// Starts Timer_Poll; `vt_s` is the next sequence number to be sent.
    pub(super) fn await_answer(&mut self, now: Time, vt_s: Sn) {
        self.unanswered = Some(now + self.config.timer);
        self.asked_before = vt_s;
    }

    /// Processes a STATUS after which VT(A) is `vt_a`. Stops Timer_Poll if all PDUs sent before the poll have arrived,
    /// or if `lists` reports the last of those PDUs as missing.
    pub(super) fn on_status(&mut self, vt_a: Sn, vt_s: Sn, lists: impl Fn(Sn) -> bool) {
        let open = vt_s.above(vt_a);
        let all_arrived = vt_s.above(self.asked_before) >= open;
        let last = self.asked_before.plus(Sn::MOST);
        if all_arrived || lists(last) {
            self.unanswered = None;
        }
    }

    /// Processes timers that have expired by `now`.
    pub(super) fn expire(&mut self, now: Time) {
        if self.unanswered.is_some_and(|deadline| deadline <= now) {
            self.unanswered = None;
            self.wanted = true;
        }
        let period = self.config.period;
        if let Some(next) = self.next_periodic.filter(|&next| next <= now) {
            self.wanted = true;
            self.next_periodic = Some(next + period * (now.since(next).as_nanos() / period.as_nanos() + 1));
        }
    }

    /// Discards the state of sent PDUs; the periodic timer continues.
    pub(super) fn reset(&mut self) {
        *self = Self { next_periodic: self.next_periodic, ..Self::new(self.config.clone()) };
    }

    /// Cancels a triggered poll, because all PDUs are acknowledged.
    pub(super) const fn drop_wish(&mut self) {
        self.wanted = false;
        self.unanswered = None;
    }

    /// Whether a triggered poll may be sent at `now`.
    pub(super) fn is_wanted(&self, now: Time) -> bool {
        self.wanted && now >= self.prohibited
    }

    /// Whether a poll is triggered, waits for its answer, or will be sent by the periodic timer.
    pub(super) const fn is_active(&self) -> bool {
        self.wanted || self.unanswered.is_some() || self.next_periodic.is_some()
    }

    /// Time at which the next poll is due if PDUs are unacknowledged.
    pub(super) fn due(&self) -> Time {
        let wanted = if self.wanted { self.prohibited } else { Time::NEVER };
        let timers = [self.unanswered, self.next_periodic].into_iter().flatten();
        timers.fold(wanted, Time::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PDU within an SDU that is sent while `used` PDUs are unacknowledged.
    fn within(used: u16, window: u16) -> Sent {
        Sent { last: false, is_repeated: false, ends: 0, used: used + 1, window, vt_s: Sn::ZERO }
    }

    /// Checks a run that is sent after `pdus` PDUs without a poll.
    fn check(config: &PollConfig, pdus: u32, used: u16, window: u16) {
        let name = format!("{config:?} {pdus} {used} {window}");
        let polling = || Polling { pdus, ..Polling::new(config.clone()) };
        let count = polling().alike(used, window).min((window - 1 - used).into()) as u16;
        let (mut apart, mut together) = (polling(), polling());
        if count > 0 {
            let each: Vec<_> =
                (0..count).map(|step| apart.polls(Time::ZERO, within(used + step, window))).collect();
            let polls = together.run_polls(Time::ZERO, count - 1, within(used + count - 1, window));
            assert!(each.iter().all(|&one| one == polls), "{name} {each:?}");
            assert_eq!(format!("{together:?}"), format!("{apart:?}"), "{name}");
        }
        // The next PDU has a poll, or is the last one that the window allows.
        assert!(
            used + count + 1 == window || apart.polls(Time::ZERO, within(used + count, window)),
            "{name}"
        );
    }

    #[test]
    fn pdus_of_a_run_have_the_polls_that_they_have_one_by_one() {
        for (every_pdus, window_percent, window) in
            [(0, 0, 8), (5, 0, 8), (0, 50, 9), (7, 50, 10), (3, 90, 2)]
        {
            let config = PollConfig { every_pdus, window_percent, every_sdus: 0, ..PollConfig::default() };
            for (pdus, used) in
                (0..every_pdus.max(1)).flat_map(|pdus| (0..window).map(move |used| (pdus, used)))
            {
                check(&config, pdus, used, window);
            }
        }
    }
}
