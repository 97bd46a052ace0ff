//! Links and bearers that change during a run: the steps of `[[edge.at]]`.

use std::ops::Range;

use ackclock_core::{ConfigError, Span, Streams, Time, name_of};
use ackclock_link::{CellChange, Change, Direction, Faded, Files, Medium, OutageKind, Silence};
use serde_json::Value;

use crate::changed::{has_medium, side};
use crate::scheduled::Changes;
use crate::{Changed, EdgeConfig, Outage, Step};

/// Content of a step, as far as it concerns one part of the edge.
enum Planned<'a> {
    Set(&'a Changed),
    /// The part gets its earlier values back.
    Restore(&'a Changed),
    /// An outage of these users in a direction, with its end and its kind.
    Outage(Direction, Range<u32>, Time, OutageKind),
}

impl EdgeConfig {
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
                    OutageKind::Silent => Box::new(Silence::Paused),
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
        let Some(user) = outage.user else { return Ok(0..u32::MAX) };
        self.check_user(user)?;
        Ok(user..user + 1)
    }

    /// Checks that the radio has a user with this number.
    pub(crate) fn check_user(&self, user: u32) -> Result<(), ConfigError> {
        let Some(groups) = self.cell_users()? else {
            return Err(ConfigError::new("user", "this radio has no users: leave out this key"));
        };
        let users: u32 = groups.iter().map(|group| group.count).sum();
        if user < users {
            return Ok(());
        }
        let message = match users {
            1 => format!("{user} is not the number of a user: there is one, number 0"),
            _ => format!("{user} is not the number of a user: there are {users}, from 0 to {}", users - 1),
        };
        Err(ConfigError::new("user", message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RADIO, Surroundings, WIRED};
    use ackclock_core::{Config, FlowId, Message, Node, Outbox, Rate, Segment, Seq};
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
        let access = json!("radio-access");
        for set in [
            json!({ "bearer.air.down.rate": "64kbit/s", "bearer.air.up.errors": 0.5 }),
            json!({ "bearer.air.up.rate": "32kbit/s", "bearer.air.up.delay": "1ms" }),
            json!({ "bearer": { "air": { "down": { "rate": "64kbit/s", "delay": "1ms" } } } }),
            json!({ "bearer": { "air": { "up": { "errors": { "kind": "rayleigh", "fer": "5%" } } } } }),
        ] {
            let config = of(access.clone(), set.clone());
            config.check().unwrap_or_else(|error| panic!("{set}: {error}"));
            let changes = config.changes(&Streams::new(1, 0), &NoFiles).unwrap();
            assert!(changes.due() == Time::ZERO + Span::from_secs(1), "{set}");
        }
        for (bearer, set, path, message) in [
            (
                &access,
                json!({ "bearer.air.down.tti": "20ms" }),
                "bearer.air.down.tti",
                "is fixed when the bearer starts",
            ),
            (
                &access,
                json!({ "bearer.air.up.rate": "1kbit/s" }),
                "bearer.air.up.rate",
                "a multiple of 32kbit/s",
            ),
            (&access, json!({ "down.rate": "1Mbit/s" }), "down.rate", "has no links"),
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
    fn an_outage_interrupts_the_user_with_its_number() {
        let user = json!([{ "count": 2 }, { "count": 3, "mean_snr": 5.0 }]);
        let config: EdgeConfig =
            serde_json::from_value(json!({ "down": { "kind": "cell" }, "user": user })).unwrap();
        let interrupted = |user| {
            let outage = serde_json::from_value(json!({ "for": "1s", "user": user })).unwrap();
            config.interrupted(&outage)
        };
        // The users 0 and 1 are of the first table, and the users 2 to 4 of the second.
        assert_eq!([1, 4].map(|user| interrupted(user).unwrap()), [1..2, 4..5]);
        assert!(interrupted(5).unwrap_err().to_string().contains("user: 5"));
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
                (json!({ "outage": { "for": "1s", "user": 4 } }), "outage.user", "from 0 to 3"),
            ] {
                let mut step = step;
                step["time"] = "1s".into();
                let error = build(table, step.clone()).unwrap_err();
                assert!(error.path.starts_with("at[0]") && error.message.contains(message), "{error}");
                assert!(error.path == format!("at[0].{path}") || message.is_empty(), "{error}");
            }
        }
        let step =
            json!({ "time": "1s", "set": { "bearer.iub.delay": "1ms", "bearer.iub.rate": "1Mbit/s" } });
        let error = build(&access, step.clone()).unwrap_err();
        assert!(error.message.contains("`delay` and `rate` of an `iub`"), "{error}");
        let mut with_iub = access.clone();
        with_iub["bearer"]["iub"] = json!({});
        build(&with_iub, step).unwrap();
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
