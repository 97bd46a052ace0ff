//! # Radio access
//!
//! ## Source
//! Source: the radio network of CR02, AC06, L02 and M05, from the radio network controller to the terminals, with the
//! RLC of 3GPP TS 25.322 (`umts_rlc_am`); described in `radio-access.md`.
//!
//! ## What it does
//! Every user (`user`) has a queue and a pair of RLC ends in each direction (`channel`), without a clock. The air
//! interface requests PDUs from the RLC ends: a dedicated channel once per TTI (`dedicated`), or the Iub to a base
//! station as soon as the flow control allows (`iub`, `flow_control`). At the base station PDUs wait (`waiting`) until a
//! cell grants the user a block (`shared`). Without an Iub the RLC ends stand in the base station, and PDUs are cut when
//! the cell grants a block (`grants`). A packet departs when its last octet is first sent, over the air or over the Iub
//! to the base station. New PDUs within one packet that are sent together are handled as a run, until their fates differ.
//!
//! A hand-over interrupts the air of one user in both directions. To another cell, the RLC continues; the PDUs at the
//! base station are forwarded or removed, and PDUs on the Iub arrive at the new base station. To another controller,
//! both RLC ends are re-established, and packets that their peer has not acknowledged are sent again as a whole, before
//! the queue; the far end delivers no packet twice. If the old controller does not forward, these packets and the
//! downlink queue are lost. The uplink queue is in the terminal, and stays.
//!
//! With classes of service (`class`), each user has a channel for each class. The channels of a user share its air
//! interfaces; a channel of a lower priority sends in the room that the others leave.
//!
//! Random numbers for errors come from the streams `down/errors` and `up/errors` for the first user, and from
//! `down/errors/N` and `up/errors/N` for other users, so adding a user does not change the random numbers of the
//! existing users.
//!
//! With `allocation`, the controller sets the downlink rate of each user's dedicated channel by the number of active
//! users (`allocation`). The rates of dedicated channels are reported when they change (`reports`).
//!
//! With `air.up.grants`, the base station schedules the uplink (`scheduled`).
//!
//! With `rlc.delays`, each user and direction holds delivered packets for the artificial delays of M05 chapter 5
//! (`artificial_delay`): a packet is delivered at the end of its hold time after it is complete, and after earlier
//! packets of its flow if packets are delivered in order.
//!
//! ## Differences from the source
//! The differences from the source are those of the RLC (`umts_rlc_am`). The sources describe no hand-over. After a
//! re-establishment, packets that the peer has acknowledged but not delivered, because an earlier packet is incomplete,
//! are also sent again; they no longer count against the buffer.
//!
//! ## Validation
//! `tests/radio_access.rs` checks the properties required of all bearers, with one user and with three users, and that
//! a user has the same events alone and among other users. Results over a dedicated channel in each direction are
//! compared with AC06 and closed forms.

mod air;
mod airs;
mod allocation;
mod blocks;
mod channel;
mod class;
mod config;
mod dedicated;
mod filling;
mod flow_control;
mod flow_controls;
mod grants;
mod iub;
mod remarks;
mod repeated;
mod reports;
mod scheduled;
mod shared;
mod streams;
mod user;
mod waiting;

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;

use ackclock_core::results::RadioCounts;
use ackclock_core::{ConfigError, FlowId, Histogram, RadioReport, Rate, Segment, Span, Time};
use ackclock_link::bearer::{Bearer, BearerContext, Change, DedicatedChange, Direction, Handover, Observing};
use ackclock_link::queue::{Place, Queue};
use ackclock_link::{Cause, CellChange, Departures, LinkEvent, LinkView, Load, OutageKind};

pub use self::air::{AirConfig, AirKind};
pub use self::airs::AIRS;
use self::allocation::Allocation;
pub use self::allocation::AllocationConfig;
use self::channel::Channel;
use self::class::Class;
pub use self::config::{Airs, RadioAccessConfig};
pub use self::dedicated::{DedicatedConfig, ErrorsBy};
use self::filling::Filling;
pub use self::flow_control::{
    CreditConfig, FlowControlConfig, FlowControlKind, OnOffConfig, UncontrolledConfig,
};
pub use self::flow_controls::FLOW_CONTROLS;
pub use self::iub::IubConfig;
use self::reports::Reports;
pub use self::scheduled::GrantsConfig;
use self::shared::Shared;
use self::user::{Downwards, User};
use crate::umts_rlc_am::Sdus;

