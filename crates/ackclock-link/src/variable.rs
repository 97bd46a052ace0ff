//! # Variable link
//!
//! ## Source
//! CR02 section 6: forward rate `u(200 kbit/s, s)`, forward delay `e(x)`; `links.md` section 3 settles open questions.
//!
//! ## What it does
//! The rate and the delay are drawn from probability distributions, at instants set by `redraw`:
//! - `packet` (default): each packet gets a new rate when its transmission starts and a new delay when it leaves. A
//!   saturated link then achieves the harmonic mean of the rates.
//! - `interval(dt)`: rate and delay are redrawn at multiples of `dt`; the remaining bits of a packet in transmission
//!   are sent at the new rate. A saturated link achieves the arithmetic mean of the rates.
//! - `slot`, `slot(dt)`: an interval of 1/600 s (the slot of 1xEV-DO), or of `dt`.
//!
//! Random values come from streams `NAME/rate` and `NAME/delay`, by packet number or by interval number, so polling and
//! idle times do not change the values. During outages the rate is zero.
//!
//! ## Differences from the source
//! The model does not deviate from the paper, which does not say when rate and delay are drawn.
//!
//! ## Validation
//! Tests compare effective delays of 441.5, 458.9 and 519 ms and capacities of 198.0, 186.8 and 167.7 kbit/s
//! (`tests/theory.rs`).

use ackclock_core::{Config, ConfigError, Law, Pace, Rate, Segment, Span, Stream, Streams, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::constant::Constant;
use crate::delay::{ByNumber, Delays};
use crate::errors::Errors;
use crate::lossy::with_errors;
use crate::medium::{Fate, Found, Medium, Transmission};
use crate::outage::{Outage, Outages, Radio};
use crate::pieces::{NANOBITS_PER_BYTE, Potential, finish};
use crate::{
    AnyLink, AnyMedium, Files, Framing, Impairments, LinkConfig, LinkContext, Loss, MediumContext, Nominal,
    Redraw, Reorder,
};

/// A link whose rate and delay are redrawn for every packet, interval or slot.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VariableConfig {
    /// Probability distribution of the link's rate.
    pub rate: Law<Rate>,
    /// Probability distribution of the one-way propagation delay.
    pub delay: Law<Span>,
    /// Instants at which rate and delay are redrawn.
    pub redraw: Redraw,
    /// Packet loss: a probability, independent for each packet, or an error process.
    pub loss: Errors,
    /// Times in which the rate is zero and no packet is lost.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// Packets that leave `extra` later, so that later packets pass them: `{ share = "1%", extra = "20ms" }`. No other
    /// key lets packets overtake.
    #[serde(skip_serializing_if = "Reorder::is_none")]
    pub reorder: Reorder,
    /// Share of packets followed by a copy.
    #[serde(skip_serializing_if = "Loss::is_none")]
    pub duplicate: Loss,
    /// Share of packets whose payload gets a wrong bit, so that the receiver drops them.
    #[serde(skip_serializing_if = "Loss::is_none")]
    pub corrupt: Loss,
    /// Bytes that frames of the link add to each packet: 44, "44,atm", "30,ptm", "18,least=64", or a keyword of
    /// `tc-cake(8)` such as "docsis" or "ethernet". The rate counts them, goodput and utilisation do not.
    #[serde(skip_serializing_if = "Framing::is_none")]
    pub overhead: Framing,
}

impl Default for VariableConfig {
    /// The link of CR02 with variable rate and variable delay.
    fn default() -> Self {
        let law = |text: &str| text.parse().expect("a law written here and tested");
        Self {
            rate: "u(200kbit/s, 50kbit/s)".parse().expect("a law written here and tested"),
            delay: law("e(50ms)"),
            redraw: Redraw::Packet,
            loss: Errors::NONE,
            outages: Vec::new(),
            reorder: Reorder::default(),
            duplicate: Loss::NONE,
            corrupt: Loss::NONE,
            overhead: Framing::NONE,
        }
    }
}

