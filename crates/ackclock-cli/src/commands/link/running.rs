//! Changes the conditions of a running link: `link set` replaces them, and `link outage` interrupts the link.

use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use ackclock_core::Streams;
use ackclock_edge::{Changed, EdgeConfig};
use ackclock_link::{Change, Direction, Silence};
use ackclock_live::control::Outage;
use serde_json::{Value, json};

use super::current::name;
use super::live::Shared;
use super::outputs::now;

impl Shared {
    /// Applies all changes of conditions, or no change if one change is invalid. A direction in an outage changes when
    /// its outage ends.
    pub(super) fn set(&self, pairs: &[(String, String)]) -> Result<(), String> {
        let mut current = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut edge, mut installed) = (current.edge.clone(), current.installed);
        let mut changes = Vec::new();
        for (key, text) in pairs {
            let (changed, part) = edge.with(key, &value(text)).map_err(|error| error.to_string())?;
            installed += 1;
            changes.extend(self.changes(&changed, &part, installed)?);
            edge = changed;
        }
        changes.retain(|(direction, _)| current.interrupted[*direction as usize].is_none());
        self.install(changes)?;
        (current.edge, current.installed) = (edge, installed);
        Ok(())
    }

    /// Interrupts one direction or both directions for a time. Overlapping outages end together at the latest end time.
    pub(super) fn interrupt(self: &Arc<Self>, outage: Outage) -> Result<(), String> {
        let mut current = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        let lasts = Duration::from_nanos(outage.lasts.as_nanos());
        let end = now().checked_add(lasts).ok_or_else(|| format!("{} is too long", outage.lasts))?;
        let directions = outage.direction.map_or(Direction::BOTH.to_vec(), |one| vec![one]);
        let mut changes = Vec::new();
        for &direction in &directions {
            let any = json!({ "kind": "constant" });
            // The check refuses link kinds that cannot be replaced while they run.
            current.edge.with(name(direction), &any).map_err(|error| error.to_string())?;
            let stopped = if outage.drop { Silence::Severed } else { Silence::Paused };
            changes.push((direction, Change::Medium(Box::new(stopped))));
        }
        self.install(changes)?;
        for direction in directions {
            let until = &mut current.interrupted[direction as usize];
            *until = (*until).max(Some(end));
        }
        let shared = Arc::downgrade(self);
        thread::spawn(move || {
            sleep(lasts);
            // If the link has ended, its outage does not have to be ended.
            shared.upgrade().map(|shared| shared.resume())
        });
        Ok(())
    }

    /// Ends the outages that have expired.
    fn resume(&self) -> Result<(), String> {
        let mut current = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        for direction in Direction::BOTH {
            if current.interrupted[direction as usize].is_some_and(|end| end <= now()) {
                current.interrupted[direction as usize] = None;
                current.installed += 1;
                let part = Changed::Link(direction);
                self.install(self.changes(&current.edge, &part, current.installed)?)?;
            }
        }
        Ok(())
    }

    /// Returns the changes of the running link to the conditions that `edge` has in one part.
    fn changes(
        &self,
        edge: &EdgeConfig,
        part: &Changed,
        number: u32,
    ) -> Result<Vec<(Direction, Change)>, String> {
        let streams = Streams::new(self.seed, 0);
        edge.changes_of(part, &format!("set{number}"), &streams, &self.files)
            .map_err(|error| error.to_string())
    }

    fn install(&self, changes: Vec<(Direction, Change)>) -> Result<(), String> {
        self.of_plane(move |plane, _| {
            changes.into_iter().for_each(|(direction, change)| plane.change(direction, change))
        })
    }
}

#[allow(clippy::disallowed_methods)] // The real world is waited for here; no model sleeps.
fn sleep(length: Duration) {
    thread::sleep(length);
}

/// Parses a value as in TOML or JSON: a number, a table, or otherwise a string.
fn value(text: &str) -> Value {
    if let Some(number) = text.parse().ok().and_then(serde_json::Number::from_f64) {
        return Value::Number(number);
    }
    if let Ok(table @ Value::Object(_)) = serde_json::from_str(text) {
        return table;
    }
    let table = text.starts_with('{').then(|| toml::from_str(&format!("value = {text}")).ok()).flatten();
    table.and_then(|mut table: Value| Some(table.get_mut("value")?.take())).unwrap_or_else(|| text.into())
}
