//! # Variable link
//!
//! ## Source
//! CR02 section 6: forward rate `u(200 kbit/s, s)`, forward delay `e(x)`; `links.md` section 3 settles what the source
//! leaves open.
//!
//! ## What it does
//! Rate and delay are drawn from laws. When is a choice:
//! - `packet` (default): a new rate for each packet when its transmission begins, a new delay for each when it leaves.
//!   A saturated link then carries the harmonic mean of its rates.
//! - `interval(dt)`: a new rate and a new delay every `dt`, at multiples of `dt`; a packet in transmission finishes its
//!   remaining bits at the new rate. A saturated link carries the arithmetic mean.
//! - `slot`, `slot(dt)`: an interval of 1/600 s, the slot of 1xEV-DO, where no other is given.
//!
//! Draws come from `NAME/rate` and `NAME/delay`: by packet number in the one case, by interval number in the other, so
//! that polling or idling changes none. Outages lay a rate of zero over either.
//!
//! ## Differences from the source
//! None known; the source does not say when it draws.
//!
//! ## Validation
//! Effective delays of 441.5, 458.9 and 519 ms and capacities of 198.0, 186.8 and 167.7 kbit/s (`tests/theory.rs`).

use std::fmt;
use std::str::FromStr;

use ackclock_core::units::UnitError;
use ackclock_core::{Config, ConfigError, Law, Rate, Segment, Span, Stream, Streams, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::constant::Constant;
use crate::delay::Delays;
use crate::loss::{Loss, assemble};
use crate::medium::{Fate, Medium, Transmission};
use crate::outage::{Outage, Outages, Radio};
use crate::pieces::{NANOBITS_PER_BYTE, Potential, finish};
use crate::{AnyLink, Files, LinkConfig, LinkContext, Nominal};

/// A link whose rate and delay are drawn anew for every packet, interval or slot.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VariableConfig {
    /// Law of the rate.
    pub rate: Law<Rate>,
    /// Law of the propagation delay, one way.
    pub delay: Law<Span>,
    /// When rate and delay are drawn.
    pub redraw: Redraw,
    /// Share of packets that the medium loses, each by itself.
    pub loss: Loss,
    /// Times in which nothing passes and nothing is lost.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
}

/// When a variable link draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Redraw {
    /// For every packet.
    #[default]
    Packet,
    /// At every multiple of this span.
    Interval(Span),
}

impl Redraw {
    /// The slot of 1xEV-DO, 1/600 s to the nanosecond.
    pub const SLOT: Self = Self::Interval(Span::from_nanos(1_666_667));
    const SHORTEST: Span = Span::from_micros(10);
    const HELP: &'static str =
        "write \"packet\", \"slot\" (1/600 s), \"slot(1.667ms)\" or \"interval(100ms)\"";
}

impl FromStr for Redraw {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let explain = |what: &str| UnitError(format!("`{text}` {what}; {}", Self::HELP));
        match text.trim() {
            "packet" => return Ok(Self::Packet),
            "slot" => return Ok(Self::SLOT),
            _ => {}
        }
        let length = ["interval", "slot"].iter().find_map(|name| {
            text.trim().strip_prefix(name)?.trim_start().strip_prefix('(')?.strip_suffix(')')
        });
        let length: Span = length.ok_or_else(|| explain("says no such thing"))?.parse()?;
        if length < Self::SHORTEST {
            return Err(explain("is shorter than 10us"));
        }
        Ok(Self::Interval(length))
    }
}

impl TryFrom<String> for Redraw {
    type Error = UnitError;
    fn try_from(text: String) -> Result<Self, UnitError> {
        text.parse()
    }
}

impl From<Redraw> for String {
    fn from(redraw: Redraw) -> Self {
        redraw.to_string()
    }
}

impl fmt::Display for Redraw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Packet => f.write_str("packet"),
            Self::SLOT => f.write_str("slot"),
            Self::Interval(length) => write!(f, "interval({length})"),
        }
    }
}

impl JsonSchema for Redraw {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Redraw".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": Self::HELP })
    }
}

impl Default for VariableConfig {
    /// The link of CR02 with both rate and delay variable.
    fn default() -> Self {
        let law = |text: &str| text.parse().expect("a law written here and tested");
        Self {
            rate: "u(200kbit/s, 50kbit/s)".parse().expect("a law written here and tested"),
            delay: law("e(50ms)"),
            redraw: Redraw::Packet,
            loss: Loss::NONE,
            outages: Vec::new(),
        }
    }
}

