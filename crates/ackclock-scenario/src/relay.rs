//! The table `[relay]`: a box between the wired part and the edge that splits connections.

use ackclock_core::{ConfigError, FlowId, Seq, Size, Time};
use ackclock_tcp::config::Switch;
use ackclock_tcp::{SENDERS, SenderRow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{FlowTable, PathTable};

/// A relay: it receives for the mobiles and sends on over connections of its own.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RelayTable {
    /// The wired part between the relay and the edge; `[path]` is then the one between the servers and the relay.
    pub core: PathTable,
    /// What it holds of each connection, in bytes of payload. What is free of it is the window that who sends sees.
    pub buffer: Size,
    /// Row of the sender table for the connections over which it sends on, of downloads to the mobiles, of uploads to the servers: a name, or a table with `kind` and options. Without it they
    /// have the sender of their flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<Value>,
}

impl Default for RelayTable {
    fn default() -> Self {
        Self { core: PathTable::default(), buffer: Size::Bytes(65_536), sender: None }
    }
}

/// Largest window of TCP, bytes (RFC 7323 section 2.3).
const LARGEST: u64 = 1 << 30;

impl RelayTable {
    /// Checks what the types alone cannot say.
    pub(crate) fn check(&self, flows: &[FlowTable]) -> Result<(), ConfigError> {
        self.core.check().map_err(|error| error.under("core"))?;
        flows.iter().try_for_each(|flow| self.check_flow(flow))
    }

    fn check_flow(&self, flow: &FlowTable) -> Result<(), ConfigError> {
        let (far, near) = (flow.sender()?, self.row(flow)?);
        let [of_flow, own] = [far.config(), near.config()].map(|options| options.handshake);
        if of_flow != own {
            let said = |switch| if switch == Switch::On { "on" } else { "off" };
            let message =
                format!("`{}` is not `{}`, as that of the flow: both open alike", said(own), said(of_flow));
            return Err(ConfigError::new("sender.handshake", message));
        }
        let mss = far.build(flow.params(FlowId(0), Time::ZERO, Seq(1))?)?.mss();
        if self.buffer_bytes()? < mss {
            let message = format!("{} holds no full packet, of {mss} bytes of payload", self.buffer);
            return Err(ConfigError::new("buffer", message));
        }
        Ok(())
    }

    /// The buffer in bytes.
    ///
    /// # Errors
    /// Where it is not a number of bytes that a window can tell.
    pub(crate) fn buffer_bytes(&self) -> Result<u32, ConfigError> {
        match self.buffer {
            Size::Bytes(bytes @ 1..=LARGEST) => Ok(bytes as u32),
            other => {
                let message = format!("{other} is not a size in bytes, \"1B\" to \"1073741824B\"");
                Err(ConfigError::new("buffer", message))
            }
        }
    }

    /// The sender towards the mobiles of a group of flows.
    pub(crate) fn row(&self, flow: &FlowTable) -> Result<Box<dyn SenderRow>, ConfigError> {
        match &self.sender {
            Some(sender) => SENDERS.resolve(sender).map_err(|error| error.under("sender")),
            None => flow.sender(),
        }
    }

    /// The same with every key of its sender.
    pub(crate) fn complete(&self) -> Result<Self, ConfigError> {
        let sender = self.sender.as_ref().map(|sender| SENDERS.complete(sender)).transpose();
        Ok(Self { sender: sender.map_err(|error| error.under("sender"))?, ..self.clone() })
    }
}
