//! Time formats of recordings: numbers with a unit, and calendar timestamps.

use ackclock_core::units::time_unit;

use super::UnknownName;

/// Unit of a column of times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum TimeUnit {
    /// Unit inferred from the values: a calendar timestamp, or s, ms, us or ns since 1970 by magnitude; otherwise
    /// seconds.
    #[default]
    Auto,
    /// Calendar timestamp such as `2021-03-04T12:00:00.5Z` or `2021.03.04_12.00.00`.
    Stamp,
    /// Unit of time, with its length in seconds.
    Seconds(f64),
}

impl TimeUnit {
    /// Parses the name of a time unit: `s`, `ms`, `us`, `ns`, `iso` (a timestamp), `auto`.
    ///
    /// # Errors
    /// Fails if the name is unknown; the error lists the valid names.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        match name {
            "auto" => Ok(Self::Auto),
            "iso" => Ok(Self::Stamp),
            unit => time_unit(unit)
                .map(Self::Seconds)
                .ok_or_else(|| UnknownName::of(["s", "ms", "us", "ns", "iso", "auto"])),
        }
    }

    /// Time in seconds; `None` if the text is not a time in this unit.
    pub(super) fn seconds(self, text: &str) -> Option<f64> {
        match self {
            Self::Stamp => stamp(text),
            Self::Seconds(unit) => Some(text.parse::<f64>().ok()? * unit),
            Self::Auto => match text.parse::<f64>() {
                Ok(number) => Some(number * size_of(number)),
                Err(_) => stamp(text),
            },
        }
        .filter(|seconds| seconds.is_finite())
    }
}

/// Length of the time unit, in seconds, of a number that counts from 1970. Time units differ by factors of 1000, so
/// each number fits only one unit for the years 2001 to 2286.
fn size_of(number: f64) -> f64 {
    match number {
        1e18.. => 1e-9,
        1e15.. => 1e-6,
        1e12.. => 1e-3,
        _ => 1.0,
    }
}

/// Converts year, month, day, hour, minute and second to seconds since 1970. Any separators between the numbers are
/// accepted. An offset from UTC behind the second is subtracted; without one, the clock is taken for UTC.
fn stamp(text: &str) -> Option<f64> {
    let mut rest = text.trim_matches('"');
    let mut parts = [0_u32; 5];
    for part in &mut parts {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        *part = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start_matches(|c: char| !c.is_ascii_digit());
    }
    let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let second: f64 = rest[..digits].trim_end_matches('.').parse().ok()?;
    let offset = offset(rest[digits..].trim_start())?;
    let [year, month, day, hour, minute] = parts;
    let valid = (1970..=2286).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61.0;
    valid.then(|| {
        f64::from(days(year, month, day)) * 86_400.0 + f64::from(hour * 3600 + minute * 60) + second - offset
    })
}

/// Seconds by which a clock is ahead of UTC: `+02:00`, `+0200`, `-07`, `Z`, or nothing.
fn offset(zone: &str) -> Option<f64> {
    let (sign, digits) = match zone.split_at_checked(1) {
        None => return Some(0.0),
        Some(("+", digits)) => (1.0, digits),
        Some(("-", digits)) => (-1.0, digits),
        Some(_) => return matches!(zone, "Z" | "z" | "UTC" | "GMT").then_some(0.0),
    };
    let digits = digits.replace(':', "");
    let number = |part: Option<&str>| part?.parse::<u8>().ok();
    let (hours, minutes) = match digits.len() {
        2 => (number(Some(&digits))?, 0),
        4 => (number(digits.get(..2))?, number(digits.get(2..))?),
        _ => return None,
    };
    (hours < 24 && minutes < 60).then(|| sign * (f64::from(hours) * 3600.0 + f64::from(minutes) * 60.0))
}

/// Days from 1970 to a date of the Gregorian calendar. The calculation starts years in March, so that the leap day
/// comes last.
fn days(year: u32, month: u32, day: u32) -> u32 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_years = year * 365 + year / 4 - year / 100 + year / 400;
    // The constant 719 468 is the number of days between March of year 0 and 1970.
    of_years + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_known_by_its_size_or_its_shape() {
        // The expected seconds come from `date -d ... +%s`.
        for (text, seconds) in [
            ("12.5", 12.5),
            ("1700000000.25", 1_700_000_000.25),
            ("1700000000250", 1_700_000_000.25),
            ("1700000000250000", 1_700_000_000.25),
            ("1700000000250000000", 1_700_000_000.25),
            ("2023-11-14T22:13:20Z", 1_700_000_000.0),
            ("2023-11-14 22:13:20.25", 1_700_000_000.25),
            ("2023-11-15T00:13:20+02:00", 1_700_000_000.0),
            ("2023-11-14 14:43:20.5 -0730", 1_700_000_000.5),
            ("2023-11-14T15:13:20-07", 1_700_000_000.0),
            ("2023.11.14_22.13.20", 1_700_000_000.0),
            ("2024-02-29-00:00:00", 1_709_164_800.0),
            ("2024-03-01-00:00:00", 1_709_251_200.0),
        ] {
            assert_eq!(TimeUnit::Auto.seconds(text), Some(seconds), "{text}");
        }
        for text in [
            "",
            "noon",
            "2023-13-14T22:13:20",
            "2023-11",
            "NaN",
            "inf",
            "2023-11-14T22:13:20+2",
            "2023-11-14T22:13:20 CET",
        ] {
            assert_eq!(TimeUnit::Auto.seconds(text), None, "{text}");
        }
        assert_eq!(TimeUnit::Seconds(1e-3).seconds("1500"), Some(1.5));
    }
}