impl Config for VariableConfig {
    fn check(&self) -> Result<(), ConfigError> {
        Outages::new(&self.outages)?;
        match self.redraw {
            Redraw::Packet if self.rate.least() == Rate::ZERO => Err(ConfigError::new(
                "rate",
                format!(
                    "`{}` can be zero, and with redraw = \"packet\" such a packet would never end",
                    self.rate
                ),
            )),
            _ if self.rate.mean() == Rate::ZERO => Err(ConfigError::new(
                "rate",
                format!("`{}` is always zero: nothing would ever pass", self.rate),
            )),
            _ => Ok(()),
        }
    }
}

impl VariableConfig {
    /// The mean rate outside of outages.
    fn rate_when_on(&self) -> Rate {
        match self.redraw {
            Redraw::Packet => self.rate.harmonic_mean(),
            Redraw::Interval(_) => self.rate.mean(),
        }
    }
}

impl LinkConfig for VariableConfig {
    fn nominal(&self, _: &dyn Files) -> Result<Nominal, ConfigError> {
        let share_on = Outages::new(&self.outages)?.share_on();
        let rate = self.rate_when_on().as_bps() as f64 * share_on;
        Ok(Nominal { rate: Rate::from_bps_f64(rate), delay: self.delay.mean() })
    }

    fn build(&self, context: LinkContext<'_>) -> Result<AnyLink, ConfigError> {
        let outages = Outages::new(&self.outages)?;
        if let (Some(rate), Some(delay), true) =
            (self.rate.constant(), self.delay.constant(), outages.is_empty())
        {
            // Nothing varies: the constant link is the same and costs less.
            return Ok(assemble(Constant::new(rate, delay), self.loss, context));
        }
        let mut rates = context.streams.stream(&format!("{}/rate", context.name));
        let mut delays = context.streams.stream(&format!("{}/delay", context.name));
        let Redraw::Interval(length) = self.redraw else {
            let delays = Delays::new(self.delay.clone(), delays);
            let current = self.nominal(context.files)?.rate;
            let medium = PerPacket {
                law: self.rate.clone(),
                rates,
                delays,
                outages,
                current,
                sent: Sent::default(),
                open: Potential::default(),
            };
            return Ok(assemble(medium, self.loss, context));
        };
        let rate = ByNumber { law: self.rate.clone(), seed: rates.bits() };
        let delay = ByNumber { law: self.delay.clone(), seed: delays.bits() };
        let potential = Potential::default();
        Ok(assemble(PerInterval { rate, delay, length, outages, potential }, self.loss, context))
    }
}

/// A new rate and a new delay for every packet.
struct PerPacket {
    law: Law<Rate>,
    rates: Stream,
    delays: Delays,
    outages: Outages,
    /// Rate of the last packet.
    current: Rate,
    sent: Sent,
    /// Time without outages, in nanobits of 1 bit/s.
    open: Potential,
}

/// What was sent at rates drawn for each packet.
#[derive(Default)]
struct Sent {
    bytes: u64,
    /// Time that it took, without outages.
    busy: Span,
    /// When the last of it leaves.
    departs: Time,
}

impl PerPacket {
    /// What the link sent until `until`, nanobits, and the time that it took without outages, ns.
    fn sent_until(&self, until: Time) -> (u128, u128) {
        let Sent { bytes, busy, departs } = self.sent;
        let one = |now| through(&self.outages, Rate::from_bps(1), now);
        let left = Potential::default().reach(until, departs, one);
        let unsent = u128::from(self.current.as_bps()) * left;
        let sent = u128::from(bytes) * u128::from(NANOBITS_PER_BYTE);
        (sent.saturating_sub(unsent), u128::from(busy.as_nanos()).saturating_sub(left))
    }
}

impl Medium for PerPacket {
    fn transmit(&mut self, _: Time, start: Time, segment: &Segment) -> Transmission {
        // A packet drawn at less than 1 bit/s would never end.
        self.current = self.law.draw(&mut self.rates).max(Rate::from_bps(1));
        let bytes = u64::from(segment.wire_bytes());
        let takes = self.current.time_for(bytes);
        let departs = if self.outages.is_empty() {
            start + takes
        } else {
            finish(start, bytes * NANOBITS_PER_BYTE, |now| through(&self.outages, self.current, now))
        };
        let Sent { bytes: sent, busy, .. } = self.sent;
        self.sent = Sent { bytes: sent + bytes, busy: busy + takes, departs };
        Transmission { departs, delay: self.delays.draw(), fate: Fate::Arrives }
    }

    fn rate(&self, now: Time) -> Rate {
        through(&self.outages, self.current, now).0
    }

