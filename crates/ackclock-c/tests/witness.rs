//! Every call from C reaches the regulator with its time, segment and view.

use std::sync::{Arc, Mutex};

use ackclock_c::abi::{AckclockLoad, AckclockSegment, AckclockView, NO_SCALE};
use ackclock_core::{Entry, Flags, FlowId, PacketId, Rate, SackBlock, Segment, Seq, Time, Timestamps};
use ackclock_edge::{FlowContext, Output, REGULATORS, Regulator, RegulatorConfig, Verdict};
use ackclock_link::{Capacity, Cause, LinkView, Load};
use serde_json::Value;

use crate::calls::{Host, segment, view};

/// A call: its name, time, segment, and view.
type Call = (&'static str, u64, Option<Segment>, Option<LinkView>);

static CALLS: Mutex<Vec<Call>> = Mutex::new(Vec::new());

/// A regulator that notes its calls.
#[derive(Debug)]
struct Witness;

fn note(name: &'static str, now: Time, segment: Option<&Segment>, view: Option<LinkView>) {
    CALLS.lock().unwrap().push((name, now.as_nanos(), segment.copied(), view));
}

impl RegulatorConfig for Witness {
    fn build(&self, _: FlowContext) -> Option<Box<dyn Regulator>> {
        Some(Box::new(Self))
    }
}

impl Regulator for Witness {
    fn on_data(&mut self, now: Time, segment: &Segment, view: LinkView) -> Verdict {
        note("data", now, Some(segment), Some(view));
        Verdict::MarkCe
    }

    fn on_syn(&mut self, now: Time, segment: &Segment, view: LinkView) {
        note("syn", now, Some(segment), Some(view));
    }

    fn on_queued(&mut self, now: Time, segment: &Segment, view: LinkView) {
        note("queued", now, Some(segment), Some(view));
    }

    fn on_copy_refused(&mut self, segment: &Segment) {
        note("copy refused", Time::ZERO, Some(segment), None);
    }

    fn on_dropped(&mut self, now: Time, segment: &Segment, cause: Cause, view: LinkView) {
        assert_eq!(cause, Cause::Medium);
        note("dropped", now, Some(segment), Some(view));
    }

    fn on_departed(&mut self, now: Time, segment: &Segment, view: LinkView) {
        note("departed", now, Some(segment), Some(view));
    }

    fn on_freed(&mut self, now: Time, segment: &Segment, view: LinkView) {
        note("freed", now, Some(segment), Some(view));
    }

    fn on_idle(&mut self, now: Time, view: LinkView) {
        note("idle", now, None, Some(view));
    }

    fn handle_ack(&mut self, now: Time, ack: Segment, view: LinkView) {
        note("ack", now, Some(&ack), Some(view));
    }

    fn handle_timeout(&mut self, now: Time, view: LinkView) {
        note("timeout", now, None, Some(view));
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        None
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(Time::from_nanos(9))
    }

    fn close(&mut self, now: Time, _: FlowId) {
        note("close", now, None, None);
    }
}

/// A view of which every field differs, in C and in Rust.
fn views() -> (AckclockView, LinkView) {
    let load = |packets: u32| AckclockLoad { packets: packets.into(), bytes: u64::from(packets) * 1000 };
    let of = |packets: u32| Load { packets, bytes: u64::from(packets) * 1000 };
    let c = AckclockView {
        capacity_unit: 2,
        capacity: 70_000,
        rate: 2_000_000,
        waiting: load(1),
        in_transmission: load(2),
        unacknowledged: load(3),
        occupied: load(4),
        ..view()
    };
    let rust = LinkView {
        waiting: of(1),
        in_transmission: of(2),
        unacknowledged: of(3),
        occupied: of(4),
        capacity: Capacity::Bytes(70_000),
        rate: Rate::from_bps(2_000_000),
    };
    (c, rust)
}

/// A segment of which every field differs, in C and in Rust.
fn segments() -> (AckclockSegment, Segment) {
    let c = AckclockSegment {
        packet: 8 << 32 | 7,
        acknowledgement: 11,
        timestamp_value: 12,
        timestamp_echo: 13,
        window: 14,
        flags: 0x90,
        ecn: 2,
        window_scale: 6,
        has_timestamps: 1,
        sack_blocks: 1,
        sack: [[20, 21], [0, 0], [0, 0]],
        ..segment(3, 10, 960)
    };
    let mut rust = Segment::data(FlowId(3), Seq(10), 960, 40);
    rust.identify(FlowId(3), PacketId { slot: 7, generation: 8 });
    rust.ack = Seq(11);
    rust.window = 14;
    rust.flags = Flags::ACK | Flags::CWR;
    rust.ecn = ackclock_core::Ecn::Ect0;
    rust.set_scale(Some(6));
    rust.set_timestamps(Timestamps { value: 12, echo: 13 });
    rust.push_sack(SackBlock { left: Seq(20), right: Seq(21) });
    (c, rust)
}

#[test]
fn a_call_reaches_the_regulator_with_all_that_it_says() {
    let row = Entry::<dyn RegulatorConfig> {
        name: "witness",
        parse: &|_| Ok(Arc::new(Witness)),
        complete: &Ok,
        schema: &|| Value::Null,
        defaults: &|| Value::Null,
    };
    REGULATORS.add(row).unwrap();
    let host = Host::new("kind = \"witness\"");
    host.open(3);
    let ((c_view, rust_view), (c, rust)) = (views(), segments());
    let syn = AckclockSegment { flags: 2, window_scale: NO_SCALE, ..segment(3, 30, 0) };
    assert_eq!(host.data(1, &c, &c_view), 3);
    assert_eq!((host.queued(2, &c, &c_view), host.copy_refused(&c)), (0, 0));
    assert_eq!((host.departed(4, &c, &c_view), host.freed(5, &c, &c_view)), (0, 0));
    assert_eq!((host.idle(6, 3, &c_view), host.ack(7, &c, &c_view)), (0, 0));
    assert_eq!((host.ack(8, &syn, &c_view), host.timeout(9, 3, &c_view)), (0, 0));
    assert_eq!((host.dropped(10, &c, 2), host.close(11, 3)), (0, 0));

    let calls = std::mem::take(&mut *CALLS.lock().unwrap());
    let names: Vec<_> = calls.iter().map(|&(name, now, _, _)| (name, now)).collect();
    let expected = [
        ("data", 1),
        ("queued", 2),
        ("copy refused", 0),
        ("departed", 4),
        ("freed", 5),
        ("idle", 6),
        ("ack", 7),
        ("syn", 8),
        ("timeout", 9),
        ("dropped", 10),
        ("close", 11),
    ];
    assert_eq!(names, expected);
    for (name, _, segment, view) in calls {
        assert!(segment.is_none_or(|segment| name == "syn" || segment == rust), "{name}: {segment:?}");
        assert!(view.is_none_or(|view| name == "dropped" || view == rust_view), "{name}: {view:?}");
        assert_eq!(segment.is_none(), ["idle", "timeout", "close"].contains(&name), "{name}");
        assert_eq!(view.is_none(), ["copy refused", "close"].contains(&name), "{name}");
    }
}
