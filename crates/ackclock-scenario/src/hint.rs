//! Hints for common mistakes in scenarios.

use serde_json::Value;

use crate::kind::kinds_with;
use crate::tree::Tree;

/// Returns a message about the value at `key` of `tree` that is more helpful than `message`; `None` if no hint applies.
pub(crate) fn better(tree: &Tree, key: &str, message: &str) -> Option<String> {
    let name = key.rsplit('.').next().unwrap_or(key);
    if message.starts_with("invalid type: map, expected a sequence") {
        return Some(format!("there can be several, so it is written [[{key}]], with two brackets"));
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

/// Names of link keys in other tools, each with a hint at the right key.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("jitter", "a delay that varies is a law: kind = \"variable\", delay = \"40ms + e(5ms)\""),
    ("bandwidth", "it is called `rate`"),
    ("latency", "it is called `delay`"),
];
