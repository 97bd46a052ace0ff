//! Scenarios: reads a scenario text and overrides, checks the tables, and expands the points of the sweep.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, OnceLock};

use ackclock_core::results::Provenance;
use ackclock_core::{ConfigError, Unused};
use serde_json::{Map, Value};

use crate::idle;
use crate::inputs::sha256;
use crate::kind::Dropped;
use crate::presets::Layers;
use crate::tree::{Origin, Tree, merge};
use crate::{ScenarioError, Tables, presets};

/// A scenario that was read and checked.
#[derive(Clone, Debug)]
pub struct Scenario {
    source: Source,
    /// Overrides of values of the file, in order of application.
    overrides: Vec<Override>,
    /// Merged tree of file, overrides, preset and defaults.
    merged: Tree,
    tables: Tables,
    dropped: Vec<Dropped>,
    begins_anywhere: bool,
    /// Keys that the caller varies, in addition to those of overrides and sweep.
    varied: Vec<String>,
    digests: OnceLock<Digests>,
}

/// SHA-256 of a scenario, and of its complete configuration, in hexadecimal.
#[derive(Clone, Debug)]
struct Digests {
    scenario: String,
    configuration: String,
}

/// Scenario text as written, shared by all points of a sweep.
#[derive(Clone, Debug)]
struct Source {
    name: Arc<str>,
    /// Tree of the file without `sweep`.
    written: Arc<Tree>,
    says: Says,
    /// The `[sweep]` table of the file.
    sweep: Option<Arc<Tree>>,
    /// The overrides given with the file.
    sets: Arc<[String]>,
}

/// Whether the scenario file contains any key, and whether it contains flows.
#[derive(Clone, Copy, Debug)]
struct Says {
    anything: bool,
    flows: bool,
}

/// A value that replaces a value of the file.
#[derive(Clone, Debug)]
pub(crate) struct Override {
    /// Dotted path of the overridden key.
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

impl Scenario {
    /// Reads the scenario `text` of the file `name` and applies the overrides `sets`. An override has the form
    /// `edge.buffer=4p`.
    ///
    /// # Errors
    /// Returns one error message with file, line, key, value and the values allowed.
    pub fn load(name: &str, text: &str, sets: &[String]) -> Result<Self, ScenarioError> {
        Self::load_beside(name, text, sets, &[])
    }

    /// Reads a scenario that is run with several values of each key in `varied`. A key that has no effect with the present
    /// value of these may have one with another.
    ///
    /// # Errors
    /// Same errors as [`load`](Self::load).
    pub fn load_beside(
        name: &str,
        text: &str,
        sets: &[String],
        varied: &[&str],
    ) -> Result<Self, ScenarioError> {
        let mut written = Tree::parse(name, text)?;
        // The table of `ackclock box`, which regulates real packets with this file's `[edge]`.
        drop(written.take("box"));
        let sweep = written.take("sweep").map(Arc::new);
        let says = Says {
            anything: written.value() != Value::Object(Map::new()),
            flows: written.get("flow").is_some(),
        };
        if !says.flows {
            // Overrides of `flow.0` and of every flow need a list with at least one flow.
            let one = Tree::of(serde_json::json!({ "flow": [{}] }), &Origin::Default);
            written = merge(written, one);
        }
        let overrides = sets.iter().map(|set| Override::parse(set)).collect::<Result<_, _>>()?;
        let source = Source { name: name.into(), written: Arc::new(written), says, sweep, sets: sets.into() };
        Self::build(source, overrides, varied)
    }

    /// Copy of the scenario with additional overrides and without its sweep.
    pub(crate) fn with(&self, further: Vec<Override>) -> Result<Self, ScenarioError> {
        let overrides = self.overrides.iter().cloned().chain(further).collect();
        Self::build(Source { sweep: None, ..self.source.clone() }, overrides, &[])
    }

    /// Name of the scenario file.
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// The checked tables of the scenario.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Overrides of values of the file.
    pub(crate) fn overrides(&self) -> &[Override] {
        &self.overrides
    }

    /// The `[sweep]` table of the file; `None` for a point of the sweep.
    pub(crate) fn sweep(&self) -> Option<&Tree> {
        self.source.sweep.as_deref()
    }

    /// Whether the file is empty and there are no overrides.
    pub fn is_empty(&self) -> bool {
        !self.source.says.anything && self.source.sweep.is_none() && self.overrides.is_empty()
    }

    /// Whether the file or an override has a `flow` key.
    pub fn names_flows(&self) -> bool {
        self.source.says.flows || self.overrides.iter().any(|set| set.key.split('.').next() == Some("flow"))
    }

    /// The keys that `[sweep]` varies.
    pub fn swept(&self) -> Vec<String> {
        // Errors of the sweep axes were already reported when the scenario was read.
        self.axes().map_or_else(|_| Vec::new(), |axes| axes.into_iter().map(|axis| axis.key).collect())
    }

