//! A scenario as a tree of values. Every value has an origin.
//!
//! The layers of a scenario (defaults, preset, file, overrides) are merged as trees. An error can therefore name the
//! origin of the wrong value.

use std::sync::Arc;

use ackclock_core::ConfigError;
use ackclock_import::Recording;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::ScenarioError;

/// A value of a scenario and its origin.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) origin: Origin,
    pub(crate) node: Node,
}

/// Content of a tree node: a plain value, a list or a table.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Leaf(Value),
    List(Vec<Tree>),
    /// A table, with its keys in the order written.
    Table(Vec<(String, Tree)>),
}

/// Origin of a scenario value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Line number of the value in the scenario file.
    Line(usize),
    /// Name of the preset that sets the value.
    Preset(Arc<str>),
    /// Text of an override, such as `--set edge.buffer=4p`.
    Override(Arc<str>),
    /// Built-in default value.
    Default,
}

impl Origin {
    /// Text that names the origin in error messages. `name` is the name of the scenario file.
    pub(crate) fn place(&self, name: &str) -> String {
        match self {
            Self::Line(line) => format!("{name}:{line}"),
            Self::Preset(preset) => format!("{name}: preset {preset}"),
            Self::Override(text) => text.to_string(),
            Self::Default => name.to_owned(),
        }
    }

    /// Whether the user set the value, in the file or with an override.
    pub(crate) fn is_said(&self) -> bool {
        matches!(self, Self::Line(_) | Self::Override(_))
    }
}

/// Returns whether a text that is no scenario is a recording: one that links play, or a table with a header.
fn is_recording(text: &str) -> bool {
    let header = text.lines().find(|line| !line.trim_start().starts_with('#')).unwrap_or_default();
    Recording::parse(text.as_bytes()).is_ok() || (header.contains(',') && !header.contains(['=', '[', '{']))
}

impl Tree {
    /// Creates an empty table.
    pub(crate) fn empty(origin: Origin) -> Self {
        Self { origin, node: Node::Table(Vec::new()) }
    }

