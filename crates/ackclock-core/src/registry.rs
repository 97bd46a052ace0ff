//! Registries map component names to types.
//!
//! Every kind of component (link, queue, regulator, sender ...) has one [`Registry`]. Each row is a configuration type.
//! It parses and checks a table of the scenario file and builds the component. Names, defaults, schema and
//! documentation come from this type, so nothing is declared twice.

use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// Error of a value in a scenario: the problem, and what is allowed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ConfigError {
    /// Dotted path of the key, relative to the table that was read; empty for the table itself.
    pub path: String,
    /// The value and what is allowed instead.
    pub message: String,
}

impl ConfigError {
    /// An error at `path`.
    pub fn new(path: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { path: path.into(), message: message.to_string() }
    }

    /// The error with its path prefixed by the key of an outer table.
    #[must_use]
    pub fn under(self, prefix: &str) -> Self {
        let path = match (prefix, self.path.as_str()) {
            ("", _) => self.path,
            (prefix, "") => prefix.to_owned(),
            (prefix, path) => format!("{prefix}.{path}"),
        };
        Self { path, ..self }
    }
}

/// The configuration of one component: its table in a scenario file.
pub trait Config:
    DeserializeOwned + Serialize + Default + JsonSchema + fmt::Debug + Clone + Send + Sync + 'static
{
    /// Renamed keys: old and new name.
    const RENAMED: &'static [(&'static str, &'static str)] = &[];

    /// Defaults that depend on a key of `table`. They apply to keys missing from `table` and its subtables.
    fn chosen_defaults(_table: &Value) -> Option<Value> {
        None
    }

    /// Checks constraints that the type cannot express.
    ///
    /// # Errors
    /// Names the key, its value and what is allowed.
    fn check(&self) -> Result<(), ConfigError> {
        Ok(())
    }

    /// The configuration with the complete tables of all components that it names.
    ///
    /// # Errors
    /// Same errors as [`check`](Self::check).
    fn complete(self) -> Result<Self, ConfigError> {
        Ok(self)
    }
}

/// One row of a [`Registry`]: a name and the functions of its configuration type.
pub struct Entry<C: ?Sized + 'static> {
    /// Name in scenario files and on the command line.
    pub name: &'static str,
    /// Parses and checks a table.
    pub parse: fn(Value) -> Result<Arc<C>, ConfigError>,
    /// Parses and checks a table, and returns it with all defaults.
    pub complete: fn(Value) -> Result<Value, ConfigError>,
    /// JSON schema of the table; its description is the documentation of the component.
    pub schema: fn() -> Value,
    /// The table with all defaults.
    pub defaults: fn() -> Value,
}

/// All components of one kind.
pub struct Registry<C: ?Sized + 'static> {
    /// Name of a row in error messages.
    pub kind: &'static str,
    /// The rows, in listing order.
    pub entries: &'static [Entry<C>],
}

impl<C: ?Sized> Registry<C> {
    /// The row called `name`.
    ///
    /// # Errors
    /// If there is no such row. The message lists the known names.
    pub fn entry(&self, name: &str) -> Result<&'static Entry<C>, ConfigError> {
        self.entries.iter().find(|entry| entry.name == name).ok_or_else(|| {
            let names: Vec<_> = self.entries.iter().map(|entry| entry.name).collect();
            ConfigError::new("", format!("unknown {} `{name}`; known are {}", self.kind, names.join(", ")))
        })
    }

    /// Parses a component from a scenario file: a name, or a table with the name under `kind`.
    ///
    /// # Errors
    /// Names the key relative to `value`, its value and what is allowed.
    pub fn resolve(&self, value: &Value) -> Result<Arc<C>, ConfigError> {
        let (name, table) = split_kind(self.kind, value)?;
        (self.entry(&name)?.parse)(Value::Object(table)).map_err(|mut error| {
            // The keys may come from an override without `kind`, so name the component.
            if let Some(unknown) = error.message.strip_suffix(", there are no fields") {
                error.message = format!("{unknown}: the {} `{name}` has no keys", self.kind);
            }
            error
        })
    }

    /// The complete table of a component from a scenario file: its `kind` and every key.
    ///
    /// # Errors
    /// Same errors as [`resolve`](Self::resolve).
    pub fn complete(&self, value: &Value) -> Result<Value, ConfigError> {
        let (name, table) = split_kind(self.kind, value)?;
        let mut whole = Map::from_iter([("kind".to_owned(), name.as_str().into())]);
        if let Value::Object(keys) = (self.entry(&name)?.complete)(Value::Object(table))? {
            whole.extend(keys);
        }
        Ok(Value::Object(whole))
    }
}

