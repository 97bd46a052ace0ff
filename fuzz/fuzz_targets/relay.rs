//! Any behaviour of clients of the relay for name servers.
#![no_main]

use ackclock_live::hostile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|script: &[u8]| {
    if let Err(wrong) = hostile::relaying(script) {
        panic!("{wrong}");
    }
});
