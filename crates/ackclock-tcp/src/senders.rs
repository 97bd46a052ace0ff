//! The sender table: names each kind of sender, which combines recovery, undo and congestion control.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use ackclock_core::{Config, ConfigError, Ecn, name_of};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::cc::abc::Abc;
use crate::cc::bbr::Bbr;
use crate::cc::bbr3::Bbr3;
use crate::cc::copa::Copa;
use crate::cc::cubic::Cubic;
use crate::cc::dctcp::Dctcp;
use crate::cc::held::{Held, MakeControl};
use crate::cc::prague::Prague;
use crate::cc::reno::Reno as RenoControl;
use crate::cc::westwood::{BandwidthFilter, Westwood};
use crate::cc::westwood_plus::WestwoodPlus;
use crate::cc::{BuildControl, CcContext};
use crate::config::{FlowParams, Halves, RowDefaults, SenderConfig, Switch, UndoKind};
use crate::ecn::EcnMode;
use crate::recovery::{DupThresh, NewReno, Recovery, Reno, Sack, Sack1};
use crate::sender::{Sender, TcpSender, context_of};
use crate::stack::Stack;

ackclock_core::registry! {
    /// Registry of all kinds of sender.
    pub static SENDERS: dyn SenderRow = "sender" {
        "reno" => Row<RenoRow>,
        "newreno" => Row<NewRenoRow>,
        "sack" => Row<SackRow>,
        "sack1" => Row<Sack1Row>,
        "eifel" => Row<EifelRow>,
        "westwood" => Row<WestwoodRow>,
        "westwood-plus" => Row<WestwoodPlusRow>,
        "cubic" => Row<CubicRow>,
        "bbr" => Row<BbrRow>,
        "bbr3" => Row<Bbr3Row>,
        "copa" => Row<CopaRow>,
        "dctcp" => Row<DctcpRow>,
        "prague" => Row<PragueRow>,
        "abc" => Row<AbcRow>,
    }
}

/// A configured kind of sender, which builds the senders of flows.
pub trait SenderRow: fmt::Debug + Send + Sync {
    /// Builds the sender of one flow.
    ///
    /// # Errors
    /// Returns an error if a packet has no room for data, or a window is invalid.
    fn build(&self, params: FlowParams) -> Result<Box<dyn Sender>, ConfigError>;

    /// Builds a sender whose congestion window can be [steered](Sender::steer). The sender's recovery comes from this
    /// row. While no controller steers the sender, it uses the congestion control of row `own` with the options of this
    /// row.
    ///
    /// # Errors
    /// Returns the same errors as [`build`](Self::build).
    fn build_steered(&self, params: FlowParams, own: &dyn SenderRow) -> Result<Box<dyn Sender>, ConfigError>;

    /// Constructor of this row's congestion control. The congestion control gets the options `config`.
    fn control(&self, config: &Arc<SenderConfig>) -> MakeControl;

    /// Options of the sender, including the row's defaults.
    fn config(&self) -> &SenderConfig;

    /// Options without effect, because of the kind of this sender or of its other options.
    fn idle_options(&self) -> Vec<&'static str> {
        self.idle_with(self.control_options())
    }

    /// Options without effect if the sender has a congestion control with the options `of_control` instead of its own.
    fn idle_with(&self, of_control: &[&'static str]) -> Vec<&'static str>;

    /// Options of the congestion control that not every row of the sender table uses.
    fn control_options(&self) -> &'static [&'static str];

    /// Codepoint of new data, if the receiver [counts all marks](EcnMode::counts_marks).
    fn codepoint(&self) -> Ecn {
        Ecn::Ect0
    }

    /// Whether the receiver should send SACK blocks.
    fn uses_sack(&self) -> bool;

    /// Whether the recovery of this kind can adapt `dup_thresh` to the bytes in flight.
    fn adapts_dup_thresh(&self) -> bool;
}

/// Names of the kinds of sender for which `can` holds, for a message.
fn names(can: impl Fn(&dyn SenderRow) -> bool) -> String {
    let row = |name: &&str| SENDERS.resolve(&(*name).into()).is_ok_and(|row| can(&*row));
    let names: Vec<_> = SENDERS.entries.iter().map(|entry| entry.name).filter(row).collect();
    names.join(", ")
}

