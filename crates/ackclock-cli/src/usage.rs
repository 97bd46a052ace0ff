//! One-line error messages for invalid command lines: the typed text, the allowed values, and a suggestion.

use std::env;
use std::path::Path;

use ackclock_edge::{LINKS, QUEUES, REGULATORS};
use ackclock_scenario::Tables;
use ackclock_tcp::SENDERS;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde_json::Value;

use crate::failure::Failure;
use crate::scenario_file::LIST_OPTIONS;

/// Converts a clap error to a failure. Help and version are printed with exit status 0.
pub(crate) fn failure_of(error: &clap::Error) -> Failure {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // Write errors of a closed standard output are ignored.
        let _ = error.print();
        return Failure::Reported(if error.use_stderr() { 2 } else { 0 });
    }
    let words: Vec<String> = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    Failure::Input(Mistake { error, words: &words }.said())
}

/// Option of `compare` that takes the name of a sender, regulator or queue.
fn list_option(name: &str) -> Option<&'static str> {
    let of = [
        (SENDERS.entry(name).is_ok(), "--senders"),
        (REGULATORS.entry(name).is_ok(), "--regulators"),
        (QUEUES.entry(name).is_ok(), "--queues"),
    ];
    of.into_iter().find(|(known, _)| *known).map(|(_, option)| option)
}

/// A clap error, and the words of the command line.
struct Mistake<'a> {
    error: &'a clap::Error,
    words: &'a [String],
}

