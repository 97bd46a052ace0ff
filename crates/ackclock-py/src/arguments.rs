//! Arguments as Python gives them: what is out of range is told by the argument's name.

use std::fmt::Display;
use std::ops::RangeInclusive;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;

/// A whole number of `allowed`.
///
/// # Errors
/// `ValueError` where it lies outside, `TypeError` where it is no whole number.
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

/// A whole number within these bounds, where one is given.
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

/// A number for which `holds`; `allowed` says in words which these are.
///
/// # Errors
/// As [`whole`].
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

/// What Python says of a number too large for the machine, or of none at all, with the argument's name.
fn told(py: Python<'_>, error: PyErr, message: impl Fn() -> String) -> PyErr {
    if error.is_instance_of::<PyOverflowError>(py) {
        PyValueError::new_err(message())
    } else if error.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(message())
    } else {
        error
    }
}
