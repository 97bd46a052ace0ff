//! Total rate of a cell whose users always have data.
//!
//! The channels are sampled only every few slots, so that the calculation costs a small part of simulating the cell.
//! The power of a fading channel has no frequency component above twice the Doppler frequency, so samples above that
//! rate show the mean of the power. [`OFTEN`] samples per Doppler period leave a margin for the steps of the rate
//! table. In a long run fewer samples are enough.

use std::collections::BTreeSet;
use std::ops::Range;

use ackclock_core::{ConfigError, Rate, Streams};
use ackclock_link::short_flows::Class;
use ackclock_link::{CellUser, FadingKind};

use super::channel::Channel;
use super::config::{CellConfig, Remainder, Transport};
use super::grant::{Grant, grants};
use super::rates::RateRow;
use super::slots::Slots;
use crate::scheduler::{Candidate, Scheduler, Service};

/// Number of samples of a channel per Doppler period.
const OFTEN: f64 = 2.5;
/// Number of samples that determine a mean to within half a percent, for any spacing of the samples.
const ENOUGH: u64 = 1 << 14;
/// Maximum number of slots between two samples, which is a small part of the averaging time of proportional fair.
const MOST_SLOTS: f64 = 25.0;

/// A sampled channel of a user.
pub(super) trait Look {
    /// State of the channel at sample number `look`; sample numbers increase from call to call.
    fn state(&mut self, look: u64) -> usize;
}

impl Look for Channel {
    fn state(&mut self, look: u64) -> usize {
        Self::state(self, look)
    }
}

/// Users that always have data, all belonging to long flows.
pub(super) struct Saturated<C> {
    channels: Vec<C>,
    /// Capacity granted in each state of a channel.
    grants: Vec<Grant>,
    scheduler: Box<dyn Scheduler>,
    /// Candidates of a scheduling decision; kept to reuse the memory.
    candidates: Vec<Candidate>,
    /// State of each user's channel; kept to reuse the memory.
    states: Vec<usize>,
    /// Number of slots between two samples.
    slots: u64,
    /// Number of samples from the measurement of a channel until the user can be served at the measured rate.
    delay: u64,
    /// Use of the rest of a slot after the end of a packet.
    remainder: Remainder,
    /// Size of a packet, in bits times slots per second.
    packet: u64,
    /// Unsent part of each user's packet, in bits times slots per second.
    left: Vec<u64>,
    /// First sample after the latest outage of each user's channel.
    resumes: Vec<u64>,
    /// Number of the next sample of the channels.
    next: u64,
    /// Total capacity used so far, in bits times slots per second.
    done: u128,
}

/// Calculates the rate that a cell would have if its users with flows always had data. The saturated cell is built on
/// first use.
pub(super) struct Reference {
    config: CellConfig,
    streams: Streams,
    name: String,
    users: BTreeSet<u32>,
    saturated: Option<Saturated<Channel>>,
    /// Changes of the users with these numbers, each with its first slot, in order of time.
    changes: Vec<(u64, Range<u32>, UserChange)>,
    /// Number of changes that the saturated cell contains.
    changed: usize,
}

/// Change of a user's channel.
enum UserChange {
    /// New settings of the channel.
    Settings(CellUser),
    /// Outage until this slot.
    Outage(u64),
}

impl Reference {
    /// Creates the reference of the cell called `name`.
    pub(super) fn new(config: &CellConfig, streams: &Streams, name: &str) -> Self {
        let (config, streams, name) = (config.clone(), streams.clone(), name.to_owned());
        let (users, changes) = (BTreeSet::new(), Vec::new());
        Self { config, streams, name, users, saturated: None, changes, changed: 0 }
    }

    /// Adds a user that gets its first flow.
    pub(super) fn join(&mut self, user: u32) {
        if self.users.insert(user) {
            self.saturated = None;
        }
    }

    /// Configuration of the cell at its start.
    pub(super) const fn config(&self) -> &CellConfig {
        &self.config
    }

    /// Changes the channels of the users with these numbers from the slot `first` on.
    pub(super) fn change(&mut self, first: u64, numbers: Range<u32>, user: CellUser) {
        self.changes.push((first, numbers, UserChange::Settings(user)));
        self.saturated = None;
    }

    /// Interrupts the channels of the users with these numbers from the slot `first` until the slot `until`.
    pub(super) fn interrupt(&mut self, numbers: Range<u32>, first: u64, until: u64) {
        self.changes.push((first, numbers, UserChange::Outage(until)));
    }

