//! Configuration of a box: the `[box]` table, the list of subscribers, and the rule for each subscriber.
//!
//! The `[edge]` table of the same file gives the regulator and the buffer. The command reads `[edge]` as in a scenario.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::path::PathBuf;

use ackclock_core::{ConfigError, Prefix, Size, Span};
use ackclock_link::Side;
use ackclock_observe::ObservedConfig;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::observers::Observer;

/// The `[box]` table of the configuration file of `ackclock box`. `[edge]` in the same file is that of a scenario.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BoxTable {
    /// Network interface towards the radio.
    pub interface: String,
    /// Side of the radio on which the box is.
    #[serde(default = "mobile")]
    pub side: Side,
    /// Whether the box lowers windows; a box that does not lower windows only measures.
    #[serde(default)]
    pub act: bool,
    /// Networks of the subscribers. Without networks, all traffic belongs to one subscriber.
    #[serde(default)]
    pub subscribers: Vec<Prefix>,
    /// Length of the IPv6 prefix of one subscriber. An IPv4 subscriber is one address.
    #[serde(default = "prefix6")]
    pub prefix6: u32,
    /// CSV file with settings of individual subscribers, relative to the folder of the configuration file.
    pub file: Option<PathBuf>,
    /// Subscribers whose windows are lowered if `act` is true: a share, "50 %", or a list of networks. Default: all.
    #[serde(default)]
    pub act_on: ActOn,
    /// Networks of subscribers whose windows are never lowered.
    #[serde(default)]
    pub leave_alone: Vec<Prefix>,
    /// Maximum age of an allowance that is still applied.
    #[serde(default = "stale")]
    pub stale: Span,
    /// Loopback address at which Prometheus metrics are served.
    pub metrics: Option<String>,
}

const fn mobile() -> Side {
    Side::Mobile
}

const fn prefix6() -> u32 {
    64
}

const fn stale() -> Span {
    STALE
}

/// Regulator of a box for which none is chosen. Of those that a box has, it delays least at nearly the best goodput.
pub const DEFAULT_REGULATOR: &str = "forecast";
/// Buffer of a box for which none is chosen: what leaves in one loop, and twice as much for a rate that rises.
pub const DEFAULT_BUFFER: Size = Size::Bdp(3.0);

/// Default maximum age of an allowance that is still applied. An old allowance may apply for seconds without data, because an
/// unused window does no harm.
pub const STALE: Span = Span::from_secs(5);
/// Allowed values of `stale`.
const STALES: [Span; 2] = [Span::from_secs(1), Span::from_secs(60)];
/// Largest number of networks that the kernel's map of networks holds.
const MOST_NETWORKS: usize = 1024;

/// Subscribers whose windows a box lowers.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(try_from = "Value")]
#[schemars(!try_from, untagged)]
pub enum ActOn {
    /// Share of the subscribers, 0 to 1. A hash of the address decides, so each subscriber stays in its group.
    Share(#[schemars(with = "String")] f64),
    /// The subscribers of these networks.
    Networks(Vec<Prefix>),
}

impl Default for ActOn {
    fn default() -> Self {
        Self::Share(1.0)
    }
}

impl TryFrom<Value> for ActOn {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let wrong = || format!("{value} is neither a share from \"0 %\" to \"100 %\" nor a list of networks");
        match &value {
            Value::String(text) => {
                let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
                let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
                percent.map(|percent| Self::Share(percent / 100.0)).ok_or_else(wrong)
            }
            Value::Array(_) => {
                serde_json::from_value(value.clone()).map(Self::Networks).map_err(|error| error.to_string())
            }
            _ => Err(wrong()),
        }
    }
}

/// Regulator settings that a box applies to a subscriber.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Name of the subscriber in reports.
    pub name: Option<String>,
    /// Regulator: a name, or a table with `kind`.
    pub regulator: Value,
    /// Buffer that the connections of the subscriber share.
    pub buffer: Size,
    /// Whether the subscriber's windows may be lowered.
    pub act: bool,
}

/// Subscribers of a box, and the rule for each of them.
#[derive(Clone, Debug)]
pub struct Policy {
    side: Side,
    probe: Option<Span>,
    /// Networks of the subscribers; empty if all traffic belongs to one subscriber.
    networks: Vec<Prefix>,
    prefix6: u32,
    rule: Rule,
    individual: BTreeMap<Ipv6Addr, Rule>,
    act_on: ActOn,
    leave_alone: Vec<Prefix>,
}

impl Policy {
    /// Returns the policy of a box with one subscriber, whose traffic is all traffic of the interface. The box is on the side
    /// `side` of the radio.
    ///
    /// # Errors
    /// Fails if a box cannot use this regulator or this buffer.
    pub fn home(side: Side, regulator: &str, buffer: Size) -> Result<Self, ConfigError> {
        let policy = Self {
            side,
            probe: None,
            networks: Vec::new(),
            prefix6: prefix6(),
            rule: Rule { name: None, regulator: regulator.into(), buffer, act: true },
            individual: BTreeMap::new(),
            act_on: ActOn::default(),
            leave_alone: Vec::new(),
        };
        policy.observer(&policy.rule).map(|_| policy)
    }

