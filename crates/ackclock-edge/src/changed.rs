//! New values of keys of a running edge: which keys may change, and by which changes the edge gets their values.

use crate::{BEARERS, LINKS};
use ackclock_core::{Component, ConfigError, Rate, Streams, name_of};
use ackclock_link::{
    AnyMedium, Change, ChangeContext, Direction, Files, Impairments, LinkConfig, Medium, MediumContext,
    Silence,
};
use serde_json::{Map, Value};

use crate::EdgeConfig;

/// Part of an edge table that a new value changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The link of a direction, which gets a new medium.
    Link(Direction),
    /// These keys of the bearer's table, or `user.N.key` of its users.
    Bearer(Vec<String>),
    /// These keys of the cell of the downlink, or `user.N.key` of its users.
    Cell(Vec<String>),
}

impl EdgeConfig {
    /// Returns this table with a new value at a key of a link or of the bearer: `down.rate`, or `down` with a table of
    /// several keys. In a link, a table with `kind` replaces the old table entirely. The second returned value is the
    /// part of the table that changed.
    ///
    /// # Errors
    /// Fails with the key, and with the keys that can change.
    pub fn with(&self, key: &str, value: &Value) -> Result<(Self, Changed), ConfigError> {
        let (side, rest) = key.split_once('.').unwrap_or((key, ""));
        match side {
            "down" if self.has_cell()? => self.with_cell(rest, value),
            "user" => self.with_user(key, value),
            "down" => {
                Ok((self.with_link(key, Direction::Down, rest, value)?, Changed::Link(Direction::Down)))
            }
            "up" => Ok((self.with_link(key, Direction::Up, rest, value)?, Changed::Link(Direction::Up))),
            "bearer" => self.with_bearer(rest, value),
            _ => {
                let message = "only keys of `down`, `up`, `bearer` and `user` can change while the edge runs";
                let hint = match key {
                    "rate" | "delay" | "loss" => format!("; write down.{key} or up.{key}"),
                    _ => String::new(),
                };
                Err(ConfigError::new(key, format!("{message}{hint}")))
            }
        }
    }

    /// Returns this table with a new value at a key of the bearer, and the keys that changed.
    fn with_bearer(&self, key: &str, value: &Value) -> Result<(Self, Changed), ConfigError> {
        let mut keys = Vec::new();
        leaves(key, value, &mut keys);
        let (bearer, under) = (self.bearer()?, |error: ConfigError| error.under("bearer"));
        let mut changed = self.clone();
        changed.bearer = self.bearer.complete(&BEARERS).map_err(under)?;
        for (key, value) in &keys {
            bearer.may_change(key).map_err(under)?;
            lay(changed.bearer.edit(), key, value);
        }
        changed.bearer()?;
        Ok((changed, Changed::Bearer(keys.into_iter().map(|(key, _)| key).collect())))
    }

    /// Returns this table with a new value at a key of the cell, and the keys that changed.
    fn with_cell(&self, key: &str, value: &Value) -> Result<(Self, Changed), ConfigError> {
        let mut keys = Vec::new();
        leaves(key, value, &mut keys);
        let (cell, mut changed) = (self.downlink()?, self.clone());
        for (key, value) in &keys {
            cell.may_change(key).map_err(|error| error.under("down"))?;
            lay(changed.down.edit(), key, value);
        }
        changed.downlink()?;
        Ok((changed, Changed::Cell(keys.into_iter().map(|(key, _)| key).collect())))
    }

