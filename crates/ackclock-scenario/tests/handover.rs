//! What a hand-over does to TCP.

use ackclock_scenario::{DiskFiles, RunOptions, RunResult, Scenario, run};

/// Names of the radios: UMTS with dedicated channels, HSDPA (a cell behind an Iub with credits), LTE (grants) and 5G NR.
const RADIOS: [&str; 4] = ["umts", "hsdpa", "lte", "nr"];

/// A radio for 16 seconds, with this hand-over at 8 s.
fn over(radio: &str, handover: &str, sets: &[&str]) -> RunResult {
    let radio = match radio {
        "umts" => {
            "duration = \"16s\"\n[path]\nrate = \"100Mbit/s\"\ndelay = \"20ms\"\n[edge]\nbuffer = \"60p\"\n\
             [edge.bearer]\nkind = \"radio-access\"\nair.down = { kind = \"dedicated\", errors = \"1%\" }\n\
             air.up = { kind = \"dedicated\", errors = \"1%\" }\n[[flow]]\nmax_window = \"32kB\"\nacks = \"delayed\"\npacket = \"1500B\"\n"
        }
        "hsdpa" => "preset = \"hsdpa\"\nduration = \"16s\"\n",
        "nr" => {
            "preset = \"nr\"\nduration = \"16s\"\n[edge]\nbuffer = \"400p\"\n[[flow]]\nmax_window = \"256kB\"\n"
        }
        // The hand-over lasts for longer than the age limit.
        _ => {
            "preset = \"lte\"\nduration = \"16s\"\n[edge]\nage_limit = \"none\"\nup_age_limit = \"none\"\n[[flow]]\nmax_window = \"256kB\"\n"
        }
    };
    let text = format!("{radio}[[edge.at]]\ntime = \"8s\"\nhandover = {{ {handover} }}\n");
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load("case.toml", &text, &sets).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, 0, &DiskFiles::in_folder("."), RunOptions::default()).unwrap().result
}

fn lost(result: &RunResult) -> u64 {
    result.bottleneck.radio.as_ref().unwrap().lost_by.handover
}

#[test]
fn a_controller_that_forwards_causes_no_retransmission() {
    for radio in RADIOS {
        for sender in ["reno", "cubic"] {
            let sender = format!("flow.sender={sender}");
            let result = over(radio, "to = \"controller\", for = \"300ms\"", &[&sender]);
            let flow = &result.flows[0];
            // The timeout is above the hand-over and the queue.
            assert!(flow.rto_ms_mean.unwrap() > 300.0 + flow.rtt_ms.mean.unwrap(), "{radio}: {flow:?}");
            assert_eq!(
                (flow.retransmits.unwrap(), flow.timeouts, lost(&result)),
                (0, Some(0), 0),
                "{radio}, {sender}"
            );
        }
    }
}

#[test]
fn a_controller_that_does_not_forward_loses_its_queue_and_sack_recovers_once() {
    let mut acks = 0;
    for radio in RADIOS {
        let handover = "to = \"controller\", for = \"300ms\", forward = false";
        let result = over(radio, handover, &["flow.sender=cubic"]);
        let flow = &result.flows[0];
        assert!(lost(&result) > 10 && lost(&result) == result.bottleneck.drops, "{radio}: {result:?}");
        assert_eq!((flow.fast_retransmits, flow.timeouts), (Some(1), Some(0)), "{radio}");
        // With `nr` PDCP delivers what waits behind a lost packet; the ACK that says so may be lost.
        let unknown = if radio == "nr" { 2 } else { 0 };
        let retransmits = flow.retransmits.unwrap();
        assert!((lost(&result)..=lost(&result) + unknown).contains(&retransmits), "{radio}: {retransmits}");
        acks += result.uplink.radio.unwrap().lost_by.handover;
    }
    assert!(acks > 0, "ACKs in transit in the uplink are lost too");
}

#[test]
fn a_window_regulator_that_moves_drops_nothing_and_one_that_restarts_at_most_the_receivers_window() {
    let sets = ["edge.regulator=wrd", "edge.buffer=20p", "flow.max_window=64kB"];
    // Afterwards nothing regulates the flow, which fills the queue again and again.
    let burst = [&sets[..], &["duration=9s"]].concat();
    for radio in RADIOS {
        let drops = |regulator: &str, sets: &[&str]| {
            let handover = format!("to = \"controller\", for = \"300ms\", regulator = \"{regulator}\"");
            over(radio, &handover, sets).bottleneck.drops
        };
        assert_eq!(drops("moves", &sets), 0, "{radio}");
        let restarts = drops("restarts", &burst);
        assert!((1..=64_000 / 1460).contains(&restarts), "{radio}: {restarts}");
    }
}