/// Options that not every row of the sender table uses.
const OF_SOME_ROWS: [&str; 16] = [
    "recover_guard",
    "partial_ack_timer",
    "limited_transmit",
    "sack_memory",
    "prr",
    "growth",
    "halves",
    "initial_ssthresh",
    "loss_window",
    "response",
    "timestamp_tick",
    "copa",
    "cubic",
    "westwood",
    "prague",
    "bbr",
];

/// Says why `option` has no effect on the sender `table`: which other option or kind of sender it needs.
pub fn why_idle(table: &Value, option: &str) -> String {
    match option {
        "response" => return "has no effect without undo = \"eifel\"".to_owned(),
        "timestamp_tick" => return "has no effect without timestamps = \"on\"".to_owned(),
        _ => {}
    }
    let kind = name_of(table);
    let stack = table.get("stack").and_then(Value::as_str).unwrap_or("rfc");
    let uses = |stack: &str| {
        let row = |name: &str| SENDERS.resolve(&json!({ "kind": name, "stack": stack })).ok();
        let names = SENDERS.entries.iter().map(|entry| entry.name);
        let uses = |name: &&str| row(name).is_some_and(|row| !row.idle_options().contains(&option));
        names.filter(uses).collect::<Vec<_>>().join(", ")
    };
    let others = match uses(stack) {
        none if none.is_empty() => format!("{} with stack = \"rfc\"", uses("rfc")),
        others => others,
    };
    format!("has no effect on `{kind}` with stack = \"{stack}\"; it is an option of {others}")
}

/// Recovery that replaces `R` in the Linux stack.
type InLinux<R> = <R as Recovery>::InLinux;

/// Types of the components of a row.
pub trait SenderParts: 'static {
    /// Type of the loss detection and retransmission.
    type Recovery: Recovery + 'static;
    /// Type of the congestion control.
    type Control: BuildControl + 'static;
    /// Documentation text of the row.
    const HELP: &'static str;
    /// Default options particular to this row.
    const DEFAULTS: RowDefaults = RowDefaults::NONE;
}

/// A row of the sender table, with the options of the sender.
pub struct Row<P> {
    /// Options, shared by all senders of the row.
    config: Arc<SenderConfig>,
    parts: PhantomData<fn() -> P>,
}

