//! Configuration file of `ackclock box`: the table `[box]` next to the `[edge]` of a scenario.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use ackclock_box::config::{BoxTable, DEFAULT_BUFFER, DEFAULT_REGULATOR, EdgeValues};
use ackclock_box::daemon::Settings;
use ackclock_core::name_of;
use ackclock_live::metrics;
use ackclock_observe::ObservedConfig;
use ackclock_scenario::{Scenario, Tables};
use serde_json::Value;

use crate::failure::Failure;

/// A configuration file that was read and checked.
pub(super) struct Loaded {
    pub(super) interface: String,
    pub(super) metrics: Option<SocketAddr>,
    pub(super) settings: Settings,
}

/// Whether an argument is a configuration file and not an interface.
pub(super) fn is_file(argument: &str) -> bool {
    argument.contains('/') || Path::new(argument).extension().is_some_and(|extension| extension == "toml")
}

/// Interface of an argument that is an interface or a configuration file.
pub(super) fn interface_of(argument: &str) -> Result<String, Failure> {
    if !is_file(argument) {
        return Ok(argument.to_owned());
    }
    let path = Path::new(argument);
    Ok(table(path, &text(path)?)?.interface)
}

/// Reads a configuration file, including the list of subscribers that the file names.
pub(super) fn load(path: &Path) -> Result<Loaded, Failure> {
    let text = text(path)?;
    let wrong = |error: String| Failure::Input(format!("{}: {error}", path.display()));
    let table = table(path, &text)?;
    let radio = lacks_radio(&text).then(|| RADIO.to_owned());
    let sets: Vec<String> = defaults(&text).into_iter().chain(radio).collect();
    let scenario = Scenario::load(&path.to_string_lossy(), &text, &sets)
        .map_err(|error| Failure::Input(error.to_string()))?;
    let list = match &table.file {
        Some(file) => Some(self::text(&beside(path, file))?),
        None => None,
    };
    let edge = edge(scenario.tables()).map_err(wrong)?;
    let policy = table.policy(edge, list.as_deref()).map_err(|error| wrong(error.to_string()))?;
    // Metrics name subscribers, so only this machine may read them.
    let metrics = table.metrics.as_deref().map(metrics::parse_loopback).transpose();
    let metrics = metrics.map_err(|error| wrong(format!("box.metrics: {error}")))?;
    let settings = Settings { policy, act: table.act, stale: table.stale };
    Ok(Loaded { interface: table.interface, metrics, settings })
}

/// Radio that a scenario with an observing bearer needs. A box on real packets uses no key of it.
const RADIO: &str = "edge.behind.bearer=links";

/// Whether the file has an observing bearer without the radio that it would observe in a simulation.
fn lacks_radio(text: &str) -> bool {
    let Ok(file) = toml::from_str::<toml::Table>(text) else { return false };
    let Some(edge) = file.get("edge").and_then(toml::Value::as_table) else { return false };
    let kind = edge.get("bearer").and_then(|bearer| bearer.get("kind").unwrap_or(bearer).as_str());
    kind == Some("observed") && !edge.contains_key("behind")
}

/// Checks the table `[box]` of a scenario file that has this table.
pub(crate) fn check_table(path: &Path) -> Result<(), Failure> {
    // A scenario from standard input has no folder in which a list of subscribers could be.
    let text = if path == Path::new("-") { String::new() } else { text(path)? };
    let has_table = toml::from_str::<toml::Table>(&text).is_ok_and(|file| file.contains_key("box"));
    if has_table { load(path).map(drop) } else { Ok(()) }
}

fn text(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| Failure::reading(path, &error))
}

fn table(path: &Path, text: &str) -> Result<BoxTable, Failure> {
    BoxTable::read(text).map_err(|error| Failure::Input(format!("{}: {error}", path.display())))
}

/// Path of a file that the configuration file names, relative to the folder of the configuration file.
fn beside(path: &Path, file: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).join(file)
}

/// Regulator and buffer of a box whose file has none.
fn defaults(text: &str) -> Vec<String> {
    let Ok(file) = toml::from_str::<toml::Table>(text) else { return Vec::new() };
    let edge = file.get("edge").and_then(toml::Value::as_table);
    let lacks = |key: &str| edge.is_none_or(|edge| !edge.contains_key(key));
    let regulator = lacks("regulator").then(|| format!("edge.regulator={DEFAULT_REGULATOR}"));
    let buffer = lacks("buffer").then(|| format!("edge.buffer={DEFAULT_BUFFER}"));
    regulator.into_iter().chain(buffer).collect()
}

/// Values of `[edge]` that a box uses. The other keys describe a simulated radio.
fn edge(tables: &Tables) -> Result<EdgeValues, String> {
    let edge = &tables.edge;
    let observed = match name_of(&edge.bearer).as_str() {
        "observed" => {
            let mut keys = edge.bearer.as_object().cloned().unwrap_or_default();
            keys.remove("kind");
            let observed = serde_json::from_value(Value::Object(keys));
            Some(observed.map_err(|error| format!("edge.bearer: {error}"))?)
        }
        "links" => None::<ObservedConfig>,
        other => {
            return Err(format!("edge.bearer: a box only observes the radio: `{other}` is not \"observed\""));
        }
    };
    Ok(EdgeValues { regulator: (*edge.regulator).clone(), buffer: edge.buffer, observed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_link::Side;

    #[test]
    fn a_live_box_needs_no_radio_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("box.toml");
        let table =
            "[box]\ninterface = \"lo\"\nside = \"network\"\n[edge]\nregulator = \"wrd\"\nbuffer = \"20p\"\n";
        for bearer in
            ["", "bearer = { kind = \"observed\", side = \"network\" }\n", "bearer = \"observed\"\n"]
        {
            fs::write(&path, format!("{table}{bearer}")).unwrap();
            assert_eq!(load(&path).map(|loaded| loaded.settings.policy.side()).ok(), Some(Side::Network));
        }
        // A radio that is given is read, with its mistakes.
        fs::write(&path, format!("{table}bearer = \"observed\"\n[edge.behind]\nbufer = \"5p\"\n")).unwrap();
        assert!(load(&path).err().unwrap().message().unwrap().contains("bufer"));
    }
}
