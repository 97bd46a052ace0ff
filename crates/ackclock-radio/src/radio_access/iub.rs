//! The Iub interface between the controller and the base station: PDUs of one user in transit, and the number of PDUs
//! that the controller may send.

use std::collections::VecDeque;

use ackclock_core::{Component, Config, ConfigError, Rate, Size, Span, Time};
use ackclock_link::errors::{AnyErrorProcess, ErrorContext, ErrorProcess, Errors};
use ackclock_link::{Fate, Loss};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::flow_control::{Allocation, FlowControlConfig, FlowControlKind};
use super::flow_controls::FLOW_CONTROLS;
use crate::umts_rlc_am::Pdu;

/// The interface between the radio network controller and a base station.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IubConfig {
    /// One-way delay of PDUs and messages.
    pub delay: Span,
    /// Rate of each user's PDUs including headers; unlimited by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Probability that a PDU is lost on the interface. The base station detects the loss when the PDU is due.
    pub loss: Loss,
    /// Size of each user's queue at the base station, in PDUs ("500p") or bytes; unlimited by default. PDUs that do not
    /// fit are lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_station_buffer: Option<Size>,
    /// Flow control by which the base station limits the controller: a name, or a table with `kind`.
    pub flow_control: Component<dyn FlowControlConfig>,
}

/// Longest allowed delay of the interface.
const MOST_DELAY: Span = Span::from_secs(1);

impl Default for IubConfig {
    fn default() -> Self {
        Self {
            delay: Span::from_millis(10),
            rate: None,
            loss: Loss::of(0.0),
            base_station_buffer: None,
            flow_control: "credit".into(),
        }
    }
}

impl Config for IubConfig {
    fn check(&self) -> Result<(), ConfigError> {
        if self.delay > MOST_DELAY {
            return Err(ConfigError::new("delay", format!("{} is more than {MOST_DELAY}", self.delay)));
        }
        if self.rate == Some(Rate::ZERO) {
            return Err(ConfigError::new("rate", "0 is not above 0"));
        }
        if let Some(size) = self.base_station_buffer
            && !matches!(size, Size::Packets(1..) | Size::Bytes(1..))
        {
            let message = format!("{size} is not a number of PDUs, such as \"500p\", or of bytes above 0");
            return Err(ConfigError::new("base_station_buffer", message));
        }
        self.control().map(drop)
    }

    fn complete(self) -> Result<Self, ConfigError> {
        let control = self.flow_control.complete(&FLOW_CONTROLS);
        Ok(Self { flow_control: control.map_err(|error| error.under("flow_control"))?, ..self })
    }
}

impl IubConfig {
    /// Returns the flow control.
    pub(super) fn control(&self) -> Result<FlowControlKind<'_>, ConfigError> {
        let control = self.flow_control.config(&FLOW_CONTROLS);
        control.map(|control| control.kind()).map_err(|error| error.under("flow_control"))
    }

    /// Maximum number of PDUs of `octets` octets, including headers, in each user's queue at the base station.
    pub(super) fn most_waiting(&self, octets: u32) -> u64 {
        match self.base_station_buffer {
            Some(Size::Packets(pdus)) => pdus.into(),
            Some(Size::Bytes(bytes)) => bytes / u64::from(octets),
            // `check` has refused sizes in any other unit.
            _ => u64::MAX,
        }
    }
}

/// A PDU sent to the base station, or a run of PDUs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) pdu: Pdu,
    /// Whether the PDU is sent for the first time.
    pub(super) first: bool,
    /// Number of times that both RLC ends had been re-established when the PDU was sent.
    pub(super) setup: u32,
    /// Whether the PDU arrives at the base station.
    pub(super) fate: Fate,
}

impl Sent {
    /// Returns `count` PDUs of a run, without the first `before` PDUs.
    pub(super) const fn part(self, before: u16, count: u16) -> Self {
        Self { pdu: self.pdu.part(before, count), ..self }
    }
}

/// State of one user on the Iub: the controller's side, and all PDUs and messages in transit.
pub(super) struct Iub {
    delay: Span,
    /// Size of a PDU including headers, bytes.
    bytes: u32,
    /// Transmission time of one PDU.
    one: Span,
    errors: AnyErrorProcess,
    /// Number of PDUs that the controller may send.
    credits: u64,
    /// Number of PDUs that the controller may send before the first message.
    initial: u64,
    /// Allocations in transit to the controller, each with its arrival time.
    allocations: VecDeque<(Time, Allocation)>,
    /// PDUs in transit, each with its arrival time at the base station.
    pdus: VecDeque<(Time, Sent)>,
    /// Reports of whether PDUs wait for credits at the controller, each with its arrival time at the base station.
    waits: VecDeque<(Time, bool)>,
    told: bool,
    /// Time at which the interface is free again.
    free: Time,
    /// Time at which the controller may next send.
    next: Time,
    /// Time before which the controller does not send, because of a hand-over.
    not_before: Time,
}

