//! Packets that a link layer has cut into parts, until the receiver has reassembled or given up each packet.

use std::collections::VecDeque;
use std::ops::Range;

use ackclock_core::{Segment, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::outcomes::Outcomes;
use crate::{Cause, Departures, LinkEvent, Repetitions};

/// Order in which reassembled packets are delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeliveryOrder {
    /// Each packet is delivered after all packets that were sent before it.
    #[default]
    InSequence,
    /// Each packet is delivered as soon as it is complete.
    OutOfSequence,
}

/// Packets that are cut into parts, and the events of these packets. A packet departs when it is reassembled and
/// `order` allows its delivery. The packet then propagates for a fixed delay.
#[derive(Default)]
pub struct Reassembly {
    order: DeliveryOrder,
    delay: Span,
    /// Transmission time of one part of a packet.
    takes: Span,
    /// Whether departures are reported.
    pub departures: Departures,
    /// Unfinished packets, in order of segmentation.
    packets: VecDeque<Packet>,
    /// Number of the first unfinished packet.
    first: u64,
    /// Events that the packets have had.
    pub outcomes: Outcomes,
}

/// A packet of which at least one part was cut off.
#[derive(Clone, Copy, Debug)]
struct Packet {
    segment: Segment,
    /// Start time of the packet's first part, and number of its parts so far.
    begun: Time,
    parts: u32,
    /// Number of parts that were neither received nor given up; the unsegmented rest counts as one part.
    missing: u32,
    state: PacketState,
    repetitions: Repetitions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketState {
    /// The packet is not complete.
    Begun,
    /// The packet is complete, and waits for packets before it.
    Complete,
    /// The packet was delivered or lost.
    Gone,
}

impl Reassembly {
    /// Creates an empty reassembly: a part takes `takes` to transmit, and a delivered packet propagates for `delay`.
    pub fn new(order: DeliveryOrder, takes: Span, delay: Span) -> Self {
        Self { order, takes, delay, ..Self::default() }
    }

    /// Number of unfinished packets.
    pub fn unfinished(&self) -> usize {
        self.packets.len()
    }

    /// Number that the next segmented packet gets.
    pub fn next_number(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// Index of a packet among the unfinished packets.
    pub fn place(&self, number: u64) -> usize {
        (number - self.first) as usize
    }

    /// Starts the segmentation of a packet.
    pub fn begin(&mut self, segment: &Segment) {
        self.packets.push_back(Packet {
            segment: *segment,
            begun: Time::ZERO,
            parts: 0,
            missing: 1,
            state: PacketState::Begun,
            repetitions: Repetitions::NONE,
        });
    }

    /// Cuts the next part from the newest packet at `now`; `uncut` bytes stay unsegmented.
    pub fn cut(&mut self, now: Time, uncut: u32) {
        let Some(newest) = self.packets.back_mut() else { return };
        if newest.parts == 0 {
            newest.begun = now;
        }
        newest.parts += 1;
        newest.missing += u32::from(uncut > 0);
    }

    /// Handles a part of a packet that has arrived after `times` retransmissions.
    pub fn arrive(&mut self, at: Time, number: u64, times: u32) {
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

    /// Gives up a part of a packet, so that the packet is lost.
    pub fn give_up(&mut self, at: Time, number: u64) {
        let place = self.place(number);
        let packet = &mut self.packets[place];
        packet.missing -= 1;
        if packet.state == PacketState::Begun {
            packet.state = PacketState::Gone;
            self.outcomes.push(at, LinkEvent::Dropped(Cause::Medium), packet.segment);
        }
        self.release(at);
    }

    /// Returns the packets at these indices that are neither delivered nor lost.
    pub fn at(&self, places: Range<usize>) -> impl Iterator<Item = &Segment> {
        let open = self.packets.range(places).filter(|packet| packet.state != PacketState::Gone);
        open.map(|packet| &packet.segment)
    }

    /// Returns the next event at or before `now`.
    pub fn next(&self, now: Time) -> Option<(Time, LinkEvent)> {
        self.outcomes.next(now)
    }

    /// Takes the segment of the next event.
    pub fn take(&mut self) -> Segment {
        self.outcomes.take()
    }

    /// Delivers packets that need not wait any longer, and removes packets without parts in flight.
    fn release(&mut self, at: Time) {
        let whole = self.packets.iter().take_while(|packet| packet.state != PacketState::Begun).count();
        for place in 0..whole {
            if self.packets[place].state == PacketState::Complete {
                self.hand_on(at, place);
            }
        }
        // A lost packet is kept while parts of it may still be in flight.
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
