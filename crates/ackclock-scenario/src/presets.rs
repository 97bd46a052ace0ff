//! Defaults by name: the settings of the source documents, and of today.
//!
//! A preset is a scenario with gaps. What its `[flow]` table says holds for every flow, what its `[sender]` table says for
//! every sender, whichever it is, and what its `[user]` table says for every user of a cell, where there is a cell.

use ackclock_core::ConfigError;
use ackclock_link::BEARERS;
use serde_json::Value;

use crate::FlowGroup;
use crate::tree::{Node, Origin, Tree, kind_in, merge};

/// One preset.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Name in scenario files.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(Preset { name: $name, text: include_str!(concat!("../presets/", $name, ".toml")) }),*]
    };
}

/// Every preset.
pub static PRESETS: &[Preset] =
    presets!["cr02", "cr04", "ac06", "l02", "m05", "m05-uplink", "hsdpa", "linux"];

/// The `[[flow]]` table of a file that has the preset called `name` and says nothing but `sender`, a name or a table.
///
/// # Errors
/// Where there is no such preset.
pub fn flow(name: &str, sender: &Value) -> Result<FlowGroup, ConfigError> {
    let Layers { mut tree, mut options, .. } = layers(&name.into())?;
    let of_flows = |tree: &mut Tree| tree.take("flow").unwrap_or_else(|| Tree::empty(Origin::Default));
    // A table of strings, numbers and lists always serialises.
    let defaults = serde_json::to_value(FlowGroup::default()).unwrap_or(Value::Null);
    let below = merge(Tree::of(defaults, &Origin::Default), of_flows(&mut tree));
    let written = Tree::of(sender.clone(), &Origin::Default).nested("sender");
    let merged = merge(below, merge(of_flows(&mut options), written));
    serde_json::from_value(merged.value())
        .map_err(|error| ConfigError::new("preset", format!("{name} is broken: {error}")))
}

/// What a preset lays below a file.
pub(crate) struct Layers {
    /// Defaults below what the file says.
    pub(crate) tree: Tree,
    /// Options of every sender, which stay whichever sender the file chooses.
    pub(crate) options: Tree,
    /// Keys of every group of users, those of files and overrides included.
    user: Tree,
}

impl Layers {
    /// Those of a file without a preset.
    pub(crate) fn none() -> Self {
        let [tree, options, user] = std::array::from_fn(|_| Tree::empty(Origin::Default));
        Self { tree, options, user }
    }

    /// The scenario with the options of every sender below what was said of that of a relay, if anything was.
    pub(crate) fn with_relay(&self, mut scenario: Tree) -> Tree {
        let options = self.options.get("flow").and_then(|flow| flow.get("sender"));
        let sender = scenario.get_mut("relay").and_then(|relay| relay.get_mut("sender"));
        if let (Some(options), Some(sender)) = (options, sender) {
            *sender = merge(options.clone(), sender.clone());
        }
        scenario
    }

    /// The scenario without what nobody but the preset says of links, where its bearer is not made of links.
    pub(crate) fn without_unused_links(&self, mut scenario: Tree) -> Tree {
        let Some(edge) = scenario.get_mut("edge") else { return scenario };
        let bearer = edge.get("bearer").and_then(|bearer| BEARERS.resolve(&bearer.value()).ok());
        if bearer.is_some_and(|bearer| !bearer.uses_links()) {
            for key in ["down", "up", "user", "cells"] {
                if edge.get(key).is_some_and(|table| table.said().is_none()) {
                    edge.take(key);
                }
            }
        }
        scenario
    }

    /// The whole scenario with the keys of users below what was said of each. Where the link is no cell it has no users.
    pub(crate) fn with_users(&self, mut scenario: Tree) -> Tree {
        let Some(edge) = scenario.get_mut("edge") else { return scenario };
        let is_cell = match edge.get("down").map(|down| &down.node) {
            Some(Node::Table(entries)) => kind_in(entries) == Some("cell"),
            Some(Node::Leaf(name)) => name == "cell",
            _ => false,
        };
        if let (true, Some(Tree { node: Node::List(groups), .. })) = (is_cell, edge.get_mut("user")) {
            for group in groups {
                let said = group.said().unwrap_or_else(|| Tree::empty(group.origin.clone()));
                *group = merge(self.user.clone(), said);
            }
        }
        scenario
    }
}

/// The layers of the preset that a scenario calls `name`.
pub(crate) fn layers(name: &Value) -> Result<Layers, ConfigError> {
    let Some(name) = name.as_str() else {
        return Err(ConfigError::new("preset", format!("{name} is not the name of a preset")));
    };
    let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) else {
        let names: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
        let message = format!("unknown preset `{name}`; known are {}", names.join(", "));
        return Err(ConfigError::new("preset", message));
    };
    let mut tree = Tree::parse(preset.name, preset.text)
        .map_err(|error| ConfigError::new("preset", format!("{name} is broken: {error}")))?;
    tree.set_origin(&Origin::Preset(preset.name.into()));
    let origin = tree.origin.clone();
    let mut table = |key| tree.take(key).unwrap_or_else(|| Tree::empty(origin.clone()));
    let (options, user) = (table("sender").nested("flow.sender"), table("user"));
    Ok(Layers { tree, options, user })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