    /// Parses the TOML text of the file `name`. The origin of every value is its line in the text.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, ScenarioError> {
        let lines = Lines::of(text);
        let document = DeTable::parse(text).map_err(|error| {
            let line = error.span().map_or(1, |span| lines.at(span.start));
            if is_recording(text) {
                return ScenarioError::of_text(
                    name,
                    format!(
                        "it is a recording, not a scenario: `ackclock advise {name}` compares regulators over it, \
                         and a scenario plays it with edge.down = {{ kind = \"trace\", file = \"{name}\" }}"
                    ),
                );
            }
            let hint = match text.trim_start().starts_with('{') {
                true => "; it looks like JSON, which only Python accepts, as a mapping",
                false => "",
            };
            ScenarioError::of_text(format!("{name}:{line}"), format!("not TOML: {}{hint}", error.message()))
        })?;
        lines
            .table(document.get_ref(), 1)
            .map_err(|(line, message)| ScenarioError::of_text(format!("{name}:{line}"), message))
    }

    /// Converts a JSON value to a tree. All parts of the tree get the origin `origin`.
    pub(crate) fn of(value: Value, origin: &Origin) -> Self {
        let node = match value {
            Value::Array(items) => Node::List(items.into_iter().map(|item| Self::of(item, origin)).collect()),
            Value::Object(table) => {
                Node::Table(table.into_iter().map(|(key, value)| (key, Self::of(value, origin))).collect())
            }
            leaf => Node::Leaf(leaf),
        };
        Self { origin: origin.clone(), node }
    }

    /// The tree as a JSON value, without origins.
    pub(crate) fn value(&self) -> Value {
        match &self.node {
            Node::Leaf(value) => value.clone(),
            Node::List(items) => Value::Array(items.iter().map(Self::value).collect()),
            Node::Table(entries) => Value::Object(
                entries.iter().map(|(key, tree)| (key.clone(), tree.value())).collect::<Map<_, _>>(),
            ),
        }
    }

    /// Sets the origin of all parts of the tree.
    pub(crate) fn set_origin(&mut self, origin: &Origin) {
        self.origin = origin.clone();
        match &mut self.node {
            Node::Leaf(_) => {}
            Node::List(items) => items.iter_mut().for_each(|item| item.set_origin(origin)),
            Node::Table(entries) => entries.iter_mut().for_each(|(_, tree)| tree.set_origin(origin)),
        }
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self.node, Node::List(_))
    }

    fn is_table(&self) -> bool {
        matches!(self.node, Node::Table(_))
    }

    /// The value of `key`; `None` if the tree is no table or lacks the key.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match &self.node {
            Node::Table(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, tree)| tree),
            Node::List(items) => items.get(key.parse::<usize>().ok()?),
            Node::Leaf(_) => None,
        }
    }

    /// Mutable version of [`Self::get`].
    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        match &mut self.node {
            Node::Table(entries) => entries.iter_mut().find(|(name, _)| name == key).map(|(_, tree)| tree),
            Node::List(items) => items.get_mut(key.parse::<usize>().ok()?),
            Node::Leaf(_) => None,
        }
    }

    /// The parts of the tree that the user set, without values from presets and defaults; `None` if the user set
    /// nothing.
    pub(crate) fn said(&self) -> Option<Self> {
        let node = match &self.node {
            Node::Leaf(value) => self.origin.is_said().then(|| Node::Leaf(value.clone()))?,
            Node::List(items) => {
                let item = |item: &Self| item.said().unwrap_or_else(|| Self::empty(item.origin.clone()));
                self.origin.is_said().then(|| Node::List(items.iter().map(item).collect()))?
            }
            Node::Table(entries) => {
                let said = |(key, tree): &(String, Self)| Some((key.clone(), tree.said()?));
                let said: Vec<_> = entries.iter().filter_map(said).collect();
                (!said.is_empty()).then_some(Node::Table(said))?
            }
        };
        Some(Self { origin: self.origin.clone(), node })
    }

    /// The values below `path` that the user set, each with its own path.
    pub(crate) fn said_values<'a>(&'a self, path: &str, found: &mut Vec<(String, &'a Self)>) {
        match &self.node {
            Node::Table(entries) => {
                entries.iter().for_each(|(key, tree)| tree.said_values(&format!("{path}.{key}"), found));
            }
            Node::Leaf(_) | Node::List(_) if self.origin.is_said() => found.push((path.to_owned(), self)),
            Node::Leaf(_) | Node::List(_) => {}
        }
    }

    /// Removes a key from a table and returns its value.
    pub(crate) fn take(&mut self, key: &str) -> Option<Self> {
        match &mut self.node {
            Node::Table(entries) => {
                entries.iter().position(|(name, _)| name == key).map(|index| entries.remove(index).1)
            }
            _ => None,
        }
    }

    /// The value at a dotted path; `None` if the path does not exist.
    pub(crate) fn at(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |at, key| at.get(key))
    }

    /// Origin of the value at a dotted path, or of the deepest existing table of the path.
    pub(crate) fn origin_of(&self, path: &str) -> &Origin {
        let mut at = self;
        for key in path.split('.') {
            match at.get(key) {
                Some(below) => at = below,
                None => break,
            }
        }
        &at.origin
    }

    /// Wraps this tree in tables, so that it is at a dotted path of an otherwise empty tree.
    pub(crate) fn nested(self, path: &str) -> Self {
        let origin = self.origin.clone();
        path.rsplit('.').fold(self, |below, key| Self {
            origin: origin.clone(),
            node: Node::Table(vec![(key.to_owned(), below)]),
        })
    }

    /// Checks that a dotted path is valid and that its list indices exist.
    pub(crate) fn check_path(&self, path: &str) -> Result<(), ConfigError> {
        let mut at = Some(self);
        for key in path.split('.') {
            if key.is_empty() {
                return Err(ConfigError::new(path, "is not a key; keys are written like `edge.buffer`"));
            }
            let Some(tree) = at else { continue };
            match (&tree.node, key.parse::<usize>()) {
                (Node::List(items), Ok(index)) if index >= items.len() => {
                    let message = format!("no item {index}; there are {}, counted from 0", items.len());
                    return Err(ConfigError::new(path, message));
                }
                // A path without an index refers to every item of the list, and some items may lack the key.
                (Node::List(_), Err(_)) => at = None,
                _ => at = tree.get(key),
            }
        }
        Ok(())
    }
}

