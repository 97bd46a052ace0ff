//! Overrides that change the kind of a component. Options that the new kind also has stay; other options are dropped
//! and reported.
//!
//! Only overrides keep the options of a component whose kind changes. A component in the file replaces the whole
//! component of its preset if their kinds differ.

use std::fmt;

use ackclock_core::{ConfigError, Entry, Registry};
use ackclock_edge::QUEUES;
use ackclock_edge::{BEARERS, LINKS};
use ackclock_edge::{REGULATORS, STEERINGS};
use ackclock_link::errors::ERRORS;
use ackclock_radio::radio_access::{AIRS, FLOW_CONTROLS};
use ackclock_radio::scheduler::SCHEDULERS;
use ackclock_tcp::{SENDERS, WORKLOADS};
use serde_json::{Map, Value};

use crate::acks::ACKS;
use crate::tree::{Node, Origin, Tree, kind_in, merge};

/// An option dropped because the new kind of its component does not have it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dropped {
    /// Dotted path of the option, without list indices if it applies to every flow.
    pub key: String,
    /// The new kind of the component.
    pub kind: String,
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (`{}` has no such key)", self.key, self.kind)
    }
}

impl Tree {
    /// Applies an override to the value at a dotted path. `dropped` receives the options that a change of kind removes.
    /// If the path leads to a list of tables without an index, the override applies to every table of the list.
    pub(crate) fn overlaid(
        mut self,
        path: &str,
        over: Self,
        dropped: &mut Vec<Dropped>,
    ) -> Result<Self, ConfigError> {
        self.check_path(path)?;
        let over = over.nested(path);
        change(&mut self, &over, "", dropped);
        Ok(merge(self, over))
    }
}

/// Gives each component of `base` the kind that `over` sets, so that merging keeps the remaining options.
fn change(base: &mut Tree, over: &Tree, path: &str, dropped: &mut Vec<Dropped>) {
    if let (Node::Table(entries), Some(new)) = (&mut base.node, kind_name(over))
        && let Some(old) = kind_in(entries).map(str::to_owned)
        && let Some(known) = keys_of_another_kind(&old, new, entries)
    {
        entries.retain_mut(|(key, option)| {
            if key == "kind" {
                *option = Tree { origin: over.origin.clone(), node: Node::Leaf(new.into()) };
            } else if !known.contains(key) {
                note(dropped, option, format!("{path}.{key}"), new);
                return false;
            } else if !option.origin.is_said() {
                // The option stays because of the override, so the override is the option's origin.
                option.set_origin(&over.origin);
            }
            true
        });
    }
    let Node::Table(over) = &over.node else { return };
    let (by_index, by_name): (Vec<_>, Vec<_>) =
        over.iter().partition(|(key, _)| key.parse::<usize>().is_ok());
    if let Node::List(items) = &mut base.node {
        let for_all =
            Tree { origin: Origin::Default, node: Node::Table(by_name.into_iter().cloned().collect()) };
        for (number, item) in items.iter_mut().enumerate() {
            let own = by_index.iter().filter(|(key, _)| key.parse() == Ok(number)).map(|(_, own)| own);
            own.chain([&for_all]).for_each(|over| change(item, over, path, dropped));
        }
        return;
    }
    for (key, over) in over {
        if let Some(below) = base.get_mut(key) {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            change(below, over, &path, dropped);
        }
    }
}

/// Adds an option to `dropped`, unless the option came from a preset.
fn note(dropped: &mut Vec<Dropped>, option: &Tree, key: String, kind: &str) {
    let one = Dropped { key, kind: kind.to_owned() };
    if option.origin.is_said() && !dropped.contains(&one) {
        dropped.push(one);
    }
}

/// Component kind that a tree sets, either as a plain name or under `kind`.
fn kind_name(tree: &Tree) -> Option<&str> {
    match &tree.node {
        Node::Leaf(Value::String(name)) => Some(name),
        Node::Table(entries) => kind_in(entries),
        _ => None,
    }
}

/// Kinds of components, in the registry of `kind`, that have the option `key`.
pub(crate) fn kinds_with(kind: &str, key: &str) -> Vec<String> {
    fn in_registry<C: ?Sized>(registry: &Registry<C>, kind: &str, key: &str) -> Vec<String> {
        let has = |entry: &Entry<C>| (entry.schema)()["properties"].get(key).is_some();
        let rows = registry.rows().into_iter().filter(|_| registry.entry(kind).is_ok());
        rows.filter(|entry| has(entry)).map(|entry| format!("kind = \"{}\"", entry.name)).collect()
    }
    let mut found = in_registry(&LINKS, kind, key);
    found.extend(in_registry(&BEARERS, kind, key));
    found.extend(in_registry(&AIRS, kind, key));
    found.extend(in_registry(&FLOW_CONTROLS, kind, key));
    found.extend(in_registry(&QUEUES, kind, key));
    found.extend(in_registry(&SCHEDULERS, kind, key));
    found.extend(in_registry(&ERRORS, kind, key));
    found.extend(in_registry(&REGULATORS, kind, key));
    found.extend(in_registry(&STEERINGS, kind, key));
    found.extend(in_registry(&ACKS, kind, key));
    found.extend(in_registry(&WORKLOADS, kind, key));
    found
}

