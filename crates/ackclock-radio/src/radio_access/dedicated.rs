//! A dedicated channel sends the TTIs of one user in one direction. A TTI is lost completely, or each of its PDUs
//! separately.
//!
//! TTIs start at multiples of their length; a TTI without data needs no simulation. A TTI that starts at t arrives
//! completely at t + TTI + delay. A TTI may contain all data that arrived, or entered the buffer, before the TTI
//! starts. A timer that expires between two TTI starts takes effect in the later TTI.
//!
//! With `grants`, the base station schedules the TTIs (`scheduled`).
//!
//! With `harq`, a TTI that failed is sent again, and PDUs arrive in the order sent (`repeated`).

use std::collections::VecDeque;
use std::collections::vec_deque::Iter;

use ackclock_core::results::RadioCounts;
use ackclock_core::{Config, ConfigError, Rate, Size, Span, Time};
use ackclock_link::bearer::{Change, ChangeContext, DedicatedChange, Direction};
use ackclock_link::errors::{AnyErrorProcess, ErrorContext, ErrorProcess, Errors};
use ackclock_link::{Fate, Files, OutageKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::allocation::AllocationConfig;
use super::filling::{Filling, OfChannel, Run};
use super::repeated::{Landed, Repeated};
use super::scheduled::{GrantsConfig, Scheduled};
use super::streams::of_user;
use crate::cell::{ControlSlots, HarqConfig, RepetitionsAs};
use crate::umts_rlc_am::{Data, LossCause, Pdu, Places, RlcConfig, in_bounds};

/// A channel of constant rate for a single user.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DedicatedConfig {
    /// Payload rate of the PDUs; the rate with their headers if a PDU fills a TTI.
    pub rate: Rate,
    /// Transmission time interval: all PDUs of a TTI are sent together.
    pub tti: Span,
    /// One-way delay from the end of a TTI until the far end processes its PDUs.
    pub delay: Span,
    /// Errors of the channel: a probability, or an error process, evaluated for each TTI or PDU.
    pub errors: Errors,
    /// Unit of loss: "tti" loses all PDUs of a TTI together, "pdu" loses each PDU separately.
    pub errors_by: ErrorsBy,
    /// HARQ: a TTI that failed is sent again. The errors of TTIs are then those of `harq`, not `errors`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harq: Option<HarqConfig>,
    /// TTIs in which nothing is sent: a share such as "10%", or a pattern that repeats, "--------DD", in which only the TTIs
    /// D have data, as the uplink of a TDD cell. Needs `harq`. `rate` is that of the TTIs with data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<ControlSlots>,
    /// Scheduling of the uplink: the terminal requests grants and sends only in granted TTIs. PDUs must fill their TTI
    /// (`rlc.pdu = "grant"`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grants: Option<GrantsConfig>,
    /// Allocation of each user's downlink rate by the number of active users, in place of `rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation: Option<AllocationConfig>,
}

/// Unit of data that the radio loses together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorsBy {
    /// All PDUs of a TTI are lost together.
    #[default]
    Tti,
    /// Each PDU is lost separately.
    Pdu,
}

/// Maximum number of PDUs in a TTI.
const MOST_PDUS: u64 = 1000;
/// Maximum size of a PDU that fills a TTI, octets.
const MOST_OCTETS: u64 = 65_535;
/// Length of a TTI, from a slot of 5G NR with a subcarrier spacing of 120 kHz (TS 38.211 section 4.3.2) on.
const TTIS: [Span; 2] = [Span::from_micros(125), Span::from_secs(1)];

impl Default for DedicatedConfig {
    /// Returns a channel of 384 kbit/s with typical settings: a tenth of the blocks is lost.
    fn default() -> Self {
        Self {
            rate: Rate::from_bps(384_000),
            tti: Span::from_millis(10),
            delay: Span::from_millis(15),
            errors: Errors::Share(ackclock_link::Loss::of(0.1)),
            errors_by: ErrorsBy::Tti,
            harq: None,
            control: None,
            grants: None,
            allocation: None,
        }
    }
}

