//! Parses the settings of a script: `//!` lines, `--` lines, and shell commands, which are never run.

use ackclock_core::{Seq, Size, Span};
use ackclock_tcp::HeaderSize;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::options::number;
use super::{Note, Opening, Reader, Says, Script, Statement};
use crate::connection::{Connection, Data, Setup};
use crate::refusal::Refusal;

/// Settings of a script, each with the number of its line.
pub(super) struct Settings {
    pub(super) opening: Opening,
    sender: Option<(usize, Map<String, Value>)>,
    preset: Option<(usize, String)>,
    param: Option<(usize, Param)>,
    /// Line and value of the setting `net.ipv4.tcp_ecn`.
    ecn: Option<(usize, EcnSetting)>,
    tolerance: Option<Span>,
    notes: Vec<Note>,
}

/// Packet sizes and windows of a flow, from `//!param`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Param {
    /// Size of a full packet including headers, bytes.
    packet: Option<u16>,
    /// Size of a packet's headers, bytes.
    header: Option<u16>,
    /// Initial congestion window of the sender, packets.
    iw: Option<u32>,
    /// Largest receive window that the sender uses, bytes.
    max_window: Option<u64>,
}

/// ECN setting of the sender, as in `net.ipv4.tcp_ecn`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum EcnSetting {
    Never,
    /// The sender requests and accepts ECN.
    Always,
    /// The sender accepts ECN if the peer requests it.
    WhereAsked,
}

/// Default header size of `//!param`, bytes.
const HEADER: u16 = 40;
const DEFAULT_SENDER: &str = "cubic";
const DEFAULT_PRESET: &str = "linux";

