//! # Trace link
//!
//! ## Source
//! mm-link of mahimahi (behaviour described in `opportunities.rs`); `links.md` section 5.
//!
//! ## What it does
//! The link plays a recording in a loop, from the offset `begin` at the start of the run. With a mahimahi file packets
//! leave at the recorded opportunities. With a table of rates packets are transmitted at the recorded rates; after a
//! rate change the remaining bits of a packet are sent at the new rate.
//!
//! A buffer of B packets means B queued packets. With opportunities a packet stays queued until its first byte is sent,
//! so the head packet counts as one of the B packets, as in mm-link.
//!
//! ## Differences from the source
//! Packets arrive at whole milliseconds in mm-link, and at any nanosecond in ackclock.
//!
//! ## Validation
//! Tests compare departures calculated by hand for every rule of mm-link (`tests/trace.rs`), and the capacity of public
//! recordings.

use ackclock_core::{Config, ConfigError, Law, Rate, Segment, Span, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::begin::{Begin, Later};
use super::by_load::{ByLoad, LightConfig};
use super::opportunities::{OpportunityMedium, Tariff};
use super::samples::Playhead;
use super::{Recording, TraceError};
use ackclock_link::delay::Delays;
use ackclock_link::errors::Errors;
use ackclock_link::loss::Loss;
use ackclock_link::lossy::with_errors;
use ackclock_link::medium::{Fate, Found, Medium, Transmission};
use ackclock_link::pieces::{NANOBITS_PER_BYTE, finish};
use ackclock_link::{
    AnyLink, AnyMedium, Files, Framing, Impairments, LinkConfig, LinkContext, MediumContext, Nominal, Redraw,
    Reorder,
};

/// A link that plays a recording: a mahimahi file, or CSV or JSON with rates.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TraceConfig {
    /// Path of the recording.
    pub file: String,
    /// Second part of the recording, made on an idle link: `{ file = "light.csv", gap = "100ms", for = "50ms" }`. `file` is then
    /// the part that was made with a full queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub light: Option<LightConfig>,
    /// Start offset in the recording: a time, a distribution of times, or "anywhere". An offset past the end wraps
    /// around to the start. The default offset is "0s", or "anywhere" in scenarios with several runs whose links and
    /// flows draw no other random values.
    #[serde(skip_serializing_if = "Begin::is_start")]
    pub begin: Begin,
    /// Accounting of bytes at the opportunities of a mahimahi file.
    pub accounting: Accounting,
    /// Distribution of the one-way propagation delay, which is added to the delay in the recording.
    pub delay: Law<Span>,
    /// Times at which the delay is drawn. Packets stay in order, so a delay drawn for every packet raises the mean delay
    /// of packets that follow each other closely.
    #[serde(skip_serializing_if = "Redraw::is_packet")]
    pub redraw: Redraw,
    /// Packet loss in addition to the loss in the recording: a probability, independent for each packet, or an error
    /// process.
    pub loss: Errors,
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

/// Accounting of bytes at opportunities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Accounting {
    /// Accounting as in mm-link: an opportunity sends 1504 bytes, and a packet counts 4 bytes more than its size (its
    /// TUN header).
    #[default]
    Mahimahi,
    /// Accounting of IP bytes: an opportunity sends 1500 bytes, and a packet counts its size including headers.
    Ip,
}

impl Accounting {
    const fn tariff(self) -> Tariff {
        match self {
            Self::Mahimahi => Tariff { opportunity: 1504, overhead: 4 },
            Self::Ip => Tariff { opportunity: 1500, overhead: 0 },
        }
    }
}

impl Default for TraceConfig {
    fn default() -> Self {
        Self {
            file: String::new(),
            light: None,
            begin: Begin::default(),
            accounting: Accounting::Mahimahi,
            delay: Law::from(Span::ZERO),
            redraw: Redraw::Packet,
            loss: Errors::NONE,
            reorder: Reorder::default(),
            duplicate: Loss::NONE,
            corrupt: Loss::NONE,
            overhead: Framing::NONE,
        }
    }
}

impl Config for TraceConfig {
    fn check(&self) -> Result<(), ConfigError> {
        self.loss.check().map_err(|error| error.under("loss"))?;
        self.impairments().check()?;
        self.light.iter().try_for_each(LightConfig::check).map_err(|error| error.under("light"))?;
        if self.file.is_empty() {
            return Err(ConfigError::new(
                "file",
                "a trace link needs a recording: a mahimahi, CSV or JSON file",
            ));
        }
        Ok(())
    }

    fn complete(self) -> Result<Self, ConfigError> {
        let loss = self.loss.complete().map_err(|error| error.under("loss"))?;
        Ok(Self { loss, ..self })
    }
}

impl TraceConfig {
    fn recording(&self, files: &dyn Files) -> Result<Recording, ConfigError> {
        read(&self.file, files)
    }