    /// What was sent over the time that it took, for all the time without outages.
    fn work(&mut self, from: Time, until: Time) -> Option<u128> {
        let open = self.open.reach(from, until, |now| through(&self.outages, Rate::from_bps(1), now));
        if let Some(rate) = self.law.constant() {
            return Some(u128::from(rate.as_bps()) * open);
        }
        match self.sent_until(until) {
            (_, 0) => None,
            (sent, busy) => Some((sent as f64 / busy as f64 * open as f64) as u128),
        }
    }

    fn varies(&self) -> bool {
        self.delays.vary()
    }

    fn least_delay(&self) -> Span {
        self.delays.least()
    }

    fn foreseeable(&self) -> bool {
        self.law.constant().is_some_and(|rate| rate > Rate::ZERO) && self.outages.is_empty()
    }
}

/// A rate under outages: what passes at `now`, and until when.
fn through(outages: &Outages, rate: Rate, now: Time) -> (Rate, Time) {
    match outages.at(now) {
        (Radio::On, until) => (rate, until),
        (Radio::Out, until) => (Rate::ZERO, until),
    }
}

/// A new rate and a new delay for every interval.
struct PerInterval {
    rate: ByNumber<Rate>,
    delay: ByNumber<Span>,
    length: Span,
    outages: Outages,
    potential: Potential,
}

impl PerInterval {
    fn number(&self, now: Time) -> u64 {
        now.as_nanos() / self.length.as_nanos()
    }

    fn piece(&self, now: Time) -> (Rate, Time) {
        let number = self.number(now);
        let (rate, changes) = through(&self.outages, self.rate.draw(number), now);
        (rate, changes.min(Time::ZERO + self.length * (number + 1)))
    }
}

impl Medium for PerInterval {
    fn transmit(&mut self, _: Time, start: Time, segment: &Segment) -> Transmission {
        let work = u64::from(segment.wire_bytes()) * NANOBITS_PER_BYTE;
        let departs = finish(start, work, |now| self.piece(now));
        Transmission { departs, delay: self.delay.draw(self.number(departs)), fate: Fate::Arrives }
    }

    fn rate(&self, now: Time) -> Rate {
        self.piece(now).0
    }

    /// The sum of the rates of all intervals, also of those in which nothing was sent.
    fn work(&mut self, from: Time, until: Time) -> Option<u128> {
        let mut potential = std::mem::take(&mut self.potential);
        let work = potential.reach(from, until, |now| self.piece(now));
        self.potential = potential;
        Some(work)
    }

    fn varies(&self) -> bool {
        self.delay.law.constant().is_none()
    }

    fn least_delay(&self) -> Span {
        self.delay.law.constant().unwrap_or(Span::ZERO)
    }
}

/// Draws by number: each number has a stream of its own, so that they can be asked for in any order, and an idle link
/// need not draw what nobody sees.
struct ByNumber<Q> {
    law: Law<Q>,
    seed: u64,
}

