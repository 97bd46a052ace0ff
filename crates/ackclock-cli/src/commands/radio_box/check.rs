//! `ackclock box check`: whether this machine can run a box, and whether a box could do anything for its traffic.

use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ackclock_box::config::{Policy, STALE};
use ackclock_box::daemon::Options;
use ackclock_box::machine::{self, Need};
use ackclock_box::watch::{Watched, watch};
use ackclock_core::Span;
use ackclock_link::Side;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::status::{data_goes, listed_programs, other_side, regulated, too_small};
use super::{failure, file, folder, home, interrupted};
use crate::failure::Failure;
use crate::output;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Network interface towards the radio, or a configuration file with the table `[box]`.
    interface: String,
    /// Side of the radio on which the box is: mobile or network. Default: mobile.
    #[arg(long, value_parser = super::side)]
    side: Option<Side>,
    /// Time for which the traffic is watched. With 0s, only the machine is checked.
    #[arg(long = "for", value_name = "TIME", default_value = "1min")]
    time: Span,
    /// Print the answer as JSON.
    #[arg(long)]
    json: bool,
}

/// Share of the bytes from the servers above which a box is worth a try.
const WORTH: f64 = 0.1;
/// Queueing delay below which a box has nothing to improve, ms.
const SHORT_MS: f64 = 100.0;

pub(super) fn perform(args: &Args) -> Result<(), Failure> {
    let (interface, policy) = if file::is_file(&args.interface) {
        if args.side.is_some() {
            return Err(Failure::Input(format!("--side: set `box.side` in {}", args.interface)));
        }
        let loaded = file::load(Path::new(&args.interface))?;
        (loaded.interface, loaded.settings.policy)
    } else {
        (args.interface.clone(), home(args.side, None, None)?)
    };
    let needs = machine::needs(&interface);
    if !args.json {
        output::print(&listed(&needs))?;
    }
    let is_met = needs.iter().all(|need| need.met);
    let mut seen = None;
    if is_met && args.time > Span::ZERO {
        seen = Some(observe(interface, policy, args.time)?);
    }
    if args.json {
        let traffic = seen.as_ref().map(|(seconds, watched)| json!({ "seconds": seconds, "seen": watched }));
        output::print(&format!("{}\n", json!({ "needs": needs, "traffic": traffic })))?;
    } else if let Some((seconds, watched)) = &seen {
        let side = if args.side == Some(Side::Network) { " --side network" } else { "" };
        output::print(&readable(&args.interface, side, *seconds, watched))?;
    }
    if is_met { Ok(()) } else { Err(Failure::Reported(1)) }
}

fn listed(needs: &[Need]) -> String {
    needs.iter().fold(String::new(), |mut text, need| {
        let met = if need.met { "ok" } else { "missing" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}: {met}: {}", need.what, need.found);
        text
    })
}

/// Watches the traffic, with a progress bar on a terminal. Ctrl-C ends the watch early. Returns the seconds that it took.
#[allow(clippy::disallowed_methods, reason = "the command watches in real time")]
fn observe(interface: String, policy: Policy, time: Span) -> Result<(f64, Watched), Failure> {
    let (time, begun, ends) = (Duration::from_nanos(time.as_nanos()), Instant::now(), interrupted()?);
    let bar = ProgressBar::new(time.as_secs());
    let style = ProgressStyle::with_template("{prefix}: watches {wide_bar} {pos} of {len} s")
        .map_err(|error| Failure::Run(error.to_string()))?;
    bar.set_style(style);
    bar.set_prefix(interface.clone());
    let options =
        Options { interface, file: None, act: false, stale: STALE, act_for: None, folder: folder()? };
    let watched = watch(options, policy, || {
        bar.set_position(begun.elapsed().as_secs());
        ends.load(Ordering::Relaxed) || begun.elapsed() >= time
    });
    bar.finish_and_clear();
    Ok((begun.elapsed().as_secs_f64(), watched.map_err(failure)?))
}

