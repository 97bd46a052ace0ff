//! Any packets at any times through a data plane with a regulator.
#![no_main]

use ackclock_edge::EdgeConfig;
use ackclock_live::hostile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| {
    if let Err(wrong) =
        hostile::playing(&EdgeConfig { regulator: "ack-regulator".into(), ..EdgeConfig::default() }, script)
    {
        panic!("{wrong}");
    }
});
