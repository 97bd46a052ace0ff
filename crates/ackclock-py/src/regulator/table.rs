//! Adds classes in Python to the registry of regulators, with their annotated attributes as keys.

use std::sync::Arc;

use ackclock_core::{ConfigError, Entry, Time, name_of};
use ackclock_edge::{FlowContext, REGULATORS, Regulator, RegulatorConfig, Scope};
use ackclock_link::Departures;
use ackclock_scenario::Scenario;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use serde_json::{Map, Value, json};

use super::adapter::{Adapter, overrides};
use super::failure::fail;
use super::objects::PythonRegulator;

/// Key of a completed table that identifies the source of the class, so that results of another version are told apart.
const SOURCE: &str = "source_sha256";

/// A registered class.
struct Class {
    name: String,
    class: Py<PyType>,
    scope: Scope,
    /// Whether it needs to see departures.
    departures: Departures,
    /// Keys with their defaults, and the hash of the source.
    defaults: Map<String, Value>,
    description: String,
}

/// Table of a regulator in Python, parsed.
struct Config {
    class: Arc<Class>,
    keys: Map<String, Value>,
}

/// Registers a class; `keys` is a JSON object of its keys with their defaults.
#[pyfunction]
pub(crate) fn add_regulator(
    name: &str,
    made: Bound<'_, PyType>,
    scope: &str,
    keys: &str,
    description: &str,
    source_sha256: &str,
) -> PyResult<()> {
    let wrong = |error: &dyn std::fmt::Display| PyValueError::new_err(format!("{name}: {error}"));
    let scope: Scope = serde_json::from_value(scope.into())
        .map_err(|_| wrong(&format!("scope: {scope:?} is none of flow, user, queue")))?;
    let mut defaults: Map<String, Value> = serde_json::from_str(keys).map_err(|error| wrong(&error))?;
    defaults.insert(SOURCE.into(), source_sha256.into());
    let class = Arc::new(Class {
        name: name.to_owned(),
        departures: match overrides(&made, "on_departed")? || overrides(&made, "on_idle")? {
            true => Departures::Watched,
            false => Departures::Unwatched,
        },
        class: made.unbind(),
        scope,
        defaults,
        description: description.to_owned(),
    });
    REGULATORS.add(row(class)).map_err(|error| PyValueError::new_err(error.message))
}

/// Row of the registry for a class. It lives until the process ends.
fn row(class: Arc<Class>) -> Entry<dyn RegulatorConfig> {
    let [parsed, completed, described, defaulted] = std::array::from_fn(|_| Arc::clone(&class));
    Entry {
        name: String::leak(class.name.clone()),
        parse: Box::leak(Box::new(move |table| {
            let keys = parsed.keys(table)?;
            Ok(Arc::new(Config { class: Arc::clone(&parsed), keys }) as Arc<dyn RegulatorConfig>)
        })),
        complete: Box::leak(Box::new(move |table| completed.keys(table).map(Value::Object))),
        schema: Box::leak(Box::new(move || described.schema())),
        defaults: Box::leak(Box::new(move || Value::Object(defaulted.defaults.clone()))),
    }
}

impl Class {
    /// The keys of `table` over the defaults.
    fn keys(&self, table: Value) -> Result<Map<String, Value>, ConfigError> {
        let mut keys = self.defaults.clone();
        let Value::Object(table) = table else { return Ok(keys) };
        for (key, value) in table {
            let Some(default) = self.defaults.get(&key) else {
                let known: Vec<_> =
                    self.defaults.keys().filter(|key| *key != SOURCE).map(|key| format!("`{key}`")).collect();
                let known = if known.is_empty() { "no keys".to_owned() } else { known.join(", ") };
                return Err(ConfigError::new(&key, format!("unknown field `{key}`, expected {known}")));
            };
            if key == SOURCE && value != *default {
                return Err(ConfigError::new(key, "the class has another source now"));
            }
            if type_of(default) != type_of(&value) && !(default.is_f64() && value.is_number()) {
                let message =
                    format!("{value} is not of the type {}, like the default {default}", type_of(default));
                return Err(ConfigError::new(key, message));
            }
            keys.insert(key, value);
        }
        Ok(keys)
    }

    fn schema(&self) -> Value {
        let properties = self.defaults.iter().map(|(key, default)| {
            let description =
                if key == SOURCE { "SHA-256 of the source of the class." } else { "A key of the class." };
            (key.clone(), json!({ "type": type_of(default), "default": default, "description": description }))
        });
        json!({
            "description": self.description,
            "type": "object",
            "properties": properties.collect::<Map<String, Value>>(),
            "additionalProperties": false,
        })
    }
}

/// JSON type of a key.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        _ => "string",
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.class.name, self.keys)
    }
}

impl RegulatorConfig for Config {
    fn build(&self, context: FlowContext) -> Option<Box<dyn Regulator>> {
        Python::attach(|py| match self.object(py, context) {
            Ok(adapter) => Some(Box::new(adapter) as _),
            Err(error) => {
                fail(py, &self.class.name, "start", Time::ZERO, error);
                None
            }
        })
    }

    fn scope(&self) -> Scope {
        self.class.scope
    }

    fn departures(&self) -> Departures {
        self.class.departures
    }
}

impl Config {
    /// A started object of the class with its keys as attributes.
    fn object(&self, py: Python<'_>, context: FlowContext) -> PyResult<Adapter> {
        let object = self.class.class.bind(py).call0()?.cast_into::<PythonRegulator>()?;
        for (key, value) in self.keys.iter().filter(|(key, _)| *key != SOURCE) {
            match value {
                Value::Bool(value) => object.setattr(key, value)?,
                Value::String(value) => object.setattr(key, value)?,
                Value::Number(value) if self.class.defaults[key].is_f64() => {
                    object.setattr(key, value.as_f64())?
                }
                value => object.setattr(key, value.as_i64())?,
            }
        }
        object.call_method1("start", (context.flow.0, context.user))?;
        Adapter::new(self.class.name.as_str().into(), &object)
    }
}

/// Whether a scenario names a regulator in Python.
pub(crate) fn uses_python(scenario: &Scenario) -> bool {
    let edge = &scenario.tables().edge;
    let added = |table: &Value| REGULATORS.is_added(&name_of(table));
    added(&edge.regulator) || edge.up_regulator.as_ref().is_some_and(|regulator| added(regulator))
}