    fn nominal_of(&self, recording: &Recording) -> Nominal {
        let own_delay = match recording {
            Recording::Opportunities(_) => Span::ZERO,
            Recording::Samples(samples) => {
                let weighted = |(index, row): (usize, &super::Sample)| {
                    row.delay.as_secs_f64() * samples.end(index).saturating_sub(row.begins).as_secs_f64()
                };
                let sum: f64 = samples.rows().iter().enumerate().map(weighted).sum();
                Span::from_secs_f64(sum / samples.length().as_secs_f64())
            }
        };
        Nominal { rate: recording.mean_rate(), delay: self.delay.mean() + own_delay }
    }

    /// Builds the medium of the recording, including its losses.
    fn transmitter(&self, context: MediumContext<'_>) -> Result<AnyMedium, ConfigError> {
        let recording = self.recording(context.files)?;
        let offset = self.begin.offset(recording.length(), context.streams);
        let play = |recording, prefix: &str| {
            let stream = |what: &str| context.streams.stream(&format!("{}/{prefix}{what}", context.name));
            let delays = Delays::redrawn(self.delay.clone(), self.redraw, stream("delay"));
            match recording {
                Recording::Opportunities(opportunities) => {
                    begun(OpportunityMedium::new(opportunities, self.accounting.tariff(), delays), offset)
                }
                Recording::Samples(samples) => {
                    let losses = stream("recorded-loss");
                    let work = samples.work();
                    begun(SampleMedium { playhead: Playhead::new(samples), work, delays, losses }, offset)
                }
            }
        };
        let heavy = play(recording, "");
        let Some(config) = &self.light else { return with_errors(heavy, &self.loss, context) };
        let light = read(&config.file, context.files).map_err(|error| error.under("light"))?;
        let medium = ByLoad::new(play(light, "light/"), heavy, config);
        with_errors(medium, &self.loss, context)
    }
}

/// Reads a recording.
fn read(path: &str, files: &dyn Files) -> Result<Recording, ConfigError> {
    let bytes = files.read(path).map_err(|message| ConfigError::new("file", message))?;
    Recording::parse(&bytes).map_err(|error: TraceError| ConfigError::new("file", format!("{path}: {error}")))
}

/// Starts `medium` at `offset` of its recording.
fn begun(medium: impl Medium + 'static, offset: Span) -> AnyMedium {
    match offset {
        Span::ZERO => medium.any(),
        offset => Later { inner: medium, offset }.any(),
    }
}

impl LinkConfig for TraceConfig {
    fn nominal(&self, files: &dyn Files) -> Result<Nominal, ConfigError> {
        Ok(self.nominal_of(&self.recording(files)?))
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

    fn draws(&self) -> bool {
        self.begin.is_drawn()
            || self.delay.constant().is_none()
            || !self.loss.is_none()
            || !self.impairments().is_none()
    }

    fn impairments(&self) -> Impairments {
        Impairments { reorder: self.reorder, duplicate: self.duplicate, corrupt: self.corrupt }
    }
}

/// Medium that transmits at the rates of a recording.
struct SampleMedium {
    playhead: Playhead,
    /// Capacity of one pass through the recording, in nanobits.
    work: u128,
    delays: Delays,
    losses: Stream,
}

impl Medium for SampleMedium {
    fn transmit(&mut self, _: Time, start: Time, segment: &Segment) -> Transmission {
        let work = u64::from(segment.wire_bytes()) * NANOBITS_PER_BYTE;
        // All complete passes are counted in one step, so that a low-rate recording takes no more time than a high-rate
        // recording.
        let playings = u128::from(work) / self.work;
        let rest = (u128::from(work) - playings * self.work) as u64;
        let start = start + self.playhead.samples.length() * playings as u64;
        let departs = finish(start, rest, |now| {
            let (row, until) = self.playhead.seek(now);
            (row.rate, until)
        });
        let (row, _) = self.playhead.seek(departs);
        let lost = row.loss != Loss::NONE && self.losses.chance(row.loss.probability());
        Transmission {
            departs,
            delay: self.delays.draw_at(departs) + row.delay,
            fate: if lost { Fate::Lost } else { Fate::Arrives },
        }
    }

    fn rate(&self, now: Time) -> Rate {
        self.playhead.at(now).0.rate
    }

    fn rate_until(&self, now: Time) -> Time {
        self.playhead.at(now).1
    }

    fn work(&mut self, from: Time, until: Time) -> Option<u128> {
        let samples = &self.playhead.samples;
        Some(samples.work_by(until) - samples.work_by(from))
    }

    fn ready(&mut self, now: Time, _: Found) -> Time {
        now
    }

    fn restart_work(&mut self, _: Time) {}

    fn varies(&self) -> bool {
        true
    }

    fn least_delay(&self) -> Span {
        Span::ZERO
    }

    fn foreseeable(&self) -> bool {
        false
    }
}