    /// Mean rate in bit/s that the users would have got before `slot` with packets of `packet_bytes` bytes; `None` if
    /// the cell cannot be built.
    pub(super) fn mean_bps_before(&mut self, slot: u64, packet_bytes: u64) -> Option<f64> {
        if self.saturated.is_none() {
            let here = |user| self.users.is_empty() || self.users.contains(&user);
            let fastest = self.changes.iter().map(|(.., change)| change.doppler()).fold(0.0, f64::max);
            let of_cell = Saturated::of_cell(&self.config, &self.streams, &self.name, slot, here, fastest);
            (self.saturated, self.changed) = (of_cell.ok(), 0);
        }
        let saturated = self.saturated.as_mut()?;
        saturated.packet = packet_bytes * 8 * u64::from(self.config.slots);
        while let Some((first, numbers, change)) =
            self.changes.get(self.changed).filter(|(at, ..)| *at < slot)
        {
            saturated.mean_bps_before(*first);
            for number in numbers.clone() {
                if self.users.is_empty() || self.users.contains(&number) {
                    let index = if self.users.is_empty() {
                        number as usize
                    } else {
                        self.users.range(..number).count()
                    };
                    saturated.change(index, change, *first, &self.config.rates);
                }
            }
            self.changed += 1;
        }
        Some(saturated.mean_bps_before(slot) * self.config.free_share())
    }
}

impl UserChange {
    /// Doppler frequency after the change, Hz; zero if the change does not set it.
    const fn doppler(&self) -> f64 {
        match self {
            Self::Settings(user) => user.doppler,
            Self::Outage(_) => 0.0,
        }
    }
}

impl Saturated<Channel> {
    /// Changes the channel of the user at `index` from the slot `first` on.
    fn change(&mut self, index: usize, change: &UserChange, first: u64, rates: &[RateRow]) {
        match change {
            UserChange::Settings(user) => self.channels[index].change(user, rates, first / self.slots),
            UserChange::Outage(until) => self.resumes[index] = until.div_ceil(self.slots),
        }
    }

    /// Creates those users of the cell called `name` that `here` selects, with the same channel draws as in the cell,
    /// for a run of `run` slots in which no Doppler frequency rises above `fastest`, Hz, or that of the configuration.
    pub(super) fn of_cell(
        config: &CellConfig,
        streams: &Streams,
        name: &str,
        run: u64,
        here: impl Fn(u32) -> bool,
        fastest: f64,
    ) -> Result<Self, ConfigError> {
        let slots = slots_between_looks(config, run, fastest);
        let looks = f64::from(config.slots) / slots as f64;
        let channel = |(number, user): (u32, _)| {
            Channel::new(user, &config.rates, looks, streams.stream(&format!("{name}/fading/{number}")))
        };
        let users = (0..).zip(config.each_user()).filter(|&(number, _)| here(number));
        let channels = users.map(channel).collect();
        let delay = u64::from(config.drc_delay) / slots;
        Ok(Self { slots, delay, ..Self::new(config, channels)? })
    }
}

impl<C: Look> Saturated<C> {
    /// Creates the users of a cell with these channels, sampled in every slot.
    pub(super) fn new(config: &CellConfig, channels: Vec<C>) -> Result<Self, ConfigError> {
        Ok(Self {
            grants: grants(config, Slots::new(config.slots)),
            scheduler: config.build_scheduler()?,
            candidates: Vec::new(),
            states: Vec::new(),
            slots: 1,
            delay: 0,
            remainder: config.remainder,
            packet: 0,
            left: vec![0; channels.len()],
            resumes: vec![0; channels.len()],
            next: 0,
            done: 0,
            channels,
        })
    }

    /// Mean total rate of the users before `slot`, bit/s.
    pub(super) fn mean_bps_before(&mut self, slot: u64) -> f64 {
        while self.next == 0 || self.next * self.slots < slot {
            self.serve();
        }
        self.done as f64 / (self.next * self.slots) as f64
    }

    /// Returns the user served until the next sample, with its rate; `None` if all rates are zero.
    pub(super) fn serve(&mut self) -> Option<(u32, Rate)> {
        let (measured, slot) = (self.next.saturating_sub(self.delay), self.next * self.slots);
        self.candidates.clear();
        self.states.clear();
        for (user, channel) in (0..).zip(&mut self.channels) {
            let interrupted = self.next < self.resumes[user as usize];
            let state = if interrupted { 0 } else { channel.state(measured) };
            self.states.push(state);
            self.candidates.push(Candidate {
                user,
                weight: 1,
                rate: self.grants[state].bps,
                class: Class::Long,
            });
        }
        let Some(chosen) = self.scheduler.choose(slot, &self.candidates) else {
            self.next += 1;
            return None;
        };
        let (Candidate { user, rate, .. }, grant) =
            (self.candidates[chosen], self.grants[self.states[chosen]]);
        let slots = grant.slots.max(self.slots);
        let (most, done) = (grant.work * (slots / grant.slots), self.send(user, grant, slots / grant.slots));
        let served = rate * (done as f64 / most as f64);
        self.scheduler.served(Service { user, weight: 1, slot, slots, rate, served });
        self.done += u128::from(done);
        self.next += slots / self.slots;
        Some((user, grant.rate))
    }

