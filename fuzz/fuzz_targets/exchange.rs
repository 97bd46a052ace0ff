//! Any text as a script of an exchange.
#![no_main]

use ackclock_exchange::hostile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(wrong) = hostile::script(text) {
        panic!("{wrong}");
    }
});