impl Config for DedicatedConfig {
    fn check(&self) -> Result<(), ConfigError> {
        self.errors.check().map_err(|error| error.under("errors"))?;
        self.allocation.iter().try_for_each(Config::check).map_err(|error| error.under("allocation"))?;
        self.check_harq()?;
        in_bounds("tti", self.tti, TTIS)?;
        if self.control.is_some() && self.harq.is_none() {
            return Err(ConfigError::new("control", "only a channel with `harq` can have TTIs without data"));
        }
        let check =
            |grants: &GrantsConfig| grants.check().and(grants.check_ttis(self.tti, self.control.as_ref()));
        self.grants.iter().try_for_each(check).map_err(|error| error.under("grants"))?;
        if self.delay > TTIS[1] {
            return Err(ConfigError::new("delay", format!("{} is more than {}", self.delay, TTIS[1])));
        }
        Ok(())
    }

    fn complete(self) -> Result<Self, ConfigError> {
        let errors = self.errors.complete().map_err(|error| error.under("errors"))?;
        let harq = self.harq.map(HarqConfig::complete).transpose().map_err(|error| error.under("harq"))?;
        Ok(Self { errors, harq, ..self })
    }
}

impl DedicatedConfig {
    /// Returns an error for a key that has no effect with HARQ.
    fn check_harq(&self) -> Result<(), ConfigError> {
        let Some(harq) = &self.harq else { return Ok(()) };
        harq.check().map_err(|error| error.under("harq"))?;
        let usual = Self::default();
        let said = [
            ("errors", self.errors != usual.errors, "`harq.error` has the errors of a TTI"),
            ("errors_by", self.errors_by != usual.errors_by, "HARQ sends a TTI again as a whole"),
            ("harq.repetitions", harq.repetitions != RepetitionsAs::default(), "no scheduler counts them"),
        ];
        match said.into_iter().find(|(_, said, _)| *said) {
            Some((key, _, why)) => {
                Err(ConfigError::new(key, format!("{why}: leave this key at its default")))
            }
            None => Ok(()),
        }
    }

    /// Payload rate of a user at the start.
    fn start_rate(&self) -> Rate {
        self.allocation.as_ref().map_or(self.rate, |allocation| allocation.steps[0])
    }

    /// Payload rate of each of `users` users who all have data.
    fn rate_among(&self, users: u64) -> Rate {
        self.allocation.as_ref().map_or(self.rate, |allocation| allocation.steps[allocation.step(users)])
    }

    /// Number of PDUs in a TTI at the start.
    fn pdus(&self, rlc: &RlcConfig) -> u64 {
        self.pdus_at(self.start_rate(), rlc)
    }

    /// Number of PDUs, or octets if a PDU fills a TTI, in a TTI at the given rate.
    pub(super) fn pdus_at(&self, rate: Rate, rlc: &RlcConfig) -> u64 {
        rate.bytes_in(self.tti) / u64::from(rlc.unit()[0].max(1))
    }

    /// Checks that a TTI holds a whole number of PDUs at each rate.
    pub(crate) fn check_rates(&self, rlc: &RlcConfig) -> Result<(), ConfigError> {
        match &self.allocation {
            None => self.check_rate("rate", self.rate, rlc),
            Some(allocation) => {
                let check = |&rate| self.check_rate("allocation.steps", rate, rlc);
                allocation.steps.iter().try_for_each(check)
            }
        }
    }

    fn check_rate(&self, key: &str, rate: Rate, rlc: &RlcConfig) -> Result<(), ConfigError> {
        let (count, octets) = (self.pdus_at(rate, rlc), rlc.unit()[0]);
        let [least, most] = [rlc.least_units().into(), if rlc.grants() { MOST_OCTETS } else { MOST_PDUS }];
        let one = u64::from(octets) * 8_000_000_000 / self.tti.as_nanos();
        if (least..=most).contains(&count) && rate.as_bps().abs_diff(one * count) <= count {
            return Ok(());
        }
        let (tti, one) = (self.tti, Rate::from_bps(one));
        let unit = match rlc.grants() {
            true => "octets".to_owned(),
            false => format!("PDUs of {}", Size::Bytes(octets.into())),
        };
        let message =
            format!("{rate} is not {least} to {most} {unit} in each TTI of {tti}: a multiple of {one}");
        Err(ConfigError::new(key, message))
    }

