//! The scenario that a command line means. There is only this way from options to a link, and `--generate` prints the
//! scenario that would run, so that it is what runs.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use ackclock_core::{Rate, Span};
use ackclock_scenario::Scenario;
use toml::{Table, Value};

use super::Args;
use crate::failure::Failure;
use crate::scenario_file::read_text;

/// A scenario as text, and where it comes from.
pub(super) struct Text {
    /// What errors call it.
    pub(super) name: String,
    pub(super) toml: String,
    /// Overrides.
    pub(super) sets: Vec<String>,
    /// Where the files that it names are.
    pub(super) folder: PathBuf,
    /// What a link does not look at.
    ignored: Vec<String>,
}

/// The scenario that is meant.
///
/// # Errors
/// Where a file cannot be read, or an operand is neither a rate nor a recording.
pub(super) fn of(args: &Args) -> Result<Text, Failure> {
    let queues = args.spelling.overrides()?;
    let own =
        [("edge.regulator", &args.regulator), ("edge.buffer", &args.buffer), ("edge.queue", &args.queue)];
    let own = own.into_iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_ref()?)));
    let seed = args.around.seed.map(|seed| format!("seed={seed}"));
    let sets: Vec<_> = queues.into_iter().chain(own).chain(seed).chain(args.set.iter().cloned()).collect();
    match (&args.scenario, &args.up, &args.down) {
        (Some(file), ..) => of_file(file, sets),
        (None, Some(up), Some(down)) => of_operands(args, up, down, sets),
        // clap asks for both operands where there is no scenario.
        _ => Err(Failure::Input("UP and DOWN are missing".to_owned())),
    }
}

/// What file and options say as the text of a scenario. It names its recordings by whole paths, so that it can be kept
/// in any folder.
///
/// # Errors
/// Where it cannot be written as TOML, as a seed above 2^63.
pub(super) fn generated(scenario: &Scenario, folder: &Path) -> Result<String, Failure> {
    let mut said = scenario.said();
    with_whole_paths(&mut said, folder);
    toml::to_string(&said)
        .map_err(|error| Failure::Run(format!("{}: cannot be printed: {error}", scenario.name())))
}

/// Gives the files of links, whose key is `file`, the paths that they have from everywhere.
fn with_whole_paths(value: &mut serde_json::Value, folder: &Path) {
    use serde_json::Value as Json;
    match value {
        Json::Object(table) => {
            for (key, value) in table {
                match value {
                    Json::String(file) if key == "file" => {
                        if let Ok(whole) = std::path::absolute(folder.join(&file)) {
                            *file = whole.to_string_lossy().into_owned();
                        }
                    }
                    below => with_whole_paths(below, folder),
                }
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|item| with_whole_paths(item, folder)),
        _ => {}
    }
}

impl Text {
    /// Which tables are not looked at, to be said once.
    pub(super) fn ignored(&self) -> Option<String> {
        let list = self.ignored.join(", ");
        let reads = "a link reads [edge] and the delay of [path]";
        (!list.is_empty()).then(|| format!("{}: {reads}; it does not look at {list}", self.name))
    }
}

fn of_file(file: &Path, sets: Vec<String>) -> Result<Text, Failure> {
    let toml = read_text(file)?;
    let table = toml.parse::<Table>().unwrap_or_default();
    let mut ignored: Vec<_> = ["duration", "runs"]
        .iter()
        .filter(|key| table.contains_key(**key))
        .map(|key| (*key).to_owned())
        .collect();
    ignored.extend(
        ["flow", "sweep"].iter().filter(|key| table.contains_key(**key)).map(|key| format!("[{key}]")),
    );
    let path = table.get("path").and_then(Value::as_table);
    ignored.extend(
        path.into_iter().flat_map(Table::keys).filter(|key| *key != "delay").map(|key| format!("path.{key}")),
    );
    let folder = file.parent().unwrap_or_else(|| Path::new("")).to_owned();
    Ok(Text { name: file.display().to_string(), toml, sets, folder, ignored })
}

/// mm-link's queues hold everything by default; so many packets are as good as that.
const EVERYTHING: &str = "60000p";

fn of_operands(args: &Args, up: &OsStr, down: &OsStr, sets: Vec<String>) -> Result<Text, Failure> {
    let string = |text: &str| Value::String(text.to_owned());
    let edge = Table::from_iter([
        ("buffer".to_owned(), string(EVERYTHING)),
        ("down".to_owned(), link(args, "DOWN", down)?),
        ("up".to_owned(), link(args, "UP", up)?),
    ]);
    let path = Table::from_iter([("delay".to_owned(), string("0s"))]);
    let whole = Table::from_iter([
        ("version".to_owned(), Value::Integer(1)),
        // Who runs it as a simulation gets senders like those of this machine.
        ("preset".to_owned(), string("linux")),
        ("path".to_owned(), Value::Table(path)),
        ("edge".to_owned(), Value::Table(edge)),
    ]);
    let toml = toml::to_string(&whole).map_err(|error| Failure::Run(error.to_string()))?;
    Ok(Text { name: "the command line".to_owned(), toml, sets, folder: PathBuf::new(), ignored: Vec::new() })
}

/// The table of the link that an operand means.
fn link(args: &Args, which: &str, operand: &OsStr) -> Result<Value, Failure> {
    let text = operand.to_str().ok_or_else(|| Failure::Input(format!("{which}: the name is not UTF-8")))?;
    let rate: Result<Rate, _> = args.spelling.rate(text).parse();
    let mut table = Table::new();
    let mut put = |key: &str, value: Value| table.insert(key.to_owned(), value);
    match rate {
        Ok(rate) => {
            put("kind", Value::String("constant".to_owned()));
            put("rate", Value::String(rate.to_string()));
        }
        Err(error) => {
            if let Err(missing) = fs::metadata(text) {
                let message =
                    format!("{which}: `{text}` is neither a recording ({missing}) nor a rate ({error})");
                return Err(Failure::Input(message));
            }
            put("kind", Value::String("trace".to_owned()));
            put("file", Value::String(text.to_owned()));
        }
    }
    put("delay", Value::String(args.delay.unwrap_or(Span::ZERO).to_string()));
    if let Some(loss) = args.loss {
        put("loss", Value::Float(loss));
    }
    Ok(Value::Table(table))
}
