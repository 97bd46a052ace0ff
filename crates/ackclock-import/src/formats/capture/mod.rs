//! # Packet captures
//!
//! ## Source
//! Files of tcpdump and Wireshark: pcap and pcapng.
//!
//! ## What it does
//! Counts the bytes that arrived at the receiver in bins of time, and judges by the clocks of the senders when the link
//! was busy. Each data segment carries the sender's clock (TSval). Arrival time less TSval, less its minimum, is the
//! queueing delay of the segment. The link is busy in the union of all times that segments were queued for more than
//! 20 ms. An outage therefore is busy time, because the next segment was sent before it, and a pause of the
//! application is idle time. Rates in bins that are entirely busy are the capacity of the link; in all other bins they
//! are lower bounds.
//!
//! The tick of the clock is fitted, and its skew is removed by the upper envelope of TSval over arrival time. Echoed
//! timestamps serve only to find the end of the path at which the capture was made: the near end replies sooner.
//! The file is read twice, and packets are not kept.
//!
//! ## Differences from the source
//! The judgement is ours. RTT, queue and loss are not derived.
//!
//! ## Validation
//! Tests of the command compare captures of simulated CUBIC and BBR flows with the recording that was played: rates of
//! busy seconds agree, and a paced stream is not graded as capacity. Unit tests write captures of a link of constant
//! rate, at the receiver and at the sender.

mod account;
mod busy;
mod flows;
mod packet;
mod packets;
mod sender_clock;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{Read, Seek};
use std::net::IpAddr;

use crate::{Recording, Sample, Samples, TraceError};
use ackclock_core::{Rate, Span};
use ackclock_link::Loss;

use account::Account;
use busy::Busy;
use flows::{Chosen, Flows, Key};
use packet::{FRAME, Fate, Packet};
use packets::each;
use sender_clock::{Clock, Ticks};

use super::{Certainty, Form, Grade, Imported, Options};

pub use packets::is_capture;

/// Interval over which rates are averaged by default.
const BIN: Span = Span::from_millis(100);
/// Smallest number of bins of a recording, and largest number of the bins of all senders together.
const LEAST_BINS: usize = 10;
const MOST_BINS: usize = 10_000_000;
/// Queueing delay in seconds from which a segment shows that the link is busy: more than the jitter of an idle link.
const QUEUED: f64 = 0.02;
/// Share of a bin from which it counts as entirely busy.
const ENTIRELY: f64 = 0.95;
/// Share of busy time from which a capture is graded as capacity.
const GRADE_CAPACITY: f64 = 0.9;
/// Share of busy time from which a capture is graded as mixed.
const GRADE_MIXED: f64 = 0.3;
/// Share of the bytes from which a sender has to be busy itself; smaller senders are merged without a judgement.
const SENDER: f64 = 0.01;

/// Reads rates from a packet capture, which is read twice.
///
/// # Errors
/// Fails if the file is no capture, was captured at the sender, or is too short or too long.
pub fn read<R: Read + Seek>(source: &mut R, options: &Options) -> Result<Imported, TraceError> {
    let failed = |error: std::io::Error| TraceError::whole(format!("it cannot be read twice: {error}"));
    source.rewind().map_err(failed)?;
    let flows = Flows::read(&mut *source)?;
    let chosen = flows.chosen(options)?;
    source.rewind().map_err(failed)?;
    let mut arrivals =
        Arrivals::new(flows.clocks(&chosen), flows.senders(&chosen), options.bin.unwrap_or(BIN));
    arrivals.account.is_asked = options.interface.is_some();
    let ended = each(source, |packet| arrivals.add(packet, &chosen))?;
    arrivals.account.unread = ended.unread;
    arrivals.imported(&flows, &chosen, options.fill)
}

/// Packets that arrived, by sender.
struct Arrivals {
    clocks: BTreeMap<Key, (Clock, Ticks)>,
    bin: Span,
    /// Arrival time of the first packet and of the last one, seconds.
    first: Option<f64>,
    last: f64,
    /// Senders of enough bytes to be judged.
    judged: BTreeMap<IpAddr, Sender>,
    /// All other senders together.
    others: Sender,
    total: u64,
    unstamped: u64,
    merged: u64,
    account: Account,
}

/// Bytes in each bin, and the times that segments were queued.
#[derive(Debug, Default)]
struct Sender {
    bytes: Vec<u64>,
    busy: Busy,
}