    /// Share of the PDUs that arrive. With HARQ, the share of the TTIs that hold new data.
    fn good(&self, files: &dyn Files) -> Result<f64, ConfigError> {
        if let Some(harq) = &self.harq {
            let transmissions = harq.transmissions(files).map_err(|error| error.under("harq"))?;
            return Ok(1.0 / transmissions);
        }
        let bad = self.errors.share(files).map_err(|error| error.under("errors"))?;
        if bad >= 1.0 {
            return Err(ConfigError::new("errors", "everything is lost: nothing would ever be delivered"));
        }
        Ok(1.0 - bad)
    }

    /// Mean payload rate of the PDUs of each of `users` users that arrive while all users have data.
    pub(crate) fn nominal(
        &self,
        rlc: &RlcConfig,
        users: u64,
        files: &dyn Files,
    ) -> Result<Rate, ConfigError> {
        let octets = self.pdus_at(self.rate_among(users), rlc) * u64::from(rlc.unit()[0]);
        let rate = octets as f64 * 8.0 / self.tti.as_secs_f64() * self.good(files)?;
        Ok(Rate::from_bps_f64(self.control.as_ref().map_or(rate, |control| rate * control.free_share())))
    }

    /// Builds the error process of a channel; `context.block` is set here.
    fn error_process(
        &self,
        rlc: &RlcConfig,
        context: ErrorContext<'_>,
    ) -> Result<AnyErrorProcess, ConfigError> {
        let block = match self.errors_by {
            ErrorsBy::Tti => self.tti,
            ErrorsBy::Pdu => self.tti / self.pdus(rlc),
        };
        self.errors.build(ErrorContext { block, ..context }).map_err(|error| error.under("errors"))
    }

    /// Returns the change by which the running channels of all users get the value that `key` has here.
    pub(crate) fn changes(
        &self,
        key: DedicatedKey,
        rlc: &RlcConfig,
        users: u32,
        direction: Direction,
        ChangeContext { streams, name, files }: ChangeContext<'_>,
    ) -> Result<Change, ConfigError> {
        let side = ["down", "up"][direction as usize];
        let errors = |number| {
            let name = &of_user(&format!("{side}/{name}/errors"), number);
            let process = self.error_process(rlc, ErrorContext { streams, name, files, block: Span::ZERO });
            Ok(DedicatedChange::Errors(process?, self.good(files)?))
        };
        let change = |number| match key {
            DedicatedKey::Rate => Ok(DedicatedChange::Rate(self.rate, self.pdus(rlc) as u32)),
            DedicatedKey::Delay => Ok(DedicatedChange::Delay(self.delay)),
            DedicatedKey::Errors => errors(number),
        };
        (0..users).map(change).collect::<Result<_, _>>().map(Change::Dedicated)
    }

    /// Mean time of a packet from its arrival at an idle channel until the far end processes it.
    pub(super) fn mean_time(&self) -> Span {
        self.tti + self.delay + self.grants.as_ref().map_or(Span::ZERO, GrantsConfig::mean_delay)
    }

    /// Positions of PDUs in the TTIs of the channel.
    pub(super) fn places(&self, rlc: &RlcConfig) -> Places {
        Places::new(self.tti, self.pdus(rlc) as u32, self.delay)
    }
}

/// Key of a dedicated channel that may change while the bearer runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DedicatedKey {
    Rate,
    Delay,
    Errors,
}

impl DedicatedKey {
    /// Returns the key with this path, or the key of which the path names a part.
    pub(crate) fn of(path: &str) -> Option<Self> {
        match path.split_once('.').map_or(path, |(first, _)| first) {
            "rate" => Some(Self::Rate),
            "delay" => Some(Self::Delay),
            "errors" => Some(Self::Errors),
            _ => None,
        }
    }
}

/// Part of a TTI in flight: PDUs of one of the user's channels that were not lost.
#[derive(Clone, Copy)]
struct Part {
    /// Arrival time of the TTI.
    at: Time,
    pdus: u32,
    channel: u8,
    /// Whether the part is the last one of its TTI.
    is_last: bool,
}

