//! Changes the conditions of a running link: `link set` replaces them, and `link outage` interrupts the link.

use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ackclock_core::Streams;
use ackclock_edge::EdgeConfig;
use ackclock_link::{Direction, Medium, Severed, Silence};
use ackclock_live::control::Outage;
use serde_json::{Value, json};

use super::live::Shared;
use super::outputs::now;

/// Current conditions of the link, and its interrupted directions.
pub(super) struct Current {
    /// Latest edge configuration, with all changes so far.
    edge: EdgeConfig,
    /// Number of link media installed so far. Each medium draws from separate random streams.
    installed: u32,
    /// End times of the current outages, indexed by direction.
    interrupted: [Option<Instant>; 2],
}

impl Current {
    pub(super) const fn new(edge: EdgeConfig) -> Self {
        Self { edge, installed: 0, interrupted: [None; 2] }
    }
}

/// Link medium to install, and the direction that the medium serves.
type New = (Direction, Box<dyn Medium>);

impl Shared {
    /// Applies all changes of conditions, or no change if one change is invalid. A direction in an outage changes when
    /// its outage ends.
    pub(super) fn set(&self, pairs: &[(String, String)]) -> Result<(), String> {
        let mut current = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut edge, mut installed) = (current.edge.clone(), current.installed);
        let mut media = Vec::new();
        for (key, text) in pairs {
            let (changed, direction) = edge.with(key, &value(text)).map_err(|error| error.to_string())?;
            installed += 1;
            media.push(self.medium(&changed, direction, installed)?);
            edge = changed;
        }
        media.retain(|(direction, _)| current.interrupted[*direction as usize].is_none());
        self.install(media)?;
        (current.edge, current.installed) = (edge, installed);
        Ok(())
    }

    /// Interrupts one direction or both directions for a time. Overlapping outages end together at the latest end time.
    pub(super) fn interrupt(self: &Arc<Self>, outage: Outage) -> Result<(), String> {
        let mut current = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        let lasts = Duration::from_nanos(outage.lasts.as_nanos());
        let end = now().checked_add(lasts).ok_or_else(|| format!("{} is too long", outage.lasts))?;
        let directions = outage.direction.map_or(Direction::BOTH.to_vec(), |one| vec![one]);
        let mut media = Vec::new();
        for &direction in &directions {
            let any = json!({ "kind": "constant" });
            // The check refuses link kinds that cannot be replaced while they run.
            current.edge.with(name(direction), &any).map_err(|error| error.to_string())?;
            let stopped: Box<dyn Medium> = if outage.drop { Box::new(Severed) } else { Box::new(Silence) };
            media.push((direction, stopped));
        }
        self.install(media)?;
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
                let medium = self.medium(&current.edge, direction, current.installed)?;
                self.install(vec![medium])?;
            }
        }
        Ok(())
    }

    fn medium(&self, edge: &EdgeConfig, direction: Direction, number: u32) -> Result<New, String> {
        let streams = Streams::new(self.seed, 0);
        let medium = edge.medium(direction, &format!("set{number}"), &streams, &self.files);
        Ok((direction, medium.map_err(|error| error.to_string())?))
    }

    fn install(&self, media: Vec<New>) -> Result<(), String> {
        let exchange = move |plane: &mut ackclock_live::Plane, _| {
            media.into_iter().for_each(|(to, medium)| plane.replace_medium(to, medium))
        };
        self.remote.ask(exchange).ok_or_else(|| "the link has ended".to_owned())
    }
}

/// Name of the table with a direction's configuration.
const fn name(direction: Direction) -> &'static str {
    match direction {
        Direction::Down => "down",
        Direction::Up => "up",
    }
}

#[allow(clippy::disallowed_methods)] // The real world is waited for here; no model sleeps.
fn sleep(length: Duration) {
    thread::sleep(length);
}

/// Parses a value as in TOML: a number, a table, or otherwise a string.
fn value(text: &str) -> Value {
    if let Some(number) = text.parse().ok().and_then(serde_json::Number::from_f64) {
        return Value::Number(number);
    }
    let table = text.starts_with('{').then(|| toml::from_str(&format!("value = {text}")).ok()).flatten();
    table.and_then(|mut table: Value| Some(table.get_mut("value")?.take())).unwrap_or_else(|| text.into())
}
