//! Conversion of arguments from Python. Errors name the argument.

use std::fmt::Display;
use std::ops::RangeInclusive;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Converts an argument to a whole number in the range `allowed`.
///
/// # Errors
/// Raises `ValueError` if the argument is out of range, `TypeError` if the argument is not a whole number.
pub(crate) fn whole<T>(name: &str, any: &Bound<'_, PyAny>, allowed: RangeInclusive<T>) -> PyResult<T>
where
    T: TryFrom<i64> + PartialOrd + Display,
{
    let (least, most) = (allowed.start(), allowed.end());
    let message = || format!("{name}: {any} is not a whole number from {least} to {most}");
    let number = any.extract::<i64>().map_err(|error| told(any.py(), error, message))?;
    let fitting = T::try_from(number).ok().filter(|number| allowed.contains(number));
    fitting.ok_or_else(|| PyValueError::new_err(message()))
}

/// Converts an optional argument to a whole number in the range `allowed`.
pub(crate) fn whole_or_none<T>(
    name: &str,
    any: Option<&Bound<'_, PyAny>>,
    allowed: RangeInclusive<T>,
) -> PyResult<Option<T>>
where
    T: TryFrom<i64> + PartialOrd + Display,
{
    any.map(|any| whole(name, any, allowed)).transpose()
}

/// Converts an argument to a number that satisfies `holds`; `allowed` describes the condition in words.
///
/// # Errors
/// Raises the same errors as [`whole`].
pub(crate) fn number(
    name: &str,
    any: &Bound<'_, PyAny>,
    allowed: &str,
    holds: impl Fn(f64) -> bool,
) -> PyResult<f64> {
    let message = || format!("{name}: {any} is not {allowed}");
    let number = any.extract().map_err(|error| told(any.py(), error, message))?;
    if holds(number) { Ok(number) } else { Err(PyValueError::new_err(message())) }
}

/// Adds the argument's name to Python's error for a number that is too large or not a number.
fn told(py: Python<'_>, error: PyErr, message: impl Fn() -> String) -> PyErr {
    if error.is_instance_of::<PyOverflowError>(py) {
        PyValueError::new_err(message())
    } else if error.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(message())
    } else {
        error
    }
}
