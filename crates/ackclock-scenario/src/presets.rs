//! Named sets of default values: the settings of publications and of current systems.
//!
//! A preset is a partial scenario. The `[flow]` table of a preset applies to every flow, the `[sender]` table to every
//! sender of any kind, and the `[user]` table to every user of a cell or of another bearer with users.

use std::sync::{Arc, LazyLock, OnceLock};

use ackclock_core::ConfigError;
use ackclock_edge::BEARERS;
use ackclock_link::BearerConfig;
use serde_json::Value;

use crate::FlowGroup;
use crate::tree::{Node, Origin, Tree, kind_in, merge};

/// A named set of default values for scenario files.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Name of the preset in scenario files.
    pub name: &'static str,
    /// The preset as TOML text.
    pub text: &'static str,
}

impl Preset {
    fn parse(&self) -> Result<Layers, ConfigError> {
        let mut tree = Tree::parse(self.name, self.text)
            .map_err(|error| ConfigError::new("preset", format!("{} is broken: {error}", self.name)))?;
        tree.set_origin(&Origin::Preset(self.name.into()));
        let origin = tree.origin.clone();
        let mut table = |key| tree.take(key).unwrap_or_else(|| Tree::empty(origin.clone()));
        let (options, user) = (table("sender").nested("flow.sender"), table("user"));
        Ok(Layers { tree, options, user })
    }
}

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(Preset { name: $name, text: include_str!(concat!("../presets/", $name, ".toml")) }),*]
    };
}

/// List of all presets.
pub static PRESETS: &[Preset] =
    presets!["cr02", "cr04", "ac06", "l02", "m05", "m05-uplink", "hsdpa", "hsdpa-mac", "lte", "nr", "linux"];

/// `[[flow]]` table of a file that uses the preset `name` and sets only `sender` (a name or a table).
///
/// # Errors
/// Returns an error if no preset is called `name`.
pub fn flow(name: &str, sender: &Value) -> Result<FlowGroup, ConfigError> {
    let Layers { mut tree, mut options, .. } = layers(&name.into())?.clone();
    let of_flows = |tree: &mut Tree| tree.take("flow").unwrap_or_else(|| Tree::empty(Origin::Default));
    // Serialisation cannot fail, because a flow group consists of strings, numbers and lists.
    let defaults = serde_json::to_value(FlowGroup::default()).unwrap_or(Value::Null);
    let below = merge(Tree::of(defaults, &Origin::Default), of_flows(&mut tree));
    let written = Tree::of(sender.clone(), &Origin::Default).nested("sender");
    let merged = merge(below, merge(of_flows(&mut options), written));
    serde_json::from_value(merged.value())
        .map_err(|error| ConfigError::new("preset", format!("{name} is broken: {error}")))
}

/// Default values that a preset adds below the values of a file.
#[derive(Clone)]
pub(crate) struct Layers {
    /// Default values of the scenario; keys in the file override these values.
    pub(crate) tree: Tree,
    /// Default options for any sender that the file chooses.
    pub(crate) options: Tree,
    /// Default values of every `[[edge.user]]` table, including tables from files and overrides.
    user: Tree,
}

impl Layers {
    /// Empty defaults, for a file without a preset.
    pub(crate) fn none() -> Self {
        let [tree, options, user] = std::array::from_fn(|_| Tree::empty(Origin::Default));
        Self { tree, options, user }
    }

    /// Adds the default sender options to `relay.sender`, if the scenario has a relay.
    pub(crate) fn with_relay(&self, mut scenario: Tree) -> Tree {
        let options = self.options.get("flow").and_then(|flow| flow.get("sender"));
        let sender = scenario.get_mut("relay").and_then(|relay| relay.get_mut("sender"));
        if let (Some(options), Some(sender)) = (options, sender) {
            *sender = merge(options.clone(), sender.clone());
        }
        scenario
    }

    /// Moves the radio of the preset behind a box that only observes, if the edge of `scenario` is such a box. Returns
    /// `None` if nothing moves.
    pub(crate) fn behind_a_box(&self, scenario: &Tree) -> Option<Self> {
        let observes = bearer_of(scenario.get("edge")?).is_some_and(|bearer| bearer.observes().is_some());
        let radio = self.tree.get("edge").filter(|_| observes)?.clone();
        // Groups of users get the preset's defaults only if there is a group.
        let users = Tree::of(serde_json::json!({ "user": [{}] }), &Origin::Default);
        let (mut tree, options, user) = (self.tree.clone(), self.options.clone(), self.user.clone());
        drop(tree.take("edge"));
        Some(Self { tree: merge(tree, merge(users, radio).nested("edge.behind")), options, user })
    }

    /// Applies the preset to the edge, and to the radio behind an edge that only observes.
    pub(crate) fn of_edges(&self, mut scenario: Tree) -> Tree {
        if let Some(edge) = scenario.get_mut("edge") {
            self.of_edge(edge);
            edge.get_mut("behind").into_iter().for_each(|behind| self.of_edge(behind));
        }
        scenario
    }