/// One direction of a user's air interface.
pub(super) struct Dedicated {
    rate: Rate,
    errors: AnyErrorProcess,
    by: ErrorsBy,
    tti: Span,
    /// Number of PDUs in a TTI, or of octets if PDUs fill TTIs.
    room: u32,
    /// Delay from the end of a TTI until its PDUs have arrived.
    delay: Span,
    /// Arrival time of the last TTI before the delay last changed; no later TTI arrives earlier.
    earliest: Time,
    /// Expected share of the PDUs that arrive.
    good: f64,
    /// Start time of the next TTI with data.
    next: Time,
    /// Start time of the first TTI that was not processed yet.
    not_before: Time,
    /// Parts of the TTIs in flight.
    parts: VecDeque<Part>,
    pdus: VecDeque<Pdu>,
    /// TTIs that may be sent again; `None` without HARQ.
    harq: Option<Box<Repeated>>,
    /// TTIs in which nothing is sent.
    control: Option<ControlSlots>,
    /// Grants of the base station; `None` if the terminal may send in every TTI.
    scheduled: Option<Box<Scheduled>>,
    /// Whether PDUs fill TTIs, so that the room of a TTI is counted in octets.
    fills: bool,
    /// Start of the first TTI after the latest change.
    since: Time,
    /// Number of PDUs or octets that were sent since then.
    sent: u64,
    /// Expected number of PDUs or octets that would have arrived in unused TTIs before then.
    unused: f64,
    /// The last outage: start, end, and kind.
    outage: Option<(Time, Time, OutageKind)>,
    /// Total length of the outages before the last outage, since the latest change.
    interrupted: Span,
    arrived: u64,
    /// Number of data PDUs that were lost, without those that HARQ lost.
    lost: u64,
}

impl Dedicated {
    /// Creates a channel that draws its errors from `context`; `context.block` is set here.
    pub(super) fn new(
        config: &DedicatedConfig,
        rlc: &RlcConfig,
        context: ErrorContext<'_>,
    ) -> Result<Self, ConfigError> {
        let block = ErrorContext { block: config.tti, ..context };
        let harq = config.harq.as_ref().map(|harq| Repeated::new(harq, block)).transpose();
        Ok(Self {
            harq: harq.map_err(|error| error.under("harq"))?.map(Box::new),
            scheduled: config
                .grants
                .as_ref()
                .map(|grants| Box::new(Scheduled::new(grants, config.tti, config.control.as_ref(), context))),
            control: config.control.clone(),
            fills: rlc.grants(),
            rate: config.start_rate(),
            errors: config.error_process(rlc, context)?,
            by: config.errors_by,
            tti: config.tti,
            room: config.pdus(rlc) as u32,
            delay: config.delay,
            earliest: Time::ZERO,
            good: config.good(context.files)?,
            next: Time::NEVER,
            not_before: Time::ZERO,
            parts: VecDeque::new(),
            pdus: VecDeque::new(),
            since: Time::ZERO,
            sent: 0,
            unused: 0.0,
            outage: None,
            interrupted: Span::ZERO,
            arrived: 0,
            lost: 0,
        })
    }

    /// Changes a setting at `now`. Returns the start of the first TTI with the new value.
    pub(super) fn change(&mut self, now: Time, change: DedicatedChange) -> Time {
        let tti = self.tti.as_nanos();
        let from = Time::from_nanos((now.as_nanos() / tti + 1) * tti);
        self.unused = self.unused_until(from);
        (self.sent, self.since, self.interrupted) = (0, from, Span::ZERO);
        match change {
            DedicatedChange::Rate(rate, room) => (self.rate, self.room) = (rate, room),
            DedicatedChange::Delay(delay) => {
                self.earliest = self.earliest.max(from + self.delay);
                self.delay = delay;
            }
            DedicatedChange::Errors(errors, good) => (self.errors, self.good) = (errors, good),
        }
        from
    }

    /// Time from the start of a TTI until its PDUs have arrived.
    pub(super) fn time(&self) -> Span {
        self.tti + self.delay
    }

    /// Delay from the end of a TTI until its PDUs have arrived.
    pub(super) const fn delay(&self) -> Span {
        self.delay
    }

    /// Payload rate at `now`; zero in an outage that the transmitter notices.
    pub(super) fn rate(&self, now: Time) -> Rate {
        match self.outage {
            Some((from, until, OutageKind::Silent)) if from <= now && now < until => Rate::ZERO,
            _ => self.given_rate(),
        }
    }

