//! # UMTS RLC, acknowledged mode
//!
//! ## Source
//! 3GPP TS 25.322, "Radio Link Control (RLC) protocol specification", release 6, with the settings of AC06 as `links.md` section 7
//! restates them.
//!
//! ## What it does
//! An entity stands at each end of the radio. It cuts the packets of its direction (SDUs) into PDUs of one size, sends as many as a
//! TTI has room for, and sends those again that its peer reports as missing. Each part of the protocol has a file:
//! - `segmentation`: PDUs are filled, one packet behind the other, with length indicators and padding;
//! - `transmitter`: VT(S), VT(A), VT(DAT), the window, what is sent again, lowest number first;
//! - `poll`: the triggers and timers of polls;
//! - `receiver`: VR(R), VR(H), the window, reassembly in or out of sequence, the triggers and timers of STATUS;
//! - `status`: ACK, WINDOW, MRW and MRW_ACK, and the room that they take; `missing`: LIST and BITMAP;
//! - `discard`: what was sent MaxDAT times is given up, and the peer told to move its window; `reset`: both ends begin anew;
//! - `sdus`: the buffer, in which a packet stays until the peer has acknowledged all of it; `places`: when it would have arrived, had
//!   nothing been sent again;
//! - `air`: TTIs under way, lost as a whole or PDU by PDU.
//!
//! TTIs of both directions begin at multiples of their length; one that nobody has anything to send in costs nothing. A TTI that begins
//! at t arrives as a whole at t + TTI + delay. What arrives, or has been put into the buffer, before a TTI begins can be in it. A
//! timer that ends between two TTIs acts in the next. A packet departs with the TTI that its last octet is first sent in. Errors come from
//! the streams `down/errors` and `up/errors`.
//!
//! ## Differences from the source
//! - LIST or BITMAP report what is missing, one of both in a STATUS PDU, and no RLIST. What one has no room for follows in further ones. A bit
//!   that is set acknowledges nothing by itself; what bits of a last octet are left over are of PDUs before the first that is missing.
//! - When a receiver changes the window of its peer is said by the scenario (`status.windows`); each STATUS from then on tells it.
//! - A PDU that was sent less than a round trip ago is not sent again for a STATUS that cannot know of it (`guard`).
//! - Where PDUs are unacknowledged and nothing is left that would poll, Timer_Poll starts, so that a loss cannot be forgotten.
//! - Polls of the window can be those of the first PDU alone, each time that the share is reached (`poll.window_polls`).
//! - A packet that is discarded while the receiver is still being told of another moves what it is told, and begins MaxMRW anew.
//! - The end of a packet that fills a PDU is told in the next one; the special value of the HE field is not used.
//! - Behind MaxRST the bearer is set up anew at both ends, which in a network is the radio controller's to do.
//! - A PDU names the packets that it has parts of, where a real one has their octets. In unacknowledged mode a loss is known at once.
//!
//! ## Validation
//! Scripted exchanges for each trigger and timer; every packet delivered once and in order or reported lost, the window kept and memory bounded
//! under random errors; throughput and delay beside the closed form for independent errors (unit tests and `tests/bearers.rs`);
//! the conventional case of AC06 (`papers/ac06`); real senders over it beside the simulator's (`docs/how-to/umts.md`).

mod air;
mod bounds;
mod config;
mod discard;
mod entity;
mod missing;
mod pdu;
mod places;
mod poll;
mod receiver;
mod reset;
mod sdus;
mod segmentation;
mod sn;
mod status;
mod transmitter;
mod unacknowledged;

pub use config::{ErrorsBy, OnMaxDat, RlcMode, Tries, UmtsRlcAmConfig};
pub use missing::MissingFormat;
pub use poll::{PollConfig, WindowPolls};
pub use receiver::{StatusConfig, WindowChange};

use std::borrow::Cow;

use ackclock_core::{ConfigError, FlowId, Histogram, Rate, Segment, Span, Time};

use self::air::Air;
use self::discard::Discard;
use self::entity::Entity;
use self::pdu::Pdu;
use self::places::Places;
use self::poll::Polling;
use self::receiver::Receiver;
use self::reset::Resets;
use self::sdus::Sdus;
use self::segmentation::Shape;
use self::status::TellsWindow;
use self::transmitter::{Limits, Transmitter};
use self::unacknowledged::Unacknowledged;
use crate::bearer::{Bearer, BearerContext, Direction};
use crate::errors::ErrorContext;
use crate::queue::Queue;
use crate::{Cause, Departures, LinkEvent, LinkView, Load};

/// Both directions, with an entity at each end. Arrays are by direction.
struct UmtsRlcAm {
    tti: Span,
    /// The entity that sends in a direction.
    ends: [End; 2],
    sdus: [Sdus; 2],
    air: [Air; 2],
    /// When the next TTI begins in which there is something to send.
    next_tti: [Time; 2],
    /// No TTI before was not dealt with.
    not_before: [Time; 2],
    rates: [Rate; 2],
    /// PDUs of a TTI.
    rooms: [u32; 2],
    /// Expected share of PDUs that arrive.
    good: [f64; 2],
    octets: u32,
    /// The TTI that is being filled.
    filling: Vec<Pdu>,
}

