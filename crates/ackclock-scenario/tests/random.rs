//! Properties of random scenarios: any bearer, any regulator, data in both directions, with or without a relay.

use ackclock_core::Span;
use ackclock_scenario::{NoFiles, RunOptions, RunResult, Scenario, run};
use ackclock_testkit::cases;
use proptest::prelude::*;

/// The radio of a scenario: the tables `edge.down`, `edge.up` and `edge.bearer`, and the users of a cell.
fn radio() -> impl Strategy<Value = String> {
    let links = (100u32..4000, 64u32..2000, 1u32..200, 0.0..0.05f64).prop_map(|(down, up, delay, loss)| {
        format!(
            "[edge.down]\nkind = \"variable\"\nrate = \"u({down}kbit/s, {}kbit/s)\"\ndelay = \"e({delay}ms)\"\nloss = {loss}\n\
             [edge.up]\nkind = \"constant\"\nrate = \"{up}kbit/s\"\ndelay = \"{delay}ms\"\nloss = {loss}\n",
            down / 4
        )
    });
    let blocks = (0.0..0.3f64, any::<bool>()).prop_map(|(bler, order)| {
        let order = if order { "in-sequence" } else { "out-of-sequence" };
        format!(
            "[edge.down]\nkind = \"umts-rlc\"\nrate = \"384kbit/s\"\nbler = {bler}\norder = \"{order}\"\n\
             [edge.up]\nkind = \"constant\"\nrate = \"128kbit/s\"\ndelay = \"60ms\"\n"
        )
    });
    let rlc = (0.0..0.3f64, 16u32..2047, any::<bool>(), any::<bool>()).prop_map(|(errors, window, acknowledged, by)| {
        let rlc = if acknowledged { format!("window = {window}") } else { "mode = \"unacknowledged\"".to_owned() };
        let by = if by { "pdu" } else { "tti" };
        format!(
            "[edge.bearer]\nkind = \"radio-access\"\nrlc = {{ {rlc} }}\n\
             air.down = {{ kind = \"dedicated\", errors = {errors}, errors_by = \"{by}\" }}\n\
             air.up = {{ kind = \"dedicated\", errors = {errors}, errors_by = \"{by}\", rate = \"128kbit/s\" }}\n"
        )
    });
    let cell = (1u32..4).prop_map(|users| {
        format!(
            "[edge.down]\nkind = \"cell\"\nscheduler = \"pf\"\n[edge.up]\nkind = \"constant\"\nrate = \"500kbit/s\"\n\
             delay = \"20ms\"\n[[edge.user]]\ncount = {users}\n"
        )
    });
    let airs = prop_oneof![
        (0.0..0.3f64).prop_map(|errors| format!("air.down = {{ kind = \"dedicated\", errors = {errors} }}\n")),
        (0.0..0.3f64, 100u32..3000).prop_map(|(errors, pool)| {
            format!(
                "air.down = {{ kind = \"dedicated\", errors = {errors}, allocation = {{ pool = \"{pool}kbit/s\" }} }}\n"
            )
        }),
        (0.0..0.3f64, 0u32..3, 0usize..4).prop_map(|(error, limit, control)| {
            let iub = |control| format!("iub = {{ flow_control = \"{control}\" }}\n");
            let iub = ["credit", "on-off", "none"].get(control).map(iub).unwrap_or_default();
            format!(
                "air.down = {{ kind = \"shared\", delay = \"5ms\", harq = {{ error = {error}, limit = {limit} }} }}\n{iub}"
            )
        })
    ];
    let users = (1u32..4, airs, any::<bool>(), handovers()).prop_map(|(users, air, acknowledged, steps)| {
        let mode = if acknowledged { "acknowledged" } else { "unacknowledged" };
        format!(
            "[edge.bearer]\nkind = \"radio-access\"\nrlc = {{ mode = \"{mode}\" }}\n{air}\
             [[edge.user]]\ncount = {users}\n{steps}"
        )
    });
    prop_oneof![3 => links, 2 => blocks, 3 => rlc, 2 => cell, 3 => users, 4 => changing()]
}

/// Hand-overs of the first user.
fn handovers() -> impl Strategy<Value = String> {
    let to = prop::sample::select(vec![
        "to = \"cell\"",
        "to = \"controller\"",
        "to = \"controller\", regulator = \"restarts\"",
    ]);
    let step = (1u32..3000, 0u32..600, to, any::<bool>());
    prop::collection::vec(step, 0..4).prop_map(|steps| {
        let mut free = 0;
        let step = |(after, lasts, to, forward): (u32, u32, &str, bool)| {
            let time = free + after;
            free = time + lasts;
            let handover = format!("{{ {to}, for = \"{lasts}ms\", forward = {forward} }}");
            format!("[[edge.at]]\ntime = \"{time}ms\"\nhandover = {handover}\n")
        };
        steps.into_iter().map(step).collect()
    })
}

