//! User of the bearer: the channels of its classes of service, and the air interfaces that they share.

use ackclock_core::results::RadioCounts;
use ackclock_core::{ConfigError, FlowId, Rate, Segment, Span, Time};
use ackclock_link::bearer::{BearerContext, DedicatedChange, Direction, Handover, HandoverTo};
use ackclock_link::queue::{AnyQueue, Place};
use ackclock_link::{Cause, LinkView, Load, OutageKind, QueuePlan, Repetitions};

use super::channel::Channel;
use super::class::Class;
use super::dedicated::{Dedicated, DedicatedConfig};
use super::filling::{Filling, Run};
use super::flow_control::Allocation;
use super::grants::Grants;
use super::iub::{Iub, Sent};
use super::streams::{of_class, of_user};
use crate::cell::Rank;
use crate::umts_rlc_am::{Asks, LossCause};

/// A user with its channels. All arrays are indexed by direction.
pub(super) struct User {
    /// Channels of the user's classes, the unnamed class first.
    pub(super) channels: Vec<Channel>,
    /// Channels of each direction in the order in which they fill the next TTI.
    order: [Vec<Turn>; 2],
    /// Dedicated air interface that the channels share; `None` for the downlink over a cell.
    pub(super) airs: [Option<Dedicated>; 2],
    /// Time that a PDU takes without queueing delay at the base station.
    times: [Span; 2],
    /// End of the last hand-over.
    away_until: Time,
    /// Whether packets of the user may have to be discarded at an age limit, or wait for earlier ones.
    has_timers: bool,
}

/// Turn of a channel to fill TTIs. Turns are ordered by priority, then by the time of the last turn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    priority: u16,
    last: Time,
    /// Number of the channel.
    channel: u8,
    /// Weight of the channel's class.
    weight: u16,
}

impl Turn {
    /// First turns of the channels of these classes.
    fn first(classes: &[Class]) -> Vec<Self> {
        let turn = |(channel, class): (u8, &Class)| {
            let Rank { priority, weight } = class.rank;
            Self { priority, last: Time::ZERO, channel, weight }
        };
        let mut turns: Vec<_> = (0..).zip(classes).map(turn).collect();
        turns.sort_unstable();
        turns
    }
}

/// Path of the downlink PDUs of a user.
pub(super) enum Downwards<'a> {
    Dedicated(&'a DedicatedConfig),
    /// The Iub of each channel, and the time that a PDU takes from controller to terminal without queueing delay.
    Shared(Vec<Iub>, Span),
    /// Grants of a cell, and the time that a PDU takes from base station to terminal.
    Granted(Span),
}

/// Queues of both directions of the class with the number `class` of a user, and their age limits.
fn queues(user: u32, class: usize, context: BearerContext<'_>) -> [(AnyQueue, Option<Span>); 2] {
    let queue =
        |plan: QueuePlan, name| (plan.named(of_class(of_user(name, user), class)).build(), plan.age_limit());
    [queue(context.down_of(class), "down/queue"), queue(context.up.clone(), "up/queue")]
}

/// Whether packets leave a queue by age, or are reordered by a timer.
fn has_timers(classes: &[Class], context: BearerContext<'_>) -> bool {
    [context.down, context.up].iter().any(|plan| plan.age_limit().is_some())
        || classes.iter().any(|class| class.rlc.reordering.is_some())
}

