//! Calls from C with bad arguments are refused, and do no harm.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Once};

use ackclock_c::abi::{AckclockOutput, AckclockSegment, AckclockView, MADE, NO_SCALE, Refusal};
use ackclock_c::*;
use ackclock_core::{Entry, Segment, Time};
use ackclock_edge::{FlowContext, Output, REGULATORS, Regulator, RegulatorConfig, Scope};
use ackclock_link::LinkView;
use serde_json::Value;

/// A host as C sees it: every pointer that it passes points to a live value.
pub(crate) struct Host(*mut AckclockRegulator);

impl Host {
    pub(crate) fn new(table: &str) -> Self {
        let table = CString::new(table).unwrap();
        // SAFETY: the table ends with NUL, and no message is wanted.
        let regulator = unsafe { ackclock_regulator_new(table.as_ptr(), null_mut(), 0) };
        assert!(!regulator.is_null());
        Self(regulator)
    }

    pub(crate) fn open(&self, flow: u32) -> i32 {
        // SAFETY: the regulator lives as long as `self`.
        unsafe { ackclock_open_flow(self.0, flow, 0) }
    }

    pub(crate) fn close(&self, now: u64, flow: u32) -> i32 {
        // SAFETY: the regulator lives as long as `self`.
        unsafe { ackclock_close_flow(self.0, now, flow) }
    }

    pub(crate) fn data(&self, now: u64, segment: &AckclockSegment, view: &AckclockView) -> i32 {
        // SAFETY: the regulator lives as long as `self`; the structs are live.
        unsafe { ackclock_on_data(self.0, now, segment, view) }
    }

    pub(crate) fn queued(&self, now: u64, segment: &AckclockSegment, view: &AckclockView) -> i32 {
        // SAFETY: the regulator lives as long as `self`; the structs are live.
        unsafe { ackclock_on_queued(self.0, now, segment, view) }
    }

    pub(crate) fn dropped(&self, now: u64, segment: &AckclockSegment, why: u32) -> i32 {
        // SAFETY: the regulator lives as long as `self`; the structs are live.
        unsafe { ackclock_on_dropped(self.0, now, segment, why, &view()) }
    }

    pub(crate) fn departed(&self, now: u64, segment: &AckclockSegment, view: &AckclockView) -> i32 {
        // SAFETY: the regulator lives as long as `self`; the structs are live.
        unsafe { ackclock_on_departed(self.0, now, segment, view) }
    }

    pub(crate) fn freed(&self, now: u64, segment: &AckclockSegment, view: &AckclockView) -> i32 {
        // SAFETY: the regulator lives as long as `self`; the structs are live.
        unsafe { ackclock_on_freed(self.0, now, segment, view) }
    }

    pub(crate) fn copy_refused(&self, segment: &AckclockSegment) -> i32 {
        // SAFETY: the regulator lives as long as `self`; the struct is live.
        unsafe { ackclock_on_copy_refused(self.0, segment) }
    }

    pub(crate) fn idle(&self, now: u64, flow: u32, view: &AckclockView) -> i32 {
        // SAFETY: the regulator lives as long as `self`; the struct is live.
        unsafe { ackclock_on_idle(self.0, now, flow, view) }
    }

    pub(crate) fn timeout(&self, now: u64, flow: u32, view: &AckclockView) -> i32 {
        // SAFETY: the regulator lives as long as `self`; the struct is live.
        unsafe { ackclock_on_timeout(self.0, now, flow, view) }
    }

    pub(crate) fn ack(&self, now: u64, segment: &AckclockSegment, view: &AckclockView) -> i32 {
        // SAFETY: the regulator lives as long as `self`; the structs are live.
        unsafe { ackclock_on_ack(self.0, now, segment, view) }
    }

    fn deadline(&self) -> (i32, u64, u32) {
        let (mut deadline, mut flow) = (0, 0);
        // SAFETY: the regulator lives as long as `self`; the numbers are live.
        let answer = unsafe { ackclock_poll_timeout(self.0, &mut deadline, &mut flow) };
        (answer, deadline, flow)
    }