/// A step of `[[edge.at]]` over dedicated channels, or over a cell.
fn step(cell: bool) -> BoxedStrategy<String> {
    let air = prop::sample::select(if cell { vec!["up"] } else { vec!["down", "up"] });
    let dedicated = (
        air,
        prop_oneof![
            (1u32..30).prop_map(|pdus| format!("rate\" = \"{}kbit/s\"", pdus * 32)),
            (0u32..300).prop_map(|delay| format!("delay\" = \"{delay}ms\"")),
            (0.0..0.5f64).prop_map(|errors| format!("errors\" = {errors}")),
        ],
    )
        .prop_map(|(air, key)| format!("set = {{ \"bearer.air.{air}.{key} }}\n"));
    let outage = (1u32..4000, any::<bool>(), 0u32..2, any::<bool>()).prop_map(|(lasts, fade, user, all)| {
        let kind = if fade { "fade" } else { "silent" };
        let user = if all { String::new() } else { format!(", user = {user}") };
        format!("outage = {{ for = \"{lasts}ms\", kind = \"{kind}\"{user} }}\n")
    });
    let of_cell = prop_oneof![
        (0u32..2, -8.0..8.0f64).prop_map(|(user, snr)| format!("user.{user}.mean_snr\" = {snr}")),
        (0u32..2, 0.0..100.0f64).prop_map(|(user, doppler)| format!("user.{user}.doppler\" = {doppler}")),
        (0.0..0.5f64).prop_map(|error| format!("bearer.air.down.harq.error\" = {error}")),
        (0.0..0.2f64).prop_map(|loss| format!("bearer.air.down.loss\" = {loss}")),
        (0u32..200).prop_map(|delay| format!("bearer.air.down.delay\" = \"{delay}ms\"")),
        (0u32..200).prop_map(|delay| format!("bearer.iub.delay\" = \"{delay}ms\"")),
        (50u32..2000).prop_map(|rate| format!("bearer.iub.rate\" = \"{rate}kbit/s\"")),
    ]
    .prop_map(|key| format!("set = {{ \"{key} }}\n"));
    match cell {
        true => prop_oneof![2 => dedicated, 2 => outage, 4 => of_cell].boxed(),
        false => prop_oneof![3 => dedicated, 1 => outage].boxed(),
    }
}

/// The radio access of two groups of users, which changes while the scenario runs.
fn changing() -> impl Strategy<Value = String> {
    any::<bool>().prop_flat_map(|cell| {
        let steps = prop::collection::vec((1u32..2000, any::<bool>(), step(cell)), 1..6);
        (1u32..3, steps, any::<bool>()).prop_map(move |(users, steps, acknowledged)| {
            let mode = if acknowledged { "acknowledged" } else { "unacknowledged" };
            let air = if cell {
                "air.down = { kind = \"shared\", harq = { error = 0.1 } }\niub = {}\n"
            } else {
                ""
            };
            let mut time = 0;
            let step = |(after, ends, step): (u32, bool, String)| {
                // The longest outage and the longest value end before the next step.
                time += after + 4000;
                let ends = if ends && step.starts_with("set") { "for = \"3s\"\n" } else { "" };
                format!("[[edge.at]]\ntime = \"{}ms\"\n{step}{ends}", time - 4000)
            };
            let steps: String = steps.into_iter().map(step).collect();
            format!(
                "[edge.bearer]\nkind = \"radio-access\"\nrlc = {{ mode = \"{mode}\" }}\n{air}\
                 [[edge.user]]\ncount = {users}\n[[edge.user]]\nmean_snr = 6.0\n{steps}"
            )
        })
    })
}

/// A group of flows, and whether its data goes to the server.
fn flow() -> impl Strategy<Value = (bool, String)> {
    let sender =
        prop::sample::select(vec!["reno", "newreno", "sack", "eifel", "westwood-plus", "cubic", "bbr"]);
    let workload = prop::sample::select(vec![
        "\"bulk\"",
        "{ kind = \"file\", size = \"60kB\" }",
        "{ kind = \"ftp\", interval = \"4s\", size = \"20kB\" }",
    ]);
    (any::<bool>(), sender, workload, 1u32..3).prop_map(|(upload, sender, workload, count)| {
        let towards = if upload { "server" } else { "mobile" };
        let text = format!(
            "[[flow]]\ntowards = \"{towards}\"\ncount = {count}\nsender = {{ kind = \"{sender}\", handshake = \"on\" }}\nworkload = {workload}\n"
        );
        (upload, text)
    })
}

/// Age limits of none, one or both of the queues.
pub(crate) fn age_limits() -> impl Strategy<Value = String> {
    let limit = || prop_oneof![2 => Just(None), 1 => (5u32..800).prop_map(Some)];
    let key = |name: &str, limit: Option<u32>| {
        limit.map_or(String::new(), |limit| format!("{name} = \"{limit}ms\"\n"))
    };
    (limit(), limit()).prop_map(move |(down, up)| key("age_limit", down) + &key("up_age_limit", up))
}

