//! Packets that a link layer has cut into parts, until the far end has put each together or given it up.

use std::collections::VecDeque;
use std::ops::Range;

use ackclock_core::{Segment, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::outcomes::Outcomes;
use crate::{Cause, Departures, LinkEvent, Repetitions};

/// Which packets are handed on first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeliveryOrder {
    /// Each behind all that were sent before it.
    #[default]
    InSequence,
    /// Each as soon as it is complete.
    OutOfSequence,
}

/// The packets that were begun and what is told of them. A packet departs when it is handed on, and then travels for a fixed delay.
#[derive(Default)]
pub(crate) struct Reassembly {
    order: DeliveryOrder,
    delay: Span,
    /// How long a part is on the air.
    takes: Span,
    pub(crate) departures: Departures,
    /// In the order in which they were begun, from the first that is not done with.
    packets: VecDeque<Packet>,
    /// Number of the first of them.
    first: u64,
    pub(crate) outcomes: Outcomes,
}

/// A packet of which the first part was begun.
#[derive(Clone, Copy, Debug)]
struct Packet {
    segment: Segment,
    /// When its first part began, and how many it has so far.
    begun: Time,
    parts: u32,
    /// Parts that have neither arrived nor been given up; what is not cut yet counts as one.
    missing: u32,
    state: PacketState,
    repetitions: Repetitions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketState {
    /// Not complete.
    Begun,
    /// Complete, and waiting for those before it.
    Complete,
    /// Handed on, or lost.
    Gone,
}

impl Reassembly {
    /// Parts take so long on the air, and a packet that is handed on then travels for `delay`.
    pub(crate) fn new(order: DeliveryOrder, takes: Span, delay: Span) -> Self {
        Self { order, takes, delay, ..Self::default() }
    }

    /// How many packets are not done with.
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    /// The number of the next packet.
    pub(crate) fn next_number(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// The place of a packet among those that are not done with.
    pub(crate) fn place(&self, number: u64) -> usize {
        (number - self.first) as usize
    }

    /// A packet comes to be cut.
    pub(crate) fn begin(&mut self, segment: &Segment) {
        self.packets.push_back(Packet {
            segment: *segment,
            begun: Time::ZERO,
            parts: 0,
            missing: 1,
            state: PacketState::Begun,
            repetitions: Repetitions::NONE,
        });
    }

    /// The next part of the newest packet begins at `now`, and leaves so many bytes of it uncut.
    pub(crate) fn cut(&mut self, now: Time, uncut: u32) {
        let Some(newest) = self.packets.back_mut() else { return };
        if newest.parts == 0 {
            newest.begun = now;
        }
        newest.parts += 1;
        newest.missing += u32::from(uncut > 0);
    }

    /// A part of a packet has arrived, which had been repeated so often.
    pub(crate) fn arrive(&mut self, at: Time, number: u64, times: u32) {
        let place = self.place(number);
        let packet = &mut self.packets[place];
        packet.missing -= 1;
        packet.repetitions.times += times;
        if packet.missing == 0 && packet.state == PacketState::Begun {
            packet.state = PacketState::Complete;
            packet.repetitions.delay = at.since(packet.begun + self.takes * u64::from(packet.parts));
            if self.order == DeliveryOrder::OutOfSequence {
                self.hand_on(at, place);
            }
        }
        self.release(at);
    }

    /// A part of a packet was given up, and with it the packet.
    pub(crate) fn give_up(&mut self, at: Time, number: u64) {
        let place = self.place(number);
        let packet = &mut self.packets[place];
        packet.missing -= 1;
        if packet.state == PacketState::Begun {
            packet.state = PacketState::Gone;
            self.outcomes.push(at, LinkEvent::Dropped(Cause::Medium), packet.segment);
        }
        self.release(at);
    }

    /// The packets at these places that were neither handed on nor lost.
    pub(crate) fn at(&self, places: Range<usize>) -> impl Iterator<Item = &Segment> {
        let open = self.packets.range(places).filter(|packet| packet.state != PacketState::Gone);
        open.map(|packet| &packet.segment)
    }

    /// The next event with an instant of at most `now`.
    pub(crate) fn next(&self, now: Time) -> Option<(Time, LinkEvent)> {
        self.outcomes.next(now)
    }

    /// Takes the segment of the next event out.
    pub(crate) fn take(&mut self) -> Segment {
        self.outcomes.take()
    }

    /// Hands on what waits for nothing any more, and forgets the packets of which no part is under way.
    fn release(&mut self, at: Time) {
        let whole = self.packets.iter().take_while(|packet| packet.state != PacketState::Begun).count();
        for place in 0..whole {
            if self.packets[place].state == PacketState::Complete {
                self.hand_on(at, place);
            }
        }
        // Parts of a lost packet may still be under way.
        while self
            .packets
            .pop_front_if(|packet| packet.state == PacketState::Gone && packet.missing == 0)
            .is_some()
        {
            self.first += 1;
        }
    }

    fn hand_on(&mut self, at: Time, place: usize) {
        let Packet { state, segment, repetitions, .. } = &mut self.packets[place];
        *state = PacketState::Gone;
        if self.departures == Departures::Watched {
            self.outcomes.push(at, LinkEvent::Departed, *segment);
        }
        self.outcomes.put_repeated(at + self.delay, segment, *repetitions);
    }
}
