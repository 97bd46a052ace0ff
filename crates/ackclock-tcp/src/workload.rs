//! What a flow has to send.

use ackclock_core::{Config, ConfigError, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Payload that waits to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Supply {
    /// Without end.
    Endless,
    /// So many bytes, with which the connection ends.
    Bytes(u64),
}

impl Supply {
    /// How much of `most` bytes there is.
    pub fn at_most(&self, most: u32) -> u32 {
        match *self {
            Self::Endless => most,
            Self::Bytes(left) => u32::try_from(left).unwrap_or(u32::MAX).min(most),
        }
    }

    /// Takes bytes that are there.
    pub fn take(&mut self, bytes: u32) {
        if let Self::Bytes(left) = self {
            *left -= u64::from(bytes);
        }
    }

    /// Whether these are the last bytes.
    pub fn ends_with(&self, bytes: u32) -> bool {
        *self == Self::Bytes(bytes.into())
    }
}

/// A kind of traffic.
pub trait Workload: std::fmt::Debug + Send + Sync {
    /// What a flow of it has to send.
    fn supply(&self) -> Supply;
}

/// Sends for as long as the run lasts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bulk {}

impl Config for Bulk {}

impl Workload for Bulk {
    fn supply(&self) -> Supply {
        Supply::Endless
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
    fn supply(&self) -> Supply {
        match self.size {
            Size::Bytes(bytes) => Supply::Bytes(bytes),
            // `check` lets only bytes pass.
            _ => Supply::Bytes(0),
        }
    }
}

ackclock_core::registry! {
    /// Everything that a flow can be made to send.
    pub static WORKLOADS: dyn Workload = "workload" {
        "bulk" => Bulk,
        "file" => File,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_workload_is_read_as_scenarios_write_it() {
        assert_eq!(WORKLOADS.resolve(&json!("bulk")).unwrap().supply(), Supply::Endless);
        let file = WORKLOADS.resolve(&json!({"kind": "file", "size": "4MB"})).unwrap();
        assert_eq!(file.supply(), Supply::Bytes(4_000_000));
        let error = WORKLOADS.resolve(&json!({"kind": "file", "size": "10p"})).unwrap_err().to_string();
        assert!(error.starts_with("size: 10p is not the size of a file"), "{error}");
    }
}
