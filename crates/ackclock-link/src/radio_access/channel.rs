//! Radio channel of one user. In each direction the channel has a queue, an RLC end, and a carrier for PDUs.

use ackclock_core::{ConfigError, FlowId, Rate, Span, Time};

use super::carrier::Carrier;
use super::dedicated::{Dedicated, DedicatedConfig};
use super::flow_control::Allocation;
use super::iub::{Iub, Sent};
use crate::bearer::{BearerContext, DedicatedChange, Direction, Handover, HandoverTo};
use crate::errors::ErrorContext;
use crate::queue::Queue;
use crate::umts_rlc_am::{Asks, Data, End, Payload, Pdu, Places, RlcConfig, Sdus};
use crate::{Cause, Fate, LinkView, Repetitions};

/// Both directions of a user, with an RLC end on each side. All arrays are indexed by direction.
pub(super) struct Channel {
    /// RLC ends: the element of a direction is the end that sends in this direction.
    ends: [End; 2],
    pub(super) sdus: [Sdus; 2],
    pub(super) carriers: [Carrier; 2],
    /// Time that a PDU takes without queueing delay at the base station.
    times: [Span; 2],
    /// Target delay of the base station's queue.
    target: Span,
    /// Whether the RLC table sets the guard of the ends.
    has_guard: bool,
    /// Number of times that both RLC ends were re-established.
    setups: u32,
    /// End of the last hand-over.
    away_until: Time,
}

/// Channel for the downlink PDUs of a user.
pub(super) enum Downwards<'a> {
    Dedicated(&'a DedicatedConfig),
    /// The Iub, and the time that a PDU takes from controller to terminal without queueing delay.
    Shared(Box<Iub>, Span),
}

/// Name of a random stream of the user with the number `user`.
pub(super) fn of_user(name: &str, user: u32) -> String {
    if user == 0 { name.to_owned() } else { format!("{name}/{user}") }
}

impl Channel {
    /// Creates the channel of the user with the number `user`. For the first user, random streams have the same names
    /// as in a bearer with one user.
    ///
    /// # Errors
    /// Returns an error that names the direction if a file of a table is unreadable or malformed.
    pub(super) fn new(
        rlc: &RlcConfig,
        down: Downwards<'_>,
        up: &DedicatedConfig,
        number: u32,
        context: BearerContext<'_>,
    ) -> Result<Self, (Direction, ConfigError)> {
        let named = |name: &str| of_user(name, number);
        let dedicated = |config: &DedicatedConfig, direction: Direction| {
            let (streams, files) = (context.streams, context.files);
            let name = &named(["down/errors", "up/errors"][direction as usize]);
            let errors = ErrorContext { streams, name, files, block: Span::ZERO };
            let air = Dedicated::new(config, rlc, errors).map_err(|error| (direction, error))?;
            Ok((Carrier::Dedicated(air), Some(config.places(rlc)), config.tti + config.delay))
        };
        let [queue_down, queue_up] = [("down/queue", context.down), ("up/queue", context.up)]
            .map(|(name, queue)| queue.named(named(name)).build());
        let (down, places, time_down): (_, Option<Places>, _) = match down {
            Downwards::Dedicated(config) => dedicated(config, Direction::Down)?,
            Downwards::Shared(iub, time) => (Carrier::Iub(iub), None, time),
        };
        let (up, places_up, time_up) = dedicated(up, Direction::Up)?;
        // A STATUS cannot cover PDUs that were sent less than a round-trip time ago.
        let guard = time_down + time_up;
        Ok(Self {
            ends: Direction::BOTH.map(|_| End::new(rlc, guard)),
            sdus: [Sdus::new(queue_down, places), Sdus::new(queue_up, places_up)],
            carriers: [down, up],
            times: [time_down, time_up],
            target: Span::ZERO,
            has_guard: rlc.guard.is_some(),
            setups: 0,
            away_until: Time::ZERO,
        })
    }

    /// Time of the channel's next event.
    pub(super) fn next_change(&self) -> Time {
        let [down, up] = &self.carriers;
        down.due().min(up.due()).min(down.next()).min(up.next())
    }

    /// Processes arrivals at the instant `at`, then sends the PDUs that are due. Arrivals at the base station must have
    /// been processed before.
    pub(super) fn step(&mut self, at: Time, filling: &mut Vec<Pdu>) {
        for direction in Direction::BOTH {
            if self.carriers[direction as usize].due() == at {
                self.receive(at, direction);
            }
        }
        for direction in Direction::BOTH {
            if self.carriers[direction as usize].next() == at {
                self.send(at, direction, filling);
            }
        }
    }

