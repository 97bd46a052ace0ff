//! Builds links as scenario files write them and drives them by hand.

// Each test binary uses a part of this.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::ops::Range;
use std::sync::Arc;

use ackclock_core::{
    Ecn, Flags, FlowId, Histogram, Repair, SackBlock, Segment, Seq, Span, Streams, Time, Timestamps,
};
use ackclock_edge::LINKS;
use ackclock_edge::QUEUES;
use ackclock_link::{
    AnyBearer, AnyLink, Bearer, BufferMeaning, Capacity, Cause, CellUser, ClassConfig, Departures, Files,
    Impairment, Link, LinkConfig, LinkContext, LinkEvent, MediumContext, Nominal, QueuePlan,
};
use ackclock_radio::scheduler::SCHEDULERS;
use serde_json::{Value, json};

/// Files by name, made up.
pub struct MadeUp;

impl Files for MadeUp {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, String> {
        let text = match path {
            // Bursts, gaps, several opportunities in one millisecond.
            "bursts" => "0\n3\n3\n3\n7\n30\n31\n31\n60\n100\n",
            "rates" => "time_s,rate_kbps\n0,800\n0.02,0\n0.05,2000\n0.1,\n",
            "errors" => {
                "00011\n001 # lost from 30 to 50 ms and from 70 to 80, where an interval lasts 10 ms\n"
            }
            "third-of-ten" => "0010000000",
            "lossy" => "time_s,rate_kbps,delay_ms,loss\n0,800,20,0.2\n0.02,0,5,0\n0.05,2000,1,0\n0.1,,,\n",
            _ => return std::fs::read(path).map(Arc::from).map_err(|error| format!("{path}: {error}")),
        };
        Ok(text.as_bytes().into())
    }
}

/// A link named `down` from its table, with a queue from its own. A cell has its users under `users`; flow n belongs to the
/// n-th of them, as long as there are so many.
pub fn link(table: &Value, queue: &Value, capacity: Capacity, seed: u64) -> Box<dyn Link> {
    let (mut link, count) = built(table, queue, capacity, seed);
    (0..count).for_each(|user| link.assign(FlowId(user), user));
    Box::new(link)
}

/// Whether the link of a table says that it has a medium, and whether it has one.
pub fn media(table: &Value) -> [bool; 2] {
    let (config, _) = config(table);
    let context = MediumContext { streams: &Streams::new(1, 0), name: "down", files: &MadeUp };
    [config.has_medium(), config.medium(context).unwrap().is_some()]
}

/// The link that is built from a table, and how many users it has where it is a cell.
fn built(table: &Value, queue: &Value, capacity: Capacity, seed: u64) -> (AnyLink, u32) {
    let streams = Streams::new(seed, 0);
    let (config, count) = config(table);
    let queue = plan(queue, capacity, &streams, "down/queue");
    let (meaning, files) = (BufferMeaning::Waiting, &MadeUp);
    let context = LinkContext { queue, meaning, streams: &streams, name: "down", files };
    let link = config.build(context).unwrap();
    (link, count)
}

/// The plan of a queue from its table, with the age limit under `age_limit`.
pub fn plan(queue: &Value, capacity: Capacity, streams: &Streams, name: &str) -> QueuePlan {
    let (mut table, limit) = (queue.clone(), age_limit(queue));
    if let Some(table) = table.as_object_mut() {
        table.remove("age_limit");
    }
    QueuePlan::new(QUEUES.resolve(&table).unwrap(), capacity, streams, name).limiting_age(limit)
}

/// Age limit of a queue from its table.
pub fn age_limit(queue: &Value) -> Option<Span> {
    queue.get("age_limit").map(|limit| limit.as_str().unwrap().parse().unwrap())
}

/// Whether all queueing delays are below `limit`, as exactly as the histogram tells.
pub fn queued_below(waits: &Histogram, limit: Span) -> bool {
    waits.quantile(1.0).is_none_or(|most| most <= limit + limit / 60)
}

/// The options of a table, and how many users it has where it is a cell.
fn config(table: &Value) -> (Arc<dyn LinkConfig>, u32) {
    let mut table = table.clone();
    let users = table.as_object_mut().unwrap().remove("users");
    let mut config = LINKS.resolve(&table).unwrap();
    let users: Vec<CellUser> = users.map_or_else(Vec::new, |users| serde_json::from_value(users).unwrap());
    if !users.is_empty() {
        config = config.serving(&users).unwrap().unwrap();
    }
    (config, users.iter().map(|user| user.count).sum())
}

