//! A scenario: text and overrides in, checked tables and the points of its sweep out.

use ackclock_core::ConfigError;
use ackclock_core::results::Provenance;
use ackclock_link::Files;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::tree::{Origin, Tree, merge};
use crate::{ScenarioError, Tables, presets};

/// A scenario that was read and checked.
#[derive(Clone, Debug)]
pub struct Scenario {
    name: String,
    /// What the file and the overrides say, without `sweep`.
    written: Tree,
    /// The `sweep` of the file.
    sweep: Option<Tree>,
    /// Everything, with presets and defaults.
    merged: Tree,
    tables: Tables,
}

/// One combination of the values of a sweep.
#[derive(Clone, Debug)]
pub struct Point {
    /// Keys of the sweep and the values that they have here.
    pub labels: Vec<(String, Value)>,
    /// The scenario with these values.
    pub scenario: Scenario,
}

/// Most points that a sweep may have.
const MOST_POINTS: usize = 1_000_000;
/// Most runs of all of them.
const MOST_JOBS: u64 = 10_000_000;

impl Scenario {
    /// Reads the scenario `text` of the file called `name` and lays `sets` on it, each like `edge.buffer=4p`.
    ///
    /// # Errors
    /// One message with file, line, key, value and what is allowed.
    pub fn load(name: &str, text: &str, sets: &[String]) -> Result<Self, ScenarioError> {
        let mut written = Tree::parse(name, text)?;
        let sweep = written.take("sweep");
        if written.get("flow").is_none() {
            // So that overrides of `flow.0` and of every flow find one.
            let one = Tree::of(serde_json::json!({ "flow": [{}] }), &Origin::Default);
            written = merge(written, one);
        }
        for set in sets {
            written = with_set(name, written, set)?;
        }
        Self::build(name, written, sweep)
    }

    /// The scenario with other values at some keys; a flow key without index means every flow.
    ///
    /// # Errors
    /// As for [`Self::load`].
    pub fn with(&self, values: &[(&str, Value)]) -> Result<Self, ScenarioError> {
        let mut written = self.written.clone();
        for (key, value) in values {
            let origin = Origin::Override(format!("{key}={}", plain(value)).into());
            written = put(&self.name, written, key, value, &origin)?;
        }
        Self::build(&self.name, written, self.sweep.clone())
    }

