//! Configuration of the UMTS bearer.

use ackclock_core::{Config, ConfigError, Rate, Size, Span};
use ackclock_link::bearer::{
    AnyBearer, BearerConfig, BearerContext, BearerLinks, Change, ChangeContext, Direction,
};
use ackclock_link::errors::Errors;
use ackclock_link::{DeliveryOrder, Files, Nominal, OutageKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pdu_size::PduSize;
use super::poll::PollConfig;
use super::rlc::{BufferCounts, OnMaxDat, RlcConfig, RlcMode, Tries};
use super::status_config::StatusConfig;

use crate::radio_access::{Class, DedicatedConfig, DedicatedKey, ErrorsBy, RadioAccess};

/// A UMTS bearer with the complete radio link control of 3GPP TS 25.322, acknowledged or unacknowledged. Packets are
/// cut into PDUs; in acknowledged mode lost PDUs are retransmitted, and a packet stays in the buffer until the peer has
/// acknowledged all of it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UmtsRlcAmConfig {
    /// Whether lost PDUs are retransmitted: "acknowledged" or "unacknowledged".
    pub mode: RlcMode,
    /// Downlink rate of the PDUs' payload.
    pub rate: Rate,
    /// Uplink rate of the PDUs' payload.
    pub up_rate: Rate,
    /// Transmission time interval: all PDUs of a TTI are sent together.
    pub tti: Span,
    /// Payload octets of a PDU, for packets and their length indicators.
    pub pdu: Size,
    /// One-way delay from the end of a TTI until its PDUs are processed at the far end.
    pub delay: Span,
    /// PDU errors of each direction: a probability, or an error process, evaluated per TTI or PDU.
    pub errors: Errors,
    /// PDU errors of the uplink, if they differ from the downlink's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_errors: Option<Errors>,
    /// Unit of loss: all PDUs of a "tti" together, or each "pdu" separately.
    pub errors_by: ErrorsBy,
    /// Whether packets are delivered in order, or each packet as soon as it is complete.
    pub order: DeliveryOrder,
    /// Maximum number of unacknowledged PDUs at the transmitter and the receiver.
    pub window: u32,
    /// MaxDAT: a PDU is given up after `max_dat` - 1 transmissions.
    pub max_dat: u32,
    /// Reaction when a PDU is given up: its packets are discarded ("discard"), or both ends are reset ("reset").
    pub on_max_dat: OnMaxDat,
    /// Minimum age of a PDU's last transmission before a STATUS that reports it missing triggers a retransmission. The
    /// default is the RTT of the radio, because no STATUS can cover a PDU sent within the last RTT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<Span>,
    /// Rules for when the transmitter requests a STATUS.
    pub poll: PollConfig,
    /// Rules for when the receiver sends a STATUS.
    pub status: StatusConfig,
    /// Retries of MRW, the message that informs a receiver of discarded PDUs.
    pub mrw: Tries,
    /// Retries of RESET, the message that requests a reset.
    pub reset: Tries,
}

impl Default for UmtsRlcAmConfig {
    /// A bearer of 384 kbit/s down and 64 kbit/s up with typical settings and a block error rate of 10 %.
    fn default() -> Self {
        Self {
            mode: RlcMode::Acknowledged,
            rate: Rate::from_bps(384_000),
            up_rate: Rate::from_bps(64_000),
            tti: Span::from_millis(10),
            pdu: Size::Bytes(40),
            delay: Span::from_millis(25),
            errors: Errors::Share(ackclock_link::Loss::of(0.1)),
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
            self.air(direction).check_rates(&rlc).map_err(|error| self.spelled(direction, error))?;
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
            pdu: PduSize::Fixed(self.pdu),
            buffer_counts: BufferCounts::default(),
            order: self.order,
            reordering: None,
            window: self.window,
            max_dat: self.max_dat,
            on_max_dat: self.on_max_dat,
            guard: self.guard,
            poll: self.poll.clone(),
            status: self.status.clone(),
            mrw: self.mrw.clone(),
            reset: self.reset.clone(),
            delays: None,
        }
    }

    fn air(&self, direction: Direction) -> DedicatedConfig {
        let (rate, errors) = match direction {
            Direction::Down => (self.rate, &self.errors),
            Direction::Up => (self.up_rate, self.up_errors.as_ref().unwrap_or(&self.errors)),
        };
        let Self { tti, delay, errors_by, .. } = *self;
        DedicatedConfig { rate, tti, delay, errors: errors.clone(), errors_by, ..DedicatedConfig::default() }
    }

    /// Returns the directions that a key changes while the bearer runs, and the channel's name of the key.
    fn changed(&self, path: &str) -> Result<(Vec<Direction>, DedicatedKey), ConfigError> {
        let (both, own) = (Direction::BOTH.to_vec(), path.strip_prefix("up_"));
        let refused = || {
            let message = "is fixed when the bearer starts; `rate`, `up_rate`, `delay`, `errors` and `up_errors` may change";
            ConfigError::new(path, message)
        };
        match (DedicatedKey::of(own.unwrap_or(path)).ok_or_else(refused)?, own) {
            (DedicatedKey::Delay, Some(_)) => Err(refused()),
            (key, Some(_)) => Ok((vec![Direction::Up], key)),
            (DedicatedKey::Delay, None) => Ok((both, DedicatedKey::Delay)),
            (DedicatedKey::Errors, None) if self.up_errors.is_none() => Ok((both, DedicatedKey::Errors)),
            (key, None) => Ok((vec![Direction::Down], key)),
        }
    }

    /// Replaces the key in an error about one direction's channel with the key of this table.
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

    fn outage(&self) -> Option<OutageKind> {
        Some(OutageKind::Fade)
    }

    fn may_change(&self, key: &str) -> Result<(), ConfigError> {
        self.changed(key).map(drop)
    }

    fn changes(
        &self,
        key: &str,
        context: ChangeContext<'_>,
    ) -> Result<Vec<(Direction, Change)>, ConfigError> {
        let (directions, key) = self.changed(key)?;
        let change = |direction| {
            let change = self.air(direction).changes(key, &self.rlc(), 1, direction, context);
            Ok((direction, change.map_err(|error| self.spelled(direction, error))?))
        };
        directions.into_iter().map(change).collect()
    }

    fn nominal(
        &self,
        direction: Direction,
        _: &BearerLinks,
        files: &dyn Files,
    ) -> Result<Nominal, ConfigError> {
        let rate = self.air(direction).nominal(&self.rlc(), 1, files);
        let rate = rate.map_err(|error| self.spelled(direction, error).under("bearer"))?;
        Ok(Nominal { rate, delay: (self.tti + self.delay) * 2 })
    }

    fn gauges(&self) -> Vec<&'static str> {
        self.rlc().gauges().to_vec()
    }

    fn build(&self, _: &BearerLinks, context: BearerContext<'_>) -> Result<AnyBearer, ConfigError> {
        let airs = Direction::BOTH.map(|direction| self.air(direction));
        let bearer = RadioAccess::new(&[Class::unnamed(self.rlc())], airs.each_ref(), 1, context);
        let bearer = bearer.map_err(|(direction, error)| self.spelled(direction, error).under("bearer"))?;
        Ok(AnyBearer::Other(Box::new(bearer)))
    }
}
