//! The table `[relay]`: a box between the wired part and the edge that splits connections.

use ackclock_core::results::Towards;
use ackclock_core::{ConfigError, FlowId, Seq, Size, SteeringConfig, Time, name_of};
use ackclock_edge::{ReportTable, STEERINGS};
use ackclock_tcp::config::Switch;
use ackclock_tcp::{SENDERS, SenderRow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{FlowGroup, PathTable};

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
    /// Who says the windows towards the mobiles, from what the radio reports: a name, or a table with `kind`; "none" leaves them to
    /// the sender. It needs `[edge.report]`. Uploads are left alone.
    pub steering: Value,
    /// Row of the sender table whose congestion control rules while the steering lets go, with the options of `sender`; "bbr" where it
    /// is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
}

impl Default for RelayTable {
    fn default() -> Self {
        Self {
            core: PathTable::default(),
            buffer: Size::Bytes(65_536),
            sender: None,
            steering: "none".into(),
            fallback: None,
        }
    }
}

/// Who rules in silence: cubic fills whatever buffer there is.
const FALLBACK: &str = "bbr";

/// Largest window of TCP, bytes (RFC 7323 section 2.3).
const LARGEST: u64 = 1 << 30;

impl RelayTable {
    /// Checks what the types alone cannot say.
    pub(crate) fn check(
        &self,
        flows: &[FlowGroup],
        reports: Option<&ReportTable>,
    ) -> Result<(), ConfigError> {
        self.core.check().map_err(|error| error.under("core"))?;
        self.check_steering(flows, reports)?;
        flows.iter().try_for_each(|flow| self.check_flow(flow))
    }

    fn check_steering(&self, flows: &[FlowGroup], reports: Option<&ReportTable>) -> Result<(), ConfigError> {
        let (name, steering) = (name_of(&self.steering), self.steering()?);
        self.fallback()?;
        let Some(patience) = steering.patience() else {
            return match &self.fallback {
                Some(own) => {
                    let message = format!("`{own}`: nothing falls back to it, steering = \"{name}\"");
                    Err(ConfigError::new("fallback", message))
                }
                None => Ok(()),
            };
        };
        let wrong = |key, message| Err(ConfigError::new(key, message));
        match reports {
            None => wrong("steering", format!("`{name}` hears nothing of the radio: set `[edge.report]`")),
            Some(reports) if reports.every >= patience => {
                let message = format!("{patience} is not longer than `edge.report.every`, {}", reports.every);
                wrong("steering.stale", message)
            }
            Some(_) if flows.iter().all(|flow| flow.towards == Towards::Server) => wrong(
                "steering",
                format!("`{name}` rules windows towards mobiles, and every flow is an upload"),
            ),
            Some(_) => Ok(()),
        }
    }

    fn check_flow(&self, flow: &FlowGroup) -> Result<(), ConfigError> {
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

    /// Who says the windows towards the mobiles.
    pub(crate) fn steering(&self) -> Result<Box<dyn SteeringConfig>, ConfigError> {
        STEERINGS.resolve(&self.steering).map_err(|error| error.under("steering"))
    }

    /// Whether anybody listens to reports of the radio.
    pub(crate) fn listens(&self) -> Result<bool, ConfigError> {
        Ok(self.steering()?.patience().is_some())
    }

    /// The row whose congestion control rules while the steering lets go.
    pub(crate) fn fallback(&self) -> Result<Box<dyn SenderRow>, ConfigError> {
        let name = self.fallback.as_deref().unwrap_or(FALLBACK);
        SENDERS.resolve(&name.into()).map_err(|error| error.under("fallback"))
    }

    /// The sender towards the mobiles of a group of flows.
    pub(crate) fn row(&self, flow: &FlowGroup) -> Result<Box<dyn SenderRow>, ConfigError> {
        match &self.sender {
            Some(sender) => SENDERS.resolve(sender).map_err(|error| error.under("sender")),
            None => flow.sender(),
        }
    }

    /// The same with every key of its sender.
    pub(crate) fn complete(&self) -> Result<Self, ConfigError> {
        let sender = self.sender.as_ref().map(|sender| SENDERS.complete(sender)).transpose();
        let steering = STEERINGS.complete(&self.steering).map_err(|error| error.under("steering"))?;
        let own = self.listens()?.then(|| FALLBACK.to_owned());
        let fallback = self.fallback.clone().or(own);
        Ok(Self {
            sender: sender.map_err(|error| error.under("sender"))?,
            steering,
            fallback,
            ..self.clone()
        })
    }
}
