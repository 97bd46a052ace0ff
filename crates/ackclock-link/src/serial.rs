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
    medium: M,
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
    waits: Histogram,
}

/// The packet in transmission.
#[derive(Clone, Copy)]
struct Serving {
    flow: FlowId,
    load: Load,
    departs: Time,
    /// What is told of the departure.
    news: Option<LinkEvent>,
}

impl<M: Medium, Q: Queue> SerialLink<M, Q> {
    /// An idle link.
    pub fn new(medium: M, queue: Q, meaning: BufferMeaning) -> Self {
        Self {
            medium,
            queue,
            meaning,
            departures: Departures::Unwatched,
            serving: None,
            begins: Time::NEVER,
            flight: Flight::default(),
            news: VecDeque::new(),
            last_arrival: Vec::new(),
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
        // A lost packet holds nobody up.
        if fate == Fate::Arrives {
            let arrives = self.arrival(segment.flow, departs + delay);
            self.flight.put(arrives, &segment);
        }
        self.serving = Some(Serving { flow: segment.flow, load: Load::of(&segment), departs, news });
    }

    /// Keeps packets of a flow in order.
    fn arrival(&mut self, flow: FlowId, natural: Time) -> Time {
        if !self.medium.varies() {
            return natural;
        }
        let index = flow.index();
        if self.last_arrival.len() <= index {
            self.last_arrival.resize(index + 1, Time::ZERO);
        }
        let arrives = natural.max(self.last_arrival[index]);
        self.last_arrival[index] = arrives;
        arrives
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

impl<M: Medium, Q: Queue> Link for SerialLink<M, Q> {
    fn enqueue(&mut self, now: Time, mut segment: Segment) -> Result<(), Refused> {
        self.advance(now);
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
        self.flight.pop(now).map(|(at, segment)| (at, LinkEvent::Delivered(segment)))
    }

    fn poll_timeout(&self) -> Option<Time> {
        // A waiting packet cannot arrive before the one in transmission, unless another flow's may overtake it.
        let overtaking = self.last_arrival.len() > 1;
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

    fn assign(&mut self, flow: FlowId, user: u32) {
        self.queue.assign(flow, user);
    }

    fn forget(&mut self, flow: FlowId) {
        self.queue.forget(flow);
    }
}
