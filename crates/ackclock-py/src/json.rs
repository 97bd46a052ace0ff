//! Python values as JSON.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use serde_json::{Map, Number, Value};

/// A mapping with string keys as a JSON object.
pub(crate) fn table(mapping: &Bound<'_, PyMapping>) -> PyResult<Map<String, Value>> {
    mapping
        .items()?
        .iter()
        .map(|item| {
            let (key, value): (String, Bound<'_, PyAny>) = item.extract()?;
            Ok((key, self::value(&value)?))
        })
        .collect()
}

fn value(any: &Bound<'_, PyAny>) -> PyResult<Value> {
    if any.is_none() {
        return Ok(Value::Null);
    }
    // A bool is an int to Python, so it comes first.
    if any.is_instance_of::<PyBool>() {
        return Ok(Value::Bool(any.extract()?));
    }
    if any.is_instance_of::<PyInt>() {
        return Ok(Value::Number(any.extract::<i64>()?.into()));
    }
    if any.is_instance_of::<PyFloat>() {
        let number: f64 = any.extract()?;
        return Number::from_f64(number).map(Value::Number).ok_or_else(|| unsuitable(any));
    }
    if any.is_instance_of::<PyString>() {
        return Ok(Value::String(any.extract()?));
    }
    if any.is_instance_of::<PyList>() || any.is_instance_of::<PyTuple>() {
        return any.try_iter()?.map(|item| value(&item?)).collect::<PyResult<_>>().map(Value::Array);
    }
    match any.cast::<PyMapping>() {
        Ok(mapping) => table(mapping).map(Value::Object),
        Err(_) => Err(unsuitable(any)),
    }
}

fn unsuitable(any: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("{any} cannot stand in a scenario"))
}
