//! A component as written in a scenario file, with the configuration that its table describes.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::{ConfigError, Registry};

/// Component as written in a scenario: a name, or a table with `kind`. The first call of [`config`](Self::config)
/// parses the table; copies share the configuration.
pub struct Component<C: ?Sized + 'static> {
    table: Value,
    parsed: OnceLock<Result<Arc<C>, ConfigError>>,
}

impl<C: ?Sized> Component<C> {
    /// Returns the configuration that the table describes, one of the kinds listed in `registry`.
    ///
    /// # Errors
    /// Fails with the key relative to the table, its value, and the allowed values.
    pub fn config(&self, registry: &Registry<C>) -> Result<&Arc<C>, ConfigError> {
        let parsed = self.parsed.get_or_init(|| registry.resolve(&self.table));
        parsed.as_ref().map_err(Clone::clone)
    }

    /// Returns the configuration that [`config`](Self::config) has read before.
    ///
    /// # Errors
    /// Fails with the error of that call, or if there was none.
    pub fn read(&self) -> Result<&Arc<C>, ConfigError> {
        let unread = || Err(ConfigError::new("", "the table was not read by its registry"));
        self.parsed.get().map_or_else(unread, |parsed| parsed.as_ref().map_err(Clone::clone))
    }

    /// Returns the component with its `kind` and every key written out.
    ///
    /// # Errors
    /// Fails with the same errors as [`config`](Self::config).
    pub fn complete(&self, registry: &Registry<C>) -> Result<Self, ConfigError> {
        registry.complete(&self.table).map(Self::from)
    }

    /// Returns the component's table for editing. The edited table is parsed again when its configuration is next
    /// needed.
    pub fn edit(&mut self) -> &mut Value {
        self.parsed = OnceLock::new();
        &mut self.table
    }
}

impl<C: ?Sized> Deref for Component<C> {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.table
    }
}

impl<C: ?Sized> From<Value> for Component<C> {
    fn from(table: Value) -> Self {
        Self { table, parsed: OnceLock::new() }
    }
}

impl<C: ?Sized> From<&str> for Component<C> {
    fn from(name: &str) -> Self {
        Value::from(name).into()
    }
}

impl<C: ?Sized> Clone for Component<C> {
    fn clone(&self) -> Self {
        Self { table: self.table.clone(), parsed: self.parsed.clone() }
    }
}

impl<C: ?Sized> PartialEq for Component<C> {
    fn eq(&self, other: &Self) -> bool {
        self.table == other.table
    }
}

impl<C: ?Sized> fmt::Debug for Component<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt(f)
    }
}

impl<C: ?Sized> fmt::Display for Component<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt(f)
    }
}

impl<C: ?Sized> Serialize for Component<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.table.serialize(serializer)
    }
}

impl<'de, C: ?Sized> Deserialize<'de> for Component<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

impl<C: ?Sized> JsonSchema for Component<C> {
    fn inline_schema() -> bool {
        Value::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        Value::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Value::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::Entry;

    static PARSED: AtomicUsize = AtomicUsize::new(0);

    /// Registry of sizes above 0. Each parse of a table is counted in `PARSED`.
    static SIZES: Registry<dyn Fn() -> u64 + Send + Sync> = Registry {
        kind: "size",
        entries: &[Entry {
            name: "side",
            parse: &|table| {
                PARSED.fetch_add(1, Ordering::Relaxed);
                match table["length"].as_u64() {
                    Some(length @ 1..) => Ok(Arc::new(move || length)),
                    _ => Err(ConfigError::new("length", format!("{} is not above 0", table["length"]))),
                }
            },
            complete: &Ok,
            schema: &|| Value::Null,
            defaults: &|| Value::Null,
        }],
        added: crate::registry::Added::none(),
    };

    #[test]
    fn a_table_is_parsed_once_for_all_copies_and_anew_after_a_change() {
        let mut side = Component::from(serde_json::json!({ "kind": "side", "length": 3 }));
        let parsed = || PARSED.load(Ordering::Relaxed);
        assert_eq!(parsed(), 0, "nobody has asked");
        for _ in 0..3 {
            assert_eq!(side.config(&SIZES).unwrap()(), 3);
        }
        let copy = side.clone();
        assert_eq!((copy.config(&SIZES).unwrap()(), parsed()), (3, 1));
        side.edit()["length"] = 0.into();
        for _ in 0..2 {
            let error = side.config(&SIZES).err().unwrap();
            assert_eq!((error.path.as_str(), error.message.as_str()), ("length", "0 is not above 0"));
        }
        assert_eq!((copy.config(&SIZES).unwrap()(), parsed()), (3, 2));
    }
}
