//! Adds classes in Python to the registry of regulators.

use std::sync::Arc;

use ackclock_core::{ConfigError, Entry, Time, name_of};
use ackclock_edge::{FlowContext, REGULATORS, Regulator, RegulatorConfig, Scope};
use ackclock_link::Departures;
use ackclock_scenario::Scenario;
use ackclock_tcp::SENDERS;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Map, Value};

use super::class::{Class, Registration, overrides};
use super::failure::fail;
use super::objects::PythonRegulator;
use super::regulator::Adapter;

/// A registered regulator.
struct Row {
    class: Class,
    scope: Scope,
    /// Whether it needs to see departures.
    departures: Departures,
}

/// Table of a regulator in Python, parsed.
struct Config {
    row: Arc<Row>,
    keys: Map<String, Value>,
}

/// Registers a class as a regulator.
#[pyfunction]
pub(crate) fn add_regulator(registration: Registration<'_>, scope: &str) -> PyResult<()> {
    let (name, made) = (registration.0.clone(), registration.1.clone());
    let scope: Scope = serde_json::from_value(scope.into()).map_err(|_| {
        PyValueError::new_err(format!("{name}: scope: {scope:?} is none of flow, user, queue"))
    })?;
    let watches = |method| overrides::<PythonRegulator>(&made, method);
    let departures = match watches("on_departed")? || watches("on_idle")? {
        true => Departures::Watched,
        false => Departures::Unwatched,
    };
    let row = Arc::new(Row { class: Class::new(registration)?, scope, departures });
    REGULATORS.add(entry(row)).map_err(|error| PyValueError::new_err(error.message))
}

/// Row of the registry. It lives until the process ends.
fn entry(row: Arc<Row>) -> Entry<dyn RegulatorConfig> {
    let [parsed, completed, described, defaulted] = std::array::from_fn(|_| Arc::clone(&row));
    Entry {
        name: String::leak(row.class.name.clone()),
        parse: Box::leak(Box::new(move |table| {
            let keys = parsed.keys(table)?;
            Ok(Arc::new(Config { row: Arc::clone(&parsed), keys }) as Arc<dyn RegulatorConfig>)
        })),
        complete: Box::leak(Box::new(move |table| completed.keys(table).map(Value::Object))),
        schema: Box::leak(Box::new(move || described.class.schema())),
        defaults: Box::leak(Box::new(move || Value::Object(defaulted.class.defaults.clone()))),
    }
}

impl Row {
    /// The keys of `table` over the defaults.
    fn keys(&self, table: Value) -> Result<Map<String, Value>, ConfigError> {
        let (own, rest) = self.class.split(table)?;
        match rest.keys().next() {
            None => Ok(own),
            Some(key) => {
                let known = self.class.known();
                Err(ConfigError::new(key, format!("unknown field `{key}`, expected {known}")))
            }
        }
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.row.class.name, self.keys)
    }
}

impl RegulatorConfig for Config {
    fn build(&self, context: FlowContext) -> Option<Box<dyn Regulator>> {
        Python::attach(|py| match self.started(py, context) {
            Ok(adapter) => Some(Box::new(adapter) as _),
            Err(error) => {
                fail(py, &self.row.class.name, "start", Time::ZERO, error);
                None
            }
        })
    }

    fn scope(&self) -> Scope {
        self.row.scope
    }

    fn departures(&self) -> Departures {
        self.row.departures
    }
}

impl Config {
    fn started(&self, py: Python<'_>, context: FlowContext) -> PyResult<Adapter> {
        let object = self.row.class.object::<PythonRegulator>(py, &self.keys)?;
        object.call_method1("start", (context.flow.0, context.user))?;
        Adapter::new(self.row.class.name.as_str().into(), &object)
    }
}

/// Whether a scenario names a class in Python.
pub(crate) fn uses_python(scenario: &Scenario) -> bool {
    let tables = scenario.tables();
    let added = |table: &Value| REGULATORS.is_added(&name_of(table));
    let edge = &tables.edge;
    added(&edge.regulator)
        || edge.up_regulator.as_ref().is_some_and(|regulator| added(regulator))
        || tables.flow.iter().any(|flow| SENDERS.is_added(&name_of(&flow.sender)))
}