/// Name of a component written as a name or as a table with `kind`; empty if it has none.
pub fn name_of(component: &Value) -> String {
    component.get("kind").unwrap_or(component).as_str().unwrap_or_default().to_owned()
}

/// Splits a component as written into its name and the rest of its table.
///
/// # Errors
/// If it is neither a string nor a table with a string under `kind`.
pub fn split_kind(what: &str, value: &Value) -> Result<(String, Map<String, Value>), ConfigError> {
    match value {
        Value::String(name) => Ok((name.clone(), Map::new())),
        Value::Object(table) => {
            let mut rest = table.clone();
            match rest.shift_remove("kind") {
                Some(Value::String(name)) => Ok((name, rest)),
                Some(other) => Err(ConfigError::new("kind", format!("{other} is not the name of a {what}"))),
                None => Err(ConfigError::new("", format!("the table has no `kind`, the name of a {what}"))),
            }
        }
        other => Err(ConfigError::new(
            "",
            format!("{other} is neither the name of a {what} nor a table with `kind`"),
        )),
    }
}

/// Parses a table into its configuration type and checks it.
///
/// # Errors
/// Names the key within the table, its value and what is allowed.
pub fn read_table<C: Config>(table: Value) -> Result<C, ConfigError> {
    if let Some((old, new)) = C::RENAMED.iter().find(|(old, _)| table.get(old).is_some()) {
        return Err(ConfigError::new(*old, format!("is called `{new}` now")));
    }
    let table = match C::chosen_defaults(&table) {
        Some(defaults) => overlay(defaults, table),
        None => table,
    };
    let config: C = serde_path_to_error::deserialize(table).map_err(|error| {
        let path = error.path().to_string();
        ConfigError::new(if path == "." { String::new() } else { path }, error.into_inner())
    })?;
    config.check()?;
    Ok(config)
}

/// Parses a table like [`read_table`] and returns it with all defaults.
///
/// # Errors
/// Same errors as [`read_table`].
pub fn complete_table<C: Config>(table: Value) -> Result<Value, ConfigError> {
    let config: C = read_table(table)?;
    // A configuration is a struct of strings, numbers and lists, which always serialises.
    Ok(serde_json::to_value(config.complete()?).unwrap_or(Value::Null))
}

/// Merges `table` over `defaults`, key by key.
fn overlay(defaults: Value, table: Value) -> Value {
    match (defaults, table) {
        (Value::Object(mut merged), Value::Object(table)) => {
            for (key, value) in table {
                let below = merged.entry(key).or_insert(Value::Null);
                *below = overlay(below.take(), value);
            }
            Value::Object(merged)
        }
        (_, value) => value,
    }
}

/// The JSON schema of a configuration type, as a value.
pub fn schema_of<C: Config>() -> Value {
    SchemaGenerator::default().into_root_schema_for::<C>().to_value()
}

/// The default table of a configuration type.
pub fn defaults_of<C: Config>() -> Value {
    // A configuration is a struct of strings, numbers and lists, which always serialises.
    serde_json::to_value(C::default()).unwrap_or(Value::Null)
}

