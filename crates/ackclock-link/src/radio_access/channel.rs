//! What one user has of the bearer: in each direction a queue, an end of the RLC and a dedicated channel.

use ackclock_core::{ConfigError, FlowId, Span, Time};

use super::dedicated::{Dedicated, DedicatedConfig};
use crate::bearer::{BearerContext, Direction};
use crate::errors::ErrorContext;
use crate::queue::Queue;
use crate::umts_rlc_am::{Asks, End, Pdu, RlcConfig, Sdus};
use crate::{Cause, LinkView};

/// Both directions of a user, with an RLC end at each side. Arrays are indexed by direction.
pub(super) struct Channel {
    /// The end that sends in a direction.
    ends: [End; 2],
    pub(super) sdus: [Sdus; 2],
    pub(super) airs: [Dedicated; 2],
}

impl Channel {
    /// The channel of the user with this number. For the first user, streams are named as in a bearer with one user.
    ///
    /// # Errors
    /// With its direction: a file that a table names is unreadable or malformed.
    pub(super) fn new(
        rlc: &RlcConfig,
        airs: [&DedicatedConfig; 2],
        number: u32,
        context: BearerContext<'_>,
    ) -> Result<Self, (Direction, ConfigError)> {
        let named = |name: String| if number == 0 { name } else { format!("{name}/{number}") };
        let air = |direction: Direction| {
            let side = ["down", "up"][direction as usize];
            let (streams, files, name) = (context.streams, context.files, &named(format!("{side}/errors")));
            let errors = ErrorContext { streams, name, files, block: Span::ZERO };
            Dedicated::new(airs[direction as usize], rlc, errors).map_err(|error| (direction, error))
        };
        let sdus = |direction: Direction| {
            let (side, queue) = [("down", context.down), ("up", context.up)][direction as usize];
            let queue = queue.named(named(format!("{side}/queue")));
            Sdus::new(queue.build(), airs[direction as usize].places(rlc))
        };
        let [down, up] = airs;
        // A STATUS cannot know what was sent less than a round trip ago.
        let guard =
            |own: &DedicatedConfig, other: &DedicatedConfig| own.tti + own.delay + other.tti + other.delay;
        Ok(Self {
            ends: [End::new(rlc, guard(down, up)), End::new(rlc, guard(up, down))],
            sdus: Direction::BOTH.map(sdus),
            airs: [air(Direction::Down)?, air(Direction::Up)?],
        })
    }

    /// Instant of the next event.
    pub(super) fn next_change(&self) -> Time {
        let [down, up] = &self.airs;
        down.due().min(up.due()).min(down.next()).min(up.next())
    }

    /// Takes in what arrives at this instant, and then begins the TTIs that begin.
    pub(super) fn step(&mut self, at: Time, filling: &mut Vec<Pdu>) {
        for direction in Direction::BOTH {
            if self.airs[direction as usize].due() == at {
                self.receive(at, direction);
            }
        }
        for direction in Direction::BOTH {
            if self.airs[direction as usize].next() == at {
                self.send(at, direction, filling);
            }
        }
    }

    /// The PDUs of a direction arrive.
    fn receive(&mut self, at: Time, direction: Direction) {
        let (there, back) = (direction as usize, direction.other() as usize);
        let [down, up] = &mut self.sdus;
        let (of_peer, own) = if direction == Direction::Down { (down, up) } else { (up, down) };
        for pdu in self.airs[there].receive() {
            self.ends[back].on_pdu(at, &pdu, of_peer, own);
        }
        self.plan(at, direction.other());
    }

    /// A TTI of a direction begins.
    fn send(&mut self, at: Time, direction: Direction, filling: &mut Vec<Pdu>) {
        let index = direction as usize;
        let asks = self.ends[index].fill(at, self.airs[index].room(), &mut self.sdus[index], filling);
        let ends = self.airs[index].send(at, filling);
        if asks == Asks::SetUpAnew {
            self.set_up_anew(at, ends);
        }
        self.plan(ends, direction);
    }

    /// Schedules the next use of a direction, at or after `from`.
    fn plan(&mut self, from: Time, direction: Direction) {
        let index = direction as usize;
        self.airs[index].plan(self.ends[index].due(&self.sdus[index]), from);
    }

    /// Both ends forget everything that was sent, and continue at `from`.
    fn set_up_anew(&mut self, at: Time, from: Time) {
        for (end, (sdus, air)) in self.ends.iter_mut().zip(self.sdus.iter_mut().zip(&mut self.airs)) {
            end.set_up_anew(at, sdus);
            air.clear();
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

    /// The buffer that serves `flow` in a direction.
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
            rate: self.airs[direction as usize].rate,
        }
    }

    /// Values of the gauges of a direction.
    pub(super) fn gauges(&self, direction: Direction) -> impl Iterator<Item = f64> {
        let buffered = self.sdus[direction as usize].buffered().into();
        std::iter::once(buffered).chain(self.ends[direction as usize].window().into_iter().flatten())
    }
}
