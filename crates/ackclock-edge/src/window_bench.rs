//! A Window Regulator beside a queue that a test fills and empties by hand. Numbers are packets of 1000 bytes.

use std::collections::VecDeque;

use ackclock_core::{FlowId, Rate, Segment, Seq, Time};
use ackclock_link::{Capacity, Cause, LinkView, Load};

use crate::{Output, Regulator};

const PAYLOAD: u32 = 1000;

pub(crate) struct Bench {
    pub(crate) regulator: Box<dyn Regulator>,
    /// The queue, whose head is in transmission.
    queue: VecDeque<Segment>,
    capacity: u32,
    pub(crate) now: Time,
    /// ACK numbers and windows that went to the source.
    sent: Vec<(u32, u32)>,
}

impl Bench {
    /// A queue of `capacity` packets beside the one in transmission.
    pub(crate) fn new(regulator: Box<dyn Regulator>, capacity: u32) -> Self {
        Self { regulator, queue: VecDeque::new(), capacity, now: Time::ZERO, sent: Vec::new() }
    }

    fn view(&self) -> LinkView {
        let load = |packets: usize| Load { packets: packets as u32, bytes: packets as u64 * 1040 };
        LinkView {
            waiting: load(self.queue.len().saturating_sub(1)),
            in_transmission: load(self.queue.len().min(1)),
            unacknowledged: Load::NONE,
            capacity: Capacity::Packets(self.capacity),
            rate: Rate::from_bps(200_000),
        }
    }

    /// Data packet `number`.
    pub(crate) fn data(number: u32) -> Segment {
        Segment::data(FlowId(0), Seq(number * PAYLOAD), PAYLOAD as u16, 40)
    }

    /// An ACK for the first `packets` packets, of a receiver with a window of 60 packets.
    pub(crate) fn pure_ack(packets: u32) -> Segment {
        let mut ack = Segment::pure_ack(FlowId(0), Seq(packets * PAYLOAD), 40);
        ack.window = 60_000;
        ack.set_scale(Some(0));
        ack
    }

    /// Packet `number` arrives; whether it was queued.
    pub(crate) fn arrive(&mut self, number: u32) -> bool {
        self.take(Self::data(number))
    }

    /// Packets of half the size arrive, the first of them where packet `number` begins.
    pub(crate) fn arrive_small(&mut self, number: u32, count: u32) {
        let half = PAYLOAD / 2;
        for small in 0..count {
            self.take(Segment::data(FlowId(0), Seq(number * PAYLOAD + small * half), half as u16, 40));
        }
    }

    fn take(&mut self, segment: Segment) -> bool {
        self.regulator.on_data(self.now, &segment, self.view());
        if self.queue.len() as u32 > self.capacity {
            self.regulator.on_dropped(self.now, &segment, Cause::Full, self.view());
            return false;
        }
        self.queue.push_back(segment);
        self.regulator.on_queued(self.now, &segment, self.view());
        true
    }

    pub(crate) fn arrive_all(&mut self, numbers: std::ops::Range<u32>) {
        for number in numbers {
            assert!(self.arrive(number), "packet {number} was refused");
        }
    }

    /// The head of the queue leaves it.
    pub(crate) fn depart(&mut self) {
        let Some(segment) = self.queue.pop_front() else { return };
        self.regulator.on_departed(self.now, &segment, self.view());
        if self.queue.is_empty() {
            self.regulator.on_idle(self.now, self.view());
        }
    }

    /// The head of the queue leaves it and is lost on the air.
    pub(crate) fn lose(&mut self) {
        let Some(segment) = self.queue.pop_front() else { return };
        self.regulator.on_dropped(self.now, &segment, Cause::Medium, self.view());
    }

    /// An ACK for the first `packets` packets comes.
    pub(crate) fn ack(&mut self, packets: u32) {
        self.handle(Self::pure_ack(packets));
    }

    pub(crate) fn handle(&mut self, ack: Segment) {
        self.regulator.handle_ack(self.now, ack, self.view());
        self.drain();
    }

    /// The safety timer's instant has come.
    pub(crate) fn expire(&mut self) {
        self.regulator.handle_timeout(self.now, self.view());
        self.drain();
    }

    /// What went to the source since it was asked last: ACK numbers and windows.
    pub(crate) fn sent(&mut self) -> Vec<(u32, u32)> {
        self.drain();
        std::mem::take(&mut self.sent)
    }

    /// As the edge does after every call.
    fn drain(&mut self) {
        while let Some(output) = self.regulator.poll_output(self.now) {
            if let Output::ToSender(ack) = output {
                self.sent.push((ack.ack.0 / PAYLOAD, u32::from(ack.window) / PAYLOAD));
            }
        }
    }
}
