//! The channel of one user: in each direction a queue, an RLC end, and the channel for its PDUs.

use ackclock_core::{ConfigError, FlowId, Span, Time};

use super::carrier::Carrier;
use super::dedicated::{Dedicated, DedicatedConfig};
use super::flow_control::Allocation;
use super::iub::{Iub, Sent};
use crate::bearer::{BearerContext, Direction};
use crate::errors::ErrorContext;
use crate::queue::Queue;
use crate::umts_rlc_am::{Asks, Data, End, Payload, Pdu, Places, RlcConfig, Sdus};
use crate::{Cause, LinkView, Repetitions};

/// Both directions of a user, with an RLC end at each side. Arrays are indexed by direction.
pub(super) struct Channel {
    /// The end that sends in a direction.
    ends: [End; 2],
    pub(super) sdus: [Sdus; 2],
    pub(super) carriers: [Carrier; 2],
    /// Round trip of PDUs without queueing delay at the base station; `None` if the table sets a guard.
    round_trip: Option<Span>,
    /// How often both ends were set up again.
    setups: u32,
}

/// Channel for the downlink PDUs of a user.
pub(super) enum Downwards<'a> {
    Dedicated(&'a DedicatedConfig),
    /// The Iub, and the time of a PDU from controller to terminal without queueing delay.
    Shared(Iub, Span),
}

impl Channel {
    /// The channel of the user with this number. For the first user, streams are named as in a bearer with one user.
    ///
    /// # Errors
    /// With its direction: a file that a table names is unreadable or malformed.
    pub(super) fn new(
        rlc: &RlcConfig,
        down: Downwards<'_>,
        up: &DedicatedConfig,
        number: u32,
        context: BearerContext<'_>,
    ) -> Result<Self, (Direction, ConfigError)> {
        let named = |name: &str| if number == 0 { name.to_owned() } else { format!("{name}/{number}") };
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
            Downwards::Shared(iub, time) => (Carrier::Iub(Box::new(iub)), None, time),
        };
        let (up, places_up, time_up) = dedicated(up, Direction::Up)?;
        // A STATUS cannot cover PDUs sent less than a round trip ago.
        let round_trip = time_down + time_up;
        Ok(Self {
            ends: Direction::BOTH.map(|_| End::new(rlc, round_trip)),
            sdus: [Sdus::new(queue_down, places), Sdus::new(queue_up, places_up)],
            carriers: [down, up],
            round_trip: rlc.guard.is_none().then_some(round_trip),
            setups: 0,
        })
    }

    /// Instant of the next event.
    pub(super) fn next_change(&self) -> Time {
        let [down, up] = &self.carriers;
        down.due().min(up.due()).min(down.next()).min(up.next())
    }

    /// Processes arrivals at this instant, then sends what is due. Arrivals at the base station are processed before.
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

    /// The PDUs of a direction arrive.
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

    /// The cell has finished a PDU, which arrives at the terminal unless `told` is `None`.
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

    /// The cell has started to send a new PDU with these parts.
    pub(super) fn on_air(&mut self, at: Time, payload: Payload) {
        self.sdus[Direction::Down as usize].on_air(at, payload);
    }

    /// The controller's side of the Iub, if there is one.
    pub(super) fn iub(&mut self) -> Option<&mut Iub> {
        match &mut self.carriers[Direction::Down as usize] {
            Carrier::Iub(iub) => Some(iub),
            Carrier::Dedicated(_) => None,
        }
    }

    /// The base station allocates PDUs to the controller, and reports its target delay.
    pub(super) fn tell(&mut self, at: Time, allocation: Allocation, target: Span) {
        if let Some(iub) = self.iub() {
            iub.tell(at, allocation);
        }
        if let Some(round_trip) = self.round_trip {
            self.ends[Direction::Down as usize].set_guard(round_trip + target);
        }
    }

    /// A direction may send.
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
                    let sent = |pdu: Pdu| Sent { first: new.is_none_or(|new| pdu.is_new(new)), pdu, setup };
                    iub.send(at, filling.drain(..).map(sent))
                }
            },
        };
        if asks == Asks::SetUpAnew {
            self.set_up_anew(at, from);
        }
        self.plan(from, direction);
    }

    /// Schedules the next use of a direction, at or after `from`.
    fn plan(&mut self, from: Time, direction: Direction) {
        let index = direction as usize;
        self.carriers[index].plan(self.ends[index].due(&self.sdus[index]), from);
    }

    /// Both ends forget everything that was sent, and continue at `from`.
    fn set_up_anew(&mut self, at: Time, from: Time) {
        self.setups += 1;
        for (end, (sdus, carrier)) in self.ends.iter_mut().zip(self.sdus.iter_mut().zip(&mut self.carriers)) {
            end.set_up_anew(at, sdus);
            carrier.clear();
        }
        Direction::BOTH.into_iter().for_each(|direction| self.plan(from, direction));
    }

    /// Adds an SDU to the buffer of a direction.
    pub(super) fn put(
        &mut self,
        now: Time,
        direction: Direction,
        enqueue: impl FnOnce(&mut Sdus) -> Result<(), Cause>,
    ) -> Result<(), Cause> {
        let taken = enqueue(&mut self.sdus[direction as usize]);
        // The TTI that starts at this instant may already be filled.
        self.plan(now + Span::from_nanos(1), direction);
        taken
    }

    /// View of the buffer that serves `flow` in a direction; a cell sets the rate.
    pub(super) fn view(&self, direction: Direction, flow: FlowId) -> LinkView {
        let sdus = &self.sdus[direction as usize];
        let [in_transmission, unacknowledged] = sdus.cutting_and_sent(flow);
        let waiting = sdus.queue().waiting(flow);
        LinkView {
            waiting,
            in_transmission,
            unacknowledged,
            occupied: waiting + in_transmission + unacknowledged,
            capacity: sdus.queue().capacity(flow),
            rate: self.carriers[direction as usize].rate(),
        }
    }

    /// Values of the gauges of a direction.
    pub(super) fn gauges(&self, direction: Direction) -> impl Iterator<Item = f64> {
        let buffered = self.sdus[direction as usize].buffered().into();
        std::iter::once(buffered).chain(self.ends[direction as usize].window().into_iter().flatten())
    }
}
