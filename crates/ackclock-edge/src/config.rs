//! The `[edge]` table of a scenario file, and the construction of an edge from it. Live links read the same `[edge]`
//! table as simulations.

use std::sync::Arc;

use crate::QUEUES;
use crate::{BEARERS, LINKS};
use ackclock_core::{Component, ConfigError, Rate, Size, Span, Streams, name_of};
use ackclock_link::queue::QueueConfig;
use ackclock_link::{
    BearerConfig, BearerContext, BearerLinks, BufferMeaning, Capacity, CellUser, ClassConfig, Direction,
    Files, LinkConfig, Nominal, QueuePlan,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::report::{Reporter, Whom};
use crate::{AgeLimit, Edge, REGULATORS, RegulatorConfig, ReportTable, Step};

/// The edge between the wired network and the radio: two links or another bearer, a buffer, a queue discipline, and a
/// regulator.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EdgeConfig {
    /// Size of the downlink queue: "10p", "30kB", "500ms" or "2bdp". A time stands for the bytes that the mean rate sends
    /// in this time; `age_limit` limits the time itself. By default the packet in transmission is not counted. For a box that only observes: window budget of a user's flows, "20p", "30kB", or "3bdp", which follows
    /// the measured rate and loop.
    pub buffer: Size,
    /// Packets that count against the buffer.
    pub buffer_counts: BufferCounts,
    /// Queue discipline of the data queue: a name, or a table with `kind`.
    pub queue: Component<dyn QueueConfig>,
    /// Time after which a packet leaves the downlink queue without being sent, like the discard timer of PDCP in LTE and
    /// of RLC in UMTS, or "none". The limit comes in addition to `buffer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_limit: Option<AgeLimit>,
    /// Regulator of the flows at the edge: a name, or a table with `kind`.
    pub regulator: Component<dyn RegulatorConfig>,
    /// Radio channel: a name, or a table with `kind`. The bearer "links" consists of two independent links, `down` and
    /// `up`. Any other bearer has a table for its own settings.
    pub bearer: Component<dyn BearerConfig>,
    /// Radio behind a bearer that only observes, with `buffer`, `queue`, `down`, `up` and the other keys of an edge
    /// without regulator. The observing box reads none of these keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Box<Self>>,
    /// Whether all flows share one channel or each flow has a separate channel.
    pub channel: ChannelSharing,
    /// Maximum number of regulated flows. Beyond `max_flows`, the regulation of the flow idle longest ends. The
    /// regulation of flows whose mobile has not acknowledged any data ends first. The regulation of acknowledged flows
    /// ends only if they fill more than three quarters of the flow table.
    pub max_flows: u32,
    /// Downlink: a table with `kind`. A cell serves the users listed in `user`, and has a separate buffer and queue for
    /// each flow.
    pub down: Component<dyn LinkConfig>,
    /// Uplink: a table with `kind`. With a cell, each user has a separate uplink.
    pub up: Component<dyn LinkConfig>,
    /// Users of a cell, or of another bearer that has users, in groups with equal settings.
    pub user: Vec<CellUser>,
    /// Classes of service of the bearer "radio-access", at most 4. Flows of a class have, for each user, a separate queue
    /// and separate radio link control. All other flows are in a class without a name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub class: Vec<ClassConfig>,
    /// Number of identical, independent cells. Each cell has its own users, flows and edge, as described by this file.
    pub cells: u32,
    /// Size of the uplink queue. The default size of the uplink queue is `buffer` in scenarios with uploads or an
    /// `up_regulator`, and unlimited in all other scenarios.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_buffer: Option<Size>,
    /// Queue discipline of the uplink: a name, or a table with `kind`. The default discipline of the uplink is
    /// "drop-tail".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_queue: Option<Component<dyn QueueConfig>>,
    /// Time after which a packet leaves the uplink queue without being sent, or "none".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_age_limit: Option<AgeLimit>,
    /// Regulator of uploads at the mobile, before the uplink queue: a name, or a table with `kind`. The default
    /// regulator of uploads is "none".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_regulator: Option<Component<dyn RegulatorConfig>>,
    /// Largest packet that the hop in front of the edge forwards, 576B to 65535B. Simulated senders know this MTU: their
    /// full packets are at most this large. In `ackclock link` the hop fragments larger IPv4 packets without DF, drops
    /// all other larger packets, and tells their senders its MTU by ICMP. Without `mtu`, packets of any size pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Size>,
    /// Whether the hop drops packets larger than `mtu` without telling their senders. Only for `ackclock link`:
    /// simulations refuse this key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub mtu_blackhole: bool,
    /// Reports about the radio's state that the edge sends. Without the table `report`, the edge sends no reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<ReportTable>,
    /// Changes of the links while the scenario runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<Step>,
}