impl Mistake<'_> {
    fn said(&self) -> String {
        let command = self.command();
        let at = if command.is_empty() { String::new() } else { format!("{command}: ") };
        let (option, value) = (self.text(ContextKind::InvalidArg), self.text(ContextKind::InvalidValue));
        // clap names an option with its value: `--seed <N>` becomes `--seed`.
        let option = option.split([' ', '=']).next().unwrap_or_default();
        match self.error.kind() {
            ErrorKind::UnknownArgument => format!("{at}{}", self.unknown(&command, option)),
            ErrorKind::InvalidValue if value.is_empty() => format!("{at}{option} needs a value"),
            ErrorKind::InvalidValue => {
                format!("{at}{option} {value}: must be one of {}", self.text(ContextKind::ValidValue))
            }
            ErrorKind::ValueValidation => format!("{at}{option} {value}: {}", self.reason()),
            ErrorKind::MissingRequiredArgument => format!("{at}{}", self.missing(&command)),
            ErrorKind::InvalidSubcommand => self.no_command(),
            ErrorKind::ArgumentConflict => format!("{at}{}", self.conflict(&command, option)),
            _ => {
                let text = self.error.to_string();
                let first = text.lines().next().unwrap_or_default();
                format!("{at}{}", first.strip_prefix("error: ").unwrap_or(first))
            }
        }
    }

    /// Message about a command that does not exist.
    fn no_command(&self) -> String {
        let typed = self.text(ContextKind::InvalidSubcommand);
        if cfg!(not(feature = "live")) && NEED_LINUX.contains(&typed.as_str()) {
            return format!("`{typed}` needs Linux; this build of ackclock is the simulator alone");
        }
        if let Some((_, hint)) = NO_COMMANDS.iter().find(|(names, _)| names.contains(&typed.as_str())) {
            return format!("there is no command `{typed}`; {hint}");
        }
        if self.words.first().is_some_and(|word| word == "trace") && Path::new(&typed).is_file() {
            return format!("trace: `{typed}` is a file; write ackclock trace info {typed}");
        }
        let near = self.text(ContextKind::SuggestedSubcommand);
        let hint = if near.is_empty() {
            "`ackclock --help` lists them".to_owned()
        } else {
            format!("did you mean `{near}`?")
        };
        format!("there is no command `{typed}`; {hint}")
    }

    /// Name of the typed command with its subcommand.
    fn command(&self) -> String {
        let names = self.words.iter().take_while(|word| !word.starts_with('-'));
        let below = |first: &&String| if *first == "trace" { 2 } else { 1 };
        let count = names.clone().next().as_ref().map_or(0, below);
        names.take(count).cloned().collect::<Vec<_>>().join(" ")
    }

    /// Returns a context value of the clap error as text. A list in the error's context is joined into one text.
    fn text(&self, kind: ContextKind) -> String {
        match self.error.get(kind) {
            Some(ContextValue::String(text)) => text.clone(),
            Some(ContextValue::Strings(texts)) => texts.join(", "),
            _ => String::new(),
        }
    }

    fn unknown(&self, command: &str, option: &str) -> String {
        let there_is_none = format!("there is no option {option}");
        if !option.starts_with('-') {
            return self.one_too_many(command, option);
        }
        // mm-link's meter options have no effect, so they are not suggested.
        let near = Some(self.text(ContextKind::SuggestedArg)).filter(|near| !near.starts_with("--meter"));
        let near = near.filter(|near| is_like(option, near)).unwrap_or_default();
        let known = KNOWN.iter().find(|(of, names, _)| of.contains(&command) && names.contains(&option));
        if let Some((.., hint)) = known {
            let hint = hint.replace("{command}", command).replace("{option}", option);
            let hint = hint.replace("{value}", &self.value_of(option));
            format!("{there_is_none}; {hint}")
        } else if let Some(key) = key_called(command, option).filter(|_| TAKE_SETS.contains(&command)) {
            let value = self.value_of(option);
            format!("{there_is_none}; set this scenario key with --set {key}={value}")
        } else if let Some(hint) = by_direction(command, option, &near) {
            format!("{there_is_none}; {hint}")
        } else if !near.is_empty() {
            format!("{there_is_none}; did you mean {near}?")
        } else if command == "link" {
            format!(
                "{there_is_none}; put options of the command after `--`; `ackclock link --help` lists ours"
            )
        } else {
            format!("{there_is_none}; `ackclock {command} --help` lists them").replace("  ", " ")
        }
    }

    /// Returns the text typed after an option.
    fn value_of(&self, option: &str) -> String {
        let at = self.words.iter().position(|word| word.split('=').next() == Some(option));
        let written = at.and_then(|at| match self.words[at].split_once('=') {
            Some((_, value)) => Some(value.to_owned()),
            None => self.words.get(at + 1).filter(|next| !next.starts_with('-')).cloned(),
        });
        written.unwrap_or_else(|| "VALUE".to_owned())
    }

    /// Answers a word that no argument takes. After an option that takes a list, the word belongs to the list.
    fn one_too_many(&self, command: &str, word: &str) -> String {
        let at = self.words.iter().position(|typed| typed == word).unwrap_or(0);
        let begin = self.words[..at].iter().rposition(|before| before.starts_with('-')).unwrap_or(at);
        match self.words.get(begin) {
            Some(option) if LIST_OPTIONS.iter().any(|(_, list)| list == option) => {
                let items = self.words[begin + 1..].iter().take_while(|item| !item.starts_with('-'));
                let list = items.cloned().collect::<Vec<_>>().join(",");
                format!("{option} takes one list without spaces: {option} {list}")
            }
            _ => match self.instead(command, at) {
                Some(hint) => format!("`{word}` is one argument too many; write {hint}"),
                None => format!("`{word}` is one argument too many; see `ackclock {command} --help`"),
            },
        }
    }

    /// Returns what to write in place of the word at `at`, which no argument takes.
    fn instead(&self, command: &str, at: usize) -> Option<String> {
        let (word, before) = (self.words.get(at)?, self.words.get(at.checked_sub(1)?)?);
        let option = self.words.get(at.checked_sub(2)?).map(String::as_str);
        match (command, option) {
            (_, Some("--set")) if !before.contains('=') => Some(format!("--set {before}={word}")),
            ("import" | "trace convert", _) => Some(format!("--out {word}")),
            ("sweep", _) if word.ends_with(".jsonl") => Some(format!("--out {word}")),
            ("run" | "compare" | "sweep", _) if word.ends_with(".html") => Some(format!("--report {word}")),
            ("run", _) if word.ends_with(".csv") => Some(format!("--series {word}")),
            ("compare", _) => {
                let mut options = word.split(',').map(list_option);
                let option = options.next()??;
                options.all(|other| other == Some(option)).then(|| format!("{option} {word}"))
            }
            _ => None,
        }
    }

    /// Answers arguments that exclude each other. clap does not name an operand that came before a request.
    fn conflict(&self, command: &str, option: &str) -> String {
        if !option.is_empty() {
            return format!("{option} and {} cannot be used together", self.text(ContextKind::PriorArg));
        }
        match (command, self.words.get(1).map(String::as_str), self.words.get(2)) {
            ("box", Some(start), Some(interface)) if BOX_STARTS.contains(&start) => {
                format!("a box starts without a request: ackclock box {interface}")
            }
            ("box", Some(interface), Some(request)) if BOX_STARTS.contains(&request.as_str()) => {
                format!("a box starts without a request: ackclock box {interface}")
            }
            ("box", Some(interface), Some(request)) if BOX_REQUESTS.contains(&request.as_str()) => {
                format!("the request comes first: ackclock box {request} {interface}")
            }
            (_, Some(first), Some(second)) => {
                format!("`{first}` and `{second}` cannot be used together; see `ackclock {command} --help`")
            }
            _ => format!("see `ackclock {command} --help`"),
        }
    }

    fn reason(&self) -> String {
        let source = std::error::Error::source(self.error).map(ToString::to_string).unwrap_or_default();
        match source.as_str() {
            "invalid digit found in string" | "number too large to fit in target type" => {
                format!("must be a whole number from 0 to {}", u64::MAX)
            }
            "invalid float literal" => "must be a number".to_owned(),
            "invalid socket address syntax" => {
                let value = self.text(ContextKind::InvalidValue);
                let port = value.rsplit(':').next().and_then(|port| port.parse::<u16>().ok()).unwrap_or(8080);
                format!("must be an IP address and a port, like 127.0.0.1:{port} or [::1]:{port}")
            }
            "invalid IP address syntax" => "must be an IP address, like 192.0.2.1 or 2001:db8::1".to_owned(),
            _ => source,
        }
    }

    fn missing(&self, command: &str) -> String {
        let names = self.text(ContextKind::InvalidArg).replace(['<', '>'], "");
        match (command, self.words.get(1).map(String::as_str)) {
            ("link", Some("stop" | "end" | "kill" | "down")) => {
                "a link ends with its command: leave its shell with `exit`, or press Ctrl-C".to_owned()
            }
            ("link", Some("start" | "up" | "run")) => {
                format!("a link starts without a request; {LINK_USAGE}")
            }
            ("link", Some("status" | "list" | "ls" | "ps" | "info")) => {
                "a running link is shown by `ackclock link show`; profiles are in `ackclock list profiles`"
                    .to_owned()
            }
            ("link", Some("set")) => format!("{names} is missing; write `ackclock link set down.rate=1mbit`"),
            ("box", None) => format!("{names} is missing; write `ackclock box wwan0`, which only measures"),
            ("box", Some(request)) if BOX_REQUESTS.contains(&request) => {
                format!("{names} is missing; write `ackclock box {request} wwan0`")
            }
            ("link", Some("outage")) => format!("{names} is missing; write `ackclock link outage 3s`"),
            ("link", Some("--")) => format!("UP and DOWN are missing; {LINK_USAGE}"),
            ("link", _) => format!("{names} is missing; {LINK_USAGE}"),
            _ => format!("{names} is missing; see `ackclock {command} --help`"),
        }
    }
}

