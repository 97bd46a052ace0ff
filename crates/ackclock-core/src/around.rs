//! Components around another component of their own kind.

use serde_json::Value;

use crate::registry::read_table;
use crate::{Component, Config, ConfigError, Registry};

/// Configuration of a component around another component of its own kind, in the table `inner`. The
/// [registry](crate::registry!) reads `inner`, so that the file of the component does not depend on the registry that
/// lists it.
pub trait Around<C: ?Sized + 'static>: Config {
    /// Returns the inner component.
    fn inner(&mut self) -> &mut Component<C>;

    /// Checks that this component can be around `inner`.
    ///
    /// # Errors
    /// Fails with the key of the inner component's table, its value, and the allowed values.
    fn check_inner(&self, inner: &C) -> Result<(), ConfigError>;
}

/// Parses a table like [`read_table`], and its inner component by `registry`.
///
/// # Errors
/// Fails with the same errors as [`read_table`], and with those of the inner component.
pub fn read_around<T: Around<C>, C: ?Sized>(table: Value, registry: &Registry<C>) -> Result<T, ConfigError> {
    let mut config: T = read_table(table)?;
    let inner = config.inner().config(registry).cloned();
    let checked = inner.and_then(|inner| config.check_inner(&inner));
    checked.map_err(|error| error.under("inner"))?;
    Ok(config)
}

/// Parses a table like [`read_around`], and returns the table with all defaults, also those of the inner component.
///
/// # Errors
/// Fails with the same errors as [`read_around`].
pub fn complete_around<T: Around<C>, C: ?Sized>(
    table: Value,
    registry: &Registry<C>,
) -> Result<Value, ConfigError> {
    let mut config: T = read_around(table, registry)?;
    let whole = config.inner().complete(registry).map_err(|error| error.under("inner"))?;
    *config.inner() = whole;
    // Serialising a configuration cannot fail, because it is a struct of strings, numbers and lists.
    Ok(serde_json::to_value(config.complete()?).unwrap_or(Value::Null))
}
