//! CR02 Table 1 recomputed: 3600 s of one bulk download over a 200 kbit/s link with 10 packets of buffer.

mod support;

use ackclock_core::{Span, Time};
use ackclock_tcp::Supply;
use serde_json::json;
use support::{Download, ITEM_1};

fn main_settings(kind: &str) -> serde_json::Value {
    // The simulator of 2002: ticks of 100 ms, an initial timeout of 6 s, no limited transmit.
    json!({"kind": kind, "rto": {"tick": "100ms", "min": "1s", "initial": "6s", "max": "64s"}})
}

fn run(kind: &str, item: &support::Item, seed: u64) -> Download {
    let mut download = Download::new(&main_settings(kind), item, seed, 10, Supply::Endless);
    download.run(Time::ZERO + Span::from_secs(3600));
    download
}

#[test]
fn item_one_has_the_losses_round_trip_and_goodput_of_the_source() {
    let download = run("reno", &ITEM_1, 1);
    let stats = download.sender.stats();
    println!("{:?}", (stats.fast_retransmits, stats.timeouts, stats.segments_sent, stats.retransmits));
    println!("{:?} {:?} {:?}", stats.timed_rtt(), stats.rtt.mean(), stats.rto_mean());
    println!("{} {:?} {:?}", download.wire_goodput(), stats.loss_cycles.loss_window(), stats.loss_cycles.shares());
}