    fn of_edge(&self, edge: &mut Tree) {
        Self::without_unused_links(edge);
        self.with_users(edge);
    }

    /// Removes the preset's keys of links and users if the bearer does not use them. Keys from the user's file stay.
    fn without_unused_links(edge: &mut Tree) {
        let Some(bearer) = bearer_of(edge).filter(|bearer| !bearer.uses_links()) else { return };
        let users: &[_] = if bearer.users().is_some() { &[] } else { &["user"] };
        for key in [&["down", "up", "cells"], users].concat() {
            if edge.get(key).is_some_and(|table| table.said().is_none()) {
                edge.take(key);
            }
        }
    }

    /// Adds the user defaults to each `[[edge.user]]` table of a cell or of another bearer with users.
    fn with_users(&self, edge: &mut Tree) {
        let has_users = bearer_of(edge).is_some_and(|bearer| bearer.users().is_some());
        let is_cell = match edge.get("down").map(|down| &down.node) {
            Some(Node::Table(entries)) => kind_in(entries) == Some("cell"),
            Some(Node::Leaf(name)) => name == "cell",
            _ => false,
        };
        if let (true, Some(Tree { node: Node::List(groups), .. })) =
            (is_cell || has_users, edge.get_mut("user"))
        {
            for group in groups {
                let said = group.said().unwrap_or_else(|| Tree::empty(group.origin.clone()));
                *group = merge(self.user.clone(), said);
            }
        }
    }
}

/// Bearer of an edge; `None` if its table is invalid, which the scenario check reports.
fn bearer_of(edge: &Tree) -> Option<Arc<dyn BearerConfig>> {
    BEARERS.resolve(&edge.get("bearer")?.value()).ok()
}

/// Default values of each preset, read when a scenario first uses the preset: a sweep uses it at every point.
static LAYERS: LazyLock<Vec<OnceLock<Layers>>> =
    LazyLock::new(|| PRESETS.iter().map(|_| OnceLock::new()).collect());

/// Default values of the preset that a scenario names in `preset`.
pub(crate) fn layers(name: &Value) -> Result<&'static Layers, ConfigError> {
    let Some(name) = name.as_str() else {
        return Err(ConfigError::new("preset", format!("{name} is not the name of a preset")));
    };
    let Some(place) = PRESETS.iter().position(|preset| preset.name == name) else {
        let names: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
        let message = format!("unknown preset `{name}`; known are {}", names.join(", "));
        return Err(ConfigError::new("preset", message));
    };
    if let Some(known) = LAYERS[place].get() {
        return Ok(known);
    }
    let layers = PRESETS[place].parse()?;
    Ok(LAYERS[place].get_or_init(|| layers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;
    use serde_json::json;

    #[test]
    fn the_radio_of_a_preset_is_behind_an_edge_that_only_observes() {
        let edge = "[edge]\nbuffer = \"3bdp\"\nbearer = { kind = \"observed\", side = \"network\" }\n";
        for preset in PRESETS.iter().filter(|preset| preset.text.contains("\n[edge")) {
            let radio = Scenario::load("x.toml", &format!("preset = \"{}\"\n", preset.name), &[]).unwrap();
            let text = format!("preset = \"{}\"\n{edge}", preset.name);
            let observed = Scenario::load("x.toml", &text, &[]).unwrap_or_else(|error| panic!("{error}"));
            let [radio, observed] =
                [&radio, &observed].map(|scenario| scenario.configuration()["edge"].clone());
            for key in ["buffer", "bearer", "down", "up", "user", "age_limit", "up_age_limit"] {
                assert_eq!(observed["behind"].get(key), radio.get(key), "{}: {key}", preset.name);
            }
            assert_eq!(observed["buffer"], "3bdp");
            assert!(observed.get("age_limit").is_none(), "{observed}");
        }
        let set = ["edge.bearer={kind=\"observed\",side=\"network\"}", "edge.behind.age_limit=50ms"];
        let observed = Scenario::load("x.toml", "preset = \"lte\"\n", &set.map(str::to_owned)).unwrap();
        assert_eq!(observed.configuration()["edge"]["behind"]["age_limit"], "50ms");
    }

    #[test]
    fn a_flow_of_a_preset_has_its_windows_and_the_options_of_its_senders_below_its_own() {
        let table = flow("linux", &json!({"kind": "bbr", "rto": {"min": "50ms"}})).unwrap();
        assert_eq!(
            (table.max_window.to_string(), table.initial_window.to_string()),
            ("6000000B".into(), "10p".into())
        );
        assert_eq!(table.sender["kind"], "bbr");
        assert_eq!(table.sender["handshake"], "on");
        assert_eq!(
            (&table.sender["rto"], &table.sender["stack"]),
            (&json!({"min": "50ms"}), &json!("linux"))
        );
        assert!(flow("windows", &json!("cubic")).unwrap_err().to_string().contains("known are cr02"));
    }
}
