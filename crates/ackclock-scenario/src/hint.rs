//! Hints for common mistakes in scenarios.

use ackclock_core::{ConfigError, Registry, name_of};
use ackclock_edge::QUEUES;
use ackclock_tcp::SENDERS;
use serde_json::Value;

use crate::kind::kinds_with;
use crate::tree::Tree;
use crate::{ScenarioError, Tables};

impl ScenarioError {
    /// Creates an error about a key of `tree`, which was read from the file `name`.
    pub(crate) fn at(name: &str, tree: &Tree, error: &ConfigError) -> Self {
        // The crate serde_path_to_error writes `flow[0].sender`, but `--set` uses `flow.0.sender`.
        let mut key = error.path.replace('[', ".").replace(']', "");
        let named = unknown_field(&error.message).filter(|field| !key.ends_with(field));
        if let Some(field) = named {
            key = if key.is_empty() { field.to_owned() } else { format!("{key}.{field}") };
        }
        let message = better(tree, &key, &error.message);
        Self::of_key(tree.origin_of(&key).place(name), key, message.as_ref().unwrap_or(&error.message))
    }
}

/// Extracts the unknown key from a serde message.
fn unknown_field(message: &str) -> Option<&str> {
    message.strip_prefix("unknown field `")?.split('`').next()
}

/// Returns a message about the value at `key` of `tree` that is more helpful than `message`; `None` if no hint applies.
fn better(tree: &Tree, key: &str, message: &str) -> Option<String> {
    let name = key.rsplit('.').next().unwrap_or(key);
    if message.starts_with("invalid type: map, expected a sequence") {
        return Some(format!("there can be several, so it is written [[{key}]], with two brackets"));
    }
    if message.starts_with("unknown field")
        && let Some(hint) = in_table(key)
    {
        return Some(format!("unknown field `{name}`; {hint}"));
    }
    if message.starts_with("unknown field")
        && let Some(hint) = of_component(tree, key, name)
    {
        return Some(format!("unknown field `{name}`; {hint}"));
    }
    if message.starts_with("unknown field")
        && let Some((head, table)) = table_with(key)
    {
        return Some(format!("unknown field `{name}`; it is a key of {head}: {table}.{name}"));
    }
    let (parent, _) = key.rsplit_once('.')?;
    let component = tree.at(parent)?;
    let kind = component.get("kind").or(Some(component)).map(Tree::value);
    let kind = kind.as_ref().and_then(Value::as_str)?;
    if message.starts_with("unknown field") {
        let hint = OTHER_NAMES.iter().find(|(other, _)| *other == name).map(|(_, hint)| (*hint).to_owned());
        let others = kinds_with(kind, name);
        let of_other = (!others.is_empty()).then(|| format!("`{name}` is a key of {}", others.join(", ")));
        return of_other.or(hint).map(|hint| format!("{message}; {hint}"));
    }
    let law = component.get(name).map(Tree::value).filter(|_| kind == "constant");
    law.as_ref().and_then(Value::as_str).filter(|text| text.contains('(')).map(|text| {
        format!("`{text}` is a law, and a constant link has one {name}; laws are for kind = \"variable\"")
    })
}

/// Returns head and path of the table that has a key that is outside all tables.
fn table_with(key: &str) -> Option<(&'static str, &'static str)> {
    let tables = serde_json::to_value(Tables::default()).ok()?;
    let places = [
        (("[edge]", "edge"), &tables["edge"]),
        (("[path]", "path"), &tables["path"]),
        (("[[flow]]", "flow"), &tables["flow"][0]),
    ];
    places.into_iter().find(|(_, table)| table.get(key).is_some()).map(|(named, _)| named)
}

/// Returns how to write an option of a flow's sender, or of the queue of the edge, that was written as a key of the flow
/// or the edge.
fn of_component(tree: &Tree, key: &str, name: &str) -> Option<String> {
    let (parent, _) = key.rsplit_once('.')?;
    let tables: Vec<&str> = parent.split('.').filter(|part| part.parse::<usize>().is_err()).collect();
    let defaults = serde_json::to_value(Tables::default()).ok()?;
    let (component, default) = match tables[..] {
        ["flow"] => ("sender", &defaults["flow"][0]["sender"]),
        ["edge"] => ("queue", &defaults["edge"]["queue"]),
        _ => return None,
    };
    let known = if component == "sender" { senders_using(name) } else { named_with(&QUEUES, name) };
    let present = tree.at(&format!("{parent}.{component}")).map_or_else(|| default.clone(), Tree::value);
    let present = known.iter().find(|kind| **kind == name_of(&present));
    let kind = present.or(known.first())?;
    let (path, written) =
        (format!("{}.{component}", tables.concat()), format!("{{ kind = \"{kind}\", {name} = ... }}"));
    let set = match present {
        Some(_) => format!("{path}.{name}=VALUE"),
        None => format!("'{path}={written}'"),
    };
    Some(format!("it is an option of the {component}: {component} = {written}, or --set {set}"))
}

