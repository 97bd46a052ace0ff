//! What a flow has to send.

mod ftp;
mod pareto;
mod web;

use ackclock_core::{Config, ConfigError, Size, Streams, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use ftp::{Ftp, Owner};
pub use pareto::BoundedPareto;
pub use web::{Per, Web};

/// Payload that waits to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Supply {
    /// Without end.
    Endless,
    /// So many bytes, with which the connection ends.
    Bytes(u64),
    /// So many bytes for now; the connection stays open for more.
    Open(u64),
}

impl Supply {
    /// How much of `most` bytes there is.
    pub fn at_most(&self, most: u32) -> u32 {
        match *self {
            Self::Endless => most,
            Self::Bytes(left) | Self::Open(left) => u32::try_from(left).unwrap_or(u32::MAX).min(most),
        }
    }

    /// Takes bytes that are there.
    pub fn take(&mut self, bytes: u32) {
        if let Self::Bytes(left) | Self::Open(left) = self {
            *left -= u64::from(bytes);
        }
    }

    /// This supply behind what is `left` of the one before.
    #[must_use]
    pub fn behind(self, left: Self) -> Self {
        match (self, left) {
            (Self::Bytes(bytes), Self::Open(left)) => Self::Bytes(left + bytes),
            (Self::Open(bytes), Self::Open(left)) => Self::Open(left + bytes),
            _ => self,
        }
    }

    /// Whether these are the last bytes.
    pub fn ends_with(&self, bytes: u32) -> bool {
        *self == Self::Bytes(bytes.into())
    }
}

/// A kind of traffic.
pub trait Workload: std::fmt::Debug + Send + Sync {
    /// What one flow of it does.
    fn course(&self, place: &Place) -> Course;

    /// Whether what it sends has no end.
    fn is_endless(&self) -> bool {
        false
    }
}

/// What a workload must know of a flow.
#[derive(Clone, Debug)]
pub struct Place {
    /// The flow's own family of random streams.
    pub streams: Streams,
    /// When it begins.
    pub start: Time,
    /// Payload of a full packet, bytes.
    pub payload: u32,
}

/// What a flow does with connections.
pub enum Course {
    /// It is one, from its start, with this to send.
    Connection(Supply),
    /// It is a client that opens connections as it needs them.
    Client(Box<dyn Client>),
}

/// A client whose connections come and go. Its chance depends on the numbers of its requests alone, not on when or how
/// often it is asked.
pub trait Client: Send {
    /// When it makes its next request; [`Time::NEVER`] where it waits for an answer first.
    fn due(&self) -> Time;

    /// Makes the request that is due.
    fn request(&mut self) -> Request;

    /// The last byte of a request's answer has arrived over this connection. Answers of a connection come in the order
    /// of its requests.
    fn on_answered(&mut self, now: Time, connection: u64);
}

/// Something that a client wants to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Number of the connection within its client; a number not heard before is that of a new one.
    pub connection: u64,
    /// Bytes of the answer.
    pub bytes: u64,
    /// What becomes of the connection.
    pub then: Then,
}

/// What becomes of a connection after an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// It ends.
    Close,
    /// Another request will follow on it.
    More,
}

/// From when a time between two of something is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Since {
    /// From the start of the one before, whether it is finished or not.
    #[default]
    Start,
    /// From its end: the last byte has arrived.
    End,
}

/// Sends for as long as the run lasts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bulk {}

impl Config for Bulk {}

impl Workload for Bulk {
    fn course(&self, _: &Place) -> Course {
        Course::Connection(Supply::Endless)
    }

    fn is_endless(&self) -> bool {
        true
    }
}

/// One file, after which the connection ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    /// Bytes of the file.
    pub size: Size,
}

impl Default for File {
    fn default() -> Self {
        Self { size: Size::Bytes(1_000_000) }
    }
}

impl Config for File {
    fn check(&self) -> Result<(), ConfigError> {
        match self.size {
            Size::Bytes(1..) => Ok(()),
            other => {
                let message = format!("{other} is not the size of a file; it is written like \"4MB\"");
                Err(ConfigError::new("size", message))
            }
        }
    }
}

impl Workload for File {
    fn course(&self, _: &Place) -> Course {
        match self.size {
            Size::Bytes(bytes) => Course::Connection(Supply::Bytes(bytes)),
            // `check` lets only bytes pass.
            _ => Course::Connection(Supply::Bytes(0)),
        }
    }
}

ackclock_core::registry! {
    /// Everything that a flow can be made to send.
    pub static WORKLOADS: dyn Workload = "workload" {
        "bulk" => Bulk,
        "file" => File,
        "web" => Web,
        "ftp" => Ftp,
    }
}

/// A size in bytes, where a packet carries so many; `None` where it is neither a number of packets nor of bytes.
fn size_in_bytes(size: Size, payload: u32) -> Option<u64> {
    match size {
        Size::Packets(packets) => Some(u64::from(packets) * u64::from(payload)),
        Size::Bytes(bytes) => Some(bytes),
        Size::Time(_) | Size::Bdp(_) => None,
    }
}

/// Checks a time between two of something.
fn check_time(key: &str, law: &ackclock_core::Law<ackclock_core::Span>) -> Result<(), ConfigError> {
    if law.mean() > ackclock_core::Span::ZERO {
        return Ok(());
    }
    Err(ConfigError::new(key, format!("{law} is not above 0s in the mean")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn supply(workload: serde_json::Value) -> Option<Supply> {
        let place = Place { streams: Streams::new(1, 0), start: Time::ZERO, payload: 960 };
        match WORKLOADS.resolve(&workload).unwrap().course(&place) {
            Course::Connection(supply) => Some(supply),
            Course::Client(_) => None,
        }
    }

    #[test]
    fn a_workload_is_read_as_scenarios_write_it() {
        assert_eq!(supply(json!("bulk")), Some(Supply::Endless));
        assert_eq!(supply(json!({"kind": "file", "size": "4MB"})), Some(Supply::Bytes(4_000_000)));
        assert_eq!(supply(json!("web")), None);
        let error = WORKLOADS.resolve(&json!({"kind": "file", "size": "10p"})).unwrap_err().to_string();
        assert!(error.starts_with("size: 10p is not the size of a file"), "{error}");
    }

    #[test]
    fn what_follows_is_added_to_what_is_left() {
        assert_eq!(Supply::Bytes(5).behind(Supply::Open(7)), Supply::Bytes(12));
        assert_eq!(Supply::Open(5).behind(Supply::Open(7)), Supply::Open(12));
        assert_eq!(Supply::Bytes(5).behind(Supply::Bytes(0)), Supply::Bytes(5));
    }
}
