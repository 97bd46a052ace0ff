//! Configuration of the UMTS bearer.

use std::sync::Arc;

use ackclock_core::{Component, Config, ConfigError, Rate, Span, name_of};
use ackclock_link::bearer::{
    AnyBearer, BearerConfig, BearerContext, BearerLinks, Change, ChangeContext, Direction,
};
use ackclock_link::errors::ErrorContext;
use ackclock_link::{CellUser, ClassConfig, DeliveryOrder, Files, LinkConfig, Nominal, OutageKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::RadioAccess;
use super::air::{AirConfig, AirKind};
use super::airs::AIRS;
use super::blocks::Blocks;
use super::class::{self, Class};
use super::dedicated::{DedicatedConfig, DedicatedKey};
use super::iub::{Iub, IubConfig};
use super::shared::Shared;
use super::streams::of_class;
use super::user::{Downwards, User};
use crate::CellConfig;
use crate::cell::{BlockPdus, HarqConfig, RateRow};
use crate::umts_rlc_am::{RlcConfig, RlcMode};

/// The UMTS radio network from its controller to the terminals. Packets of each user of `[[edge.user]]` are queued, cut
/// into PDUs by the radio link control, and sent over an air interface in each direction.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RadioAccessConfig {
    /// Radio link control between controller and terminals.
    pub rlc: RlcConfig,
    /// Interface between the controller and the base station of a cell. Without this table the radio link control stands
    /// in the base station and is asked for PDUs at each grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iub: Option<IubConfig>,
    /// Air interfaces that transmit the PDUs.
    pub air: Airs,
    /// Users of the bearer, set by the edge; one user by default.
    #[serde(skip)]
    users: Vec<CellUser>,
    /// Classes of service with a name, set by the edge; none by default.
    #[serde(skip)]
    named: Vec<Class>,
}

/// Air interfaces of both directions.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Airs {
    /// Air interface of the downlink: a table with `kind`.
    pub down: Component<dyn AirConfig>,
    /// Air interface of the uplink: a table with `kind`.
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
    /// Returns a bearer with one user, with channels of 384 kbit/s.
    fn default() -> Self {
        Self {
            rlc: RlcConfig::default(),
            iub: None,
            air: Airs::default(),
            users: vec![CellUser::default()],
            named: Vec::new(),
        }
    }
}

impl Config for RadioAccessConfig {
    fn check(&self) -> Result<(), ConfigError> {
        self.rlc.check().map_err(|error| error.under("rlc"))?;
        self.iub.iter().try_for_each(IubConfig::check).map_err(|error| error.under("iub"))?;
        let up = self.up()?;
        if up.allocation.is_some() {
            return Err(ConfigError::new("air.up.allocation", "only `air.down` can have an allocation"));
        }
        up.check_rates(&self.rlc).map_err(|error| under(Direction::Up, error))?;
        if up.grants.is_some() && !self.rlc.grants() {
            let message = "a PDU of fixed size does not fill a grant: rlc.pdu = \"grant\" does";
            return Err(ConfigError::new("air.up.grants", message));
        }
        self.check_delays()?;
        self.check_order(up.harq.as_ref()).map_err(|error| under(Direction::Up, error))?;
        let down = match self.down()? {
            AirKind::Dedicated(down) => down.harq.as_ref(),
            AirKind::Cell(cell) => cell.harq.as_ref(),
        };
        self.check_order(down).map_err(|error| under(Direction::Down, error))?;
        match self.down()? {
            AirKind::Dedicated(down) if down.grants.is_some() => Err(ConfigError::new(
                "air.down.grants",
                "the base station sends without requests; only `air.up` has grants",
            )),
            AirKind::Dedicated(_) if self.iub.is_some() => Err(ConfigError::new(
                "iub",
                "a dedicated channel has no queue at a base station: air.down.kind = \"shared\" has",
            )),
            AirKind::Dedicated(down) => {
                down.check_rates(&self.rlc).map_err(|error| under(Direction::Down, error))
            }
            AirKind::Cell(cell) => {
                self.check_cell(cell).map_err(|error| under(Direction::Down, error))?;
                self.check_grants(cell)
            }
        }
    }