    /// Number of PDUs in a TTI, or of octets if PDUs fill TTIs.
    pub(super) const fn room(&self) -> usize {
        self.room as usize
    }

    /// Number of PDUs or octets that may be sent in the TTI at `at`; 0 without a grant for this TTI.
    pub(super) fn granted(&mut self, at: Time) -> usize {
        self.scheduled.as_mut().map_or(self.room, |own| own.take(at, self.room)) as usize
    }

    /// Whether the terminal may request a grant at `at`.
    pub(super) fn may_request(&self, at: Time) -> bool {
        self.scheduled.as_ref().is_some_and(|own| own.may_request(at))
    }

    /// Whether the base station schedules the channel.
    pub(super) const fn is_scheduled(&self) -> bool {
        self.scheduled.is_some()
    }

    /// Reports to the base station at `at` that `waiting` octets wait.
    pub(super) fn report(&mut self, at: Time, waiting: u32) {
        self.scheduled.iter_mut().for_each(|own| own.report(at, waiting));
    }

    /// Loses all grants in a hand-over.
    pub(super) fn lose_grants(&mut self) {
        self.scheduled.iter_mut().for_each(|own| own.clear());
    }

    /// Start time of the next TTI with data; [`Time::NEVER`] if there is no data.
    pub(super) const fn next(&self) -> Time {
        self.next
    }

    /// Schedules the next TTI with data: at or after `wanted` and not before `from`, or when HARQ repeats a TTI.
    pub(super) fn plan(&mut self, wanted: Time, from: Time) {
        let tti = self.tti.as_nanos();
        let repeats = self.harq.as_ref().map_or(Time::NEVER, |harq| harq.due());
        let not_before = self.not_before;
        let wanted = self.scheduled.as_mut().map_or(wanted, |own| own.plan(wanted, from.max(not_before)));
        self.next = match wanted.max(from).min(repeats) {
            _ if wanted == Time::NEVER && repeats == Time::NEVER => Time::NEVER,
            first => {
                let first = first.as_nanos().div_ceil(tti);
                let next = Time::from_nanos(first * tti).max(self.not_before);
                self.usable(next)
            }
        };
    }

    /// Starts an outage from `now` to `until`, in which nothing is sent or all sent PDUs are lost.
    pub(super) fn interrupt(&mut self, now: Time, until: Time, kind: OutageKind) {
        self.interrupted = self.interrupted_until(now);
        self.outage = Some((now, until, kind));
        if self.next != Time::NEVER {
            self.next = self.usable(self.next);
        }
    }

    /// Start of the first TTI at `next` or later in which the transmitter may send. The argument is the start of a TTI.
    fn usable(&self, next: Time) -> Time {
        let next = self.after_control(next);
        match self.outage {
            Some((from, until, OutageKind::Silent)) if from <= next && next < until => {
                let tti = self.tti.as_nanos();
                self.after_control(Time::from_nanos(until.as_nanos().div_ceil(tti) * tti))
            }
            _ => next,
        }
    }

    /// Start of the first TTI at `next` or later that can have data.
    fn after_control(&self, next: Time) -> Time {
        let Some(control) = &self.control else { return next };
        let tti = self.tti.as_nanos();
        Time::from_nanos(control.first_free(next.as_nanos() / tti) * tti)
    }

    /// Total length of all outages since the latest change, up to `time`.
    fn interrupted_until(&self, time: Time) -> Span {
        let last = self.outage.map_or(Span::ZERO, |(from, until, _)| {
            let from = from.max(self.since);
            until.min(time.max(from)).since(from)
        });
        self.interrupted + last
    }

    fn fades(&self, now: Time) -> bool {
        matches!(self.outage, Some((from, until, OutageKind::Fade)) if from <= now && now < until)
    }