/// Packets that count against the buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BufferCounts {
    /// Only waiting packets count against the buffer. One more packet may be in transmission without counting against
    /// the buffer. Packets that a trace link holds at its head always count as waiting.
    #[default]
    Waiting,
    /// Waiting packets and the packet in transmission count.
    WithTransmission,
}

/// Whether all flows share one channel or each flow has a separate channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelSharing {
    /// All flows share one channel with one link in each direction.
    #[default]
    Shared,
    /// Each flow has a separate channel with these properties, like a dedicated bearer. With a cell, each flow has a
    /// separate cell.
    Dedicated,
}

/// Properties of the wired path that determine the size of the buffer.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// Round-trip delay of the wired path without the radio.
    pub wired_round_trip: Span,
    /// Size of a full packet including headers, bytes.
    pub packet_bytes: u32,
}

impl Default for EdgeConfig {
    fn default() -> Self {
        Self {
            buffer: Size::Packets(50),
            buffer_counts: BufferCounts::Waiting,
            queue: "drop-tail".into(),
            age_limit: None,
            regulator: "none".into(),
            bearer: "links".into(),
            behind: None,
            channel: ChannelSharing::Shared,
            max_flows: 1 << 20,
            down: serde_json::json!({ "kind": "constant" }).into(),
            up: serde_json::json!({ "kind": "constant" }).into(),
            user: vec![CellUser::default()],
            class: Vec::new(),
            cells: 1,
            up_buffer: None,
            up_queue: None,
            up_age_limit: None,
            up_regulator: None,
            mtu: None,
            mtu_blackhole: false,
            report: None,
            at: Vec::new(),
        }
    }
}

impl ackclock_core::Config for EdgeConfig {
    fn check(&self) -> Result<(), ConfigError> {
        self.queue.config(&QUEUES).map_err(|error| error.under("queue"))?;
        self.up_queue().config(&QUEUES).map_err(|error| error.under("up_queue"))?;
        self.regulator.config(&REGULATORS).map_err(|error| error.under("regulator"))?;
        if let Some(regulator) = self.up_regulator()? {
            regulator.regulates_uplinks().map_err(|reason| ConfigError::new("up_regulator", reason))?;
        }
        self.check_mtu()?;
        if let Some(report) = &self.report {
            report.check().map_err(|error| error.under("report"))?;
        }
        let bearer = self.bearer()?;
        if let Some(side) = bearer.observes() {
            self.check_observed(side)?;
        } else if self.behind.is_some() {
            let message = "only an observing bearer has a radio behind it: bearer = \"observed\"";
            return Err(ConfigError::new("behind", message));
        }
        if !bearer.uses_links() {
            return self.check_without_links();
        }
        let down = self.downlink()?;
        if self.uplink()?.users().is_some() {
            return Err(ConfigError::new("up.kind", "only the downlink, `down`, can be a cell"));
        }
        if down.users().is_some() {
            self.check_cell()?;
        } else if self.user != Self::default().user {
            return Err(ConfigError::new("user", "only a cell has users: set down.kind = \"cell\""));
        } else if self.cells != 1 {
            return Err(ConfigError::new("cells", "only a cell can be repeated: set down.kind = \"cell\""));
        }
        self.check_steps()
    }
}

impl EdgeConfig {
    /// Builds the edge. The edge's links and queues draw random numbers from the streams of `streams` named `down/...`
    /// and `up/...`.
    ///
    /// # Errors
    /// Fails with the invalid key, relative to this table.
    pub fn build(
        &self,
        streams: &Streams,
        files: &dyn Files,
        around: Surroundings,
    ) -> Result<Edge, ConfigError> {
        let regulator = self.regulator.config(&REGULATORS).map_err(|error| error.under("regulator"))?;
        self.build_with(Arc::clone(regulator), streams, files, around)
    }

