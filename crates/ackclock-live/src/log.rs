//! # mm-link's log
//!
//! ## Source
//! The log that mahimahi's mm-link writes with `--uplink-log` and `--downlink-log`, and that mm-throughput-graph and
//! mm-delay-graph read.
//!
//! ## What it does
//! A header of comments, then a line an event, times in milliseconds since the link began: `TIME + BYTES` a packet arrived,
//! `TIME # 1504` there was an opportunity to send, `TIME - BYTES DELAY` a packet left after so many milliseconds,
//! `TIME d PACKETS BYTES` packets were dropped. Sizes have the four bytes more that mm-link's TUN header adds.
//!
//! ## Differences from the source
//! Only links that replay a mahimahi recording have opportunities. Times are those of the schedule, where mm-link takes
//! those at which it was woken. Packets that queues drop of themselves are logged when the link tells it, up to the next
//! delivery later.
//!
//! ## Validation
//! A log written by hand (unit test).

use std::io::{self, Write};

use ackclock_core::{Span, Time};
use ackclock_link::trace::Opportunities;

/// What the header of a log says.
#[derive(Clone, Debug)]
pub struct LogHeader<'a> {
    /// `uplink` or `downlink`.
    pub link: &'a str,
    /// The recording that the link replays, as it was named.
    pub recording: &'a str,
    /// The log itself, as it was named.
    pub log: &'a str,
    /// The command line.
    pub command_line: &'a str,
    /// The queue, as mm-link writes it: `infinite`, `droptail [packets=50]`.
    pub queue: &'a str,
    /// When the link began, milliseconds of Unix time.
    pub began_ms: u64,
    /// What the prompt of the shells outside says, from `MAHIMAHI_SHELL_PREFIX`.
    pub shell_prefix: Option<&'a str>,
}

/// The log of one direction.
pub struct LinkLog {
    out: Box<dyn Write + Send>,
    opportunities: Option<Upcoming>,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
}

/// The opportunity that comes next.
struct Upcoming {
    recording: Opportunities,
    index: usize,
    /// When the present round of the recording began.
    round_ms: u64,
}

/// What mm-link counts for each opportunity and for each packet beside its own bytes.
const OPPORTUNITY_BYTES: u32 = 1504;
const TUN_BYTES: u64 = 4;

impl LinkLog {
    /// A log that goes to `out`, which should be buffered; with the opportunities of the recording that is replayed.
    pub fn new(out: Box<dyn Write + Send>, header: &LogHeader<'_>, recording: Option<Opportunities>) -> Self {
        let opportunities = recording.map(|recording| Upcoming { recording, index: 0, round_ms: 0 });
        let mut log = Self { out, opportunities, failed: None };
        log.write(|out| {
            let LogHeader { link, recording, log, command_line, queue, began_ms, .. } = header;
            writeln!(out, "# mahimahi mm-link ({link}) [{recording}] > {log}")?;
            writeln!(out, "# command line: {command_line}")?;
            writeln!(out, "# queue: {queue}")?;
            writeln!(out, "# init timestamp: {began_ms}")?;
            writeln!(out, "# base timestamp: 0")?;
            header.shell_prefix.map_or(Ok(()), |prefix| writeln!(out, "# mahimahi config: {prefix}"))
        });
        log
    }

    /// A packet of `bytes` arrived.
    pub fn arrived(&mut self, now: Time, bytes: u32) {
        self.pass(now);
        self.write(|out| writeln!(out, "{} + {}", millis(now), u64::from(bytes) + TUN_BYTES));
    }

    /// A packet of `bytes` left, `delay` after its arrival.
    pub fn left(&mut self, now: Time, bytes: u32, delay: Span) {
        self.pass(now);
        // The difference of the two times as they stand in the log.
        let delay = millis(now) - millis(now - delay);
        self.write(|out| writeln!(out, "{} - {} {delay}", millis(now), u64::from(bytes) + TUN_BYTES));
    }

    /// A packet of `bytes` was dropped.
    pub fn dropped(&mut self, now: Time, bytes: u32) {
        self.pass(now);
        self.write(|out| writeln!(out, "{} d 1 {}", millis(now), u64::from(bytes) + TUN_BYTES));
    }

    /// Ends the log at `now`.
    ///
    /// # Errors
    /// The first error met in writing any of it.
    pub fn finish(mut self, now: Time) -> io::Result<()> {
        self.pass(now);
        self.write(|out| out.flush());
        self.failed.map_or(Ok(()), Err)
    }

    /// Writes the opportunities that have passed.
    fn pass(&mut self, now: Time) {
        while let Some(at) = self.opportunities.as_mut().and_then(|upcoming| upcoming.take(millis(now))) {
            self.write(|out| writeln!(out, "{at} # {OPPORTUNITY_BYTES}"));
        }
    }

    fn write(&mut self, line: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
        if self.failed.is_none() {
            self.failed = line(&mut self.out).err();
        }
    }
}

impl Upcoming {
    /// The next opportunity, if it is due.
    fn take(&mut self, now_ms: u64) -> Option<u64> {
        let at = self.round_ms + u64::from(self.recording.millis()[self.index]);
        if at > now_ms {
            return None;
        }
        self.index += 1;
        if self.index == self.recording.millis().len() {
            // The last opportunity stands where the recording begins again.
            (self.index, self.round_ms) = (0, at);
        }
        Some(at)
    }
}

const fn millis(time: Time) -> u64 {
    time.as_nanos() / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_testkit::Written;

    const HEADER: LogHeader<'_> = LogHeader {
        link: "uplink",
        recording: "x.up",
        log: "up.log",
        command_line: "link x.up x.down",
        queue: "infinite",
        began_ms: 1234,
        shell_prefix: Some("[link] "),
    };

    #[test]
    fn a_log_reads_as_mm_link_would_have_written_it() {
        let out = Written::default();
        let recording = Opportunities::new(vec![2, 2, 5]).unwrap();
        let mut log = LinkLog::new(Box::new(out.clone()), &HEADER, Some(recording));
        let at = |micros| Time::ZERO + Span::from_micros(micros);
        log.arrived(at(1_900), 1500);
        log.left(at(2_000), 1500, Span::from_micros(100));
        log.dropped(at(4_000), 52);
        log.finish(at(7_500)).unwrap();
        let text = String::from_utf8(out.bytes()).unwrap();
        let expected = "\
# mahimahi mm-link (uplink) [x.up] > up.log
# command line: link x.up x.down
# queue: infinite
# init timestamp: 1234
# base timestamp: 0
# mahimahi config: [link] 
1 + 1504
2 # 1504
2 # 1504
2 - 1504 1
4 d 1 56
5 # 1504
7 # 1504
7 # 1504
";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_first_error_is_told_at_the_end() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::from(io::ErrorKind::StorageFull))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut log = LinkLog::new(Box::new(Full), &HEADER, None);
        log.arrived(Time::ZERO, 40);
        assert_eq!(log.finish(Time::ZERO).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