    /// Returns this table with a new value at a key of users, and the keys that changed.
    fn with_user(&self, key: &str, value: &Value) -> Result<(Self, Changed), ConfigError> {
        let (mut keys, mut changed) = (Vec::new(), self.clone());
        leaves(key, value, &mut keys);
        let (bearer, cell) = (self.bearer()?, self.downlink()?);
        let read = |error: serde_json::Error| ConfigError::new(key, error);
        for (key, value) in &keys {
            if bearer.uses_links() {
                cell.may_change(key)?
            } else {
                bearer.may_change(key)?
            }
            if let [_, number, name] = key.split('.').collect::<Vec<_>>()[..]
                && let Some(user) = number.parse().ok().and_then(|number: usize| changed.user.get_mut(number))
            {
                let mut table = serde_json::to_value(&*user).map_err(read)?;
                lay(&mut table, name, value);
                *user = serde_json::from_value(table).map_err(read)?;
            }
        }
        changed.bearer()?;
        changed.downlink()?;
        let keys = keys.into_iter().map(|(key, _)| key).collect();
        Ok((changed, if bearer.uses_links() { Changed::Cell(keys) } else { Changed::Bearer(keys) }))
    }

    /// Returns this table with a new value at `key`, which is the key `rest` of the link of a direction.
    fn with_link(
        &self,
        key: &str,
        direction: Direction,
        rest: &str,
        value: &Value,
    ) -> Result<Self, ConfigError> {
        let refuse = |message: &str| Err(ConfigError::new(key, message));
        if !self.bearer()?.uses_links() {
            let kind = name_of(&self.bearer);
            let message = format!("a bearer of kind `{kind}` has no links; only keys of `bearer` can change");
            return refuse(&message);
        }
        let side = side(direction);
        if self.has_cell()? {
            return refuse("the uplinks of a cell cannot change while it runs");
        }
        let mut changed = self.clone();
        let table = match direction {
            Direction::Down => &mut changed.down,
            Direction::Up => &mut changed.up,
        };
        let only = |what: &str, table: &Value| {
            let kind = name_of(table);
            format!("a link of kind `{kind}` cannot {what}; only a queue followed by a medium can")
        };
        if !has_medium(table, side)? {
            return refuse(&only("change while it runs", table));
        }
        let before = impairments(table, side)?;
        lay(table.edit(), rest, value);
        if !has_medium(table, side)? {
            return refuse(&only("replace a running link", table));
        }
        if impairments(table, side)? != before {
            return refuse("`reorder`, `duplicate` and `corrupt` cannot change while the link runs");
        }
        Ok(changed)
    }

    /// Returns the changes by which a running edge gets the values of this table in a part of it. Processes draw
    /// random numbers from the streams named `down/NAME/...` and `up/NAME/...`, where NAME is `name`.
    ///
    /// # Errors
    /// Fails with the invalid key if the part cannot change while the edge runs.
    pub fn changes_of(
        &self,
        part: &Changed,
        name: &str,
        streams: &Streams,
        files: &dyn Files,
    ) -> Result<Vec<(Direction, Change)>, ConfigError> {
        match part {
            &Changed::Link(direction) => {
                let medium =
                    self.medium(direction, &format!("{}/{name}", side(direction)), streams, files)?;
                Ok(vec![(direction, Change::Medium(medium))])
            }
            Changed::Bearer(keys) => {
                let (bearer, context) = (self.bearer()?, ChangeContext { streams, name, files });
                let changes = keys.iter().map(|key| {
                    bearer.changes(key, context).map_err(|error| under_unless_user("bearer", key, error))
                });
                Ok(changes.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
            }
            Changed::Cell(keys) => {
                let (cell, context) = (self.downlink()?, ChangeContext { streams, name, files });
                let change = |key: &String| {
                    let change = cell.change(key, context);
                    let change = change.map_err(|error| under_unless_user("down", key, error))?;
                    Ok((Direction::Down, Change::Cell(change)))
                };
                keys.iter().map(change).collect()
            }
        }
    }

    /// Creates the new medium of a running link from the table of a direction. The medium draws random numbers from the
    /// streams under `name`.
    ///
    /// # Errors
    /// Fails if the table is invalid, or if the link cannot replace a running link.
    pub fn medium(
        &self,
        direction: Direction,
        name: &str,
        streams: &Streams,
        files: &dyn Files,
    ) -> Result<Box<dyn Medium>, ConfigError> {
        let (side, table) = self.link(direction);
        if is_silent(table) {
            return Ok(Box::new(Silence::Paused));
        }
        let under = |error: ConfigError| error.under(side);
        let link = table.config(&LINKS).map_err(under)?;
        let medium = link.medium(MediumContext { streams, name, files }).map_err(under)?;
        medium
            .map(AnyMedium::boxed)
            .ok_or_else(|| ConfigError::new(side, "this link cannot replace a running one"))
    }

    /// Whether the downlink is a cell.
    pub(crate) fn has_cell(&self) -> Result<bool, ConfigError> {
        Ok(self.bearer()?.uses_links() && !is_silent(&self.down) && self.downlink()?.users().is_some())
    }

    /// Name of a direction's link, and its table.
    pub(crate) const fn link(&self, direction: Direction) -> (&'static str, &Component<dyn LinkConfig>) {
        let table = match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        };
        (side(direction), table)
    }
}