    /// All output at `now`, as pairs of action and segment.
    fn output(&self, now: u64) -> Vec<(u32, AckclockSegment)> {
        let mut output =
            AckclockOutput { size: size_of::<AckclockOutput>() as u32, ..AckclockOutput::default() };
        let mut all = Vec::new();
        // SAFETY: the regulator lives as long as `self`; the struct is live and states its size.
        while unsafe { ackclock_poll_output(self.0, now, &mut output) } == 1 {
            all.push((output.action, output.segment));
        }
        all
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: the regulator came from `ackclock_regulator_new` and is not used again.
        unsafe { ackclock_regulator_free(self.0) };
    }
}

pub(crate) fn view() -> AckclockView {
    AckclockView { size: size_of::<AckclockView>() as u32, rate: 1_000_000, ..AckclockView::default() }
}

/// A segment of 1000 bytes, or an ACK without payload.
pub(crate) fn segment(flow: u32, sequence: u32, payload: u16) -> AckclockSegment {
    let size = size_of::<AckclockSegment>() as u32;
    AckclockSegment { size, flow, sequence, payload, header: 40, flags: 16, ..AckclockSegment::default() }
}

fn ack(flow: u32, acknowledgement: u32) -> AckclockSegment {
    AckclockSegment { acknowledgement, window: 60_000, ..segment(flow, 0, 0) }
}

#[test]
fn null_pointers_and_other_sizes_are_refused() {
    let (host, segment, view) = (Host::new("kind = \"wrs\""), segment(0, 0, 960), view());
    let refused = |answer, refusal: Refusal| assert_eq!(answer, refusal as i32);
    // SAFETY: null pointers are allowed; all others are live.
    unsafe {
        refused(ackclock_on_data(null_mut(), 0, &segment, &view), Refusal::Pointer);
        refused(ackclock_on_data(host.0, 0, null(), &view), Refusal::Pointer);
        refused(ackclock_on_ack(host.0, 0, &segment, null()), Refusal::Pointer);
        refused(ackclock_on_copy_refused(host.0, null()), Refusal::Pointer);
        refused(ackclock_poll_output(host.0, 0, null_mut()), Refusal::Pointer);
        refused(ackclock_poll_timeout(host.0, null_mut(), &mut 0), Refusal::Pointer);
        refused(ackclock_poll_timeout(host.0, &mut 0, null_mut()), Refusal::Pointer);
        refused(ackclock_poll_output(host.0, 0, &mut AckclockOutput::default()), Refusal::Size);
        ackclock_regulator_free(null_mut());
        assert!(ackclock_regulator_new(null(), null_mut(), 0).is_null());
    }
    host.open(0);
    refused(host.data(0, &AckclockSegment { size: 0, ..segment }, &view), Refusal::Size);
    refused(host.data(0, &segment, &AckclockView { size: view.size - 1, ..view }), Refusal::Size);
    let odd = (host.0 as usize + 1) as *mut AckclockRegulator;
    // SAFETY: a misaligned pointer is refused before it is read.
    refused(unsafe { ackclock_open_flow(odd, 1, 0) }, Refusal::Pointer);
}

#[test]
fn values_out_of_range_are_refused() {
    let host = Host::new("kind = \"snoop\"");
    host.open(0);
    let (good, view) = (segment(0, 0, 960), view());
    for bad in [
        AckclockSegment { packet: MADE, ..good },
        AckclockSegment { packet: 7 << 32 | MADE, ..good },
        AckclockSegment { ecn: 8, ..good },
        AckclockSegment { window_scale: 15, ..good },
        AckclockSegment { has_timestamps: 2, ..good },
        AckclockSegment { sack_permitted: 2, ..good },
        AckclockSegment { sack_blocks: 4, ..good },
        AckclockSegment { sack_blocks: 1, flags: 2, ..good },
        AckclockSegment { reserved: [0, 1], ..good },
    ] {
        assert_eq!(host.data(0, &bad, &view), Refusal::Value as i32, "{bad:?}");
    }
    for bad in [
        AckclockView { capacity_unit: 3, ..view },
        AckclockView { capacity_unit: 1, capacity: 1 << 40, ..view },
        AckclockView { waiting: abi::AckclockLoad { packets: 1 << 32, bytes: 0 }, ..view },
        AckclockView { occupied: abi::AckclockLoad { packets: 0, bytes: u64::MAX }, ..view },
    ] {
        assert_eq!(host.data(0, &good, &bad), Refusal::Value as i32, "{bad:?}");
    }
    assert_eq!(host.dropped(0, &good, 6), Refusal::Value as i32);
    let neither = AckclockSegment { flags: 4, ..good };
    assert_eq!(host.ack(0, &neither, &view), Refusal::Value as i32);
    assert_eq!(host.data(1 << 63, &good, &view), Refusal::Time as i32);
    assert_eq!((host.data(5, &good, &view), host.data(4, &good, &view)), (1, Refusal::Time as i32));
    assert!(host.data(5, &AckclockSegment { window_scale: NO_SCALE, ..good }, &view) >= 0);
}

