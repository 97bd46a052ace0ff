//! Properties of both links over random scenarios: no link exceeds its capacity, Little's law holds for queues, and
//! every loss is counted.

use std::sync::Arc;

use ackclock_core::Span;
use ackclock_core::results::LinkResult;
use ackclock_edge::REGULATORS;
use ackclock_radio::scheduler::SCHEDULERS;
use ackclock_scenario::{Files, Outcome, RunOptions, Scenario, run};
use ackclock_testkit::cases;
use proptest::prelude::*;
use proptest::sample::select;

/// Two recordings: bursts and gaps of opportunities, and rates with an outage.
struct Recordings;

impl Files for Recordings {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, String> {
        let text = match path {
            "bursts" => (0..60u32).map(|n| format!("{}\n", 11 * n + n * n / 3)).collect(),
            _ => "time_s,rate_kbps,delay_ms\n0,800,20\n0.7,0,5\n1,2000,1\n1.31,150,40\n2.2,,\n".to_owned(),
        };
        Ok(text.into_bytes().into())
    }
}

fn outcome(text: &str, options: RunOptions) -> Outcome {
    let scenario = Scenario::load("random.toml", text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    run(&scenario, 0, &Recordings, options).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Rate laws around `kbps`, one per distribution.
fn rate_law(kbps: std::ops::Range<u32>) -> impl Strategy<Value = String> {
    (kbps, 0usize..9).prop_map(|(mean, kind)| match kind {
        0 => format!("{mean}kbit/s"),
        1 => format!("u({mean}kbit/s, {}kbit/s)", mean / 2),
        2 => format!("e({mean}kbit/s)"),
        3 => format!("n({mean}kbit/s, {}kbit/s)", mean / 3),
        4 => format!("ln({mean}kbit/s, {}kbit/s)", mean * 2),
        5 => format!("p({mean}kbit/s)"),
        6 => format!("pareto({mean}kbit/s, 1.5)"),
        7 => format!("table({}kbit/s: 1, {mean}kbit/s: 3)", mean / 9 + 1),
        _ => format!("{}kbit/s + pareto({mean}kbit/s, 1.2)", mean / 2),
    })
}

fn delay_law() -> impl Strategy<Value = String> {
    (1u32..120).prop_flat_map(|ms| {
        select(vec![format!("{ms}ms"), format!("e({ms}ms)"), format!("{ms}ms + pareto({ms}ms, 2.5)")])
    })
}

fn redraw() -> impl Strategy<Value = &'static str> {
    select(vec!["packet", "packet", "slot", "slot(3ms)", "interval(70ms)", "interval(1s)"])
}

fn outages() -> impl Strategy<Value = &'static str> {
    select(vec![
        "",
        ", outages = [{ at = \"2s\", for = \"1500ms\" }]",
        ", outages = [{ at = \"0s\", for = \"300ms\", every = \"1s\" }, { at = \"3s\", for = \"900ms\" }]",
    ])
}

fn losses() -> impl Strategy<Value = &'static str> {
    select(vec![
        "",
        "",
        ", loss = \"2%\"",
        ", loss = { kind = \"rayleigh\", fer = \"5%\", interval = \"20ms\" }",
        ", loss = { kind = \"gilbert-elliott\", p = 0.02, r = 0.2, bad = 0.5 }",
    ])
}

/// The table of a link other than a cell.
fn plain_link(kbps: std::ops::Range<u32>) -> impl Strategy<Value = String> {
    let constant = (kbps.clone(), delay_law().prop_map(|_| 20)).prop_map(|(rate, delay)| {
        format!("{{ kind = \"constant\", rate = \"{rate}kbit/s\", delay = \"{delay}ms\" }}")
    });
    let variable = (rate_law(kbps), delay_law(), redraw(), outages(), losses()).prop_map(|(rate, delay, redraw, outages, loss)| {
        format!("{{ kind = \"variable\", rate = \"{rate}\", delay = \"{delay}\", redraw = \"{redraw}\"{outages}{loss} }}")
    });
    let recording =
        (select(vec!["bursts", "rates"]), select(vec!["mahimahi", "ip"])).prop_map(|(file, accounting)| {
            format!(
                "{{ kind = \"trace\", file = \"{file}\", accounting = \"{accounting}\", delay = \"15ms\" }}"
            )
        });
    prop_oneof![1 => constant, 5 => variable, 2 => recording]
}