    /// Side of the radio on which the box is.
    pub const fn side(&self) -> Side {
        self.side
    }

    /// Regulator of subscribers without settings of their own.
    pub const fn regulator(&self) -> &Value {
        &self.rule.regulator
    }

    /// Networks of the subscribers as IPv6 prefixes, each with the length of the prefix that tells one subscriber from
    /// another.
    pub fn prefixes(&self) -> Vec<(Ipv6Addr, u32, u32)> {
        if self.networks.is_empty() {
            return vec![(Ipv6Addr::UNSPECIFIED, 0, 0)];
        }
        let of_one = |network: &Prefix| {
            let (address, bits) = network.mapped();
            let own = if network.is_ipv4() { 128 } else { self.prefix6 };
            (address, bits, own)
        };
        self.networks.iter().map(of_one).collect()
    }

    /// Returns the rule for a subscriber, given the first address of its prefix; `None` if the address belongs to no
    /// subscriber.
    pub fn rule(&self, subscriber: Ipv6Addr) -> Option<Rule> {
        let within = |networks: &[Prefix]| networks.iter().any(|network| network.contains(subscriber.into()));
        if !self.networks.is_empty() && !within(&self.networks) {
            return None;
        }
        let rule = self.individual.get(&subscriber).unwrap_or(&self.rule).clone();
        let chosen = match &self.act_on {
            ActOn::Share(share) => place(subscriber) < *share,
            ActOn::Networks(networks) => within(networks),
        };
        Some(Rule { act: chosen && !within(&self.leave_alone), ..rule })
    }

    /// Name of a subscriber in reports: its address or prefix, or "all" if all traffic belongs to one subscriber.
    pub fn label(&self, subscriber: Ipv6Addr) -> String {
        match subscriber.to_ipv4_mapped() {
            _ if self.networks.is_empty() => "all".to_owned(),
            Some(address) => address.to_string(),
            None => format!("{subscriber}/{}", self.prefix6),
        }
    }

    /// Whether the box has a list of networks.
    pub const fn has_networks(&self) -> bool {
        !self.networks.is_empty()
    }

    /// Creates the observer of a subscriber's connections.
    ///
    /// # Errors
    /// Fails if a box cannot use the rule's regulator or buffer.
    pub fn observer(&self, rule: &Rule) -> Result<Observer, ConfigError> {
        let observed = ObservedConfig { side: self.side, probe: self.probe, ..ObservedConfig::default() };
        Observer::new(&rule.regulator, &observed, rule.buffer)
    }
}

