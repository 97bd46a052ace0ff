//! # Periodic FTP
//!
//! ## Source
//! CR04 Table I: sessions 200 s apart (medium load) or 80 s apart (heavy load), of 1000 packets (1 MB).
//!
//! ## What it does
//! The client downloads a file of constant size repeatedly. Each file has a new connection, or all files share one
//! persistent connection. The first download starts `first` after the flow's start; a random `first`, drawn from the
//! seed, prevents synchronisation of many clients. Over one connection, small files at a steady interval model an
//! application that writes at a constant rate. An interval from the end of a file models the reader's think time.
//!
//! ## Differences from the source
//! CR04 does not say when the first session starts; the default is the flow's start. CR04 also leaves open how the time
//! between sessions is measured. By default the time counts from start to start, so sessions overlap on a slow link.
//! Over one connection, sessions follow one another, because a connection is ordered. A request takes no time: the
//! server starts to send at the instant of the request, after any handshake.
//!
//! ## Validation
//! Unit tests compare with hand-computed times and sizes. For one connection, `make agree` compares with programs that
//! use the kernel's TCP.

use ackclock_core::{Config, ConfigError, Law, Size, Span, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Client, Course, Place, Request, Since, Then, Workload, check_time, size_in_bytes};

/// Repeated download of a file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ftp {
    /// Time from the flow's start to the first session: a distribution, drawn once per client.
    pub first: Law<Span>,
    /// Time between sessions: a distribution.
    pub interval: Law<Span>,
    /// Whether `interval` counts from the start or from the end of a session.
    pub interval_from: Since,
    /// Size of the file, in bytes or in full packets of payload.
    pub size: Size,
    /// Whether each file or each client has its own connection.
    pub connection_per: Owner,
}

/// Scope of a connection: one file or one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// One connection for each file.
    #[default]
    File,
    /// One connection for each client. The files of the client follow one another on the connection, which stays open.
    Client,
}

impl Default for Ftp {
    fn default() -> Self {
        Self {
            first: Span::ZERO.into(),
            interval: Span::from_secs(200).into(),
            interval_from: Since::Start,
            size: Size::Bytes(1_000_000),
            connection_per: Owner::File,
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
            // The check of the options accepts only packets and bytes.
            bytes: size_in_bytes(self.size, place.payload).unwrap_or(0),
            connection_per: self.connection_per,
            stream: place.streams.stream("interval"),
            next: place.start + self.first.draw(&mut place.streams.stream("first")),
            session: 0,
        }))
    }
}

/// Client that makes the downloads of [`Ftp`].
struct Downloads {
    interval: Law<Span>,
    since: Since,
    bytes: u64,
    connection_per: Owner,
    stream: Stream,
    next: Time,
    session: u64,
}

impl Client for Downloads {
    fn due(&self) -> Time {
        self.next
    }

    fn request(&mut self) -> Request {
        let (connection, then) = match self.connection_per {
            Owner::File => (self.session, Then::Close),
            Owner::Client => (0, Then::More),
        };
        self.session += 1;
        self.next = match self.since {
            Since::Start => self.next + self.interval.draw(&mut self.stream),
            Since::End => Time::NEVER,
        };
        Request { connection, bytes: self.bytes, then }
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
            _ => unreachable!("a client was asked for"),
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
    fn the_first_session_begins_at_a_time_of_its_own_drawn_from_the_seed() {
        let ftp = Ftp { first: "u(100s, 57.735s)".parse().unwrap(), ..Ftp::default() };
        let firsts = |seed| {
            let begin = |number| {
                let streams = Streams::new(seed, 0).within(&format!("flow {number}"));
                let place = Place { streams, start: Time::ZERO + Span::from_secs(3), payload: 960 };
                let Course::Client(mut client) = ftp.course(&place) else {
                    unreachable!("a client was asked for")
                };
                let first = client.due();
                client.request();
                assert_eq!(client.due().since(first), Span::from_secs(200), "the law is drawn once");
                first.since(place.start).as_secs_f64()
            };
            (0..1000).map(begin).collect::<Vec<_>>()
        };
        let times = firsts(1);
        assert_eq!(times, firsts(1));
        assert_ne!(times, firsts(2));
        // Start times are uniform over 0 to 200 s. The mean of 1000 has a standard error of 57.735/sqrt(1000) = 1.83 s;
        // five standard errors are 9.1 s.
        let mean = times.iter().sum::<f64>() / 1000.0;
        assert!((mean - 100.0).abs() < 9.1, "{mean}");
        assert!(times.iter().all(|time| (0.0..=200.0).contains(time)));
    }

    #[test]
    fn files_of_a_client_with_one_connection_follow_one_another_on_it() {
        let ftp = Ftp {
            size: Size::Bytes(5_000),
            interval: Span::from_millis(20).into(),
            connection_per: Owner::Client,
            ..Ftp::default()
        };
        let mut client = client(&ftp);
        for write in 0..3 {
            assert_eq!(client.due(), Time::ZERO + Span::from_secs(3) + Span::from_millis(20 * write));
            assert_eq!(client.request(), Request { connection: 0, bytes: 5_000, then: Then::More });
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
