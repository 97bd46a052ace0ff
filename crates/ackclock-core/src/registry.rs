//! Registries map component names to types.
//!
//! Every kind of component (link, queue, regulator, sender ...) has one [`Registry`]. Each row of a registry is a
//! configuration type, which parses and checks a table of the scenario file and builds the component. Names, defaults,
//! schema and documentation come from the configuration type, so nothing is declared twice.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use schemars::{JsonSchema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// Error of a value in a scenario: what is wrong, and which values are allowed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{path}{}{message}", if path.is_empty() { "" } else { ": " })]
pub struct ConfigError {
    /// Dotted path of the invalid key, relative to the table that was read; empty for an error of the table itself.
    pub path: String,
    /// Error message: the invalid value, and the allowed values.
    pub message: String,
}

impl ConfigError {
    /// Creates an error for the key at `path`.
    pub fn new(path: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { path: path.into(), message: message.to_string() }
    }

    /// Returns this error with its path prefixed by the key of an outer table.
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

/// Lets a type with `FromStr` and `Display` be read and written as text by serde, with the attribute
/// `serde(try_from = "String", into = "String")`.
#[macro_export]
macro_rules! text_value {
    ($type:ty) => {
        impl TryFrom<String> for $type {
            type Error = <Self as std::str::FromStr>::Err;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }
    };
}

/// Configuration of one component, as a table in a scenario file.
pub trait Config:
    DeserializeOwned + Serialize + Default + JsonSchema + fmt::Debug + Clone + Send + Sync + 'static
{
    /// Renamed keys of the table, as pairs of the old and the new name.
    const RENAMED: &'static [(&'static str, &'static str)] = &[];

    /// Defaults that depend on a key of `table`. The defaults apply to keys missing from `table` and its subtables.
    fn chosen_defaults(_table: &Value) -> Option<Value> {
        None
    }

    /// Checks the constraints that the configuration type cannot express.
    ///
    /// # Errors
    /// Fails with the name of the key, its value, and the allowed values.
    fn check(&self) -> Result<(), ConfigError> {
        Ok(())
    }

    /// Returns the configuration with the complete tables of all components named in it.
    ///
    /// # Errors
    /// Fails with the same errors as [`check`](Self::check).
    fn complete(self) -> Result<Self, ConfigError> {
        Ok(self)
    }
}

/// Reference to a function of a registry row, valid for the lifetime of the program.
pub type Shared<F> = &'static F;

/// One row of a [`Registry`]: a name and the functions of its configuration type.
pub struct Entry<C: ?Sized + 'static> {
    /// Name of the component in scenario files and on the command line.
    pub name: &'static str,
    /// Parses and checks a table of the scenario.
    pub parse: Shared<dyn Fn(Value) -> Result<Arc<C>, ConfigError> + Sync>,
    /// Parses and checks a table of the scenario, and returns the table with all defaults.
    pub complete: Shared<dyn Fn(Value) -> Result<Value, ConfigError> + Sync>,
    /// JSON schema of the component's table. The description in the schema is the documentation of the component.
    pub schema: Shared<dyn Fn() -> Value + Sync>,
    /// Returns the component's table with all defaults.
    pub defaults: Shared<dyn Fn() -> Value + Sync>,
}

/// Registry of all components of one kind.
pub struct Registry<C: ?Sized + 'static> {
    /// Name of the component kind in error messages.
    pub kind: &'static str,
    /// Rows of the registry, in listing order.
    pub entries: &'static [Entry<C>],
    /// Rows of the registry that were added while the program runs.
    pub added: Added<C>,
}

/// Rows of a [`Registry`] that are added while the program runs: classes in Python.
pub struct Added<C: ?Sized + 'static>(RwLock<Vec<&'static Entry<C>>>);

impl<C: ?Sized> Added<C> {
    /// Creates an empty list of added rows.
    pub const fn none() -> Self {
        Self(RwLock::new(Vec::new()))
    }
}