impl<Q: ackclock_core::Quantity> ByNumber<Q> {
    fn draw(&self, number: u64) -> Q {
        self.law.draw(&mut Streams::new(self.seed, number).stream(""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::{FlowId, Seq};

    fn packet() -> Segment {
        Segment::data(FlowId(0), Seq(0), 960, 40)
    }

    fn per_interval(rate: &str, outages: &[Outage]) -> PerInterval {
        PerInterval {
            rate: ByNumber { law: rate.parse().unwrap(), seed: 1 },
            delay: ByNumber { law: Span::ZERO.into(), seed: 2 },
            length: Span::from_millis(10),
            outages: Outages::new(outages).unwrap(),
            potential: Potential::default(),
        }
    }

    #[test]
    fn redraws_are_printed_as_they_are_parsed() {
        for text in ["packet", "slot", "interval(100ms)"] {
            assert_eq!(text.parse::<Redraw>().unwrap().to_string(), text);
        }
        assert_eq!("slot(5ms)".parse(), Ok(Redraw::Interval(Span::from_millis(5))));
        for text in ["never", "interval", "interval()", "interval(1us)", "slot(2p)"] {
            assert!(text.parse::<Redraw>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_packet_in_transmission_finishes_at_the_rate_of_the_next_interval() {
        let mut medium = per_interval("u(200kbit/s, 50kbit/s)", &[]);
        let departs = medium.transmit(Time::ZERO, Time::ZERO, &packet()).departs;
        // Sum up the bits of the intervals that the packet took part in, by hand.
        let mut bits = 0.0;
        for number in 0..=departs.as_nanos() / 10_000_000 {
            let begins = Time::ZERO + Span::from_millis(10) * number;
            let lasts = departs.since(begins).min(Span::from_millis(10));
            bits += medium.rate.draw(number).as_bps() as f64 * lasts.as_secs_f64();
        }
        assert!((bits - 8000.0).abs() < 1e-3, "{bits}");
    }

    #[test]
    fn an_outage_stops_the_packet_in_transmission_and_keeps_it() {
        let outage = Outage { at: Span::from_millis(15), lasts: Span::from_millis(100), every: None };
        let mut medium = per_interval("200kbit/s", &[outage]);
        // 40 ms of transmission and 100 ms of outage
        assert_eq!(
            medium.transmit(Time::ZERO, Time::ZERO, &packet()).departs,
            Time::ZERO + Span::from_millis(140)
        );
        assert_eq!(medium.rate(Time::ZERO + Span::from_millis(20)), Rate::ZERO);
    }

    fn per_packet(rate: &str, outages: &[Outage]) -> PerPacket {
        let stream = || Streams::new(1, 0).stream("rate");
        PerPacket {
            law: rate.parse().unwrap(),
            rates: stream(),
            delays: Delays::new(Span::ZERO.into(), stream()),
            outages: Outages::new(outages).unwrap(),
            current: Rate::ZERO,
            sent: Sent::default(),
            open: Potential::default(),
        }
    }

    #[test]
    fn intervals_could_carry_the_sum_of_their_rates_whatever_was_sent() {
        let outage = Outage { at: Span::from_millis(12), lasts: Span::from_millis(3), every: None };
        let (mut idle, mut busy) =
            (per_interval("e(200kbit/s)", &[outage]), per_interval("e(200kbit/s)", &[outage]));
        busy.transmit(Time::ZERO, Time::ZERO, &packet());
        let until = Time::ZERO + Span::from_millis(25);
        // 10, 10 - 3 and 5 ms of the first three.
        let rate = |number| u128::from(idle.rate.draw(number).as_bps());
        let expected = (10 * rate(0) + 7 * rate(1) + 5 * rate(2)) * 1_000_000;
        assert_eq!(
            (idle.work(Time::ZERO, until), busy.work(Time::ZERO, until)),
            (Some(expected), Some(expected))
        );
    }

    #[test]
    fn packets_show_what_the_link_could_carry_by_the_time_that_they_take() {
        let outage = Outage { at: Span::from_millis(5), lasts: Span::from_millis(10), every: None };
        let ms = |n| Time::ZERO + Span::from_millis(n);
        let mut medium = per_packet("table(100kbit/s, 400kbit/s)", &[outage]);
        assert_eq!(medium.work(Time::ZERO, ms(1)), None, "nothing came");
        let first = medium.transmit(ms(2), ms(2), &packet()).departs;
        let rate = medium.current.as_bps();
        // 8000 bit take 80 or 20 ms, and 10 of outage. Of 200 ms the link is open for 190: what it shows is its rate.
        assert_eq!(first, ms(12) + Rate::from_bps(rate).time_for(1000));
        let shown = |work: Option<u128>| work.unwrap() as f64 / 1e9;
        assert!((shown(medium.work(Time::ZERO, ms(200))) - rate as f64 * 0.19).abs() < 1e-3);
        // Packets with pauses, until a slow one of which half is sent.
        let mut medium = per_packet("table(100kbit/s, 400kbit/s)", &[]);
        let (mut now, mut busy, mut bits) = (Time::ZERO, 0.0, 0.0);
        loop {
            let departs = medium.transmit(now, now, &packet()).departs;
            if departs.since(now) == Span::from_millis(80) && busy > 0.0 {
                let half = now + Span::from_millis(40);
                let expected = (bits + 4000.0) / (busy + 0.04) * half.since(Time::ZERO).as_secs_f64();
                assert!((shown(medium.work(Time::ZERO, half)) - expected).abs() < 1e-3);
                return;
            }
            (busy, bits) = (busy + departs.since(now).as_secs_f64(), bits + 8000.0);
            now = departs + Span::from_millis(30);
        }
    }

    #[test]
    fn laws_that_would_stop_the_link_for_ever_are_refused() {
        let config =
            |rate: &str, redraw| VariableConfig { rate: rate.parse().unwrap(), redraw, ..Default::default() };
        assert_eq!(config("table(0kbit/s, 1Mbit/s)", Redraw::Packet).check().unwrap_err().path, "rate");
        assert!(config("table(0kbit/s, 1Mbit/s)", Redraw::SLOT).check().is_ok());
        assert!(config("0kbit/s", Redraw::SLOT).check().is_err());
    }
}
