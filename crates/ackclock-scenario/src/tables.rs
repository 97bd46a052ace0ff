//! The tables of a scenario file as types. What each key means stands here and nowhere else.
//!
//! Components (links, queues, regulators, senders, workloads) stay as written, a name or a table with `kind`: their
//! registries read them.

use ackclock_core::results::Towards;
use ackclock_core::{Config, ConfigError, FlowId, Rate, Seq, Size, Span, Streams, Time, name_of};
use ackclock_edge::EdgeConfig;
use ackclock_link::Loss;
use ackclock_tcp::config::Switch;
use ackclock_tcp::receiver::WindowPolicy;
use ackclock_tcp::{Course, FlowParams, HeaderSize, Place, SENDERS, SenderRow, WORKLOADS, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::acks::{ACKS, Acks};
pub use crate::relay::RelayTable;
use crate::{Measure, memory};

/// A scenario: what is sent by whom over what, for how long and how often.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tables {
    /// Version of this format; 1.
    pub version: u32,
    /// Defaults of a source or of today; every key of the file overrides them.
    pub preset: Option<String>,
    /// Simulated time.
    pub duration: Span,
    /// Seed of all chance.
    pub seed: u64,
    /// Runs, which differ in their chance alone.
    pub runs: u32,
    /// What is measured beside, because it costs time and memory: "transit" (how long segments travel), "ack-gaps", "spurious" (which
    /// reductions of a window were for nothing), and "utilisation" (what each transfer got of the link while it was under way).
    pub measure: Vec<Measure>,
    /// The wired part between the servers and the edge, or the relay where there is one.
    pub path: PathTable,
    /// A box before the edge that splits connections; without this table there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay: Option<RelayTable>,
    /// The edge: queue, regulator and the radio channel.
    pub edge: EdgeConfig,
    /// Flows, in groups of equal ones.
    pub flow: Vec<FlowGroup>,
    /// Keys and the values of which every combination is run.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub sweep: Map<String, Value>,
}

/// A wired part: one wire a flow.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PathTable {
    /// Rate of each wire.
    pub rate: Rate,
    /// Delay, one way.
    pub delay: Span,
    /// Probability that a packet is lost, in each direction.
    pub loss: Loss,
}

/// A group of equal flows.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FlowGroup {
    /// How many, in each cell where there are several; of a workload whose connections come and go, how many clients.
    pub count: u32,
    /// When the first begins.
    pub start: Span,
    /// How much later each further one begins.
    pub stagger: Span,
    /// How much later each begins at most: it is drawn for each flow of each run, every time up to this as likely.
    #[serde(skip_serializing_if = "is_none")]
    pub spread: Span,
    /// How much longer their route to the servers is than `path.delay`, one way; left out, as long.
    #[serde(skip_serializing_if = "is_none")]
    pub route: Span,
    /// The user to whom they belong. In a cell it is the number of a table `[[edge.user]]`, whose users get them in turn.
    pub user: u32,
    /// Which way the data goes: to the "mobile", a download, or to the "server", an upload. The mobile opens the connection in
    /// both cases.
    #[serde(skip_serializing_if = "Towards::is_mobile")]
    pub towards: Towards,
    /// Row of the sender table: a name, or a table with `kind` and options.
    pub sender: Value,
    /// A full packet on the wire, headers included.
    pub packet: Size,
    /// Headers of every segment, and so the size of an ACK: a size in bytes, or "real" for what the options really take.
    pub ack_size: AckSize,
    /// Largest window, in packets or bytes of payload.
    pub max_window: Size,
    /// Whether the receiver advertises the largest window from the beginning, or lets it grow as data arrives.
    pub receive_window: WindowPolicy,
    /// First window, in packets or bytes of payload.
    pub initial_window: Size,
    /// When the receiver acknowledges: "every" or "delayed".
    pub acks: Value,
    /// Whether the receiver of a sender with SACK reports what arrived twice (RFC 2883).
    pub dsack: Switch,
    /// What is sent: "bulk", "web", "ftp", or a table with `kind`.
    pub workload: Value,
}

fn is_none(span: &Span) -> bool {
    *span == Span::ZERO
}

/// Headers of a segment, as a scenario writes them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct AckSize(pub HeaderSize);

impl TryFrom<String> for AckSize {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match (text.as_str(), text.parse()) {
            ("real", _) => Ok(Self(HeaderSize::Real)),
            (_, Ok(Size::Bytes(bytes @ 1..=1500))) => Ok(Self(HeaderSize::Fixed(bytes as u16))),
            _ => Err(format!("`{text}` is neither \"real\" nor a size from \"1B\" to \"1500B\"")),
        }
    }
}