fn readable(target: &str, side: &str, seconds: f64, watched: &Watched) -> String {
    let counts = &watched.counts;
    let whose = if watched.of_a_box { ", read from the box that is attached" } else { "" };
    let wait = watched.wait_p95_ms.map_or("unknown".to_owned(), |wait| format!("p95 {wait:.0} ms"));
    let missing = percent(watched.missing_packets, watched.device_packets);
    let limits = watched.packets_missed.map_or(String::new(), |packets| too_small(packets) + "\n");
    format!(
        "watched for {seconds:.0} s{whose}\n\
         {}\n\
         connections: {} began, with window scale and both SYNs seen; {} ACKs of connections seen only in part\n\
         offload: {} packets from the servers passed as {}, {} from the mobiles as {}\n\
         device: {} packets, of which {missing} % did not pass the programs\n\
         wait in the queue: {wait} in the last 10 s\n\
         {limits}{}\n",
        regulated(&watched.shares, counts.in_bytes),
        counts.opened,
        counts.unknown,
        counts.in_segments,
        counts.in_packets,
        counts.out_segments,
        counts.out_packets,
        watched.device_packets,
        verdict(target, side, watched)
    )
}

fn percent(part: u64, all: u64) -> u64 {
    (part as f64 / all.max(1) as f64 * 100.0).round() as u64
}

/// Whether a box can do anything for this traffic, and the next command. `side` is the option of the command if the box is
/// on the network side.
fn verdict(target: &str, side: &str, watched: &Watched) -> String {
    let again = format!("`ackclock box check {target}{side}`");
    let of = |share: Option<f64>| share.unwrap_or(0.0);
    let counts = &watched.counts;
    let (regulated, tcp) = (of(watched.shares.regulated_share), of(watched.shares.tcp_share));
    let per = |share: f64| format!("{:.0} %", share * 100.0);
    if percent(watched.missing_packets, watched.device_packets) >= 50 {
        return sees_too_little(watched, &again);
    }
    if counts.in_bytes == 0 {
        return format!("no traffic came from the servers: start a download, then {again}");
    }
    if regulated < WORTH && counts.has_data_from_mobiles() {
        return sees_uploads(target, watched.side, &again);
    }
    if regulated < WORTH && counts.protected > counts.acks + counts.unknown {
        return format!(
            "a box can do little: most ACKs are signed or of Multipath TCP, and must not be changed; in other traffic: {again}"
        );
    }
    if regulated < WORTH && tcp >= WORTH {
        return format!(
            "a box can do little yet: its TCP connections began earlier or pass only in part; start a new download, then {again}"
        );
    }
    if regulated < WORTH {
        return format!(
            "a box can do little: TCP is {} of the bytes, and the rest has no window to lower; in other traffic: {again}",
            per(tcp)
        );
    }
    let next = if watched.of_a_box { format!("box status {target}") } else { format!("box {target}{side}") };
    let short = watched.wait_p95_ms.is_some_and(|wait| wait < SHORT_MS);
    let queue = if short { ", but the queue was short" } else { "" };
    format!("a box can regulate {} of the bytes{queue}; next: `ackclock {next}`", per(regulated))
}

/// Verdict if most packets of the device do not reach the programs of a box.
fn sees_too_little(watched: &Watched, again: &str) -> String {
    if watched.before.is_empty() {
        return format!(
            "a box sees too little: most packets pass beside it; turn off the flow offload of the router, then {again}"
        );
    }
    format!(
        "a box sees too little: {} runs first and keeps packets from it; end this program or attach it after a box, then {again}",
        listed_programs(&watched.before)
    )
}