enum End {
    Acknowledged(Box<Entity>),
    Unacknowledged(Unacknowledged),
}

/// Octets of the header of an AMD and of a UMD PDU.
const HEADER: [u32; 2] = [2, 1];

impl UmtsRlcAm {
    fn new(config: &UmtsRlcAmConfig, context: BearerContext<'_>) -> Result<Self, ConfigError> {
        let air = |direction: Direction| {
            let ((key, errors), room) = (config.errors_of(direction), config.pdus(direction));
            let block = match config.errors_by {
                ErrorsBy::Tti => config.tti,
                ErrorsBy::Pdu => config.tti / room,
            };
            let name = ["down/errors", "up/errors"][direction as usize];
            let context = ErrorContext { streams: context.streams, name, files: context.files, block };
            let errors = errors.build(context).map_err(|error| error.under(key))?;
            Ok(Air::new(errors, config.errors_by, config.tti, room as u32, config.delay))
        };
        let both = Direction::BOTH;
        let good = |direction| config.good(direction, context.files);
        Ok(Self {
            tti: config.tti,
            ends: both.map(|_| End::new(config)),
            sdus: both.map(|direction| {
                let queue = [context.down, context.up][direction as usize];
                let places = Places::new(config.tti, config.pdus(direction) as u32, config.delay);
                Sdus::new(queue.build(), places)
            }),
            air: [air(Direction::Down)?, air(Direction::Up)?],
            next_tti: [Time::NEVER; 2],
            not_before: [Time::ZERO; 2],
            rates: both.map(|direction| config.rate_of(direction)),
            rooms: both.map(|direction| config.pdus(direction) as u32),
            good: [good(Direction::Down)?, good(Direction::Up)?],
            octets: config.pdu_octets(),
            filling: Vec::new(),
        })
    }

    /// Begins every TTI and takes in every one that arrives, up to `now`.
    fn advance(&mut self, now: Time) {
        loop {
            let at = self.next_change();
            if at > now || at == Time::NEVER {
                return;
            }
            for direction in Direction::BOTH {
                if self.air[direction as usize].due() == at {
                    self.receive(at, direction);
                }
            }
            for direction in Direction::BOTH {
                if self.next_tti[direction as usize] == at {
                    self.send(at, direction);
                }
            }
        }
    }

    fn next_change(&self) -> Time {
        let arrives = self.air[0].due().min(self.air[1].due());
        arrives.min(self.next_tti[0]).min(self.next_tti[1])
    }

    /// The PDUs of a direction arrive.
    fn receive(&mut self, at: Time, direction: Direction) {
        let (there, back) = (direction as usize, direction.other() as usize);
        let [down, up] = &mut self.sdus;
        let (of_peer, own) = if direction == Direction::Down { (down, up) } else { (up, down) };
        for pdu in self.air[there].receive() {
            match &mut self.ends[back] {
                End::Acknowledged(entity) => entity.on_pdu(at, &pdu, of_peer, own),
                End::Unacknowledged(_) => Unacknowledged::on_pdu(at, &pdu, of_peer),
            }
        }
        self.plan(at, direction.other());
    }

    /// A TTI of a direction begins.
    fn send(&mut self, at: Time, direction: Direction) {
        let index = direction as usize;
        let (room, sdus) = (self.rooms[index] as usize, &mut self.sdus[index]);
        let mut failed = false;
        match &mut self.ends[index] {
            End::Acknowledged(entity) => {
                failed = entity.resets.has_failed(at);
                entity.fill_tti(at, room, sdus, &mut self.filling);
            }
            End::Unacknowledged(end) => end.fill_tti(at, room, sdus, &mut self.filling),
        }
        self.air[index].send(at, &mut self.filling);
        self.not_before[index] = at + self.tti;
        if failed {
            self.set_up_anew(at);
        }
        self.plan(at + self.tti, direction);
    }

    /// Finds out when the next TTI of a direction is used, which can be one from `from` on.
    fn plan(&mut self, from: Time, direction: Direction) {
        let index = direction as usize;
        let sdus = &self.sdus[index];
        let wanted = match &self.ends[index] {
            End::Acknowledged(entity) => entity.due(sdus),
            End::Unacknowledged(_) => Unacknowledged::due(sdus),
        };
        self.next_tti[index] = if wanted == Time::NEVER {
            Time::NEVER
        } else {
            let tti = self.tti.as_nanos();
            Time::from_nanos(wanted.max(from).as_nanos().div_ceil(tti) * tti).max(self.not_before[index])
        };
    }

    /// Both ends forget everything that was sent.
    fn set_up_anew(&mut self, at: Time) {
        for direction in Direction::BOTH {
            let index = direction as usize;
            if let End::Acknowledged(entity) = &mut self.ends[index] {
                entity.reset(at, &mut self.sdus[index]);
                entity.resets.renew();
            }
            self.air[index].clear();
        }
        Direction::BOTH.into_iter().for_each(|direction| self.plan(at + self.tti, direction));
    }