    /// Receives the PDUs that arrive in a direction.
    fn receive(&mut self, at: Time, direction: Direction) {
        let (there, back) = (direction as usize, direction.other() as usize);
        let Carrier::Dedicated(air) = &mut self.carriers[there] else { return };
        let [down, up] = &mut self.sdus;
        let (of_peer, own) = if direction == Direction::Down { (down, up) } else { (up, down) };
        for pdu in air.receive() {
            self.ends[back].on_pdu(at, &pdu, of_peer, own);
        }
        self.plan(at, direction.other());
    }

    /// Handles a PDU that the cell has finished. The PDU arrives at the terminal unless `told` is `None`.
    pub(super) fn on_landed(&mut self, at: Time, sent: Sent, told: Option<Repetitions>) {
        if sent.setup != self.setups {
            return;
        }
        let [down, up] = &mut self.sdus;
        let mut pdu = sent.pdu;
        if let Pdu::Data(Data { payload, .. }) = pdu {
            let Repetitions { times, delay } = told.unwrap_or(Repetitions::NONE);
            down.on_repeat_below(payload, times);
            if sent.first {
                down.on_unrepeated(at - delay, payload);
            }
            if told.is_none() {
                pdu = Pdu::Lost(payload);
            }
        } else if told.is_none() {
            return;
        }
        self.ends[Direction::Up as usize].on_pdu(at, &pdu, down, up);
        self.plan(at, Direction::Up);
    }

    /// Handles the start of the first transmission of a PDU with these parts in the cell.
    pub(super) fn on_air(&mut self, at: Time, payload: Payload) {
        self.sdus[Direction::Down as usize].on_air(at, payload);
    }

    /// Returns the controller's side of the Iub, if the user has an Iub.
    pub(super) fn iub(&mut self) -> Option<&mut Iub> {
        match &mut self.carriers[Direction::Down as usize] {
            Carrier::Iub(iub) => Some(iub),
            Carrier::Dedicated(_) => None,
        }
    }

    /// Passes to the controller an allocation of PDUs by the base station, and the base station's target delay.
    pub(super) fn tell(&mut self, at: Time, allocation: Allocation, target: Span) {
        if let Some(iub) = self.iub() {
            iub.tell(at, allocation);
        }
        self.target = target;
        self.set_guards();
    }

    /// Changes a setting of a direction's dedicated channel at `now`.
    pub(super) fn change(&mut self, now: Time, direction: Direction, change: DedicatedChange) {
        let index = direction as usize;
        let Carrier::Dedicated(air) = &mut self.carriers[index] else { return };
        let from = air.change(now, change);
        self.sdus[index].change_ttis(from, air.room(), air.delay());
        self.times[index] = air.time();
        self.set_guards();
    }

    /// Changes delay and rate of the Iub interface.
    pub(super) fn change_iub(&mut self, delay: Span, rate: Option<Rate>) {
        let Some(iub) = self.iub() else { return };
        let before = iub.change(delay, rate);
        // A PDU waits for the message that allows it, so its time includes two delays of the interface.
        self.change_time(Direction::Down, before * 2, delay * 2);
    }

    /// Replaces a part of the time that a PDU takes in a direction.
    pub(super) fn change_time(&mut self, direction: Direction, before: Span, after: Span) {
        let time = &mut self.times[direction as usize];
        *time = time.saturating_sub(before) + after;
        self.set_guards();
    }

    /// Sets the minimum age at which a STATUS can cover a PDU: the round-trip time of PDUs.
    fn set_guards(&mut self) {
        let (round_trip, [down, up]) = (self.times[0] + self.times[1], &mut self.ends);
        if !self.has_guard {
            down.set_guard(round_trip + self.target);
            up.set_guard(round_trip);
        }
    }

    /// Sends the PDUs of a direction that may be sent at `at`.
    fn send(&mut self, at: Time, direction: Direction, filling: &mut Vec<Pdu>) {
        let index = direction as usize;
        let (end, sdus, setup) = (&mut self.ends[index], &mut self.sdus[index], self.setups);
        let mut asks = Asks::Nothing;
        let from = match &mut self.carriers[index] {
            Carrier::Dedicated(air) => {
                asks = end.fill(at, air.room(), sdus, filling);
                air.send(at, filling)
            }
            Carrier::Iub(iub) => match iub.room(at) {
                0 => at,
                room => {
                    let new = end.next_new();
                    asks = end.fill(at, room, sdus, filling);
                    let first = |pdu: &Pdu| new.is_none_or(|new| pdu.is_new(new));
                    let sent = |pdu: Pdu| Sent { first: first(&pdu), pdu, setup, fate: Fate::Arrives };
                    iub.send(at, filling.drain(..).map(sent))
                }
            },
        };
        if asks == Asks::SetUpAnew {
            self.set_up_anew(at, from);
        }
        self.plan(from, direction);
    }

