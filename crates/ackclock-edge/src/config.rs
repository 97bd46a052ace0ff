//! The `[edge]` table of a scenario file, and the edge that is built from it. The live world reads the same table.

use ackclock_core::{ConfigError, Rate, Size, Span, Streams, name_of};
use ackclock_link::queue::{QUEUES, QueueConfig};
use ackclock_link::{
    BEARERS, Bearer, BearerConfig, BearerContext, BearerLinks, BufferMeaning, Capacity, CellUser, Direction,
    Files, LINKS, LinkConfig, Nominal, QueuePlan,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::report::{Reporter, Whom};
use crate::{Edge, REGULATORS, RegulatorConfig, ReportTable, Step};

/// Between the wired network and the radio: a channel in each direction, a buffer, a queue discipline, a regulator.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EdgeConfig {
    /// What the data queue holds: packets waiting beside the one in transmission ("10p"), or "30kB", "500ms", "2bdp".
    pub buffer: Size,
    /// Which packets count against the buffer.
    pub buffer_counts: BufferCounts,
    /// Queue discipline of the data queue: a name, or a table with `kind`.
    pub queue: Value,
    /// Regulator: a name, or a table with `kind`.
    pub regulator: Value,
    /// What joins both directions of the radio: a name, or a table with `kind`. "links" are two that know nothing of each other,
    /// `down` and `up`; any other bearer says everything in its own table.
    pub bearer: Value,
    /// Behind a bearer that only observes: the radio that it observes, with `buffer`, `queue`, `down`, `up` and what else an edge without
    /// a regulator has. The box reads nothing of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Box<Self>>,
    /// Whether all flows share one channel or each has its own.
    pub channel: ChannelSharing,
    /// Most flows that are regulated at a time. Beyond it the longest quiet one is given up of those whose mobile has acknowledged
    /// nothing yet; of the others, where they are more than three quarters.
    pub max_flows: u32,
    /// The link towards the mobiles: a table with `kind`. A cell serves the users of `user`, and each flow has a buffer and a
    /// queue of its own in it.
    pub down: Value,
    /// The link from the mobiles: a table with `kind`. Beside a cell each user has one of its own.
    pub up: Value,
    /// The users of a cell, in groups of equal ones.
    pub user: Vec<CellUser>,
    /// How many such cells there are. Each has users and flows of its own, as many as the file says, and an edge; they share
    /// nothing.
    pub cells: u32,
    /// What the queue of the link from the mobiles holds. Left out it is what `buffer` says where there are uploads, and everything where
    /// there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_buffer: Option<Size>,
    /// Queue discipline of the link from the mobiles: a name, or a table with `kind`; "drop-tail" where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_queue: Option<Value>,
    /// What the edge tells of the radio; without this table nobody is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<ReportTable>,
    /// What changes while the scenario runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<Step>,
}

/// Which packets count against the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BufferCounts {
    /// Those waiting; one more may be in transmission. What a trace link keeps at its head counts in any case.
    #[default]
    Waiting,
    /// Those waiting and the one in transmission.
    WithTransmission,
}

/// Whether all flows share one channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelSharing {
    /// One channel, one link in each direction, for all flows.
    #[default]
    Shared,
    /// Each flow has a channel of its own with these properties, as over dedicated bearers; where it is a cell, a whole cell.
    Dedicated,
}

/// What an edge must know of what surrounds it, to size its buffer.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// Round-trip delay of the wired path.
    pub wired_round_trip: Span,
    /// A full packet on the wire, bytes.
    pub packet_bytes: u32,
}

impl Default for EdgeConfig {
    fn default() -> Self {
        Self {
            buffer: Size::Packets(50),
            buffer_counts: BufferCounts::Waiting,
            queue: "drop-tail".into(),
            regulator: "none".into(),
            bearer: "links".into(),
            behind: None,
            channel: ChannelSharing::Shared,
            max_flows: 1 << 20,
            down: serde_json::json!({ "kind": "constant" }),
            up: serde_json::json!({ "kind": "constant" }),
            user: vec![CellUser::default()],
            cells: 1,
            up_buffer: None,
            up_queue: None,
            report: None,
            at: Vec::new(),
        }
    }
}