impl User {
    /// Creates the user with the number `number`. For the first user, random streams have the same names as in a bearer
    /// with one user.
    ///
    /// # Errors
    /// Returns an error that names the direction if a file of a table is unreadable or malformed.
    pub(super) fn new(
        classes: &[Class],
        down: Downwards<'_>,
        up: &DedicatedConfig,
        number: u32,
        context: BearerContext<'_>,
    ) -> Result<Self, (Direction, ConfigError)> {
        let rlc = &classes[0].rlc;
        let dedicated = |config: &DedicatedConfig, direction: Direction| {
            let name = &of_user(["down/errors", "up/errors"][direction as usize], number);
            let errors = context.errors(name);
            Dedicated::new(config, rlc, errors).map_err(|error| (direction, error))
        };
        // HARQ reports the arrival times of PDUs instead of their places.
        let places = |config: &DedicatedConfig| config.harq.is_none().then(|| config.places(rlc));
        let (air, config, mut iubs, is_granted, time) = match down {
            Downwards::Dedicated(config) => {
                let air = dedicated(config, Direction::Down)?;
                let time = air.time();
                (Some(air), Some(config), Vec::new().into_iter(), false, time)
            }
            Downwards::Shared(iubs, time) => (None, None, iubs.into_iter(), false, time),
            Downwards::Granted(time) => (None, None, Vec::new().into_iter(), true, time),
        };
        let own = dedicated(up, Direction::Up)?;
        let times = [time, own.time()];
        let channel = |(place, class): (usize, &Class)| {
            let source = (iubs.next().map(Box::new), is_granted.then(Grants::new));
            let places = [config.and_then(places), places(up)];
            Channel::new(&class.rlc, queues(number, place, context), places, source, times[0] + times[1])
        };
        Ok(Self {
            channels: classes.iter().enumerate().map(channel).collect(),
            order: Direction::BOTH.map(|_| Turn::first(classes)),
            airs: [air, Some(own)],
            times,
            away_until: Time::ZERO,
            has_timers: has_timers(classes, context),
        })
    }

    /// Time of the user's next event.
    pub(super) fn next_change(&self) -> Time {
        let airs = self.airs.iter().flatten();
        let first = airs.fold(Time::NEVER, |first, air| first.min(air.due()).min(air.next()));
        let first = self.channels.iter().fold(first, |first, channel| first.min(channel.next_change()));
        if self.has_timers { first.min(self.expires()) } else { first }
    }

    /// Time at which packets of the user next reach the age limit, or no longer wait for earlier ones, or an earlier time.
    fn expires(&self) -> Time {
        let of = |channel: &Channel| Direction::BOTH.map(|direction| channel.expires(direction));
        self.channels.iter().flat_map(of).min().unwrap_or(Time::NEVER)
    }

    /// Discards packets that have reached the age limit at `at`, and delivers those that no longer wait for earlier ones.
    pub(super) fn expire(&mut self, at: Time) {
        if !self.has_timers {
            return;
        }
        for number in 0..self.channels.len() {
            for direction in Direction::BOTH {
                if self.channels[number].expires(direction) <= at {
                    self.channels[number].expire(at, direction);
                    self.plan(at, number, direction);
                }
            }
        }
    }

    /// Processes arrivals at the instant `at`, then sends the PDUs that are due. Arrivals at the base station must have
    /// been processed before, and [aged packets](Self::expire) discarded.
    pub(super) fn step(&mut self, at: Time, filling: &mut Filling) {
        for direction in Direction::BOTH {
            if self.airs[direction as usize].as_ref().is_some_and(|air| air.due() == at) {
                self.receive(at, direction);
            }
        }
        for number in 0..self.channels.len() {
            if let Some((from, asks)) = self.channels[number].send(at, filling) {
                if asks == Asks::SetUpAnew {
                    self.set_up_anew(at, from, number);
                }
                self.channels[number].plan(from);
            }
        }
        for direction in Direction::BOTH {
            if self.airs[direction as usize].as_ref().is_some_and(|air| air.next() == at) {
                self.send(at, direction, filling);
            }
        }
    }

    /// Receives the PDUs of the TTI that arrives in a direction.
    fn receive(&mut self, at: Time, direction: Direction) {
        let Some(air) = &mut self.airs[direction as usize] else { return };
        while let Some(((number, sent), told)) = air.take_landed(at) {
            let channel = &mut self.channels[usize::from(number)];
            if channel.on_landed(at, direction, sent, told.ok_or(LossCause::Air))
                && direction == Direction::Up
            {
                channel.plan(at);
            }
        }
        air.receive(|number, pdus| {
            let channel = &mut self.channels[number];
            channel.receive(at, direction, pdus);
            if direction == Direction::Up {
                channel.plan(at);
            }
        });
        self.plan_air(at, direction.other());
    }

