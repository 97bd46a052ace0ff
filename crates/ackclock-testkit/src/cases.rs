//! Number of random cases with which a property test runs.

/// Environment variable that multiplies the usual number of cases; the default factor is 1. `make properties` sets the
/// environment variable `ACKCLOCK_CASES_TIMES`. `make properties` also sets `PROPTEST_CASES`, for property tests that
/// leave the number to proptest.
const TIMES: &str = "ACKCLOCK_CASES_TIMES";

/// Number of cases to run: `usual` times the factor in the environment.
#[must_use]
pub fn cases(usual: u32) -> u32 {
    let times = std::env::var(TIMES).ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    usual.saturating_mul(times)
}