/// Payload rate of a dedicated channel, and its number of PDUs in a TTI.
type DedicatedRate = (Rate, u32);

/// Bearer of all users between the radio network controller and their terminals.
pub(crate) struct RadioAccess {
    users: Vec<User>,
    /// Time of each user's next event.
    changes: Vec<Time>,
    /// Time of the next event of each direction; `None` if it must be computed again.
    dues: [Cell<Option<Time>>; 2],
    /// The base station, if the users share a cell.
    shared: Option<Box<Shared>>,
    /// Allocation of the downlink rates, and the number of PDUs of each step in a TTI.
    allocation: Option<(Allocation, Vec<DedicatedRate>)>,
    /// Reports of the rates of dedicated channels; `None` unless requested.
    reports: Option<Reports>,
    /// Number of channels of each user.
    classes: usize,
    /// Channel of each flow, counted over all users; channel 0 by default.
    channel_of: Vec<u32>,
    /// Channel with the next event, for each direction.
    next: [usize; 2],
    /// Payload of a unit of room in a TTI, octets.
    octets: u32,
    filling: Filling,
}

impl RadioAccess {
    /// Creates the bearer for several users with equal channels, one for each class.
    ///
    /// # Errors
    /// Returns an error that names the direction if a file of a table is unreadable or malformed.
    pub(crate) fn new(
        classes: &[Class],
        [down, up]: [&DedicatedConfig; 2],
        users: u32,
        context: BearerContext<'_>,
    ) -> Result<Self, (Direction, ConfigError)> {
        let rlc = &classes[0].rlc;
        let user = |number| User::new(classes, Downwards::Dedicated(down), up, number, context);
        let allocation = down.allocation.as_ref().map(|config| {
            let step = |&rate| (rate, down.pdus_at(rate, rlc) as u32);
            (Allocation::new(config, users as usize), config.steps.iter().map(step).collect())
        });
        let users = (0..users).map(user).collect::<Result<_, _>>()?;
        Ok(Self { allocation, ..Self::of(users, None, classes) })
    }

    fn of(users: Vec<User>, shared: Option<Box<Shared>>, classes: &[Class]) -> Self {
        Self {
            changes: vec![Time::NEVER; users.len()],
            dues: Default::default(),
            users,
            shared,
            allocation: None,
            reports: None,
            classes: classes.len(),
            channel_of: Vec::new(),
            next: [0; 2],
            octets: classes[0].rlc.unit()[0],
            filling: Filling::default(),
        }
    }

    /// User of a flow, and number of its channel among those of the user.
    fn place(&self, flow: FlowId) -> (usize, usize) {
        self.split(self.channel_of.get(flow.index()).map_or(0, |&channel| channel as usize))
    }

    /// User of a channel, and number of the channel among those of the user.
    const fn split(&self, channel: usize) -> (usize, usize) {
        match self.classes {
            1 => (channel, 0),
            classes => (channel / classes, channel % classes),
        }
    }

    /// Channel with this number, counted over all users.
    fn channel(&mut self, number: usize) -> &mut Channel {
        let (user, channel) = self.split(number);
        &mut self.users[user].channels[channel]
    }

    /// Processes all events up to `now`.
    fn advance(&mut self, now: Time) {
        match &mut self.shared {
            Some(_) => self.advance_together(now),
            None if self.allocation.is_some() => self.advance_allocated(now),
            // Without a base station the users are independent of each other.
            None => {
                for (user, change) in self.users.iter_mut().zip(&mut self.changes) {
                    while *change <= now && *change != Time::NEVER {
                        self.dues = Default::default();
                        user.expire(*change);
                        user.step(*change, &mut self.filling);
                        *change = user.next_change();
                    }
                }
            }
        }
    }

    /// Processes all events up to `now` for users whose rates depend on each other. At each instant the order is:
    /// events of the users, allocation of the rates.
    fn advance_allocated(&mut self, now: Time) {
        while let Some((allocation, steps)) = &mut self.allocation {
            let first = self.changes.iter().copied().min().unwrap_or(Time::NEVER);
            let at = first.min(allocation.next_change());
            if at > now || at == Time::NEVER {
                return;
            }
            self.dues = Default::default();
            for (number, (user, change)) in self.users.iter_mut().zip(&mut self.changes).enumerate() {
                if *change <= at {
                    user.expire(at);
                    user.step(at, &mut self.filling);
                    *change = user.next_change();
                    allocation.on_data(at, number, user.undelivered().packets > 0);
                }
            }
            for (number, step) in allocation.advance(at) {
                let (rate, pdus) = steps[step];
                self.users[number].change(at, Direction::Down, DedicatedChange::Rate(rate, pdus));
            }
            self.note_rates(at);
        }
    }

