//! # Periodic FTP
//!
//! ## Source
//! CR04 Table I: sessions 200 s apart (medium load) or 80 s (heavy), of 1000 packets (1 MB).
//!
//! ## What it does
//! Downloads a file of constant size again and again, each over a connection of its own. The first begins at the flow's
//! start.
//!
//! ## Differences from the source
//! The source does not say from when the time between sessions counts; from start to start unless the scenario says
//! otherwise, so sessions overlap on a link that is too slow for them.
//!
//! ## Validation
//! Instants and sizes by hand (unit tests).

use ackclock_core::{Config, ConfigError, Law, Size, Span, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Client, Course, Place, Request, Since, Then, Workload, check_time, size_in_bytes};

/// A file downloaded again and again.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ftp {
    /// Time between sessions: a law.
    pub interval: Law<Span>,
    /// Whether it counts from the start or from the end of a session.
    pub interval_from: Since,
    /// The file, in bytes or in full packets of payload.
    pub size: Size,
}

impl Default for Ftp {
    fn default() -> Self {
        Self {
            interval: Span::from_secs(200).into(),
            interval_from: Since::Start,
            size: Size::Bytes(1_000_000),
        }
    }
}

impl Config for Ftp {
    fn check(&self) -> Result<(), ConfigError> {
        check_time("interval", &self.interval)?;
        match size_in_bytes(self.size, 1) {
            Some(1..) => Ok(()),
            _ => {
                let message = format!(
                    "{} is not the size of a file; it is written like \"1MB\" or \"1000p\"",
                    self.size
                );
                Err(ConfigError::new("size", message))
            }
        }
    }
}

impl Workload for Ftp {
    fn course(&self, place: &Place) -> Course {
        Course::Client(Box::new(Downloads {
            interval: self.interval.clone(),
            since: self.interval_from,
            // `check` lets only packets and bytes pass.
            bytes: size_in_bytes(self.size, place.payload).unwrap_or(0),
            stream: place.streams.stream("interval"),
            next: place.start,
            session: 0,
        }))
    }
}

/// A client of [`Ftp`].
struct Downloads {
    interval: Law<Span>,
    since: Since,
    bytes: u64,
    stream: Stream,
    next: Time,
    session: u64,
}

impl Client for Downloads {
    fn due(&self) -> Time {
        self.next
    }

    fn request(&mut self) -> Request {
        let request = Request { connection: self.session, bytes: self.bytes, then: Then::Close };
        self.session += 1;
        self.next = match self.since {
            Since::Start => self.next + self.interval.draw(&mut self.stream),
            Since::End => Time::NEVER,
        };
        request
    }

    fn on_answered(&mut self, now: Time, _: u64) {
        if self.since == Since::End {
            self.next = now + self.interval.draw(&mut self.stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::Streams;

    fn client(ftp: &Ftp) -> Box<dyn Client> {
        let place =
            Place { streams: Streams::new(1, 0), start: Time::ZERO + Span::from_secs(3), payload: 960 };
        match ftp.course(&place) {
            Course::Client(client) => client,
            Course::Connection(_) => unreachable!("a client was asked for"),
        }
    }

    #[test]
    fn sessions_begin_at_equal_intervals_whatever_becomes_of_them() {
        let mut client = client(&Ftp::default());
        for session in 0..3 {
            assert_eq!(client.due(), Time::ZERO + Span::from_secs(3 + 200 * session));
            let expected = Request { connection: session, bytes: 1_000_000, then: Then::Close };
            assert_eq!(client.request(), expected);
        }
    }

    #[test]
    fn from_the_end_the_next_session_waits_for_the_one_before() {
        let ftp = Ftp { interval_from: Since::End, size: Size::Packets(1000), ..Ftp::default() };
        let mut client = client(&ftp);
        assert_eq!(client.request().bytes, 960_000);
        assert_eq!(client.due(), Time::NEVER);
        client.on_answered(Time::ZERO + Span::from_secs(50), 0);
        assert_eq!(client.due(), Time::ZERO + Span::from_secs(250));
    }
}
