//! The `[relay]` table: a split-connection proxy between the wired path and the edge.

use std::sync::Arc;

use ackclock_core::results::Towards;
use ackclock_core::{Component, ConfigError, FlowId, Seq, Size, SteeringConfig, Time, name_of};
use ackclock_edge::{ReportTable, STEERINGS};
use ackclock_tcp::config::Switch;
use ackclock_tcp::{SENDERS, SenderRow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FlowGroup, PathTable};

/// A split-connection proxy: it terminates each connection and forwards the data over a second one.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RelayTable {
    /// Wired path between the relay and the edge. With a relay, `[path]` is the path between the servers and the relay.
    pub core: PathTable,
    /// Buffer of each connection, in bytes of payload. The relay advertises the free space of the buffer to the
    /// original sender.
    pub buffer: Size,
    /// TCP sender of the relay, towards the mobiles for downloads and towards the servers for uploads. The value is a
    /// name, or a table with `kind` and options. By default the relay uses the sender of the flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<Component<dyn SenderRow>>,
    /// Controller that sets the relay's congestion windows of downloads from radio reports: a name, or a table with
    /// `kind`. A controller needs `[edge.report]`. "none" leaves the congestion windows to the sender.
    pub steering: Component<dyn SteeringConfig>,
    /// Sender whose congestion control takes over while `steering` has no recent report. The fallback uses the options
    /// of `sender`. The default is "bbr".
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

/// Default of `fallback`. CUBIC is unsuitable as fallback, because CUBIC would fill a relay buffer of any size.
const FALLBACK: &str = "bbr";

/// Largest TCP window, bytes (RFC 7323 section 2.3).
const LARGEST: u64 = 1 << 30;

impl RelayTable {
    /// Checks constraints of the relay table that the types cannot express.
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
                    let message = format!("`{own}` is never used with steering = \"{name}\"");
                    Err(ConfigError::new("fallback", message))
                }
                None => Ok(()),
            };
        };
        let wrong = |key, message| Err(ConfigError::new(key, message));
        match reports {
            None => wrong("steering", format!("`{name}` needs radio reports: set `[edge.report]`")),
            Some(reports) if reports.every >= patience => {
                let message = format!("{patience} is not longer than `edge.report.every`, {}", reports.every);
                wrong("steering.stale", message)
            }
            Some(_) if flows.iter().all(|flow| flow.towards == Towards::Server) => wrong(
                "steering",
                format!("`{name}` sets the windows of downloads, but every flow is an upload"),
            ),
            Some(_) => Ok(()),
        }
    }

    fn check_flow(&self, flow: &FlowGroup) -> Result<(), ConfigError> {
        if flow.is_media()? {
            let message =
                "a relay splits TCP connections, but a flow has `workload = \"media\"`, which is UDP";
            return Err(ConfigError::new("sender", message));
        }
        let (far, near) = (flow.sender()?, self.row(flow)?);
        let [of_flow, own] = [far.config(), near.config()].map(|options| options.handshake);
        if of_flow != own {
            let said = |switch| if switch == Switch::On { "on" } else { "off" };
            let message = format!(
                "`{}` differs from that of the flow, `{}`: they must be equal",
                said(own),
                said(of_flow)
            );
            return Err(ConfigError::new("sender.handshake", message));
        }
        let mss = far.build(flow.params(FlowId(0), Time::ZERO, Seq(1))?)?.mss();
        if self.buffer_bytes()? < mss {
            let message = format!("{} is less than a full packet, {mss} bytes of payload", self.buffer);
            return Err(ConfigError::new("buffer", message));
        }
        Ok(())
    }

    /// Size of the relay buffer in bytes.
    ///
    /// # Errors
    /// Returns an error if the buffer has another unit than bytes, is zero, or is larger than any advertised window can
    /// be.
    pub(crate) fn buffer_bytes(&self) -> Result<u32, ConfigError> {
        match self.buffer {
            Size::Bytes(bytes @ 1..=LARGEST) => Ok(bytes as u32),
            other => {
                let message = format!("{other} is not a size in bytes, \"1B\" to \"1073741824B\"");
                Err(ConfigError::new("buffer", message))
            }
        }
    }

    /// The parsed controller of the relay's downlink congestion windows.
    pub(crate) fn steering(&self) -> Result<&Arc<dyn SteeringConfig>, ConfigError> {
        self.steering.config(&STEERINGS).map_err(|error| error.under("steering"))
    }

    /// Whether the steering uses radio reports.
    pub(crate) fn listens(&self) -> Result<bool, ConfigError> {
        Ok(self.steering()?.patience().is_some())
    }

    /// Name of the [fallback](Self::fallback).
    pub(crate) fn fallback_name(&self) -> &str {
        self.fallback.as_deref().unwrap_or(FALLBACK)
    }

    /// Sender whose congestion control takes over while the steering has no recent report.
    pub(crate) fn fallback(&self) -> Result<Arc<dyn SenderRow>, ConfigError> {
        SENDERS.resolve(&self.fallback_name().into()).map_err(|error| error.under("fallback"))
    }

    /// Sender that the relay uses for a group of flows.
    pub(crate) fn row<'a>(&'a self, flow: &'a FlowGroup) -> Result<&'a Arc<dyn SenderRow>, ConfigError> {
        match &self.sender {
            Some(sender) => sender.config(&SENDERS).map_err(|error| error.under("sender")),
            None => flow.sender(),
        }
    }

    /// The relay table with every key of its components, including defaults.
    pub(crate) fn complete(&self) -> Result<Self, ConfigError> {
        let sender = self.sender.as_ref().map(|sender| sender.complete(&SENDERS)).transpose();
        let steering = self.steering.complete(&STEERINGS).map_err(|error| error.under("steering"))?;
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