    /// Sends the TTI of a direction that starts at `at`: again a TTI that failed, or new PDUs.
    fn send(&mut self, at: Time, direction: Direction, filling: &mut Filling) {
        let Some(air) = &mut self.airs[direction as usize] else { return };
        if let Some(from) = air.repeat(at) {
            return self.plan_air(from, direction);
        }
        let room = air.granted(at);
        if room == 0 {
            return self.request(at, direction);
        }
        let (order, repeats) = (&mut self.order[direction as usize], air.repeats());
        fill(&mut self.channels, order, (at, direction), room, filling, repeats);
        let from = match air.repeats() {
            true => air.send_block(at, &filling.block),
            false => air.send(at, filling),
        };
        for (number, sent) in filling.block.drain(..) {
            self.channels[usize::from(number)].begin(at, direction, &sent);
        }
        filling.pdus.clear();
        self.finish(at, from, filling);
        self.report(at, direction);
        self.plan_air(from, direction);
    }

    /// Handles the TTI at `at` for which a scheduled channel has no grant: requests one if this is an opportunity.
    fn request(&mut self, at: Time, direction: Direction) {
        if self.airs[direction as usize].as_ref().is_some_and(|air| air.may_request(at)) {
            self.report(at, direction);
        }
        self.plan_air(at + Span::from_nanos(1), direction);
    }

    /// Reports to the base station the data that waits at `at`, if it schedules the channel.
    fn report(&mut self, at: Time, direction: Direction) {
        let Some(air) = self.airs[direction as usize].as_mut().filter(|air| air.is_scheduled()) else {
            return;
        };
        air.report(at, self.channels.iter().map(|channel| channel.octets(at, direction)).sum());
    }

    /// Re-establishes the RLC ends that request it after `filling`; they continue at `from`.
    fn finish(&mut self, at: Time, from: Time, filling: &mut Filling) {
        for Run { channel, asks, .. } in filling.runs.drain(..) {
            if asks == Asks::SetUpAnew {
                self.set_up_anew(at, from, channel.into());
            }
        }
    }

    /// Returns the weight with which the user requests a grant of the cell at `at`, if it requests one.
    pub(super) fn requests(&mut self, at: Time) -> Option<u16> {
        let requests = |channel: &mut Channel| channel.grants.as_mut().is_some_and(|own| own.requests(at));
        let any = self.channels.iter_mut().map(requests).fold(false, |any, one| any | one);
        any.then(|| self.next_weight()).flatten()
    }

    /// Weight of the class that sends in the user's next grant; `None` if the user has requested none.
    pub(super) fn next_weight(&self) -> Option<u16> {
        let requested = |turn: &&Turn| {
            self.channels[usize::from(turn.channel)].grants.as_ref().is_some_and(Grants::is_requested)
        };
        self.order[Direction::Down as usize].iter().find(requested).map(|turn| turn.weight)
    }

    /// Cuts PDUs for a block of the cell that starts at `at`: at most `room` PDUs, or octets if PDUs fill blocks. Returns
    /// the weight of the class that sends next; `None` if the user has no more data.
    pub(super) fn cut(&mut self, at: Time, room: usize, filling: &mut Filling) -> Option<u16> {
        let order = &mut self.order[Direction::Down as usize];
        fill(&mut self.channels, order, (at, Direction::Down), room, filling, true);
        filling.pdus.clear();
        for &Run { channel, pdus, .. } in &filling.runs {
            self.channels[usize::from(channel)].on_cut(at, pdus);
        }
        self.finish(at, at, filling);
        self.next_weight()
    }