    fn complete(self) -> Result<Self, ConfigError> {
        let iub = self.iub.map(IubConfig::complete).transpose().map_err(|error| error.under("iub"))?;
        let [down, up] = [(&self.air.down, Direction::Down), (&self.air.up, Direction::Up)]
            .map(|(air, direction)| air.complete(&AIRS).map_err(|error| under(direction, error)));
        Ok(Self { air: Airs { down: down?, up: up? }, iub, ..self })
    }
}

/// Part of the bearer that a key changes while the bearer runs.
enum AccessKey<'a> {
    /// Setting of the dedicated channels of a direction.
    Dedicated(Direction, DedicatedKey),
    /// Key of the cell of the downlink, or of its users.
    Cell(&'a str),
    Iub,
}

/// Adds the path of the cell to an error, unless the error is about a user's key.
fn of_cell(key: &str, error: ConfigError) -> ConfigError {
    if key.starts_with("user.") { error } else { under(Direction::Down, error) }
}

/// Adds the path of a direction's air interface to an error.
fn under(direction: Direction, error: ConfigError) -> ConfigError {
    error.under(["air.down", "air.up"][direction as usize])
}

impl RadioAccessConfig {
    /// Returns the air interface of the downlink.
    pub(super) fn down(&self) -> Result<AirKind<'_>, ConfigError> {
        Ok(self.air.down.config(&AIRS).map_err(|error| under(Direction::Down, error))?.kind())
    }

    /// Returns the dedicated uplink channel that each user has.
    pub(super) fn up(&self) -> Result<&DedicatedConfig, ConfigError> {
        match self.air.up.config(&AIRS).map_err(|error| under(Direction::Up, error))?.kind() {
            AirKind::Dedicated(config) => Ok(config),
            AirKind::Cell(_) => Err(ConfigError::new(
                "air.up.kind",
                "the shared channel is towards the terminals; from them use \"dedicated\"",
            )),
        }
    }

    /// Returns the cell with the blocks that hold PDUs.
    fn of_whole(&self, cell: &CellConfig) -> Result<CellConfig, ConfigError> {
        if cell.pdus == BlockPdus::Split {
            return Ok(cell.clone());
        }
        let octets: u32 = self.unit().iter().sum();
        let least = self.rlcs().map(RlcConfig::least_units).fold(1, u32::max);
        let whole = cell.of_whole(u64::from(octets) * 8, least.into());
        if whole.rates.is_empty() {
            let octets = octets * least;
            let message = format!("no row has room for a PDU of {octets} octets with its header in a block");
            return Err(ConfigError::new("rates", message));
        }
        Ok(whole)
    }

    /// Checks that some packets are delayed by retransmissions if they select artificial delays.
    fn check_delays(&self) -> Result<(), ConfigError> {
        let repeats = match self.down()? {
            AirKind::Dedicated(config) => config.harq.is_some(),
            AirKind::Cell(cell) => cell.harq.is_some(),
        };
        let repeats = repeats || self.up()?.harq.is_some() || self.rlc.mode == RlcMode::Acknowledged;
        if self.rlc.delays.is_none() || repeats {
            return Ok(());
        }
        let message = "with mode = \"unacknowledged\" and without `harq` nothing is retransmitted, so that no packet is \
                       delayed";
        Err(ConfigError::new("rlc.delays", message))
    }

    /// Checks that the RLC can receive PDUs out of order if HARQ delivers them so.
    fn check_order(&self, harq: Option<&HarqConfig>) -> Result<(), ConfigError> {
        if self.rlc.is_by_packet() || harq.is_none_or(|harq| harq.order == DeliveryOrder::InSequence) {
            return Ok(());
        }
        let message =
            "\"out-of-sequence\" needs rlc.pdu = \"packet\": the RLC of this `pdu` receives PDUs in sequence";
        Err(ConfigError::new("harq.order", message))
    }

    /// Checks that PDUs can fill the blocks that a cell grants.
    fn check_grants(&self, cell: &CellConfig) -> Result<(), ConfigError> {
        if !self.rlc.grants() {
            return Ok(());
        }
        if self.iub.is_some() {
            let message =
                "\"grant\": behind an `iub` the controller does not know the grants of the base station";
            return Err(ConfigError::new("rlc.pdu", message));
        }
        if cell.pdus == BlockPdus::Split {
            let message = "\"split\": rlc.pdu = \"grant\" has one PDU in a block";
            return Err(under(Direction::Down, ConfigError::new("pdus", message)));
        }
        if self.rlc.is_by_packet() {
            return Ok(());
        }
        let most = u64::from(u16::MAX) * 8;
        let bits = |row: &RateRow| row.bits.map_or(row.rate.as_bps() / u64::from(cell.slots), u64::from);
        match self.of_whole(cell)?.rates.iter().any(|row| bits(row) > most) {
            true => Err(under(
                Direction::Down,
                ConfigError::new("rates", format!("a block has more than the {most} bits of a PDU")),
            )),
            false => Ok(()),
        }
    }

    /// Returns an error for a setting that a cell of PDUs does not support.
    fn check_cell(&self, cell: &CellConfig) -> Result<(), ConfigError> {
        let (usual, flows) = (CellConfig::default(), "the base station sees PDUs, not flows");
        let said = [
            ("scheduler", cell.scheduler()?.tells_flows_apart(), flows),
            ("order", cell.order != usual.order, flows),
            ("short_flow", cell.short_flow != usual.short_flow, flows),
            (
                "buffer_per",
                cell.buffer_per != usual.buffer_per,
                "the controller has the buffer, `edge.buffer`",
            ),
            ("overflow", cell.overflow != usual.overflow, "the controller has the buffer, `edge.buffer`"),
            ("remainder", cell.remainder != usual.remainder, "`pdus` says what a block holds"),
        ];
        if let Some((key, _, why)) = said.into_iter().find(|(_, said, _)| *said) {
            return Err(ConfigError::new(key, format!("{why}: leave this key at its default")));
        }
        self.of_whole(cell).map(drop)
    }

    /// Classes of service, the unnamed class first.
    fn classes(&self) -> Vec<Class> {
        std::iter::once(Class::unnamed(self.rlc.clone())).chain(self.named.iter().cloned()).collect()
    }

    /// Settings of all RLC ends.
    fn rlcs(&self) -> impl Iterator<Item = &RlcConfig> {
        std::iter::once(&self.rlc).chain(self.named.iter().map(|class| &class.rlc))
    }

    /// Unit of room in a block: its payload and its header, octets. PDUs of all classes have equal sizes.
    pub(super) fn unit(&self) -> [u32; 2] {
        self.rlcs().map(RlcConfig::unit).max().unwrap_or_default()
    }

    /// Refuses weights if nothing obeys them.
    fn check_weights(&self) -> Result<(), ConfigError> {
        let Some(index) = self.named.iter().position(|class| class.rank.weight != 1) else { return Ok(()) };
        let message = match self.down()? {
            AirKind::Dedicated(_) => "on dedicated channels no scheduler obeys it",
            AirKind::Cell(cell) if name_of(&cell.scheduler) == "max-rate" => {
                "the scheduler \"max-rate\" ignores it"
            }
            AirKind::Cell(_) => return Ok(()),
        };
        Err(ConfigError::new(format!("class.{index}.weight"), message))
    }

    /// One-way delay of the Iub; zero without an Iub.
    pub(super) fn iub_delay(&self) -> Span {
        self.iub.as_ref().map_or(Span::ZERO, |iub| iub.delay)
    }

    /// Builds the bearer for users that share a cell.
    fn over_cell(&self, config: &CellConfig, context: BearerContext<'_>) -> Result<RadioAccess, ConfigError> {
        let (up, count, classes) = (self.up()?, self.count() as u32, self.classes());
        let ranks: Vec<_> = classes.iter().map(|class| class.rank).collect();
        let config = self.served(config)?.with_ranks(ranks.clone());
        let iub = self.iub.as_ref().map(|iub| Ok((iub, iub.control()?))).transpose();
        let iub = iub.map_err(|error: ConfigError| error.under("iub"))?;
        let blocks = Blocks::new(&config, &self.rlc, self.unit());
        let shared = Shared::new(&config, blocks, iub, (count, ranks), context);
        let shared = shared.map_err(|error| under(Direction::Down, error))?;
        // A receiver that misses a block because of a feedback error keeps later PDUs for the time `release`.
        let held = |harq: &HarqConfig| {
            if harq.feedback_error.probability() > 0.0 { harq.release } else { Span::ZERO }
        };
        let time = config.delay.mean() + config.slot() + config.harq.as_ref().map_or(Span::ZERO, held);
        let user = |number| {
            let octets = self.unit().iter().sum();
            let interface = |(iub, class)| {
                let (streams, files, block) = (context.streams, context.files, Span::ZERO);
                let name = &of_class(format!("down/iub/{number}"), class);
                Iub::new(iub, octets, shared.initial(), ErrorContext { streams, name, files, block })
            };
            let iubs = self.iub.iter().flat_map(|iub| (0..classes.len()).map(move |class| (iub, class)));
            let iubs = iubs.map(interface).collect::<Result<Vec<_>, _>>();
            // The time of a PDU from controller to terminal includes one Iub delay for the PDU, and one for the message
            // that allows it.
            let down = match iubs.map_err(|error| error.under("loss").under("iub"))? {
                iubs if iubs.is_empty() => Downwards::Granted(time),
                iubs => Downwards::Shared(iubs, self.iub_delay() * 2 + time),
            };
            User::new(&classes, down, up, number, context).map_err(|(side, error)| under(side, error))
        };
        let users = (0..count).map(user).collect::<Result<_, _>>()?;
        Ok(RadioAccess::of(users, Some(Box::new(shared)), &classes))
    }

    /// Returns the part of the bearer that a key changes while the bearer runs.
    fn changed<'a>(&self, key: &'a str) -> Result<AccessKey<'a>, ConfigError> {
        let path = key.strip_prefix("air.");
        let path = path.map(|path| (path.strip_prefix("down."), path.strip_prefix("up.")));
        let is_cell = matches!(self.down()?, AirKind::Cell(_));
        if let (AirKind::Dedicated(DedicatedConfig { allocation: Some(_), .. }), "air.down.rate") =
            (self.down()?, key)
        {
            return Err(ConfigError::new(key, "`air.down.allocation` sets the rate"));
        }
        let of = |direction, path| DedicatedKey::of(path).map(|key| AccessKey::Dedicated(direction, key));
        let changed = match path {
            Some((Some(down), _)) if is_cell => Some(AccessKey::Cell(down)),
            Some((Some(down), _)) => of(Direction::Down, down),
            Some((_, Some(up))) => of(Direction::Up, up),
            _ if self.iub.is_some() && (key == "iub.delay" || key == "iub.rate") => Some(AccessKey::Iub),
            _ if is_cell && key.starts_with("user.") => Some(AccessKey::Cell(key)),
            _ => None,
        };
        changed.ok_or_else(|| {
            let may = match is_cell {
                true => {
                    "`rate`, `delay` and `errors` of `air.up`, `loss`, `delay` and `harq.error` of `air.down`, and \
                     `delay` and `rate` of an `iub`"
                }
                false => "`rate`, `delay` and `errors` of `air.down` and `air.up`",
            };
            ConfigError::new(key, format!("is fixed when the bearer starts; {may} may change"))
        })
    }

    /// Returns the cell with its users, in which blocks hold complete PDUs.
    pub(super) fn served(&self, cell: &CellConfig) -> Result<CellConfig, ConfigError> {
        self.of_whole(cell).map_err(|error| under(Direction::Down, error))?.with_users(&self.users)
    }

    fn count(&self) -> u64 {
        self.users.iter().map(|user| u64::from(user.count)).sum()
    }
}