    /// Options dropped because an override changed the kind of their component.
    pub fn dropped(&self) -> &[Dropped] {
        &self.dropped
    }

    /// Whether runs start at random offsets of a recording by default, because nothing else in the scenario is random.
    pub fn begins_anywhere(&self) -> bool {
        self.begins_anywhere
    }

    /// File and overrides as JSON, without values from presets and defaults. The JSON describes an equivalent scenario.
    pub fn said(&self) -> Value {
        self.merged.said().map_or_else(|| Value::Object(Map::new()), |tree| tree.value())
    }

    /// Preset, file and overrides merged, as JSON with sorted keys and without `sweep`.
    pub fn canonical(&self) -> String {
        let mut value = self.merged.value();
        sort_keys(&mut value);
        text(&value)
    }

    /// SHA-256 of the text from [`Self::canonical`], in hexadecimal.
    pub fn sha256(&self) -> String {
        self.digests().scenario.clone()
    }

    /// The digests, which all runs of the scenario share.
    fn digests(&self) -> &Digests {
        self.digests.get_or_init(|| Digests {
            scenario: sha256(self.canonical().as_bytes()),
            configuration: sha256(text(&self.configuration()).as_bytes()),
        })
    }

    /// The complete configuration: every key with its value, including defaults. The configuration is an equivalent
    /// scenario without preset and sweep.
    pub fn configuration(&self) -> Value {
        self.tables.complete().expect("its tables were checked, and completing them checks nothing else")
    }

    /// Provenance of this scenario's results, without the input files. A run adds the input files to the provenance.
    pub fn provenance(&self) -> Provenance {
        Provenance {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("ACKCLOCK_COMMIT").map(str::to_owned),
            dirty: option_env!("ACKCLOCK_DIRTY").and_then(|dirty| dirty.parse().ok()),
            scenario_sha256: self.sha256(),
            configuration_sha256: self.digests().configuration.clone(),
            inputs: BTreeMap::new(),
            recordings: BTreeMap::new(),
            set: self.source.sets.to_vec(),
        }
    }

    /// Adds the line in the scenario text to an error of a component.
    pub(crate) fn error(&self, error: &ConfigError) -> ScenarioError {
        ScenarioError::at(self.name(), &self.merged, error)
    }

    fn build(source: Source, overrides: Vec<Override>, varied: &[&str]) -> Result<Self, ScenarioError> {
        let (mut merged, dropped) = layered(&source.name, &source.written, &overrides)?;
        let at = |error: &ConfigError| ScenarioError::at(&source.name, &merged, error);
        let tables: Tables = serde_path_to_error::deserialize(merged.value())
            .map_err(|error| at(&ConfigError::new(path_of(&error), error.inner())))?;
        let mut tables = tables.filled();
        let begins_anywhere = tables.begin_anywhere();
        tables.check().map_err(|error| at(&error))?;
        let idle = idle::of(&tables.flow, tables.relay.as_ref()).map_err(|error| at(&error))?;
        idle::refuse(&mut merged, &idle).map_err(|error| ScenarioError::at(&source.name, &merged, &error))?;
        let (digests, varied) = (OnceLock::new(), varied.iter().map(|&key| key.to_owned()).collect());
        let scenario = Self { source, overrides, merged, tables, dropped, begins_anywhere, varied, digests };
        let unused = scenario.tables.edge.unused().map_err(|error| scenario.error(&error.under("edge")))?;
        scenario.refuse(&unused.into_iter().map(|key| key.under("edge")).collect::<Vec<_>>())?;
        Ok(scenario)
    }

    /// Refuses these keys without effect, if the file or an override sets one of them.
    ///
    /// # Errors
    /// Fails with the first such key.
    pub(crate) fn refuse(&self, unused: &[Unused]) -> Result<(), ScenarioError> {
        self.said_of(unused)?.into_iter().next().map_or(Ok(()), Err)
    }

    /// Remarks on keys that describe traffic or a network, and that nothing in the simulated scenario reacts to.
    ///
    /// # Errors
    /// Fails if a component is invalid.
    pub fn said_of_unnoticed(&self) -> Result<Vec<String>, ScenarioError> {
        let unnoticed = self.tables.unnoticed().map_err(|error| self.error(&error))?;
        Ok(self.said_of(&unnoticed)?.iter().map(ToString::to_string).collect())
    }

