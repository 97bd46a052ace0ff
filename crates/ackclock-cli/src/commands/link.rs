//! `ackclock link`: runs a shell or a command behind an emulated link.

mod change;
mod conditions;
mod course;
mod current;
mod forward;
mod gateway;
mod live;
mod mahimahi;
mod outputs;
mod progress;
mod publish;
mod requests;
mod running;
mod text;
mod watch;
mod web;

use std::env;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use ackclock_core::Span;
use ackclock_live::faults::FaultKind;
use ackclock_live::selection::Match;
use ackclock_scenario::{DiskFiles, Inputs, Limit};

use self::conditions::Conditions;
use self::mahimahi::Spelling;
use crate::failure::Failure;
use crate::metrics::Metrics;
use crate::output;
use crate::profiles::{self, Profile};
use crate::scenario_file::patiently;
use crate::scenario_file::{say_dropped, say_recordings};

/// Put a command, or a shell, behind an emulated link.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    request: Option<change::Verb>,
    /// Uplink, from the command: a recording or a rate.
    #[arg(value_name = "UP", required_unless_present_any = ["scenario", "profile", "check"])]
    up: Option<OsString>,
    /// Downlink, to the command: a recording or a rate.
    #[arg(value_name = "DOWN", required_unless_present_any = ["scenario", "profile", "check"])]
    down: Option<OsString>,
    /// Command to run, after `--` if it has options. The default command is your shell.
    #[arg(value_name = "COMMAND", trailing_var_arg = true)]
    command: Vec<OsString>,
    /// Take the conditions of a named link, such as 3g or 4g-lte, in place of UP and DOWN (`ackclock list profiles`).
    /// Other options override values of the profile.
    #[arg(long, value_name = "NAME", conflicts_with = "scenario", value_parser = profiles::parse)]
    profile: Option<Profile>,
    /// Take [edge] and the delay of [path] from a scenario instead of UP and DOWN.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Override a value of the scenario: `edge.buffer=4p`. `--set` can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed of the link's random numbers.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Regulator of ACKs at the edge (`ackclock list regulators`).
    #[arg(long, value_name = "NAME")]
    regulator: Option<String>,
    /// Buffer size of the downlink queue: 50p, 30kB, 500ms, 2bdp.
    #[arg(long, value_name = "SIZE")]
    buffer: Option<String>,
    /// Queue discipline of the downlink (`ackclock list queues`).
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Print the equivalent scenario and run nothing.
    #[arg(long)]
    generate: bool,
    /// Check whether this machine has everything a link needs, print how to get what is missing, and run nothing. With
    /// `--json`, the answer is one JSON object.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    conditions: Conditions,
    #[command(flatten)]
    network: Network,
    #[command(flatten)]
    watching: Watching,
    #[command(flatten)]
    spelling: Spelling,
}