#[test]
fn flows_are_opened_and_closed_once() {
    for name in ["ack-regulator", "snoop", "wrs", "none"] {
        let host = Host::new(&format!("kind = \"{name}\""));
        assert_eq!(host.data(0, &segment(7, 0, 960), &view()), Refusal::UnknownFlow as i32);
        assert_eq!(host.ack(0, &ack(7, 0), &view()), Refusal::UnknownFlow as i32);
        assert_eq!(host.timeout(0, 7, &view()), Refusal::UnknownFlow as i32);
        assert_eq!(host.close(0, 7), Refusal::UnknownFlow as i32);
        assert_eq!((host.open(7), host.open(7)), (0, Refusal::FlowOpen as i32));
        assert!(host.data(0, &segment(7, 0, 960), &view()) >= 0);
        assert_eq!((host.close(1, 7), host.close(1, 7)), (0, Refusal::UnknownFlow as i32));
        assert_eq!(host.deadline().0, 0, "{name}");
        assert_eq!((host.open(7), host.close(2, 7)), (0, 0), "the number is free again");
    }
}

#[test]
fn a_closed_flow_returns_what_it_held_and_kept() {
    let held = Host::new("{ \"kind\": \"ack-regulator\" }");
    let kept = Host::new("kind = \"snoop\"");
    // The buffer is full, so that the Ack Regulator has no room for the answer to an ACK.
    let load = abi::AckclockLoad { packets: 5, bytes: 5000 };
    let full = AckclockView { capacity_unit: 1, capacity: 5, waiting: load, occupied: load, ..view() };
    held.open(1);
    kept.open(1);
    for number in 0..3 {
        let data = segment(1, number * 960, 960);
        assert_eq!((held.data(0, &data, &full), held.queued(0, &data, &full)), (0, 0));
        assert_eq!((kept.data(0, &data, &full), kept.queued(0, &data, &full)), (1, 0));
    }
    let packet = 0xdead_beef_0000_0007;
    assert_eq!(held.ack(1, &AckclockSegment { packet, ..ack(1, 960) }, &full), 0);
    assert_eq!((held.output(1).len(), kept.output(1).len()), (0, 0));
    assert_eq!((held.close(2, 1), kept.close(2, 1)), (0, 0));
    let returned = held.output(2);
    assert_eq!(returned.len(), 1);
    assert_eq!((returned[0].0, returned[0].1.packet, returned[0].1.acknowledgement), (1, packet, 960));
    let released: Vec<_> =
        kept.output(2).iter().map(|(action, segment)| (*action, segment.sequence)).collect();
    assert_eq!(released, [(5, 0), (5, 960), (5, 1920)]);
}

#[test]
fn segments_without_a_regulator_pass_unchanged() {
    let host = Host::new("kind = \"none\"");
    host.open(1);
    let sent = AckclockSegment {
        packet: 9,
        has_timestamps: 1,
        timestamp_value: 3,
        timestamp_echo: 4,
        window_scale: 7,
        sack_blocks: 2,
        sack: [[1, 2], [5, 9], [0, 0]],
        ecn: 2,
        ..ack(1, 960)
    };
    let syn = AckclockSegment { flags: 2, mss: 1460, window_scale: 7, sack_permitted: 1, ..segment(1, 0, 0) };
    for segment in [sent, syn] {
        assert_eq!(host.ack(0, &segment, &view()), 0);
        let passed = host.output(0);
        assert_eq!(passed.len(), 1);
        assert_eq!((passed[0].0, format!("{:?}", passed[0].1)), (1, format!("{segment:?}")));
    }
}

