//! Any bytes as a packet.
#![no_main]

use ackclock_live::hostile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(wrong) = hostile::parsing(bytes) {
        panic!("{wrong}");
    }
});
