//! The engine with everything on it: packets a second, from one flow to a thousand, over links of every kind.
//!
//! Each case simulates about 25 000 packets, start-up included; criterion reports elements (packets) a second.
#![allow(missing_docs, reason = "the macros of criterion make public items")]

use std::hint::black_box;

use ackclock_scenario::{DiskFiles, RunOptions, Scenario, run};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// What is laid over the settings of Chan and Ramjee 2002.
const CASES: &[(&str, &[&str])] = &[
    ("constant", &[]),
    ("variable delay", &["edge.down.delay=e(100ms)", "edge.up.delay=300ms"]),
    ("variable rate", &["edge.down.rate=u(200kbit/s, 50kbit/s)"]),
    ("ack regulator", &["edge.regulator=ack-regulator"]),
    ("wrd", &["edge.regulator=wrd"]),
    ("forecast", &["edge.regulator=forecast"]),
    ("sack", &["flow.sender=sack"]),
    ("cubic", &["flow.sender=cubic"]),
    ("bbr", &["flow.sender=bbr"]),
    ("codel", &["edge.queue=codel"]),
];

fn one_flow(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one flow, 1000 s");
    for (name, sets) in CASES {
        measure(&mut group, name, &scenario(sets, "duration=1000s"));
    }
}

fn many_flows(criterion: &mut Criterion) {
    for channel in ["dedicated", "shared"] {
        let mut group = criterion.benchmark_group(format!("flows, {channel} channel"));
        for flows in [1u64, 10, 100, 1000] {
            let count = format!("flow.count={flows}");
            let channel = format!("edge.channel={channel}");
            // A shared channel as many times as fast, so that every flow gets what it gets on its own.
            let wide = [
                format!("edge.down.rate={}kbit/s", 200 * flows),
                format!("edge.up.rate={}kbit/s", 64 * flows),
                format!("edge.buffer={}p", 10 * flows),
            ];
            let mut sets = vec![count.as_str(), channel.as_str()];
            if channel.ends_with("shared") {
                sets.extend(wide.iter().map(String::as_str));
            }
            measure(
                &mut group,
                &flows.to_string(),
                &scenario(&sets, &format!("duration={}s", 1000 / flows.min(50))),
            );
        }
    }
}

type Group<'a> = criterion::BenchmarkGroup<'a, criterion::measurement::WallTime>;

fn measure(group: &mut Group<'_>, name: &str, scenario: &Scenario) {
    group.throughput(Throughput::Elements(packets(scenario)));
    group.sample_size(20);
    group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
        bencher.iter(|| packets(black_box(scenario)))
    });
}

fn packets(scenario: &Scenario) -> u64 {
    let outcome =
        run(scenario, 0, &DiskFiles::in_folder(""), RunOptions::default()).expect("the scenario is ours");
    outcome.result.engine.packets
}

fn scenario(sets: &[&str], duration: &str) -> Scenario {
    let sets: Vec<String> = sets.iter().chain([&duration]).map(|&set| set.to_owned()).collect();
    Scenario::load("bench.toml", "version = 1\npreset = \"cr02\"\n", &sets).expect("the scenario is ours")
}

criterion_group!(benches, one_flow, many_flows);
criterion_main!(benches);