impl From<AckSize> for String {
    fn from(size: AckSize) -> Self {
        match size.0 {
            HeaderSize::Real => "real".to_owned(),
            HeaderSize::Fixed(bytes) => Size::Bytes(bytes.into()).to_string(),
        }
    }
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            version: 1,
            preset: None,
            duration: Span::from_secs(60),
            seed: 1,
            runs: 1,
            measure: Vec::new(),
            path: PathTable::default(),
            relay: None,
            edge: EdgeConfig::default(),
            flow: vec![FlowGroup::default()],
            sweep: Map::new(),
        }
    }
}

impl Default for PathTable {
    fn default() -> Self {
        Self { rate: Rate::from_bps(100_000_000), delay: Span::from_millis(1), loss: Loss::NONE }
    }
}

impl Default for FlowGroup {
    fn default() -> Self {
        Self {
            count: 1,
            start: Span::ZERO,
            stagger: Span::ZERO,
            spread: Span::ZERO,
            route: Span::ZERO,
            user: 0,
            towards: Towards::Mobile,
            sender: "reno".into(),
            packet: Size::Bytes(1000),
            ack_size: AckSize(HeaderSize::Fixed(40)),
            max_window: Size::Packets(500),
            receive_window: WindowPolicy::Whole,
            initial_window: Size::Packets(1),
            acks: "every".into(),
            dsack: Switch::Off,
            workload: "bulk".into(),
        }
    }
}

/// Most runs of a point: their results are kept until the last one is done.
const MOST_RUNS: u32 = 1_000_000;

/// Longest run, seconds: with nanoseconds in 64 bits there is room behind it for every deadline.
const LONGEST: Span = Span::from_secs(1_000_000_000);

impl Tables {
    /// Whether data of any flow goes to the server.
    pub fn has_uploads(&self) -> bool {
        self.flow.iter().any(|flow| flow.towards == Towards::Server)
    }

    /// With what the file leaves open filled in: an upload fills the queue of the mobile, which then has a bound.
    pub(crate) fn filled(mut self) -> Self {
        if self.has_uploads() {
            let radio = self.edge.radio_mut();
            radio.up_buffer.get_or_insert(radio.buffer);
        }
        self
    }

    /// Checks what the types alone cannot say.
    ///
    /// # Errors
    /// Names the key, its value and what is allowed.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.version != 1 {
            return Err(ConfigError::new(
                "version",
                format!("{} is not known; this is version 1", self.version),
            ));
        }
        if self.duration == Span::ZERO || self.duration > LONGEST {
            return Err(ConfigError::new(
                "duration",
                format!("{} is not between 0s and {LONGEST}", self.duration),
            ));
        }
        if self.runs == 0 || self.runs > MOST_RUNS {
            return Err(ConfigError::new("runs", format!("{} is not between 1 and {MOST_RUNS}", self.runs)));
        }
        self.path.check().map_err(|error| error.under("path"))?;
        if let Some(relay) = &self.relay {
            relay.check(&self.flow, self.edge.report.as_ref()).map_err(|error| error.under("relay"))?;
        }
        self.edge.check().map_err(|error| error.under("edge"))?;
        if self.edge.report.is_some() && !self.relay.as_ref().map_or(Ok(false), RelayTable::listens)? {
            let message =
                "nobody listens to reports of the radio: a relay does whose `steering` is not \"none\"";
            return Err(ConfigError::new("edge.report", message));
        }
        for (index, flow) in self.flow.iter().enumerate() {
            let checked = flow.check().and_then(|()| self.check_user(flow));
            checked.map_err(|error| error.under(&format!("flow.{index}")))?;
        }
        self.check_uploads()?;
        self.check_flows()
    }

    /// Most regulators act on downloads alone.
    fn check_uploads(&self) -> Result<(), ConfigError> {
        let regulator = name_of(&self.edge.regulator);
        let acts = regulator == "none" || self.edge.regulates_uploads();
        if !acts && self.flow.iter().all(|flow| flow.towards == Towards::Server) {
            let message = format!(
                "`{regulator}` acts on the ACKs of downloads, and every flow is an upload: \"none\", or a flow with \
                 `towards = \"mobile\"` beside them"
            );
            return Err(ConfigError::new("edge.regulator", message));
        }
        Ok(())
    }

    /// Checks that there are flows, and not more than memory has room for.
    fn check_flows(&self) -> Result<(), ConfigError> {
        let cells = u64::from(self.edge.radio().cells);
        let (mut flows, mut bytes) = (0, 0u64);
        for flow in &self.flow {
            let (many, each) =
                (u64::from(flow.count) * cells, if flow.lasts()? { memory::FLOW } else { memory::CLIENT });
            flows += many;
            let beside = if self.measure.is_empty() { 0 } else { memory::MEASURED };
            let ends = if self.relay.is_some() { memory::RELAYED } else { 0 };
            let each = each + beside + ends;
            bytes = bytes.saturating_add(many.saturating_mul(each));
        }
        if flows == 0 {
            return Err(ConfigError::new("flow", "there is no flow"));
        }
        memory::check("flow", &format!("{flows} flows"), bytes)
    }

    /// The scenario that says everything, with sorted keys: each component with all its keys, no preset, no sweep.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn complete(&self) -> Result<Value, ConfigError> {
        let flow = |(index, flow): (usize, &FlowGroup)| {
            flow.complete().map_err(|error| error.under(&format!("flow.{index}")))
        };
        let flow = self.flow.iter().enumerate().map(flow).collect::<Result<_, _>>()?;
        let relay = self.relay.as_ref().map(RelayTable::complete).transpose();
        let relay = relay.map_err(|error| error.under("relay"))?;
        let whole = Self { preset: None, relay, flow, sweep: Map::new(), ..self.clone() };
        // Tables of strings, numbers and lists always serialise.
        let mut whole = serde_json::to_value(whole).unwrap_or(Value::Null);
        whole["edge"] = self.edge.whole().map_err(|error| error.under("edge"))?;
        tidy(&mut whole);
        Ok(whole)
    }

    /// In a cell a flow belongs to users that there are.
    fn check_user(&self, flow: &FlowGroup) -> Result<(), ConfigError> {
        let Some(users) = self.edge.cell_users().map_err(|error| error.under("edge"))? else { return Ok(()) };
        if (flow.user as usize) < users.len() {
            return Ok(());
        }
        let message = match users.len() {
            1 => format!("{} is not a table [[edge.user]]: there is one, number 0", flow.user),
            many => format!(
                "{} is not a table [[edge.user]]: there are {many}, from 0 to {}",
                flow.user,
                many - 1
            ),
        };
        Err(ConfigError::new("user", message))
    }
}

