//! Any bytes as a line at the control socket of a link.
#![no_main]

use ackclock_live::hostile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    if let Err(wrong) = hostile::asking(line) {
        panic!("{wrong}");
    }
});