/// Verdict if nearly all data comes from the mobiles, as seen from this side of the radio.
fn sees_uploads(target: &str, side: Side, again: &str) -> String {
    let ((leaves, _), other) = (data_goes(side), other_side(side));
    let next = if file::is_file(target) {
        format!("`box.side = \"{other}\"` in {target}, then {again}")
    } else {
        format!("`ackclock box check {target} --side {other}`")
    };
    format!(
        "a box sees uploads only, since TCP data {leaves} here; if this data is downloads, the box is on the {other} side: {next}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_box::maps::Counts;
    use ackclock_box::programs::Program;
    use ackclock_box::shares::Shares;

    /// Traffic with these bytes of TCP, and those of them that can be regulated, among 1000.
    fn seen(tcp: u64, regulated: u64) -> Watched {
        let counts =
            Counts { in_bytes: 1000, in_tcp_bytes: tcp, in_flow_bytes: regulated, ..Counts::default() };
        Watched { shares: Shares::of(&counts), counts, device_packets: 100, ..Watched::default() }
    }

    #[test]
    fn a_verdict_names_the_next_command() {
        let watched = seen(900, 710);
        let short = Watched { wait_p95_ms: Some(20.0), of_a_box: true, ..watched.clone() };
        let beside = Watched { missing_packets: 80, ..watched.clone() };
        let program = Program { hook: "ingress", id: Some(45), name: "drop".to_owned() };
        let hidden = Watched { before: vec![program], ..beside.clone() };
        let mut signed = seen(900, 0);
        (signed.counts.protected, signed.counts.unknown) = (50, 5);
        let again = "`ackclock box check wwan0`";
        for (watched, begins, next) in [
            (watched, "a box can regulate 71 % of the bytes; next: ", "`ackclock box wwan0`"),
            (short, "a box can regulate 71 % of the bytes, but the queue", "`ackclock box status wwan0`"),
            (seen(900, 0), "a box can do little yet: its TCP connections began", again),
            (seen(30, 30), "a box can do little: TCP is 3 % of the bytes", again),
            (beside, "a box sees too little: most packets pass beside it; turn off the flow offload", again),
            (
                hidden,
                "a box sees too little: program 45 `drop` at ingress runs first and keeps packets",
                again,
            ),
            (signed, "a box can do little: most ACKs are signed or of Multipath TCP", again),
            (Watched::default(), "no traffic came", again),
        ] {
            let said = verdict("wwan0", "", &watched);
            assert!(said.starts_with(begins) && said.ends_with(next), "{said}");
            assert_eq!(said.lines().count(), 1);
            assert_eq!(super::super::super::commands_in(&said).len(), 1, "{said}");
        }
    }

    #[test]
    fn a_check_says_that_a_fixed_buffer_limits() {
        let watched = Watched { packets_missed: Some(70), ..seen(900, 710) };
        let said = readable("box.toml", "", 60.0, &watched);
        assert!(
            said.contains("\nthe buffer may limit the rate: a bandwidth-delay product is 70 packets;"),
            "{said}"
        );
        assert!(!readable("box.toml", "", 60.0, &seen(900, 710)).contains("buffer"));
    }

    #[test]
    fn data_that_goes_the_wrong_way_names_the_other_side() {
        let mut watched = seen(900, 0);
        (watched.side, watched.counts.out_payload_bytes) = (Side::Mobile, 50_000);
        let said = verdict("eth1", "", &watched);
        assert!(said.contains("TCP data leaves here"), "{said}");
        assert!(said.ends_with("`ackclock box check eth1 --side network`"), "{said}");
        let said = verdict("box.toml", "", &watched);
        assert!(said.contains("`box.side = \"network\"` in box.toml"), "{said}");
        watched.side = Side::Network;
        let said = verdict("wwan0", " --side network", &watched);
        assert!(said.ends_with("`ackclock box check wwan0 --side mobile`"), "{said}");
        // Downloads with requests and uploads of their own.
        watched.counts.in_payload_bytes = 6_000;
        assert!(!verdict("wwan0", "", &watched).contains("side"));
        assert!(
            verdict("eth1", " --side network", &seen(900, 710))
                .ends_with("`ackclock box eth1 --side network`")
        );
    }
}