impl Config for VariableConfig {
    fn check(&self) -> Result<(), ConfigError> {
        self.loss.check().map_err(|error| error.under("loss"))?;
        self.impairments().check()?;
        Outages::new(&self.outages)?;
        match self.redraw {
            Redraw::Packet if self.rate.least() == Rate::ZERO => Err(ConfigError::new(
                "rate",
                format!(
                    "`{}` can be zero; with redraw = \"packet\" the transmission of such a packet would never end; \
                     an outage is outages = [{{ at = \"10s\", for = \"2s\" }}]",
                    self.rate
                ),
            )),
            _ if self.rate.mean() == Rate::ZERO => Err(ConfigError::new(
                "rate",
                format!("`{}` is always zero: nothing would ever be delivered", self.rate),
            )),
            _ => Ok(()),
        }
    }

    fn complete(self) -> Result<Self, ConfigError> {
        let loss = self.loss.complete().map_err(|error| error.under("loss"))?;
        Ok(Self { loss, ..self })
    }
}

impl VariableConfig {
    /// How much longer than its law the delay of packets of 1500 bytes is that follow each other on a saturated link, and
    /// the law's standard deviation, ms; `None` unless a delay is drawn for every packet.
    fn shift_of_bulk(&self) -> Option<[f64; 2]> {
        const PACKETS: u32 = 20_000;
        if self.redraw != Redraw::Packet || self.delay.constant().is_some() {
            return None;
        }
        let between = self.rate_when_on().time_for(1500).as_millis_f64();
        let mut stream = Streams::new(1, 0).stream("shift");
        let (mut latest, mut excess, mut squares) = (0.0_f64, 0.0, 0.0);
        let mean = self.delay.mean().as_millis_f64();
        for _ in 0..PACKETS {
            let delay = self.delay.draw(&mut stream).as_millis_f64();
            latest = delay.max(latest - between);
            excess += latest - mean;
            squares += (delay - mean).powi(2);
        }
        let count = f64::from(PACKETS);
        Some([excess / count, (squares / count).sqrt()])
    }

    /// Mean rate of the link, not counting outages.
    fn rate_when_on(&self) -> Rate {
        match self.redraw {
            Redraw::Packet => self.rate.harmonic_mean(),
            Redraw::Interval(_) => self.rate.mean(),
        }
    }

    /// Builds the medium, including its losses.
    fn transmitter(&self, context: MediumContext<'_>) -> Result<AnyMedium, ConfigError> {
        let outages = Outages::new(&self.outages)?;
        if let (Some(rate), Some(delay), true) =
            (self.rate.constant(), self.delay.constant(), outages.is_empty())
        {
            // Rate and delay are constant in this case, so a constant link is equivalent and faster.
            return with_errors(Constant::new(rate, delay), &self.loss, context);
        }
        let mut rates = context.streams.stream(&format!("{}/rate", context.name));
        let mut delays = context.streams.stream(&format!("{}/delay", context.name));
        let Redraw::Interval(length) = self.redraw else {
            let delays = Delays::new(self.delay.clone(), delays);
            let medium = PerPacket::new(self.rate.clone(), rates, delays, outages);
            return with_errors(medium, &self.loss, context);
        };
        let rate = ByNumber { law: self.rate.clone(), seed: rates.bits() };
        let rate = Drawn { rate, first: 0, rates: Vec::new() };
        let delay = ByNumber { law: self.delay.clone(), seed: delays.bits() };
        let potential = Potential::default();
        with_errors(PerInterval { rate, delay, length, outages, potential }, &self.loss, context)
    }
}

impl LinkConfig for VariableConfig {
    fn nominal(&self, _: &dyn Files) -> Result<Nominal, ConfigError> {
        let share_on = Outages::new(&self.outages)?.share_on();
        let rate = self.rate_when_on().as_bps() as f64 * share_on;
        Ok(Nominal { rate: Rate::from_bps_f64(rate), delay: self.delay.mean() })
    }

    fn build(&self, context: LinkContext<'_>) -> Result<AnyLink, ConfigError> {
        let medium = self.overhead.around(self.transmitter(context.for_medium())?);
        Ok(context.impaired_link(medium, &self.impairments()))
    }

    fn medium(&self, context: MediumContext<'_>) -> Result<Option<AnyMedium>, ConfigError> {
        self.transmitter(context).map(|medium| Some(self.overhead.around(medium)))
    }

    fn has_medium(&self) -> bool {
        true
    }

    fn remark(&self) -> Option<String> {
        let [shift, deviation] = self.shift_of_bulk()?;
        (shift > deviation).then(|| {
            format!(
                "redraw: packets stay in order, so with a delay drawn for every packet the mean delay of a saturated \
                 link is {:.0} ms longer than that of `{}`; redraw = \"interval(100ms)\" keeps the mean",
                shift, self.delay
            )
        })
    }