    /// Capacity of each user's downlink queue for flows without a class of service, and for each class.
    fn down_capacities(&self, share: Nominal, around: Surroundings) -> (Capacity, Vec<Capacity>) {
        let of = |size| capacity_of(size, share, around);
        let classes = self.class.iter().map(|class| of(class.buffer.unwrap_or(self.buffer)));
        (of(self.buffer), classes.collect())
    }

    /// Remarks on settings of the links or of the bearer whose effect is larger than it looks, each beginning with its
    /// key.
    ///
    /// # Errors
    /// Same errors as [`check`](ackclock_core::Config::check).
    pub fn remarks(&self) -> Result<Vec<String>, ConfigError> {
        let bearer = self.bearer()?;
        if !bearer.uses_links() {
            return Ok(bearer.remarks().into_iter().map(|remark| format!("bearer.{remark}")).collect());
        }
        let sides = [("down", self.downlink()?.remark()), ("up", self.uplink()?.remark())];
        Ok(sides.into_iter().filter_map(|(side, remark)| Some(format!("{side}.{}", remark?))).collect())
    }

    /// Returns whether the regulator acts on uploads in addition to downloads.
    pub fn regulates_uploads(&self) -> bool {
        self.regulator.config(&REGULATORS).is_ok_and(|regulator| regulator.regulates_uploads())
    }

    /// Returns whether a regulator of the edge reads the headers of the transport.
    ///
    /// # Errors
    /// Fails with the invalid key of a regulator's table.
    pub fn reads_headers(&self) -> Result<bool, ConfigError> {
        let down = self.regulator.config(&REGULATORS).map_err(|error| error.under("regulator"))?;
        Ok(down.reads_headers() || self.up_regulator()?.is_some_and(|up| up.reads_headers()))
    }

    /// Returns the queue discipline of each direction, by [`Direction`].
    ///
    /// # Errors
    /// Fails with the invalid key of a queue's table.
    pub fn queues(&self) -> Result<[Arc<dyn QueueConfig>; 2], ConfigError> {
        let of = |key: &str, table: &Component<dyn QueueConfig>| {
            table.config(&QUEUES).map(Arc::clone).map_err(|error| error.under(key))
        };
        Ok([of("queue", &self.queue)?, of("up_queue", &self.up_queue())?])
    }

    /// Returns the regulator of uploads, or `None` if uploads are unregulated.
    ///
    /// # Errors
    /// Fails with the invalid key of the regulator's table.
    pub fn up_regulator(&self) -> Result<Option<&Arc<dyn RegulatorConfig>>, ConfigError> {
        let Some(regulator) = self.up_regulator.as_ref().filter(|table| name_of(table) != "none") else {
            return Ok(None);
        };
        regulator.config(&REGULATORS).map(Some).map_err(|error| error.under("up_regulator"))
    }

    /// Builds the edge with the given regulator, which may be unregistered, in place of the one named by `regulator`.
    ///
    /// # Errors
    /// Fails with the same errors as [`build`](Self::build).
    pub fn build_with(
        &self,
        regulator: Arc<dyn RegulatorConfig>,
        streams: &Streams,
        files: &dyn Files,
        around: Surroundings,
    ) -> Result<Edge, ConfigError> {
        let (bearer, links) = (self.bearer()?, self.links()?);
        let nominal = |direction| bearer.nominal(direction, &links, files);
        let (capacity, classes) = &self.down_capacities(self.of_user(nominal(Direction::Down)?), around);
        let up_regulator = self.up_regulator()?;
        let down = self.plan(Direction::Down, *capacity, streams)?;
        let down = &down.filtering_acks(up_regulator.and_then(|regulator| regulator.ack_filter()));
        let nominal = nominal(Direction::Up)?;
        let up_buffer = self.up_buffer.or(up_regulator.map(|_| self.buffer));
        let capacity = up_buffer.map_or(Capacity::Unlimited, |size| capacity_of(size, nominal, around));
        let up = &self.plan(Direction::Up, capacity, streams)?.filtering_acks(regulator.ack_filter());
        let follows = if let Size::Bdp(times) = self.buffer { Some(times) } else { None };
        let context = BearerContext { down, up, classes, follows, meaning: self.meaning(), streams, files };
        let observes = bearer.observes().and_then(|side| regulator.observes(side).ok());
        let bearer = bearer.build(&links, context)?;
        let mut edge = Edge::new(bearer, regulator, self.max_flows as usize);
        if let Some(left_when) = observes {
            edge.observe(left_when);
        }
        if let Some(regulator) = up_regulator {
            edge.regulate_uploads(Arc::clone(regulator), self.max_flows as usize);
        }
        edge.serve_classes(self.class.len() as u32 + 1);
        edge.count_impaired(links.impaired());
        edge.count_aged(self.age_limits().map(|limit| limit.is_some()));
        edge.expect(self.changes(streams, files)?);
        edge.expect_handovers(self.handovers()?);
        if let Some(report) = &self.report {
            edge.report_by(Reporter::new(report.every, self.reported()?));
        }
        Ok(edge)
    }

