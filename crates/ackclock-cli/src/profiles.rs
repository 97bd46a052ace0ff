//! Profiles of links: named delays, rates and losses, each in a file with the source of its numbers. A profile is a link
//! for programs, a preset the defaults of a scenario; no name is that of both.

use ackclock_core::{Rate, Span};
use ackclock_import::Recording;
use ackclock_radio::synthetic;
use serde_json::{Value as Json, json};
use toml::{Table, Value};

use crate::failure::Failure;
use crate::output;
use crate::table::{self, Align, terminal_width};

/// Profile of a link: a table `[edge]`, and the source of the table's numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Profile {
    pub(crate) name: &'static str,
    text: &'static str,
}

macro_rules! profiles {
    ($($name:literal),* $(,)?) => {
        &[$(Profile { name: $name, text: include_str!(concat!("../profiles/", $name, ".toml")) }),*]
    };
}

/// List of all link profiles.
static PROFILES: &[Profile] = profiles![
    "edge",
    "3g-slow",
    "3g",
    "4g-slow",
    "4g-fast",
    "4g-lte",
    "dsl",
    "cable",
    "geo",
    "cdma-1x",
    "evdo-driving",
    "lte-driving-like",
    "starlink-like",
    "wifi-bad-like",
];

/// Finds the profile called `name`.
pub(crate) fn find(name: &str) -> Option<Profile> {
    PROFILES.iter().find(|profile| profile.name == name).copied()
}

/// Parses the option `--profile NAME`.
///
/// # Errors
/// Fails with the names of the available profiles.
pub(crate) fn parse(name: &str) -> Result<Profile, String> {
    let names = || PROFILES.iter().map(|profile| profile.name);
    find(name).ok_or_else(|| {
        let typed = name.to_lowercase();
        let like: Vec<_> = names().filter(|name| name.contains(&typed)).collect();
        let hint =
            if like.is_empty() { String::new() } else { format!("; did you mean {}?", like.join(" or ")) };
        format!("no such profile; there are {}{hint}", names().collect::<Vec<_>>().join(", "))
    })
}

impl Profile {
    fn table(&self) -> Table {
        // A test checks that the text of every profile can be parsed.
        self.text.parse().unwrap_or_default()
    }

    /// Returns the profile's table `[edge]`.
    pub(crate) fn edge(&self) -> Table {
        self.table().get("edge").and_then(Value::as_table).cloned().unwrap_or_default()
    }

    /// Returns the profile's text for `key`: `source`, `assumed` or `fitted`.
    fn said(&self, key: &str) -> Option<String> {
        self.table().get(key).and_then(Value::as_str).map(str::to_owned)
    }

    fn key(&self, direction: &str, key: &str) -> Option<String> {
        self.edge().get(direction)?.get(key)?.as_str().map(str::to_owned)
    }

    /// Rate of the profile; the mean rate of a recording.
    fn rate(&self, direction: &str) -> Option<Rate> {
        match self.key(direction, "rate") {
            Some(rate) => rate.parse().ok(),
            None => self.recording(direction).map(|recording| recording.mean_rate()),
        }
    }

    /// Built-in recording that the link of the profile plays.
    fn recording(&self, direction: &str) -> Option<Recording> {
        let text = synthetic::read(&self.key(direction, "file")?)?.ok()?;
        Recording::parse(text.as_bytes()).ok()
    }

    /// Round-trip propagation delay of the profile; `None` if a delay is random.
    fn rtt(&self) -> Option<Span> {
        // Without the key, the delays are in the recording.
        let delay = |direction: &str| self.key(direction, "delay")?.parse::<Span>().ok();
        Some(delay("down")? + delay("up")?)
    }

    /// Distribution of the profile's random delays as text, or the recording that has the delays.
    fn law(&self) -> Option<String> {
        match self.rtt() {
            Some(_) => None,
            None => self.key("down", "delay").or_else(|| self.key("down", "file")),
        }
    }

    fn buffer(&self) -> Option<String> {
        self.edge().get("buffer").and_then(Value::as_str).map(str::to_owned)
    }

    fn json(&self) -> Json {
        json!({
            "name": self.name,
            "down_bps": self.rate("down").map(Rate::as_bps),
            "up_bps": self.rate("up").map(Rate::as_bps),
            "rtt_ms": self.rtt().map(Span::as_millis_f64),
            "down_delay": self.law(),
            "loss": 0.0,
            "buffer": self.buffer(),
            "source": self.said("source"),
            "assumed": self.said("assumed"),
            "fitted": self.said("fitted"),
        })
    }
}

/// Prints the list of profiles, or the description of one profile.
///
/// # Errors
/// Fails if no profile is called `name`.
pub(crate) fn list(name: Option<&str>, as_json: bool) -> Result<(), Failure> {
    let profiles: Vec<Profile> = match name {
        Some(name) => vec![parse(name).map_err(|error| Failure::Input(format!("{name}: {error}")))?],
        None => PROFILES.to_vec(),
    };
    if as_json {
        let all: Vec<Json> = profiles.iter().map(Profile::json).collect();
        return output::print(&format!("{}\n", Json::Array(all)));
    }
    let mut table = table::Table::default();
    table.column("profile", Align::Left);
    for heading in ["down", "up", "RTT", "queue"] {
        table.column(heading, Align::Right);
    }
    let shown = |value: Option<String>| value.unwrap_or_else(|| "law".to_owned());
    for profile in &profiles {
        let rate = |direction: &str| shown(profile.rate(direction).map(|rate| rate.to_string()));
        let rtt = shown(profile.rtt().map(|rtt| rtt.to_string()));
        table.row(vec![profile.name.to_owned(), rate("down"), rate("up"), rtt, shown(profile.buffer())]);
    }
    let notes: String = profiles.iter().map(notes).collect();
    output::print(&format!(
        "{}\nOnly recordings with losses lose packets; add --loss. Sources:\n{notes}",
        table.render(terminal_width())
    ))
}

fn notes(profile: &Profile) -> String {
    let lines = [
        profile.said("source").map(|source| format!("{}: {source}", profile.name)),
        profile.law().map(|law| format!("  delay of downlink packets: {law}")),
        profile
            .key("down", "file")
            .map(|file| format!("  downlink: {file}, a recording generated from models")),
        profile.said("assumed").map(|assumed| format!("  assumed: {assumed}")),
        profile.said("fitted").map(|fitted| format!("  fitted: {fitted}")),
    ];
    lines.into_iter().flatten().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use ackclock_scenario::presets::PRESETS;

    use super::*;

    #[test]
    fn every_profile_says_its_numbers_and_where_they_come_from() {
        for profile in PROFILES {
            let is_preset = PRESETS.iter().any(|preset| preset.name == profile.name);
            assert!(!is_preset, "{} is a preset with another meaning", profile.name);
            profile.text.parse::<Table>().unwrap_or_else(|error| panic!("{}: {error}", profile.name));
            assert!(profile.rate("down").is_some() && profile.rate("up").is_some(), "{}", profile.name);
            assert!(profile.rtt().is_some() != profile.law().is_some(), "{}", profile.name);
            for key in ["source", "assumed"] {
                assert!(profile.said(key).is_some_and(|text| text.len() > 10), "{}: {key}", profile.name);
            }
        }
    }
}
