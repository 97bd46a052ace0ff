//! `ackclock list`: lists the names that a scenario can use, from the registries. The names of models come from Python.

use std::ffi::OsString;

use ackclock_scenario::{Component, Kind, catalogue, catalogue_json, component_json};
use serde_json::Value;

use crate::failure::Failure;
use crate::output;
use crate::profiles;
use crate::python::become_module;
use crate::table::{Align, Table, terminal_width};

/// List everything that a scenario can name.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Kind of names to list: tables, links, queues, schedulers, errors, regulators, steerings, senders, acks, presets,
    /// workloads, profiles (of links) or models (Python). By default, everything that a scenario can name is listed.
    what: Option<String>,
    /// Describe this entry: the keys of its table with their defaults.
    name: Option<String>,
    /// Print JSON, with the JSON schema of every table.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  ackclock list regulators
  ackclock list link variable
  ackclock list profiles
  ackclock list models
  ackclock list --json > catalogue.json";

/// Prints the list of names.
pub(crate) fn perform(args: &Args) -> Result<(), Failure> {
    if args.what.as_deref().is_some_and(|what| what == "model" || what == "models") {
        let name = args.name.iter().map(OsString::from);
        let words: Vec<_> = name.chain(args.json.then(|| "--json".into())).collect();
        return Err(become_module(&["list", "models"], &words));
    }
    if args.what.as_deref().is_some_and(|what| what == "profile" || what == "profiles") {
        return profiles::list(args.name.as_deref(), args.json);
    }
    let mut kinds = everything();
    if let Some(what) = &args.what {
        kinds = vec![find_kind(kinds, what)?];
    }
    match (&args.name, args.json) {
        (Some(name), true) => print_json(&component_json(find(&kinds[0], name)?)),
        (Some(name), false) => output::print(&described(&kinds[0], find(&kinds[0], name)?)),
        (None, true) => print_json(&catalogue_json(&kinds)),
        (None, false) => output::print(&kinds.iter().map(overview).collect::<Vec<_>>().join("\n")),
    }
}

/// The catalogue, with the tables of the configuration files of a box and of a proxy.
fn everything() -> Vec<Kind> {
    #[allow(unused_mut, reason = "the simulator alone has no more tables")]
    let mut kinds = catalogue();
    #[cfg(feature = "live")]
    for kind in kinds.iter_mut().filter(|kind| kind.name == "tables") {
        kind.components.push(ackclock_scenario::table_alone::<ackclock_box::config::BoxTable>("box"));
        kind.components.push(ackclock_scenario::table_alone::<ackclock_proxy::file::ProxyTable>("proxy"));
    }
    kinds
}

fn print_json(value: &Value) -> Result<(), Failure> {
    output::print(&format!("{value}\n"))
}

/// Finds the kind of names called `what`, in singular or plural.
fn find_kind(kinds: Vec<Kind>, what: &str) -> Result<Kind, Failure> {
    let names: Vec<_> = kinds.iter().map(|kind| kind.name).collect();
    let of = kinds.iter().find(|kind| kind.components.iter().any(|component| component.name == what));
    let unknown = match of {
        Some(kind) => format!("`{what}` is one of the {0}: ackclock list {0} {what}", kind.name),
        None => format!("nothing is called `{what}`; there are {}, profiles, models", names.join(", ")),
    };
    let called = |kind: &Kind| kind.name == what || kind.name.strip_suffix('s') == Some(what);
    kinds.into_iter().find(called).ok_or(Failure::Input(unknown))
}

fn find<'a>(kind: &'a Kind, name: &str) -> Result<&'a Component, Failure> {
    kind.components.iter().find(|component| component.name == name).ok_or_else(|| {
        let names: Vec<_> = kind.components.iter().map(|component| component.name).collect();
        Failure::Input(format!("no `{name}` among the {}; there are {}", kind.name, names.join(", ")))
    })
}

fn overview(kind: &Kind) -> String {
    let width = terminal_width().unwrap_or(WIDTH);
    let longest = kind.components.iter().map(|component| component.name.len()).max().unwrap_or(0);
    let line = |component: &Component| {
        let room = width.saturating_sub(longest + 4).max(20);
        let text =
            fill(first_sentence(&component.description), room).join(&format!("\n{:1$}", "", longest + 4));
        format!("  {:longest$}  {text}\n", component.name)
    };
    format!("{}\n{}", kind.name, kind.components.iter().map(line).collect::<String>())
}

fn described(kind: &Kind, component: &Component) -> String {
    let width = terminal_width().unwrap_or(WIDTH);
    let singular = kind.name.strip_suffix('s').unwrap_or(kind.name);
    let mut text = format!("{singular} {}\n\n", component.name);
    for paragraph in component.description.split("\n\n") {
        text += &fill(paragraph, width).join("\n");
        text += "\n\n";
    }
    match &component.schema {
        Some(schema) => text + &keys(schema, &component.defaults, width),
        None => text + &toml::to_string(&component.defaults).unwrap_or_default(),
    }
}