/// A link with an unlimited drop-tail queue.
pub fn unlimited(table: &Value, seed: u64) -> Box<dyn Link> {
    link(table, &"drop-tail".into(), Capacity::Unlimited, seed)
}

pub fn nominal(table: &Value) -> Nominal {
    config(table).0.nominal(&MadeUp).unwrap()
}

/// Tables of every link of the registry; one without tables of its own is tried with its defaults.
pub fn every_link() -> Vec<Value> {
    let tables = |name: &str| {
        match name {
        "constant" => {
            vec![json!({"rate": "1Mbit/s", "delay": "3ms"}), json!({"rate": "1Mbit/s", "loss": 0.1}),
                json!({"rate": "1Mbit/s", "loss": {"kind": "gilbert-elliott", "bad": 0.7}}),
                json!({"rate": "1Mbit/s", "duplicate": 0.3, "corrupt": 0.2, "reorder": {"share": 0.3, "extra": "20ms"}}),
                json!({"rate": "1Mbit/s", "loss": {"kind": "recording", "file": "errors", "interval": "3ms"}})]
        }
        "variable" => vec![
            json!({"rate": "u(1Mbit/s, 300kbit/s)", "delay": "1ms + e(5ms)"}),
            json!({"rate": "u(1Mbit/s, 300kbit/s)", "delay": "e(5ms)", "redraw": "interval(7ms)", "loss": "rayleigh"}),
            json!({
                "rate": "table(0kbit/s: 1, 2Mbit/s: 3)", "delay": "2ms", "redraw": "slot",
                "outages": [{"at": "10ms", "for": "30ms", "every": "100ms"}]
            }),
            json!({"rate": "ln(1Mbit/s, 300kbit/s)", "delay": "2ms", "outages": [{"at": "20ms", "for": "50ms"}]}),
        ],
        "trace" => vec![
            json!({"file": "bursts", "delay": "4ms"}),
            json!({"file": "bursts", "accounting": "ip", "delay": "e(5ms)", "loss": 0.1}),
            json!({"file": "rates"}),
            json!({"file": "lossy"}),
            json!({"file": "rates", "light": {"file": "lossy", "gap": "10ms", "for": "5ms"}}),
            json!({"file": "bursts", "delay": "2ms", "light": {"file": "rates", "gap": "1ms", "for": "20ms"}}),
            json!({"file": "bursts", "duplicate": 0.5, "reorder": {"share": 1, "extra": "9ms"}}),
        ],
        "cell" => [
            json!({}),
            json!({"users": [{"count": 2, "doppler": 100.0}, {"fading": "jakes"}], "delay": "2ms", "loss": {"kind": "rayleigh", "doppler": 0.1}}),
            json!({
                "users": [{"fading": "table"}, {"mean_snr": 5.0}], "scheduler": "pf-rp", "order": "sfp",
                "short_flow": {"bytes": "3kB", "idle": "50ms"}, "drc_delay": 2, "delay": "e(5ms)"
            }),
            json!({
                "users": [{"fading": "none", "mean_snr": 0.0, "count": 2}], "scheduler": "round-robin",
                "buffer_per": "user", "remainder": "waste", "slots": 1000, "delay": "0ms"
            }),
            json!({"users": [{"fading": "none"}, {}], "buffer_per": "user", "overflow": "arriving", "order": "sfp"}),
            json!({"users": [{"count": 2}], "control": "30%", "harq": {"error": 0.3, "delay": "5ms"}}),
            json!({"users": [{"count": 2}], "control": "DD--D", "delay": "e(3ms)"}),
            json!({
                "users": [{"count": 2}, {"fading": "none", "mean_snr": -5.0}], "delay": "2ms", "loss": 0.02,
                "harq": {"error": 0.4, "repetition_error": "rayleigh", "limit": 1}
            }),
            json!({
                "users": [{"count": 2}], "delay": "e(3ms)", "remainder": "waste", "transport": "packets",
                "buffer_per": "user", "harq": {"error": "30%", "delay": "1ms"}
            }),
            json!({"users": [{"count": 3}], "scheduler": "pf-sp", "transport": "packets", "delay": "1ms + e(2ms)"}),
        ]
        .into_iter()
        .chain(other_schedulers().map(|name| json!({"users": [{"count": 2}], "scheduler": name})))
        .collect(),
        "umts-rlc" => vec![
            json!({}),
            json!({"rate": "2Mbit/s", "tti": "10ms", "pdus": 40, "bler": "20%", "delay": "2ms"}),
            json!({"rate": "1Mbit/s", "bler": "30%", "limit": 1, "repetition_delay": "25ms"}),
            json!({"rate": "1Mbit/s", "pdus": 3, "bler": {"kind": "rayleigh", "fer": "20%"}, "limit": 0}),
            json!({"rate": "1Mbit/s", "pdus": 8, "bler": "20%", "delivery": "by-tti", "status": "by-tti", "repetition": "by-tti"}),
        ],
        "power-controlled" => vec![
            json!({"order": "in-sequence"}),
            json!({"rate": "2Mbit/s", "tti": "2ms", "errors": {"step": 0.2}, "order": "in-sequence", "delay": "2ms"}),
            json!({"rate": "2Mbit/s", "tti": "2ms", "errors": "30%", "guard": 2, "rounds": [2, 1], "order": "in-sequence"}),
            json!({"rate": "2Mbit/s", "tti": "2ms", "errors": {"idle": "freeze"}, "arq": "none"}),
            json!({"rate": "2Mbit/s", "tti": "2ms", "errors": "30%", "guard": 5}),
        ],
        "artificial-delay" => vec![
            json!({"inner": {"kind": "constant", "rate": "1Mbit/s", "delay": "3ms"}, "random": "e(5ms)"}),
            json!({
                "inner": {"kind": "umts-rlc", "rate": "1Mbit/s", "bler": "30%", "limit": 1, "repetition_delay": "25ms"},
                "table": [["0ms", "2ms"], ["25ms", "30ms"]]
            }),
            json!({
                "inner": {"kind": "power-controlled", "rate": "2Mbit/s", "tti": "2ms"}, "table": [["6ms", "3ms"]],
                "random": "e(1ms)", "order": "out-of-sequence"
            }),
            json!({
                "inner": {"kind": "umts-rlc", "rate": "1Mbit/s", "bler": "5%", "limit": 1, "repetition_delay": "25ms"},
                "learn": {"over": 1000, "every": "500ms", "epsilon": "1%"}
            }),
        ],
        _ => vec![json!({})],
    }
    };
    with_kinds(LINKS.entries.iter().map(|entry| entry.name), tables)
}