/// Options for what the command reaches, and through which packets.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Network of the command")]
struct Network {
    /// Run this server (a shell command line) at the far end of the link, in a separate isolated network. The command
    /// finds the server's address in $ACKCLOCK_BASE.
    #[arg(long, value_name = "COMMAND LINE", conflicts_with = "closed")]
    server: Option<OsString>,
    /// Restrict the command's network access to the far end of the link.
    #[arg(long)]
    closed: bool,
    /// Make the machine's server at this port of 127.0.0.1 or ::1 reachable at the same port of 127.0.0.1 inside, over
    /// TCP and UDP: 8080, a list 8080,5173, a range 3000-3010, 8080=80 (at port 80 inside), 192.0.2.1:80=8080 (a server
    /// at another address). `--forward` can be repeated.
    #[arg(long, value_name = "[ADDR:]PORT[=PORT]", conflicts_with = "server", value_parser = forward::parse)]
    forward: Vec<forward::Ports>,
    /// Make the command's server at this port reachable at the same port of the machine's 127.0.0.1, over TCP and UDP: 8080,
    /// a list 8080,5432, 8080:80 (at port 8080 of the machine), 0.0.0.0:8080:80 (at all addresses of the machine).
    /// `--publish` can be repeated.
    #[arg(long, value_name = "[ADDR:]PORT[:PORT]", value_parser = publish::parse)]
    publish: Vec<publish::Ports>,
    /// Serve an HTTP and SOCKS5 proxy at this port of the machine's 127.0.0.1, or at this address, until Ctrl-C: the link for
    /// other devices and containers. Connections of the proxy cross the link, those to it do not. An address that others
    /// reach serves everyone who reaches it.
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = publish::proxy, conflicts_with = "closed")]
    proxy: Option<SocketAddr>,
    /// Put the devices behind this interface of the machine behind the link, until Ctrl-C: the IP traffic of phones, virtual
    /// machines or containers whose router is this machine, with IPv4 and IPv6. Needs root and Linux 6.6.
    #[arg(long, value_name = "INTERFACE", conflicts_with_all = ["server", "closed", "forward", "publish", "proxy", "ecn"])]
    gateway: Option<String>,
    /// Let only these flows cross the link. The packets of all other flows pass beside the link, without queue and
    /// delay: tcp:5432, udp:443, 10.0.0.0/8, [fd00::]/8:443, dns. The port is that of either end, the network one beyond
    /// the link, or with `--gateway` that of either end. `--only` can be repeated.
    #[arg(long, value_name = "MATCH")]
    only: Vec<Match>,
    /// Let these flows pass beside the link; written like the flows of `--only`. `--except` can be repeated.
    #[arg(long, value_name = "MATCH")]
    except: Vec<Match>,
    /// Let connections that cross the link fail: reset (reset=64kB after that much payload), cut (cut=up, cut=down), the loss
    /// of the first packets of each connection (drop-first=2), or a late end (slow-close=5s). `--fault` can be repeated;
    /// `ackclock link fault` adds faults while the link runs.
    #[arg(long, value_name = "FAULT")]
    fault: Vec<FaultKind>,
    /// Let the TCP connections of the command and of `--server` ask for ECN (net.ipv4.tcp_ecn = 1). By default they
    /// accept ECN and do not ask for it, whatever the setting of the machine.
    #[arg(long)]
    ecn: bool,
}

/// Options for what an emulated link tells, and who controls it.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Results, captures and control")]
struct Watching {
    /// Print the results as one JSON object after the command exits.
    #[arg(long)]
    json: bool,
    /// Write an HTML report of the link after the command exits: its connections, both directions over time (Python).
    #[arg(long, value_name = "FILE")]
    report_html: Option<PathBuf>,
    /// Write a time series of the link to a CSV file, with the columns of `ackclock run --series`; `ackclock report` draws
    /// both in one figure.
    #[arg(long, value_name = "FILE")]
    series: Option<PathBuf>,
    /// Write the packets at the outer end of the link, on the servers' side, to a pcapng file.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write the packets at the inner end of the link, on the command's side, to a pcapng file.
    #[arg(long, value_name = "FILE")]
    pcap_inside: Option<PathBuf>,
    #[command(flatten)]
    metrics: Metrics,
    /// Let programs with the token $ACKCLOCK_TOKEN control the link by HTTP at this port of the loopback address, or at
    /// this loopback address, on the machine and inside: GET and PATCH /link, POST /outage, GET, POST and DELETE
    /// /faults, GET /results.
    #[arg(long, value_name = "ADDR", value_parser = ackclock_live::metrics::parse_loopback)]
    control: Option<SocketAddr>,
    /// Send signed reports of the downlink's rate and queue to a proxy at this UDP address (`ackclock proxy`).
    #[arg(long, value_name = "ADDR", requires_all = ["report_key", "report_user"])]
    radio_reports: Option<SocketAddr>,
    /// Key file of the radio reports; its first key signs them.
    #[arg(long, value_name = "FILE", requires = "radio_reports")]
    report_key: Option<PathBuf>,
    /// Address of the user that the radio reports describe, as the proxy sees the user.
    #[arg(long, value_name = "ADDR", requires = "radio_reports")]
    report_user: Option<std::net::IpAddr>,
    /// Time between two periodic radio reports.
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "radio_reports")]
    report_every: Span,
}