    fn impairments(&self) -> Impairments {
        Impairments { reorder: self.reorder, duplicate: self.duplicate, corrupt: self.corrupt }
    }
}

/// Medium with a new rate and a new delay for every packet.
struct PerPacket {
    law: Law<Rate>,
    rates: Stream,
    delays: Delays,
    outages: Outages,
    /// Rate of the link if it is constant; `None` if rates are drawn.
    steady: Option<Pace>,
    /// Rate at which the last packet was sent.
    current: Rate,
    sent: Sent,
    /// Total time without outages, stored as the nanobits that a link of 1 bit/s sends in this time.
    open: Potential,
}

/// Total data and time of packets sent at per-packet rates.
#[derive(Default)]
struct Sent {
    bytes: u64,
    /// Total transmission time without outages.
    busy: Span,
    /// Departure time of the last packet.
    departs: Time,
}

impl PerPacket {
    fn new(law: Law<Rate>, rates: Stream, delays: Delays, outages: Outages) -> Self {
        // The rate is at least 1 bit/s, so that every transmission ends.
        let constant = law.constant().map(|rate| rate.max(Rate::from_bps(1)));
        Self {
            steady: constant.map(Pace::new),
            current: constant.unwrap_or_else(|| law.harmonic_mean()),
            law,
            rates,
            delays,
            outages,
            sent: Sent::default(),
            open: Potential::default(),
        }
    }

    /// Draws the rate of a packet; returns its transmission time without outages.
    fn draw(&mut self, bytes: u32) -> Span {
        self.current = self.law.draw(&mut self.rates).max(Rate::from_bps(1));
        let takes = self.current.time_for(bytes.into());
        self.sent.bytes += u64::from(bytes);
        self.sent.busy += takes;
        takes
    }

    /// Nanobits sent up to `until`, and the transmission time without outages in ns.
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
        let bytes = segment.wire_bytes();
        let takes = match &mut self.steady {
            Some(pace) => pace.time_for(bytes),
            None => self.draw(bytes),
        };
        let departs = if self.outages.is_empty() {
            start + takes
        } else {
            let work = u64::from(bytes) * NANOBITS_PER_BYTE;
            finish(start, work, |now| through(&self.outages, self.current, now))
        };
        self.sent.departs = departs;
        Transmission { departs, delay: self.delays.draw(), fate: Fate::Arrives }
    }

    fn rate(&self, now: Time) -> Rate {
        through(&self.outages, self.current, now).0
    }

    fn rate_until(&self, now: Time) -> Time {
        self.outages.at(now).1
    }

    /// Capacity of the link: its mean rate while sending, extrapolated to all time without outages.
    fn work(&mut self, from: Time, until: Time) -> Option<u128> {
        let open = self.open.reach(from, until, |now| through(&self.outages, Rate::from_bps(1), now));
        if self.steady.is_some() {
            return Some(u128::from(self.current.as_bps()) * open);
        }
        match self.sent_until(until) {
            (_, 0) => None,
            (sent, busy) => Some((sent as f64 / busy as f64 * open as f64) as u128),
        }
    }

    fn restart_work(&mut self, _: Time) {
        self.open = Potential::default();
    }

    fn varies(&self) -> bool {
        self.delays.vary()
    }

    fn least_delay(&self) -> Span {
        self.delays.least()
    }

    fn foreseeable(&self) -> bool {
        self.steady.is_some() && self.outages.is_empty()
    }

    fn ready(&mut self, now: Time, _: Found) -> Time {
        now
    }
}

/// Rate of the link at `now` considering outages, and the time until which it is valid.
fn through(outages: &Outages, rate: Rate, now: Time) -> (Rate, Time) {
    match outages.at(now) {
        (Radio::On, until) => (rate, until),
        (Radio::Out, until) => (Rate::ZERO, until),
    }
}

/// Medium with a new rate and a new delay for every interval.
struct PerInterval {
    rate: Drawn,
    delay: ByNumber<Span>,
    length: Span,
    outages: Outages,
    potential: Potential,
}

impl PerInterval {
    fn number(&self, now: Time) -> u64 {
        now.as_nanos() / self.length.as_nanos()
    }

