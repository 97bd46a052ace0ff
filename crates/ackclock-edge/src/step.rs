//! Links and bearers that change during a run: the steps of `[[edge.at]]`, and changes of a live link.

use std::ops::Range;

use ackclock_core::{Component, ConfigError, Rate, Span, Streams, Time, name_of};
use ackclock_link::{
    AnyMedium, BEARERS, CellChange, Change, ChangeContext, Direction, Faded, Files, Impairments, LINKS,
    LinkConfig, Medium, MediumContext, OutageKind, Silence, numbers_of,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{EdgeConfig, HandoverTable};

/// Change of the links or of the bearer at a given time of the run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Time of the change since the start of the run.
    pub time: Span,
    /// Keys of the links or of the bearer, with their new values: `{ down.rate = "1Mbit/s" }` or
    /// `{ bearer.air.down.rate = "64kbit/s" }`. A rate of 0 of a link is an outage. A dedicated channel can change its
    /// rate, its delay and its errors. A new rate applies from the next TTI on; with a new delay, no PDU overtakes an
    /// earlier PDU. A cell can change `loss`, `delay` and `harq.error`, and `user.N.mean_snr` and `user.N.doppler` of
    /// the table `[[edge.user]]` with the number N; the interface below a controller can change `bearer.iub.delay` and
    /// `bearer.iub.rate`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Value>,
    /// Time after which the keys of `set` get their earlier values back; without it, the new values stay. The time of
    /// the next step must be after the end.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// Outage of the radio that starts at this time. The time of the next step must be after the end of the outage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
    /// Hand-over of a user that starts at this time. Until it ends, no other step may change the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<HandoverTable>,
}

/// Outage of the radio for a limited time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Duration of the outage of the radio.
    #[serde(rename = "for")]
    pub lasts: Span,
    /// Kind of the outage. In a "silent" outage nothing is sent, and packets wait. In a "fade" the transmitter does not
    /// notice the outage, and all packets it sends are lost. The default kind of an outage is "silent" for links and
    /// cells, and "fade" for dedicated channels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<OutageKind>,
    /// Direction that the outage interrupts. By default, both directions are interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// Number of the table `[[edge.user]]` whose users the outage interrupts. By default, all users are interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<u32>,
}

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