impl<C: ?Sized> Registry<C> {
    /// Returns all rows of the registry: the built-in rows, followed by the added rows.
    pub fn rows(&self) -> Vec<&'static Entry<C>> {
        let added = self.added.0.read().unwrap_or_else(PoisonError::into_inner);
        self.entries.iter().chain(added.iter().copied()).collect()
    }

    /// Returns whether `name` is the name of an added row.
    pub fn is_added(&self, name: &str) -> bool {
        let added = self.added.0.read().unwrap_or_else(PoisonError::into_inner);
        added.iter().any(|entry| entry.name == name)
    }

    /// Adds a row to the registry, or replaces the added row of the same name. The memory of an added row is never
    /// freed.
    ///
    /// # Errors
    /// Fails if a built-in row has the name of the new row.
    pub fn add(&self, row: Entry<C>) -> Result<(), ConfigError> {
        if self.entries.iter().any(|entry| entry.name == row.name) {
            return Err(ConfigError::new(
                "",
                format!("`{}` is the name of a built-in {}", row.name, self.kind),
            ));
        }
        let mut added = self.added.0.write().unwrap_or_else(PoisonError::into_inner);
        added.retain(|entry| entry.name != row.name);
        added.push(Box::leak(Box::new(row)));
        Ok(())
    }

    /// Returns the row called `name`.
    ///
    /// # Errors
    /// Fails if no row is called `name`. The error message lists the known names.
    pub fn entry(&self, name: &str) -> Result<&'static Entry<C>, ConfigError> {
        let rows = self.rows();
        rows.iter().find(|entry| entry.name == name).copied().ok_or_else(|| {
            let names: Vec<_> = rows.iter().map(|entry| entry.name).collect();
            ConfigError::new("", format!("unknown {} `{name}`; known are {}", self.kind, names.join(", ")))
        })
    }

    /// Parses a component from a scenario file: a name, or a table with the name under the key `kind`.
    ///
    /// # Errors
    /// Fails with the key relative to `value`, the invalid value, and the allowed values.
    pub fn resolve(&self, value: &Value) -> Result<Arc<C>, ConfigError> {
        let (name, table) = split_kind(self.kind, value)?;
        (self.entry(&name)?.parse)(Value::Object(table)).map_err(|mut error| {
            // An override may set a key without naming the `kind`, so the error message names the component.
            if let Some(unknown) = error.message.strip_suffix(", there are no fields") {
                error.message = format!("{unknown}: the {} `{name}` has no keys", self.kind);
            }
            error
        })
    }

    /// Completes a component from a scenario file to a table with its `kind` and every key.
    ///
    /// # Errors
    /// Fails with the same errors as [`resolve`](Self::resolve).
    pub fn complete(&self, value: &Value) -> Result<Value, ConfigError> {
        let (name, table) = split_kind(self.kind, value)?;
        let mut whole = Map::from_iter([("kind".to_owned(), name.as_str().into())]);
        if let Value::Object(keys) = (self.entry(&name)?.complete)(Value::Object(table))? {
            whole.extend(keys);
        }
        Ok(Value::Object(whole))
    }
}

/// Name of a component written as a name or as a table with `kind`; empty if the component has no name.
pub fn name_of(component: &Value) -> String {
    component.get("kind").unwrap_or(component).as_str().unwrap_or_default().to_owned()
}

/// Splits a component, as written in the scenario, into its name and the rest of its table.
///
/// # Errors
/// Fails if the component is neither a string nor a table with a string under `kind`.
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

/// Parses a table into its configuration type and checks the result.
///
/// # Errors
/// Fails with the key within the table, the invalid value, and the allowed values.
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

/// Parses a table like [`read_table`], and returns the table with all defaults.
///
/// # Errors
/// Fails with the same errors as [`read_table`].
pub fn complete_table<C: Config>(table: Value) -> Result<Value, ConfigError> {
    let config: C = read_table(table)?;
    // Serialising a configuration cannot fail, because it is a struct of strings, numbers and lists.
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

/// Returns the JSON schema of a configuration type.
pub fn schema_of<C: Config>() -> Value {
    SchemaGenerator::default().into_root_schema_for::<C>().to_value()
}

/// Returns the default table of a configuration type.
pub fn defaults_of<C: Config>() -> Value {
    // Serialising a configuration cannot fail, because it is a struct of strings, numbers and lists.
    serde_json::to_value(C::default()).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use serde::Deserialize;
    use serde_json::json;

    trait Shape: fmt::Debug {
        fn area(&self) -> f64;
    }

    /// A square.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    struct Square {
        /// Length of a side of the square.
        side: f64,
        /// Corners of the square.
        corners: Corners,
    }

    /// Shape of the corners of a square.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    struct Corners {
        /// Radius of each corner.
        radius: f64,
        /// Number of segments in the arc of each corner.
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
        /// Registry of shapes.
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
    fn rows_are_added_and_replaced_but_never_in_place_of_a_built_in_one() {
        registry! {
            #[allow(private_interfaces, unreachable_pub, reason = "a registry is public, these shapes are the test's own")]
            pub static OWN: dyn Shape = "shape" { "square" => Square }
        }
        let row = |name, side| Entry::<dyn Shape> {
            name,
            parse: Box::leak(Box::new(move |_| {
                Ok(Arc::new(Square { side, ..Square::default() }) as Arc<dyn Shape>)
            })),
            complete: &Ok,
            schema: &|| Value::Null,
            defaults: &|| Value::Null,
        };
        OWN.add(row("disc", 2.0)).unwrap();
        assert_eq!(OWN.resolve(&json!("disc")).unwrap().area(), 4.0);
        OWN.add(row("disc", 3.0)).unwrap();
        assert_eq!(OWN.resolve(&json!("disc")).unwrap().area(), 9.0);
        assert_eq!(OWN.rows().iter().map(|row| row.name).collect::<Vec<_>>(), ["square", "disc"]);
        let refused = OWN.add(row("square", 1.0)).unwrap_err().under("regulator").to_string();
        assert_eq!(refused, "regulator: `square` is the name of a built-in shape");
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