/// Keys of the component `new`; `None` unless `old` and `new` are different components of one registry.
/// `entries` are the present options, on which the use of others depends.
fn keys_of_another_kind(old: &str, new: &str, entries: &[(String, Tree)]) -> Option<Vec<String>> {
    fn in_registry<C: ?Sized>(registry: &Registry<C>, old: &str, new: &str) -> Option<Value> {
        registry.entry(old).and_then(|_| registry.entry(new)).ok().map(|entry| (entry.schema)())
    }
    if old == new {
        return None;
    }
    let schema = in_registry(&LINKS, old, new)
        .or_else(|| in_registry(&BEARERS, old, new))
        .or_else(|| in_registry(&AIRS, old, new))
        .or_else(|| in_registry(&FLOW_CONTROLS, old, new))
        .or_else(|| in_registry(&QUEUES, old, new))
        .or_else(|| in_registry(&SCHEDULERS, old, new))
        .or_else(|| in_registry(&ERRORS, old, new))
        .or_else(|| in_registry(&REGULATORS, old, new))
        .or_else(|| in_registry(&STEERINGS, old, new))
        .or_else(|| in_registry(&SENDERS, old, new))
        .or_else(|| in_registry(&ACKS, old, new))
        .or_else(|| in_registry(&WORKLOADS, old, new))?;
    let idle = idle_options(new, entries);
    let known = schema["properties"].as_object().into_iter().flatten().map(|(key, _)| key);
    Some(known.filter(|key| !idle.contains(&key.as_str())).cloned().collect())
}

/// Options that a sender of the kind `kind` with these options does not use; none if `kind` is no sender.
fn idle_options(kind: &str, entries: &[(String, Tree)]) -> Vec<&'static str> {
    let mut table: Map<String, Value> =
        entries.iter().map(|(key, tree)| (key.clone(), tree.value())).collect();
    table.insert("kind".to_owned(), kind.into());
    SENDERS.resolve(&Value::Object(table)).map_or_else(|_| Vec::new(), |row| row.idle_options())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SET: &str = "--set";

    fn overlaid(base: Value, path: &str, over: Value) -> (Value, Vec<String>) {
        let (base, over) = (Tree::of(base, &Origin::Line(1)), Tree::of(over, &Origin::Override(SET.into())));
        let mut dropped = Vec::new();
        let tree = base.overlaid(path, over, &mut dropped).unwrap();
        (tree.value(), dropped.into_iter().map(|one| one.key).collect())
    }

    #[test]
    fn another_kind_keeps_what_it_knows_and_names_what_it_does_not_however_it_is_written() {
        let base = json!({"down": {"kind": "variable", "rate": "1mbit", "redraw": "slot", "delay": "5ms"}});
        let kept = json!({"down": {"kind": "constant", "rate": "1mbit", "delay": "5ms"}});
        for (path, over) in [
            ("down.kind", json!("constant")),
            ("down", json!("constant")),
            ("down", json!({"kind": "constant"})),
        ] {
            assert_eq!(overlaid(base.clone(), path, over), (kept.clone(), vec!["down.redraw".to_owned()]));
        }
        let same = overlaid(base.clone(), "down.kind", json!("variable"));
        assert_eq!(same, (base, Vec::new()));
    }

    #[test]
    fn every_flow_changes_and_the_loss_is_named_once() {
        let flow = json!({"acks": {"kind": "delayed", "timeout": "40ms"}});
        let (tree, dropped) = overlaid(json!({"flow": [flow, flow]}), "flow.acks", json!("every"));
        assert_eq!(tree, json!({"flow": [{"acks": {"kind": "every"}}, {"acks": {"kind": "every"}}]}));
        assert_eq!(dropped, ["flow.acks.timeout"]);
        let (tree, _) = overlaid(json!({"flow": [flow, flow]}), "flow.1.acks", json!("every"));
        assert_eq!(tree["flow"][0], flow);
    }

    #[test]
    fn a_component_within_a_component_changes_too() {
        let base = json!({"down": {"kind": "cell", "scheduler": {"kind": "pf", "average": {"tc": 9}}}});
        let (tree, dropped) = overlaid(base, "down.scheduler", json!("round-robin"));
        assert_eq!(tree["down"], json!({"kind": "cell", "scheduler": {"kind": "round-robin"}}));
        assert_eq!(dropped, ["down.scheduler.average"]);
    }

    #[test]
    fn what_a_preset_said_stays_as_part_of_the_override_and_is_dropped_without_a_word() {
        let base = json!({"kind": "variable", "rate": "1mbit", "redraw": "slot"});
        let base = Tree::of(json!({ "down": base }), &Origin::Preset("x".into()));
        let over = Tree::of(json!("constant"), &Origin::Override(SET.into()));
        let mut dropped = Vec::new();
        let tree = base.overlaid("down", over, &mut dropped).unwrap();
        assert_eq!(tree.origin_of("down.rate"), &Origin::Override(SET.into()));
        assert_eq!((tree.get("down").unwrap().get("redraw").is_none(), dropped), (true, Vec::new()));
    }

    #[test]
    fn a_name_with_keys_stands_in_one_registry_alone() {
        let mut names: Vec<_> = crate::catalogue()
            .into_iter()
            .filter(|kind| !["tables", "presets"].contains(&kind.name))
            .flat_map(|kind| kind.components)
            .map(|component| component.name)
            .filter(|&name| name != "none")
            .collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
    }
}