/// The table of a radio link with retransmission of blocks, which does not support steps.
fn rlc(kbps: std::ops::Range<u32>) -> impl Strategy<Value = String> {
    let bler = select(vec!["0", "0.1", "{ kind = \"rayleigh\", fer = \"5%\" }"]);
    (kbps, select(vec![1, 4, 24]), bler).prop_map(|(rate, pdus, bler)| {
        format!("{{ kind = \"umts-rlc\", rate = \"{rate}kbit/s\", pdus = {pdus}, bler = {bler} }}")
    })
}

/// A cell with its users, as lines of `[edge]`.
fn cell() -> impl Strategy<Value = String> {
    let fading = select(vec!["rayleigh", "rayleigh", "jakes", "table", "none"]);
    let user = (1u32..3, -3i32..9, 0u32..70, fading).prop_map(|(count, snr, doppler, fading)| {
        format!("{{ count = {count}, mean_snr = {snr}, doppler = {doppler}, fading = \"{fading}\" }}")
    });
    let schedulers: Vec<_> = SCHEDULERS.entries.iter().map(|entry| entry.name).collect();
    let kind = (select(schedulers), select(vec!["bits", "packets"]), select(vec!["next", "waste"]), 0u32..4);
    let harq =
        select(vec!["", "", ", harq = { error = \"20%\" }", ", harq = { error = \"rayleigh\", limit = 1 }"]);
    (kind, harq, prop::collection::vec(user, 2..4), plain_link(30..300)).prop_map(
        |((scheduler, transport, remainder, delay), harq, users, up)| {
            format!(
                "down = {{ kind = \"cell\", scheduler = \"{scheduler}\", transport = \"{transport}\", \
                 remainder = \"{remainder}\", drc_delay = {delay}{harq} }}\nuser = [{}]\nup = {up}",
                users.join(", ")
            )
        },
    )
}

/// Links other than cells, with optional changes during the run.
fn plain() -> impl Strategy<Value = String> {
    let steps = prop_oneof![
        2 => Just(String::new()),
        1 => (rate_law(100..2000), plain_link(30..300)).prop_map(|(rate, up)| {
            let first = format!("\"down\" = {{ kind = \"variable\", rate = \"{rate}\" }}");
            format!(
                "at = [{{ time = \"2s\", set = {{ {first} }} }}, {{ time = \"4s\", set = {{ \"up\" = {up} }} }}, \
                 {{ time = \"5s\", set = {{ \"down.rate\" = \"0kbit/s\" }} }}, \
                 {{ time = \"6s\", set = {{ \"down.rate\" = \"700kbit/s\" }} }}]"
            )
        }),
    ];
    let exchanged = (plain_link(100..2000), plain_link(30..300), steps)
        .prop_map(|(down, up, steps)| format!("down = {down}\nup = {up}\n{steps}"));
    let repeating = (rlc(100..2000), prop_oneof![plain_link(30..300), rlc(30..300)])
        .prop_map(|(down, up)| format!("down = {down}\nup = {up}\n"));
    prop_oneof![3 => exchanged, 1 => repeating]
}

/// The `[edge]` table without the queue.
fn edge() -> impl Strategy<Value = String> {
    let regulators: Vec<_> = REGULATORS.entries.iter().map(|entry| entry.name).collect();
    let rest = (
        select(regulators),
        select(vec!["shared", "dedicated"]),
        select(vec!["waiting", "with-transmission"]),
        prop_oneof![(3u32..30).prop_map(|n| format!("{n}p")), Just("80ms".to_owned())],
    );
    let links = prop_oneof![3 => plain(), 1 => cell()];
    (rest, links).prop_map(|((regulator, channel, counts, buffer), links)| {
        format!(
            "[edge]\nbuffer = \"{buffer}\"\nbuffer_counts = \"{counts}\"\nregulator = \"{regulator}\"\n\
             channel = \"{channel}\"\n{links}\n"
        )
    })
}

fn queue() -> impl Strategy<Value = &'static str> {
    select(vec!["drop-tail", "drop-tail", "drop-head", "codel", "pie", "fq-codel", "short-first"])
}

/// Largest windows of flows, packets.
const WINDOW: u64 = 20;

