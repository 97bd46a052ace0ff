//! Summary of a day: what a box could regulate, how long packets were queued, and how often the window would be lower.

use ackclock_core::{Histogram, Span, Time};

use crate::maps::Counts;

/// Length of a day.
const DAY: Span = Span::from_secs(24 * 3600);

/// Measurements since the day began.
#[derive(Debug)]
pub struct Day {
    since: Time,
    before: Counts,
    /// Estimated queueing delays of the day's packets.
    pub waits: Histogram,
}

impl Day {
    /// Starts a day with the counters `counts`.
    pub fn new(now: Time, counts: Counts) -> Self {
        Self { since: now, before: counts, waits: Histogram::default() }
    }

    /// Returns the summary of the day if the day is over, and starts the next day. `acts` says whether the box lowers
    /// windows.
    pub fn turn(&mut self, now: Time, counts: Counts, acts: bool) -> Option<String> {
        if now.since(self.since) < DAY {
            return None;
        }
        let day = std::mem::replace(self, Self::new(now, counts));
        Some(day.summary(counts, acts))
    }

    fn summary(&self, counts: Counts, acts: bool) -> String {
        let since = |now: u64, before: u64| now.saturating_sub(before);
        let percent = |part: u64, all: u64| match all {
            0 => "-".to_owned(),
            all => format!("{:.0} %", part as f64 / all as f64 * 100.0),
        };
        let bytes = since(counts.in_bytes, self.before.in_bytes);
        let regulated = since(counts.in_flow_bytes, self.before.in_flow_bytes);
        let acks = since(counts.acks, self.before.acks);
        let (lower, clipped) =
            (since(counts.lower, self.before.lower), since(counts.clipped, self.before.clipped));
        let wait = self.waits.quantile(0.95);
        let wait = wait.map_or_else(|| "unknown".to_owned(), |wait| format!("{:.1} s", wait.as_secs_f64()));
        let window = if acts {
            format!("the window was lowered in {} of the ACKs", percent(clipped, acks))
        } else {
            format!("the window would have been lower in {} of the ACKs", percent(lower, acks))
        };
        format!(
            "last 24 h: {} of {bytes} bytes can be regulated; p95 queueing delay {wait}; {window}",
            percent(regulated, bytes)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: u64) -> Time {
        Time::ZERO + Span::from_secs(3600 * hours)
    }

    #[test]
    fn a_summary_is_of_one_day() {
        let first = Counts { in_bytes: 500, in_flow_bytes: 500, acks: 10, lower: 10, ..Counts::default() };
        let mut day = Day::new(at(1), first);
        day.waits.record(Span::from_secs(3));
        let second =
            Counts { in_bytes: 1500, in_flow_bytes: 1210, acks: 110, lower: 74, clipped: 20, ..first };
        assert_eq!(day.turn(at(24), second, false), None);
        let told = day.turn(at(25), second, false).unwrap();
        assert!(told.contains("71 % of 1000 bytes can be regulated"), "{told}");
        assert!(told.contains("delay 3.0 s; the window would have been lower in 64 % of"), "{told}");
        let told = day.turn(at(49), second, true).unwrap();
        assert!(told.contains("- of 0 bytes") && told.contains("delay unknown; the window was"), "{told}");
    }
}
