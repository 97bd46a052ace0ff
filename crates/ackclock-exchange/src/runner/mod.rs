//! Runs a script from event to event, and compares sent segments with the expected packets.
//!
//! As in packetdrill, segments must be sent in the order of the script. Segments sent after the last expected packet
//! are ignored.

mod expect;

use std::collections::VecDeque;

use ackclock_core::{Segment, Span, Time};
use ackclock_tcp::sender::SenderState;

use self::expect::Expected;
use crate::connection::Connection;
use crate::report::{Burst, Direction, Failure, Outcome, Seen, millis, seconds};
use crate::script::{Action, Call, Event, Opening, Packet, Script, When};

/// Options for running a script.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RunOptions {
    /// Tolerance for the times of segments; by default the tolerance that the script sets, or 10 ms.
    pub tolerance: Option<Span>,
}

/// Default tolerance for the times of segments, if the script sets none.
const TOLERANCE: Span = Span::from_millis(10);
/// Maximum number of sent segments, and of expired timers, in one script.
const MOST: usize = 100_000;
/// Longest simulated time to wait for an expected segment without a time (`*`).
const PATIENCE: Span = Span::from_secs(3600);

/// Runs a script and returns its outcome.
pub fn run(script: &Script, options: &RunOptions) -> Outcome {
    let connection = match Connection::new(&script.setup) {
        Ok(connection) => connection,
        // Building the sender cannot fail, because the same sender was built when the script was parsed.
        Err(error) => {
            let failure = Failure { line: 1, expected: "a sender".to_owned(), got: error.to_string() };
            return Outcome { seen: Vec::new(), failure: Some(failure) };
        }
    };
    let mut run = Run {
        connection,
        opening: script.opening,
        tolerance: options.tolerance.or(script.tolerance).unwrap_or(TOLERANCE),
        now: Time::ZERO,
        waiting: VecDeque::new(),
        passed: Vec::new(),
        sent: 0,
        wakes: 0,
        shift: None,
    };
    let failure = script.events.iter().find_map(|event| run.perform(event).err());
    Outcome { seen: run.seen(), failure }
}

/// State of a running script.
struct Run {
    connection: Connection,
    opening: Opening,
    tolerance: Span,
    now: Time,
    /// Segments that were sent but not compared with the script yet.
    waiting: VecDeque<(Time, Segment)>,
    passed: Vec<Passed>,
    sent: usize,
    wakes: usize,
    /// Offset of the script's timestamps relative to the sender's clock. The first expected timestamp sets the offset.
    shift: Option<u32>,
}

/// A segment that the sender sent or received.
enum Passed {
    In(Time, String),
    Out(Burst),
}

impl Run {
    fn perform(&mut self, event: &Event) -> Result<(), Failure> {
        let fail = |got: String| Failure { line: event.line, expected: event.text.clone(), got };
        if let Action::Out(packet) = &event.action {
            return self.expect(event, packet);
        }
        let at = self.instant(event.when).map_err(fail)?;
        self.advance(at).map_err(fail)?;
        match &event.action {
            Action::In(packet) => {
                let text = event.text.trim_start_matches('<').trim_start();
                self.passed.push(Passed::In(self.now, text.to_owned()));
                let segment = self.inbound(packet);
                self.connection.on_segment(self.now, &segment);
            }
            Action::Call(call) => self.call(*call).map_err(fail)?,
            Action::Assert(assertions) => {
                let info = self.connection.info();
                for assertion in assertions {
                    let text = format!("assert {}", assertion.text);
                    assertion.check(&info).map_err(|got| Failure {
                        line: assertion.line,
                        expected: text,
                        got,
                    })?;
                }
            }
            Action::Out(_) => {}
        }
        self.collect().map_err(fail)
    }

    fn call(&mut self, call: Call) -> Result<(), String> {
        match call {
            Call::Nothing => {}
            Call::Accept => match self.connection.sender().state() {
                SenderState::Established | SenderState::Closed => {}
                _ => return Err("the handshake is not over".to_owned()),
            },
            Call::Connect => self.connection.connect(self.now),
            Call::Write(bytes) => self.connection.write(bytes).map_err(|error| error.to_string())?,
            Call::NoDelay => self.connection.set_nodelay(),
            Call::Close => self.connection.close(),
        }
        Ok(())
    }