impl Iub {
    /// Creates the interface for PDUs of `bytes` bytes including headers; the controller may send `credits` PDUs at
    /// first. Losses are drawn from `errors`.
    ///
    /// # Errors
    /// Returns an error if the loss probability is impossible.
    pub(super) fn new(
        config: &IubConfig,
        bytes: u32,
        credits: u64,
        errors: ErrorContext<'_>,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            errors: Errors::Share(config.loss).build(errors)?,
            delay: config.delay,
            bytes,
            one: config.rate.map_or(Span::ZERO, |rate| rate.time_for(bytes.into())),
            credits,
            initial: credits,
            allocations: VecDeque::new(),
            pdus: VecDeque::new(),
            waits: VecDeque::new(),
            told: false,
            free: Time::ZERO,
            next: Time::NEVER,
            not_before: Time::ZERO,
        })
    }

    /// Replaces the interface by that of another controller and base station, which sends from `from` on. Returns the
    /// number of data PDUs that are lost.
    pub(super) fn restart(&mut self, from: Time) -> u64 {
        (self.credits, self.not_before, self.next) = (self.initial, from, Time::NEVER);
        self.allocations.clear();
        let lost = self.pdus.drain(..).map(|(_, sent)| sent.pdu.data_pdus()).sum();
        self.waits.clear();
        self.told = false;
        lost
    }

    /// Changes the delay, and the rate of PDUs that are sent later. No PDU or message overtakes an earlier one. Returns
    /// the earlier delay.
    pub(super) fn change(&mut self, delay: Span, rate: Option<Rate>) -> Span {
        self.one = rate.map_or(Span::ZERO, |rate| rate.time_for(self.bytes.into()));
        std::mem::replace(&mut self.delay, delay)
    }

    /// Number of PDUs that the controller has not sent, of `allotted` PDUs that were granted and have not arrived;
    /// `None` without a limit.
    pub(super) fn unused(&self, allotted: u64) -> Option<u64> {
        let in_transit = || self.pdus.iter().map(|(_, sent)| u64::from(sent.pdu.count())).sum();
        (allotted != u64::MAX).then(|| allotted.saturating_sub(in_transit()))
    }

    /// Number of PDUs that the controller may send, as of the last transmission; NaN without a limit.
    pub(super) const fn credits(&self) -> f64 {
        if self.credits == u64::MAX { f64::NAN } else { self.credits as f64 }
    }

    /// Time of the controller's next event.
    pub(super) fn next(&self) -> Time {
        self.allocations.front().map_or(Time::NEVER, |&(at, _)| at).min(self.next)
    }

    /// Time of the next arrival at the base station.
    pub(super) fn due(&self) -> Time {
        let pdu = self.pdus.front().map_or(Time::NEVER, |&(at, _)| at);
        self.waits.front().map_or(Time::NEVER, |&(at, _)| at).min(pdu)
    }

    /// Number of PDUs that may be sent at `now`, including allocations that have arrived.
    pub(super) fn room(&mut self, now: Time) -> usize {
        while let Some((_, allocation)) = self.allocations.pop_front_if(|&mut (at, _)| at <= now) {
            self.credits = allocation.allotted(self.credits);
        }
        self.credits.min(MOST_AT_ONCE) as usize
    }

    /// Schedules the next transmission: at or after `wanted`, and not before `from`.
    pub(super) fn plan(&mut self, wanted: Time, from: Time) {
        let from = from.max(self.not_before);
        self.next = if self.credits == 0 || wanted == Time::NEVER { Time::NEVER } else { wanted.max(from) };
        let waits = self.credits == 0 && wanted <= from;
        if waits != self.told {
            self.told = waits;
            push_in_order(&mut self.waits, from + self.delay, waits);
        }
    }

    /// Sends the PDUs `pdus` at `now`. Returns the time from which on more PDUs may be sent.
    pub(super) fn send(&mut self, now: Time, pdus: impl Iterator<Item = Sent>) -> Time {
        let mut count = 0;
        for sent in pdus {
            count += u64::from(sent.pdu.count());
            self.send_run(now, sent);
        }
        if self.credits != u64::MAX {
            self.credits = self.credits.saturating_sub(count);
        }
        // An RLC end that had nothing to send despite its schedule is polled again later, not at once.
        if count > 0 { now } else { now + LOOKS }
    }

    /// Sends a run of PDUs, which are separate from now on if they arrive at different times or may be lost.
    fn send_run(&mut self, now: Time, run: Sent) {
        let count = run.pdu.count();
        let each = if self.one == Span::ZERO && !self.errors.may_lose() { count } else { 1 };
        for before in (0..count).step_by(each.into()) {
            self.free = self.free.max(now) + self.one;
            let sent = Sent { fate: self.errors.fate(now), ..run.part(before, each) };
            push_in_order(&mut self.pdus, self.free + self.delay, sent);
        }
    }

    /// Sends a message of the base station to the controller at `now`.
    pub(super) fn tell(&mut self, now: Time, allocation: Allocation) {
        push_in_order(&mut self.allocations, now + self.delay, allocation);
    }

    /// Returns the next PDU, or run, that has arrived at the base station.
    pub(super) fn take(&mut self, now: Time) -> Option<Sent> {
        self.pdus.pop_front_if(|&mut (at, _)| at <= now).map(|(_, sent)| sent)
    }

    /// Returns the latest report, received at the base station, of whether PDUs wait for credits.
    pub(super) fn take_waits(&mut self, now: Time) -> Option<bool> {
        let mut newest = None;
        while let Some((_, waits)) = self.waits.pop_front_if(|&mut (at, _)| at <= now) {
            newest = Some(waits);
        }
        newest
    }
}

/// Adds an item that arrives at `at`, and not before the items in front of it.
fn push_in_order<T>(items: &mut VecDeque<(Time, T)>, at: Time, item: T) {
    let last = items.back().map_or(Time::ZERO, |&(last, _)| last);
    items.push_back((at.max(last), item));
}

/// Maximum number of PDUs sent at once; larger than any RLC window.
const MOST_AT_ONCE: u64 = 4096;
const LOOKS: Span = Span::from_millis(1);
