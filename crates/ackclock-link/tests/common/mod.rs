//! Builds links as scenario files write them and drives them by hand.

// Each test binary uses a part of this.
#![allow(dead_code, unreachable_pub)]

use std::sync::Arc;

use ackclock_core::{FlowId, Segment, Seq, Span, Streams, Time};
use ackclock_link::queue::{QUEUES, QueueContext};
use ackclock_link::{
    BufferMeaning, Capacity, Cause, Departures, Files, LINKS, Link, LinkContext, LinkEvent, Nominal,
};
use serde_json::Value;

/// Files by name, made up.
pub struct MadeUp;

impl Files for MadeUp {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, String> {
        let text = match path {
            // Bursts, gaps, several opportunities in one millisecond.
            "bursts" => "0\n3\n3\n3\n7\n30\n31\n31\n60\n100\n",
            "rates" => "time_s,rate_kbps\n0,800\n0.02,0\n0.05,2000\n0.1,\n",
            "lossy" => "time_s,rate_kbps,delay_ms,loss\n0,800,20,0.2\n0.02,0,5,0\n0.05,2000,1,0\n0.1,,,\n",
            _ => return std::fs::read(path).map(Arc::from).map_err(|error| format!("{path}: {error}")),
        };
        Ok(text.as_bytes().into())
    }
}

/// A link named `down` from its table, with a queue from its own.
pub fn link(table: &Value, queue: &Value, capacity: Capacity, seed: u64) -> Box<dyn Link> {
    let streams = Streams::new(seed, 0);
    let context = QueueContext { capacity, streams: &streams, name: "down/queue" };
    let queue = QUEUES.resolve(queue).unwrap().build(&context);
    let (meaning, files) = (BufferMeaning::Waiting, &MadeUp);
    let context = LinkContext { queue, meaning, streams: &streams, name: "down", files };
    LINKS.resolve(table).unwrap().build(context).unwrap()
}

/// A link with an unlimited drop-tail queue.
pub fn unlimited(table: &Value, seed: u64) -> Box<dyn Link> {
    link(table, &"drop-tail".into(), Capacity::Unlimited, seed)
}

pub fn nominal(table: &Value) -> Nominal {
    LINKS.resolve(table).unwrap().nominal(&MadeUp).unwrap()
}

/// A data segment of `bytes` on the wire, numbered by its sequence number.
pub fn segment(flow: u32, number: u32, bytes: u16) -> Segment {
    Segment::data(FlowId(flow), Seq(number), bytes - 40, 40)
}

pub fn micros(n: u64) -> Time {
    Time::ZERO + Span::from_micros(n)
}

/// What became of a segment, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    pub at: Time,
    pub flow: u32,
    pub number: u32,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    Departed,
    Delivered,
    Dropped(Cause),
    Refused(Cause),
}

fn outcome(at: Time, event: LinkEvent) -> Outcome {
    let (segment, what) = match event {
        LinkEvent::Departed(segment) => (segment, What::Departed),
        LinkEvent::Delivered(segment) => (segment, What::Delivered),
        LinkEvent::Dropped(segment, cause) => (segment, What::Dropped(cause)),
    };
    Outcome { at, flow: segment.flow.0, number: segment.seq.0, what }
}

/// When a driver asks a link for events, beside the instants that the link names.
#[derive(Clone, Copy)]
pub enum Polling {
    AsAsked,
    AlsoEvery(Span),
}

/// Offers each segment at its instant, asks for events, and goes on until nothing more happens before `until`.
pub fn drive(
    link: &mut dyn Link,
    arrivals: &[(Time, Segment)],
    departures: Departures,
    polling: Polling,
    until: Time,
) -> Vec<Outcome> {
    link.watch(departures);
    let (mut seen, mut arrivals, mut extra) = (Vec::new(), arrivals.iter().peekable(), Time::ZERO);
    loop {
        let asked = link.poll_timeout().unwrap_or(Time::NEVER);
        let arrives = arrivals.peek().map_or(Time::NEVER, |(at, _)| *at);
        let mut now = asked.min(arrives);
        if now > until {
            return seen;
        }
        if let Polling::AlsoEvery(step) = polling
            && extra < now
        {
            now = extra;
            extra += step;
        }
        while let Some((at, event)) = link.poll_event(now) {
            seen.push(outcome(at, event));
        }
        if arrives == now
            && let Some((_, segment)) = arrivals.next()
            && let Err(refused) = link.enqueue(now, *segment)
        {
            let what = What::Refused(refused.cause);
            seen.push(Outcome { at: now, flow: segment.flow.0, number: segment.seq.0, what });
        }
    }
}
