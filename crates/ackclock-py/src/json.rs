//! Conversion of Python values to JSON.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use serde_json::{Map, Number, Value};

/// Converts a mapping with string keys to a JSON object; error messages name the mapping by `path`.
///
/// # Errors
/// Raises `TypeError` or `ValueError` with the key if a value cannot be used in a scenario.
pub(crate) fn table(path: &str, mapping: &Bound<'_, PyMapping>) -> PyResult<Map<String, Value>> {
    mapping
        .items()?
        .iter()
        .map(|item| {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
            let name = if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
            let key =
                key.extract().map_err(|_| PyTypeError::new_err(format!("{name}: a key must be text")))?;
            Ok((key, self::value(&name, &value)?))
        })
        .collect()
}

fn value(name: &str, any: &Bound<'_, PyAny>) -> PyResult<Value> {
    if any.is_none() {
        return Ok(Value::Null);
    }
    // A Python bool is also an int, so bools are checked first.
    if any.is_instance_of::<PyBool>() {
        return Ok(Value::Bool(any.extract()?));
    }
    if any.is_instance_of::<PyInt>() {
        return whole(name, any);
    }
    if any.is_instance_of::<PyFloat>() {
        let finite = Number::from_f64(any.extract()?).map(Value::Number);
        return finite.ok_or_else(|| PyValueError::new_err(format!("{name}: {any} is not a finite number")));
    }
    if any.is_instance_of::<PyString>() {
        return Ok(Value::String(any.extract()?));
    }
    if any.is_instance_of::<PyList>() || any.is_instance_of::<PyTuple>() {
        return any.try_iter()?.map(|item| value(name, &item?)).collect::<PyResult<_>>().map(Value::Array);
    }
    if let Ok(mapping) = any.cast::<PyMapping>() {
        return table(name, mapping).map(Value::Object);
    }
    // The method `tolist` converts NumPy numbers and arrays; the method `__fspath__` converts paths.
    for method in ["tolist", "__fspath__"] {
        if any.hasattr(method)? {
            let plain = any.call_method0(method)?;
            // The method `tolist` returns a NumPy long double unchanged, so the conversion must not repeat.
            if !plain.get_type().is(any.get_type()) {
                return value(name, &plain);
            }
        }
    }
    Err(PyTypeError::new_err(format!("{name}: {any} cannot be used in a scenario")))
}

fn whole(name: &str, any: &Bound<'_, PyAny>) -> PyResult<Value> {
    let number = any.extract::<i64>().map(Number::from).or_else(|_| any.extract::<u64>().map(Number::from));
    number.map(Value::Number).map_err(|_| {
        PyValueError::new_err(format!(
            "{name}: {any} is not a whole number from {} to {}",
            i64::MIN,
            u64::MAX
        ))
    })
}