impl PathTable {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.rate == Rate::ZERO {
            return Err(ConfigError::new("rate", format!("{} is not above 0", self.rate)));
        }
        Ok(())
    }
}

impl FlowGroup {
    fn check(&self) -> Result<(), ConfigError> {
        if self.count == 0 {
            return Err(ConfigError::new("count", "0 is not above 0"));
        }
        self.sender()?.build(self.params(FlowId(0), Time::ZERO, Seq(1))?)?;
        self.workload()?;
        self.acks().map(drop)
    }

    /// The same with every key of its components.
    fn complete(&self) -> Result<Self, ConfigError> {
        Ok(Self {
            sender: SENDERS.complete(&self.sender).map_err(|error| error.under("sender"))?,
            acks: ACKS.complete(&self.acks).map_err(|error| error.under("acks"))?,
            workload: WORKLOADS.complete(&self.workload).map_err(|error| error.under("workload"))?,
            ..self.clone()
        })
    }

    /// The sender.
    pub(crate) fn sender(&self) -> Result<Box<dyn SenderRow>, ConfigError> {
        SENDERS.resolve(&self.sender).map_err(|error| error.under("sender"))
    }

    /// What is sent.
    pub(crate) fn workload(&self) -> Result<Box<dyn Workload>, ConfigError> {
        WORKLOADS.resolve(&self.workload).map_err(|error| error.under("workload"))
    }

    /// Whether each is a connection from its start on, not a client whose connections come and go.
    pub(crate) fn lasts(&self) -> Result<bool, ConfigError> {
        let place = Place { streams: Streams::new(0, 0), start: Time::ZERO, payload: 1 };
        Ok(matches!(self.workload()?.course(&place), Course::Connection(_)))
    }

    /// When the receiver acknowledges.
    pub(crate) fn acks(&self) -> Result<Box<dyn Acks>, ConfigError> {
        ACKS.resolve(&self.acks).map_err(|error| error.under("acks"))
    }

    /// What one flow of the group says of its sender, whose data begins with the number `first`.
    ///
    /// # Errors
    /// Where IP cannot carry `packet`.
    pub fn params(&self, flow: FlowId, start: Time, first: Seq) -> Result<FlowParams, ConfigError> {
        let packet = match self.packet {
            Size::Bytes(bytes @ 1..=65_535) => bytes as u16,
            other => {
                let message = format!("{other} is not the size of a packet, \"1B\" to \"65535B\"");
                return Err(ConfigError::new("packet", message));
            }
        };
        Ok(FlowParams {
            flow,
            start,
            packet,
            header: self.ack_size.0,
            max_window: self.max_window,
            initial_window: self.initial_window,
            first,
        })
    }
}

/// Sorts the keys, and leaves out those without a value: TOML has no null.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(table) => {
            table.retain(|_, value| !value.is_null());
            table.sort_keys();
            table.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}
