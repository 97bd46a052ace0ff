//! RLC above a shared cell, from server to terminal: the presets `hsdpa` and `lte`.

use ackclock_core::Span;
use ackclock_scenario::{DiskFiles, RunOptions, RunResult, Scenario, Series, run};

/// The result of the preset with these settings.
fn of(sets: &[&str]) -> RunResult {
    of_preset("hsdpa", sets)
}

fn of_preset(preset: &str, sets: &[&str]) -> RunResult {
    let text = &format!("preset = \"{preset}\"\nduration = \"40s\"\n");
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load("case.toml", text, &sets).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, 0, &DiskFiles::in_folder("."), RunOptions::default()).unwrap().result
}

#[test]
fn the_preset_hsdpa_loses_nothing_below_tcp_and_delays_it_by_the_radio() {
    let result = of(&[]);
    assert_eq!((result.bottleneck.drops, result.flows[0].retransmits.unwrap()), (0, 0));
    // The wired path takes 40 ms, the Iub 10 ms, the cell 10 ms and the way up 30 ms.
    let rtt = result.flows[0].rtt_ms.mean.unwrap();
    assert!(rtt > 90.0, "{rtt}");
}

#[test]
fn without_flow_control_in_unacknowledged_mode_a_regulator_has_no_queue_to_act_on() {
    let um = [
        "edge.bearer.rlc.mode=unacknowledged",
        // The usual values, since nothing would obey others.
        "edge.bearer.rlc.poll.timer=200ms",
        "edge.bearer.rlc.status.prohibit=100ms",
        "edge.bearer.iub.flow_control=none",
        "edge.buffer=20p",
        "flow.max_window=128kB",
    ];
    let with = |regulator: &str| of(&[&um[..], &[&format!("edge.regulator={regulator}")]].concat());
    let none = with("none");
    for regulator in ["wrd", "ack-regulator"] {
        let got = with(regulator);
        let goodput = got.flows[0].goodput_bps.unwrap() / none.flows[0].goodput_bps.unwrap();
        let rtt = got.flows[0].rtt_ms.mean.unwrap() / none.flows[0].rtt_ms.mean.unwrap();
        assert!((goodput - 1.0).abs() < 0.01 && (rtt - 1.0).abs() < 0.01, "{regulator}: {goodput} {rtt}");
    }
}

#[test]
fn a_window_regulator_keeps_new_data_from_being_dropped_at_the_controller() {
    for users in ["1", "4"] {
        let users = [format!("edge.user=[{{ count = {users} }}]"), format!("flow.count={users}")];
        let of = |regulator: &str| {
            of(&[
                &users[0],
                &users[1],
                "edge.buffer=20p",
                "flow.max_window=512kB",
                &format!("edge.regulator={regulator}"),
            ])
        };
        let none = of("none");
        assert!(none.bottleneck.drops > 10, "{}", none.bottleneck.drops);
        for regulator in ["wrs", "wrd"] {
            assert_eq!(of(regulator).bottleneck.drops, 0, "{regulator}, {} users", users[1]);
        }
    }
}

#[test]
fn what_a_cell_of_pdus_does_not_have_is_refused_with_its_key() {
    let refused = |set: &str| {
        let text = "preset = \"hsdpa\"\n";
        Scenario::load("case.toml", text, &[set.to_owned()]).unwrap_err().to_string()
    };
    for (set, key) in [
        ("edge.bearer.air.up={ kind = \"shared\" }", "air.up.kind"),
        ("edge.bearer.air.down={ kind = \"dedicated\" }", "iub"),
        ("edge.bearer.air.down.scheduler=pf-sp", "air.down.scheduler"),
        ("edge.bearer.air.down.scheduler=pf-rp", "air.down.scheduler"),
        (
            "edge.bearer.air.down.scheduler={ kind = \"round-robin\", priority = \"short-flows\" }",
            "air.down.scheduler",
        ),
        ("edge.bearer.air.down.order=sfp", "air.down.order"),
        ("edge.bearer.air.down.overflow=arriving", "air.down.overflow"),
        ("edge.bearer.rlc={ mode = \"unacknowledged\", order = \"out-of-sequence\" }", "rlc.order"),
        ("edge.bearer.rlc.pdu=grant", "rlc.pdu"),
        ("edge.down.rate=1Mbit/s", "edge.down"),
        ("edge.up.rate=1Mbit/s", "edge.up"),
        ("edge.bearer.air.down.buffer_per=user", "air.down.buffer_per"),
        ("edge.bearer.air.down.harq.order=out-of-sequence", "air.down.harq.order"),
        ("edge.bearer.air.down.slots=100000", "air.down.rates"),
        ("edge.bearer.iub.base_station_buffer=10ms", "iub.base_station_buffer"),
        ("edge.bearer.iub.flow_control={ kind = \"credit\", high = \"3ms\" }", "high"),
        ("edge.user=[{ count = 0 }]", "user.0.count"),
    ] {
        let message = refused(set);
        assert!(message.contains(key), "{set}: {message}");
    }
}

