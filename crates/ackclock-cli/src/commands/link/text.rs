//! Converts a command line to the scenario that it describes. Every link is built from a scenario, and `--generate`
//! prints that scenario.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{fs, io};

use ackclock_core::{Rate, Size, Span};
use ackclock_link::{Direction, Loss};
use ackclock_radio::synthetic;
use ackclock_scenario::{Scenario, ScenarioError};
use toml::{Table, Value};

use super::Args;
use crate::failure::Failure;
use crate::profiles;
use crate::scenario_file::{SCENARIO, read_text};
use crate::usage::LINK_USAGE;

/// Text of a scenario, and its source.
pub(super) struct Text {
    /// Name of the scenario in error messages.
    pub(super) name: String,
    pub(super) toml: String,
    /// Overrides of the scenario, each with the option as typed by the user.
    sets: Vec<(String, String)>,
    /// Folder that contains the files named in the scenario.
    pub(super) folder: PathBuf,
    /// Tables and keys of the scenario that a link ignores.
    ignored: Vec<String>,
    /// A remark on the options.
    pub(super) remark: Option<String>,
}

/// Returns the scenario that the command line describes.
///
/// # Errors
/// Fails if a file cannot be read, or if an operand is neither a rate nor a recording.
pub(super) fn of(args: &Args) -> Result<Text, Failure> {
    let queues = args.spelling.overrides()?;
    let seed = args.seed.map(|seed| seed.to_string());
    let mtu = args.conditions.mtu.map(|bytes| format!("{bytes}B"));
    let own = [
        ("edge.regulator", "--regulator", &args.regulator),
        ("edge.buffer", "--buffer", &args.buffer),
        ("edge.queue", "--queue", &args.queue),
        ("seed", "--seed", &seed),
        ("edge.mtu", "--mtu", &mtu),
    ];
    let own = own.into_iter().filter_map(|(key, option, value)| {
        let value = value.as_ref()?;
        Some((format!("{key}={value}"), format!("{option} {value}")))
    });
    let black_hole = args
        .conditions
        .mtu_blackhole
        .then(|| ("edge.mtu_blackhole=true".to_owned(), "--mtu-blackhole".to_owned()));
    let typed = args.set.iter().map(|set| (set.clone(), format!("--set {set}")));
    let sets: Vec<_> = queues.into_iter().chain(own).chain(black_hole).chain(typed).collect();
    refuse_stray_condition(args)?;
    refuse_second_link(args)?;
    refuse_second_value(args, &sets)?;
    match (&args.scenario, &args.up, &args.down) {
        (Some(file), ..) => of_file(file, sets),
        (None, ..) if args.profile.is_some() => of_profile(args, sets),
        (None, ..) if args.before_escape() == Some(0) => {
            Err(Failure::Input(format!("link: UP and DOWN are missing; {LINK_USAGE}")))
        }
        (None, ..) if args.before_escape() == Some(1) => {
            Err(Failure::Input(format!("link: DOWN is missing; {LINK_USAGE}")))
        }
        (None, Some(up), Some(down)) => of_operands(args, up, down, sets),
        // clap requires UP and DOWN if the command line names no scenario.
        _ => Err(Failure::Input("UP and DOWN are missing".to_owned())),
    }
}

/// Refuses `--set` with a key for which another option gives a different value.
fn refuse_second_value(args: &Args, sets: &[(String, String)]) -> Result<(), Failure> {
    let parts =
        |set: &str| set.split_once('=').map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()));
    let ways = [("down", Direction::Down), ("up", Direction::Up)].into_iter();
    let conditions = ways.flat_map(|(way, direction)| {
        let keys = args.conditions.written(direction).into_iter();
        keys.map(move |(key, option)| (format!("edge.{way}.{key}"), None, option))
    });
    let own = sets.iter().filter(|(set, typed)| *typed != format!("--set {set}"));
    let own =
        own.filter_map(|(set, typed)| parts(set).map(|(key, value)| (key, Some(value), typed.as_str())));
    let options: Vec<_> = conditions.chain(own).collect();
    for (set, (key, value)) in args.set.iter().filter_map(|set| Some((set, parts(set)?))) {
        let other =
            options.iter().find(|(theirs, given, _)| *theirs == key && given.as_ref() != Some(&value));
        if let Some((.., option)) = other {
            let message = format!("link: {option} and --set {set} both set {key}; leave one out");
            return Err(Failure::Input(message));
        }
    }
    Ok(())
}