impl Settings {
    /// Parses the settings among the statements of a script.
    ///
    /// # Errors
    /// Returns an error that names the invalid line.
    pub(super) fn read(statements: &[Statement<'_>]) -> Result<Self, Refusal> {
        let mut settings = Self {
            opening: Opening::Handshake,
            sender: None,
            preset: None,
            param: None,
            ecn: None,
            tolerance: None,
            notes: Vec::new(),
        };
        for &Statement { line, says } in statements {
            match says {
                Says::Setting(text) => settings.setting(line, text).map_err(|why| Refusal::new(line, why))?,
                Says::Flag(text) => settings.flag(text).map_err(|why| Refusal::new(line, why))?,
                Says::Commands(block) => settings.commands(line, block)?,
                Says::Event(_) | Says::Assertions(..) => {}
            }
        }
        Ok(settings)
    }

    /// Builds the script from these settings and the parsed events.
    ///
    /// # Errors
    /// Returns an error if the sender does not exist, or the script has no events.
    pub(super) fn finish(mut self, reader: Reader) -> Result<Script, Refusal> {
        if reader.events.is_empty() {
            return Err(Refusal::new(1, "nothing happens: there is no packet, call or assertion"));
        }
        let connects = reader.sockets.connects();
        let setup = self.setup(reader.first.unwrap_or(Seq(1)), connects)?;
        if let Err(error) = Connection::new(&setup) {
            let (line, of_sender) = self.place_of(&error.path);
            let error = if of_sender { error.under("sender") } else { error };
            return Err(Refusal::new(line, error.to_string()));
        }
        let Self { tolerance, notes, .. } = self;
        Ok(Script { setup, opening: reader.opening, tolerance, events: reader.events, notes })
    }

    fn setup(&mut self, first: Seq, connects: bool) -> Result<Setup, Refusal> {
        let is_default = self.sender.is_none() && self.preset.is_none();
        let preset = self.preset.as_ref().map(|(_, name)| name.clone());
        let preset = if is_default { Some(DEFAULT_PRESET.to_owned()) } else { preset };
        let named = |name: &str| Map::from_iter([("kind".to_owned(), Value::from(name))]);
        let (line, mut table) = self.sender.clone().unwrap_or_else(|| (1, named(DEFAULT_SENDER)));
        let handshake = if self.opening == Opening::Handshake { "on" } else { "off" };
        set(line, &mut table, "handshake", handshake, "`//!nosyn`, or its absence, sets it")?;
        if let Some((_, ecn)) = self.ecn {
            let is_on = ecn == EcnSetting::Always || (ecn == EcnSetting::WhereAsked && !connects);
            set(line, &mut table, "ecn", if is_on { "on" } else { "off" }, "net.ipv4.tcp_ecn sets it")?;
        }
        let param = self.param.map(|(_, param)| param).unwrap_or_default();
        let header = HeaderSize::Fixed(param.header.unwrap_or(HEADER));
        Ok(Setup {
            preset,
            packet: param.packet.map(|packet| (packet, header)),
            max_window: param.max_window.map(Size::Bytes),
            initial_window: param.iw.map(Size::Packets),
            first,
            data: Data::Written,
            ..Setup::new(Value::Object(table))
        })
    }

    /// Returns the line that sets the key `path`, and whether the key belongs to the sender's table.
    fn place_of(&self, path: &str) -> (usize, bool) {
        let param = self.param.as_ref().map(|(line, _)| *line);
        let (line, of_sender) = match path {
            "packet" | "max_window" | "initial_window" => (param, false),
            "preset" => (self.preset.as_ref().map(|(line, _)| *line), false),
            _ => (self.sender.as_ref().map(|(line, _)| *line), true),
        };
        (line.unwrap_or(1), of_sender)
    }

    fn setting(&mut self, line: usize, text: &str) -> Result<(), String> {
        let (name, value) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let value = value.trim();
        match name {
            "sender" if self.sender.is_none() => self.sender = Some((line, sender(value)?)),
            "preset" if self.preset.is_none() => self.preset = Some((line, value.to_owned())),
            "param" if self.param.is_none() => {
                let param: Param =
                    serde_json::from_str(value).map_err(|error| format!("//!param: {error}"))?;
                if param.header.is_some() && param.packet.is_none() {
                    return Err("//!param: `header` needs `packet`, which is missing".to_owned());
                }
                self.param = Some((line, param));
            }
            "nosyn" if self.opening == Opening::Handshake && value.is_empty() => {
                self.opening = Opening::Established(0);
            }
            _ => {
                return Err(format!(
                    "`//!{text}` is not a setting; they are `//!sender`, `//!preset`, `//!param` and `//!nosyn`, each once"
                ));
            }
        }
        Ok(())
    }

    fn flag(&mut self, text: &str) -> Result<(), String> {
        let Some(micros) = text.strip_prefix("--tolerance_usecs=") else {
            return Err(format!("unknown option `{text}`; known is `--tolerance_usecs=N`"));
        };
        self.tolerance = Some(Span::from_micros(number("--tolerance_usecs", micros)?));
        Ok(())
    }

    /// Handles shell commands, which are never run: only a `tcp_ecn` setting among them is applied.
    fn commands(&mut self, line: usize, block: &str) -> Result<(), Refusal> {
        for (line, command) in (line..).zip(block.lines()) {
            let command = command.trim();
            if command.is_empty() || command.starts_with('#') {
                continue;
            }
            let known = "of the kernel's settings only `sysctl net.ipv4.tcp_ecn=0`, 1 or 2 is read";
            if let Some((_, value)) = command.split_once("net.ipv4.tcp_ecn=") {
                let ecn = match value.trim() {
                    "0" => EcnSetting::Never,
                    "1" => EcnSetting::Always,
                    "2" => EcnSetting::WhereAsked,
                    _ => return Err(Refusal::new(line, format!("`{command}`: {known}"))),
                };
                self.ecn = Some((line, ecn));
            } else if command.contains("sysctl") || command.contains("/proc/sys/") {
                return Err(Refusal::new(
                    line,
                    format!("`{command}`: {known}; set options of the sender in `//!sender`"),
                ));
            } else {
                self.notes.push(Note { line, text: format!("commands are not run: `{command}`") });
            }
        }
        Ok(())
    }
}

/// Sets a key of the sender's table from the setting `by`; returns an error if the table already has the key.
fn set(line: usize, table: &mut Map<String, Value>, key: &str, value: &str, by: &str) -> Result<(), Refusal> {
    match table.insert(key.to_owned(), value.into()) {
        None => Ok(()),
        Some(_) => Err(Refusal::new(line, format!("//!sender: `{key}` is not allowed here: {by}"))),
    }
}

/// Parses a sender, written as JSON or as a plain name.
fn sender(text: &str) -> Result<Map<String, Value>, String> {
    let is_name = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let value = if is_name { Ok(Value::from(text)) } else { serde_json::from_str(text) };
    match value {
        Ok(Value::Object(table)) => Ok(table),
        Ok(name @ Value::String(_)) => Ok(Map::from_iter([("kind".to_owned(), name)])),
        _ => {
            Err(format!("//!sender: `{text}` is neither a name nor a JSON table like {{\"kind\":\"reno\"}}"))
        }
    }
}
