//! # mm-link's log
//!
//! ## Source
//! Log format of mahimahi's mm-link (`--uplink-log` and `--downlink-log`), as read by mm-throughput-graph and
//! mm-delay-graph.
//!
//! ## What it does
//! A log has a header of comments, then one line per event, which starts with the time in ms since the start of the
//! link. The line `TIME + BYTES` is the arrival of a packet, and `TIME # 1504` is a delivery opportunity. The line
//! `TIME - BYTES DELAY` is a departure `DELAY` ms after the arrival, and `TIME d PACKETS BYTES` is a drop of packets.
//! Sizes include the four bytes of mm-link's TUN header.
//!
//! ## Differences from the source
//! Events that exceed the log's queue because the file is too slow are omitted and counted in a final comment. Only
//! links that play a mahimahi recording have opportunities. Logged times are scheduled times, whereas mm-link logs the
//! times at which it was woken. Drops inside queues are logged when the link reports them, at the latest with the next
//! delivery.
//!
//! ## Validation
//! A unit test compares the output with a log written by hand.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use ackclock_core::text::printable_line;
use ackclock_core::{Span, Time};
use ackclock_import::Opportunities;

use crate::background::{self, Ending, Inlet};

/// Header of a link's log.
#[derive(Clone, Debug)]
pub struct LogHeader<'a> {
    /// Name of the direction: `uplink` or `downlink`.
    pub link: &'a str,
    /// Name of the recording that the link plays, as given by the user.
    pub recording: &'a str,
    /// Name of the log file, as given by the user.
    pub log: &'a str,
    /// Command line of the program.
    pub command_line: &'a str,
    /// Description of the queue as in mm-link: `infinite`, `droptail [packets=50]`.
    pub queue: &'a str,
    /// Start time of the link, Unix time in ms.
    pub began_ms: u64,
    /// Prefix of the prompts of outer shells, from `MAHIMAHI_SHELL_PREFIX`.
    pub shell_prefix: Option<&'a str>,
}

/// Log of one direction; a separate thread writes its lines.
pub struct LinkLog(Inlet<Event>);

/// Event for one line of the log, or the end of the log.
#[derive(Clone, Copy, Debug)]
enum Event {
    Arrived { at: Time, bytes: u32 },
    Left { at: Time, bytes: u32, delay: Span },
    Dropped { at: Time, bytes: u32 },
    Ended { at: Time, lost: u64 },
}

/// Maximum number of events queued for writing: 6 MiB.
const MOST: usize = 1 << 18;

/// Writer that formats events as lines of the log.
struct Lines<W> {
    out: W,
    text: String,
    opportunities: Option<Upcoming>,
}

/// Size of the pieces in which text is written, bytes.
const PIECE: usize = 64 << 10;

/// Next opportunity to log.
struct Upcoming {
    recording: Opportunities,
    index: usize,
    /// Start time of the current pass through the recording, ms.
    round_ms: u64,
}

/// Bytes that mm-link counts for an opportunity; each packet counts four bytes more than its size.
const OPPORTUNITY_BYTES: u32 = 1504;
const TUN_BYTES: u64 = 4;

impl LinkLog {
    /// Starts a log that is written to `out`, with the opportunities of the played recording.
    ///
    /// # Errors
    /// Fails if the writer thread cannot be created.
    pub fn begin(
        out: impl Write + Send + 'static,
        header: &LogHeader<'_>,
        recording: Option<Opportunities>,
    ) -> io::Result<(Self, Ending)> {
        let opportunities = recording.map(|recording| Upcoming { recording, index: 0, round_ms: 0 });
        let mut lines = Lines { out, text: header.text(), opportunities };
        let (inlet, ending) = background::begin(MOST, move |events: &[Event]| lines.write(events))?;
        Ok((Self(inlet), ending))
    }

    /// Logs the arrival of a packet of `bytes`.
    pub fn arrived(&mut self, at: Time, bytes: u32) {
        self.0.put(&[Event::Arrived { at, bytes }]);
    }

    /// Logs the departure of a packet of `bytes`, `delay` after its arrival.
    pub fn left(&mut self, at: Time, bytes: u32, delay: Span) {
        self.0.put(&[Event::Left { at, bytes, delay }]);
    }

    /// Logs the drop of a packet of `bytes`.
    pub fn dropped(&mut self, at: Time, bytes: u32) {
        self.0.put(&[Event::Dropped { at, bytes }]);
    }

    /// Ends the log at `now`.
    pub fn finish(mut self, now: Time) {
        let lost = self.0.lost();
        self.0.finish(&[Event::Ended { at: now, lost }]);
    }
}