/// Schedulers that none of the tables above names.
fn other_schedulers() -> impl Iterator<Item = &'static str> {
    let named = ["pf", "pf-rp", "pf-sp", "round-robin"];
    SCHEDULERS.entries.iter().map(|entry| entry.name).filter(move |name| !named.contains(name))
}

/// Tables of every queue of the registry, with and without an age limit; one without tables of its own is tried with its
/// defaults.
pub fn every_queue() -> Vec<Value> {
    let tables = |name: &str| match name {
        "drop-tail" | "drop-head" => vec![json!({}), json!({"per": "flow"})],
        "codel" => vec![
            json!({}),
            json!({"target": "1ms", "interval": "10ms"}),
            json!({"target": "1ms", "interval": "10ms", "ecn": true, "per": "flow"}),
        ],
        "pie" => {
            vec![json!({}), json!({"burst": "0ms", "ecn": true}), json!({"burst": "0ms", "per": "user"})]
        }
        "fq-codel" => vec![json!({}), json!({"flows": 2, "target": "1ms", "interval": "10ms"})],
        "dualpi2" => vec![json!({}), json!({"coupling": 4.0, "classic": 0.5, "mark_above": "0ms"})],
        "short-first" => vec![
            json!({}),
            json!({"bytes": "2kB", "idle": "20ms", "long": 0.5}),
            json!({"bytes": "2kB", "per": "user"}),
        ],
        _ => vec![json!({})],
    };
    let names = || QUEUES.entries.iter().map(|entry| entry.name);
    let aging = |name: &str| {
        let shared = json!({"age_limit": "20ms"});
        let apart = json!({"age_limit": "7ms", "per": "flow"});
        if name == "drop-tail" { vec![shared, apart] } else { vec![shared] }
    };
    [with_kinds(names(), tables), with_kinds(names(), aging)].concat()
}

/// The queues of the registry with an age limit.
pub fn aging_queues() -> Vec<Value> {
    every_queue().into_iter().filter(|queue| age_limit(queue).is_some()).collect()
}

/// Pairs of a table and a queue, with every table and every queue at least once. `turn` is how many places the list of
/// queues is shifted; the turns below the number of queues give all pairs. All pairs in each case of a property would
/// take minutes, so properties draw `turn`: their cases try most pairs, and `make properties` tries all, because it has
/// more cases (`ACKCLOCK_CASES_TIMES`).
pub fn pairings(tables: &[Value], queues: &[Value], turn: usize) -> impl Iterator<Item = (Value, Value)> {
    let pair =
        move |at: usize| (tables[at % tables.len()].clone(), queues[(at + turn) % queues.len()].clone());
    (0..tables.len().max(queues.len())).map(pair)
}