fn keys(schema: &Value, defaults: &Value, width: usize) -> String {
    let keys = flattened("", schema, defaults, schema);
    if keys.is_empty() {
        return "Its table has no keys.\n".to_owned();
    }
    let mut table = Table::default();
    for heading in ["key", "default", "allowed"] {
        table.column(heading, Align::Left);
    }
    for key in &keys {
        table.row(vec![key.path.clone(), default(key.default), allowed(key.schema, schema)]);
    }
    let mut text = table.render(terminal_width()) + "\n";
    for key in &keys {
        let said =
            fill(key.schema["description"].as_str().unwrap_or_default(), width.saturating_sub(4).max(20));
        let rows = tables(key.default).into_iter().flatten().map(Value::to_string);
        let lines: Vec<_> = said.into_iter().chain(rows).collect();
        text += &format!("{}\n    {}\n", key.path, lines.join("\n    "));
    }
    text
}

/// Default value of a scenario key, as shown in the column of defaults. Arrays of tables are shown below the key's
/// description.
fn default(value: &Value) -> String {
    match tables(value) {
        Some(rows) => format!("{} tables, below", rows.len()),
        None if value.is_null() => "-".to_owned(),
        None => value.to_string(),
    }
}

fn tables(value: &Value) -> Option<&Vec<Value>> {
    value.as_array().filter(|rows| rows.iter().any(Value::is_object))
}

/// Key of a table, with dots if the key is in a nested table.
struct Key<'a> {
    path: String,
    schema: &'a Value,
    default: &'a Value,
}

fn flattened<'a>(prefix: &str, table: &'a Value, defaults: &'a Value, root: &'a Value) -> Vec<Key<'a>> {
    let properties = table["properties"].as_object().into_iter().flatten();
    let below = |(key, schema): (&String, &'a Value)| {
        let (path, default) = (format!("{prefix}{key}"), &defaults[key]);
        match resolved(schema, root) {
            inner if inner["properties"].is_object() => flattened(&format!("{path}."), inner, default, root),
            _ => vec![Key { path, schema, default }],
        }
    };
    properties.flat_map(below).collect()
}

/// Returns the JSON schema that a reference points to.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let target =
        schema["$ref"].as_str().and_then(|reference| root.pointer(reference.trim_start_matches('#')));
    target.unwrap_or(schema)
}

/// Describes in words the values that a JSON schema allows.
fn allowed(schema: &Value, root: &Value) -> String {
    let reference = schema["$ref"].as_str();
    let schema = resolved(schema, root);
    if let Some(constant) = schema.get("const") {
        return constant.to_string();
    }
    for key in ["enum", "oneOf", "anyOf"] {
        if let Some(choices) = schema[key].as_array() {
            let word =
                |choice: &Value| if key == "enum" { choice.to_string() } else { allowed(choice, root) };
            let words: Vec<_> = choices.iter().map(word).filter(|word| word != "null").collect();
            return words.join(" | ");
        }
    }
    match &schema["type"] {
        // A quantity such as `Rate` is a string. The description of the key explains the format of the quantity.
        Value::String(name) if name == "string" => {
            reference.and_then(|path| path.rsplit('/').next()).map_or(name.clone(), str::to_lowercase)
        }
        Value::String(name) => name.clone(),
        Value::Array(names) => names
            .iter()
            .filter_map(Value::as_str)
            .filter(|name| *name != "null")
            .collect::<Vec<_>>()
            .join(" | "),
        _ => "a name, or a table with `kind`".to_owned(),
    }
}

/// Returns the first sentence of a text.
fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(sentence, _)| sentence).trim_end_matches('.')
}

/// Wraps a text to lines of at most `width` characters.
fn fill(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("it begins with one line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Width of the output if standard output is not a terminal, characters.
const WIDTH: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn kinds_are_found_in_singular_and_plural() {
        assert_eq!(find_kind(catalogue(), "queue").unwrap().name, "queues");
        assert_eq!(find_kind(catalogue(), "queues").unwrap().name, "queues");
        let Err(Failure::Input(message)) = find_kind(catalogue(), "que") else { panic!() };
        assert!(message.contains("there are tables, bearers"), "{message}");
    }

    #[test]
    fn schemas_are_put_into_words() {
        let root = json!({"$defs": {"S": {"oneOf": [{"const": "on"}, {"const": "off"}]}}});
        assert_eq!(allowed(&json!({"$ref": "#/$defs/S"}), &root), "\"on\" | \"off\"");
        assert_eq!(
            allowed(&json!({"anyOf": [{"$ref": "#/$defs/S"}, {"type": "null"}]}), &root),
            "\"on\" | \"off\""
        );
        assert_eq!(allowed(&json!({"type": ["string", "null"]}), &root), "string");
        assert_eq!(allowed(&json!(true), &root), "a name, or a table with `kind`");
    }

    #[test]
    fn text_is_filled_into_lines() {
        assert_eq!(fill("one two  three\nfour", 8), ["one two", "three", "four"]);
        assert_eq!(first_sentence("A b. C."), "A b");
        assert_eq!(first_sentence("A 1.5 b."), "A 1.5 b");
    }
}