/// Content of a step, as far as it concerns one part of the edge.
enum Planned<'a> {
    Set(&'a Changed),
    /// The part gets its earlier values back.
    Restore(&'a Changed),
    /// An outage of these users in a direction, with its end and its kind.
    Outage(Direction, Range<u32>, Time, OutageKind),
}

impl Step {
    /// Checks the time `lasts` after which the keys of `set` get their earlier values back.
    fn check_end(&self, lasts: Span) -> Result<(), ConfigError> {
        let message = match self {
            _ if lasts == Span::ZERO => "0s: the new values stay longer",
            _ if self.set.is_empty() => "no key of `set` has a value that ends",
            Self { outage: Some(_), .. } => "an outage has its own `for`: write it in a separate step",
            _ => return Ok(()),
        };
        Err(ConfigError::new("for", message))
    }
}

impl Outage {
    fn directions(self) -> impl Iterator<Item = Direction> {
        Direction::BOTH.into_iter().filter(move |&one| self.direction.is_none_or(|only| only == one))
    }
}

/// Scheduled changes of the links, ordered from latest to earliest.
#[derive(Default)]
pub(crate) struct Changes(Vec<(Time, Direction, Change)>);

impl Changes {
    /// Time of the next scheduled change; [`Time::NEVER`] without one.
    #[inline]
    pub(crate) fn due(&self) -> Time {
        self.0.last().map_or(Time::NEVER, |(time, ..)| *time)
    }

    /// Adds a change after the existing changes of the same instant.
    pub(crate) fn add(&mut self, time: Time, direction: Direction, change: Change) {
        let at = self.0.partition_point(|(other, ..)| *other > time);
        self.0.insert(at, (time, direction, change));
    }

    /// Removes and returns the next change if it is due at `now`.
    pub(crate) fn take(&mut self, now: Time) -> Option<(Time, Direction, Change)> {
        if self.due() <= now { self.0.pop() } else { None }
    }
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
                Err(ConfigError::new(key, message))
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
        if !self.bearer()?.uses_links() {
            let kind = name_of(&self.bearer);
            let message = format!("a bearer of kind `{kind}` has no links; only keys of `bearer` can change");
            return Err(ConfigError::new(key, message));
        }
        let side = side(direction);
        if self.has_cell()? {
            return Err(ConfigError::new(key, "the uplinks of a cell cannot change while it runs"));
        }
        let mut changed = self.clone();
        let table = match direction {
            Direction::Down => &mut changed.down,
            Direction::Up => &mut changed.up,
        };
        if !has_medium(table, side)? {
            let message = format!(
                "a link of kind `{}` cannot change while it runs; only a queue followed by a medium can",
                name_of(table)
            );
            return Err(ConfigError::new(key, message));
        }
        let before = impairments(table, side)?;
        lay(table.edit(), rest, value);
        if !has_medium(table, side)? {
            let message = format!(
                "a link of kind `{}` cannot replace a running link; only a queue followed by a medium can",
                name_of(table)
            );
            return Err(ConfigError::new(key, message));
        }
        if impairments(table, side)? != before {
            let message = "`reorder`, `duplicate` and `corrupt` cannot change while the link runs";
            return Err(ConfigError::new(key, message));
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
            return Ok(Box::new(Silence));
        }
        let under = |error: ConfigError| error.under(side);
        let link = table.config(&LINKS).map_err(under)?;
        let medium = link.medium(MediumContext { streams, name, files }).map_err(under)?;
        medium
            .map(AnyMedium::boxed)
            .ok_or_else(|| ConfigError::new(side, "this link cannot replace a running one"))
    }

    /// Returns the steps with defaults filled in. A step that changes a link's `kind` gets the complete resulting
    /// table, because the written-out defaults of the old kind may not be keys of the new kind.
    pub(crate) fn whole_steps(&self) -> Result<Vec<Step>, ConfigError> {
        let mut steps = self.at.clone();
        self.each_step(|number, _, planned, config| {
            let Planned::Set(&Changed::Link(direction)) = planned else { return Ok(()) };
            let (side, table) = config.link(direction);
            let set = &mut steps[number].set;
            if set.contains_key(&format!("{side}.kind")) {
                set.retain(|key, _| key.split('.').next() != Some(side));
                set.insert(side.to_owned(), Value::clone(table));
            }
            Ok(())
        })?;
        Ok(steps)
    }

    /// Returns all changes that `at` describes, with their times.
    pub(crate) fn changes(&self, streams: &Streams, files: &dyn Files) -> Result<Changes, ConfigError> {
        let mut changes = Changes::default();
        self.each_step(|number, time, planned, config| {
            let (at, name) = (Time::ZERO + time, format!("at{number}"));
            let (direction, numbers, until, kind) = match planned {
                Planned::Outage(direction, numbers, until, kind) => (direction, numbers, until, kind),
                Planned::Set(part) | Planned::Restore(part) => {
                    let end = if matches!(planned, Planned::Set(_)) { "" } else { "/end" };
                    let name = format!("{name}{end}");
                    for (direction, change) in config.changes_of(part, &name, streams, files)? {
                        changes.add(at, direction, change);
                    }
                    return Ok(());
                }
            };
            if !config.bearer()?.uses_links() {
                // An outage without a duration reports the rates at the end.
                changes.add(at, direction, Change::Outage(numbers.clone(), until, kind));
                changes.add(until, direction, Change::Outage(numbers, until, kind));
            } else if config.has_cell()? {
                changes.add(at, direction, Change::Cell(CellChange::Outage(numbers.clone(), until, kind)));
                changes.add(until, direction, Change::Cell(CellChange::Outage(numbers, until, kind)));
            } else {
                let name = format!("{}/{name}", side(direction));
                let medium = || config.medium(direction, &name, streams, files);
                let interrupted: Box<dyn Medium> = match kind {
                    OutageKind::Silent => Box::new(Silence),
                    OutageKind::Fade => Box::new(Faded(medium()?)),
                };
                changes.add(at, direction, Change::Medium(interrupted));
                changes.add(until, direction, Change::Medium(medium()?));
            }
            Ok(())
        })?;
        Ok(changes)
    }

    /// Checks the steps without building any link.
    pub(crate) fn check_steps(&self) -> Result<(), ConfigError> {
        self.each_step(|_, _, _, _| Ok(()))?;
        self.handovers().map(drop)
    }

    /// Calls `visit` for each change with these arguments: number of the step, time, change, and the resulting table.
    fn each_step(
        &self,
        mut visit: impl FnMut(usize, Span, Planned<'_>, &Self) -> Result<(), ConfigError>,
    ) -> Result<(), ConfigError> {
        let (mut now, mut config) = (Span::ZERO, self.clone());
        for (number, step) in self.at.iter().enumerate() {
            let under = |error: ConfigError| error.under(&format!("at[{number}].set"));
            if step.time < now {
                let message =
                    format!("{} is before the step above it, or before the end of that step", step.time);
                return Err(ConfigError::new(format!("at[{number}].time"), message));
            }
            now = step.time;
            let (before, mut parts) = (config.clone(), Vec::new());
            for (key, value) in &step.set {
                let part;
                (config, part) = config.with(key, value).map_err(under)?;
                visit(number, step.time, Planned::Set(&part), &config).map_err(under)?;
                parts.push(part);
            }
            if let Some(lasts) = step.lasts {
                step.check_end(lasts).map_err(|error| error.under(&format!("at[{number}]")))?;
                now = Span::from_nanos(step.time.as_nanos().saturating_add(lasts.as_nanos()));
                for part in &parts {
                    visit(number, now, Planned::Restore(part), &before).map_err(under)?;
                }
                config = before;
            }
            let Some(outage) = step.outage else { continue };
            let under = |error: ConfigError| error.under(&format!("at[{number}].outage"));
            now = Span::from_nanos(step.time.as_nanos().saturating_add(outage.lasts.as_nanos()));
            let numbers = config.interrupted(&outage).map_err(under)?;
            for direction in outage.directions() {
                let kind = config.outage_kind(&outage, direction).map_err(under)?;
                let planned = Planned::Outage(direction, numbers.clone(), Time::ZERO + now, kind);
                visit(number, step.time, planned, &config).map_err(under)?;
            }
        }
        Ok(())
    }

    /// Returns the kind of an outage. Fails if the link of this direction cannot be interrupted.
    fn outage_kind(&self, outage: &Outage, direction: Direction) -> Result<OutageKind, ConfigError> {
        let (side, table) = self.link(direction);
        let refused = |what: &str, name| {
            let message = format!("a {what} of kind `{name}` cannot be interrupted");
            Err(ConfigError::new("for", message))
        };
        if outage.lasts == Span::ZERO {
            return Err(ConfigError::new("for", "0s: an outage lasts longer"));
        }
        let bearer = self.bearer()?;
        let Some(usual) = bearer.outage() else { return refused("bearer", name_of(&self.bearer)) };
        match bearer.uses_links() {
            true if self.has_cell()? && direction == Direction::Up => {
                let message = "the uplinks of a cell cannot be interrupted: set direction = \"down\"";
                return Err(ConfigError::new("direction", message));
            }
            true if !self.has_cell()? && !has_medium(table, side)? => {
                return refused("link", name_of(table));
            }
            _ => {}
        }
        Ok(outage.kind.unwrap_or(usual))
    }

    /// Numbers of the users that an outage interrupts.
    fn interrupted(&self, outage: &Outage) -> Result<Range<u32>, ConfigError> {
        let Some(group) = outage.user else { return Ok(0..u32::MAX) };
        match self.cell_users()? {
            Some(users) if (group as usize) < users.len() => Ok(numbers_of(users, group as usize)),
            Some(users) => {
                let last = users.len().saturating_sub(1);
                let message = format!("{group} is not the number of a table [[edge.user]]: 0 to {last}");
                Err(ConfigError::new("user", message))
            }
            None => Err(ConfigError::new("user", "this radio has no users: leave out this key")),
        }
    }

    /// Whether the downlink is a cell.
    fn has_cell(&self) -> Result<bool, ConfigError> {
        Ok(self.bearer()?.uses_links() && !is_silent(&self.down) && self.downlink()?.users().is_some())
    }

    /// Name of a direction's link, and its table.
    const fn link(&self, direction: Direction) -> (&'static str, &Component<dyn LinkConfig>) {
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
const fn side(direction: Direction) -> &'static str {
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
fn has_medium(table: &Component<dyn LinkConfig>, side: &str) -> Result<bool, ConfigError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RADIO, Surroundings, WIRED};
    use ackclock_core::{Config, FlowId, Message, Node, Outbox, Segment, Seq};
    use ackclock_link::NoFiles;
    use serde_json::json;

    fn config(at: Value) -> EdgeConfig {
        let link = json!({ "kind": "constant", "rate": "800kbit/s", "delay": "0ms" });
        serde_json::from_value(json!({ "down": link, "up": link, "at": at })).unwrap()
    }

    #[test]
    fn the_capacity_is_the_mean_over_the_steps() {
        let config = config(json!([
            { "time": "2s", "set": { "down.rate": "0kbit/s", "up.rate": "0kbit/s" } },
            { "time": "5s", "set": { "down.rate": "400kbit/s" } },
            { "time": "20s", "set": { "down.rate": "1kbit/s" } },
        ]));
        let around = Surroundings { wired_round_trip: Span::ZERO, packet_bytes: 1000 };
        let mut edge = config.build(&Streams::new(1, 0), &NoFiles, around).unwrap();
        let mut capacity = |seconds, direction| {
            let now = Time::ZERO + Span::from_secs(seconds);
            while edge.due() <= now {
                edge.run(edge.due(), &mut Outbox::for_one_node());
            }
            edge.link_counts(now, direction).capacity_bps
        };
        // The rate is 800 kbit/s for 2 s, then zero for 3 s, then 400 kbit/s.
        assert_eq!([1, 4, 10].map(|seconds| capacity(seconds, Direction::Down)), [8e5, 4e5, 3.6e5].map(Some));
        assert_eq!(capacity(10, Direction::Up), Some(1.6e5));
    }

    #[test]
    fn steps_change_the_rate_and_an_outage_keeps_what_waits() {
        let config = config(json!([
            { "time": "5ms", "set": { "down": { "rate": "100kbit/s" } } },
            { "time": "45ms", "set": { "down.rate": "0kbit/s" } },
            { "time": "1s", "set": { "down.rate": "800kbit/s" } },
        ]));
        config.check().unwrap();
        let around = Surroundings { wired_round_trip: Span::ZERO, packet_bytes: 1000 };
        let mut edge = config.build(&Streams::new(1, 0), &NoFiles, around).unwrap();
        let mut out = Outbox::for_one_node();
        for number in 0..2 {
            let segment = Message::Segment(Segment::data(FlowId(0), Seq(number), 960, 40));
            edge.receive(Time::ZERO, WIRED, &segment, &mut out);
        }
        let mut left = Vec::new();
        while let Some(next) = edge.next_wake() {
            edge.wake(next, &mut out);
            while let Some((port, _)) = out.take() {
                assert_eq!(port, RADIO);
                left.push(next.as_nanos() / 1_000_000);
            }
        }
        // The link sends 4000 bit by 5 ms and 4000 bit more by 45 ms, so the first packet leaves before the outage. The
        // second packet needs 10 ms after the outage.
        assert_eq!(left, [45, 1010]);
    }

    #[test]
    fn an_outage_silences_or_fades_a_link_for_its_time() {
        // Packets with a transmission time of 10 ms arrive at 0, 20 and 80 ms. The outage lasts from 5 to 55 ms.
        let passes = |outage: Value| {
            let config = config(json!([{ "time": "5ms", "outage": outage }]));
            config.check().unwrap();
            let around = Surroundings { wired_round_trip: Span::ZERO, packet_bytes: 1000 };
            let mut edge = config.build(&Streams::new(1, 0), &NoFiles, around).unwrap();
            let mut out = Outbox::for_one_node();
            let mut left = Vec::new();
            for (number, ms) in [(0, 0), (1, 20), (2, 80)] {
                let at = Time::ZERO + Span::from_millis(ms);
                let segment = Message::Segment(Segment::data(FlowId(0), Seq(number), 960, 40));
                edge.receive(at, WIRED, &segment, &mut out);
                let end = at + Span::from_millis(if number == 0 { 19 } else { 59 });
                while let Some(next) = edge.next_wake().filter(|&next| next <= end) {
                    edge.wake(next, &mut out);
                    while let Some((port, _)) = out.take() {
                        assert_eq!(port, RADIO);
                        left.push(next.as_nanos() / 1_000_000);
                    }
                }
            }
            left
        };
        assert_eq!(passes(json!({ "for": "50ms" })), [60, 70, 90]);
        assert_eq!(passes(json!({ "for": "50ms", "direction": "up" })), [10, 30, 90]);
        // The first packet was already in transmission. The second packet is sent during the fade and lost.
        assert_eq!(passes(json!({ "for": "50ms", "kind": "fade" })), [10, 90]);
    }

    #[test]
    fn of_two_steps_at_one_instant_the_lower_one_holds() {
        let config = config(json!([
            { "time": "1s", "set": { "down.rate": "100kbit/s" } },
            { "time": "1s", "set": { "down.rate": "400kbit/s" } },
        ]));
        let around = Surroundings { wired_round_trip: Span::ZERO, packet_bytes: 1000 };
        let mut edge = config.build(&Streams::new(1, 0), &NoFiles, around).unwrap();
        let second = Time::ZERO + Span::from_secs(1);
        edge.run(second, &mut Outbox::for_one_node());
        assert_eq!(edge.view(second, FlowId(0)).rate, Rate::from_bps(400_000));
    }

    #[test]
    fn a_rate_of_zero_is_an_outage_however_it_is_written() {
        for zero in ["0bit/s", "0 Mbit/s", "0.0kbit/s"] {
            let config = config(json!([{ "time": "5ms", "set": { "down.rate": zero } }]));
            config.check().unwrap_or_else(|error| panic!("{zero}: {error}"));
            let medium = config.with("down.rate", &zero.into()).unwrap().0;
            let medium = medium.medium(Direction::Down, "down/at0", &Streams::new(1, 0), &NoFiles).unwrap();
            assert_eq!(medium.rate(Time::ZERO), Rate::ZERO, "{zero}");
        }
    }

    #[test]
    fn a_step_changes_the_errors_of_a_channel_or_a_key_of_them() {
        let rayleigh = json!({ "kind": "rayleigh", "fer": "5%" });
        let (changed, _) = config(json!([])).with("down.loss", &rayleigh).unwrap();
        let (changed, _) = changed.with("down.loss.doppler", &0.1.into()).unwrap();
        assert_eq!(changed.down["loss"], json!({ "kind": "rayleigh", "fer": "5%", "doppler": 0.1 }));
        let (changed, _) = changed.with("down.loss", &0.01.into()).unwrap();
        let error = changed.with("down.loss.doppler", &0.1.into()).unwrap_err().to_string();
        assert!(error.contains("unknown field `loss.doppler`"), "{error}");
    }

    #[test]
    fn what_cannot_change_is_named() {
        for (at, path) in [
            (json!([{ "time": "1s", "set": { "buffer": "4p" } }]), "at[0].set.buffer"),
            (json!([{ "time": "1s", "set": { "down.rat": "1Mbit/s" } }]), "at[0].set.down.rat"),
            (json!([{ "time": "2s", "set": {} }, { "time": "1s", "set": {} }]), "at[1].time"),
            (json!([{ "time": "1s", "outage": { "for": "2s" } }, { "time": "2s" }]), "at[1].time"),
            (json!([{ "time": "1s", "outage": { "for": "0s" } }]), "at[0].outage.for"),
        ] {
            let error = config(at).check().unwrap_err();
            assert!(error.path == path || error.message.contains("rat"), "{error}");
        }
    }

    #[test]
    fn a_step_that_no_link_can_obey_is_refused_when_it_is_read() {
        let error =
            config(json!([{ "time": "1s", "set": { "down": { "kind": "cell" } } }])).check().unwrap_err();
        let message = "at[0].set.down: a link of kind `cell` cannot replace a running link; only a queue followed by \
                       a medium can";
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn a_step_changes_the_dedicated_channels_of_a_bearer_and_names_what_is_fixed() {
        let of = |bearer: Value, set: Value| -> EdgeConfig {
            serde_json::from_value(json!({ "bearer": bearer, "at": [{ "time": "1s", "set": set }] })).unwrap()
        };
        let (umts, access) = (json!("umts-rlc-am"), json!("radio-access"));
        for (bearer, set) in [
            (
                &umts,
                json!({ "bearer.rate": "64kbit/s", "bearer.up_rate": "32kbit/s", "bearer.delay": "1ms" }),
            ),
            (&umts, json!({ "bearer": { "errors": { "kind": "rayleigh", "fer": "5%" }, "up_errors": 0 } })),
            (&access, json!({ "bearer.air.down.rate": "64kbit/s", "bearer.air.up.errors": 0.5 })),
            (&access, json!({ "bearer": { "air": { "down": { "rate": "64kbit/s", "delay": "1ms" } } } })),
        ] {
            let config = of(bearer.clone(), set.clone());
            config.check().unwrap_or_else(|error| panic!("{set}: {error}"));
            let changes = config.changes(&Streams::new(1, 0), &NoFiles).unwrap();
            assert!(changes.due() == Time::ZERO + Span::from_secs(1), "{set}");
        }
        for (bearer, set, path, message) in [
            (&umts, json!({ "bearer.tti": "20ms" }), "bearer.tti", "is fixed when the bearer starts"),
            (&umts, json!({ "bearer.up_delay": "20ms" }), "bearer.up_delay", "is fixed"),
            (&umts, json!({ "bearer.rate": "1kbit/s" }), "bearer.rate", "a multiple of 32kbit/s"),
            (&umts, json!({ "down.rate": "1Mbit/s" }), "down.rate", "has no links"),
            (&access, json!({ "bearer.rlc.window": 5 }), "bearer.rlc.window", "is fixed"),
            (&access, json!({ "bearer.air.down.delay": "2s" }), "bearer.air.down.delay", "is more than 1s"),
            (
                &access,
                json!({ "bearer.air.down.errors": 1.0 }),
                "bearer.air.down.errors",
                "everything is lost",
            ),
            (&json!("links"), json!({ "bearer.rate": "1Mbit/s" }), "bearer.rate", "cannot change"),
        ] {
            let config = of(bearer.clone(), set.clone());
            let built = config.check().and_then(|()| config.changes(&Streams::new(1, 0), &NoFiles).map(drop));
            let error = built.unwrap_err();
            let path = format!("at[0].set.{path}");
            assert!(error.path == path && error.message.contains(message), "{error}");
        }
    }

    #[test]
    fn a_value_ends_after_its_time_and_the_value_before_holds_again() {
        let around = Surroundings { wired_round_trip: Span::ZERO, packet_bytes: 1000 };
        for (radio, key, rates) in [
            (
                json!({ "down": { "kind": "constant", "rate": "1Mbit/s" } }),
                "down.rate",
                [1000, 64, 1000, 256],
            ),
            (json!({ "bearer": "radio-access" }), "bearer.air.down.rate", [384, 64, 384, 256]),
        ] {
            let mut table = radio;
            table["at"] = json!([
                { "time": "2s", "set": { key: "64kbit/s" }, "for": "3s" },
                { "time": "6s", "set": { key: "256kbit/s" } },
            ]);
            let config: EdgeConfig = serde_json::from_value(table).unwrap();
            config.check().unwrap();
            let mut edge = config.build(&Streams::new(1, 0), &NoFiles, around).unwrap();
            let seen = [1, 3, 5, 7].map(|second| {
                let now = Time::ZERO + Span::from_millis(1000 * second + 500);
                while edge.due() <= now {
                    edge.run(edge.due(), &mut Outbox::for_one_node());
                }
                edge.view(now, FlowId(0)).rate.as_bps() / 1000
            });
            assert_eq!(seen, rates, "{key}");
        }
        let rate = json!({ "down.rate": "1Mbit/s" });
        for (at, path) in [
            (json!([{ "time": "1s", "set": rate, "for": "2s" }, { "time": "2s" }]), "at[1].time"),
            (json!([{ "time": "1s", "set": rate, "for": "0s" }]), "at[0].for"),
            (json!([{ "time": "1s", "for": "1s" }]), "at[0].for"),
            (json!([{ "time": "1s", "set": rate, "for": "1s", "outage": { "for": "1s" } }]), "at[0].for"),
        ] {
            assert_eq!(config(at).check().unwrap_err().path, path);
        }
    }

    #[test]
    fn a_step_changes_a_cell_and_its_users() {
        let build = |table: &Value, step: Value| -> Result<(), ConfigError> {
            let mut table = table.clone();
            table["user"] = json!([{ "count": 2 }, { "mean_snr": 5.0 }, { "fading": "table" }]);
            table["at"] = json!([step]);
            let config: EdgeConfig = serde_json::from_value(table).unwrap();
            config.check()?;
            let around = Surroundings { wired_round_trip: Span::ZERO, packet_bytes: 1000 };
            let mut edge = config.build(&Streams::new(1, 0), &NoFiles, around)?;
            edge.run(Time::ZERO + Span::from_secs(9), &mut Outbox::for_one_node());
            Ok(())
        };
        let link = json!({ "down": { "kind": "cell", "harq": {} } });
        let air = json!({ "kind": "shared", "harq": {} });
        let access = json!({ "bearer": { "kind": "radio-access", "air": { "down": air } } });
        for (table, prefix) in [(&link, "down"), (&access, "bearer.air.down")] {
            for (key, value) in
                [("harq.error", json!("20%")), ("loss", json!(0.1)), ("delay", json!("5ms + e(2ms)"))]
            {
                let step = json!({ "time": "1s", "set": { format!("{prefix}.{key}"): value }, "for": "1s" });
                build(table, step).unwrap_or_else(|error| panic!("{prefix}.{key}: {error}"));
            }
            let step = json!({ "time": "1s", "set": { "user.0.mean_snr": -4.0, "user": { "1": { "doppler": 3.0 } } } });
            build(table, step).unwrap_or_else(|error| panic!("{prefix}: {error}"));
            let outage = json!({ "for": "5s", "kind": "fade", "user": 1, "direction": "down" });
            build(table, json!({ "time": "1s", "outage": outage })).unwrap_or_else(|error| panic!("{error}"));
            for (step, path, message) in [
                (
                    json!({ "set": { format!("{prefix}.slots"): 5 } }),
                    &*format!("set.{prefix}.slots"),
                    "is fixed when the cell",
                ),
                (json!({ "set": { "user.3.mean_snr": 5 } }), "set.user.3.mean_snr", "is fixed"),
                (json!({ "set": { "user.2.mean_snr": 5 } }), "set.user.2.mean_snr", "is fixed"),
                (json!({ "set": { "user.0.count": 5 } }), "set.user.0.count", "is fixed"),
                (
                    json!({ "set": { "user.0.mean_snr": 500 } }),
                    "set.user.0.mean_snr",
                    "is not from -100 to 100",
                ),
                (json!({ "set": { "user.0.doppler": 1e6 } }), "set.user.0.doppler", "half the slots"),
                (json!({ "set": { format!("{prefix}.loss"): 2 } }), &*format!("set.{prefix}.loss"), ""),
                (json!({ "outage": { "for": "1s", "user": 3 } }), "outage.user", "0 to 2"),
            ] {
                let mut step = step;
                step["time"] = "1s".into();
                let error = build(table, step.clone()).unwrap_err();
                assert!(error.path.starts_with("at[0]") && error.message.contains(message), "{error}");
                assert!(error.path == format!("at[0].{path}") || message.is_empty(), "{error}");
            }
        }
        build(
            &access,
            json!({ "time": "1s", "set": { "bearer.iub.delay": "1ms", "bearer.iub.rate": "1Mbit/s" } }),
        )
        .unwrap();
        let error = build(&link, json!({ "time": "1s", "outage": { "for": "1s" } })).unwrap_err();
        assert_eq!(error.path, "at[0].outage.direction");
    }

    #[test]
    fn a_step_cannot_change_impairments_but_keeps_them() {
        let mut table = config(json!([]));
        table.down = json!({ "kind": "constant", "rate": "1Mbit/s", "corrupt": 0.1 }).into();
        for (key, value) in [
            ("down.corrupt", json!(0.2)),
            ("down.duplicate", json!("1%")),
            ("up.reorder", json!({ "share": 0.1, "extra": "1ms" })),
            ("down", json!({ "kind": "variable", "rate": "1Mbit/s" })),
        ] {
            let error = table.with(key, &value).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("{key}: `reorder`, `duplicate` and `corrupt` cannot")),
                "{error}"
            );
        }
        for (key, value) in [("down.rate", json!("0bit/s")), ("down.corrupt", json!("10%"))] {
            table.with(key, &value).unwrap();
        }
    }

    #[test]
    fn a_table_with_a_kind_takes_the_place_of_the_old_one() {
        let (changed, part) =
            config(json!([])).with("up", &json!({ "kind": "variable", "rate": "1Mbit/s" })).unwrap();
        assert_eq!((part, changed.up["delay"].is_null()), (Changed::Link(Direction::Up), true));
    }
}
