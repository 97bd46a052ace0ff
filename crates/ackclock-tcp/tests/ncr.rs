//! Scripted exchanges with a DupThresh that adapts to the bytes in flight (RFC 4653). At first eight segments are in
//! flight, so FlightSizePrev is 8.

use ackclock_tcp::Supply;
use serde_json::json;

use crate::script::{NOTHING, Script, at, params};

fn script(extension: &str) -> Script {
    let mut script = Script::new(json!({"kind": "sack", "dup_thresh": extension}), 8);
    assert_eq!(script.sent(at(0)), [0, 1, 2, 3, 4, 5, 6, 7]);
    script
}

/// DupThresh before each is half of 8, 9, 10 ... in flight: 4, 5, 5, 6, 6, 7, and 7 at the seventh.
#[test]
fn the_aggressive_extension_sends_for_each_duplicate_and_finds_the_loss_after_a_window_of_them() {
    let mut script = script("aggressive");
    for duplicate in 1..7 {
        let sent = script.sack(at(100 + u64::from(duplicate)), 0, &[(1, 1 + duplicate)]);
        assert_eq!(sent, [7 + duplicate], "duplicate {duplicate}");
    }
    // pipe is 14 - 7 SACKed, above the new window of 4.
    assert_eq!(script.sack(at(107), 0, &[(1, 8)]), [0]);
    assert_eq!((script.cwnd(), script.ssthresh()), (4, 4), "half of 8, not of the 14 that were outstanding");
}

/// pipe + Skipped is 7, 8, 7, 8 ...: every second duplicate sends. DupThresh is two thirds of 8, 9, 9, 10, 10, 11, 11
/// and 12: 6, 6, 6, 7, 7, 8, 8 and 8 at the eighth.
#[test]
fn the_careful_extension_sends_for_every_second_duplicate() {
    let mut script = script("careful");
    let sent = (1..8).map(|duplicate| script.sack(at(100 + u64::from(duplicate)), 0, &[(1, 1 + duplicate)]));
    assert_eq!(sent.collect::<Vec<_>>(), [vec![8], vec![], vec![9], vec![], vec![10], vec![], vec![11]]);
    // pipe is 12 - 8 SACKed, as large as the new window of 4.
    assert_eq!(script.sack(at(108), 0, &[(1, 9)]), [0]);
    assert_eq!((script.cwnd(), script.ssthresh()), (4, 4));
}

#[test]
fn packets_that_overtook_others_cost_no_halving() {
    let mut script = script("aggressive");
    for duplicate in 1..5 {
        script.sack(at(100 + u64::from(duplicate)), 0, &[(1, 1 + duplicate)]);
    }
    // 12 were sent; 7 are in flight, so min(7 + 1, 8).
    assert_eq!(script.ack(at(105), 5), [12]);
    assert_eq!((script.cwnd(), script.ssthresh()), (8, 8));
    assert_eq!(script.sender.stats().fast_retransmits, 0);
}

#[test]
fn after_a_careful_extension_slow_start_leads_back_without_a_burst() {
    let mut script = script("careful");
    for duplicate in 1..5 {
        script.sack(at(100 + u64::from(duplicate)), 0, &[(1, 1 + duplicate)]);
    }
    // 10 were sent; 5 are in flight, so min(5 + 1, 8).
    assert_eq!(script.ack(at(105), 5), [10]);
    assert_eq!((script.cwnd(), script.ssthresh()), (6, 8));
    assert_eq!(script.ack(at(106), 6), [11, 12]);
}

#[test]
fn an_ack_that_advances_and_sacks_begins_a_new_extension_of_the_same_window() {
    let mut script = script("aggressive");
    assert_eq!(script.sack(at(101), 0, &[(1, 2)]), [8]);
    assert_eq!(script.sack(at(102), 0, &[(3, 4), (1, 2)]), [9]);
    // 0 arrives, 2 does not: pipe is 8 - 1 SACKed, and 8 may be in the network.
    assert_eq!(script.sack(at(103), 2, &[(3, 4)]), [10]);
    assert_eq!((script.cwnd(), script.ssthresh()), (8, 8));
    // DupThresh is half of 9, 10, 11: with 5 beyond the gap (3, 4, 5, 6 and 7) one is still missing.
    for (right, sent) in [(5, 11), (6, 12), (7, 13), (8, 14)] {
        assert_eq!(script.sack(at(104), 2, &[(3, right)]), [sent]);
    }
}

/// A short flow uses DupThresh of RFC 6675: three duplicates, all that can arrive.
#[test]
fn the_threshold_is_never_below_three() {
    for extension in ["careful", "aggressive"] {
        let options = json!({"kind": "sack", "dup_thresh": extension});
        let mut script = Script::with(options, params(4), Supply::Open(4000));
        assert_eq!(script.sent(at(0)), [0, 1, 2, 3]);
        assert_eq!(script.sack(at(100), 0, &[(1, 2)]), NOTHING);
        assert_eq!(script.sack(at(101), 0, &[(1, 3)]), NOTHING);
        assert_eq!(script.sack(at(102), 0, &[(1, 4)]), [0], "{extension}");
    }
}

/// Without reordering, the extension changes nothing.
#[test]
fn without_sack_blocks_the_window_grows_as_ever() {
    for extension in [json!("careful"), json!(3)] {
        let mut script = Script::new(json!({"kind": "sack", "dup_thresh": extension}), 2);
        script.sent(at(0));
        assert_eq!(script.ack(at(100), 1), [2, 3]);
        assert_eq!(script.ack(at(101), 2), [4, 5]);
    }
}
