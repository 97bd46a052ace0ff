//! Catalogue of all components that a scenario can name, read from the registries.

use ackclock_core::{Entry, Registry};
use ackclock_edge::QUEUES;
use ackclock_edge::{BEARERS, LINKS};
use ackclock_edge::{REGULATORS, STEERINGS};
use ackclock_link::errors::ERRORS;
use ackclock_radio::radio_access::{AIRS, FLOW_CONTROLS};
use ackclock_radio::scheduler::SCHEDULERS;
use ackclock_tcp::{SENDERS, WORKLOADS};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::acks::ACKS;
use crate::presets::PRESETS;
use crate::{FlowGroup, RunResult, Tables};

/// All components of one kind, for example all links.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Plural name of the kind, for example `links`.
    pub name: &'static str,
    /// Components of the kind, in the order of the registry.
    pub components: Vec<Component>,
}

/// A component that a scenario can name, with the keys of its table.
#[derive(Clone, Debug)]
pub struct Component {
    /// Name of the component in scenario files.
    pub name: &'static str,
    /// Documentation of the component.
    pub description: String,
    /// JSON schema of the component's table; `None` for a preset, which has no keys.
    pub schema: Option<Value>,
    /// Table of the component with all defaults; for a preset, the values that it sets.
    pub defaults: Value,
}

/// Lists the tables of a scenario file and of a result, and all components that scenario files can name: bearers, airs,
/// flow controls, links, queues, schedulers, errors, regulators, steerings, senders, acks, presets and workloads.
pub fn catalogue() -> Vec<Kind> {
    vec![
        Kind {
            name: "tables",
            components: vec![
                table::<Tables>("scenario"),
                table::<FlowGroup>("flow"),
                table_alone::<RunResult>("result"),
            ],
        },
        kind("bearers", &BEARERS),
        kind("airs", &AIRS),
        kind("flow-controls", &FLOW_CONTROLS),
        kind("links", &LINKS),
        kind("queues", &QUEUES),
        kind("schedulers", &SCHEDULERS),
        kind("errors", &ERRORS),
        kind("regulators", &REGULATORS),
        kind("steerings", &STEERINGS),
        kind("senders", &SENDERS),
        kind("acks", &ACKS),
        Kind { name: "presets", components: PRESETS.iter().map(preset).collect() },
        kind("workloads", &WORKLOADS),
    ]
}

/// Converts the catalogue to a JSON object of lists.
pub fn catalogue_json(kinds: &[Kind]) -> Value {
    let list = |kind: &Kind| (kind.name.to_owned(), kind.components.iter().map(component_json).collect());
    Value::Object(kinds.iter().map(list).collect::<Map<String, Value>>())
}

/// Converts one component to a JSON object.
pub fn component_json(component: &Component) -> Value {
    let Component { name, description, schema, defaults } = component;
    json!({ "name": name, "description": description, "schema": schema, "defaults": defaults })
}

fn kind<C: ?Sized>(name: &'static str, registry: &Registry<C>) -> Kind {
    Kind { name, components: registry.rows().into_iter().map(component).collect() }
}

fn component<C: ?Sized>(entry: &Entry<C>) -> Component {
    described(entry.name, (entry.schema)(), (entry.defaults)())
}

/// Describes a table of the scenario file.
fn table<T: Default + Serialize + JsonSchema>(name: &'static str) -> Component {
    let schema = SchemaGenerator::default().into_root_schema_for::<T>().to_value();
    // Tables of strings, numbers and lists always serialise without errors.
    described(name, schema, serde_json::to_value(T::default()).unwrap_or(Value::Null))
}

/// Describes a table that has no default as a whole, such as the result object of a run or a table of another
/// configuration file.
pub fn table_alone<T: JsonSchema>(name: &'static str) -> Component {
    let schema = SchemaGenerator::default().into_root_schema_for::<T>().to_value();
    let keys = schema["properties"].as_object().into_iter().flatten();
    let defaults = keys.filter_map(|(key, of)| Some((key.clone(), of.get("default")?.clone())));
    let defaults = Value::Object(defaults.collect());
    described(name, schema, defaults)
}

fn described(name: &'static str, schema: Value, defaults: Value) -> Component {
    let description = schema["description"].as_str().unwrap_or_default().to_owned();
    Component { name, description, schema: Some(schema), defaults }
}

/// Describes a preset by the comment at the start of its text.
fn preset(preset: &crate::presets::Preset) -> Component {
    let comment = preset.text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim);
    let description = comment.collect::<Vec<_>>().join(" ");
    let defaults = toml::from_str(preset.text).unwrap_or(Value::Null);
    Component { name: preset.name, description, schema: None, defaults }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_says_what_it_is_and_what_its_keys_mean() {
        for kind in catalogue() {
            assert!(!kind.components.is_empty(), "{}", kind.name);
            for Component { name, description, schema, defaults } in kind.components {
                assert!(!description.is_empty(), "{} {name} has no documentation", kind.name);
                assert!(defaults.is_object(), "{} {name} has no table of defaults", kind.name);
                let keys = schema.as_ref().and_then(|schema| schema["properties"].as_object());
                for (key, of) in keys.into_iter().flatten() {
                    let said = of["description"].is_string();
                    assert!(said, "{} {name}: the key `{key}` has no documentation", kind.name);
                }
            }
        }
    }
}