    fn put(
        &mut self,
        now: Time,
        direction: Direction,
        enqueue: impl FnOnce(&mut Sdus) -> Result<(), Cause>,
    ) -> Result<(), Cause> {
        self.advance(now);
        let taken = enqueue(&mut self.sdus[direction as usize]);
        // The TTI that begins at this instant may have been filled already.
        self.plan(now + Span::from_nanos(1), direction);
        taken
    }
}

impl End {
    fn new(config: &UmtsRlcAmConfig) -> Self {
        let octets = config.pdu_octets();
        if config.mode == RlcMode::Unacknowledged {
            return Self::Unacknowledged(Unacknowledged { shape: Shape::new(octets, HEADER[1]) });
        }
        // `check` lets only windows of 11 bits pass.
        let window = config.window as u16;
        let guard = config.guard.unwrap_or((config.tti + config.delay) * 2);
        let limits = Limits { window, max_dat: config.max_dat, guard };
        let discard = Discard::new(config.mrw.timer, config.mrw.most, config.on_max_dat);
        let polling = Polling::new(config.poll.clone());
        let tells_window =
            if config.status.windows.is_empty() { TellsWindow::Never } else { TellsWindow::Sometimes };
        Self::Acknowledged(Box::new(Entity {
            transmitter: Transmitter::new(Shape::new(octets, HEADER[0]), limits, polling, discard),
            receiver: Receiver::new(config.status.clone(), config.order, window),
            resets: Resets::new(config.reset.timer, config.reset.most),
            status_room: status::room(octets + HEADER[0], tells_window),
            piggyback: config.status.piggyback,
        }))
    }
}

impl Bearer for UmtsRlcAm {
    fn enqueue(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause> {
        self.put(now, direction, |sdus| sdus.enqueue(now, segment))
    }

    fn enqueue_front(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause> {
        self.put(now, direction, |sdus| sdus.enqueue_front(now, segment))
    }

    fn peek_event(&mut self, now: Time, direction: Direction) -> Option<(Time, LinkEvent)> {
        self.advance(now);
        self.sdus[direction as usize].outcomes.next(now)
    }

    fn take_segment(&mut self, direction: Direction) -> Segment {
        self.sdus[direction as usize].outcomes.take()
    }

    fn due(&self, direction: Direction) -> Time {
        self.sdus[direction as usize].outcomes.due().min(self.next_change())
    }

    fn want_departures(&mut self, departures: Departures) {
        self.sdus[Direction::Down as usize].departures = departures;
    }

    fn view(&mut self, now: Time, direction: Direction, flow: FlowId) -> LinkView {
        self.advance(now);
        let sdus = &self.sdus[direction as usize];
        let [in_transmission, unacknowledged] = sdus.cutting_and_sent(flow);
        let waiting = sdus.queue().waiting(flow);
        LinkView {
            waiting,
            in_transmission,
            unacknowledged,
            occupied: waiting + in_transmission + unacknowledged,
            capacity: sdus.queue().capacity(flow),
            rate: self.rates[direction as usize],
        }
    }

    fn waiting(&mut self, now: Time, direction: Direction) -> Load {
        self.advance(now);
        self.sdus[direction as usize].queue().load()
    }

    fn waits(&self, direction: Direction) -> Cow<'_, Histogram> {
        Cow::Borrowed(&self.sdus[direction as usize].waits)
    }

    fn gauges(&self, direction: Direction) -> Vec<f64> {
        let buffered = self.sdus[direction as usize].buffered().into();
        let End::Acknowledged(entity) = &self.ends[direction as usize] else { return vec![buffered] };
        let Transmitter { window, retransmissions, .. } = entity.transmitter;
        let outstanding = entity.transmitter.outstanding();
        // More than a window that the peer has made smaller may be outstanding.
        let open = window.saturating_sub(outstanding);
        vec![buffered, outstanding.into(), open.into(), retransmissions as f64]
    }

    /// What arrived of PDUs that were sent, and what would have in the mean of those that were not.
    fn capacity_bps(&mut self, until: Time, direction: Direction) -> Option<f64> {
        self.advance(until);
        let (index, all) = (direction as usize, until.since(Time::ZERO).as_secs_f64());
        let (air, room) = (&self.air[index], f64::from(self.rooms[index]));
        let idle = (all / self.tti.as_secs_f64() * room - air.sent as f64).max(0.0) * self.good[index];
        (all > 0.0).then(|| (air.arrived as f64 + idle) * f64::from(self.octets) * 8.0 / all)
    }

    fn assign(&mut self, flow: FlowId, user: u32) {
        self.sdus.iter_mut().for_each(|sdus| sdus.queue_mut().assign(flow, user));
    }

    fn forget(&mut self, flow: FlowId) {
        self.sdus.iter_mut().for_each(|sdus| sdus.queue_mut().forget(flow));
    }

    fn let_go(&mut self) {
        self.sdus.iter_mut().for_each(Sdus::let_go);
    }
}

#[cfg(test)]
mod tests;