impl ackclock_core::Config for EdgeConfig {
    fn check(&self) -> Result<(), ConfigError> {
        QUEUES.resolve(&self.queue).map_err(|error| error.under("queue"))?;
        self.up_queue()?;
        REGULATORS.resolve(&self.regulator).map_err(|error| error.under("regulator"))?;
        if let Some(report) = &self.report {
            report.check().map_err(|error| error.under("report"))?;
        }
        let bearer = self.bearer()?;
        if let Some(side) = bearer.observes() {
            self.check_observed(side)?;
        } else if self.behind.is_some() {
            let message = "only behind a box that observes is there another radio: bearer = \"observed\"";
            return Err(ConfigError::new("behind", message));
        }
        if !bearer.uses_links() {
            return self.check_without_links();
        }
        let down = self.downlink()?;
        if LINKS.resolve(&self.up).map_err(|error| error.under("up"))?.users().is_some() {
            return Err(ConfigError::new("up.kind", "a cell is the link towards the mobiles, `down`"));
        }
        if down.users().is_some() {
            self.check_cell()?;
        } else if self.user != Self::default().user {
            return Err(ConfigError::new("user", "only a cell has users: down.kind = \"cell\""));
        } else if self.cells != 1 {
            return Err(ConfigError::new("cells", "the channel is no cell: down.kind = \"cell\""));
        }
        self.check_steps()
    }
}

impl EdgeConfig {
    /// Builds the edge. Its links and queues draw from streams of `streams` called `down/...` and `up/...`.
    ///
    /// # Errors
    /// Names the key that is wrong, relative to the table.
    pub fn build(
        &self,
        streams: &Streams,
        files: &dyn Files,
        around: Surroundings,
    ) -> Result<Edge, ConfigError> {
        let regulator = REGULATORS.resolve(&self.regulator).map_err(|error| error.under("regulator"))?;
        self.build_with(regulator, streams, files, around)
    }

    /// Whether its regulator acts on uploads too.
    pub fn regulates_uploads(&self) -> bool {
        REGULATORS.resolve(&self.regulator).is_ok_and(|regulator| regulator.regulates_uploads())
    }