/// Declares the component types of the rows of the sender table.
macro_rules! rows {
    ($($(#[doc = $help:literal])+ $name:ident = $recovery:ty, $control:ty $(, $defaults:expr)?;)+) => {$(
        $(#[doc = $help])+
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}

        impl SenderParts for $name {
            type Recovery = $recovery;
            type Control = $control;
            const HELP: &'static str = concat!($($help),+);
            $(const DEFAULTS: RowDefaults = $defaults;)?
        }
    )+};
}

rows! {
    /// Reno: the first acknowledgement of new data ends fast recovery, so each further loss in a window halves the
    /// congestion window again.
    RenoRow = Reno, RenoControl;
    /// NewReno (RFC 6582): one reduction per window of data, one retransmission per round trip.
    NewRenoRow = NewReno, RenoControl;
    /// SACK recovery (RFC 6675) with Reno's congestion window.
    SackRow = Sack, RenoControl;
    /// SACK recovery as in the ns-2 agent Sack1, with Reno's congestion window.
    Sack1Row = Sack1, RenoControl;
    /// Reno that undoes spurious reductions (Eifel: RFC 3522 and RFC 4015).
    EifelRow = Reno, RenoControl, RowDefaults { timestamps: Switch::On, undo: UndoKind::Eifel, ..RowDefaults::NONE };
    /// Westwood: at a loss, Reno's congestion window falls to the estimated bandwidth-delay product instead of halving.
    WestwoodRow = Reno, Westwood;
    /// Westwood+ with SACK recovery: one bandwidth sample per round trip.
    WestwoodPlusRow = Sack, WestwoodPlus;
    /// CUBIC (RFC 9438) with SACK recovery.
    CubicRow = Sack, Cubic;
    /// BBR version 1 with SACK recovery.
    BbrRow = Sack, Bbr;
    /// BBR version 3 (draft-ietf-ccwg-bbr, 3 August 2026) with SACK recovery.
    Bbr3Row = Sack, Bbr3;
    /// Copa (NSDI 2018) with SACK recovery: keeps a queue of a few packets by its delay, and competes with flows that
    /// fill the buffer.
    CopaRow = Sack, Copa;
    /// DCTCP (RFC 8257) with SACK recovery: reduces the congestion window by the fraction of marked bytes.
    DctcpRow = Sack, Dctcp, RowDefaults { ecn: EcnMode::Dctcp, ..RowDefaults::NONE };
    /// Prague (draft-briscoe-iccrg-prague-congestion-control-04) with SACK recovery: scalable congestion control for
    /// L4S queues.
    PragueRow = Sack, Prague, RowDefaults { ecn: EcnMode::Accurate, ..RowDefaults::NONE };
    /// ABC (NSDI 2020) with SACK recovery: each ACK grows or shrinks the window as the queue `abc-router` tells it.
    AbcRow = Sack, Abc, RowDefaults { ecn: EcnMode::Dctcp, ..RowDefaults::NONE };
}

impl<P: SenderParts> SenderRow for Row<P> {
    fn build(&self, params: FlowParams) -> Result<Box<dyn Sender>, ConfigError> {
        params.check(self.config.timestamps.unwrap_or(P::DEFAULTS.timestamps))?;
        let config = &self.config;
        Ok(match config.stack {
            Stack::Rfc => Box::new(TcpSender::<P::Recovery, P::Control>::new(config, P::DEFAULTS, params)),
            Stack::Linux => {
                Box::new(TcpSender::<InLinux<P::Recovery>, P::Control>::new(config, P::DEFAULTS, params))
            }
        })
    }

    fn build_steered(&self, params: FlowParams, own: &dyn SenderRow) -> Result<Box<dyn Sender>, ConfigError> {
        params.check(self.config.timestamps.unwrap_or(P::DEFAULTS.timestamps))?;
        let config = &self.config;
        let held = Held::new(own.control(config), context_of(config, P::DEFAULTS, &params));
        Ok(match config.stack {
            Stack::Rfc => {
                Box::new(TcpSender::<P::Recovery, Held>::with_control(config, P::DEFAULTS, params, held))
            }
            Stack::Linux => Box::new(TcpSender::<InLinux<P::Recovery>, Held>::with_control(
                config,
                P::DEFAULTS,
                params,
                held,
            )),
        })
    }

    fn control(&self, config: &Arc<SenderConfig>) -> MakeControl {
        let config = Arc::clone(config);
        let halves = config.halves.unwrap_or(P::Recovery::HALVES);
        Box::new(move |context| Box::new(P::Control::build(&config, context, halves)))
    }

    fn config(&self) -> &SenderConfig {
        &self.config
    }

    fn idle_with(&self, of_control: &[&'static str]) -> Vec<&'static str> {
        let (config, defaults) = (&self.config, P::DEFAULTS);
        let (of_recovery, knows_flight) = match config.stack {
            Stack::Rfc => (P::Recovery::OPTIONS, P::Recovery::KNOWS_FLIGHT),
            Stack::Linux => (InLinux::<P::Recovery>::OPTIONS, InLinux::<P::Recovery>::KNOWS_FLIGHT),
        };
        let is_idle = |option: &&str| match *option {
            "prr" => !knows_flight || !of_control.contains(option),
            "response" => config.undo.unwrap_or(defaults.undo) == UndoKind::None,
            "timestamp_tick" => config.timestamps.unwrap_or(defaults.timestamps) == Switch::Off,
            _ => !of_recovery.contains(option) && !of_control.contains(option),
        };
        OF_SOME_ROWS.iter().copied().filter(is_idle).collect()
    }

    fn control_options(&self) -> &'static [&'static str] {
        P::Control::OPTIONS
    }

    fn codepoint(&self) -> Ecn {
        P::Control::CODEPOINT
    }

    fn uses_sack(&self) -> bool {
        P::Recovery::USES_SACK
    }

    fn adapts_dup_thresh(&self) -> bool {
        P::Recovery::ADAPTS_DUP_THRESH
    }
}

impl<P: SenderParts> Row<P> {
    /// Creates a row of the sender table. Options that `config` leaves open get the defaults of the row.
    fn new(config: SenderConfig) -> Self {
        let config = SenderConfig {
            halves: config.halves.or(Some(P::Recovery::HALVES)),
            timestamps: config.timestamps.or(Some(P::DEFAULTS.timestamps)),
            undo: config.undo.or(Some(P::DEFAULTS.undo)),
            ecn: config.ecn.or(Some(P::DEFAULTS.ecn)),
            ..config
        };
        Self { config: Arc::new(config), parts: PhantomData }
    }
}

impl<P: SenderParts> Config for Row<P> {
    const RENAMED: &'static [(&'static str, &'static str)] = &[("repair", "stack")];

    fn chosen_defaults(table: &Value) -> Option<Value> {
        let stack = Stack::deserialize(table.get("stack")?).ok()?;
        serde_json::to_value(stack.defaults()).ok()
    }

    fn check(&self) -> Result<(), ConfigError> {
        self.config.check()?;
        if matches!(self.config.dup_thresh, DupThresh::Adaptive(_)) && !P::Recovery::ADAPTS_DUP_THRESH {
            let able = names(|row| row.adapts_dup_thresh());
            return Err(ConfigError::new("dup_thresh", format!("adaptive thresholds need SACK: use {able}")));
        }
        let by_time = self.config.stack == Stack::Linux && P::Recovery::USES_SACK;
        for (key, switch) in [("nacks", self.config.nacks), ("probe_timeout", self.config.probe_timeout)] {
            if switch == Switch::On && !by_time {
                let able = names(|row| row.uses_sack());
                let message = format!("needs stack = \"linux\" and a sender with SACK: {able}");
                return Err(ConfigError::new(key, message));
            }
        }
        match self.config.probe_timeout {
            Switch::On => self.config.check_probes(),
            Switch::Off => Ok(()),
        }
    }
}

impl<P: SenderParts> Default for Row<P> {
    fn default() -> Self {
        Self::new(SenderConfig::default())
    }
}

impl<P: SenderParts> Clone for Row<P> {
    fn clone(&self) -> Self {
        Self { config: Arc::clone(&self.config), parts: PhantomData }
    }
}

impl<P: SenderParts> fmt::Debug for Row<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}

impl<P: SenderParts> Serialize for Row<P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.config.serialize(serializer)
    }
}