impl Arrivals {
    fn new(clocks: BTreeMap<Key, (Clock, Ticks)>, senders: BTreeMap<IpAddr, u64>, bin: Span) -> Self {
        let total = senders.values().sum::<u64>() as f64;
        let judged = senders.into_iter().filter(|(_, bytes)| *bytes as f64 >= SENDER * total);
        Self {
            clocks,
            bin,
            first: None,
            last: 0.0,
            judged: judged.map(|(address, _)| (address, Sender::default())).collect(),
            others: Sender::default(),
            total: 0,
            unstamped: 0,
            merged: 0,
            account: Account::default(),
        }
    }

    fn add(&mut self, packet: &Packet, chosen: &Chosen) {
        let count = match packet.fate {
            Fate::Repeated => &mut self.account.repeated,
            Fate::Back => &mut self.account.back,
            Fate::New if chosen.has(packet.interface, packet.from, packet.to) => &mut self.account.counted,
            Fate::New if chosen.leaves_out(packet) => &mut self.account.other_direction,
            Fate::New if chosen.knows(packet) => &mut self.account.elsewhere,
            Fate::New => &mut self.account.other_interface,
        };
        count.add(packet.bytes);
        if packet.fate != Fate::New || !chosen.has(packet.interface, packet.from, packet.to) {
            return;
        }
        let at = packet.at - *self.first.get_or_insert(packet.at);
        self.last = self.last.max(at);
        let index = (at / self.bin.as_secs_f64()).max(0.0) as usize;
        if index >= self.most() {
            return;
        }
        let bytes = packet.on_link();
        self.total += bytes;
        self.merged += u64::from(packet.is_merged());
        let sender = self.judged.get_mut(&packet.from).unwrap_or(&mut self.others);
        if sender.bytes.len() <= index {
            sender.bytes.resize(index + 1, 0);
        }
        sender.bytes[index] += bytes;
        let stamps = packet.segment.and_then(|segment| Some((segment.data > 0, segment.stamps?)));
        let Some((has_data, (value, _))) = stamps else {
            self.unstamped += bytes;
            return;
        };
        let Some((clock, ticks)) = self.clocks.get_mut(&Key::of(packet)).filter(|_| has_data) else { return };
        let queued = clock.queueing_delay(packet.at, ticks.since_first(value)) - QUEUED - clock.tick();
        if queued > 0.0 {
            sender.busy.add(at - queued, at);
        }
    }

    /// Largest number of bins for so many senders.
    fn most(&self) -> usize {
        MOST_BINS / self.judged.len().max(1)
    }

    /// Makes the recording of all bins that are over.
    fn imported(self, flows: &Flows, chosen: &Chosen, fill: bool) -> Result<Imported, TraceError> {
        let bin = self.bin.as_secs_f64();
        let count = (self.last / bin) as usize;
        if !(LEAST_BINS..=self.most()).contains(&count) {
            return Err(TraceError::whole(format!(
                "it has {count} bins of {}; {LEAST_BINS} to {} are read: --bin sets their length",
                self.bin,
                self.most()
            )));
        }
        let bins = self.bins(count);
        let at = |index: usize| Span::from_nanos(self.bin.as_nanos() * index as u64);
        let busy = bins.iter().map(|bin| bin.busy).sum::<f64>() / count as f64;
        let entire = bins.iter().filter(|bin| bin.is_entire()).count();
        let mut rates: Vec<f64> = bins.iter().map(|one| one.bytes as f64 * 8.0 / bin).collect();
        if fill {
            filled(&mut rates, &bins)?;
        }
        let sample = |(index, rate): (usize, &f64)| Sample {
            begins: at(index),
            rate: Rate::from_bps_f64(*rate),
            delay: Span::ZERO,
            loss: Loss::NONE,
        };
        let samples = Samples::new(rates.iter().enumerate().map(sample).collect(), at(count))?;
        Ok(Imported {
            form: Form::Pcap,
            recording: Recording::Samples(samples),
            certainty: Some(graded(busy, entire as f64 / count as f64, fill, self.account.objection())),
            missing: 0,
            even: true,
            begins: None,
            capacity: if self.account.objection().is_some() {
                Vec::new()
            } else {
                entire_bins(&bins).map(|(first, end)| (at(first), at(end))).collect()
            },
            notes: self.notes(flows, chosen),
        })
    }

    /// Bytes and busy share of each bin. If several senders are active in a bin, each has to be busy.
    fn bins(&self, count: usize) -> Vec<Bin> {
        let mut bins = vec![Bin { bytes: 0, busy: 0.0, is_judged: false }; count];
        for (bin, bytes) in bins.iter_mut().zip(&self.others.bytes) {
            bin.bytes += bytes;
        }
        for sender in self.judged.values() {
            let shares = sender.busy.shares(self.bin.as_secs_f64(), count);
            let bytes = sender.bytes.iter().copied().chain(std::iter::repeat(0));
            for ((bin, share), bytes) in bins.iter_mut().zip(shares).zip(bytes) {
                bin.add(bytes, share);
            }
        }
        bins
    }