impl BearerConfig for RadioAccessConfig {
    fn uses_links(&self) -> bool {
        false
    }

    fn keeps_sent(&self) -> bool {
        true
    }

    fn outage(&self) -> Option<OutageKind> {
        Some(match self.down() {
            Ok(AirKind::Cell(_)) => OutageKind::Silent,
            _ => OutageKind::Fade,
        })
    }

    fn may_change(&self, key: &str) -> Result<(), ConfigError> {
        match (self.changed(key)?, self.down()?) {
            (AccessKey::Cell(path), AirKind::Cell(cell)) => {
                let checked = self.served(cell)?.check_changed(path);
                checked.map_err(|error| of_cell(path, error))
            }
            _ => Ok(()),
        }
    }

    fn changes(
        &self,
        key: &str,
        context: ChangeContext<'_>,
    ) -> Result<Vec<(Direction, Change)>, ConfigError> {
        let change = match (self.changed(key)?, self.down()?) {
            (AccessKey::Cell(path), AirKind::Cell(cell)) => {
                let change = self.served(cell)?.change(path, context);
                (Direction::Down, Change::Cell(change.map_err(|error| of_cell(path, error))?))
            }
            (AccessKey::Iub, _) => {
                let rate = self.iub.as_ref().and_then(|iub| iub.rate);
                (Direction::Down, Change::Iub(self.iub_delay(), rate))
            }
            (AccessKey::Dedicated(direction, key), down) => {
                let air = match (direction, down) {
                    (Direction::Down, AirKind::Dedicated(down)) => down,
                    _ => self.up()?,
                };
                let change = air.changes(key, &self.rlc, self.count() as u32, direction, context);
                (direction, change.map_err(|error| under(direction, error))?)
            }
            // Only a bearer over a cell returns the key of a cell.
            (AccessKey::Cell(_), AirKind::Dedicated(_)) => return Ok(Vec::new()),
        };
        Ok(vec![change])
    }

