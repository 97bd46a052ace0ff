//! The table of the bearer.

use ackclock_core::{Config, ConfigError, Rate, Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::poll::PollConfig;
use super::receiver::StatusConfig;
use super::rlc::{OnMaxDat, RlcConfig, RlcMode, Tries};
use crate::bearer::{AnyBearer, BearerConfig, BearerContext, BearerLinks, Direction};
use crate::errors::Errors;
use crate::radio_access::{DedicatedConfig, ErrorsBy, RadioAccess};
use crate::{DeliveryOrder, Files, Nominal};

/// A UMTS bearer with the whole radio link control of 3GPP TS 25.322, acknowledged or not: packets are cut into PDUs, and in
/// acknowledged mode those that the radio loses are sent again until the peer has them. A packet stays in the buffer until then.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UmtsRlcAmConfig {
    /// Whether PDUs that were lost are sent again: "acknowledged" or "unacknowledged".
    pub mode: RlcMode,
    /// Rate of the PDUs' payload towards the mobiles.
    pub rate: Rate,
    /// Rate of the PDUs' payload from the mobiles.
    pub up_rate: Rate,
    /// Transmission time interval: all PDUs of one are sent together.
    pub tti: Span,
    /// Room in a PDU for packets and their length indicators.
    pub pdu: Size,
    /// From the end of a TTI until its PDUs are dealt with at the far end, one way.
    pub delay: Span,
    /// What the radio loses in each direction: a share, or an error process, asked for each TTI or PDU.
    pub errors: Errors,
    /// What it loses from the mobiles, where that is something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_errors: Option<Errors>,
    /// What is lost together: all PDUs of a "tti", or each "pdu" by itself.
    pub errors_by: ErrorsBy,
    /// Whether packets are handed on in the order in which they came, or each as soon as it is whole.
    pub order: DeliveryOrder,
    /// PDUs that may be unacknowledged, of the transmitter and of the receiver.
    pub window: u32,
    /// MaxDAT: a PDU is sent one time less at most; where it would be sent once more it is given up.
    pub max_dat: u32,
    /// What then happens: its packets are discarded ("discard"), or both ends are reset ("reset").
    pub on_max_dat: OnMaxDat,
    /// A PDU that a STATUS reports as missing is sent again unless it was last sent so shortly before; where it is left out, the
    /// round trip of the radio, in which no STATUS can know of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<Span>,
    /// When the transmitter asks for a STATUS.
    pub poll: PollConfig,
    /// When the receiver sends a STATUS.
    pub status: StatusConfig,
    /// How a receiver is told what was discarded, by MRW.
    pub mrw: Tries,
    /// How a reset is asked for, by RESET.
    pub reset: Tries,
}

impl Default for UmtsRlcAmConfig {
    /// A bearer of 384 kbit/s down and 64 kbit/s up as networks set it up: a tenth of the blocks is lost.
    fn default() -> Self {
        Self {
            mode: RlcMode::Acknowledged,
            rate: Rate::from_bps(384_000),
            up_rate: Rate::from_bps(64_000),
            tti: Span::from_millis(10),
            pdu: Size::Bytes(40),
            delay: Span::from_millis(25),
            errors: Errors::Share(crate::Loss(0.1)),
            up_errors: None,
            errors_by: ErrorsBy::Tti,
            order: DeliveryOrder::InSequence,
            window: 2047,
            max_dat: 15,
            on_max_dat: OnMaxDat::Discard,
            guard: None,
            poll: PollConfig::default(),
            status: StatusConfig::default(),
            mrw: Tries::default(),
            reset: Tries::default(),
        }
    }
}

impl Config for UmtsRlcAmConfig {
    fn check(&self) -> Result<(), ConfigError> {
        let rlc = self.rlc();
        for direction in Direction::BOTH {
            self.air(direction).check().map_err(|error| self.spelled(direction, error))?;
        }
        rlc.check()?;
        for direction in Direction::BOTH {
            self.air(direction).check_rate(&rlc).map_err(|error| self.spelled(direction, error))?;
        }
        Ok(())
    }

    fn complete(self) -> Result<Self, ConfigError> {
        let errors = self.errors.complete().map_err(|error| error.under("errors"))?;
        let up = self.up_errors.map(Errors::complete).transpose();
        Ok(Self { errors, up_errors: up.map_err(|error| error.under("up_errors"))?, ..self })
    }
}

impl UmtsRlcAmConfig {
    pub(super) fn rlc(&self) -> RlcConfig {
        RlcConfig {
            mode: self.mode,
            pdu: self.pdu,
            order: self.order,
            window: self.window,
            max_dat: self.max_dat,
            on_max_dat: self.on_max_dat,
            guard: self.guard,
            poll: self.poll.clone(),
            status: self.status.clone(),
            mrw: self.mrw.clone(),
            reset: self.reset.clone(),
        }
    }

    fn air(&self, direction: Direction) -> DedicatedConfig {
        let (rate, errors) = match direction {
            Direction::Down => (self.rate, &self.errors),
            Direction::Up => (self.up_rate, self.up_errors.as_ref().unwrap_or(&self.errors)),
        };
        let Self { tti, delay, errors_by, .. } = *self;
        DedicatedConfig { rate, tti, delay, errors: errors.clone(), errors_by }
    }

    /// An error of a direction's channel, with the key that this table has for it.
    fn spelled(&self, direction: Direction, mut error: ConfigError) -> ConfigError {
        let has_own =
            error.path.starts_with("rate") || error.path.starts_with("errors") && self.up_errors.is_some();
        if direction == Direction::Up && has_own {
            error.path.insert_str(0, "up_");
        }
        error
    }
}

impl BearerConfig for UmtsRlcAmConfig {
    fn uses_links(&self) -> bool {
        false
    }

    fn nominal(
        &self,
        direction: Direction,
        _: &BearerLinks,
        files: &dyn Files,
    ) -> Result<Nominal, ConfigError> {
        let rate = self.air(direction).nominal(&self.rlc(), files);
        let rate = rate.map_err(|error| self.spelled(direction, error).under("bearer"))?;
        Ok(Nominal { rate, delay: (self.tti + self.delay) * 2 })
    }

    fn gauges(&self) -> &'static [&'static str] {
        self.rlc().gauges()
    }

    fn build(&self, _: &BearerLinks, context: BearerContext<'_>) -> Result<AnyBearer, ConfigError> {
        let airs = Direction::BOTH.map(|direction| self.air(direction));
        let bearer = RadioAccess::new(&self.rlc(), airs.each_ref(), 1, context);
        let bearer = bearer.map_err(|(direction, error)| self.spelled(direction, error).under("bearer"))?;
        Ok(AnyBearer::Other(Box::new(bearer)))
    }
}
