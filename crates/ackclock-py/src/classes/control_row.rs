//! Adds congestion controls in Python to the registry of senders, with the recovery and the options of `sack`.

use std::sync::Arc;

use ackclock_core::{ConfigError, Entry, Time};
use ackclock_tcp::cc::held::MakeControl;
use ackclock_tcp::{FlowParams, SENDERS, Sender, SenderConfig, SenderRow};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Map, Value};

use super::class::{Class, Registration};
use super::control::{Control, PythonControl};
use super::failure::fail;

/// Sender whose recovery and options a congestion control in Python gets.
const BASE: &str = "sack";

/// A sender with a congestion control in Python.
struct Row {
    class: Arc<Class>,
    keys: Map<String, Value>,
    base: Arc<dyn SenderRow>,
}

/// Registers a class as a sender with SACK recovery and this congestion control.
#[pyfunction]
pub(crate) fn add_congestion_control(registration: Registration<'_>) -> PyResult<()> {
    let base = SENDERS.entry(BASE).map_err(|error| PyValueError::new_err(error.message))?;
    let class = Arc::new(Class::new(registration)?);
    let (name, options) = (&class.name, (base.defaults)());
    if let Some(key) = class.defaults.keys().find(|key| options.get(key.as_str()).is_some()) {
        return Err(PyValueError::new_err(format!("{name}: {key} is an option of all senders")));
    }
    SENDERS.add(entry(&class, base)).map_err(|error| PyValueError::new_err(error.message))
}

/// Row of the registry. It lives until the process ends.
fn entry(class: &Arc<Class>, base: &'static Entry<dyn SenderRow>) -> Entry<dyn SenderRow> {
    let [parsed, completed, described, defaulted] = std::array::from_fn(|_| Arc::clone(class));
    Entry {
        name: String::leak(class.name.clone()),
        parse: Box::leak(Box::new(move |table| {
            let (keys, rest) = parsed.split(table)?;
            let base = (base.parse)(Value::Object(rest)).map_err(|error| with_keys(error, &parsed))?;
            Ok(Arc::new(Row { class: Arc::clone(&parsed), keys, base }) as Arc<dyn SenderRow>)
        })),
        complete: Box::leak(Box::new(move |table| {
            let (keys, rest) = completed.split(table)?;
            Ok(merged(keys, (base.complete)(Value::Object(rest))?))
        })),
        schema: Box::leak(Box::new(move || {
            let mut schema = described.schema();
            let options = (base.schema)()["properties"].take();
            if let Some(properties) = schema["properties"].as_object_mut() {
                schema["properties"] = merged(std::mem::take(properties), options);
            }
            schema
        })),
        defaults: Box::leak(Box::new(move || merged(defaulted.defaults.clone(), (base.defaults)()))),
    }
}

/// An error of an unknown key, which may be a misspelt key of the class.
fn with_keys(error: ConfigError, class: &Class) -> ConfigError {
    match error.message.starts_with("unknown field") {
        true => {
            ConfigError { message: format!("{}; the class has {}", error.message, class.known()), ..error }
        }
        false => error,
    }
}

/// The keys of a class, then the options of the base.
fn merged(mut keys: Map<String, Value>, options: Value) -> Value {
    if let Value::Object(options) = options {
        keys.extend(options);
    }
    Value::Object(keys)
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} {:?}", self.class.name, self.keys, self.base)
    }
}

impl SenderRow for Row {
    fn build(&self, params: FlowParams) -> Result<Box<dyn Sender>, ConfigError> {
        self.base.build_steered(params, self)
    }

    fn build_steered(&self, params: FlowParams, own: &dyn SenderRow) -> Result<Box<dyn Sender>, ConfigError> {
        self.base.build_steered(params, own)
    }

    fn control(&self, config: &Arc<SenderConfig>) -> MakeControl {
        let (class, keys) = (Arc::clone(&self.class), self.keys.clone());
        let fallback = self.base.control(config);
        Box::new(move |context| {
            Python::attach(|py| {
                let object = class.object::<PythonControl>(py, &keys);
                let object = object.map_err(|error| fail(py, &class.name, "start", Time::ZERO, error));
                match Control::new(class.name.as_str().into(), object.ok(), context) {
                    Some(control) => Box::new(control),
                    // The run stops: `fail` has ended it.
                    None => fallback(context),
                }
            })
        })
    }

    fn config(&self) -> &SenderConfig {
        self.base.config()
    }

    fn idle_with(&self, of_control: &[&'static str]) -> Vec<&'static str> {
        self.base.idle_with(of_control)
    }

    fn control_options(&self) -> &'static [&'static str] {
        self.base.control_options()
    }

    fn uses_sack(&self) -> bool {
        self.base.uses_sack()
    }

    fn adapts_dup_thresh(&self) -> bool {
        self.base.adapts_dup_thresh()
    }
}