/// Merges two trees of scenario values. Where `base` and `over` have the same key, the value of `over` wins.
///
/// Tables are merged key by key. A component is a name or a table with `kind`. Components are merged if their kinds
/// agree or one has no kind; otherwise the component of `over` replaces the component of `base`. A table merged with a
/// list of tables applies to every table of the list. The keys of a table merged with a list may also be list indices.
pub(crate) fn merge(base: Tree, over: Tree) -> Tree {
    let origin = over.origin.clone();
    let node = match (base.node, over.node) {
        (Node::Table(base), Node::Table(over)) if agree(kind_in(&base), kind_in(&over)) => {
            Node::Table(merge_entries(base, over))
        }
        (Node::Leaf(Value::String(name)), Node::Table(over)) if agree(Some(&name), kind_in(&over)) => {
            Node::Table(merge_entries(kind_table(name, base.origin), over))
        }
        (Node::Table(base), Node::Leaf(Value::String(name))) if agree(kind_in(&base), Some(&name)) => {
            Node::Table(merge_entries(base, kind_table(name, origin.clone())))
        }
        (Node::Table(entries), Node::List(items)) if items.iter().all(Tree::is_table) => {
            let below = Tree { origin: base.origin, node: Node::Table(entries) };
            Node::List(items.into_iter().map(|item| merge(below.clone(), item)).collect())
        }
        (Node::List(items), Node::Table(over)) => Node::List(merge_items(items, over, &origin)),
        (_, node) => node,
    };
    Tree { origin, node }
}

fn merge_entries(mut entries: Vec<(String, Tree)>, over: Vec<(String, Tree)>) -> Vec<(String, Tree)> {
    for (key, tree) in over {
        match entries.iter_mut().find(|(name, _)| *name == key) {
            Some((_, below)) => *below = merge(below.clone(), tree),
            None => entries.push((key, tree)),
        }
    }
    entries
}

fn merge_items(items: Vec<Tree>, over: Vec<(String, Tree)>, origin: &Origin) -> Vec<Tree> {
    let (by_index, for_all): (Vec<_>, Vec<_>) =
        over.into_iter().partition(|(key, _)| key.parse::<usize>().is_ok());
    let for_all = Tree { origin: origin.clone(), node: Node::Table(for_all) };
    let with_own = |(index, item): (usize, Tree)| {
        let own = by_index.iter().find(|(key, _)| key.parse() == Ok(index));
        let item = merge(item, for_all.clone());
        own.map_or(item.clone(), |(_, own)| merge(item, own.clone()))
    };
    items.into_iter().enumerate().map(with_own).collect()
}

/// Table of a component without options.
fn kind_table(name: String, origin: Origin) -> Vec<(String, Tree)> {
    vec![("kind".to_owned(), Tree { origin, node: Node::Leaf(Value::String(name)) })]
}

/// The `kind` of a component table; `None` if the table has no kind.
pub(crate) fn kind_in(entries: &[(String, Tree)]) -> Option<&str> {
    entries.iter().find(|(name, _)| name == "kind").and_then(|(_, tree)| match &tree.node {
        Node::Leaf(Value::String(kind)) => Some(kind.as_str()),
        _ => None,
    })
}

/// Whether two components have equal kinds, or at least one component has no kind.
fn agree(a: Option<&str>, b: Option<&str>) -> bool {
    a.is_none() || b.is_none() || a == b
}

/// Byte offsets at which the lines of a text start.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|&start| start <= offset)
    }

    fn table(&self, table: &DeTable<'_>, line: usize) -> Result<Tree, (usize, String)> {
        let entries = table.iter().map(|(key, value)| {
            let line = self.at(key.span().start);
            Ok((key.get_ref().to_string(), self.tree(value, line)?))
        });
        Ok(Tree { origin: Origin::Line(line), node: Node::Table(entries.collect::<Result<_, _>>()?) })
    }

    fn tree(&self, value: &Spanned<DeValue<'_>>, line: usize) -> Result<Tree, (usize, String)> {
        let leaf = match value.get_ref() {
            DeValue::Table(table) => return self.table(table, line),
            DeValue::Array(items) => {
                let items = items.iter().map(|item| self.tree(item, self.at(item.span().start)));
                return Ok(Tree {
                    origin: Origin::Line(line),
                    node: Node::List(items.collect::<Result<_, _>>()?),
                });
            }
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Integer(integer) => match whole(integer.as_str(), integer.radix()) {
                Some(number) => Value::Number(number),
                None => return Err((line, format!("`{}` is too large", integer.as_str()))),
            },
            DeValue::Float(float) => match float.as_str().parse().ok().and_then(serde_json::Number::from_f64)
            {
                Some(number) => Value::Number(number),
                None => return Err((line, format!("`{}` is not a finite number", float.as_str()))),
            },
            DeValue::Datetime(date) => return Err((line, format!("`{date}` is a date; nothing takes one"))),
        };
        Ok(Tree { origin: Origin::Line(line), node: Node::Leaf(leaf) })
    }
}