    /// Every combination of the values of `[sweep]`, the last key varying fastest; one point without labels where there
    /// is no sweep.
    ///
    /// # Errors
    /// Where a key or value of the sweep is wrong.
    pub fn points(&self) -> Result<Vec<Point>, ScenarioError> {
        let axes = self.axes()?;
        let count = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.values.len()));
        if count.is_none_or(|count| count > MOST_POINTS) {
            return Err(
                self.error(&ConfigError::new("sweep", format!("more than {MOST_POINTS} combinations")))
            );
        }
        let mut points = vec![(Vec::new(), self.written.clone())];
        for axis in &axes {
            let mut next = Vec::with_capacity(points.len() * axis.values.len());
            for (labels, written) in points {
                for value in &axis.values {
                    let written = put(&self.name, written.clone(), &axis.key, value, &axis.origin)?;
                    let mut labels: Vec<(String, Value)> = labels.clone();
                    labels.push((axis.key.clone(), value.clone()));
                    next.push((labels, written));
                }
            }
            points = next;
        }
        let build =
            |(labels, written)| Ok(Point { labels, scenario: Self::build(&self.name, written, None)? });
        let points: Vec<Point> = points.into_iter().map(build).collect::<Result<_, ScenarioError>>()?;
        if points.iter().map(|point| u64::from(point.scenario.tables().runs)).sum::<u64>() > MOST_JOBS {
            return Err(
                self.error(&ConfigError::new("runs", format!("more than {MOST_JOBS} over all combinations")))
            );
        }
        Ok(points)
    }

    /// Checks everything that can be wrong without running, the points of the sweep and the files that are named
    /// included.
    ///
    /// # Errors
    /// As for [`Self::load`].
    pub fn check(&self, files: &dyn Files) -> Result<(), ScenarioError> {
        self.check_links(files)?;
        // A recording is read once however many points play it.
        let mut checked = vec![self.links()];
        for Point { scenario, .. } in self.points()? {
            if !checked.contains(&scenario.links()) {
                scenario.check_links(files)?;
                checked.push(scenario.links());
            }
        }
        Ok(())
    }

    fn check_links(&self, files: &dyn Files) -> Result<(), ScenarioError> {
        self.tables.edge.nominal(files).map(drop).map_err(|error| self.error(&error.under("edge")))
    }

    fn links(&self) -> [Value; 2] {
        [self.tables.edge.down.clone(), self.tables.edge.up.clone()]
    }

    /// Name of its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its tables.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Everything that presets, file and overrides say, as JSON with sorted keys. `sweep` is not part of it.
    pub fn canonical(&self) -> String {
        let mut value = self.merged.value();
        sort_keys(&mut value);
        value.to_string()
    }

    /// SHA-256 of [`Self::canonical`], in hexadecimal.
    pub fn sha256(&self) -> String {
        Sha256::digest(self.canonical().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Where results of this scenario come from.
    pub fn provenance(&self) -> Provenance {
        Provenance {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("ACKCLOCK_COMMIT").map(str::to_owned),
            scenario_sha256: self.sha256(),
        }
    }

    /// An error of a component at its place in the text.
    pub(crate) fn error(&self, error: &ConfigError) -> ScenarioError {
        ScenarioError::at(&self.name, &self.merged, error)
    }

    fn build(name: &str, written: Tree, sweep: Option<Tree>) -> Result<Self, ScenarioError> {
        let at = |tree: &Tree, error: &ConfigError| ScenarioError::at(name, tree, error);
        let (preset, options) = match written.get("preset").map(Tree::value) {
            None => (Tree::empty(Origin::Default), Tree::empty(Origin::Default)),
            Some(Value::String(preset)) => presets::layers(&preset).map_err(|error| at(&written, &error))?,
            Some(other) => {
                let message = format!("{other} is not the name of a preset");
                return Err(at(&written, &ConfigError::new("preset", message)));
            }
        };
        let merged = merge(merge(defaults(), preset), merge(options, written.clone()));
        let tables: Tables = serde_path_to_error::deserialize(merged.value())
            .map_err(|error| at(&merged, &ConfigError::new(path_of(&error), error.inner())))?;
        tables.check().map_err(|error| at(&merged, &error))?;
        let scenario = Self { name: name.to_owned(), written, sweep, merged, tables };
        scenario.axes()?;
        Ok(scenario)
    }

    /// The keys of the sweep and their values.
    fn axes(&self) -> Result<Vec<Axis>, ScenarioError> {
        let Some(sweep) = &self.sweep else { return Ok(Vec::new()) };
        let Value::Object(table) = sweep.value() else {
            let error = ConfigError::new("sweep", "is not a table of keys with lists of values");
            return Err(ScenarioError { place: sweep.origin.place(&self.name), ..self.error(&error) });
        };
        let mut axes = Vec::new();
        flatten("", table, &mut axes);
        axes.into_iter().map(|(key, values)| self.axis(sweep, key, values)).collect()
    }

    fn axis(&self, sweep: &Tree, key: String, values: Value) -> Result<Axis, ScenarioError> {
        let origin = sweep.get(&key).map_or(&sweep.origin, |tree| &tree.origin).clone();
        match values {
            Value::Array(values) if !values.is_empty() => Ok(Axis { key, values, origin }),
            other => Err(ScenarioError {
                place: origin.place(&self.name),
                key: format!("sweep.{key}"),
                message: format!("{other} is not a list of values"),
            }),
        }
    }
}

/// One key of a sweep.
struct Axis {
    key: String,
    values: Vec<Value>,
    origin: Origin,
}

/// Where serde stands, as a dotted path.
fn path_of(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let path = error.path().to_string();
    if path == "." { String::new() } else { path }
}

/// The defaults of every key as the lowest layer. Those of a flow hold for each flow.
fn defaults() -> Tree {
    // A table of strings, numbers and lists always serialises.
    let mut value = serde_json::to_value(Tables::default()).unwrap_or(Value::Null);
    if let Some(flow) = value.get_mut("flow") {
        *flow = flow[0].take();
    }
    Tree::of(value, &Origin::Default)
}

/// Sweep keys are quoted (`"edge.buffer"`); tables of keys mean the same.
fn flatten(prefix: &str, table: Map<String, Value>, axes: &mut Vec<(String, Value)>) {
    for (key, value) in table {
        let key = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
        match value {
            Value::Object(below) => flatten(&key, below, axes),
            values => axes.push((key, values)),
        }
    }
}

/// Lays `key=value` on a tree. The value is TOML where it can be read so, else a string.
fn with_set(name: &str, written: Tree, set: &str) -> Result<Tree, ScenarioError> {
    let Some((key, text)) = set.split_once('=') else {
        return Err(ScenarioError::of_text(format!("--set {set}"), "is written like `edge.buffer=4p`"));
    };
    let (key, text) = (key.trim(), text.trim());
    let value = Tree::parse("", &format!("value = {text}")).ok().and_then(|mut tree| {
        let only = tree.take("value");
        only.filter(|_| tree.value() == Value::Object(Map::new()))
    });
    let value = value.map_or_else(|| text.into(), |tree| tree.value());
    put(name, written, key, &value, &Origin::Override(set.into()))
}

fn put(name: &str, written: Tree, key: &str, value: &Value, origin: &Origin) -> Result<Tree, ScenarioError> {
    let over = Tree::of(value.clone(), origin);
    written.with(key, over).map_err(|error| ScenarioError {
        place: origin.place(name),
        key: error.path,
        message: error.message,
    })
}

/// A value as it is written behind `--set`.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn sort_keys(value: &mut Value) {
    match value {
        Value::Object(table) => {
            table.sort_keys();
            table.values_mut().for_each(sort_keys);
        }
        Value::Array(items) => items.iter_mut().for_each(sort_keys),
        _ => {}
    }
}