#[test]
fn a_wrong_table_is_explained_in_the_room_that_there_is() {
    let explained = |table: &[u8], room: usize| {
        let mut text = [0x7f as c_char; 200];
        let table = CString::new(table).unwrap();
        // SAFETY: the table ends with NUL, and `text` has more than `room` bytes.
        let regulator = unsafe { ackclock_regulator_new(table.as_ptr(), text.as_mut_ptr(), room) };
        assert!(regulator.is_null());
        assert!(text[room..].iter().all(|&byte| byte == 0x7f), "no byte beyond the room is written");
        // SAFETY: `text` ends with NUL within `room`.
        if room > 0 {
            unsafe { CStr::from_ptr(text.as_ptr()) }.to_str().unwrap().to_owned()
        } else {
            String::new()
        }
    };
    assert!(explained(b"kind = \"snop\"", 199).contains("`snop`"));
    assert!(explained(b"{ \"kind\": \"wrs\", \"fish\": 1 }", 199).contains("fish"));
    assert!(explained(b"kind = ", 199).starts_with("regulator: "));
    assert!(explained(b"{", 199).starts_with("regulator: "));
    assert!(explained(b"\xff", 199).contains("UTF-8"));
    assert_eq!(explained(b"kind = \"snop\"", 10), "regulator");
    assert_eq!((explained(b"x", 1), explained(b"x", 0)), (String::new(), String::new()));
}

/// A regulator with faults: every ACK is a panic, and its deadline never moves. The flows of a user share it.
#[derive(Debug)]
struct Faulty;

/// Deadline of the faulty regulator, ns.
const DEADLINE: u64 = 5;

impl RegulatorConfig for Faulty {
    fn build(&self, _: FlowContext) -> Option<Box<dyn Regulator>> {
        Some(Box::new(Self))
    }

    fn scope(&self) -> Scope {
        Scope::User
    }
}

impl Regulator for Faulty {
    fn handle_ack(&mut self, _: Time, _: Segment, _: LinkView) {
        panic!("the fault of this test");
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        None
    }

    fn poll_timeout(&self) -> Option<Time> {
        Some(Time::from_nanos(DEADLINE))
    }
}

/// A host with the faulty regulator and two flows of a user.
fn faulty() -> Host {
    static ADDED: Once = Once::new();
    ADDED.call_once(|| {
        let row = Entry::<dyn RegulatorConfig> {
            name: "faulty",
            parse: &|_| Ok(Arc::new(Faulty)),
            complete: &Ok,
            schema: &|| Value::Null,
            defaults: &|| Value::Null,
        };
        REGULATORS.add(row).unwrap();
    });
    let host = Host::new("kind = \"faulty\"");
    assert_eq!((host.open(0), host.open(1)), (0, 0));
    host
}

#[test]
fn a_panic_does_not_cross_the_boundary() {
    let host = faulty();
    assert_eq!(host.data(0, &segment(0, 0, 960), &view()), 0);
    assert_eq!(host.ack(0, &ack(0, 0), &view()), Refusal::Failed as i32);
    assert_eq!(host.data(0, &segment(0, 0, 960), &view()), Refusal::Failed as i32);
    assert_eq!(host.deadline().0, Refusal::Failed as i32);
    let text = ackclock_error_text(Refusal::Failed as i32);
    // SAFETY: the library returns texts that live for ever.
    assert!(unsafe { CStr::from_ptr(text) }.to_str().unwrap().contains("free"));
}

#[test]
fn a_deadline_that_never_moves_expires_once_for_each_call() {
    let host = faulty();
    let data = segment(0, 0, 960);
    host.data(0, &data, &view());
    assert_eq!(host.deadline(), (1, DEADLINE, 0));
    assert_eq!((host.timeout(DEADLINE - 1, 0, &view()), host.deadline()), (0, (1, DEADLINE, 0)), "early");
    assert_eq!((host.timeout(DEADLINE, 0, &view()), host.deadline().0), (0, 0));
    assert!(host.output(DEADLINE).is_empty());
    assert_eq!(host.deadline().0, 0, "polling output is not a call");
    host.data(9, &data, &view());
    assert_eq!(host.deadline(), (1, 9, 0), "never before the latest call");
}

#[test]
fn a_deadline_names_an_open_flow_of_its_regulator() {
    let host = faulty();
    host.data(0, &segment(1, 0, 960), &view());
    assert_eq!(host.deadline(), (1, DEADLINE, 1));
    assert_eq!((host.close(0, 1), host.deadline()), (0, (1, DEADLINE, 0)));
    assert_eq!((host.close(0, 0), host.deadline().0), (0, 0));
}

/// Numbers without a pattern, with the extremes of their type among them.
struct Numbers(u64);

