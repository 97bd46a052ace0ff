//! See `ackclock_fuzz::receiver`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ackclock_fuzz::receiver(data));