const EXAMPLES: &str = "\
Examples:
  ackclock link 1mbit 8mbit --delay 40ms
  ackclock link 768kbit 1600kbit --rtt 300ms --jitter 20ms --down-loss 1% --loss-burst 100ms
  ackclock link --profile 3g -- curl -s https://example.org
  ackclock link umts.up umts.down -- curl -s https://example.org
  ackclock link 64kbit 384kbit --delay 150ms --buffer 20p --regulator ack-regulator
  ackclock link 1mbit 8mbit --server 'iperf3 -s' --json -- sh -c 'iperf3 -R -c $ACKCLOCK_BASE'
  ackclock link --scenario scenarios/first.toml -- ./program
  ackclock link 1mbit 8mbit --delay 40ms --forward 8080 -- curl -s http://localhost:8080
  ackclock link 1mbit 8mbit --delay 40ms --publish 8080 -- python3 -m http.server 8080
  ackclock link --profile 3g --proxy 0.0.0.0:3128
  sudo ackclock link --profile 3g --gateway docker0
  ackclock link set down.rate=1mbit
  ackclock link outage 3s --direction down
  ackclock link fault reset --only tcp:5432 --for 10s
  mm-link's spelling:
  ackclock link up.trace down.trace --downlink-queue=droptail --downlink-queue-args=packets=50 ./program

Exit status: that of the command; 1 the link could not be made, 2 the input was wrong.";

/// Creates the link and runs the command in it, or performs another requested action.
pub(crate) fn perform(args: &Args) -> Result<(), Failure> {
    if let Some(request) = &args.request {
        return change::perform(request);
    }
    if args.check {
        let mut others = env::args_os().skip_while(|word| word != "link").skip(1);
        return match others.find(|word| word != "--check" && word != "--json") {
            Some(word) => {
                Err(Failure::Input(format!("link --check runs no link; leave `{}` out", word.display())))
            }
            None => live::check(args.watching.json),
        };
    }
    let text = text::of(args)?;
    let scenario = text.scenario()?;
    let files = Inputs::of(DiskFiles::in_folder(&text.folder).reading(patiently));
    scenario.check(&files)?;
    say_dropped([&scenario]);
    if let Some(remark) = &text.remark {
        output::remark(remark);
    }
    if args.generate {
        return output::print(&text::generated(&scenario, &text.folder)?);
    }
    say_recordings([&scenario], &files);
    if let Some(ignored) = text.ignored() {
        output::remark(&ignored);
    }
    if let Some(ignored) = args.spelling.ignored() {
        output::remark(&ignored);
    }
    if let Some(Limit { key, message }) = scenario.buffer_limit(&files)? {
        output::remark(&format!("{key} limits the link: {message}"));
    }
    match &args.network.gateway {
        Some(interface) => gateway::run(args, &text, &scenario, files, interface),
        None => live::run(args, &text, &scenario, files),
    }
}

impl Args {
    /// Words of the command to run in the link. If a scenario or a profile describes the link, the operands UP and DOWN
    /// are words of the command.
    fn words(&self) -> Vec<OsString> {
        let links = if self.scenario.is_some() || self.profile.is_some() {
            [&self.up, &self.down]
        } else {
            [&None, &None]
        };
        links.into_iter().flatten().chain(&self.command).cloned().collect()
    }

    /// Number of command-line words before `--`, or `None` if the command line has no `--`.
    fn before_escape(&self) -> Option<usize> {
        let all = self.up.iter().chain(&self.down).chain(&self.command).count();
        let escape = env::args_os().position(|word| word == "--")?;
        Some(all.saturating_sub(env::args_os().count() - escape - 1))
    }
}