    /// Builds the edge with a regulator that need not stand in the registry, whatever `regulator` says.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_with(
        &self,
        regulator: Box<dyn RegulatorConfig>,
        streams: &Streams,
        files: &dyn Files,
        around: Surroundings,
    ) -> Result<Edge, ConfigError> {
        let (bearer, links) = (self.bearer()?, self.links()?);
        let nominal = |direction| bearer.nominal(direction, &links, files);
        let plan =
            |queue, capacity, name: &str| QueuePlan::new(queue, capacity, streams, format!("{name}/queue"));
        let queue = QUEUES.resolve(&self.queue).map_err(|error| error.under("queue"))?;
        let capacity = capacity_of(self.buffer, self.of_user(nominal(Direction::Down)?), around);
        let down = &plan(queue, capacity, "down");
        let nominal = nominal(Direction::Up)?;
        let capacity = self.up_buffer.map_or(Capacity::Unlimited, |size| capacity_of(size, nominal, around));
        let up = &plan(self.up_queue()?, capacity, "up");
        let context = BearerContext { down, up, meaning: self.meaning(), streams, files };
        let observes = bearer.observes().and_then(|side| regulator.observes(side).ok());
        let mut bearer = bearer.build(&links, context)?;
        if let Some(left_when) = observes {
            bearer.leave_when(left_when);
        }
        let mut edge = Edge::new(bearer, regulator, self.max_flows as usize);
        edge.expect(self.changes(streams, files)?);
        if let Some(report) = &self.report {
            let each = || Whom::Each(vec![Vec::new(); self.users() as usize]);
            let whom = self.cell_users()?.map_or(Whom::All, |_| each());
            edge.report_by(Reporter::new(report.every, whom));
        }
        Ok(edge)
    }

    /// The table that says everything: each component with all its keys, and the users of a cell alone.
    ///
    /// # Errors
    /// As [`check`](ackclock_core::Config::check).
    pub fn whole(&self) -> Result<Value, ConfigError> {
        let whole = Self {
            queue: QUEUES.complete(&self.queue).map_err(|error| error.under("queue"))?,
            up_queue: Some(QUEUES.complete(&self.up_queue_table()).map_err(|error| error.under("up_queue"))?),
            regulator: REGULATORS.complete(&self.regulator).map_err(|error| error.under("regulator"))?,
            down: LINKS.complete(&self.down).map_err(|error| error.under("down"))?,
            up: LINKS.complete(&self.up).map_err(|error| error.under("up"))?,
            bearer: BEARERS.complete(&self.bearer).map_err(|error| error.under("bearer"))?,
            at: self.whole_steps()?,
            behind: None,
            ..self.clone()
        };
        // A table of strings, numbers and lists always serialises.
        let mut whole = serde_json::to_value(whole).unwrap_or(Value::Null);
        let is_cell = self.downlink()?.users().is_some();
        if let (false, Some(table)) = (is_cell, whole.as_object_mut()) {
            table.retain(|key, _| key != "user" && key != "cells");
            if !self.bearer()?.uses_links() {
                table.retain(|key, _| key != "down" && key != "up");
            }
        }
        if let Some(behind) = &self.behind {
            whole["behind"] = behind.whole().map_err(|error| error.under("behind"))?;
        }
        Ok(whole)
    }

    /// What the channel is like in the mean: the rate downwards, and the delay of both directions.
    ///
    /// # Errors
    /// Where a link is wrong or a file that it names is.
    pub fn nominal(&self, files: &dyn Files) -> Result<Nominal, ConfigError> {
        if let Some(behind) = &self.behind {
            return behind.nominal(files).map_err(|error| error.under("behind"));
        }
        self.bearer()?.nominal(Direction::Down, &self.links()?, files)
    }

    /// Names of what the link layer of a bearer shows of its state, as [`Edge::gauges`] orders its values.
    ///
    /// # Errors
    /// Where the bearer is wrong.
    pub fn gauges(&self) -> Result<&'static [&'static str], ConfigError> {
        Ok(self.bearer()?.gauges())
    }

    /// The users of a cell, in groups; `None` where the channel is no cell.
    ///
    /// # Errors
    /// Where the link towards the mobiles is wrong.
    pub fn cell_users(&self) -> Result<Option<&[CellUser]>, ConfigError> {
        let radio = self.radio();
        Ok(radio.downlink()?.users().is_some().then_some(radio.user.as_slice()))
    }

    /// The link towards the mobiles, which knows its users where it is a cell.
    pub(crate) fn downlink(&self) -> Result<Box<dyn LinkConfig>, ConfigError> {
        let mut link = LINKS.resolve(&self.down).map_err(|error| error.under("down"))?;
        link.serve(&self.user)?;
        Ok(link)
    }

    /// The bearer.
    pub(crate) fn bearer(&self) -> Result<Box<dyn BearerConfig>, ConfigError> {
        BEARERS.resolve(&self.bearer).map_err(|error| error.under("bearer"))
    }

    /// The links that a bearer may be made of.
    fn links(&self) -> Result<BearerLinks, ConfigError> {
        let up = LINKS.resolve(&self.up).map_err(|error| error.under("up"))?;
        Ok(BearerLinks { down: self.downlink()?, up })
    }

    /// Checks that nothing is said of links where the bearer is not made of them.
    fn check_without_links(&self) -> Result<(), ConfigError> {
        let (usual, kind) = (Self::default(), name_of(&self.bearer));
        let said = [
            ("down", self.down != usual.down),
            ("up", self.up != usual.up),
            ("user", self.user != usual.user),
            ("cells", self.cells != usual.cells),
            ("buffer_counts", self.buffer_counts != usual.buffer_counts),
        ];
        if let Some((key, _)) = said.iter().find(|(_, said)| *said) {
            let message = format!("a bearer of kind `{kind}` has no such key; bearer = \"links\" has");
            return Err(ConfigError::new(*key, message));
        }
        if self.buffer == Size::Packets(0) {
            let message =
                format!("0p: over a bearer of kind `{kind}` a packet waits for its turn, \"1p\" at least");
            return Err(ConfigError::new("buffer", message));
        }
        self.check_steps()
    }

    /// How many users a cell has.
    fn users(&self) -> u32 {
        self.user.iter().map(|user| user.count).sum()
    }

    /// What the channel is like for one user: in a cell, whose buffers are a user's or a flow's, a share of it.
    fn of_user(&self, nominal: Nominal) -> Nominal {
        Nominal { rate: Rate::from_bps(nominal.rate.as_bps() / u64::from(self.users().max(1))), ..nominal }
    }

    /// Checks what a cell does not go together with.
    fn check_cell(&self) -> Result<(), ConfigError> {
        if self.buffer == Size::Packets(0) {
            return Err(ConfigError::new(
                "buffer",
                "0p: in a cell a packet waits for its slot, \"1p\" at least",
            ));
        }
        if self.cells == 0 {
            return Err(ConfigError::new("cells", "0 is not above 0"));
        }
        if self.cells > 1 && self.channel == ChannelSharing::Dedicated {
            let message = "where channel = \"dedicated\" each flow has a cell of its own";
            return Err(ConfigError::new("cells", message));
        }
        if self.queue.get("per").and_then(Value::as_str) == Some("user") {
            let message = "in a cell each flow has a queue of its own; `down.buffer_per = \"user\"` lets those of a \
                           user share a buffer";
            return Err(ConfigError::new("queue.per", message));
        }
        Ok(())
    }

    fn up_queue(&self) -> Result<Box<dyn QueueConfig>, ConfigError> {
        QUEUES.resolve(&self.up_queue_table()).map_err(|error| error.under("up_queue"))
    }

    fn up_queue_table(&self) -> Value {
        self.up_queue.clone().unwrap_or_else(|| "drop-tail".into())
    }

    fn meaning(&self) -> BufferMeaning {
        match self.buffer_counts {
            BufferCounts::Waiting => BufferMeaning::Waiting,
            BufferCounts::WithTransmission => BufferMeaning::WithTransmission,
        }
    }
}

fn capacity_of(size: Size, nominal: Nominal, around: Surroundings) -> Capacity {
    let bytes_in = |span: Span| Capacity::Bytes(nominal.rate.bytes_in(span).max(around.packet_bytes.into()));
    match size {
        Size::Packets(packets) => Capacity::Packets(packets),
        Size::Bytes(bytes) => Capacity::Bytes(bytes),
        Size::Time(span) => bytes_in(span),
        Size::Bdp(factor) => {
            let round_trip = round_trip(nominal, around);
            bytes_in(Span::from_secs_f64(round_trip.as_secs_f64() * factor))
        }
    }
}

/// Round-trip time without queueing: wire, radio, and one transmission.
fn round_trip(nominal: Nominal, around: Surroundings) -> Span {
    around.wired_round_trip + nominal.delay + transmission(nominal.rate, around.packet_bytes)
}

fn transmission(rate: Rate, packet_bytes: u32) -> Span {
    if rate == Rate::ZERO { Span::ZERO } else { rate.time_for(packet_bytes.into()) }
}
