//! Configuration of the UMTS bearer.

use std::sync::Arc;

use ackclock_core::{Component, Config, ConfigError, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::RadioAccess;
use super::air::{AIRS, AirConfig, AirKind};
use super::dedicated::DedicatedConfig;
use crate::bearer::{AnyBearer, BearerConfig, BearerContext, BearerLinks, Direction};
use crate::umts_rlc_am::RlcConfig;
use crate::{CellUser, Files, Nominal};

/// The radio network of UMTS from its controller to the terminals. Packets of each user of `[[edge.user]]` are queued,
/// cut into PDUs by the radio link control, and sent over an air interface in each direction.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RadioAccessConfig {
    /// Radio link control between controller and terminals.
    pub rlc: RlcConfig,
    /// What carries its PDUs.
    pub air: Airs,
    /// The users, set by the edge; one by default.
    #[serde(skip)]
    users: Vec<CellUser>,
}

/// Air interfaces of both directions.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Airs {
    /// Downlink: a table with `kind`.
    pub down: Component<dyn AirConfig>,
    /// Uplink: a table with `kind`.
    pub up: Component<dyn AirConfig>,
}

/// Maximum number of users of a bearer.
const MOST_USERS: u64 = 10_000;

impl Default for Airs {
    fn default() -> Self {
        let dedicated = || json!({ "kind": "dedicated" }).into();
        Self { down: dedicated(), up: dedicated() }
    }
}

impl Default for RadioAccessConfig {
    /// One user with channels of 384 kbit/s.
    fn default() -> Self {
        Self { rlc: RlcConfig::default(), air: Airs::default(), users: vec![CellUser::default()] }
    }
}

impl Config for RadioAccessConfig {
    fn check(&self) -> Result<(), ConfigError> {
        self.rlc.check().map_err(|error| error.under("rlc"))?;
        for direction in Direction::BOTH {
            self.dedicated(direction)?.check_rate(&self.rlc).map_err(|error| under(direction, error))?;
        }
        Ok(())
    }

    fn complete(self) -> Result<Self, ConfigError> {
        let [down, up] = [(&self.air.down, Direction::Down), (&self.air.up, Direction::Up)]
            .map(|(air, direction)| air.complete(&AIRS).map_err(|error| under(direction, error)));
        Ok(Self { air: Airs { down: down?, up: up? }, ..self })
    }
}

/// Adds the path of a direction's air to an error.
fn under(direction: Direction, error: ConfigError) -> ConfigError {
    error.under(["air.down", "air.up"][direction as usize])
}

impl RadioAccessConfig {
    /// The dedicated channel of a direction.
    fn dedicated(&self, direction: Direction) -> Result<&DedicatedConfig, ConfigError> {
        let air = [&self.air.down, &self.air.up][direction as usize];
        let AirKind::Dedicated(config) = air.config(&AIRS).map_err(|error| under(direction, error))?.kind();
        Ok(config)
    }

    fn count(&self) -> u64 {
        self.users.iter().map(|user| u64::from(user.count)).sum()
    }
}

impl BearerConfig for RadioAccessConfig {
    fn uses_links(&self) -> bool {
        false
    }

    fn serving(&self, users: &[CellUser]) -> Result<Option<Arc<dyn BearerConfig>>, ConfigError> {
        let served = Self { users: users.to_vec(), ..self.clone() };
        if let Some(index) = users.iter().position(|user| user.count == 0) {
            return Err(ConfigError::new(format!("user.{index}.count"), "0 is not above 0"));
        }
        if !(1..=MOST_USERS).contains(&served.count()) {
            let message = format!("{} users; this bearer has 1 to {MOST_USERS}", served.count());
            return Err(ConfigError::new("user", message));
        }
        Ok(Some(Arc::new(served)))
    }

    fn users(&self) -> Option<&[CellUser]> {
        Some(&self.users)
    }

    /// Rate of all users together.
    fn nominal(
        &self,
        direction: Direction,
        _: &BearerLinks,
        files: &dyn Files,
    ) -> Result<Nominal, ConfigError> {
        let rate = self.dedicated(direction)?.nominal(&self.rlc, files);
        let rate = rate.map_err(|error| under(direction, error).under("bearer"))?;
        let one_way = |direction| self.dedicated(direction).map(|air| air.tti + air.delay);
        let delay = one_way(Direction::Down)? + one_way(Direction::Up)?;
        Ok(Nominal { rate: Rate::from_bps(rate.as_bps() * self.count()), delay })
    }

    fn gauges(&self) -> &'static [&'static str] {
        self.rlc.gauges()
    }

    fn build(&self, _: &BearerLinks, context: BearerContext<'_>) -> Result<AnyBearer, ConfigError> {
        let airs = [self.dedicated(Direction::Down)?, self.dedicated(Direction::Up)?];
        let bearer = RadioAccess::new(&self.rlc, airs, self.count() as u32, context);
        let bearer = bearer.map_err(|(direction, error)| under(direction, error).under("bearer"))?;
        Ok(AnyBearer::Other(Box::new(bearer)))
    }
}
