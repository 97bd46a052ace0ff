//! Any bytes as what a TUN device gave.
#![no_main]

use ackclock_live::hostile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(wrong) = hostile::splitting(bytes) {
        panic!("{wrong}");
    }
});