impl<'de, P: SenderParts> Deserialize<'de> for Row<P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        SenderConfig::deserialize(deserializer).map(Self::new)
    }
}

impl<P: SenderParts> JsonSchema for Row<P> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        SenderConfig::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = SenderConfig::json_schema(generator);
        schema.insert("description".to_owned(), P::HELP.trim().into());
        if let Some(stack) = schema.pointer_mut("/properties/stack").and_then(Value::as_object_mut) {
            stack.insert("x-defaults".to_owned(), json!({"linux": Stack::Linux.defaults()}));
        }
        schema
    }
}

impl BuildControl for RenoControl {
    fn build(config: &SenderConfig, context: &CcContext, halves: Halves) -> Self {
        Self::new(context, halves, config.growth)
    }
}

impl<F: BandwidthFilter> BuildControl for Westwood<F> {
    const OPTIONS: &'static [&'static str] = F::OPTIONS;

    fn build(config: &SenderConfig, context: &CcContext, halves: Halves) -> Self {
        Self::new(&config.westwood, context, halves, config.growth)
    }
}

impl BuildControl for Cubic {
    const OPTIONS: &'static [&'static str] =
        &["prr", "growth", "halves", "initial_ssthresh", "loss_window", "cubic"];

    fn build(config: &SenderConfig, context: &CcContext, _: Halves) -> Self {
        Self::new(&config.cubic, config.growth, *context)
    }
}

impl BuildControl for Copa {
    const OPTIONS: &'static [&'static str] = &["growth", "loss_window", "copa"];

    fn build(config: &SenderConfig, context: &CcContext, _: Halves) -> Self {
        Self::new(&config.copa, context)
    }
}

impl BuildControl for Abc {
    const OPTIONS: &'static [&'static str] = Cubic::OPTIONS;

    fn build(config: &SenderConfig, context: &CcContext, _: Halves) -> Self {
        Self::new(&config.cubic, config.growth, *context)
    }
}