/// Commands that accept the option `--set`.
const TAKE_SETS: [&str; 5] = ["run", "compare", "sweep", "check", "link"];

/// Commands that a build without the feature `live` lacks.
const NEED_LINUX: [&str; 5] = ["link", "box", "proxy", "radio-report", "advise"];

/// Commands that users may type although there are none, each with the correct way in ackclock.
const NO_COMMANDS: [(&[&str], &str); 5] = [
    (&["gateway", "router", "bridge"], "a gateway is a link: ackclock link 1mbit 8mbit --gateway INTERFACE"),
    (
        &["outage", "fault", "set", "show"],
        "it is a request to a running link: ackclock link outage 3s, link fault, link set, link show",
    ),
    (&["simulate", "sim", "start"], "a scenario is simulated by ackclock run FILE"),
    (
        &["emulate", "shape", "netem"],
        "a program is put behind a link by ackclock link 1mbit 8mbit -- COMMAND",
    ),
    (&["version"], "ackclock --version prints it"),
];

/// Command line of a link.
pub(crate) const LINK_USAGE: &str =
    "write `ackclock link UP DOWN -- COMMAND`; UP and DOWN are recordings or rates like 1mbit";

/// Requests that users may type although a box starts without one.
const BOX_STARTS: [&str; 5] = ["start", "run", "on", "up", "attach"];