    /// Schedules the next transmission of a channel in a direction, at or after `from`.
    fn plan(&mut self, from: Time, number: usize, direction: Direction) {
        if direction == Direction::Down {
            self.channels[number].plan(from);
        }
        self.plan_air(from, direction);
    }

    /// Schedules the next TTI of a direction's dedicated air interface, at or after `from`.
    fn plan_air(&mut self, from: Time, direction: Direction) {
        let Some(air) = &mut self.airs[direction as usize] else { return };
        let wants = self.channels.iter().map(|channel| channel.wants(direction));
        air.plan(wants.fold(Time::NEVER, Time::min), from);
    }

    /// Re-establishes both RLC ends of a channel; they continue at `from`.
    fn set_up_anew(&mut self, at: Time, from: Time, number: usize) {
        self.channels[number].set_up_anew(at);
        // PDUs on the Iub still arrive, but RLC ends that were re-established ignore them.
        self.airs.iter_mut().flatten().for_each(|air| air.lose(number));
        Direction::BOTH.into_iter().for_each(|direction| self.plan(from, number, direction));
    }

    /// Handles a PDU of a channel that the cell has finished. The PDU arrives at the terminal, or was lost for the cause
    /// in `told`.
    pub(super) fn on_landed(
        &mut self,
        at: Time,
        channel: usize,
        sent: Sent,
        told: Result<Repetitions, LossCause>,
    ) {
        if self.channels[channel].on_landed(at, Direction::Down, sent, told) {
            self.plan_air(at, Direction::Up);
        }
    }

    /// Passes to the controller an allocation of PDUs to a channel, and the base station's target delay.
    pub(super) fn tell(&mut self, at: Time, channel: usize, allocation: Allocation, target: Span) {
        self.channels[channel].tell(at, allocation, target);
        self.channels[channel].set_guards(self.times[0] + self.times[1]);
    }

    /// Changes a setting of a direction's dedicated channel at `now`.
    pub(super) fn change(&mut self, now: Time, direction: Direction, change: DedicatedChange) {
        let index = direction as usize;
        let Some(air) = &mut self.airs[index] else { return };
        let from = air.change(now, change);
        for channel in &mut self.channels {
            channel.sdus[index].change_ttis(from, air.room(), air.delay());
        }
        self.times[index] = air.time();
        self.set_guards();
    }

    /// Changes delay and rate of the Iub interface.
    pub(super) fn change_iub(&mut self, delay: Span, rate: Option<Rate>) {
        let iubs = self.channels.iter_mut().filter_map(|channel| channel.iub.as_mut());
        if let Some(before) = iubs.map(|iub| iub.change(delay, rate)).last() {
            // A PDU waits for the message that allows it, so its time includes two delays of the interface.
            self.change_time(Direction::Down, before * 2, delay * 2);
        }
    }

    /// Replaces a part of the time that a PDU takes in a direction.
    pub(super) fn change_time(&mut self, direction: Direction, before: Span, after: Span) {
        let time = &mut self.times[direction as usize];
        *time = time.saturating_sub(before) + after;
        self.set_guards();
    }

    fn set_guards(&mut self) {
        let round_trip = self.times[0] + self.times[1];
        self.channels.iter_mut().for_each(|channel| channel.set_guards(round_trip));
    }

    /// Interrupts both directions for a hand-over at `now`. To another cell, PDUs in transit still arrive; to another
    /// controller, they are lost.
    pub(super) fn hand_over(&mut self, now: Time, handover: &Handover) {
        self.away_until = handover.until;
        for air in self.airs.iter_mut().flatten() {
            air.interrupt(now, handover.until, OutageKind::Silent);
            air.lose_grants();
        }
        self.channels.iter_mut().for_each(|channel| channel.hand_over(now, handover));
        if handover.to == HandoverTo::Controller {
            self.airs.iter_mut().flatten().for_each(Dedicated::clear);
            let from = now + Span::from_nanos(1);
            self.channels.iter_mut().for_each(|channel| channel.plan(from));
            Direction::BOTH.into_iter().for_each(|direction| self.plan_air(from, direction));
        }
    }