/// Several flows of these workloads, with windows of at most [`WINDOW`] packets.
fn flows(workload: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let senders = select(vec!["reno", "newreno", "sack", "cubic", "bbr"]);
    let flow = (senders, workload, 0u32..2, select(vec![300, 1000, 1500, 4000]), 0u32..2500).prop_map(
        |(sender, workload, user, packet, start)| {
            format!(
                "[[flow]]\nsender = \"{sender}\"\nworkload = {workload}\nuser = {user}\n\
                 packet = \"{packet}B\"\nstart = \"{start}ms\"\nmax_window = \"{WINDOW}p\"\n"
            )
        },
    );
    prop::collection::vec(flow, 1..5).prop_map(|flows| flows.concat())
}

/// Both links of a run, by name.
fn links(outcome: &Outcome) -> [(&'static str, &LinkResult); 2] {
    [("down", &outcome.result.bottleneck), ("up", &outcome.result.uplink)]
}

/// The first packet of a medium with a rate per packet is sent just before the medium is replaced.
#[test]
fn a_link_of_unknown_capacity_counts_none_before_the_first_flow() {
    for start in [0, 500, 1500, 1900, 1990, 1999, 2000, 2100] {
        let text = format!(
            "preset = \"cr02\"\nduration = \"8s\"\nseed = 1\n[edge]\nbuffer = \"3p\"\nqueue = \"drop-head\"\n\
             down = {{ kind = \"variable\", rate = \"u(100kbit/s, 50kbit/s)\", delay = \"1ms\" }}\n\
             up = {{ rate = \"100kbit/s\", delay = \"15ms\" }}\n\
             at = [{{ time = \"2s\", set = {{ \"down.rate\" = \"u(206kbit/s, 103kbit/s)\" }} }}]\n\
             [[flow]]\nsender = \"newreno\"\npacket = \"4000B\"\nstart = \"{start}ms\"\nmax_window = \"20p\"\n"
        );
        let link = outcome(&text, RunOptions::default()).result.bottleneck;
        let (capacity, used) = (link.capacity_bps.unwrap(), link.utilisation.unwrap());
        assert!(used <= 1.0 + 2.5e-5, "{start} ms: {used}");
        assert!((30e3..300e3).contains(&capacity), "{start} ms: {capacity}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(120), max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_link_carries_more_than_it_could_and_what_was_sent_is_accounted_for(
        edge in edge(),
        queue in queue(),
        flows in flows(Just("\"bulk\"".to_owned())),
        seed in 1u32..1000,
        captured: bool,
    ) {
        let text = format!("preset = \"cr02\"\nduration = \"8s\"\nseed = {seed}\n{edge}queue = \"{queue}\"\n{flows}");
        let options = RunOptions {
            capture: captured.then(|| -> Box<dyn std::io::Write + Send> { Box::new(std::io::sink()) }),
            ..RunOptions::default()
        };
        let outcome = outcome(&text, options);
        for (name, link) in links(&outcome) {
            match (link.capacity_bps, link.utilisation) {
                // An end of a transmission is rounded to the nanosecond: 0.5 of 20 000 for 40 bytes at 16 Mbit/s.
                (Some(_), Some(used)) => prop_assert!(used <= 1.0 + 2.5e-5, "{} {} of {}", name, used, text),
                (Some(capacity), None) => prop_assert_eq!(capacity, 0.0, "{}", text),
                _ => prop_assert!(outcome.result.engine.packets == 0, "{} carried and could not: {}", name, text),
            }
        }
        let result = &outcome.result;
        let LinkResult { drops, discarded, made, resent, .. } = result.bottleneck;
        let sent = result.flows.iter().map(|flow| flow.segments_sent).sum::<u64>() + made + resent;
        let gone = result.engine.packets + drops + discarded;
        // A sender that goes back after a timeout, and a regulator, may retransmit packets still in transit.
        let repeated = result.flows.iter().map(|flow| flow.retransmits.unwrap()).sum::<u64>() + resent;
        let most = WINDOW * result.flows.len() as u64 + repeated;
        prop_assert!(gone <= sent && sent - gone <= most, "{} sent, {} gone: {}", sent, gone, text);
    }

    /// Querying the capacity of a link during a run does not change the run.
    #[test]
    fn measuring_what_transfers_get_of_the_link_changes_nothing_else(
        edge in edge(),
        queue in queue(),
        flows in flows(select(vec!["\"bulk\"", "{ kind = \"file\", size = \"60kB\" }", "{ kind = \"web\", page_time = \"e(1s)\" }"]).prop_map(str::to_owned)),
        captured: bool,
    ) {
        let text = |measure: &str| format!("preset = \"cr02\"\nduration = \"8s\"\n{measure}\n{edge}queue = \"{queue}\"\n{flows}");
        let options = || RunOptions {
            series_interval: Some(Span::from_millis(90)),
            capture: captured.then(|| -> Box<dyn std::io::Write + Send> { Box::new(std::io::sink()) }),
            ..RunOptions::default()
        };
        let plain = outcome(&text(""), options());
        let Outcome { mut result, series } = outcome(&text("measure = [\"utilisation\"]"), options());
        prop_assert!(result.flows.iter().all(|flow| flow.link.is_some()));
        result.flows.iter_mut().for_each(|flow| flow.link = None);
        result.transfers.iter_mut().for_each(|class| class.link = None);
        result.provenance = plain.result.provenance.clone();
        // The start of a file is a wake-up.
        result.engine.events = plain.result.engine.events;
        prop_assert_eq!(result, plain.result, "{}", text(""));
        prop_assert_eq!(format!("{series:?}"), format!("{:?}", plain.series), "{}", text(""));
    }

    /// Little's law for a drop-tail queue sampled by a series. All files complete, so every queueing delay is complete.
    #[test]
    fn what_waits_is_what_arrives_times_how_long_it_waits(
        edge in edge().prop_filter("what the radio loses has waited and is not counted", |edge| {
            !edge.contains("loss") && !edge.contains("harq")
        }),
        flows in flows((20u32..120).prop_map(|kb| format!("{{ kind = \"file\", size = \"{kb}kB\" }}"))),
        seed in 1u32..1000,
    ) {
        const STEP: Span = Span::from_nanos(3_777_777);
        let text = format!("preset = \"cr02\"\nduration = \"60s\"\nseed = {seed}\n{edge}{flows}");
        let options = RunOptions { series_interval: Some(STEP), ..RunOptions::default() };
        let Outcome { result, series } = outcome(&text, options);
        let series = series.unwrap();
        let queues: Vec<_> =
            series.columns.iter().filter(|(name, _)| name.ends_with("queue_packets") && !name.contains(".up.")).map(|(_, values)| values).collect();
        let left: f64 = queues.iter().filter_map(|values| values.last()).sum();
        prop_assume!(left == 0.0 && result.flows.iter().all(|flow| flow.completion_s.is_some()));
        let sampled: f64 = queues.into_iter().flatten().sum::<f64>() * STEP.as_secs_f64();
        let (packets, mean) = (result.engine.packets as f64, result.bottleneck.queue_ms.mean.unwrap() / 1e3);
        // A wait is in so many samples as there are steps in it, give or take one: an error of at most half a step each
        // in the root mean square, for packets that come in one burst the same; five of them. Two may be on their way.
        let error = 5.0 * STEP.as_secs_f64() / 2.0 * (packets * WINDOW as f64).sqrt() + 2.0 * mean;
        prop_assert!(
            (sampled - packets * mean).abs() <= error,
            "{} sampled, {} waited, within {}: {}", sampled, packets * mean, error, text
        );
    }
}

/// A medium that has carried nothing yet has no known capacity; that of another one must not be counted in its time.
#[test]
fn a_link_that_becomes_another_before_the_first_flow_carries_no_more_than_it_could() {
    for seed in 1..40 {
        let text = format!(
            "preset = \"cr02\"\nduration = \"8s\"\nseed = {seed}\n[edge]\nbuffer = \"6p\"\n\
             down = {{ kind = \"variable\", rate = \"ln(633kbit/s, 1266kbit/s)\", delay = \"1ms\", redraw = \"slot\" }}\n\
             up = {{ kind = \"constant\", rate = \"1Mbit/s\", delay = \"15ms\" }}\n\
             at = [{{ time = \"2s\", set = {{ down = {{ kind = \"variable\", rate = \"ln(115kbit/s, 230kbit/s)\" }} }} }}]\n\
             [[flow]]\nsender = \"reno\"\nstart = \"2208ms\"\nmax_window = \"20p\"\n"
        );
        let used = outcome(&text, RunOptions::default()).result.bottleneck.utilisation.unwrap();
        assert!(used <= 1.0 + 2.5e-5, "seed {seed}: {used}");
    }
}
