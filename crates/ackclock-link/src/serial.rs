//! A link that transmits one packet after the other: a queue, a transmitter and the packets in flight.
//!
//! What differs between constant, variable and trace-driven links is only how long a transmission takes and how long
//! the packet then travels. That is the [`Medium`]; everything else is here, once.
//!
//! **The buffer.** "B packets" are B *waiting*; one more may be in transmission ([`BufferMeaning::Waiting`], settled in
//! `links.md` section 1 against CR02 Table 1). Counting the packet in transmission inside B is the other reading.
//!
//! **No overtaking.** The arrival is `max(arrival of the flow's packet before, departure + delay)`: packets of one flow
//! never overtake each other, and flows do not hold each other up (`links.md` section 3).

use std::collections::VecDeque;

use ackclock_core::{FlowId, Rate, Segment, Span, Time};

use crate::queue::Queue;
use crate::{Cause, Link, LinkEvent, LinkView, Load, Refused};

/// How long transmissions take and packets travel.
pub trait Medium: Send {
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
    serving: Option<Serving>,
    /// Packets in flight by time of arrival; equal times in order of departure.
    flight: VecDeque<(Time, Segment)>,
    /// Latest arrival of each flow, where delays vary.
    last_arrival: Vec<Time>,
    /// Losses that have happened and were not yet told.
    losses: VecDeque<(Time, Segment, Cause)>,
}

#[derive(Clone, Copy)]
struct Serving {
    segment: Segment,
    waited: Span,
    transmission: Transmission,
    arrives: Time,
}

impl<M: Medium, Q: Queue> SerialLink<M, Q> {
    /// An idle link.
    pub fn new(medium: M, queue: Q, meaning: BufferMeaning) -> Self {
        Self {
            medium,
            queue,
            meaning,
            serving: None,
            flight: VecDeque::new(),
            last_arrival: Vec::new(),
            losses: VecDeque::new(),
        }
    }

    /// Moves a segment into the transmitter.
    fn serve(&mut self, now: Time, arrived: Time, segment: Segment) {
        let transmission = self.medium.transmit(arrived, now, &segment);
        let arrives = match transmission.fate {
            Fate::Arrives => self.arrival(segment.flow, transmission.departs + transmission.delay),
            // A lost packet holds nobody up.
            Fate::Lost => transmission.departs,
        };
        self.serving = Some(Serving { segment, waited: now.since(arrived), transmission, arrives });
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

    /// Ends the transmission in progress and begins the next.
    fn depart(&mut self, serving: Serving) -> (Time, LinkEvent) {
        let now = serving.transmission.departs;
        match serving.transmission.fate {
            Fate::Arrives => self.fly(serving.arrives, serving.segment),
            Fate::Lost => self.losses.push_back((now, serving.segment, Cause::Medium)),
        }
        self.serving = None;
        if let Some((arrived, next)) = self.queue.dequeue(now) {
            self.serve(now, arrived, next);
        }
        while let Some((segment, cause)) = self.queue.poll_dropped() {
            self.losses.push_back((now, segment, cause));
        }
        (now, LinkEvent::Departed { segment: serving.segment, waited: serving.waited })
    }

    /// Puts a packet among those in flight, behind all that arrive no later.
    fn fly(&mut self, arrives: Time, segment: Segment) {
        match self.flight.back() {
            Some(&(last, _)) if last > arrives => {
                let at = self.flight.partition_point(|&(time, _)| time <= arrives);
                self.flight.insert(at, (arrives, segment));
            }
            _ => self.flight.push_back((arrives, segment)),
        }
    }

    fn departs(&self) -> Time {
        self.serving.as_ref().map_or(Time::NEVER, |serving| serving.transmission.departs)
    }

    fn beside(&self) -> Load {
        match (self.meaning, &self.serving) {
            (BufferMeaning::WithTransmission, Some(serving)) => Load::of(&serving.segment),
            _ => Load::NONE,
        }
    }
}

impl<M: Medium, Q: Queue> Link for SerialLink<M, Q> {
    fn enqueue(&mut self, now: Time, mut segment: Segment) -> Result<(), Refused> {
        debug_assert!(
            self.departs() > now || self.serving.is_none(),
            "events are drained before a segment enters"
        );
        if self.serving.is_none() {
            self.queue.pass(now, &mut segment);
            self.serve(now, now, segment);
            return Ok(());
        }
        let taken = self.queue.enqueue(now, segment, self.beside());
        while let Some((dropped, cause)) = self.queue.poll_dropped() {
            self.losses.push_back((now, dropped, cause));
        }
        taken
    }

    fn poll_event(&mut self, now: Time) -> Option<(Time, LinkEvent)> {
        if let Some((at, segment, cause)) = self.losses.pop_front() {
            return Some((at, LinkEvent::Dropped(segment, cause)));
        }
        let arrives = self.flight.front().map_or(Time::NEVER, |&(time, _)| time);
        match self.serving {
            Some(serving)
                if serving.transmission.departs <= now && serving.transmission.departs <= arrives =>
            {
                Some(self.depart(serving))
            }
            _ if arrives <= now => {
                self.flight.pop_front().map(|(at, segment)| (at, LinkEvent::Delivered(segment)))
            }
            _ => None,
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        if let Some(&(at, _, _)) = self.losses.front() {
            return Some(at);
        }
        let arrives = self.flight.front().map_or(Time::NEVER, |&(time, _)| time);
        Some(self.departs().min(arrives)).filter(|&time| time != Time::NEVER)
    }

    fn next_delivery(&self) -> Option<Time> {
        // A waiting packet cannot arrive before the one in transmission unless another flow's may overtake it.
        let overtaking = self.last_arrival.len() > 1;
        let serving = match &self.serving {
            Some(serving) if overtaking => serving.transmission.departs,
            Some(serving) => serving.arrives,
            None => Time::NEVER,
        };
        let arrives = self.flight.front().map_or(Time::NEVER, |&(time, _)| time);
        Some(serving.min(arrives)).filter(|&time| time != Time::NEVER)
    }

    fn view(&self, now: Time, flow: FlowId) -> LinkView {
        let mut waiting = self.queue.waiting(flow);
        let beside = self.beside();
        waiting += beside;
        let in_transmission = match (&self.serving, beside.is_none()) {
            (Some(serving), true) => Load::of(&serving.segment),
            _ => Load::NONE,
        };
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

    fn forget(&mut self, flow: FlowId) {
        self.queue.forget(flow);
    }
}