impl Numbers {
    fn even(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 20
    }

    fn next(&mut self) -> u64 {
        let drawn = self.even();
        match drawn % 8 {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << (drawn >> 8 & 63),
            3 | 4 => drawn >> 8 & 7,
            _ => drawn >> 8,
        }
    }

    fn segment(&mut self) -> AckclockSegment {
        AckclockSegment {
            sequence: self.next() as u32,
            acknowledgement: self.next() as u32,
            timestamp_value: self.next() as u32,
            timestamp_echo: self.next() as u32,
            header: self.next() as u16,
            window: self.next() as u16,
            mss: self.next() as u16,
            flags: self.next() as u8 & !2 | u8::from(self.even() & 15 == 0) << 1,
            ecn: self.next() as u8 & 7,
            window_scale: self.even() as u8 & 7,
            has_timestamps: self.next() as u8 & 1,
            sack_permitted: self.next() as u8 & 1,
            sack_blocks: self.next() as u8 & 3,
            sack: [[self.next() as u32, self.next() as u32]; 3],
            ..segment(self.next() as u32 & 1, 0, self.next() as u16)
        }
    }

    fn view(&mut self) -> AckclockView {
        let mut load =
            || abi::AckclockLoad { packets: self.next() & 0xfff, bytes: self.next() & 0xff_ffff_ffff };
        let (waiting, in_transmission, unacknowledged, occupied) = (load(), load(), load(), load());
        let (capacity_unit, capacity, rate) = (self.even() as u32 % 3, self.next() & 0xfffff, self.next());
        AckclockView {
            capacity_unit,
            capacity,
            rate,
            waiting,
            in_transmission,
            unacknowledged,
            occupied,
            ..view()
        }
    }
}

#[test]
fn no_values_make_the_library_fail() {
    for name in ["ack-regulator", "ack-rate-control", "snoop", "wrs", "wrd", "wrb", "forecast"] {
        let (host, mut numbers, mut now) = (Host::new(&format!("kind = \"{name}\"")), Numbers(1), 0_u64);
        let mut accepted = 0;
        for _ in 0..20_000 {
            now += numbers.next() & 0xfff_ffff;
            let (segment, view) = (numbers.segment(), numbers.view());
            let answer = match numbers.even() & 15 {
                0 => host.open(segment.flow),
                1 if numbers.even() & 7 == 0 => host.close(now, segment.flow),
                2 => host.dropped(now, &segment, numbers.next() as u32 & 7),
                3 => host.freed(now, &segment, &view),
                4 => host.idle(now, segment.flow, &view),
                5 => host.timeout(now, segment.flow, &view),
                6 => host.copy_refused(&segment),
                7 | 8 => host.departed(now, &segment, &view),
                9 | 10 => host.queued(now, &segment, &view),
                11 | 12 => host.data(now, &segment, &view),
                _ => host.ack(now, &segment, &view),
            };
            assert_ne!(answer, Refusal::Failed as i32, "{name} at {now}: {segment:?} {view:?}");
            accepted += u32::from(answer >= 0);
            host.output(now);
            assert_ne!(host.deadline().0, Refusal::Failed as i32, "{name}");
        }
        assert!(accepted > 8_000, "{name}: {accepted} calls");
    }
}

#[test]
fn segments_whose_options_forbid_changes_are_told() {
    const SYN: u8 = 2;
    const ACK: u8 = 16;
    let told = |options: &[u8], flags| {
        // SAFETY: the slice is readable for its length.
        unsafe { ackclock_is_protected(options.as_ptr(), options.len(), flags) }
    };
    for option in ackclock_core::PROTECTING_OPTIONS {
        let options = [1, 1, option.kind, 4, 0, 1];
        let offer = ackclock_core::is_protecting(option.kind, ackclock_core::Flags(SYN));
        assert_eq!(told(&options, SYN), i32::from(offer), "{}", option.name);
        assert_eq!((told(&options, SYN | ACK), told(&options, ACK)), (1, 1), "{}", option.name);
    }
    assert_eq!((told(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2], ACK), told(&[], ACK)), (0, 0));
    assert_eq!(told(&[1; 41], ACK), Refusal::Value as i32);
    // SAFETY: a null pointer is refused.
    assert_eq!(unsafe { ackclock_is_protected(std::ptr::null(), 4, ACK) }, Refusal::Pointer as i32);
}