impl BuildControl for Bbr {
    const OPTIONS: &'static [&'static str] = &["halves", "bbr"];

    fn build(config: &SenderConfig, context: &CcContext, _: Halves) -> Self {
        Self::new(&config.bbr, *context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Growth;
    use crate::rtt::Bounds;
    use ackclock_core::{FlowId, Span};

    #[test]
    fn every_row_builds_with_its_defaults() {
        for entry in SENDERS.entries {
            let row = SENDERS.resolve(&json!(entry.name)).unwrap();
            let sender = row.build(FlowParams::new(FlowId(0))).unwrap();
            assert_eq!(sender.cwnd() / sender.mss(), 1, "{}", entry.name);
            assert!((entry.schema)()["description"].as_str().unwrap().len() > 20);
        }
    }

    #[test]
    fn any_option_can_be_given_to_any_row_and_a_misspelt_one_to_none() {
        for entry in SENDERS.entries {
            let table =
                json!({"kind": entry.name, "recover_guard": "on", "rto": {"min": "200ms", "tick": "100ms"}});
            assert_eq!(SENDERS.resolve(&table).unwrap().config().recover_guard, Switch::On);
        }
        let error = |table| SENDERS.resolve(&table).unwrap_err().to_string();
        assert!(error(json!({"kind": "reno", "rto": {"mim": "1s"}})).starts_with("rto.mim: unknown field"));
        assert!(error(json!({"kind": "reno", "rto": {"min": "5min"}})).starts_with("rto.max: "));
        assert!(error(json!({"kind": "reno", "undo": "eifel"})).starts_with("undo: "));
        assert!(error(json!({"kind": "eifel", "timestamps": "off"})).starts_with("undo: "));
    }

    #[test]
    fn the_stack_chooses_what_nothing_else_says() {
        let config = |table| SENDERS.resolve(&table).unwrap().config().clone();
        let linux = config(json!({"kind": "newreno", "stack": "linux", "rto": {"min": "1s"}}));
        assert_eq!((linux.growth, linux.halves), (Growth::Bytes, Some(Halves::Cwnd)));
        assert_eq!((linux.rto.min, linux.rto.bounds), (Span::from_secs(1), Bounds::Variation));
        let rfc = config(json!({"kind": "newreno", "stack": "rfc"}));
        assert_eq!((rfc.growth, rfc.halves), (Growth::Acks, Some(Halves::Flight)));
        let error = |table| SENDERS.resolve(&table).unwrap_err().to_string();
        assert_eq!(error(json!({"kind": "sack", "repair": "linux"})), "repair: is called `stack` now");
        assert!(error(json!({"kind": "sack", "stack": "bsd"})).starts_with("stack: unknown variant `bsd`"));
    }

    /// BBR grows by its bandwidth estimate, and reads the bytes in flight at a loss. BBRv3 and Copa halve nothing at a
    /// loss, and read whether the window limits the sender, which depends on `growth`.
    #[test]
    fn units_of_growth_and_reduction_are_idle_where_a_model_sets_the_window() {
        for entry in SENDERS.entries {
            let idle = SENDERS.resolve(&json!(entry.name)).unwrap().idle_options();
            let idle = ["growth", "halves"].map(|option| idle.contains(&option));
            let expected = match entry.name {
                "bbr" => [true, false],
                "bbr3" | "copa" => [false, true],
                _ => [false, false],
            };
            assert_eq!(idle, expected, "{}", entry.name);
        }
    }

    #[test]
    fn a_packet_without_room_for_data_is_refused() {
        let row = SENDERS.resolve(&json!("reno")).unwrap();
        let error = row.build(FlowParams { packet: 40, ..FlowParams::new(FlowId(0)) }).err().unwrap();
        assert_eq!(error.to_string(), "packet: 40 B have no room for data after 40 B of headers");
    }

    #[test]
    fn a_refused_option_names_every_sender_that_has_it() {
        let options = [json!({"dup_thresh": "careful"}), json!({"nacks": "on", "stack": "linux"})];
        for options in options {
            let with = |kind: &str| {
                let mut table = options.clone();
                table["kind"] = kind.into();
                SENDERS.resolve(&table).map(drop)
            };
            let able = SENDERS.entries.iter().map(|entry| entry.name).filter(|name| with(name).is_ok());
            let able = able.collect::<Vec<_>>().join(", ");
            let error = with("reno").unwrap_err();
            assert!(!able.is_empty() && error.message.ends_with(&able), "{error}: {able}");
        }
    }
}