/// Refuses the operands UP and DOWN if a scenario or a profile already describes the link.
fn refuse_second_link(args: &Args) -> Result<(), Failure> {
    let says = match (&args.scenario, args.profile) {
        (Some(file), _) => format!("--scenario {}", file.display()),
        (None, Some(profile)) => format!("--profile {}", profile.name),
        (None, None) => return Ok(()),
    };
    let is_rate = |word: &OsString| word.to_str().is_some_and(|word| word.parse::<Rate>().is_ok());
    let both = matches!(args.before_escape(), Some(1 | 2));
    match &args.up {
        Some(up) if both || is_rate(up) => Err(Failure::Input(format!(
            "link: {says} says what the link is, and so would `{}`; leave one out",
            up.display()
        ))),
        _ => Ok(()),
    }
}

/// Refuses a time, a share or a buffer size in the place of the command. After `--` it is a command.
fn refuse_stray_condition(args: &Args) -> Result<(), Failure> {
    let words = args.words();
    let links = if args.scenario.is_some() || args.profile.is_some() { 0 } else { 2 };
    if args.before_escape().is_some_and(|before| before <= links) {
        return Ok(());
    }
    let Some(word) = words.first().and_then(|word| word.to_str()) else { return Ok(()) };
    let option = if word.parse::<Span>().is_ok() {
        "--delay"
    } else if word.ends_with('%') && word.parse::<Loss>().is_ok() {
        "--loss"
    } else if word.starts_with(|first: char| first.is_ascii_digit()) && word.parse::<Size>().is_ok() {
        "--buffer"
    } else {
        return Ok(());
    };
    Err(Failure::Input(format!("link: `{word}` is in the place of the command; write {option} {word}")))
}

/// Writes the scenario that results from the file and the options as text. Recordings are named by absolute paths, so
/// the text of the scenario works in any folder.
///
/// # Errors
/// Fails if a value cannot be written as TOML, such as a seed above 2^63.
pub(super) fn generated(scenario: &Scenario, folder: &Path) -> Result<String, Failure> {
    let mut said = scenario.said();
    with_whole_paths(&mut said, folder);
    toml::to_string(&said)
        .map_err(|error| Failure::Run(format!("{}: cannot be printed: {error}", scenario.name())))
}