    /// Limits of this import, and what the capture lacks.
    fn notes(&self, flows: &Flows, chosen: &Chosen) -> Vec<String> {
        let receivers: Vec<String> = chosen.receivers.iter().take(3).map(IpAddr::to_string).collect();
        let more = if chosen.receivers.len() > 3 { " and others" } else { "" };
        let percent = 100.0 * self.unstamped as f64 / self.total.max(1) as f64;
        let mut notes = vec![
            format!("rates count the IP bytes that arrived at {}{more}", receivers.join(", ")),
            self.account.note(),
            format!(
                "limits: packets without TCP timestamps (UDP, QUIC) show no queue: {percent:.1} % of the bytes; {} packets above {FRAME} bytes were merged before the capture: their headers are added, and they shift times by up to their length; a path that becomes longer looks like a queue; RTT, queue and loss are not derived",
                self.merged
            ),
        ];
        if !chosen.is_known {
            notes.push(
                "no TCP timestamp shows at which end it was captured; the receiver is assumed".to_owned(),
            );
        }
        if !flows.ended.complete {
            notes.push("the file is cut off: its last packet is left out".to_owned());
        }
        notes
    }
}

/// Bytes that arrived in one bin, and the share of it in which the link was busy.
#[derive(Clone, Copy, Debug)]
struct Bin {
    bytes: u64,
    busy: f64,
    /// Whether `busy` is that of senders of which bytes arrived.
    is_judged: bool,
}

impl Bin {
    /// Adds a sender. The least busy sender of those whose bytes arrived decides; without bytes, the busiest.
    fn add(&mut self, bytes: u64, share: f64) {
        self.busy = match (self.is_judged, bytes > 0) {
            (false, true) => share,
            (true, true) => self.busy.min(share),
            (false, false) => self.busy.max(share),
            (true, false) => self.busy,
        };
        self.is_judged |= bytes > 0;
        self.bytes += bytes;
    }

    fn is_entire(&self) -> bool {
        self.busy >= ENTIRELY
    }
}

/// First bin of each series of bins that are entirely busy, and the bin behind its last one.
fn entire_bins(bins: &[Bin]) -> impl Iterator<Item = (usize, usize)> {
    let series = bins.chunk_by(|one, next| one.is_entire() == next.is_entire());
    let with_end = series.scan(0, |end, series| {
        let first = *end;
        *end += series.len();
        Some((series[0].is_entire(), (first, *end)))
    });
    with_end.filter_map(|(is_entire, range)| is_entire.then_some(range))
}

/// Grade of a capture by its share of busy time; `entire` is the share of bins that are entirely busy. An objection to
/// the capture leaves no grade above application.
fn graded(busy: f64, entire: f64, fill: bool, objection: Option<String>) -> Certainty {
    if let Some(objection) = objection {
        return Certainty::new(Grade::Application, objection);
    }
    let grade = match busy {
        GRADE_CAPACITY.. => Grade::Capacity,
        GRADE_MIXED.. => Grade::Mixed,
        _ => Grade::Application,
    };
    let others = if fill { "interpolated" } else { "lower bounds" };
    let why = format!(
        "the link was busy in {:.0} % of the time; {:.0} % of the rates are capacity, the others are {others}",
        100.0 * busy,
        100.0 * entire
    );
    Certainty::new(grade, why)
}

/// Interpolates the rates of bins that are not entirely busy between those that are. A rate never falls below the
/// measured one, which is a lower bound.
fn filled(rates: &mut [f64], bins: &[Bin]) -> Result<(), TraceError> {
    let known: Vec<usize> = (0..bins.len()).filter(|&index| bins[index].is_entire()).collect();
    let (Some(&first), Some(&last)) = (known.first(), known.last()) else {
        return Err(TraceError::whole("no bin is entirely busy: --fill has nothing to interpolate between"));
    };
    for index in (0..first).chain(last + 1..rates.len()) {
        rates[index] = rates[index].max(rates[if index < first { first } else { last }]);
    }
    for pair in known.windows(2) {
        let (left, right) = (pair[0], pair[1]);
        let slope = (rates[right] - rates[left]) / (right - left) as f64;
        for index in left + 1..right {
            rates[index] = rates[index].max(rates[left] + slope * (index - left) as f64);
        }
    }
    Ok(())
}