    /// Capacity that a user uses of `grants` equal grants, in bits times slots per second.
    fn send(&mut self, user: u32, grant: Grant, grants: u64) -> u64 {
        if self.remainder == Remainder::Next {
            return grant.work * grants;
        }
        let left = &mut self.left[user as usize];
        let one = |_| {
            *left = if *left == 0 { self.packet } else { *left };
            let sent = grant.work.min(*left);
            *left -= sent;
            sent
        };
        (0..grants).map(one).sum()
    }
}

/// Number of slots between samples, so that the fastest channel is sampled often enough in a run of `run` slots.
fn slots_between_looks(config: &CellConfig, run: u64, fastest: f64) -> u64 {
    let drawn = config.each_user().any(|user| user.fading == FadingKind::Table);
    if drawn || config.transport == Transport::Packets {
        return 1;
    }
    let fastest = config.each_user().map(|user| user.doppler).fold(fastest, f64::max);
    let often = f64::from(config.slots) / (OFTEN * fastest);
    often.max((run / ENOUGH) as f64).clamp(1.0, MOST_SLOTS) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_link::CellUser;
    use ackclock_link::{LinkConfig, NoFiles};

    fn cell(scheduler: &str, dopplers: &[f64]) -> CellConfig {
        let mut cell = CellConfig::default();
        cell.scheduler = scheduler.into();
        let user = |(snr, &doppler)| CellUser { mean_snr: f64::from(snr), doppler, ..CellUser::default() };
        cell.with_users(&(0..).step_by(3).zip(dopplers).map(user).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_look_now_and_then_shows_what_every_slot_shows() {
        for (scheduler, dopplers, seconds) in [
            ("round-robin", &[30.0][..], 60),
            ("round-robin", &[3.0, 60.0], 60),
            ("max-rate", &[11.0, 11.0, 30.0], 60),
            ("pf", &[11.0, 11.0, 30.0], 60),
            ("pf", &[3.0, 60.0], 60),
            ("pf", &[60.0, 30.0], 1000),
        ] {
            let slots = seconds * 600;
            let (config, streams) = (cell(scheduler, dopplers), Streams::new(3, 0));
            let mut seldom = Saturated::of_cell(&config, &streams, "down", slots, |_| true, 0.0).unwrap();
            let channel = |(number, user): (u32, _)| {
                let stream = streams.stream(&format!("down/fading/{number}"));
                Channel::new(user, &config.rates, config.slots.into(), stream)
            };
            let channels = (0..).zip(config.each_user()).map(channel).collect();
            let mut always = Saturated::new(&config, channels).unwrap();
            let [few, all] =
                [seldom.mean_bps_before(slots), always.mean_bps_before(slots)].map(|bps| bps / 1e3);
            assert!(seldom.slots >= 4, "{}", seldom.slots);
            // A minute has about 1800 fades at 30 Hz and 180 at 3 Hz, all of which are sampled. In 1000 s there are 24
            // 000, and the deviation of a rate is about 0.7 of its mean: 0.7 / sqrt(24 000) = 0.5 %.
            assert!((few / all - 1.0).abs() < 0.01, "{scheduler} {dopplers:?}: {few} and {all} kbit/s");
        }
    }

    #[test]
    fn what_is_left_of_a_slot_in_which_a_packet_ends_is_carried_or_not() {
        // 2457.6 kbit/s are 512 B a slot: packets of 1000 B end in every second one and leave 24 B.
        let user = CellUser { mean_snr: 9.6, fading: FadingKind::None, ..CellUser::default() };
        for (remainder, share) in [(Remainder::Next, 1.0), (Remainder::Waste, 1000.0 / 1024.0)] {
            let mut cell = CellConfig::default();
            cell.remainder = remainder;
            let cell = cell.with_users(std::slice::from_ref(&user)).unwrap();
            let got = Reference::new(&cell, &Streams::new(1, 0), "down").mean_bps_before(6000, 1000).unwrap();
            assert!((got / 2_457_600.0 - share).abs() < 1e-6, "{remainder:?}: {got}");
        }
    }

    #[test]
    fn a_cell_could_carry_what_its_scheduler_gives_and_not_what_the_best_of_all_users_would_get() {
        // Two users without fading at 9.6 dB and -3 dB, 2457.6 and 307.2 kbit/s: in turn they get the mean of both.
        let user = |mean_snr| CellUser { mean_snr, fading: FadingKind::None, ..CellUser::default() };
        for (scheduler, kbps) in [("round-robin", 1382.4), ("max-rate", 2457.6)] {
            let mut cell = CellConfig::default();
            cell.scheduler = scheduler.into();
            let cell = cell.with_users(&[user(9.6), user(-3.0)]).unwrap();
            let mut saturated =
                Saturated::of_cell(&cell, &Streams::new(1, 0), "down", 6000, |_| true, 0.0).unwrap();
            let got = saturated.mean_bps_before(600 * 10) / 1e3;
            assert!((got / kbps - 1.0).abs() < 0.005, "{scheduler}: {got}");
            assert_eq!(cell.nominal(&NoFiles).unwrap().rate, Rate::from_bps(2_457_600));
        }
    }
}