/// A complete scenario.
fn scenario() -> impl Strategy<Value = String> {
    let names: Vec<_> = ackclock_edge::REGULATORS.entries.iter().map(|entry| entry.name).collect();
    let regulator = prop::sample::select(names);
    let queue = prop::sample::select(vec!["drop-tail", "codel", "red"]);
    let flows = prop::collection::vec(flow(), 1..4);
    let more = (any::<bool>(), 4u32..40, 0.0..0.02f64, 0u64..1000, age_limits());
    (radio(), regulator, queue, flows, more).prop_map(
        |(radio, regulator, queue, flows, (relay, buffer, loss, seed, limits))| {
            // With uploads only, most regulators are refused.
            let regulator = if flows.iter().all(|(upload, _)| *upload) { "none" } else { regulator };
            let relay = if relay { "[relay]\ncore = { delay = \"5ms\" }\n" } else { "" };
            let flows: String = flows.into_iter().map(|(_, text)| text).collect();
            format!(
                "version = 1\npreset = \"linux\"\nduration = \"12s\"\nseed = {seed}\n[path]\nloss = {loss}\n{relay}[edge]\n\
                 buffer = \"{buffer}p\"\nqueue = \"{queue}\"\n{limits}regulator = \"{regulator}\"\n{radio}{flows}"
            )
        },
    )
}

fn result(text: &str, options: RunOptions) -> RunResult {
    let scenario = Scenario::load("drawn.toml", text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    run(&scenario, 0, &NoFiles, options).unwrap_or_else(|error| panic!("{error}\n{text}")).result
}

/// The direct-call executor, with or without sampling, gives the same run as the engine.
fn runs_alike(text: &str) -> RunResult {
    let plain = result(text, RunOptions::default());
    let sampled = RunOptions { series_interval: Some(Span::from_millis(333)), ..RunOptions::default() };
    assert_eq!(result(text, sampled), plain, "sampling changes it: {text}");
    let captured = RunOptions { capture: Some(Box::new(std::io::sink())), ..RunOptions::default() };
    assert_eq!(result(text, captured), plain, "the engine differs: {text}");
    plain
}

/// A loss on the radio is reported late, after the instant at which it happened.
#[test]
fn a_loss_that_is_told_late_is_no_event_of_its_own_in_direct_calls() {
    runs_alike(
        "version = 1\npreset = \"linux\"\nduration = \"2s\"\nseed = 318\n[path]\nloss = 0.0183278596837596\n[edge]\n\
         buffer = \"21p\"\nqueue = \"codel\"\n[edge.down]\nkind = \"variable\"\nrate = \"u(909kbit/s, 227kbit/s)\"\n\
         delay = \"e(34ms)\"\nloss = 0.04554571804838603\n[edge.up]\nkind = \"constant\"\nrate = \"1377kbit/s\"\ndelay = \"34ms\"\n\
         loss = 0.04554571804838603\n[[flow]]\nsender = { kind = \"cubic\", handshake = \"on\" }\nworkload = { kind = \"file\", size = \"60kB\" }\n",
    );
}

/// A deadline of a regulator falls between two events of the link: it sees the queue as of its own instant.
#[test]
fn a_regulator_sees_the_queue_as_it_is_at_its_own_deadline() {
    runs_alike(
        "version = 1\npreset = \"linux\"\nduration = \"12s\"\nseed = 227\n[path]\nloss = 0.009454918726657206\n[relay]\n\
         core = { delay = \"5ms\" }\n[edge]\nbuffer = \"33p\"\nregulator = \"ack-rate-control\"\n[edge.down]\nkind = \"variable\"\n\
         rate = \"u(178kbit/s, 44kbit/s)\"\ndelay = \"e(26ms)\"\nloss = 0.043926272755919704\n[edge.up]\nkind = \"constant\"\n\
         rate = \"1241kbit/s\"\ndelay = \"26ms\"\nloss = 0.043926272755919704\n[[flow]]\ncount=2\nsender={kind=\"reno\",handshake=\"on\"}\nworkload={kind=\"file\", size=\"60kB\"}\n",
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(24), ..ProptestConfig::default() })]

    /// Direct calls, sampled or not, give the same run as the engine; each long-lived flow has a row, and a file is
    /// never delivered twice.
    #[test]
    fn a_drawn_scenario_keeps_the_laws(text in scenario()) {
        let plain = runs_alike(&text);
        let lasting: usize = text.split("[[flow]]").skip(1).filter(|flow| !flow.contains("\"ftp\"")).map(|flow| {
            if flow.contains("count = 2") { 2 } else { 1 }
        }).sum();
        prop_assert_eq!(plain.flows.len(), lasting, "{}", text);
        for flow in &plain.flows {
            prop_assert!(flow.completion_s.is_none() || flow.delivered_bytes == 60_000, "{}", text);
            prop_assert_eq!(flow.regulator.is_some(), flow.towards.is_mobile(), "{}", text);
        }
        for link in [&plain.bottleneck, &plain.uplink] {
            prop_assert!(link.utilisation.is_none_or(|used| (0.0..=1.001).contains(&used)), "{:?}: {}", link, text);
        }
    }
}