impl LogHeader<'_> {
    /// Comments at the start of the log, each on a single line even if names contain line breaks.
    fn text(&self) -> String {
        let fit = |text: &'_ str| -> String { Cow::into_owned(printable_line(text)) };
        let mut text = format!(
            "# mahimahi mm-link ({}) [{}] > {}\n# command line: {}\n# queue: {}\n# init timestamp: {}\n# base timestamp: 0\n",
            fit(self.link),
            fit(self.recording),
            fit(self.log),
            fit(self.command_line),
            fit(self.queue),
            self.began_ms
        );
        if let Some(prefix) = self.shell_prefix {
            text += &format!("# mahimahi config: {}\n", fit(prefix));
        }
        text
    }
}

impl<W: Write> Lines<W> {
    fn write(&mut self, events: &[Event]) -> io::Result<()> {
        for event in events {
            self.line(event)?;
        }
        self.pass_on()?;
        self.out.flush()
    }

    fn line(&mut self, event: &Event) -> io::Result<()> {
        let (Event::Arrived { at, .. }
        | Event::Left { at, .. }
        | Event::Dropped { at, .. }
        | Event::Ended { at, .. }) = *event;
        self.opportunities_before(at)?;
        let (text, now) = (&mut self.text, millis(at));
        // Writing to a string cannot fail, so the result is ignored.
        let _ = match *event {
            Event::Arrived { bytes, .. } => writeln!(text, "{now} + {}", on_tun(bytes)),
            Event::Left { bytes, delay, .. } => {
                // The delay is the difference of the two times as logged, in whole ms.
                writeln!(text, "{now} - {} {}", on_tun(bytes), now - millis(at - delay))
            }
            Event::Dropped { bytes, .. } => writeln!(text, "{now} d 1 {}", on_tun(bytes)),
            Event::Ended { lost: 0, .. } => Ok(()),
            Event::Ended { lost, .. } => {
                writeln!(text, "# left out, because this was written too slowly: {lost} events")
            }
        };
        self.pass_on_pieces()
    }

    /// Logs the delivery opportunities before `now`.
    fn opportunities_before(&mut self, now: Time) -> io::Result<()> {
        while let Some(at) = self.opportunities.as_mut().and_then(|upcoming| upcoming.take(millis(now))) {
            let _ = writeln!(self.text, "{at} # {OPPORTUNITY_BYTES}");
            self.pass_on_pieces()?;
        }
        Ok(())
    }

    fn pass_on_pieces(&mut self) -> io::Result<()> {
        if self.text.len() < PIECE { Ok(()) } else { self.pass_on() }
    }

    fn pass_on(&mut self) -> io::Result<()> {
        self.out.write_all(self.text.as_bytes())?;
        self.text.clear();
        Ok(())
    }
}

impl Upcoming {
    /// Time in ms of the next opportunity if it is not after `now_ms`; advances to the following opportunity.
    fn take(&mut self, now_ms: u64) -> Option<u64> {
        let at = self.round_ms + u64::from(self.recording.millis()[self.index]);
        if at > now_ms {
            return None;
        }
        self.index += 1;
        if self.index == self.recording.millis().len() {
            // The recording restarts at its last opportunity.
            (self.index, self.round_ms) = (0, at);
        }
        Some(at)
    }
}

/// Size of a packet as counted by mm-link, bytes.
fn on_tun(bytes: u32) -> u64 {
    u64::from(bytes) + TUN_BYTES
}

const fn millis(time: Time) -> u64 {
    time.as_nanos() / 1_000_000
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::background::Unwritten;
    use ackclock_testkit::Written;

    const LONG: Duration = Duration::from_secs(60);

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
        let (mut log, ending) = LinkLog::begin(out.clone(), &HEADER, Some(recording)).unwrap();
        let at = |micros| Time::ZERO + Span::from_micros(micros);
        log.arrived(at(1_900), 1500);
        log.left(at(2_000), 1500, Span::from_micros(100));
        log.dropped(at(4_000), 52);
        log.finish(at(7_500));
        assert_eq!(ending.wait(LONG).unwrap(), 0);
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
        let (mut log, ending) = LinkLog::begin(Full, &HEADER, None).unwrap();
        log.arrived(Time::ZERO, 40);
        log.finish(Time::ZERO);
        let Err(Unwritten::Failed(error)) = ending.wait(LONG) else { panic!() };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn names_with_line_ends_and_control_characters_stay_in_their_comment() {
        let header = LogHeader {
            command_line: "link a\n1 + 1504",
            log: "\u{1b}[2J\n",
            shell_prefix: Some("x\ny"),
            ..HEADER
        };
        let text = header.text();
        assert!(text.lines().all(|line| line.starts_with("# ")) && !text.contains('\u{1b}'), "{text}");
        assert!(text.contains("# command line: link a\\u000a1 + 1504\n"), "{text}");
    }

    #[test]
    fn what_was_left_out_is_counted_in_the_log() {
        let out = Written::default();
        let mut lines = Lines { out: out.clone(), text: String::new(), opportunities: None };
        lines.write(&[Event::Ended { at: Time::ZERO, lost: 3 }]).unwrap();
        assert_eq!(out.bytes(), b"# left out, because this was written too slowly: 3 events\n");
    }
}
