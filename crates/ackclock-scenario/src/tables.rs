//! Types for the tables of a scenario file. The doc comments define the meaning of each key.
//!
//! A component (link, queue, regulator, sender or workload) is kept as written: a name, or a table with `kind`. The
//! registry of the component parses the name or table.

use ackclock_core::results::Towards;
use ackclock_core::{Config, ConfigError, Size, Span, name_of};
use ackclock_edge::EdgeConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::relay::RelayTable;
use crate::{FlowGroup, Measure, PathTable, idle, memory};

/// A scenario: links, buffer and flows, the duration and the number of runs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tables {
    /// Version of the file format: 1.
    pub version: u32,
    /// Named set of defaults, from a publication or from current systems. Keys of the file override the defaults.
    pub preset: Option<String>,
    /// Simulated time of each run.
    pub duration: Span,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Number of runs. The runs differ only in their random numbers.
    pub runs: u32,
    /// Optional measurements, which cost time and memory: "rtt_ms" (200 quantiles of the RTT samples), "transit" (one-way delay of segments), "ack-gaps" (time
    /// between ACKs), "spurious" (spurious retransmits and timeouts), "utilisation" (link share of each transfer), "radio" (queues and PDUs of each user of `bearer = "radio-access"`).
    pub measure: Vec<Measure>,
    /// Wired path between the servers and the edge; with a relay, between the servers and the relay.
    pub path: PathTable,
    /// Split-connection proxy on the network side of the edge. Without this table there is no proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay: Option<RelayTable>,
    /// The edge: queue, regulator and radio channel.
    pub edge: EdgeConfig,
    /// Groups of identical flows.
    pub flow: Vec<FlowGroup>,
    /// Keys to vary, each with a list of values. Every combination of values is run.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub sweep: Map<String, Value>,
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

/// Largest number of runs of a sweep point. The results of all runs are kept in memory until the last run is done.
const MOST_RUNS: u32 = 1_000_000;

/// Longest simulated time of a run, seconds. With this limit, deadlines after the end of the run still fit into 64 bits
/// of nanoseconds.
const LONGEST: Span = Span::from_secs(1_000_000_000);

impl Tables {
    /// Whether any flow of the scenario is an upload.
    pub fn has_uploads(&self) -> bool {
        self.flow.iter().any(|flow| flow.towards == Towards::Server)
    }

    /// Fills in values that depend on other keys. With an upload, the uplink queue gets the size of the downlink queue. The
    /// flows' packets are at most as large as the edge's MTU.
    pub(crate) fn filled(mut self) -> Self {
        if self.has_uploads() {
            let radio = self.edge.radio_mut();
            radio.up_buffer.get_or_insert(radio.buffer);
        }
        if let Some(mtu) = self.edge.mtu_bytes() {
            for flow in &mut self.flow {
                if let Size::Bytes(bytes) = &mut flow.packet {
                    *bytes = (*bytes).min(mtu.into());
                }
            }
        }
        self
    }

    /// Checks constraints of the scenario that the types cannot express.
    ///
    /// # Errors
    /// Returns an error that names the key, its value and the values allowed.
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
            let message = "no relay uses the radio reports: `relay.steering` must not be \"none\"";
            return Err(ConfigError::new("edge.report", message));
        }
        for (index, flow) in self.flow.iter().enumerate() {
            let checked =
                flow.check().and_then(|()| self.check_user(flow)).and_then(|()| self.class(flow).map(drop));
            checked.map_err(|error| error.under(&format!("flow.{index}")))?;
        }
        self.check_measure()?;
        self.check_headers()?;
        self.check_uploads()?;
        self.check_flows()
    }

    /// Refuses regulators that have no effect: most kinds of `regulator` act only on downloads, `up_regulator` only on
    /// uploads.
    fn check_uploads(&self) -> Result<(), ConfigError> {
        let regulator = name_of(&self.edge.regulator);
        let acts = regulator == "none" || self.edge.regulates_uploads();
        if !acts && self.flow.iter().all(|flow| flow.towards == Towards::Server) {
            let message = format!(
                "`{regulator}` acts on the ACKs of downloads, but every flow is an upload: use \"none\" and \
                 edge.up_regulator = \"{regulator}\", or add a flow with `towards = \"mobile\"`"
            );
            return Err(ConfigError::new("edge.regulator", message));
        }
        if self.edge.up_regulator().map_err(|error| error.under("edge"))?.is_some() && !self.has_uploads() {
            let message =
                "acts on uploads, but there is none: add a flow with `towards = \"server\"`, or use \"none\"";
            return Err(ConfigError::new("edge.up_regulator", message));
        }
        Ok(())
    }

    /// Checks that the bearer has results of each user, if they are measured.
    fn check_measure(&self) -> Result<(), ConfigError> {
        let radio = &self.edge.radio().bearer;
        if self.measure.contains(&Measure::Radio) && name_of(radio) != "radio-access" {
            let message = format!(
                "\"radio\" measures the users of bearer = \"radio-access\"; here the bearer is `{}`",
                name_of(radio)
            );
            return Err(ConfigError::new("measure", message));
        }
        Ok(())
    }

    /// Refuses boxes that need headers which a flow encrypts.
    fn check_headers(&self) -> Result<(), ConfigError> {
        let Some(index) = self.flow.iter().position(|flow| !flow.headers.are_clear()) else { return Ok(()) };
        let reader = match &self.relay {
            Some(_) => "a relay splits connections",
            None if self.edge.observes()?.is_some() => "the observing bearer measures with TCP headers",
            None => return Ok(()),
        };
        let message = format!("\"encrypted\": {reader}; only \"clear\" headers can be read");
        Err(ConfigError::new("headers", message).under(&format!("flow.{index}")))
    }

    /// Checks that the scenario has flows, and that the flows fit into memory.
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

    /// The complete scenario with sorted keys: every key of every component, without preset and sweep.
    ///
    /// # Errors
    /// Returns the same errors as [`check`](Self::check).
    pub fn complete(&self) -> Result<Value, ConfigError> {
        let flow = |(index, flow): (usize, &FlowGroup)| {
            flow.complete().map_err(|error| error.under(&format!("flow.{index}")))
        };
        let flow = self.flow.iter().enumerate().map(flow).collect::<Result<_, _>>()?;
        let relay = self.relay.as_ref().map(RelayTable::complete).transpose();
        let relay = relay.map_err(|error| error.under("relay"))?;
        let whole = Self { preset: None, relay, flow, sweep: Map::new(), ..self.clone() };
        // Serialisation cannot fail, because the tables consist of strings, numbers and lists.
        let mut whole = serde_json::to_value(whole).unwrap_or(Value::Null);
        whole["edge"] = self.edge.whole().map_err(|error| error.under("edge"))?;
        idle::remove(&mut whole, &idle::of(&self.flow, self.relay.as_ref())?);
        tidy(&mut whole);
        Ok(whole)
    }

    /// Number of the flow's class of service; 0 for the class without a name.
    pub(crate) fn class(&self, flow: &FlowGroup) -> Result<u8, ConfigError> {
        flow.class.as_ref().map_or(Ok(0), |name| self.edge.class_named(name))
    }

    /// Checks that the flow's `user` names an existing `[[edge.user]]` table, if the edge is a cell.
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

/// Sorts the keys of a JSON value and removes keys without a value, because TOML has no null.
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