    /// Errors about those of these keys without effect that the file or an override sets.
    fn said_of(&self, unused: &[Unused]) -> Result<Vec<ScenarioError>, ScenarioError> {
        let (set, axes) = (self.overrides.iter().map(|set| set.key.as_str()), self.axes()?);
        let swept = axes.iter().map(|axis| axis.key());
        let varied: Vec<_> = set.chain(swept).chain(self.varied.iter().map(String::as_str)).collect();
        Ok(idle::said_unused(&self.merged, unused, &varied).iter().map(|error| self.error(error)).collect())
    }
}

/// Merges defaults, preset, file and overrides into one tree. Returns the tree, and the options that changes of kind
/// dropped.
fn layered(
    name: &str,
    written: &Tree,
    overrides: &[Override],
) -> Result<(Tree, Vec<Dropped>), ScenarioError> {
    let preset = overrides.iter().rfind(|set| set.key == "preset").map(Override::tree);
    let none = Layers::none();
    let preset = match preset.as_ref().or(written.get("preset")) {
        None => &none,
        Some(tree) => presets::layers(&tree.value()).map_err(|error| error_at(name, &tree.origin, error))?,
    };
    let (merged, dropped) = laid_over(preset, name, written, overrides)?;
    let Some(preset) = preset.behind_a_box(&merged) else {
        return Ok((preset.with_relay(preset.of_edges(merged)), dropped));
    };
    let (merged, dropped) = laid_over(&preset, name, written, overrides)?;
    Ok((preset.with_relay(preset.of_edges(merged)), dropped))
}

/// Merges defaults, the layers of a preset, file and overrides into one tree.
fn laid_over(
    preset: &Layers,
    name: &str,
    written: &Tree,
    overrides: &[Override],
) -> Result<(Tree, Vec<Dropped>), ScenarioError> {
    let base = merge(DEFAULTS.clone(), preset.tree.clone());
    let adds_flows = overrides.iter().any(|set| set.key == "flow");
    let base_flow = base.get("flow").filter(|_| adds_flows).cloned();
    let mut merged = merge(base, merge(preset.options.clone(), written.clone()));
    let mut dropped = Vec::new();
    for set in overrides {
        let mut over = set.tree();
        if let (true, Some(flow)) = (set.key == "flow" && over.is_list(), &base_flow) {
            // A flow that an override adds gets the preset's defaults for flows.
            let options = preset.options.get("flow").cloned();
            over = merge(flow.clone(), options.map_or(over.clone(), |options| merge(options, over)));
        }
        let laid = merged.overlaid(&set.key, over, &mut dropped);
        merged = laid.map_err(|error| error_at(name, &set.origin, error))?;
    }
    Ok((merged, dropped))
}

fn error_at(name: &str, origin: &Origin, error: ConfigError) -> ScenarioError {
    ScenarioError::of_key(origin.place(name), error.path, &error.message)
}

/// Dotted path of the key in a serde error.
fn path_of(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let path = error.path().to_string();
    if path == "." { String::new() } else { path }
}

/// The lowest layer of values: defaults of every key. Defaults of `flow` apply to each flow.
static DEFAULTS: LazyLock<Tree> = LazyLock::new(|| {
    // Serialisation cannot fail, because the tables consist of strings, numbers and lists.
    let mut value = serde_json::to_value(Tables::default()).unwrap_or(Value::Null);
    if let Some(flow) = value.get_mut("flow") {
        *flow = flow[0].take();
    }
    Tree::of(value, &Origin::Default)
});

/// The text of a JSON value, written faster than by its `Display`.
fn text(value: &Value) -> String {
    serde_json::to_string(value).expect("JSON in memory always serialises")
}

impl Override {
    /// Parses an override `key=value`. The value of an override is parsed as TOML if possible, otherwise as a string.
    fn parse(set: &str) -> Result<Self, ScenarioError> {
        let place = format!("--set {set}");
        let Some((key, text)) = set.split_once('=') else {
            return Err(ScenarioError::of_text(place, "is written like `edge.buffer=4p`"));
        };
        let (key, text) = (key.trim(), text.trim());
        if key.split('.').next() == Some("sweep") {
            let message = "a sweep is set in the file; `--set edge.buffer=4p` sets a key at every point";
            return Err(ScenarioError { place, key: key.to_owned(), message: message.to_owned() });
        }
        let value = Tree::parse("", &format!("value = {text}")).ok().and_then(|mut tree| {
            let only = tree.take("value");
            only.filter(|_| tree.value() == Value::Object(Map::new()))
        });
        let value = value.map_or_else(|| text.into(), |tree| tree.value());
        Ok(Self { key: key.to_owned(), value, origin: Origin::Override(place.into()) })
    }

    fn tree(&self) -> Tree {
        Tree::of(self.value.clone(), &self.origin)
    }
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

/// One line that lists all options dropped from these scenarios by changes of kind; `None` if there are none.
pub fn dropped_from<'a>(scenarios: impl IntoIterator<Item = &'a Scenario>) -> Option<String> {
    let dropped: BTreeSet<_> = scenarios.into_iter().flat_map(Scenario::dropped).collect();
    let names: Vec<_> = dropped.into_iter().map(Dropped::to_string).collect();
    (!names.is_empty()).then(|| format!("dropped with the change of kind: {}", names.join(", ")))
}
