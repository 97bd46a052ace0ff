//! A link that transmits one packet after the other: a queue, a transmitter and the packets in flight.
//!
//! What differs between constant, variable and trace-driven links is only how long a transmission takes and how long
//! the packet then travels. That is the [`Medium`]; everything else is here, once.
//!
//! **The buffer.** "B packets" are B *waiting*; one more may be in transmission ([`BufferMeaning::Waiting`], settled in
//! `links.md` section 1 against CR02 Table 1). Counting the packet in transmission inside B is the other reading.
//!
//! A medium that serves at instants of its own (a recording of opportunities) leaves the packet at the head in the queue
//! until such an instant comes: it waits, and so counts against the buffer under either reading.
//!
//! **No overtaking.** The arrival is `max(arrival of the flow's packet before, departure + delay)`: packets of one flow
//! never overtake each other, and flows do not hold each other up (`links.md` section 3).

use std::collections::VecDeque;

use ackclock_core::{FlowId, Histogram, Rate, Segment, Span, Time};

use crate::exchange::Current;
use crate::flight::Flight;
use crate::queue::Queue;
use crate::{Cause, Departures, Link, LinkEvent, LinkView, Load, Refused};

/// How long transmissions take and packets travel.
pub trait Medium: Send {
    /// The first instant, `now` or later, at which the transmitter can take the next packet. Asked when a packet finds the
    /// transmitter free, and when one has left and others wait; nothing else moves such instants.
    fn ready(&mut self, now: Time, _found: Found) -> Time {
        now
    }

    /// Transmits the next packet, which had arrived at `arrived` and is at the head of the queue since `start`. Called
    /// once a packet, in order, so a medium may draw by packet.
    fn transmit(&mut self, arrived: Time, start: Time, segment: &Segment) -> Transmission;

    /// The rate at `now`.
    fn rate(&self, now: Time) -> Rate;

    /// The long-run mean rate.
    fn mean_rate(&self) -> Rate;

    /// Whether delays differ from packet to packet, so that order must be kept by the link.
    fn varies(&self) -> bool {
        true
    }

    /// No packet travels for less.
    fn least_delay(&self) -> Span {
        Span::ZERO
    }
}

/// How a packet finds the transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Free, with nothing waiting.
    Idle,
    /// Busy until this instant, with this packet waiting.
    Busy,
}

/// What becomes of one packet on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// When its last byte has left.
    pub departs: Time,
    /// How long it then travels.
    pub delay: Span,
    /// Whether it arrives.
    pub fate: Fate,
}

/// Whether a transmitted packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It does.
    Arrives,
    /// The medium loses it on the way.
    Lost,
}

/// Which packets count against the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BufferMeaning {
    /// Those waiting; the one in transmission does not count.
    #[default]
    Waiting,
    /// Those waiting and the one in transmission.
    WithTransmission,
}

/// A queue, a transmitter and the packets in flight.
pub struct SerialLink<M, Q> {
    medium: Current<M>,
    queue: Q,
    meaning: BufferMeaning,
    departures: Departures,
    serving: Option<Serving>,
    /// When the packet at the head of the queue begins, where the medium makes it wait for that; never otherwise.
    begins: Time,
    /// Packets in transmission and in flight by time of arrival; equal times in order of departure.
    flight: Flight,
    /// Departures and drops that have happened and were not told yet.
    news: VecDeque<(Time, LinkEvent)>,
    /// Latest arrival of each flow, where delays vary.
    last_arrival: Vec<Time>,
    flows: Flows,
    waits: Histogram,
}

/// Whose segments have come so far. Those of one flow cannot overtake each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flows {
    None,
    One(FlowId),
    Several,
}

impl Flows {
    fn note(&mut self, flow: FlowId) {
        *self = match *self {
            Self::None => Self::One(flow),
            Self::One(other) if other == flow => return,
            _ => Self::Several,
        };
    }
}

/// The packet in transmission.
#[derive(Clone, Copy)]
struct Serving {
    flow: FlowId,
    load: Load,
    begun: Time,
    departs: Time,
    /// When it arrives; never where it is lost.
    arrives: Time,
    /// Bytes that were to be sent from `begun` on.
    bytes: u32,
    /// What is told of the departure.
    news: Option<LinkEvent>,
}

