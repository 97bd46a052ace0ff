//! The handshake in the Linux stack, with lost or late segments.

use ackclock_core::{Flags, FlowId, Segment, Seq, Size, Span, SynOptions, Time, Timestamps};
use ackclock_tcp::{FlowParams, Supply};
use serde_json::json;

use crate::script::{Script, at};

const WINDOW: usize = 10;

/// A server of the Linux stack with an initial window of ten segments.
fn server() -> Script {
    let config = json!({"kind": "cubic", "stack": "linux", "handshake": "on"});
    let params = FlowParams {
        packet: 1040,
        initial_window: Size::Packets(WINDOW as u32),
        first: Seq(1),
        ..FlowParams::new(FlowId(0))
    };
    Script::with(config, params, Supply::Endless)
}

fn syn() -> Segment {
    let mut syn = Segment::data(FlowId(0), Seq(700), 0, 60);
    syn.flags = Flags::SYN;
    syn.window = u16::MAX;
    syn.set_timestamps(Timestamps { value: 77, echo: 0 });
    syn.set_syn_options(SynOptions { mss: Some(1000), window_scale: Some(4), sack_permitted: true });
    syn
}

/// The peer's SYN at `ms`; returns the number of answers.
fn ask(script: &mut Script, ms: u64) -> usize {
    script.sender.on_segment(at(ms), &syn());
    script.segments(at(ms)).len()
}

/// The peer acknowledges the answer and echoes the segment sent at `echo`, in milliseconds; returns the number of
/// segments sent.
fn complete(script: &mut Script, ms: u64, echo: u32) -> usize {
    let mut ack = Segment::pure_ack(FlowId(0), Seq(1), 52);
    (ack.seq, ack.window) = (Seq(701), u16::MAX);
    ack.set_timestamps(Timestamps { value: 80, echo });
    script.sender.on_segment(at(ms), &ack);
    script.segments(at(ms)).len()
}

/// Retransmits the answer `times` times for lack of an acknowledgement; returns when it last did.
fn time_out(script: &mut Script, times: u32) -> Time {
    (0..times).map(|_| script.timeout().0).last().unwrap_or(Time::ZERO)
}

#[test]
fn a_syn_that_comes_again_costs_nothing_and_the_echo_tells_the_round_trip_time() {
    let mut script = server();
    assert_eq!((ask(&mut script, 5), ask(&mut script, 5)), (1, 1));
    assert_eq!(complete(&mut script, 78, 5), WINDOW);
    assert_eq!(script.sender.srtt(), Some(Span::from_millis(73)));
}

#[test]
fn a_third_syn_within_half_a_second_is_not_answered() {
    let mut script = server();
    let answers = [5, 5, 5, 504, 505].map(|ms| ask(&mut script, ms));
    assert_eq!(answers, [1, 1, 0, 0, 1]);
}

#[test]
fn one_timeout_costs_nothing_and_two_cost_the_initial_window_unless_the_first_answer_had_arrived() {
    let after = |timeouts: u32, echo: fn(u32) -> u32| {
        let mut script = server();
        ask(&mut script, 5);
        let last = (time_out(&mut script, timeouts).as_nanos() / 1_000_000) as u32;
        complete(&mut script, u64::from(last) + 50, echo(last))
    };
    assert_eq!(after(1, |last| last), WINDOW);
    assert_eq!(after(2, |last| last), 1);
    assert_eq!(after(2, |_| 5), WINDOW);
}