/// Replaces the paths of recordings, which have the key `file`, by absolute paths. Built-in recordings have no path.
fn with_whole_paths(value: &mut serde_json::Value, folder: &Path) {
    use serde_json::Value as Json;
    match value {
        Json::Object(table) => {
            for (key, value) in table {
                match value {
                    Json::String(file) if key == "file" && !file.starts_with(synthetic::PREFIX) => {
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
    /// Loads the scenario of a command line. An error names the option as typed by the user.
    pub(super) fn scenario(&self) -> Result<Scenario, Failure> {
        let mut sets: Vec<String> = self.sets.iter().map(|(set, _)| set.clone()).collect();
        let scenario = self.load(&sets)?;
        if scenario.begins_anywhere() {
            // A link is a single run that starts at the beginning of its recordings.
            sets.push("runs=1".to_owned());
            return self.load(&sets);
        }
        Ok(scenario)
    }

    /// Returns whether the text comes from a file, so that error messages can name its lines.
    fn is_file(&self) -> bool {
        self.name != COMMAND_LINE && !self.name.starts_with("profile ")
    }

    fn load(&self, sets: &[String]) -> Result<Scenario, Failure> {
        Scenario::load(&self.name, &self.toml, sets).map_err(|error| {
            let typed = self.sets.iter().find(|(set, _)| error.place == format!("--set {set}"));
            let place = match typed {
                Some((_, typed)) => typed.clone(),
                // Line numbers are useless in a generated text, because the user never wrote this text.
                None if !self.is_file() => self.name.clone(),
                None => error.place.clone(),
            };
            ScenarioError { place, ..error }.into()
        })
    }

    /// Names the tables and keys that a link ignores, for a single remark.
    pub(super) fn ignored(&self) -> Option<String> {
        let list = self.ignored.join(", ");
        let reads = "a link reads [edge] and the delay of [path]";
        (!list.is_empty()).then(|| format!("{}: {reads}; it does not look at {list}", self.name))
    }
}

/// Name in error messages of a scenario made from operands and options.
const COMMAND_LINE: &str = "the command line";

fn of_file(file: &Path, sets: Vec<(String, String)>) -> Result<Text, Failure> {
    let toml = read_text(file, SCENARIO)?;
    let table = toml.parse::<Table>().unwrap_or_default();
    let mut ignored: Vec<_> = ["duration", "runs"]
        .iter()
        .filter(|key| table.contains_key(**key))
        .map(|key| (*key).to_owned())
        .collect();
    ignored.extend(
        ["flow", "relay", "sweep"]
            .iter()
            .filter(|key| table.contains_key(**key))
            .map(|key| format!("[{key}]")),
    );
    if table.get("edge").and_then(Value::as_table).is_some_and(|edge| edge.contains_key("report")) {
        ignored.push("edge.report".to_owned());
    }
    let path = table.get("path").and_then(Value::as_table);
    ignored.extend(
        path.into_iter().flat_map(Table::keys).filter(|key| *key != "delay").map(|key| format!("path.{key}")),
    );
    let folder = file.parent().unwrap_or_else(|| Path::new("")).to_owned();
    Ok(Text { name: file.display().to_string(), toml, sets, folder, ignored, remark: None })
}

/// Queue size for mm-link's default, an unlimited queue. A queue of 60000 packets is practically unlimited.
const EVERYTHING: &str = "60000p";

fn of_operands(args: &Args, up: &OsStr, down: &OsStr, sets: Vec<(String, String)>) -> Result<Text, Failure> {
    let string = |text: &str| Value::String(text.to_owned());
    args.conditions.check()?;
    let edge = Table::from_iter([
        ("buffer".to_owned(), string(EVERYTHING)),
        ("down".to_owned(), link(args, Direction::Down, down)?),
        ("up".to_owned(), link(args, Direction::Up, up)?),
    ]);
    of_edge(args, COMMAND_LINE.to_owned(), edge, sets)
}

/// Creates the scenario of a profile with additional options.
fn of_profile(args: &Args, sets: Vec<(String, String)>) -> Result<Text, Failure> {
    args.conditions.check()?;
    let (mut edge, name) = args.profile.map(|profile| (profile.edge(), profile.name)).unwrap_or_default();
    for (key, direction) in [("down", Direction::Down), ("up", Direction::Up)] {
        if let Some(table) = edge.get_mut(key).and_then(Value::as_table_mut) {
            args.conditions.put(direction, table)?;
        }
    }
    let typed = sets.iter().map(|(_, typed)| typed.clone());
    let with: Vec<String> = args.conditions.given().map(str::to_owned).chain(typed).collect();
    let name = if with.is_empty() {
        format!("profile {name}")
    } else {
        format!("profile {name} with {}", with.join(", "))
    };
    of_edge(args, name, edge, sets)
}

/// Creates the scenario of a link that no file describes.
fn of_edge(args: &Args, name: String, edge: Table, sets: Vec<(String, String)>) -> Result<Text, Failure> {
    let string = |text: &str| Value::String(text.to_owned());
    let way = |key: &str| edge.get(key).and_then(Value::as_table).cloned().unwrap_or_default();
    let remark = args.conditions.remark([&way("up"), &way("down")]);
    let path = Table::from_iter([("delay".to_owned(), string("0s"))]);
    let mut whole = Table::from_iter([
        ("version".to_owned(), Value::Integer(1)),
        // The preset gives simulated senders the properties of this machine's senders.
        ("preset".to_owned(), string("linux")),
        ("path".to_owned(), Value::Table(path)),
        ("edge".to_owned(), Value::Table(edge)),
    ]);
    if sets.iter().any(|(set, _)| set.starts_with("edge.up_regulator")) {
        // A link cannot distinguish uploads from downloads, so its scenario contains one flow of each kind.
        let flows = [Table::new(), Table::from_iter([("towards".to_owned(), string("server"))])];
        whole.insert("flow".to_owned(), Value::Array(flows.map(Value::Table).into()));
    }
    let toml = toml::to_string(&whole).map_err(|error| Failure::Run(error.to_string()))?;
    Ok(Text { name, toml, sets, folder: PathBuf::new(), ignored: Vec::new(), remark })
}

/// Returns the reason why an operand describes no link.
fn no_link(text: &str, missing: &io::Error, not_a_rate: &str) -> String {
    match text.strip_suffix(['K', 'M', 'G']) {
        Some(number) if number.parse::<f64>().is_ok() => {
            let unit = text[number.len()..].to_lowercase();
            format!("`{text}` has no unit; write {number}{unit}bit (or --cbr before it, as mm-link does)")
        }
        _ if text.contains(['/', '.']) || missing.kind() != io::ErrorKind::NotFound => {
            format!("`{text}` is neither a recording ({missing}) nor a rate ({not_a_rate})")
        }
        _ if profiles::find(text).is_some() => {
            format!("`{text}` is a profile: ackclock link --profile {text}")
        }
        _ => format!("`{text}` is neither a recording (no such file) nor a rate like 1mbit"),
    }
}

/// Returns the table of the link that an operand describes.
fn link(args: &Args, direction: Direction, operand: &OsStr) -> Result<Value, Failure> {
    let which = match direction {
        Direction::Up => "UP",
        Direction::Down => "DOWN",
    };
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
                return Err(Failure::Input(format!(
                    "{which}: {}",
                    no_link(text, &missing, &error.to_string())
                )));
            }
            put("kind", Value::String("trace".to_owned()));
            put("file", Value::String(text.to_owned()));
        }
    }
    args.conditions.put(direction, &mut table)?;
    Ok(Value::Table(table))
}
