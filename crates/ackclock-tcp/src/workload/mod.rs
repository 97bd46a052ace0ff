//! Workloads: the data that flows send.

mod ftp;
mod pareto;
mod web;

use ackclock_core::{Config, ConfigError, Size, Streams, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::media::Media;
pub use ftp::{Ftp, Owner};
pub use pareto::BoundedPareto;
pub use web::{Per, Web};

/// Payload that a flow still has to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Supply {
    /// Unlimited payload.
    Endless,
    /// A number of bytes, after which the connection ends.
    Bytes(u64),
    /// A number of bytes available now; the connection stays open for more data.
    Open(u64),
}

impl Supply {
    /// Number of available bytes, limited to `most`.
    pub fn at_most(&self, most: u32) -> u32 {
        match *self {
            Self::Endless => most,
            Self::Bytes(left) | Self::Open(left) => u32::try_from(left).unwrap_or(u32::MAX).min(most),
        }
    }

    /// Removes `bytes` available bytes from the supply.
    pub fn take(&mut self, bytes: u32) {
        if let Self::Bytes(left) | Self::Open(left) = self {
            *left -= u64::from(bytes);
        }
    }

    /// Appends this supply to the remainder `left` of the previous supply.
    #[must_use]
    pub fn behind(self, left: Self) -> Self {
        match (self, left) {
            (Self::Bytes(bytes), Self::Open(left)) => Self::Bytes(left + bytes),
            (Self::Open(bytes), Self::Open(left)) => Self::Open(left + bytes),
            _ => self,
        }
    }

    /// Whether `bytes` are the last bytes of the supply.
    pub fn ends_with(&self, bytes: u32) -> bool {
        *self == Self::Bytes(bytes.into())
    }
}

/// Kind of traffic that a flow has.
pub trait Workload: std::fmt::Debug + Send + Sync {
    /// Use of connections by a flow with this workload.
    fn course(&self, place: &Place) -> Course;

    /// Whether the data of the workload never ends.
    fn is_endless(&self) -> bool {
        false
    }
}

/// Properties of a flow that its workload needs.
#[derive(Clone, Debug)]
pub struct Place {
    /// Random streams of the flow.
    pub streams: Streams,
    /// Start time of the flow.
    pub start: Time,
    /// Payload of a full packet of the flow, bytes.
    pub payload: u32,
}

/// Use of connections by a flow.
pub enum Course {
    /// One connection from the flow's start, with this supply of data.
    Connection(Supply),
    /// A client that opens connections as needed.
    Client(Box<dyn Client>),
    /// Media over UDP from the flow's start, instead of TCP.
    Media(Media),
}

/// A client with temporary connections. Random draws depend only on the number of the request, not on when or how often
/// the client is polled.
pub trait Client: Send {
    /// Time of the client's next request; [`Time::NEVER`] while the client waits for an answer.
    fn due(&self) -> Time;

    /// Makes the request that is due, and returns it.
    fn request(&mut self) -> Request;

    /// Handles the arrival of an answer's last byte over `connection`. Answers of a connection arrive in the order of
    /// its requests.
    fn on_answered(&mut self, now: Time, connection: u64);
}

/// A request for data by a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Number of the connection within the client; an unknown number opens a new connection.
    pub connection: u64,
    /// Size of the answer, bytes.
    pub bytes: u64,
    /// Action on the connection after the answer.
    pub then: Then,
}

/// Action on a connection after an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// The connection closes after the answer.
    Close,
    /// Another request follows on the connection.
    More,
}

/// Reference point for an interval between two items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Since {
    /// Start of the previous item, even if the item is not finished.
    #[default]
    Start,
    /// End of the previous item: arrival of the item's last byte.
    End,
}

/// Sends unlimited data for the duration of the run.
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

/// Sends one file, after which the connection ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    /// Size of the file, in bytes.
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
            // The check of the options accepts only bytes.
            _ => Course::Connection(Supply::Bytes(0)),
        }
    }
}

impl Workload for Media {
    fn course(&self, _: &Place) -> Course {
        Course::Media(self.clone())
    }

    fn is_endless(&self) -> bool {
        true
    }
}

ackclock_core::registry! {
    /// Registry of all kinds of workload.
    pub static WORKLOADS: dyn Workload = "workload" {
        "bulk" => Bulk,
        "file" => File,
        "web" => Web,
        "ftp" => Ftp,
        "media" => Media,
    }
}

/// Converts a size to bytes, with `payload` bytes per packet; `None` unless the size is given in packets or bytes.
fn size_in_bytes(size: Size, payload: u32) -> Option<u64> {
    match size {
        Size::Packets(packets) => Some(u64::from(packets) * u64::from(payload)),
        Size::Bytes(bytes) => Some(bytes),
        Size::Time(_) | Size::Bdp(_) => None,
    }
}

/// Checks an option that is an interval between two items.
fn check_time(key: &str, law: &ackclock_core::Law<ackclock_core::Span>) -> Result<(), ConfigError> {
    if law.mean() > ackclock_core::Span::ZERO {
        return Ok(());
    }
    Err(ConfigError::new(key, format!("the mean of {law} is not above 0s")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn supply(workload: serde_json::Value) -> Option<Supply> {
        let place = Place { streams: Streams::new(1, 0), start: Time::ZERO, payload: 960 };
        match WORKLOADS.resolve(&workload).unwrap().course(&place) {
            Course::Connection(supply) => Some(supply),
            _ => None,
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
