//! Links that change during a run: the steps of `[[edge.at]]`, and changes of a live link.

use ackclock_core::{Component, ConfigError, Rate, Span, Streams, Time, name_of};
use ackclock_link::{
    AnyMedium, Change, Direction, Faded, Files, Impairments, LINKS, LinkConfig, Medium, MediumContext,
    OutageKind, Silence,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::EdgeConfig;

/// Change of the links at a given time of the run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Time of the change since the start of the run.
    pub time: Span,
    /// Keys of the links, with their new values: `{ down.rate = "1Mbit/s" }`. A rate of 0 is an outage.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Value>,
    /// Outage of the radio that starts at this time. The time of the next step must be after the end of the outage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
}

/// Outage of the radio for a limited time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Duration of the outage of the radio.
    #[serde(rename = "for")]
    pub lasts: Span,
    /// Kind of the outage. In a "silent" outage nothing is sent, and packets wait. In a "fade" the transmitter does not
    /// notice the outage, and all packets it sends are lost. The default kind of an outage is "silent" for links, and
    /// "fade" over radio link control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<OutageKind>,
    /// Direction that the outage interrupts. By default, both directions are interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
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
    /// Returns this table with a new value at a key of a link: `down.rate`, or `down` with a table of several keys. A
    /// table with `kind` replaces the old table entirely. The second returned value is the direction that changed.
    ///
    /// # Errors
    /// Fails with the key, and with the keys that can change.
    pub fn with(&self, key: &str, value: &Value) -> Result<(Self, Direction), ConfigError> {
        let (direction, side, rest) = side_of(key)?;
        if !self.bearer()?.uses_links() {
            let message = format!("a bearer of kind `{}` cannot change while it runs", name_of(&self.bearer));
            return Err(ConfigError::new(key, message));
        }
        if !is_silent(&self.down) && self.cell_users()?.is_some() {
            return Err(ConfigError::new(key, "the links of a cell cannot change while it runs"));
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
        Ok((changed, direction))
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
        let (side, table) = match direction {
            Direction::Down => ("down", &self.down),
            Direction::Up => ("up", &self.up),
        };
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
        self.each_step(|number, _, direction, outage, config| {
            if outage.is_some() {
                return Ok(());
            }
            let (side, table) = match direction {
                Direction::Down => ("down", &config.down),
                Direction::Up => ("up", &config.up),
            };
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
        self.each_step(|number, time, direction, outage, config| {
            let (side, at) = (if direction == Direction::Down { "down" } else { "up" }, Time::ZERO + time);
            let medium = || config.medium(direction, &format!("{side}/at{number}"), streams, files);
            match outage {
                None => changes.add(at, direction, Change::Medium(medium()?)),
                Some((until, kind)) if !config.bearer()?.uses_links() => {
                    changes.add(at, direction, Change::Outage(until, kind));
                }
                Some((until, kind)) => {
                    let interrupted: Box<dyn Medium> = match kind {
                        OutageKind::Silent => Box::new(Silence),
                        OutageKind::Fade => Box::new(Faded(medium()?)),
                    };
                    changes.add(at, direction, Change::Medium(interrupted));
                    changes.add(until, direction, Change::Medium(medium()?));
                }
            }
            Ok(())
        })?;
        Ok(changes)
    }

    /// Checks the steps without building any link.
    pub(crate) fn check_steps(&self) -> Result<(), ConfigError> {
        self.each_step(|_, _, _, _, _| Ok(()))
    }

    /// Calls `visit` for each change with these arguments: number of the step, time, direction, end and kind of an
    /// outage, and the resulting table.
    fn each_step(
        &self,
        mut visit: impl FnMut(
            usize,
            Span,
            Direction,
            Option<(Time, OutageKind)>,
            &Self,
        ) -> Result<(), ConfigError>,
    ) -> Result<(), ConfigError> {
        let (mut now, mut config) = (Span::ZERO, self.clone());
        for (number, step) in self.at.iter().enumerate() {
            let under = |error: ConfigError| error.under(&format!("at[{number}].set"));
            if step.time < now {
                let message = format!("{} is before the step above it, or within its outage", step.time);
                return Err(ConfigError::new(format!("at[{number}].time"), message));
            }
            now = step.time;
            for (key, value) in &step.set {
                let direction;
                (config, direction) = config.with(key, value).map_err(under)?;
                visit(number, step.time, direction, None, &config).map_err(under)?;
            }
            let Some(outage) = step.outage else { continue };
            let under = |error: ConfigError| error.under(&format!("at[{number}].outage"));
            now = Span::from_nanos(step.time.as_nanos().saturating_add(outage.lasts.as_nanos()));
            for direction in outage.directions() {
                let kind = config.outage_kind(&outage, direction).map_err(under)?;
                visit(number, step.time, direction, Some((Time::ZERO + now, kind)), &config)
                    .map_err(under)?;
            }
        }
        Ok(())
    }

    /// Returns the kind of an outage. Fails if the link of this direction cannot be interrupted.
    fn outage_kind(&self, outage: &Outage, direction: Direction) -> Result<OutageKind, ConfigError> {
        let (side, table) = match direction {
            Direction::Down => ("down", &self.down),
            Direction::Up => ("up", &self.up),
        };
        let refused = |what: &str, name| {
            let message = format!("a {what} of kind `{name}` cannot be interrupted");
            Err(ConfigError::new("for", message))
        };
        if outage.lasts == Span::ZERO {
            return Err(ConfigError::new("for", "0s: an outage lasts longer"));
        }
        let bearer = self.bearer()?;
        let Some(usual) = bearer.outage() else { return refused("bearer", name_of(&self.bearer)) };
        if bearer.uses_links() {
            let in_cell = !is_silent(&self.down) && self.cell_users()?.is_some();
            if in_cell || !has_medium(table, side)? {
                return refused("link", name_of(if in_cell { &self.down } else { table }));
            }
        }
        Ok(outage.kind.unwrap_or(usual))
    }
}

/// Splits a key into its direction, the name of the direction, and the rest of the key.
fn side_of(key: &str) -> Result<(Direction, &str, &str), ConfigError> {
    let (side, rest) = key.split_once('.').unwrap_or((key, ""));
    match side {
        "down" => Ok((Direction::Down, side, rest)),
        "up" => Ok((Direction::Up, side, rest)),
        _ => Err(ConfigError::new(key, "only keys of `down` and `up` can change while a link runs")),
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
                // If `loss` is a table, `loss.fer` is the key `fer` of this table.
                match key.split_once('.').and_then(|(first, rest)| Some((keys.get_mut(first)?, rest))) {
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
        let (changed, direction) =
            config(json!([])).with("up", &json!({ "kind": "variable", "rate": "1Mbit/s" })).unwrap();
        assert_eq!((direction, changed.up["delay"].is_null()), (Direction::Up, true));
    }
}