#[test]
fn users_of_a_preset_have_its_snr_and_its_fading() {
    let of = |text: &str, set: &str| {
        let scenario = Scenario::load("case.toml", text, &[set.to_owned()]).unwrap();
        let user = scenario.tables().edge.user[0].clone();
        (user.count, user.mean_snr, user.doppler)
    };
    for (preset, snr) in [("hsdpa", 3.0), ("lte", 12.0), ("hsdpa-mac", 3.0)] {
        let text = format!("preset = \"{preset}\"\n");
        let four = format!("{text}[[edge.user]]\ncount = 4\n");
        assert_eq!(of(&text, "seed=1"), (1, snr, 5.6), "{preset}");
        assert_eq!(of(&four, "seed=1"), (4, snr, 5.6), "{preset}");
        assert_eq!(of(&text, "edge.user=[{ count = 2, doppler = 30.0 }]"), (2, snr, 30.0), "{preset}");
    }
}

#[test]
fn a_window_that_limits_the_radio_and_rates_without_room_for_a_pdu_are_told() {
    let of = |preset: &str, sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let text = format!("preset = \"{preset}\"\n");
        Scenario::load("case.toml", &text, &sets).unwrap().said_of_links().unwrap()
    };
    // The block of 68.5 kbit/s has 137 bits, a PDU 336. At 3 dB, exp(-10^-1.86) - exp(-10^-1.45) of the slots have it.
    let rates = "case.toml: edge.bearer.air.down.rates: blocks of 1 of the 9 rates have no room for a PDU; their slots, \
                 2.12 % of all, send nothing";
    assert_eq!(of("hsdpa", &[]), [rates]);
    // 200 PDUs of 320 bits in 2 + 10 + 10 + 30 ms.
    let window = "case.toml: edge.bearer.rlc.window: 200 PDUs in a round trip of 52.0 ms are at most 1.23 Mbit/s, but the \
                  radio has 3.36 Mbit/s";
    assert_eq!(of("hsdpa", &["edge.bearer.rlc.window=200"]), [rates, window]);
    assert_eq!(of("lte", &[]), Vec::<String>::new());
    assert_eq!(of("lte", &["edge.bearer.rlc.window=8"]).len(), 1);
}

#[test]
fn one_lte_user_at_the_best_rate_gets_it_less_the_headers() {
    let result = of_preset(
        "lte",
        &[
            "edge.user=[{ mean_snr = 25.0, fading = \"none\" }]",
            "edge.bearer.air.down.harq.error=0",
            "edge.bearer.air.up.harq.error=0",
            "flow.max_window=4MB",
            "edge.buffer=2000p",
        ],
    );
    // 4582 octets a ms, of which 2 are the header, and 1.5 each a further packet: three packets of 1500 bytes and a part.
    let [block, headers] = [4582.0, 2.0 + 1.5 * 4582.0 / 1500.0];
    let expected = block * 8.0 * 1000.0 * (1.0 - headers / block) * 1460.0 / 1500.0;
    let goodput = result.flows[0].goodput_bps.unwrap();
    assert!((goodput / expected - 1.0).abs() < 0.02, "{goodput} and {expected}");
    let used = result.bottleneck.utilisation.unwrap();
    assert!((0.97..=1.001).contains(&used), "{used}");
}

#[test]
fn a_round_trip_over_an_idle_lte_cell_takes_that_of_a_real_one() {
    // Each packet is sent alone: the next one waits for the ACK.
    let result = of_preset("lte", &["flow.max_window=1500B", "flow.acks=\"every\""]);
    let [wired, rtt] = [10.0, result.flows[0].rtt_ms.mean.unwrap()];
    // srsRAN 4G 23.04, with a scheduling request each 20 ms: 17.5 to 38 ms.
    assert!(((rtt - wired) / 27.75 - 1.0).abs() < 0.2, "{rtt}");
    assert_eq!(result.bottleneck.drops, 0);
}