    /// Plan of the queues of a direction.
    fn plan(
        &self,
        direction: Direction,
        capacity: Capacity,
        streams: &Streams,
    ) -> Result<QueuePlan, ConfigError> {
        let (table, key) = match direction {
            Direction::Down => (self.queue.clone(), "queue"),
            Direction::Up => (self.up_queue(), "up_queue"),
        };
        let queue = table.config(&QUEUES).map_err(|error| error.under(key))?;
        let name = ["down/queue", "up/queue"][direction as usize];
        let plan = QueuePlan::new(Arc::clone(queue), capacity, streams, name);
        Ok(plan.limiting_age(self.age_limits()[direction as usize]))
    }

    /// Subjects of the radio reports.
    fn reported(&self) -> Result<Whom, ConfigError> {
        let each = || Whom::Each(vec![Vec::new(); self.users() as usize]);
        Ok(self.cell_users()?.map_or(Whom::All, |_| each()))
    }

    /// Returns the table with defaults filled in: every component with all its keys, and the key `user` only for a
    /// cell.
    ///
    /// # Errors
    /// Fails with the same errors as [`check`](ackclock_core::Config::check).
    pub fn whole(&self) -> Result<Value, ConfigError> {
        let whole = Self {
            queue: self.queue.complete(&QUEUES).map_err(|error| error.under("queue"))?,
            up_queue: Some(self.up_queue().complete(&QUEUES).map_err(|error| error.under("up_queue"))?),
            regulator: self.regulator.complete(&REGULATORS).map_err(|error| error.under("regulator"))?,
            up_regulator: self
                .up_regulator
                .as_ref()
                .map(|regulator| regulator.complete(&REGULATORS).map_err(|error| error.under("up_regulator")))
                .transpose()?,
            down: self.down.complete(&LINKS).map_err(|error| error.under("down"))?,
            up: self.up.complete(&LINKS).map_err(|error| error.under("up"))?,
            bearer: self.bearer.complete(&BEARERS).map_err(|error| error.under("bearer"))?,
            at: self.whole_steps()?,
            behind: None,
            ..self.clone()
        };
        // Serialising a table of strings, numbers and lists cannot fail.
        let mut whole = serde_json::to_value(whole).unwrap_or(Value::Null);
        let (bearer, is_cell) = (self.bearer()?, self.downlink()?.users().is_some());
        if let (false, Some(table)) = (is_cell, whole.as_object_mut()) {
            table.retain(|key, _| key != "cells" && (key != "user" || bearer.users().is_some()));
            if !bearer.uses_links() {
                table.retain(|key, _| key != "down" && key != "up");
            }
        }
        if let Some(behind) = &self.behind {
            whole["behind"] = behind.whole().map_err(|error| error.under("behind"))?;
        }
        Ok(whole)
    }

    /// Mean rate of the downlink, and the sum of the delays in both directions.
    ///
    /// # Errors
    /// Fails if a link is invalid, or if a file named by a link is unreadable or invalid.
    pub fn nominal(&self, files: &dyn Files) -> Result<Nominal, ConfigError> {
        if let Some(behind) = &self.behind {
            return behind.nominal(files).map_err(|error| error.under("behind"));
        }
        self.bearer()?.nominal(Direction::Down, &self.links()?, files)
    }

