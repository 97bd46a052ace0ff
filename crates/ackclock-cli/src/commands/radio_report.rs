//! `ackclock radio-report`: sends signed reports of a radio to a proxy.

mod interface;

use std::io::{self, BufRead};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use ackclock_core::{Rate, Span};
use ackclock_proxy::reports::keys::Key;
use ackclock_proxy::reports::wire::{Report, encode};

use crate::failure::Failure;
use crate::keys;

/// Send signed reports of a radio's rate and queue to a proxy: one report from the options, one report for each line
/// `RATE PACKETS BYTES` of standard input, or reports measured at the queue of a network interface.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// UDP address at which the proxy receives reports.
    #[arg(value_name = "ADDRESS")]
    to: SocketAddr,
    /// Key file; its first key signs the reports.
    #[arg(long, value_name = "FILE")]
    report_key: PathBuf,
    /// Address of the user that the reports describe.
    #[arg(long, value_name = "ADDRESS")]
    user: IpAddr,
    /// Rate of the user's bearer; 0bit/s during an outage. Without a rate or an interface, reports are read from
    /// standard input.
    #[arg(long, conflicts_with = "from_interface")]
    rate: Option<Rate>,
    /// Number of packets in the queue.
    #[arg(long, value_name = "COUNT", default_value_t = 0, requires = "rate")]
    packets: u32,
    /// Number of bytes in the queue.
    #[arg(long, value_name = "COUNT", default_value_t = 0, requires = "rate")]
    bytes: u32,
    /// Measure the rate of this network interface, towards the user, by the counters of its queue (qdisc). While packets
    /// wait in the queue, the bytes that leave are the rate. Without waiting packets the rate cannot be measured, and no
    /// report is sent.
    #[arg(long, value_name = "INTERFACE")]
    from_interface: Option<String>,
    /// Time between two reports of an interface.
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "from_interface", value_parser = interface::interval)]
    every: Span,
}

const EXAMPLES: &str = "\
Examples:
  ackclock radio-report 10.0.0.1:7301 --report-key radio.keys --user 10.0.0.9 --rate 384kbit/s --packets 6 --bytes 9000
  read-modem | ackclock radio-report 10.0.0.1:7301 --report-key radio.keys --user 10.0.0.9
  ackclock radio-report 10.0.0.1:7301 --report-key radio.keys --user 10.0.0.9 --from-interface ran0";

/// Sends the report of the options, the reports of standard input, or the reports of an interface.
pub(crate) fn perform(args: &Args) -> Result<(), Failure> {
    let mut sender = Sender::new(args.to, &args.report_key, args.user)?;
    if let Some(interface) = &args.from_interface {
        return interface::report(interface, args.every, &mut sender);
    }
    if let Some(rate) = args.rate {
        return sender.send(rate, args.packets, args.bytes);
    }
    for (number, line) in io::stdin().lock().lines().enumerate() {
        let line = line.map_err(|error| Failure::Input(format!("standard input: {error}")))?;
        let (rate, packets, bytes) = parse(&line)
            .map_err(|error| Failure::Input(format!("standard input, line {}: {error}", number + 1)))?;
        sender.send(rate, packets, bytes)?;
    }
    Ok(())
}

/// Reads a line `RATE PACKETS BYTES`.
fn parse(line: &str) -> Result<(Rate, u32, u32), String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [rate, packets, bytes] = words[..] else {
        return Err(format!("`{line}` is not RATE PACKETS BYTES, for example 384kbit/s 6 9000"));
    };
    let count = |name, word: &str| {
        word.parse().map_err(|_| format!("{name} `{word}` is not a whole number up to {}", u32::MAX))
    };
    let rate = rate.parse().map_err(|error| format!("{error}"))?;
    Ok((rate, count("PACKETS", packets)?, count("BYTES", bytes)?))
}

/// Sender of the reports of one user.
pub(crate) struct Sender {
    socket: UdpSocket,
    key: Key,
    user: IpAddr,
    epoch: u64,
    sequence: u64,
    /// Rate of the last report.
    rate: Option<Rate>,
}

impl Sender {
    /// Creates a sender that signs with the first key of a key file.
    pub(crate) fn new(to: SocketAddr, path: &Path, user: IpAddr) -> Result<Self, Failure> {
        let key = keys::read(path)?.swap_remove(0);
        if !key.users.iter().any(|users| users.contains(user)) {
            let message = format!("--user: {user} is not a user of key {}", key.number);
            return Err(Failure::Input(format!("{message} in {}", path.display())));
        }
        let any: IpAddr =
            if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let failed = |error| Failure::Run(format!("{to}: {error}"));
        let socket = UdpSocket::bind((any, 0)).map_err(failed)?;
        socket.connect(to).map_err(failed)?;
        Ok(Self { socket, key, user, epoch: clock(), sequence: 0, rate: None })
    }

    /// Sends one report. A rate that differs from the last report is announced as a change.
    pub(crate) fn send(&mut self, rate: Rate, packets: u32, bytes: u32) -> Result<(), Failure> {
        let change = self.rate.replace(rate) != Some(rate);
        self.sign(change, rate, packets, bytes)
            .map_err(|error| Failure::Run(format!("the report was not sent: {error}")))
    }

    /// Sends one report of a measured rate. A measured rate always differs a little from the last one, so the proxy
    /// decides whether the rate has changed.
    fn send_measured(&mut self, rate: Rate, packets: u32, bytes: u32) -> io::Result<()> {
        self.sign(false, rate, packets, bytes)
    }

    fn sign(&mut self, change: bool, rate: Rate, packets: u32, bytes: u32) -> io::Result<()> {
        self.sequence += 1;
        let report = Report {
            key: self.key.number,
            change,
            epoch: self.epoch,
            sequence: self.sequence,
            taken: clock(),
            user: self.user,
            rate: rate.as_bps(),
            packets,
            bytes,
        };
        self.socket.send(&encode(&report, &self.key.secret)).map(drop)
    }
}

/// Time of the machine's clock, nanoseconds since 1970.
#[allow(clippy::disallowed_methods, reason = "reports are signed with the time of day")]
fn clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