    /// Adds an SDU to the buffer of a channel in a direction.
    pub(super) fn put(
        &mut self,
        now: Time,
        channel: usize,
        direction: Direction,
        segment: &Segment,
        place: Place,
    ) -> Result<(), Cause> {
        let taken = self.channels[channel].sdus[direction as usize].put(now, segment, place);
        // The TTI that starts at this instant may already be full, so transmission starts later.
        self.plan(now + Span::from_nanos(1), channel, direction);
        taken
    }

    /// Whether a hand-over is running at `now`.
    pub(super) fn is_away(&self, now: Time) -> bool {
        now < self.away_until
    }

    /// Downlink load of the user that waits or is in transit.
    pub(super) fn undelivered(&self) -> Load {
        let loads = self.channels.iter().map(|channel| channel.sdus[Direction::Down as usize].undelivered());
        loads.fold(Load::NONE, |sum, load| sum + load)
    }

    /// Downlink load of the user that waits for transmission.
    pub(super) fn waiting(&self) -> Load {
        let loads = self.channels.iter().map(|channel| channel.sdus[Direction::Down as usize].load());
        loads.fold(Load::NONE, |sum, load| sum + load)
    }

    /// Counters of a direction, without those of the base station.
    pub(super) fn counts(&self, direction: Direction) -> RadioCounts {
        let mut sum = RadioCounts::default();
        self.channels.iter().for_each(|channel| sum += &channel.counts(direction));
        self.airs[direction as usize].iter().for_each(|air| air.count(&mut sum));
        sum
    }

    /// Number of PDUs that the controller may send over the Iub; NaN without a limit.
    pub(super) fn credits(&self) -> f64 {
        self.channels.iter().filter_map(|channel| channel.iub.as_ref()).map(|iub| iub.credits()).sum()
    }

    /// Rate that the controller has given to the dedicated downlink channel, also in an outage.
    pub(super) fn allocated(&self) -> Rate {
        self.airs[Direction::Down as usize].as_ref().map_or(Rate::ZERO, Dedicated::given_rate)
    }

    /// Payload rate of a direction's dedicated air interface at `now`; zero over the Iub, because the controller does
    /// not know the rate of a shared cell. The edge reports the rate in a hand-over.
    pub(super) fn rate(&self, now: Time, direction: Direction) -> Rate {
        self.airs[direction as usize].as_ref().map_or(Rate::ZERO, |air| air.rate(now))
    }

    /// View of the buffer that serves `flow` in a direction. For a cell the caller sets the rate of the view.
    pub(super) fn view(&self, now: Time, channel: usize, direction: Direction, flow: FlowId) -> LinkView {
        self.channels[channel].view(direction, flow, self.rate(now, direction))
    }
}

/// Fills a TTI or block of `room` units with PDUs of the channels, in order of their turns. `in_block` says whether the
/// PDUs are marked for a block.
fn fill(
    channels: &mut [Channel],
    order: &mut [Turn],
    (at, direction): (Time, Direction),
    room: usize,
    Filling { pdus, runs, block }: &mut Filling,
    in_block: bool,
) {
    for turn in order.iter_mut() {
        let (number, channel) = (turn.channel, &mut channels[usize::from(turn.channel)]);
        if channel.left(direction, room, pdus) == 0 {
            break;
        }
        let (before, marked) = (pdus.len(), in_block.then(|| channel.marks(direction)));
        let asks = channel.fill(at, direction, room, pdus);
        runs.push(Run { channel: number, pdus: (pdus.len() - before) as u32, asks });
        if pdus.len() > before {
            turn.last = at;
        }
        if let Some(marked) = marked {
            block.extend(pdus[before..].iter().map(|pdu| (number, marked(*pdu))));
        }
    }
    if order.len() > 1 {
        order.sort_unstable();
    }
}
