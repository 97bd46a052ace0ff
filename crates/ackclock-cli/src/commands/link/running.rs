//! Conditions of a running link: `link set` changes them, `link outage` interrupts it.

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

/// The conditions, and which directions are interrupted.
pub(super) struct Current {
    /// The table as it was set last.
    edge: EdgeConfig,
    /// Number of media installed so far: each draws from streams of its own.
    installed: u32,
    /// Ends of outages, by direction.
    interrupted: [Option<Instant>; 2],
}

impl Current {
    pub(super) const fn new(edge: EdgeConfig) -> Self {
        Self { edge, installed: 0, interrupted: [None; 2] }
    }
}

/// A medium to install.
type New = (Direction, Box<dyn Medium>);

impl Shared {
    /// Changes all keys or none. A direction in an outage changes at its end.
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

    /// Stops a direction, or both, for a time. Of outages that overlap the last end counts.
    pub(super) fn interrupt(self: &Arc<Self>, outage: Outage) -> Result<(), String> {
        let mut current = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        let lasts = Duration::from_nanos(outage.lasts.as_nanos());
        let end = now().checked_add(lasts).ok_or_else(|| format!("{} is too long", outage.lasts))?;
        let directions = outage.direction.map_or(Direction::BOTH.to_vec(), |one| vec![one]);
        let mut media = Vec::new();
        for &direction in &directions {
            let any = json!({ "kind": "constant" });
            // Refuses links that nothing can replace while they run.
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
            // A link that has ended needs no end of its outage.
            shared.upgrade().map(|shared| shared.resume())
        });
        Ok(())
    }

    /// Ends the outages whose time has come.
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

/// Name of a direction's table.
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

/// A value as it is written in TOML: a number, a table, or else a string.
fn value(text: &str) -> Value {
    if let Some(number) = text.parse().ok().and_then(serde_json::Number::from_f64) {
        return Value::Number(number);
    }
    let table = text.starts_with('{').then(|| toml::from_str(&format!("value = {text}")).ok()).flatten();
    table.and_then(|mut table: Value| Some(table.get_mut("value")?.take())).unwrap_or_else(|| text.into())
}
