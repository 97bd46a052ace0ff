//! Command-line options of mahimahi's mm-link, accepted so that scripts for mm-link work.

use std::path::PathBuf;

use crate::failure::Failure;

/// Options spelled as in mm-link.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "As mm-link spells it")]
pub(super) struct Spelling {
    /// Discipline of the uplink queue: infinite, droptail, drophead, codel, pie.
    #[arg(long, value_name = "QUEUE")]
    uplink_queue: Option<String>,
    /// Discipline of the downlink queue: infinite, droptail, drophead, codel, pie.
    #[arg(long, value_name = "QUEUE")]
    downlink_queue: Option<String>,
    /// Size of the uplink queue, packets=N or bytes=N, and parameters of codel and pie in milliseconds.
    #[arg(long, value_name = "ARGS")]
    uplink_queue_args: Option<String>,
    /// Size of the downlink queue, packets=N or bytes=N, and parameters of codel and pie in milliseconds.
    #[arg(long, value_name = "ARGS")]
    downlink_queue_args: Option<String>,
    /// File for a log of every uplink packet, in mm-link's format.
    #[arg(long, value_name = "FILE")]
    pub(super) uplink_log: Option<PathBuf>,
    /// File for a log of every downlink packet, in mm-link's format.
    #[arg(long, value_name = "FILE")]
    pub(super) downlink_log: Option<PathBuf>,
    /// End the link and the command when a recording has been played once.
    #[arg(long)]
    pub(super) once: bool,
    /// Read UP and DOWN as constant rates: 12M, 500K.
    #[arg(long)]
    cbr: bool,
    #[arg(long, hide = true)]
    meter_uplink: bool,
    #[arg(long, hide = true)]
    meter_downlink: bool,
    #[arg(long, hide = true)]
    meter_uplink_delay: bool,
    #[arg(long, hide = true)]
    meter_downlink_delay: bool,
    #[arg(long, hide = true)]
    meter_all: bool,
}

impl Spelling {
    /// Converts the queue options to overrides of a scenario.
    ///
    /// # Errors
    /// Fails with the name of the option, its value and the allowed values.
    pub(super) fn overrides(&self) -> Result<Vec<(String, String)>, Failure> {
        let mut sets = queue(
            ("--uplink-queue", self.uplink_queue.as_deref(), self.uplink_queue_args.as_deref()),
            ("edge.up_queue", "edge.up_buffer"),
        )?;
        sets.extend(queue(
            ("--downlink-queue", self.downlink_queue.as_deref(), self.downlink_queue_args.as_deref()),
            ("edge.queue", "edge.buffer"),
        )?);
        Ok(sets.into_iter().map(|set| (set.clone(), format!("the queue options ({set})"))).collect())
    }

    /// Names of the uplink queue and the downlink queue, in that order, as written in mm-link's logs.
    pub(super) fn queue_names(&self) -> [String; 2] {
        let name = |kind: &Option<String>, args: &Option<String>| {
            let kind = kind.as_deref().unwrap_or("infinite");
            args.as_ref().map_or_else(|| kind.to_owned(), |args| format!("{kind} [{args}]"))
        };
        [
            name(&self.uplink_queue, &self.uplink_queue_args),
            name(&self.downlink_queue, &self.downlink_queue_args),
        ]
    }

    /// Converts a rate from mm-link's notation to ackclock's notation.
    pub(super) fn rate(&self, text: &str) -> String {
        match text.strip_suffix(['K', 'M', 'G']) {
            Some(number) if self.cbr => format!("{number}{}bit", text[number.len()..].to_lowercase()),
            _ => text.to_owned(),
        }
    }

    /// Names the options that are accepted without effect, for a single remark.
    pub(super) fn ignored(&self) -> Option<String> {
        let meters = [
            ("--meter-uplink", self.meter_uplink),
            ("--meter-downlink", self.meter_downlink),
            ("--meter-uplink-delay", self.meter_uplink_delay),
            ("--meter-downlink-delay", self.meter_downlink_delay),
            ("--meter-all", self.meter_all),
        ];
        let given: Vec<_> = meters.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
        let list = given.join(", ");
        (!given.is_empty())
            .then(|| format!("{list}: there are no meters; the link shows its status, and --metrics"))
    }
}