    /// Rate of the link at `now`, and the time until which it is valid.
    fn piece(&mut self, now: Time) -> (Rate, Time) {
        let number = self.number(now);
        let (rate, changes) = through(&self.outages, self.rate.draw(number), now);
        (rate, changes.min(self.end(number)))
    }

    /// End time of the interval with this number.
    fn end(&self, number: u64) -> Time {
        Time::ZERO + self.length * (number + 1)
    }

    /// Sums the capacity of the intervals up to `until`, in nanobits.
    fn reach(&mut self, from: Time, until: Time) -> u128 {
        let mut potential = std::mem::take(&mut self.potential);
        let work = potential.reach(from, until, |now| self.piece(now));
        self.potential = potential;
        work
    }
}

impl Medium for PerInterval {
    fn transmit(&mut self, _: Time, start: Time, segment: &Segment) -> Transmission {
        // While packets are queued, at most `MOST_AT_ONCE` intervals of a long pause are summed in one step.
        let soon = self.potential.reached() + self.length * MOST_AT_ONCE;
        self.reach(Time::ZERO, start.min(soon));
        self.rate.forget_before(self.number(start));
        let work = u64::from(segment.wire_bytes()) * NANOBITS_PER_BYTE;
        let departs = finish(start, work, |now| self.piece(now));
        Transmission { departs, delay: self.delay.draw(self.number(departs)), fate: Fate::Arrives }
    }

    fn rate(&self, now: Time) -> Rate {
        through(&self.outages, self.rate.rate.draw(self.number(now)), now).0
    }

    fn rate_until(&self, now: Time) -> Time {
        self.outages.at(now).1.min(self.end(self.number(now)))
    }

    /// Capacity summed over all intervals, including intervals without transmissions.
    fn work(&mut self, from: Time, until: Time) -> Option<u128> {
        Some(self.reach(from, until))
    }

    fn varies(&self) -> bool {
        self.delay.law.constant().is_none()
    }

    fn least_delay(&self) -> Span {
        self.delay.law.constant().unwrap_or(Span::ZERO)
    }

    fn ready(&mut self, now: Time, _: Found) -> Time {
        now
    }

    fn restart_work(&mut self, _: Time) {}

    fn foreseeable(&self) -> bool {
        false
    }
}

/// Maximum number of intervals summed when a packet arrives, and of rates stored.
const MOST_AT_ONCE: u64 = 4096;

/// Recently drawn rates of consecutive intervals, so that each rate is drawn once.
struct Drawn {
    rate: ByNumber<Rate>,
    /// Number of the first interval with a stored rate.
    first: u64,
    rates: Vec<Rate>,
}

impl Drawn {
    fn draw(&mut self, number: u64) -> Rate {
        let known = number.checked_sub(self.first).and_then(|at| self.rates.get(at as usize));
        if let Some(&rate) = known {
            return rate;
        }
        let next = self.first + self.rates.len() as u64;
        if number != next || self.rates.len() as u64 == MOST_AT_ONCE {
            self.rates.clear();
            self.first = number;
        }
        let rate = self.rate.draw(number);
        self.rates.push(rate);
        rate
    }