/// Parses a whole number. TOML guarantees signed 64 bits, but seeds are unsigned 64 bits.
fn whole(digits: &str, radix: u32) -> Option<serde_json::Number> {
    let signed = i64::from_str_radix(digits, radix).map(serde_json::Number::from);
    signed.or_else(|_| u64::from_str_radix(digits, radix).map(serde_json::Number::from)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn layer(value: Value) -> Tree {
        Tree::of(value, &Origin::Default)
    }

    fn merged(base: Value, over: Value) -> Value {
        merge(layer(base), layer(over)).value()
    }

    #[test]
    fn options_stay_with_their_kind_and_go_with_another() {
        let base = json!({"kind": "pie", "target": "15ms"});
        assert_eq!(merged(base.clone(), json!("pie")), base);
        assert_eq!(merged(base.clone(), json!("codel")), json!("codel"));
        assert_eq!(merged(base, json!({"ecn": true})), json!({"kind": "pie", "target": "15ms", "ecn": true}));
        assert_eq!(merged(json!("pie"), json!({"ecn": true})), json!({"kind": "pie", "ecn": true}));
        assert_eq!(merged(json!({"ecn": true}), json!("codel")), json!({"ecn": true, "kind": "codel"}));
    }

    #[test]
    fn a_table_beside_a_list_of_tables_speaks_for_all_of_them() {
        let list = json!([{"a": 1}, {"b": 2}]);
        assert_eq!(merged(json!({"a": 7}), list.clone()), json!([{"a": 1}, {"a": 7, "b": 2}]));
        assert_eq!(merged(list.clone(), json!({"a": 7})), json!([{"a": 7}, {"b": 2, "a": 7}]));
        let put = |path: &str, value| {
            let flow = layer(json!({"flow": list}));
            flow.overlaid(path, layer(value), &mut Vec::new()).map(|tree| tree.value())
        };
        assert_eq!(put("flow.1.a", json!(7)).unwrap(), json!({"flow": [{"a": 1}, {"b": 2, "a": 7}]}));
        assert!(put("flow.2.a", json!(7)).unwrap_err().to_string().contains("there are 2"));
        assert!(put("flow..a", json!(7)).unwrap_err().to_string().contains("not a key"));
    }

    #[test]
    fn what_was_said_leaves_out_presets_and_defaults() {
        let preset =
            Tree::of(json!({"a": 1, "b": {"c": 2}, "list": [{"x": 1}]}), &Origin::Preset("p".into()));
        let file = Tree::of(json!({"b": {"d": 3}, "flow": [{}, {"x": 1}]}), &Origin::Line(1));
        let said = merge(preset, file).said().unwrap();
        assert_eq!(said.value(), json!({"b": {"d": 3}, "flow": [{}, {"x": 1}]}));
    }

    #[test]
    fn every_value_knows_its_line() {
        let tree = Tree::parse(
            "x.toml",
            "a = 1\n\n[edge]\nbuffer = \"4p\"\ndown.rate = \"1\"\n[[flow]]\ncount = 2\n",
        )
        .unwrap();
        let line = |path: &str| tree.origin_of(path).place("x.toml");
        assert_eq!(line("a"), "x.toml:1");
        assert_eq!(line("edge.buffer"), "x.toml:4");
        assert_eq!(line("edge.down.rate"), "x.toml:5");
        assert_eq!(line("flow.0.count"), "x.toml:7");
        // The origin of a missing key is looked up in the table of the key.
        assert_eq!(line("flow.0.sender"), "x.toml:6");
    }

    #[test]
    fn what_is_not_toml_or_has_no_place_in_json_names_its_line() {
        for (text, part) in [
            ("a = 1\nb = ", "x:2: not TOML"),
            ("a = nan", "x:1: `nan`"),
            ("a = 1979-05-27", "is a date"),
            ("a = 99999999999999999999", "too large"),
        ] {
            let error = Tree::parse("x", text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