/// Values of `turn` in [`pairings`]: more than there are queues.
pub fn turns() -> Range<usize> {
    0..1000
}

fn with_kinds<'a>(names: impl Iterator<Item = &'a str>, tables: impl Fn(&str) -> Vec<Value>) -> Vec<Value> {
    let with_kind = |name: &str, mut table: Value| {
        table["kind"] = name.into();
        table
    };
    names.flat_map(|name| tables(name).into_iter().map(move |table| with_kind(name, table))).collect()
}

/// A data segment of `bytes` on the wire, numbered by its sequence number.
pub fn segment(flow: u32, number: u32, bytes: u16) -> Segment {
    Segment::data(FlowId(flow), Seq(number), bytes - 40, 40)
}

/// A data segment with some of all marks that a segment can have; which, depends on its number.
pub fn marked(flow: u32, number: u32) -> Segment {
    let mut one = segment(flow, number, 1500 - (number % 3) as u16 * 700);
    let has = |bit: u32| number.wrapping_mul(0x9e37_79b1) >> (24 + bit) & 1 == 1;
    (one.ack, one.window, one.sending) = (Seq(number * 7), number as u16, number as u16);
    one.ecn = if has(0) { Ecn::Ect0 } else { Ecn::NotEct };
    if has(1) {
        one.set_repair(Repair::FastRetransmit);
    }
    if has(2) {
        one.set_repair(Repair::Timeout);
    }
    if has(3) {
        one.set_timestamps(Timestamps { value: number, echo: number + 1 });
    }
    if has(4) {
        one.push_sack(SackBlock { left: Seq(number), right: Seq(number + 9) });
    }
    if has(5) {
        one.set_scale(Some((number % 15) as u8));
    }
    if has(6) {
        one.flags |= Flags::PSH | Flags::FIN;
    }
    one
}

/// Removes the classes of service from the table of a bearer with users, and returns them.
pub fn take_classes(table: &mut Value) -> Vec<ClassConfig> {
    let classes = table.as_object_mut().unwrap().remove("classes");
    classes.map_or(Vec::new(), |classes| serde_json::from_value(classes).unwrap())
}

/// Gives the flows of a bearer with users to users and classes in turn, so that neighbours differ in both.
pub fn share_out(bearer: &mut AnyBearer, flows: u32, users: u32, classes: usize) {
    for flow in 0..flows {
        bearer.assign(FlowId(flow), flow % users);
        bearer.classify(FlowId(flow), (flow as usize % (classes + 1)) as u8);
    }
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
    Corrupt,
    Impaired(Impairment),
    Refused(Cause),
}

fn outcome((at, event, segment): (Time, LinkEvent, Segment)) -> Outcome {
    let what = match event {
        LinkEvent::Departed => What::Departed,
        LinkEvent::Freed => panic!("a link frees a packet when it departs"),
        LinkEvent::Delivered(_) => What::Delivered,
        LinkEvent::Dropped(cause) => What::Dropped(cause),
        LinkEvent::Corrupt => What::Corrupt,
        LinkEvent::Impaired(what) => What::Impaired(what),
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
    link.want_departures(departures);
    let (mut seen, mut arrivals, mut extra) = (Vec::new(), arrivals.iter().peekable(), Time::ZERO);
    loop {
        let asked = link.poll_timeout().unwrap_or(Time::NEVER);
        let arrives = arrivals.peek().map_or(Time::NEVER, |(at, _)| *at);
        let mut now = asked.min(arrives);
        if now > until || now == Time::NEVER {
            return seen;
        }
        if let Polling::AlsoEvery(step) = polling
            && extra < now
        {
            now = extra;
            extra += step;
        }
        while let Some(next) = link.peek_event(now) {
            let event = link.poll_event(now).unwrap();
            assert_eq!(
                (event.0, event.1),
                next,
                "`peek_event` gives another event before that one's segment is taken"
            );
            seen.push(outcome(event));
        }
        if arrives == now
            && let Some((_, segment)) = arrivals.next()
            && let Err(cause) = link.enqueue(now, segment)
        {
            let what = What::Refused(cause);
            seen.push(Outcome { at: now, flow: segment.flow.0, number: segment.seq.0, what });
        }
    }
}