/// Requests of `box` about the box of one interface.
const BOX_REQUESTS: [&str; 7] = ["check", "status", "top", "bypass", "keep", "stop", "cleanup"];

/// Commands and options that users may type although the commands lack them, each with the correct way in ackclock.
const KNOWN: &[(&[&str], &[&str], &str)] = &[
    (&["run", "compare"], &["--out"], "results are printed: ackclock {command} FILE --json > FILE.jsonl"),
    (
        &["sweep"],
        &["--csv"],
        "--out runs.jsonl writes JSON lines, which ackclock.Results.read of Python gives as tables",
    ),
    (&["run"], &["--csv"], "--json prints JSON lines, --series writes CSV over time"),
    (
        &["run", "compare", "sweep", "check", "advise"],
        &["--scenario", "--file", "--config", "-f", "-c"],
        "the file is an argument: ackclock {command} {value}",
    ),
    (
        &["run", "compare", "sweep"],
        &["--flows", "--connections", "--clients"],
        "the number of flows is a scenario key: --set flow.count={value}",
    ),
    (
        &["run", "compare", "sweep"],
        &["--time", "--seconds", "--length", "-t"],
        "the time of a run is a scenario key: --set duration=60s",
    ),
    (
        &["run", "sweep"],
        &["--senders", "--regulators", "--buffers", "--queues"],
        "a list is compared by ackclock compare FILE {option} {value}; the values of a sweep are in [sweep] of the file",
    ),
    (&["compare"], &["--sender", "--cc"], "the option takes a list: --senders {value}"),
    (&["compare"], &["--regulator"], "the option takes a list: --regulators {value}"),
    (&["compare"], &["--buffer"], "the option takes a list: --buffers {value}"),
    (&["compare"], &["--queue"], "the option takes a list: --queues {value}"),
    (
        &["link"],
        &["--rate", "--bandwidth", "--up", "--down", "--uplink", "--downlink", "--upload", "--download"],
        "UP and DOWN are the rates: ackclock link 1mbit 8mbit",
    ),
    (&["link"], &["--latency"], "it is called --delay"),
    (&["link"], &["--packet-loss", "--drop", "--loss-rate"], "it is called --loss: --loss 1%"),
    (&["link"], &["--report", "--html"], "it is called --report-html: --report-html link.html"),
    (
        &["link"],
        &["--preset", "--network"],
        "networks to emulate are profiles: --profile 4g-lte; `ackclock list profiles` lists them",
    ),
    (
        &["link"],
        &["--port", "--expose", "-p"],
        "a server on this machine is reached by --forward {value}, and one behind the link by --publish {value}",
    ),
    (
        &["link"],
        &["--reset", "--kill", "--cut"],
        "a running link breaks connections by a request: ackclock link fault",
    ),
    (
        &["link"],
        &["--duration", "--time", "--timeout", "-t"],
        "a link lasts as long as its command: ackclock link 1mbit 8mbit -- timeout {value} COMMAND",
    ),
    (
        &["link"],
        &["--interface", "--iface", "--dev", "--device", "-i"],
        "a link is around a command; a box is on an interface: ackclock box {value}",
    ),
    (
        &["link"],
        &["--via", "--router", "--bridge", "--lan", "--hotspot"],
        "devices behind an interface are put behind a link by --gateway {value}",
    ),
    (
        &["link"],
        &["--sender", "--senders", "--cc", "--congestion"],
        "the command's TCP is the kernel's, which a program sets with TCP_CONGESTION (iperf3 -C {value})",
    ),
    (
        &["box"],
        &["--rate", "--bandwidth", "--up", "--down", "--upload", "--download"],
        "a box needs no rate, because it measures the link: ackclock box INTERFACE",
    ),
    (
        &["box"],
        &["--dry-run", "--measure", "--observe", "--passive"],
        "without --act a box only measures: ackclock box INTERFACE",
    ),
    (&["proxy"], &["--port", "-p"], "write --listen 127.0.0.1:{value}"),
    (&["proxy"], &["--bind"], "it is called --listen: --listen {value}"),
    (
        &["run", "compare", "sweep"],
        &["-n", "--repeat", "--repetitions"],
        "it is called --runs: --runs {value}",
    ),
    (
        &["advise"],
        &["--buffers", "--regulators"],
        "advise tries them itself; ackclock compare FILE {option} {value}",
    ),
    (
        &["box"],
        &["--interface", "--iface", "--dev", "-i"],
        "the interface is an argument: ackclock box {value}",
    ),
];

