//! Any bytes as a packet whose segment is changed.
#![no_main]

use ackclock_live::hostile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: ([u8; 8], &[u8])| {
    if let Err(wrong) = hostile::rewriting(input.0, input.1) {
        panic!("{wrong}");
    }
});