    fn inbound(&self, packet: &Packet) -> Segment {
        let shift = self.shift.unwrap_or(0);
        let mut segment = packet.segment(|echo| echo.wrapping_sub(shift));
        // Sets the window scale by hand: without a handshake the sender does not know the peer's window scale.
        if let Opening::Established(scale) = self.opening {
            segment.set_scale(Some(scale));
        }
        segment
    }

    /// Waits until the sender has sent the expected `packet`, in one or several segments.
    fn expect(&mut self, event: &Event, packet: &Packet) -> Result<(), Failure> {
        let fail = |got: String| Failure { line: event.line, expected: event.text.clone(), got };
        let (from, until) = self.span(event.when);
        let mut expected =
            Expected::new(packet, from, until, self.connection.timestamp_tick(), self.tolerance);
        while !expected.is_complete() {
            let Some((at, segment)) = self.next_segment(until).map_err(fail)? else {
                return Err(fail(expected.missing()));
            };
            expected.take(at, &segment, &mut self.shift).map_err(fail)?;
            self.now = self.now.max(at);
        }
        expected.check_flags(self.shift).map_err(fail)
    }

    /// Returns the next segment sent until `until`, if any.
    fn next_segment(&mut self, until: Time) -> Result<Option<(Time, Segment)>, String> {
        while self.waiting.is_empty() {
            let Some(due) = self.connection.poll_timeout().filter(|&due| due <= until) else {
                return Ok(None);
            };
            self.advance(due)?;
        }
        Ok(self.waiting.pop_front())
    }

    /// Time of an event other than a segment sent by the sender.
    fn instant(&self, when: When) -> Result<Time, String> {
        match when {
            When::At(at, _) if Time::ZERO + at + self.tolerance < self.now => {
                Err(format!("it is already {}", seconds(self.now)))
            }
            When::At(at, _) => Ok(self.now.max(Time::ZERO + at)),
            When::After(span, _) => Ok(self.now + span),
            When::Any => Ok(self.now),
        }
    }

    /// Interval in which the sender may send a segment with this time.
    fn span(&self, when: When) -> (Time, Time) {
        let (from, until) = match when {
            When::At(from, until) => (Time::ZERO + from, Time::ZERO + until),
            When::After(from, until) => (self.now + from, self.now + until),
            When::Any => return (Time::ZERO, self.now + PATIENCE),
        };
        (from - self.tolerance, until + self.tolerance)
    }

    /// Advances the simulated time to `to`.
    fn advance(&mut self, to: Time) -> Result<(), String> {
        while let Some(due) = self.connection.poll_timeout().filter(|&due| due <= to) {
            self.now = self.now.max(due);
            self.wakes += 1;
            if self.wakes > MOST {
                return Err(format!("more than {MOST} timers have expired by {}", seconds(self.now)));
            }
            self.connection.on_timeout(self.now);
            self.collect()?;
        }
        self.now = self.now.max(to);
        Ok(())
    }

    /// Collects the segments that the sender sends now.
    fn collect(&mut self) -> Result<(), String> {
        while let Some(sent) = self.connection.poll_segment(self.now) {
            self.sent += 1;
            if self.sent > MOST {
                return Err(format!(
                    "the sender has sent more than {MOST} segments by {}",
                    seconds(self.now)
                ));
            }
            self.waiting.push_back((self.now, sent.segment));
            if let Some(Passed::Out(burst)) = self.passed.last_mut()
                && burst.takes(self.now, &sent.segment)
            {
                continue;
            }
            self.passed.push(Passed::Out(Burst::new(self.now, sent.segment)));
        }
        Ok(())
    }

    /// Returns all segments sent and received, with the timestamps of the script.
    fn seen(&self) -> Vec<Seen> {
        let shift = self.shift.unwrap_or(0);
        let told = |passed: &Passed| match passed {
            Passed::In(at, text) => Seen { at: *at, direction: Direction::In, text: text.clone() },
            Passed::Out(burst) => Seen { at: burst.at, direction: Direction::Out, text: burst.text(shift) },
        };
        self.passed.iter().map(told).collect()
    }
}

/// Formats an interval: `0.200000`, or `0.190000 to 0.210000`.
fn between(from: Time, until: Time) -> String {
    if from == until { seconds(from) } else { format!("{} to {}", seconds(from), seconds(until)) }
}

/// Formats the difference of two timestamps, in ticks of length `tick`.
fn apart(ticks: u32, tick: Span) -> String {
    millis(tick * u64::from(ticks))
}