/// Returns whether a suggested option resembles the typed one: few edits, the same beginning, or the same direction.
fn is_like(typed: &str, near: &str) -> bool {
    if ["--up-", "--down-"].iter().any(|way| typed.starts_with(way) && near.starts_with(way)) {
        return true;
    }
    let edits = strsim::osa_distance(typed, near);
    edits <= (typed.len() / 3).min(3) || (typed.len() > 5 && near.starts_with(typed))
}

/// Returns what to write in place of an unknown option for one direction of a link, unless `near` is an option of that
/// direction.
fn by_direction(command: &str, option: &str, near: &str) -> Option<String> {
    let way = ["up", "down"].into_iter().find(|way| option.starts_with(&format!("--{way}-")))?;
    let prefix = format!("--{way}-");
    if command != "link" || near.starts_with(&prefix) {
        return None;
    }
    Some(match &option[prefix.len()..] {
        "rate" | "bandwidth" => "UP and DOWN are the rates: ackclock link 1mbit 8mbit".to_owned(),
        key @ ("reorder" | "duplicate" | "corrupt" | "overhead") => {
            format!("set this scenario key with --set edge.{way}.{key}=VALUE")
        }
        _ => format!("options for this direction are {prefix}delay, {prefix}loss and {prefix}jitter"),
    })
}

/// Finds the scenario key that has the name of an option. A link has only keys of its edge.
fn key_called(command: &str, option: &str) -> Option<String> {
    let name = option.trim_start_matches('-').split('=').next()?.replace('-', "_");
    let tables = serde_json::to_value(Tables::default()).ok()?;
    let link = LINKS.entry("constant").map_or(Value::Null, |link| (link.defaults)());
    let places =
        [("", &tables), ("edge.", &tables["edge"]), ("flow.", &tables["flow"][0]), ("edge.down.", &link)];
    let is_key = |(_, table): &(&str, &Value)| table.get(&name).is_some_and(|value| !value.is_object());
    let found = places.into_iter().find(is_key).map(|(prefix, _)| prefix)?;
    (command != "link" || found.starts_with("edge.")).then(|| format!("{found}{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_by_its_name() {
        for (option, key) in [
            ("--duration", Some("duration")),
            ("--buffer=4p", Some("edge.buffer")),
            ("--initial-window", Some("flow.initial_window")),
            ("--loss", Some("edge.down.loss")),
            ("--nothing", None),
        ] {
            assert_eq!(key_called("run", option).as_deref(), key);
        }
        assert_eq!(key_called("link", "--initial-window"), None);
    }

    #[test]
    fn only_a_similar_option_is_suggested() {
        assert!(is_like("--dealy", "--delay"));
        assert!(is_like("--report", "--report-html"));
        assert!(!is_like("--interface", "--jitter"));
        assert!(!is_like("--scenario", "--series"));
    }
}