#[test]
fn users_have_results_of_the_radio_network_where_they_are_measured() {
    let few = ["edge.user=[{ count = 2 }]", "flow.count=2", "duration=5s"];
    let without = of(&few);
    let with = of(&[&few[..], &["measure=[\"radio\"]"]].concat());
    assert!(without.users.iter().all(|user| user.radio.is_none()));
    let users: Vec<_> = with.users.iter().map(|user| user.radio.as_ref().unwrap()).collect();
    let [down, up] = [&with.bottleneck, &with.uplink].map(|link| link.radio.as_ref().unwrap());
    let pdus =
        users.iter().fold([0, 0], |[down, up], user| [down + user.down.rlc.pdus, up + user.up.rlc.pdus]);
    assert_eq!((users.len(), pdus), (2, [down.rlc.pdus, up.rlc.pdus]));
    // Only the rows of the users differ.
    assert_eq!(with.bottleneck, without.bottleneck);
    // `queue_ms` lasts until the first octet is on the air, so it contains both queues.
    let [both, controller] =
        [&with.bottleneck.queue_ms, &down.controller_queue_ms].map(|one| one.mean.unwrap());
    assert!(both > controller + 10.0, "{both} {controller}: the Iub alone takes 10 ms");
}

#[test]
fn the_radio_network_is_measured_only_where_there_is_one() {
    let text = "measure = [\"radio\"]\npreset = \"linux\"\n";
    let error = Scenario::load("case.toml", text, &[]).err().unwrap().to_string();
    assert!(
        error.contains("measure") && error.contains("radio-access") && error.contains("links"),
        "{error}"
    );
}

/// The time series of a scenario, with a sample each 100 ms.
fn series(text: &str) -> Series {
    let scenario = Scenario::load("case.toml", text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let options = RunOptions { series_interval: Some(Span::from_millis(100)), ..RunOptions::default() };
    run(&scenario, 0, &DiskFiles::in_folder("."), options).unwrap().series.unwrap()
}

#[test]
fn the_gauges_of_the_iub_are_in_the_time_series() {
    let of = |control: &str| {
        let bearer = format!("[edge.bearer.iub.flow_control]\n{control}\n[[edge.user]]\ncount = 2\n");
        let series = series(&format!("preset = \"hsdpa\"\nduration = \"5s\"\n{bearer}[[flow]]\ncount = 2\n"));
        ["base_station_pdus", "credits", "base_station_target_ms"]
            .map(|name| series.column(&format!("edge.down.{name}")).unwrap().to_vec())
    };
    let [pdus, credits, target] = of("kind = \"credit\"\ntarget = \"40ms\"");
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    // The highest rate is 10 000 PDUs a second: 40 ms of it are queued at most, and 70 ms granted.
    assert!((50.0..=800.0).contains(&most(&pdus)), "{pdus:?}");
    assert!((1.0..=800.0).contains(&most(&credits)), "{credits:?}");
    assert!(target.iter().all(|&target| target == 40.0), "{target:?}");
    let [pdus, credits, _] = of("kind = \"none\"");
    assert!(most(&pdus) > 800.0 && credits.iter().all(|credits| credits.is_nan()), "{pdus:?} {credits:?}");
}

#[test]
fn the_rate_allocated_to_all_users_is_in_the_time_series() {
    let text = r#"
        duration = "10s"
        [edge.bearer]
        kind = "radio-access"
        [edge.bearer.air.down]
        kind = "dedicated"
        allocation = { pool = "500kbit/s", steps = ["64kbit/s", "128kbit/s", "384kbit/s"] }
        [[edge.user]]
        [[edge.user]]
        [[flow]]
        user = 0
        [[flow]]
        user = 1
        start = "4s"
    "#;
    let allocated = series(text).column("edge.down.allocated_bps").unwrap().to_vec();
    // One active user has 384 kbit/s and the other one the lowest step; two active users have 128 kbit/s each.
    assert_eq!([allocated[30], allocated[60]], [448_000.0, 256_000.0], "{allocated:?}");
}