/// Names of the components in a registry that have an option.
fn named_with<C: ?Sized>(registry: &Registry<C>, option: &str) -> Vec<&'static str> {
    let has = |schema: Value| schema["properties"].get(option).is_some();
    registry.rows().into_iter().filter(|entry| has((entry.schema)())).map(|entry| entry.name).collect()
}

/// Names of the senders on which an option has an effect. The schema of every sender has all options.
fn senders_using(option: &str) -> Vec<&'static str> {
    let uses =
        |kind: &str| SENDERS.resolve(&kind.into()).is_ok_and(|row| !row.idle_options().contains(&option));
    named_with(&SENDERS, option).into_iter().filter(|kind| uses(kind)).collect()
}

/// Returns where a key of another tool is in ours. Tables of the scenario have too many keys to list.
fn in_table(key: &str) -> Option<&'static str> {
    let names: Vec<&str> = key.split('.').filter(|part| part.parse::<usize>().is_err()).collect();
    let (name, table) = names.split_last()?;
    let table = table.join(".");
    let known = TABLES.iter().filter(|(of, ..)| *of == table);
    known.into_iter().find(|(_, others, _)| others.contains(name)).map(|(.., hint)| *hint)
}

/// Keys of other tools by table, each with a hint at ours.
const TABLES: &[(&str, &[&str], &str)] = &[
    (
        "flow",
        &["cc", "congestion", "congestion_control", "tcp", "algorithm", "variant"],
        "the congestion control is called `sender`: sender = \"cubic\"",
    ),
    (
        "flow",
        &["rtt", "delay", "latency", "base_rtt"],
        "a flow has its own one-way delay as `route`; that of all flows is `delay` of [path]",
    ),
    (
        "flow",
        &["protocol", "transport", "proto", "udp", "quic"],
        "TCP is simulated, and media over UDP (workload = \"media\"); `ackclock link` takes real programs of any protocol",
    ),
    (
        "flow",
        &["size", "bytes", "file", "length"],
        "a flow with an end has a workload: workload = { kind = \"file\", size = \"4MB\" }",
    ),
    ("flow", &["mss", "packet_size", "segment", "mtu"], "it is called `packet`: packet = \"1500B\""),
    ("flow", &["cwnd", "init_cwnd", "initial_cwnd", "iw"], "it is called `initial_window`"),
    ("flow", &["rwnd", "window"], "it is called `receive_window`"),
    ("flow", &["direction"], "it is called `towards`, \"mobile\" or \"server\""),
    ("flow", &["n", "number", "flows"], "it is called `count`"),
    (
        "edge",
        &["limit", "buffer_size", "queue_size", "queue_limit", "qlen", "size"],
        "the size of the queue is called `buffer`: buffer = \"100p\"",
    ),
    ("edge", &["qdisc", "aqm", "discipline"], "it is called `queue`: queue = \"codel\""),
    (
        "edge",
        &["rate", "bandwidth", "delay", "latency", "loss", "jitter", "kind", "file"],
        "each direction has its link: [edge.down] and [edge.up]",
    ),
    ("edge", &["downlink", "uplink", "link"], "the links are called `down` and `up`"),
    ("path", &["rtt", "latency", "base_rtt"], "it is called `delay`, one way"),
    ("path", &["bandwidth"], "it is called `rate`"),
    ("", &["time", "length", "runtime", "stop"], "it is called `duration`: duration = \"60s\""),
    ("", &["repeats", "repetitions", "replications", "iterations"], "it is called `runs`"),
    ("", &["flows"], "each flow is a table [[flow]]"),
    ("", &["link", "links", "bottleneck"], "the bottleneck is [edge.down], and [edge.up] for uploads"),
];

/// Names of link keys in other tools, each with a hint at the right key.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("jitter", "a delay that varies is a law: kind = \"variable\", delay = \"40ms + e(5ms)\""),
    ("bandwidth", "it is called `rate`"),
    ("latency", "it is called `delay`"),
];