    /// Discards the rates of intervals before `number`.
    fn forget_before(&mut self, number: u64) {
        let gone = number.saturating_sub(self.first).min(self.rates.len() as u64);
        self.rates.drain(..gone as usize);
        self.first += gone;
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
            rate: Drawn {
                rate: ByNumber { law: rate.parse().unwrap(), seed: 1 },
                first: 0,
                rates: Vec::new(),
            },
            delay: ByNumber { law: Span::ZERO.into(), seed: 2 },
            length: Span::from_millis(10),
            outages: Outages::new(outages).unwrap(),
            potential: Potential::default(),
        }
    }

    #[test]
    fn a_packet_in_transmission_finishes_at_the_rate_of_the_next_interval() {
        let mut medium = per_interval("u(200kbit/s, 50kbit/s)", &[]);
        let departs = medium.transmit(Time::ZERO, Time::ZERO, &packet()).departs;
        // The test sums the bits of the intervals in which the packet was sent.
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
        // The packet takes 40 ms of transmission and 100 ms of outage.
        assert_eq!(
            medium.transmit(Time::ZERO, Time::ZERO, &packet()).departs,
            Time::ZERO + Span::from_millis(140)
        );
        assert_eq!(medium.rate(Time::ZERO + Span::from_millis(20)), Rate::ZERO);
    }

    fn per_packet(rate: &str, outages: &[Outage]) -> PerPacket {
        let stream = || Streams::new(1, 0).stream("rate");
        let delays = Delays::new(Span::ZERO.into(), stream());
        PerPacket::new(rate.parse().unwrap(), stream(), delays, Outages::new(outages).unwrap())
    }

    #[test]
    fn intervals_could_carry_the_sum_of_their_rates_whatever_was_sent() {
        let outage = Outage { at: Span::from_millis(12), lasts: Span::from_millis(3), every: None };
        let [mut idle, mut busy] = [(); 2].map(|()| per_interval("e(200kbit/s)", &[outage]));
        // Packets of about 40 ms are sent back to back and after pauses; the last pause has more intervals than are
        // summed at once.
        let (mut now, pauses) = (Time::ZERO, [0, 0, 3, 250, 0, 0, 60_000, 1, 0]);
        for pause in pauses {
            now = busy.transmit(now, now + Span::from_millis(pause), &packet()).departs;
            assert!(busy.rate.rates.len() as u64 <= MOST_AT_ONCE);
        }
        let rate = |idle: &PerInterval, number| u128::from(idle.rate.rate.draw(number).as_bps());
        let until = Time::ZERO + Span::from_millis(25);
        // The link is on for 10, 10 - 3 and 5 ms of the first three intervals.
        let expected = (10 * rate(&idle, 0) + 7 * rate(&idle, 1) + 5 * rate(&idle, 2)) * 1_000_000;
        assert_eq!(idle.work(Time::ZERO, until), Some(expected));
        let end = now + Span::from_millis(77);
        assert_eq!(busy.work(Time::ZERO, end), idle.work(Time::ZERO, end));
    }

    #[test]
    fn packets_show_what_the_link_could_carry_by_the_time_that_they_take() {
        let outage = Outage { at: Span::from_millis(5), lasts: Span::from_millis(10), every: None };
        let ms = |n| Time::ZERO + Span::from_millis(n);
        let mut medium = per_packet("table(100kbit/s, 400kbit/s)", &[outage]);
        assert_eq!(medium.work(Time::ZERO, ms(1)), None, "nothing came");
        let first = medium.transmit(ms(2), ms(2), &packet()).departs;
        let rate = medium.current.as_bps();
        // 8000 bits take 80 or 20 ms, plus 10 ms of outage. Of 200 ms, 190 ms are outside the outage and count at the
        // drawn rate.
        assert_eq!(first, ms(12) + Rate::from_bps(rate).time_for(1000));
        let shown = |work: Option<u128>| work.unwrap() as f64 / 1e9;
        assert!((shown(medium.work(Time::ZERO, ms(200))) - rate as f64 * 0.19).abs() < 1e-3);
        // Packets are sent with pauses; the last one is slow and half sent.
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

    #[test]
    fn a_delay_of_every_packet_is_remarked_where_it_shifts_the_mean_by_more_than_its_spread() {
        let link = |rate: &str, delay: &str, redraw| VariableConfig {
            rate: rate.parse().unwrap(),
            delay: delay.parse().unwrap(),
            redraw,
            ..VariableConfig::default()
        };
        // The shift of 40 ms + e(10 ms) at 50 Mbit/s is 34 ms, and at 1 Mbit/s 2 ms.
        let [shift, deviation] = link("50Mbit/s", "40ms + e(10ms)", Redraw::Packet).shift_of_bulk().unwrap();
        assert!((shift - 34.0).abs() < 1.0 && (deviation - 10.0).abs() < 0.3, "{shift} {deviation}");
        let remark = link("50Mbit/s", "40ms + e(10ms)", Redraw::Packet).remark().unwrap();
        assert!(remark.starts_with("redraw: ") && remark.contains("`40ms + e(10ms)`"), "{remark}");
        assert_eq!(link("1Mbit/s", "40ms + e(10ms)", Redraw::Packet).remark(), None);
        let interval = Redraw::Interval(Span::from_millis(100));
        assert_eq!(link("50Mbit/s", "40ms + e(10ms)", interval).remark(), None);
        assert_eq!(VariableConfig::default().remark(), None);
    }
}