/// Adds the name of a table to an error, unless the key is a key of a user.
fn under_unless_user(table: &str, key: &str, error: ConfigError) -> ConfigError {
    if key.starts_with("user.") { error } else { error.under(table) }
}

/// Name of the table with the link of a direction.
pub(crate) const fn side(direction: Direction) -> &'static str {
    match direction {
        Direction::Down => "down",
        Direction::Up => "up",
    }
}

/// Lists the keys of a table below `key`, each with its value. A table with `kind` is one value.
fn leaves(key: &str, value: &Value, keys: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(table) if !table.contains_key("kind") => {
            let below = |name| if key.is_empty() { String::clone(name) } else { format!("{key}.{name}") };
            table.iter().for_each(|(name, value)| leaves(&below(name), value, keys));
        }
        _ => keys.push((key.to_owned(), value.clone())),
    }
}

/// Sets a value in a table at a key. If the value is a table, its keys are set one by one.
fn lay(table: &mut Value, key: &str, value: &Value) {
    match (key, value) {
        ("", Value::Object(keys)) if !keys.contains_key("kind") => {
            keys.iter().for_each(|(key, value)| lay(table, key, value));
        }
        ("", whole) => *table = whole.clone(),
        _ => {
            if let Value::String(kind) = &*table {
                *table = serde_json::json!({ "kind": kind });
            }
            if let Value::Object(keys) = table {
                // If `loss` is a table, `loss.fer` is the key `fer` of this table. A missing table is created.
                let below = key.split_once('.').map(|(first, rest)| {
                    (keys.entry(first).or_insert_with(|| Value::Object(Map::new())), rest)
                });
                match below {
                    Some((below @ Value::Object(_), rest)) => lay(below, rest, value),
                    _ => drop(keys.insert(key.to_owned(), value.clone())),
                }
            }
        }
    }
}

/// Returns whether a link consists of a queue followed by a medium. A link at rate zero counts as a queue followed by a
/// medium.
pub(crate) fn has_medium(table: &Component<dyn LinkConfig>, side: &str) -> Result<bool, ConfigError> {
    if is_silent(table) {
        return Ok(true);
    }
    Ok(table.config(&LINKS).map_err(|error| error.under(side))?.has_medium())
}

/// The impairments of a table; its other keys may be wrong for a new link, such as a rate of zero.
fn impairments(table: &Value, side: &str) -> Result<Impairments, ConfigError> {
    let read = |error: serde_json::Error| ConfigError::new(side, error.to_string());
    match table {
        Value::Object(_) => serde_json::from_value(table.clone()).map_err(read),
        _ => Ok(Impairments::default()),
    }
}

/// Returns whether a table has a rate of zero. A rate of zero is invalid for a new link, but allowed for a running
/// link.
fn is_silent(table: &Value) -> bool {
    table["rate"].as_str().is_some_and(|text| text.parse() == Ok(Rate::ZERO))
}