    /// Sends all PDUs of the TTI that starts at `now`. Returns the time at which the TTI ends.
    pub(super) fn send(&mut self, now: Time, Filling { pdus, runs, .. }: &mut Filling) -> Time {
        let fades = self.fades(now);
        let units = pdus.iter().map(|pdu| self.units(pdu)).sum();
        self.occupy(now, units);
        self.sent += if fades { 0 } else { units };
        let (at, one) = ((self.not_before + self.delay).max(self.earliest), self.tti / u64::from(self.room));
        let (mut fate, mut place, parts) = (Fate::Arrives, 0, self.parts.len());
        let mut pdus = pdus.iter();
        for &Run { channel, pdus: count, .. } in &*runs {
            let before = self.pdus.len();
            let by = self.by;
            for pdu in pdus.by_ref().take(count as usize).flat_map(|pdu| separate(*pdu, by)) {
                if place == 0 || by == ErrorsBy::Pdu {
                    fate = self.errors.fate(now + one * place);
                }
                let units = self.units(&pdu);
                place += units;
                if fate == Fate::Arrives && !fades {
                    self.arrived += units;
                    self.pdus.push_back(pdu);
                } else if let Pdu::Data(Data { payload, count, .. }) = pdu {
                    self.lost += u64::from(count);
                    self.pdus.push_back(Pdu::Lost(payload, LossCause::Air));
                }
            }
            let pdus = (self.pdus.len() - before) as u32;
            if pdus > 0 {
                self.parts.push_back(Part { at, pdus, channel, is_last: false });
            }
        }
        if let Some(last) = self.parts.range_mut(parts..).last() {
            last.is_last = true;
        }
        self.not_before
    }

    /// Number of units of room that a PDU takes.
    fn units(&self, pdu: &Pdu) -> u64 {
        if self.fills { pdu.octets().into() } else { pdu.count().into() }
    }

    /// Occupies the TTI at `now` with `units` units. A PDU that was cut at a higher rate takes several TTIs.
    fn occupy(&mut self, now: Time, units: u64) {
        let ttis = if self.fills { units.div_ceil(self.room.into()).max(1) } else { 1 };
        self.not_before = now + self.tti * ttis;
    }

    /// Mean payload rate without outages.
    pub(super) fn given_rate(&self) -> Rate {
        match &self.control {
            None => self.rate,
            Some(control) => Rate::from_bps_f64(self.rate.as_bps() as f64 * control.free_share()),
        }
    }

    /// Adds the number of data PDUs that were lost without HARQ, or the counts of HARQ.
    pub(super) fn count(&self, counts: &mut RadioCounts) {
        counts.rlc.lost += self.lost;
        counts.harq = self.harq.as_ref().map(|harq| harq.counted());
    }

    /// Whether failed TTIs are sent again.
    pub(super) const fn repeats(&self) -> bool {
        self.harq.is_some()
    }

    /// Sends a failed TTI again at `now` if one is due. Returns the time at which the TTI ends.
    pub(super) fn repeat(&mut self, now: Time) -> Option<Time> {
        let units = self.harq.as_mut()?.repeat(now)?;
        Some(self.end_block(now, units))
    }

    /// Sends the block of a TTI that starts at `now` and may be sent again. Returns the time at which the TTI ends.
    pub(super) fn send_block(&mut self, now: Time, block: &[OfChannel]) -> Time {
        let units = block.iter().map(|(_, sent)| self.units(&sent.pdu)).sum();
        self.occupy(now, units);
        if let Some(harq) = self.harq.as_mut().filter(|_| !block.is_empty()) {
            harq.add(self.not_before, block, units);
            return self.end_block(now, units);
        }
        self.not_before
    }

    fn end_block(&mut self, now: Time, units: u64) -> Time {
        self.occupy(now, units);
        let fades = self.fades(now);
        self.sent += if fades { 0 } else { units };
        if let Some(harq) = &mut self.harq {
            harq.land(now, self.not_before, if fades { Fate::Lost } else { Fate::Arrives });
        }
        self.not_before
    }

    /// Returns the next PDU that HARQ has finished and that arrives, or is found lost, by `now`.
    pub(super) fn take_landed(&mut self, now: Time) -> Option<Landed> {
        if self.due() > now {
            return None;
        }
        let landed = self.harq.as_mut()?.take()?;
        if landed.1.is_some() {
            self.arrived += self.units(&landed.0.1.pdu);
        }
        Some(landed)
    }