/// Declares a registry: `registry! { /// docs  pub static LINKS: dyn LinkConfig = "link" { "constant" => constant::Constant, } }`.
#[macro_export]
macro_rules! registry {
    ($(#[$meta:meta])* pub static $name:ident: $trait:ty = $kind:literal { $($row:literal => $config:ty),* $(,)? }) => {
        $(#[$meta])*
        pub static $name: $crate::Registry<$trait> = $crate::Registry {
            kind: $kind,
            entries: &[$($crate::Entry {
                name: $row,
                parse: |table| Ok(::std::sync::Arc::new($crate::registry::read_table::<$config>(table)?)),
                complete: $crate::registry::complete_table::<$config>,
                schema: $crate::registry::schema_of::<$config>,
                defaults: $crate::registry::defaults_of::<$config>,
            }),*],
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    trait Shape: fmt::Debug {
        fn area(&self) -> f64;
    }

    /// A square.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    struct Square {
        /// Length of a side.
        side: f64,
        /// How its corners are.
        corners: Corners,
    }

    /// Corners.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    struct Corners {
        /// Radius of each.
        radius: f64,
        /// Segments of each arc.
        segments: u32,
    }

    impl Default for Square {
        fn default() -> Self {
            Self { side: 1.0, corners: Corners::default() }
        }
    }

    impl Config for Square {
        const RENAMED: &'static [(&'static str, &'static str)] = &[("edge", "side")];

        fn chosen_defaults(table: &Value) -> Option<Value> {
            let large = table.get("side")?.as_f64()? > 100.0;
            large.then(|| json!({"corners": {"radius": 10.0, "segments": 8}}))
        }

        fn check(&self) -> Result<(), ConfigError> {
            if self.side > 0.0 {
                Ok(())
            } else {
                Err(ConfigError::new("side", format!("{} is not above 0", self.side)))
            }
        }
    }

    impl Shape for Square {
        fn area(&self) -> f64 {
            self.side * self.side
        }
    }

    registry! {
        /// Shapes.
        #[allow(private_interfaces, unreachable_pub, reason = "a registry is public, these shapes are the test's own")]
        pub static SHAPES: dyn Shape = "shape" { "square" => Square }
    }

    #[test]
    fn a_component_is_a_name_or_a_table_with_a_kind() {
        assert_eq!(SHAPES.resolve(&json!("square")).unwrap().area(), 1.0);
        assert_eq!(SHAPES.resolve(&json!({"kind": "square", "side": 3.0})).unwrap().area(), 9.0);
        assert_eq!((SHAPES.entries[0].defaults)()["side"], json!(1.0));
        let whole = json!({"kind": "square", "side": 1.0, "corners": {"radius": 0.0, "segments": 0}});
        assert_eq!(SHAPES.complete(&json!("square")).unwrap(), whole);
        assert_eq!((SHAPES.entries[0].schema)()["description"], json!("A square."));
    }

    #[test]
    fn a_key_may_choose_the_defaults_of_others() {
        let corners = |table| read_table::<Square>(table).unwrap().corners;
        assert_eq!(corners(json!({"side": 2.0})), Corners::default());
        assert_eq!(corners(json!({"side": 200.0})), Corners { radius: 10.0, segments: 8 });
        let half_said = json!({"side": 200.0, "corners": {"radius": 3.0}});
        assert_eq!(corners(half_said), Corners { radius: 3.0, segments: 8 });
    }

    #[test]
    fn a_renamed_key_is_refused_with_its_new_name() {
        let error = SHAPES.resolve(&json!({"kind": "square", "edge": 2.0})).unwrap_err().under("flow");
        assert_eq!(error.to_string(), "flow.edge: is called `side` now");
    }

    #[test]
    fn errors_name_the_key_and_what_is_allowed() {
        let error = |value| SHAPES.resolve(&value).unwrap_err().under("edge").to_string();
        assert_eq!(error(json!("circle")), "edge: unknown shape `circle`; known are square");
        assert!(
            error(json!({"kind": "square", "sid": 1.0})).contains("unknown field `sid`, expected `side`")
        );
        assert_eq!(error(json!({"kind": "square", "side": -1.0})), "edge.side: -1 is not above 0");
        assert!(error(json!({"kind": "square", "side": "x"})).starts_with("edge.side: invalid type"));
        assert!(error(json!(7)).contains("neither the name"));
    }
}