/// Converts the options of one queue to overrides of its discipline and size.
fn queue(
    (option, kind, args): (&str, Option<&str>, Option<&str>),
    (discipline, size): (&str, &str),
) -> Result<Vec<String>, Failure> {
    let wrong =
        |what: &str| Failure::Input(format!("{option}-args: {what}; write packets=100 or bytes=150000"));
    let ours = match kind {
        None | Some("infinite" | "droptail") => "drop-tail",
        Some("drophead") => "drop-head",
        Some(kind @ ("codel" | "pie")) => kind,
        Some(other) => {
            let known = "infinite, droptail, drophead, codel, pie";
            return Err(Failure::Input(format!("{option}: `{other}` is not a queue; known are {known}")));
        }
    };
    if matches!(kind, Some("droptail" | "drophead")) && args.is_none() {
        return Err(wrong("what the queue holds is missing"));
    }
    let mut sets = kind.map(|_| format!("{discipline}={ours}")).into_iter().collect::<Vec<_>>();
    for part in args.unwrap_or_default().split(',').map(str::trim).filter(|part| !part.is_empty()) {
        sets.push(argument(ours, part, (discipline, size)).map_err(|what| wrong(&what))?);
    }
    Ok(sets)
}

/// Converts one argument of a queue to an override.
fn argument(queue: &str, part: &str, (discipline, size): (&str, &str)) -> Result<String, String> {
    let (key, value) = part.split_once('=').ok_or_else(|| format!("`{part}` is not KEY=NUMBER"))?;
    let number: u64 = value.trim().parse().map_err(|_| format!("`{value}` is not a whole number"))?;
    Ok(match (queue, key.trim()) {
        (_, "packets") => format!("{size}={number}p"),
        (_, "bytes") => format!("{size}={number}B"),
        ("codel", key @ ("target" | "interval")) => format!("{discipline}.{key}={number}ms"),
        ("pie", "qdelay_ref") => format!("{discipline}.target={number}ms"),
        ("pie", "max_burst") => format!("{discipline}.burst={number}ms"),
        (_, other) => return Err(format!("`{other}` means nothing to {queue}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(kind: Option<&str>, args: Option<&str>) -> Result<Vec<String>, Failure> {
        queue(("--downlink-queue", kind, args), ("edge.queue", "edge.buffer"))
    }

    #[test]
    fn queues_of_mm_link_are_queues_of_ours() {
        for (kind, args, expected) in [
            (None, None, vec![]),
            (Some("infinite"), None, vec!["edge.queue=drop-tail"]),
            (Some("droptail"), Some("packets=50"), vec!["edge.queue=drop-tail", "edge.buffer=50p"]),
            (Some("drophead"), Some("bytes=3000"), vec!["edge.queue=drop-head", "edge.buffer=3000B"]),
            (
                Some("codel"),
                Some("packets=9, target=5, interval=100"),
                vec![
                    "edge.queue=codel",
                    "edge.buffer=9p",
                    "edge.queue.target=5ms",
                    "edge.queue.interval=100ms",
                ],
            ),
        ] {
            assert_eq!(sets(kind, args).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_wrong_with_a_queue_is_named() {
        for (kind, args, expected) in [
            ("fifo", None, "`fifo` is not a queue"),
            ("droptail", None, "what the queue holds is missing"),
            ("droptail", Some("packets"), "`packets` is not KEY=NUMBER"),
            ("droptail", Some("packets=many"), "`many` is not a whole number"),
            ("droptail", Some("target=5"), "`target` means nothing to drop-tail"),
        ] {
            let Err(Failure::Input(message)) = sets(Some(kind), args) else { panic!() };
            assert!(message.contains(expected), "{message}");
        }
    }
}