    fn hands_over(&self) -> bool {
        true
    }

    fn serving(&self, users: &[CellUser]) -> Result<Option<Arc<dyn BearerConfig>>, ConfigError> {
        let served = Self { users: users.to_vec(), ..self.clone() };
        if let AirKind::Cell(cell) = self.down()? {
            self.of_whole(cell).map_err(|error| under(Direction::Down, error))?.with_users(users)?;
        }
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

    /// The dedicated channels of a single user have a known capacity at any time.
    fn samples_capacity(&self) -> bool {
        self.count() > 1 || matches!(self.down(), Ok(AirKind::Cell(_)))
    }

    fn with_classes(&self, classes: &[ClassConfig]) -> Result<Option<Arc<dyn BearerConfig>>, ConfigError> {
        let with = Self { named: class::resolved(classes, &self.rlc)?, ..self.clone() };
        with.check_weights()?;
        Ok(Some(Arc::new(with)))
    }

    /// Returns the mean rate of all users together, and the delay.
    fn nominal(
        &self,
        direction: Direction,
        _: &BearerLinks,
        files: &dyn Files,
    ) -> Result<Nominal, ConfigError> {
        let (up, users) = (self.up()?, self.count());
        let dedicated = |air: &DedicatedConfig, direction| {
            let rate = air.nominal(&self.rlc, users, files);
            let rate = rate.map_err(|error| under(direction, error).under("bearer"))?;
            Ok(Nominal { rate: Rate::from_bps(rate.as_bps() * users), delay: air.mean_time() })
        };
        let down = match self.down()? {
            AirKind::Dedicated(air) => dedicated(air, Direction::Down)?,
            AirKind::Cell(cell) => {
                let under = |error| under(Direction::Down, error).under("bearer");
                let Nominal { rate, delay } = self
                    .of_whole(cell)
                    .map_err(under)?
                    .with_users(&self.users)?
                    .nominal(files)
                    .map_err(under)?;
                let [payload, header] = self.unit().map(u64::from);
                let rate = Rate::from_bps(rate.as_bps() * payload / (payload + header));
                Nominal { rate, delay: delay + self.iub_delay() }
            }
        };
        let up = dedicated(up, Direction::Up)?;
        let rate = [down.rate, up.rate][direction as usize];
        Ok(Nominal { rate, delay: down.delay + up.delay })
    }

    fn remarks(&self) -> Vec<String> {
        self.said()
    }

    fn gauges(&self) -> Vec<&'static str> {
        // Ends in acknowledged mode have all gauges of the other mode.
        let rlc = self.rlcs().find(|rlc| rlc.mode == RlcMode::Acknowledged).unwrap_or(&self.rlc);
        let below: &[_] = match self.down() {
            Ok(AirKind::Cell(_)) if self.iub.is_some() => {
                &["base_station_pdus", "base_station_target_ms", "credits"]
            }
            Ok(AirKind::Dedicated(DedicatedConfig { allocation: Some(_), .. })) => &["allocated_bps"],
            _ => &[],
        };
        [rlc.gauges(), below].concat()
    }

    fn build(&self, _: &BearerLinks, context: BearerContext<'_>) -> Result<AnyBearer, ConfigError> {
        let bearer = match self.down()? {
            AirKind::Dedicated(down) => {
                let airs = [down, self.up()?];
                let bearer = RadioAccess::new(&self.classes(), airs, self.count() as u32, context);
                bearer.map_err(|(direction, error)| under(direction, error))
            }
            AirKind::Cell(cell) => self.over_cell(cell, context),
        };
        Ok(AnyBearer::Other(Box::new(bearer.map_err(|error| error.under("bearer"))?)))
    }
}