    /// Time at which the next PDUs arrive; [`Time::NEVER`] if no PDUs are in flight.
    pub(super) fn due(&self) -> Time {
        if let Some(harq) = &self.harq {
            let landed = |at: Time| (at + self.delay).max(self.earliest);
            return harq.next_landed().map_or(Time::NEVER, landed);
        }
        self.parts.front().map_or(Time::NEVER, |part| part.at)
    }

    /// Passes on the PDUs of the TTI that arrives next, with the number of their channel.
    pub(super) fn receive(&mut self, mut receive: impl FnMut(usize, Iter<'_, Pdu>)) {
        while let Some(Part { pdus, channel, is_last, .. }) = self.parts.pop_front() {
            receive(channel.into(), self.pdus.range(..pdus as usize));
            self.pdus.drain(..pdus as usize);
            if is_last {
                return;
            }
        }
    }

    /// Loses all PDUs in flight.
    pub(super) fn clear(&mut self) {
        self.parts.clear();
        self.lost += self.pdus.drain(..).map(|pdu| pdu.data_pdus()).sum::<u64>();
        self.lost += self.harq.as_mut().map_or(0, |harq| harq.clear());
    }

    /// Loses all PDUs of a channel in flight. HARQ still sends PDUs again, but RLC ends that were re-established ignore
    /// them.
    pub(super) fn lose(&mut self, channel: usize) {
        let mut first = 0;
        for part in &mut self.parts {
            if usize::from(part.channel) == channel {
                let lost = self.pdus.drain(first..first + std::mem::take(&mut part.pdus) as usize);
                self.lost += lost.map(|pdu| pdu.data_pdus()).sum::<u64>();
            }
            first += part.pdus as usize;
        }
        if self.pdus.is_empty() {
            self.parts.clear();
        }
    }

    /// Number of PDUs or octets that arrived so far, plus the expected number that would have arrived in unused TTIs until
    /// `time`.
    pub(super) fn carried(&self, time: Time) -> f64 {
        self.arrived as f64 + self.unused_until(time)
    }

    /// Expected number of PDUs or octets that would have arrived in unused TTIs until `time`.
    fn unused_until(&self, time: Time) -> f64 {
        let usable = time.since(self.since).saturating_sub(self.interrupted_until(time));
        let share = self.control.as_ref().map_or(1.0, ControlSlots::free_share);
        let all = usable.as_secs_f64() / self.tti.as_secs_f64() * f64::from(self.room) * share;
        self.unused + (all - self.sent as f64).max(0.0) * self.good
    }
}

/// PDUs of a run that are lost together: all, or each by itself.
fn separate(pdu: Pdu, by: ErrorsBy) -> impl Iterator<Item = Pdu> {
    let each = if by == ErrorsBy::Pdu { 1 } else { pdu.count() };
    (0..pdu.count()).step_by(each.into()).map(move |before| pdu.part(before, each))
}

#[cfg(test)]
mod tests {
    use ackclock_core::Streams;
    use ackclock_link::NoFiles;
    use serde_json::json;

    use super::*;
    use crate::umts_rlc_am::Asks;

    #[test]
    fn a_burst_of_lost_pdus_may_begin_and_end_within_a_tti() {
        let errors = json!({"kind": "gilbert-elliott", "p": 0.5, "r": 0.5});
        let config: DedicatedConfig =
            serde_json::from_value(json!({"errors": errors, "errors_by": "pdu"})).unwrap();
        let context =
            ErrorContext { streams: &Streams::new(1, 0), name: "air", files: &NoFiles, block: Span::ZERO };
        let mut air = Dedicated::new(&config, &RlcConfig::default(), context).unwrap();
        let pdu = Pdu::Reset(false);
        let count = air.room;
        let mut filling = Filling {
            pdus: vec![pdu; count as usize],
            runs: vec![Run { channel: 0, pdus: count, asks: Asks::Nothing }],
            ..Filling::default()
        };
        // The state of the channel is drawn for each of the 12 PDUs, so hardly a TTI is lost or arrives as a whole.
        let mixed = (0..50).filter(|&tti| {
            air.send(Time::ZERO + config.tti * tti, &mut filling);
            let arrived = air.pdus.drain(..).count() as u32;
            air.parts.clear();
            (1..count).contains(&arrived)
        });
        assert!(mixed.count() >= 48);
    }
}
