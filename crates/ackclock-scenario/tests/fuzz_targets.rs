//! Runs the fuzz targets on random input, so that they are tested without a fuzzer.

#[allow(unreachable_pub, reason = "public where it is a crate of its own")]
#[path = "../../../fuzz/src/lib.rs"]
mod targets;

use ackclock_testkit::cases;
use proptest::prelude::*;

const SCENARIO: &str = include_str!("../presets/cr02.toml");
const MAHIMAHI: &str = "1\n3\n3\n8\n40\n";
const CSV: &str = "time_s,rate_bps\n0,1000000\n1,0\n2.5,300000\n";

/// A text with a few bytes changed, removed or inserted.
fn damaged(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec((any::<prop::sample::Index>(), 0u8..3, any::<u8>()), 0..6).prop_map(|damages| {
        let mut bytes = text.as_bytes().to_vec();
        for (place, kind, byte) in damages {
            let at = place.index(bytes.len().max(1));
            match kind {
                0 if at < bytes.len() => bytes[at] = byte,
                1 if at < bytes.len() => drop(bytes.remove(at)),
                _ => bytes.insert(at.min(bytes.len()), byte),
            }
        }
        bytes
    })
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(2_000), ..ProptestConfig::default() })]

    #[test]
    fn any_scenario_is_read_or_refused_with_one_line(data in prop_oneof![damaged(SCENARIO), bytes(100)]) {
        targets::scenario(&data);
    }

    #[test]
    fn any_recording_is_read_or_refused(data in prop_oneof![damaged(MAHIMAHI), damaged(CSV), bytes(100)]) {
        targets::trace(&data);
    }

    #[test]
    fn no_peer_breaks_a_sender(data in bytes(1_500)) {
        targets::sender(&data);
    }

    #[test]
    fn no_peer_breaks_a_receiver(data in bytes(1_500)) {
        targets::receiver(&data);
    }
}