/// Hash of a subscriber's address, uniform from 0 to below 1 (finaliser of SplitMix64).
fn place(subscriber: Ipv6Addr) -> f64 {
    let bits = subscriber.to_bits();
    let mut hash = (bits as u64) ^ ((bits >> 64) as u64).rotate_left(32);
    hash = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((hash ^ (hash >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Values of the `[edge]` table that a box uses.
#[derive(Clone, Debug)]
pub struct EdgeValues {
    /// Regulator: a name, or a table with `kind`.
    pub regulator: Value,
    /// Buffer that the connections of a subscriber share.
    pub buffer: Size,
    /// The table `edge.bearer` of a box that only observes, if the file has this table.
    pub observed: Option<ObservedConfig>,
}

impl BoxTable {
    /// Reads the `[box]` table of a configuration file.
    ///
    /// # Errors
    /// Fails with the key, the value and the allowed values.
    pub fn read(text: &str) -> Result<Self, ConfigError> {
        let whole = |message: &str| ConfigError::new("", message.trim_end());
        let mut file: toml::Table = toml::from_str(text).map_err(|error| whole(&error.to_string()))?;
        let table = file.remove("box").ok_or_else(|| whole("the table `[box]` is missing"))?;
        let table: Self = serde_path_to_error::deserialize(table).map_err(|error| {
            let path = error.path().to_string();
            let path = if path == "." { "box".to_owned() } else { format!("box.{path}") };
            ConfigError::new(path, error.inner().to_string().trim_end())
        })?;
        table.check().map_err(|error| error.under("box"))?;
        Ok(table)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let [least, most] = STALES;
        if !(least..=most).contains(&self.stale) {
            let message = format!("{} is not from {least} to {most}", self.stale);
            return Err(ConfigError::new("stale", message));
        }
        if !(1..=128).contains(&self.prefix6) {
            return Err(ConfigError::new("prefix6", format!("{} is not from 1 to 128", self.prefix6)));
        }
        if self.subscribers.len() > MOST_NETWORKS {
            let message = format!("{} networks, at most 1024", self.subscribers.len());
            return Err(ConfigError::new("subscribers", message));
        }
        let too_small = |network: &&Prefix| !network.is_ipv4() && network.mapped().1 > self.prefix6;
        if let Some(network) = self.subscribers.iter().find(too_small) {
            let message = format!("{network} is smaller than one subscriber, a /{}", self.prefix6);
            return Err(ConfigError::new("subscribers", message));
        }
        for (key, is_set) in [
            ("file", self.file.is_some()),
            ("act_on", self.act_on != ActOn::default()),
            ("leave_alone", !self.leave_alone.is_empty()),
        ] {
            if is_set && self.subscribers.is_empty() {
                return Err(ConfigError::new(key, "needs `subscribers`, a list of networks"));
            }
        }
        Ok(())
    }

    /// Returns the policy of this table. `list` is the content of the CSV file of subscribers, if the table names one.
    ///
    /// # Errors
    /// Fails with the key or the line, the value and the allowed values.
    pub fn policy(&self, edge: EdgeValues, list: Option<&str>) -> Result<Policy, ConfigError> {
        let observed =
            edge.observed.unwrap_or(ObservedConfig { side: self.side, ..ObservedConfig::default() });
        if observed.side != self.side {
            let message = format!("{} and box.side: {} differ", side(observed.side), side(self.side));
            return Err(ConfigError::new("edge.bearer.side", message));
        }
        let mut policy = Policy {
            side: self.side,
            probe: observed.probe,
            networks: self.subscribers.clone(),
            prefix6: self.prefix6,
            rule: Rule { name: None, regulator: edge.regulator, buffer: edge.buffer, act: true },
            individual: BTreeMap::new(),
            act_on: self.act_on.clone(),
            leave_alone: self.leave_alone.clone(),
        };
        policy.observer(&policy.rule).map_err(|error| error.under("edge"))?;
        if let Some(list) = list {
            let name = self.file.as_deref().unwrap_or("".as_ref()).display();
            policy.individual = policy.individuals(list).map_err(|(line, error)| {
                let path = format!("{name}:{line}");
                ConfigError::new(path, error)
            })?;
        }
        Ok(policy)
    }
}

const fn side(side: Side) -> &'static str {
    match side {
        Side::Network => "\"network\"",
        Side::Mobile => "\"mobile\"",
    }
}

/// First line of a list of subscribers.
const HEADINGS: &str = "key,name,regulator,buffer";

impl Policy {
    /// Reads the list of subscribers with settings of their own. An empty field means the value of the `[edge]` table.
    fn individuals(&self, list: &str) -> Result<BTreeMap<Ipv6Addr, Rule>, (usize, ConfigError)> {
        let lines = list.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        let mut lines = lines.filter(|(_, line)| !line.starts_with('#'));
        if lines.next().is_none_or(|(_, line)| line != HEADINGS) {
            return Err((1, ConfigError::new("", format!("the first line is not `{HEADINGS}`"))));
        }
        let mut rules = BTreeMap::new();
        for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
            let (key, rule) = self.individual(line).map_err(|error| (number, error))?;
            if rules.insert(key, rule).is_some() {
                return Err((number, ConfigError::new("key", "this subscriber has an earlier line")));
            }
        }
        Ok(rules)
    }

    fn individual(&self, line: &str) -> Result<(Ipv6Addr, Rule), ConfigError> {
        let fields: Vec<_> = line.split(',').map(str::trim).collect();
        let [key, name, regulator, buffer] = fields[..] else {
            let message = format!("{} fields, not the four of `{HEADINGS}`", fields.len());
            return Err(ConfigError::new("", message));
        };
        let network: Prefix = key.parse().map_err(|error: String| ConfigError::new("key", error))?;
        let (address, bits) = network.mapped();
        let own = if network.is_ipv4() { 128 } else { self.prefix6 };
        if bits != own && bits != 128 {
            let what = if network.is_ipv4() { "an address".to_owned() } else { format!("a /{own}") };
            return Err(ConfigError::new("key", format!("`{key}` is not one subscriber, {what}")));
        }
        let mask = u128::MAX.checked_shl(128 - own).unwrap_or(0);
        let address = Ipv6Addr::from_bits(address.to_bits() & mask);
        if self.rule(address).is_none() {
            return Err(ConfigError::new("key", format!("`{key}` is in no network of `box.subscribers`")));
        }
        let mut rule = self.rule.clone();
        rule.name = Some(name.to_owned()).filter(|name| !name.is_empty());
        if !regulator.is_empty() {
            rule.regulator = regulator.into();
        }
        if !buffer.is_empty() {
            rule.buffer = buffer.parse().map_err(|error| ConfigError::new("buffer", error))?;
        }
        self.observer(&rule)?;
        Ok((address, rule))
    }
}