impl Serving {
    /// Bytes that are not sent yet at `now`.
    fn rest(&self, now: Time) -> u32 {
        let (left, whole) = (self.departs.since(now).as_nanos(), self.departs.since(self.begun).as_nanos());
        if self.departs == Time::NEVER || whole == 0 {
            return self.bytes;
        }
        (u128::from(self.bytes) * u128::from(left)).div_ceil(u128::from(whole)) as u32
    }
}

impl<M: Medium, Q: Queue> SerialLink<M, Q> {
    /// An idle link.
    pub fn new(medium: M, queue: Q, meaning: BufferMeaning) -> Self {
        Self {
            medium: Current::Built(medium),
            queue,
            meaning,
            departures: Departures::Unwatched,
            serving: None,
            begins: Time::NEVER,
            flight: Flight::default(),
            news: VecDeque::new(),
            last_arrival: Vec::new(),
            flows: Flows::None,
            waits: Histogram::default(),
        }
    }

    /// Brings the transmitter up to `now`: ends the transmissions that are over and begins the next.
    fn advance(&mut self, now: Time) {
        loop {
            match self.serving {
                Some(ref serving) if serving.departs <= now => {
                    let serving = *serving;
                    self.depart(serving);
                }
                None if self.begins <= now => self.begin(self.begins),
                _ => return,
            }
        }
    }

    /// Ends a transmission, and begins the next where the medium is ready for it.
    fn depart(&mut self, serving: Serving) {
        let at = serving.departs;
        if let Some(news) = serving.news {
            self.news.push_back((at, news));
        }
        self.serving = None;
        if !self.queue.is_empty() {
            self.begins = self.medium.ready(at, Found::Busy);
            if self.begins <= at {
                self.begin(at);
            }
        }
    }

    /// Takes the packet at the head of the queue into the transmitter.
    fn begin(&mut self, at: Time) {
        self.begins = Time::NEVER;
        if let Some((arrived, next)) = self.queue.dequeue(at) {
            self.serve(at, arrived, next);
        }
        self.tell_drops(at);
    }

    /// Moves a segment into the transmitter.
    fn serve(&mut self, now: Time, arrived: Time, segment: Segment) {
        self.waits.record(now.since(arrived));
        let Transmission { departs, delay, fate } = self.medium.transmit(arrived, now, &segment);
        let news = match (fate, self.departures) {
            (Fate::Lost, _) => Some(LinkEvent::Dropped(segment, Cause::Medium)),
            (Fate::Arrives, Departures::Watched) => Some(LinkEvent::Departed(segment)),
            (Fate::Arrives, Departures::Unwatched) => None,
        };
        let (flow, load, bytes) = (segment.flow, Load::of(&segment), segment.wire_bytes());
        let mut arrives = Time::NEVER;
        // A lost packet holds nobody up.
        if fate == Fate::Arrives {
            arrives = self.arrival(flow, departs + delay);
            self.flight.put(arrives, &segment);
        }
        self.serving = Some(Serving { flow, load, begun: now, departs, arrives, bytes, news });
    }

    /// Keeps packets of a flow in order.
    fn arrival(&mut self, flow: FlowId, natural: Time) -> Time {
        if !self.medium.varies() {
            return natural;
        }
        note_arrival(&mut self.last_arrival, flow, natural)
    }

    /// Sends what is left of the packet in transmission over a medium that has just taken the place of another. Its fate
    /// stays what it was.
    fn resume(&mut self, now: Time, mut serving: Serving) {
        let segment = match serving.news {
            Some(LinkEvent::Dropped(segment, _)) => Some(segment),
            _ => self.flight.remove(serving.arrives, serving.flow),
        };
        self.last_arrival.clear();
        for &(arrives, ref segment) in self.flight.iter() {
            note_arrival(&mut self.last_arrival, segment.flow, arrives);
        }
        let Some(segment) = segment else { return };
        serving.bytes = serving.rest(now).max(1);
        serving.begun = self.medium.ready(now, Found::Idle);
        // A packet as long as what is left to send.
        let mut rest = segment;
        (rest.header, rest.payload) = (0, serving.bytes as u16);
        let Transmission { departs, delay, .. } = self.medium.transmit(now, serving.begun, &rest);
        serving.departs = departs;
        if !matches!(serving.news, Some(LinkEvent::Dropped(..))) {
            serving.arrives = self.arrival(serving.flow, departs + delay);
            self.flight.put(serving.arrives, &segment);
        }
        self.serving = Some(serving);
    }

    fn tell_drops(&mut self, at: Time) {
        while let Some((segment, cause)) = self.queue.poll_dropped() {
            self.news.push_back((at, LinkEvent::Dropped(segment, cause)));
        }
    }

