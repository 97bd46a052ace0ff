//! A class in Python that scenarios use by name, with its annotated attributes as keys.

use ackclock_core::ConfigError;
use pyo3::PyTypeInfo;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use serde_json::{Map, Value, json};

/// Key of a completed table that identifies the source of the class, so that results of another version are told apart.
const SOURCE: &str = "source_sha256";

/// A registered class.
pub(super) struct Class {
    /// Name in scenarios.
    pub(super) name: String,
    class: Py<PyType>,
    /// Keys of the class with their defaults, and the hash of the source.
    pub(super) defaults: Table,
    description: String,
}

/// Table of a component.
pub(super) type Table = Map<String, Value>;

/// What Python passes to register a class: name, class, JSON object of the keys with their defaults, description, and
/// SHA-256 of the source.
pub(super) type Registration<'py> = (String, Bound<'py, PyType>, String, String, String);

impl Class {
    /// # Errors
    /// If the keys are not a JSON object.
    pub(super) fn new((name, class, keys, description, source): Registration<'_>) -> PyResult<Self> {
        let defaults = serde_json::from_str(&keys);
        let mut defaults: Table =
            defaults.map_err(|error| PyValueError::new_err(format!("{name}: {error}")))?;
        defaults.insert(SOURCE.into(), source.into());
        Ok(Self { name, class: class.unbind(), defaults, description })
    }

    /// Splits a table into the keys of the class, over their defaults, and all other keys.
    ///
    /// # Errors
    /// Names a key of another type than its default.
    pub(super) fn split(&self, table: Value) -> Result<(Table, Table), ConfigError> {
        let (mut own, mut rest) = (self.defaults.clone(), Map::new());
        let Value::Object(table) = table else { return Ok((own, rest)) };
        for (key, value) in table {
            let Some(default) = self.defaults.get(&key) else {
                rest.insert(key, value);
                continue;
            };
            if key == SOURCE && value != *default {
                return Err(ConfigError::new(key, "the class has another source now"));
            }
            if type_of(default) != type_of(&value) && !(default.is_f64() && value.is_number()) {
                let message =
                    format!("{value} is not of the type {}, like the default {default}", type_of(default));
                return Err(ConfigError::new(key, message));
            }
            own.insert(key, value);
        }
        Ok((own, rest))
    }

    /// Names of the keys for a message.
    pub(super) fn known(&self) -> String {
        let keys = self.defaults.keys().filter(|key| *key != SOURCE);
        let known: Vec<_> = keys.map(|key| format!("`{key}`")).collect();
        if known.is_empty() { "no keys".to_owned() } else { known.join(", ") }
    }

    /// JSON schema of the table.
    pub(super) fn schema(&self) -> Value {
        let properties = self.defaults.iter().map(|(key, default)| {
            let description =
                if key == SOURCE { "SHA-256 of the source of the class." } else { "Attribute of the class." };
            (key.clone(), json!({ "type": type_of(default), "default": default, "description": description }))
        });
        json!({
            "description": self.description,
            "type": "object",
            "properties": properties.collect::<Table>(),
            "additionalProperties": false,
        })
    }

    /// A new object of the class with `keys` as attributes. `T` is the base class.
    pub(super) fn object<'py, T: PyTypeInfo>(
        &self,
        py: Python<'py>,
        keys: &Table,
    ) -> PyResult<Bound<'py, T>> {
        let object = self.class.bind(py).call0()?;
        for (key, value) in keys.iter().filter(|(key, _)| *key != SOURCE) {
            match value {
                Value::Bool(value) => object.setattr(key, value)?,
                Value::String(value) => object.setattr(key, value)?,
                Value::Number(value) if self.defaults[key].is_f64() => object.setattr(key, value.as_f64())?,
                value => object.setattr(key, value.as_i64())?,
            }
        }
        Ok(object.cast_into::<T>()?)
    }
}

/// Whether `class` overrides a method of the base class `T`.
pub(super) fn overrides<T: PyTypeInfo>(class: &Bound<'_, PyType>, method: &str) -> PyResult<bool> {
    let base = class.py().get_type::<T>();
    Ok(!class.getattr(method)?.is(&base.getattr(method)?))
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