    /// Processes all events up to `now` for users that share a base station. At each instant the order is: departures
    /// from the cell, arrivals at the cell, messages of the base station, packets that reach the age limit, transmissions
    /// of the RLC ends.
    fn advance_together(&mut self, now: Time) {
        let Some(shared) = &mut self.shared else { return };
        loop {
            let at = self.changes.iter().copied().min().unwrap_or(Time::NEVER).min(shared.next_change());
            if at > now || at == Time::NEVER {
                return;
            }
            self.dues = Default::default();
            shared.land(at, &mut self.users, &mut self.filling);
            for number in 0..self.users.len() * self.classes {
                shared.arrive(at, number, &mut self.users[number / self.classes]);
            }
            shared.look(at, &mut self.users);
            for (number, (user, change)) in (0..).zip(self.users.iter_mut().zip(&mut self.changes)) {
                *change = user.next_change();
                if *change <= at {
                    user.expire(at);
                    if let Some(weight) = user.requests(at) {
                        shared.request(at, number, weight);
                    }
                    user.step(at, &mut self.filling);
                    *change = user.next_change();
                }
            }
        }
    }

    fn put(&mut self, now: Time, direction: Direction, segment: &Segment, place: Place) -> Result<(), Cause> {
        self.advance(now);
        let (user, channel) = self.place(segment.flow);
        let taken = self.users[user].put(now, channel, direction, segment, place);
        self.dues = Default::default();
        self.changes[user] = self.users[user].next_change();
        if let Some((allocation, _)) = &mut self.allocation {
            allocation.on_data(now, user, self.users[user].undelivered().packets > 0);
        }
        taken
    }

    fn hand_over(&mut self, now: Time, handover: &Handover) {
        let number = handover.user as usize;
        let Some(user) = self.users.get_mut(number) else { return };
        user.hand_over(now, handover);
        if let Some(shared) = &mut self.shared {
            shared.hand_over(now, handover, user);
        }
    }

    /// Interrupts a direction of the users with these numbers until `until`.
    fn interrupt(
        &mut self,
        now: Time,
        direction: Direction,
        numbers: Range<u32>,
        until: Time,
        kind: OutageKind,
    ) {
        let Range { start, end } = numbers;
        for user in self.users.iter_mut().take(end as usize).skip(start as usize) {
            if let Some(air) = &mut user.airs[direction as usize] {
                air.interrupt(now, until, kind);
            }
        }
        if let (Direction::Down, Some(shared)) = (direction, &mut self.shared) {
            shared.change(now, CellChange::Outage(start..end, until, kind));
        }
    }

    /// Reports the rates of dedicated channels that have changed, if reports are requested.
    fn note_rates(&mut self, now: Time) {
        if let Some(reports) = &mut self.reports {
            reports.note(now, &self.users);
        }
    }

    /// Changes the cell of the base station.
    fn change_cell(&mut self, now: Time, change: CellChange) {
        let Some(shared) = &mut self.shared else { return };
        if let CellChange::Delay(law) = &change {
            let [before, after] = [shared.mean_delay(), law.mean()];
            self.users.iter_mut().for_each(|user| user.change_time(Direction::Down, before, after));
        }
        shared.change(now, change);
    }

    fn compute_due(&self, direction: Direction) -> Time {
        let shared = self.shared.as_ref().map_or(Time::NEVER, |shared| shared.next_change());
        let allocation = self.allocation.as_ref().map_or(Time::NEVER, |(own, _)| own.next_change());
        let mut due = shared.min(allocation);
        for (user, &change) in self.users.iter().zip(&self.changes) {
            due = due.min(change);
            for channel in &user.channels {
                due = due.min(channel.sdus[direction as usize].outcomes.due());
            }
        }
        due
    }

    fn channels(&self) -> impl Iterator<Item = &Channel> {
        self.users.iter().flat_map(|user| &user.channels)
    }