    /// Names of the bearer's link-layer gauges, in the order of the values of [`Edge::gauges`].
    ///
    /// # Errors
    /// Fails if the bearer is invalid.
    pub fn gauges(&self) -> Result<Vec<&'static str>, ConfigError> {
        Ok(self.bearer()?.gauges())
    }

    /// Users of the radio, in groups. Returns `None` if the downlink is not a cell and the bearer has no users of its
    /// own.
    ///
    /// # Errors
    /// Fails if the downlink or the bearer is invalid.
    pub fn cell_users(&self) -> Result<Option<&[CellUser]>, ConfigError> {
        let radio = self.radio();
        let has_users = radio.bearer()?.users().is_some() || radio.downlink()?.users().is_some();
        Ok(has_users.then_some(radio.user.as_slice()))
    }

    /// Whether the capacity of the radio is known only at the end of a run.
    ///
    /// # Errors
    /// Fails if the downlink or the bearer is invalid.
    pub fn samples_capacity(&self) -> Result<bool, ConfigError> {
        let radio = self.radio();
        Ok(radio.bearer()?.samples_capacity() || radio.downlink()?.users().is_some())
    }

    /// Returns the number of the class of service with this name. The class without a name has number 0.
    ///
    /// # Errors
    /// Fails with the path `class` if there is no such class; the message lists the classes.
    pub fn class_named(&self, name: &str) -> Result<u8, ConfigError> {
        let classes = &self.radio().class;
        let number = (1..).zip(classes).find(|(_, class)| class.name == name);
        number.map(|(number, _)| number).ok_or_else(|| {
            let names: Vec<_> = classes.iter().map(|class| format!("\"{}\"", class.name)).collect();
            let there = match names.is_empty() {
                true => "is none".to_owned(),
                false => format!("are {}", names.join(", ")),
            };
            let message = format!("\"{name}\" is not the name of a table [[edge.class]]: there {there}");
            ConfigError::new("class", message)
        })
    }

    /// Returns the number of the class of service of flows whose first packet has this DSCP.
    pub fn class_of_dscp(&self, dscp: u8) -> u8 {
        let classes = (1..).zip(&self.radio().class);
        classes.into_iter().find(|(_, class)| class.dscp.contains(&dscp)).map_or(0, |(number, _)| number)
    }

    /// Returns the configuration of the downlink. The configuration of a cell contains the cell's users.
    pub(crate) fn downlink(&self) -> Result<Arc<dyn LinkConfig>, ConfigError> {
        let link = self.down.config(&LINKS).map_err(|error| error.under("down"))?;
        Ok(link.serving(&self.user)?.unwrap_or_else(|| Arc::clone(link)))
    }

    /// Returns the uplink's configuration.
    pub(crate) fn uplink(&self) -> Result<&Arc<dyn LinkConfig>, ConfigError> {
        self.up.config(&LINKS).map_err(|error| error.under("up"))
    }

    /// Returns the bearer's configuration. The configuration of a bearer with users contains its users.
    pub(crate) fn bearer(&self) -> Result<Arc<dyn BearerConfig>, ConfigError> {
        let bearer = self.bearer.config(&BEARERS).map_err(|error| error.under("bearer"))?;
        let bearer = bearer.serving(&self.user)?.unwrap_or_else(|| Arc::clone(bearer));
        if self.class.is_empty() {
            return Ok(bearer);
        }
        bearer.with_classes(&self.class)?.ok_or_else(|| {
            let kind = name_of(&self.bearer);
            let message =
                format!("a bearer of kind `{kind}` has no classes of service; bearer = \"radio-access\" has");
            ConfigError::new("class", message)
        })
    }

    /// Returns the configurations of downlink and uplink, for bearers that consist of links.
    fn links(&self) -> Result<BearerLinks, ConfigError> {
        Ok(BearerLinks { down: self.downlink()?, up: Arc::clone(self.uplink()?) })
    }

    /// MTU of the hop in front of the edge, bytes; `None` if packets of any size pass.
    pub fn mtu_bytes(&self) -> Option<u16> {
        match self.mtu? {
            Size::Bytes(bytes) => u16::try_from(bytes).ok(),
            _ => None,
        }
    }

    fn check_mtu(&self) -> Result<(), ConfigError> {
        if let Some(mtu) = self.mtu.filter(|_| self.mtu_bytes().is_none_or(|bytes| bytes < LEAST_MTU)) {
            return Err(ConfigError::new(
                "mtu",
                format!("{mtu} is not a size from {LEAST_MTU}B to {}B", u16::MAX),
            ));
        }
        if self.mtu_blackhole && self.mtu.is_none() {
            return Err(ConfigError::new(
                "mtu_blackhole",
                "a black hole drops packets larger than `mtu`; set `mtu`",
            ));
        }
        Ok(())
    }

    /// Refuses the keys of links if the bearer does not consist of links.
    fn check_without_links(&self) -> Result<(), ConfigError> {
        let (usual, kind) = (Self::default(), name_of(&self.bearer));
        let said = [
            ("down", self.down != usual.down),
            ("up", self.up != usual.up),
            ("user", self.user != usual.user && self.bearer()?.users().is_none()),
            ("cells", self.cells != usual.cells),
            ("buffer_counts", self.buffer_counts != usual.buffer_counts),
        ];
        if let Some((key, _)) = said.iter().find(|(_, said)| *said) {
            let message =
                format!("a bearer of kind `{kind}` does not have this key; bearer = \"links\" does");
            return Err(ConfigError::new(*key, message));
        }
        if self.buffer == Size::Packets(0) {
            let message = format!("0p: packets queue for a bearer of kind `{kind}`; use at least \"1p\"");
            return Err(ConfigError::new("buffer", message));
        }
        self.check_steps()
    }

    /// Number of users of a cell.
    fn users(&self) -> u32 {
        self.user.iter().map(|user| user.count).sum()
    }

    /// Share of the channel that determines the size of a buffer. In a cell, each buffer belongs to one user or flow,
    /// so the function returns the share of one user.
    fn of_user(&self, nominal: Nominal) -> Nominal {
        Nominal { rate: Rate::from_bps(nominal.rate.as_bps() / u64::from(self.users().max(1))), ..nominal }
    }

    /// Refuses settings that a cell does not support.
    fn check_cell(&self) -> Result<(), ConfigError> {
        if self.buffer == Size::Packets(0) {
            return Err(ConfigError::new(
                "buffer",
                "0p: packets queue for a slot of the cell; use at least \"1p\"",
            ));
        }
        if self.cells == 0 {
            return Err(ConfigError::new("cells", "0 is not above 0"));
        }
        if self.cells > 1 && self.channel == ChannelSharing::Dedicated {
            let message = "channel = \"dedicated\" already gives each flow its own cell";
            return Err(ConfigError::new("cells", message));
        }
        if self.queue.get("per").and_then(Value::as_str) == Some("user") {
            let message = "in a cell each flow has a separate queue; `down.buffer_per = \"user\"` lets the flows \
                           of a user share a buffer";
            return Err(ConfigError::new("queue.per", message));
        }
        Ok(())
    }

    fn up_queue(&self) -> Component<dyn QueueConfig> {
        self.up_queue.clone().unwrap_or_else(|| "drop-tail".into())
    }

    /// Age limits of the queues, by [`Direction`].
    pub fn age_limits(&self) -> [Option<Span>; 2] {
        [self.age_limit, self.up_age_limit].map(|limit| limit.and_then(AgeLimit::span))
    }

    fn meaning(&self) -> BufferMeaning {
        match self.buffer_counts {
            BufferCounts::Waiting => BufferMeaning::Waiting,
            BufferCounts::WithTransmission => BufferMeaning::WithTransmission,
        }
    }
}

/// Smallest MTU of a hop, bytes: every IPv4 host accepts packets of this size (RFC 791).
const LEAST_MTU: u16 = 576;

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

/// Round-trip time without queueing: the sum of wired path, radio, and one transmission time.
fn round_trip(nominal: Nominal, around: Surroundings) -> Span {
    around.wired_round_trip + nominal.delay + transmission(nominal.rate, around.packet_bytes)
}

fn transmission(rate: Rate, packet_bytes: u32) -> Span {
    if rate == Rate::ZERO { Span::ZERO } else { rate.time_for(packet_bytes.into()) }
}
