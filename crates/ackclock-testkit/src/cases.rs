//! How many random cases a property is tried on.

/// So many times the usual number of cases; unset it is 1. `make properties` sets it, and with it the number of those
/// properties that leave it to proptest (`PROPTEST_CASES`).
const TIMES: &str = "ACKCLOCK_CASES_TIMES";

/// `usual` cases, or as many times more as the environment asks for.
#[must_use]
pub fn cases(usual: u32) -> u32 {
    let times = std::env::var(TIMES).ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    usual.saturating_mul(times)
}
