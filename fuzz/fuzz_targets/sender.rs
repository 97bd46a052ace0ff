//! See `ackclock_fuzz::sender`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ackclock_fuzz::sender(data));