    /// What counts against the capacity of `flow`'s part of the queue without waiting there.
    fn beside(&self, flow: FlowId) -> Load {
        match self.meaning {
            BufferMeaning::WithTransmission => self.in_transmission(flow),
            BufferMeaning::Waiting => Load::NONE,
        }
    }

    /// What is in transmission and came from `flow`'s part of the queue.
    fn in_transmission(&self, flow: FlowId) -> Load {
        match &self.serving {
            Some(serving) if self.queue.together(serving.flow, flow) => serving.load,
            _ => Load::NONE,
        }
    }
}

/// The arrival of a packet of `flow` that arrives at `natural` unless one before it arrives later.
#[inline]
fn note_arrival(last_arrival: &mut Vec<Time>, flow: FlowId, natural: Time) -> Time {
    let index = flow.index();
    if last_arrival.len() <= index {
        last_arrival.resize(index + 1, Time::ZERO);
    }
    let arrives = natural.max(last_arrival[index]);
    last_arrival[index] = arrives;
    arrives
}

impl<M: Medium + 'static, Q: Queue> Link for SerialLink<M, Q> {
    fn enqueue(&mut self, now: Time, mut segment: Segment) -> Result<(), Refused> {
        self.advance(now);
        self.flows.note(segment.flow);
        let mut begins = self.begins;
        if self.serving.is_none() && begins == Time::NEVER {
            begins = self.medium.ready(now, Found::Idle);
            if begins <= now {
                self.queue.pass(now, &mut segment);
                self.serve(now, now, segment);
                return Ok(());
            }
        }
        let taken = self.queue.enqueue(now, segment, self.beside(segment.flow));
        self.tell_drops(now);
        if !self.queue.is_empty() {
            self.begins = begins;
        }
        taken
    }

    fn poll_event(&mut self, now: Time) -> Option<(Time, LinkEvent)> {
        self.advance(now);
        let arrives = self.flight.due();
        if self.news.front().is_some_and(|&(at, _)| at <= arrives) {
            return self.news.pop_front();
        }
        if arrives > now {
            return None;
        }
        Some((arrives, LinkEvent::Delivered(self.flight.pop())))
    }

    fn poll_timeout(&self) -> Option<Time> {
        // A waiting packet cannot arrive before the one in transmission, unless another flow's may overtake it.
        let overtaking = self.flows == Flows::Several && self.medium.varies();
        let serving = match &self.serving {
            Some(serving) if serving.news.is_some() || overtaking => serving.departs,
            Some(_) => Time::NEVER,
            None if self.departures == Departures::Watched => self.begins,
            None => self.begins + self.medium.least_delay(),
        };
        let arrives = self.flight.due();
        let news = self.news.front().map_or(Time::NEVER, |&(time, _)| time);
        Some(serving.min(arrives).min(news)).filter(|&time| time != Time::NEVER)
    }

    fn watch(&mut self, departures: Departures) {
        self.departures = departures;
    }

    fn view(&self, now: Time, flow: FlowId) -> LinkView {
        let mut waiting = self.queue.waiting(flow);
        let mut in_transmission = self.in_transmission(flow);
        if self.meaning == BufferMeaning::WithTransmission {
            waiting += std::mem::take(&mut in_transmission);
        }
        LinkView {
            waiting,
            in_transmission,
            unacknowledged: Load::NONE,
            capacity: self.queue.capacity(flow),
            rate: self.medium.rate(now),
        }
    }

    fn mean_rate(&self) -> Rate {
        self.medium.mean_rate()
    }

    fn waits(&self) -> &Histogram {
        &self.waits
    }

    fn exchange(&mut self, now: Time, medium: Box<dyn Medium>) {
        self.advance(now);
        self.medium = Current::Exchanged(medium);
        if self.begins != Time::NEVER {
            self.begins = self.medium.ready(now, Found::Idle);
        }
        if let Some(serving) = self.serving {
            self.resume(now, serving);
        }
    }

    fn into_medium(self: Box<Self>) -> Option<Box<dyn Medium>> {
        Some(match self.medium {
            Current::Built(medium) => Box::new(medium),
            Current::Exchanged(medium) => medium,
        })
    }

    fn assign(&mut self, flow: FlowId, user: u32) {
        self.queue.assign(flow, user);
    }

    fn forget(&mut self, flow: FlowId) {
        self.queue.forget(flow);
    }
}