    fn channels_mut(&mut self) -> impl Iterator<Item = &mut Channel> {
        self.users.iter_mut().flat_map(|user| &mut user.channels)
    }

    fn sdus(&self, direction: Direction) -> impl Iterator<Item = &Sdus> {
        self.channels().map(move |channel| &channel.sdus[direction as usize])
    }

    fn sdus_mut(&mut self) -> impl Iterator<Item = &mut Sdus> {
        self.channels_mut().flat_map(|channel| &mut channel.sdus)
    }
}

impl Bearer for RadioAccess {
    fn enqueue(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause> {
        self.put(now, direction, segment, Place::Back)
    }

    fn enqueue_front(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause> {
        self.put(now, direction, segment, Place::Front)
    }

    fn peek_event(&mut self, now: Time, direction: Direction) -> Option<(Time, LinkEvent)> {
        self.advance(now);
        let first = match self.users.len() * self.classes {
            1 => 0,
            _ => {
                let due = self.sdus(direction).map(|sdus| sdus.outcomes.due()).enumerate();
                due.min_by_key(|&(_, due)| due)?.0
            }
        };
        self.next[direction as usize] = first;
        self.channel(first).sdus[direction as usize].outcomes.next(now)
    }

    fn take_segment(&mut self, direction: Direction) -> Segment {
        self.dues = Default::default();
        let first = self.next[direction as usize];
        self.channel(first).sdus[direction as usize].outcomes.take()
    }

    fn due(&self, direction: Direction) -> Time {
        if let ([user], None, None) = (self.users.as_slice(), &self.shared, &self.allocation)
            && let [channel] = user.channels.as_slice()
        {
            return channel.sdus[direction as usize].outcomes.due().min(self.changes[0]);
        }
        let known = &self.dues[direction as usize];
        let due = known.get().unwrap_or_else(|| self.compute_due(direction));
        debug_assert_eq!(due, self.compute_due(direction), "an event changed without notice");
        known.set(Some(due));
        due
    }

    fn want_departures(&mut self, direction: Direction, departures: Departures) {
        self.channels_mut().for_each(|channel| channel.sdus[direction as usize].departures = departures);
    }

    fn view(&mut self, now: Time, direction: Direction, flow: FlowId) -> LinkView {
        self.advance(now);
        let (user, channel) = self.place(flow);
        let view = self.users[user].view(now, channel, direction, flow);
        match &mut self.shared {
            _ if self.users[user].is_away(now) => LinkView { rate: Rate::ZERO, ..view },
            Some(shared) if direction == Direction::Down => {
                LinkView { rate: shared.rate(now, user * self.classes + channel), ..view }
            }
            _ => view,
        }
    }

    fn waiting(&mut self, now: Time, direction: Direction) -> Load {
        self.advance(now);
        self.sdus(direction).fold(Load::NONE, |sum, sdus| sum + sdus.load())
    }

    fn waiting_of(&mut self, now: Time, user: u32) -> Load {
        self.advance(now);
        self.users[user as usize].waiting()
    }

    fn waits(&self, direction: Direction) -> Cow<'_, Histogram> {
        if let [user] = self.users.as_slice()
            && let [channel] = user.channels.as_slice()
        {
            return Cow::Borrowed(&channel.sdus[direction as usize].waits);
        }
        let mut all = Histogram::default();
        self.sdus(direction).for_each(|sdus| all.merge(&sdus.waits));
        Cow::Owned(all)
    }

    fn radio(&self, direction: Direction, user: Option<u32>) -> Option<RadioCounts> {
        let numbers = match user {
            None => 0..self.users.len(),
            Some(user) if (user as usize) < self.users.len() => user as usize..user as usize + 1,
            Some(_) => return None,
        };
        let mut sum = RadioCounts::default();
        for number in numbers {
            let user = &self.users[number];
            let mut counts = user.counts(direction);
            if let (Some(shared), Direction::Down) = (&self.shared, direction) {
                shared.count(number, user, &mut counts);
            }
            sum += &counts;
        }
        Some(sum)
    }

    /// Sums the gauges over all users.
    fn gauges(&self, direction: Direction) -> Vec<f64> {
        let mut sums = Vec::new();
        for channel in self.channels() {
            for (place, value) in channel.gauges(direction).enumerate() {
                match sums.get_mut(place) {
                    Some(sum) => *sum += value,
                    None => sums.push(value),
                }
            }
        }
        if let Some(shared) = self.shared.as_ref().filter(|shared| shared.has_iub()) {
            let credits = self.users.iter().map(User::credits).sum();
            let [pdus, target_ms] = shared.gauges();
            sums.extend(if direction == Direction::Down { [pdus, target_ms, credits] } else { [0.0; 3] });
        }
        if self.allocation.is_some() {
            let allocated = || self.users.iter().map(|user| user.allocated().as_bps() as f64).sum();
            sums.push(if direction == Direction::Down { allocated() } else { 0.0 });
        }
        sums
    }

    fn want_reports(&mut self) {
        match &mut self.shared {
            Some(shared) => shared.want_reports(),
            None => self.reports = Some(Reports::new(&self.users)),
        }
    }

    /// Returns a report of a dedicated channel's rate, or of the cell about its users' shares, with each user's queues
    /// at controller and base station.
    fn poll_report(&mut self, now: Time) -> Option<RadioReport> {
        if let Some(reports) = &mut self.reports {
            return reports.poll(now);
        }
        let report = self.shared.as_mut()?.poll_report(now)?;
        let user = self.users.get(report.user? as usize)?;
        let Load { packets, bytes } = user.undelivered();
        Some(RadioReport { queued_packets: packets, queued_bytes: bytes, ..report })
    }

    /// Counts PDUs that arrived, plus the expected number that would have arrived with full use of the channel.
    fn capacity_bps(&mut self, until: Time, direction: Direction) -> Option<f64> {
        self.advance(until);
        if let (Some(shared), Direction::Down) = (&mut self.shared, direction) {
            return shared.capacity_bps(until);
        }
        let all = until.since(Time::ZERO);
        let airs = self.users.iter().filter_map(|user| user.airs[direction as usize].as_ref());
        let carried: f64 = airs.map(|air| air.carried(until)).sum();
        (all > Span::ZERO).then(|| carried * f64::from(self.octets) * 8.0 / all.as_secs_f64())
    }

    fn change(&mut self, now: Time, direction: Direction, change: Change) {
        self.advance(now);
        self.dues = Default::default();
        let is_handover = matches!(change, Change::Handover(_));
        match change {
            Change::Outage(numbers, until, kind) => self.interrupt(now, direction, numbers, until, kind),
            Change::Dedicated(changes) => {
                for (user, change) in self.users.iter_mut().zip(changes) {
                    user.change(now, direction, change);
                }
            }
            Change::Handover(handover) => self.hand_over(now, &handover),
            Change::Cell(change) => self.change_cell(now, change),
            Change::Iub(delay, rate) => {
                self.users.iter_mut().for_each(|user| user.change_iub(delay, rate));
                self.shared.iter_mut().for_each(|shared| shared.set_delay(delay));
            }
            // Media are parts of links.
            Change::Medium(_) => {}
        }
        for (user, next) in self.users.iter().zip(&mut self.changes) {
            *next = user.next_change();
        }
        // The edge reports the rates in a hand-over.
        if !is_handover {
            self.note_rates(now);
        }
    }

    fn classify(&mut self, flow: FlowId, class: u8) {
        let Some(channel) = self.channel_of.get_mut(flow.index()) else { return };
        let classes = self.classes as u32;
        *channel = *channel / classes * classes + u32::from(class).min(classes - 1);
        let own = *channel;
        self.shared.iter_mut().for_each(|shared| shared.join(own));
    }

    fn assign(&mut self, flow: FlowId, user: u32) {
        if self.channel_of.len() <= flow.index() {
            self.channel_of.resize(flow.index() + 1, 0);
        }
        let own = user.min(self.users.len() as u32 - 1) * self.classes as u32;
        self.channel_of[flow.index()] = own;
        self.shared.iter_mut().for_each(|shared| shared.join(own));
        self.sdus_mut().for_each(|sdus| sdus.queue_mut().assign(flow, user));
    }

    fn forget(&mut self, flow: FlowId) {
        self.sdus_mut().for_each(|sdus| sdus.queue_mut().forget(flow));
    }

    fn let_go(&mut self) {
        self.sdus_mut().for_each(Sdus::let_go);
        self.shared.iter_mut().for_each(|shared| shared.let_go());
    }

    fn start_capacity(&mut self, _: Time, _: Direction) {}

    #[inline]
    fn observing(&mut self) -> Option<&mut dyn Observing> {
        None
    }
}