    /// Schedules the next transmission in a direction, at or after `from`.
    fn plan(&mut self, from: Time, direction: Direction) {
        let index = direction as usize;
        self.carriers[index].plan(self.ends[index].due(&self.sdus[index]), from);
    }

    /// Re-establishes both RLC ends: they forget all sent data and continue at `from`.
    fn set_up_anew(&mut self, at: Time, from: Time) {
        self.setups += 1;
        for (end, (sdus, carrier)) in self.ends.iter_mut().zip(self.sdus.iter_mut().zip(&mut self.carriers)) {
            end.re_establish();
            sdus.reset(at);
            carrier.clear();
        }
        Direction::BOTH.into_iter().for_each(|direction| self.plan(from, direction));
    }

    /// Interrupts both directions for a hand-over at `now`. Another controller re-establishes both RLC ends.
    pub(super) fn hand_over(&mut self, now: Time, handover: &Handover) {
        self.away_until = handover.until;
        self.carriers.iter_mut().for_each(|carrier| carrier.hand_over(now, handover));
        if handover.to == HandoverTo::Cell {
            return;
        }
        self.setups += 1;
        for (end, sdus) in self.ends.iter_mut().zip(&mut self.sdus) {
            end.re_establish();
            sdus.return_begun(now);
            if !handover.forward {
                sdus.lose_returned(now);
            }
        }
        // The queue of the uplink is in the terminal, and stays there.
        if !handover.forward {
            self.sdus[Direction::Down as usize].lose_queued(now);
        }
        Direction::BOTH.into_iter().for_each(|direction| self.plan(now + Span::from_nanos(1), direction));
    }

    /// Handles a PDU that a hand-over has removed from the base station.
    pub(super) fn on_removed(&mut self, at: Time, sent: Sent) {
        if sent.setup == self.setups {
            self.ends[Direction::Up as usize].on_removed(
                at,
                &sent.pdu,
                &mut self.sdus[Direction::Down as usize],
            );
        }
    }

    /// Adds an SDU to the buffer of a direction.
    pub(super) fn put(
        &mut self,
        now: Time,
        direction: Direction,
        enqueue: impl FnOnce(&mut Sdus) -> Result<(), Cause>,
    ) -> Result<(), Cause> {
        let taken = enqueue(&mut self.sdus[direction as usize]);
        // The TTI that starts at this instant may already be full, so transmission starts later.
        self.plan(now + Span::from_nanos(1), direction);
        taken
    }

    /// Whether a hand-over is running at `now`.
    pub(super) fn is_away(&self, now: Time) -> bool {
        now < self.away_until
    }

    /// Whether downlink data of the user waits or is in transit.
    pub(super) fn has_data(&self) -> bool {
        self.sdus[Direction::Down as usize].undelivered().packets > 0
    }

    /// Downlink payload rate of a dedicated channel at `now`. The edge reports the rate in a hand-over.
    pub(super) fn rate(&self, now: Time) -> Rate {
        self.carriers[Direction::Down as usize].rate(now)
    }

    /// View of the buffer that serves `flow` in a direction. For a cell the caller sets the rate of the view.
    pub(super) fn view(&self, now: Time, direction: Direction, flow: FlowId) -> LinkView {
        let sdus = &self.sdus[direction as usize];
        let [in_transmission, unacknowledged] = sdus.cutting_and_sent(flow);
        let waiting = sdus.waiting(flow);
        LinkView {
            waiting,
            in_transmission,
            unacknowledged,
            occupied: waiting + in_transmission + unacknowledged,
            capacity: sdus.queue().capacity(flow),
            rate: self.carriers[direction as usize].rate(now),
        }
    }

    /// Values of the gauges of a direction.
    pub(super) fn gauges(&self, direction: Direction) -> impl Iterator<Item = f64> {
        let buffered = self.sdus[direction as usize].buffered().into();
        std::iter::once(buffered).chain(self.ends[direction as usize].window().into_iter().flatten())
    }
}
