//! Prints the time that a packet of a known connection takes in the box's programs: the least of several runs, since other
//! processes use the machine too. `make box-live` runs it as root.

#![allow(clippy::print_stdout, reason = "the output of an example")]
#![allow(clippy::unwrap_used, dead_code, reason = "the frames are those of the tests")]

#[path = "../tests/frames.rs"]
mod frames;

use ackclock_box::clip::Clip;
use ackclock_box::maps::Allowance;
use aya::programs::{TestRun, TestRunOptions};

use crate::frames::{ALL, BARE_ACK, Tcp, opens, program};

fn main() {
    let Some(mut clip) = program(true) else { return };
    let of = BARE_ACK;
    opens(&mut clip, of, (1, 1), (Some(7), Some(7)));
    clip.allow(ALL, Allowance { at_ns: 1, bytes: 10_000, base: 0, least: 0, act: 1 }).unwrap();
    clip.admit(ALL).unwrap();
    let data = Tcp { from_mobile: false, payload: 1400, ..of };
    for (name, packet) in [("data", data), ("an ACK", of)] {
        let least = (0..20).map(|_| nanoseconds(&mut clip, &packet)).min().unwrap();
        println!("{name}: {least} ns");
    }
}

/// Mean time that the program takes for a packet, of many runs.
fn nanoseconds(clip: &mut Clip, packet: &Tcp) -> u128 {
    let frame = packet.frame();
    let options = TestRunOptions { data_in: Some(&frame), repeat: 50_000, ..TestRunOptions::new() };
    let program = clip.program(if packet.from_mobile { "clip_acks" } else { "clip_data" }).unwrap();
    program.test_run(options).unwrap().duration.as_nanos()
}
