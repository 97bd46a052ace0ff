//! `ackclock box status` and `ackclock box top`: what is said about a running box.

use ackclock_box::clip::Pins;
use ackclock_box::maps::Counts;
use ackclock_box::observers::MOST_FLOWS;
use ackclock_box::programs::{self, Program};
use ackclock_box::report::Report;
use ackclock_box::shares::Shares;
use ackclock_box::subscribers::{MOST_CONNECTIONS, SubscriberReport};
use ackclock_link::Side;
use serde_json::json;

use super::{Named, clip, file, files, running};
use crate::failure::Failure;
use crate::output;

/// Line of a report for standard output.
pub(super) fn line(report: &Report) -> String {
    let wait = report.wait_p95_ms.map_or("-".to_owned(), |wait| format!("{wait:.0} ms"));
    let doing = if report.acting { "acts" } else { "measures" };
    format!(
        "{:>6.0} s  {doing}  last 10 s: {:>9.0} kbit/s  {:>3} connections  wait p95 {wait}\n",
        report.running_s,
        report.rate_bps / 1e3,
        report.connections
    )
}

pub(super) fn status(named: &Named) -> Result<(), Failure> {
    let interface = file::interface_of(&named.interface)?;
    let pins = Pins::of(&interface).map_err(clip)?;
    let files = files(&pins)?;
    let (counts, knobs) = (pins.counts().map_err(clip)?, pins.knobs().map_err(clip)?);
    let (running, attached) = (files.running(), pins.is_attached().map_err(clip)?);
    // A report of an earlier process says nothing about this box.
    let report = files.last_report().filter(|report| running == Some(report.pid));
    let doing = match running {
        None => Doing::Unattended,
        Some(pid) if !attached => Doing::Waits(pid),
        Some(pid) if knobs.acts() => Doing::Acts(pid),
        Some(pid) => Doing::Measures(pid),
    };
    if named.json {
        let acting = matches!(doing, Doing::Acts(_));
        return output::print(&format!(
            "{}\n",
            json!({
                "running": running,
                "acting": acting,
                "report": report,
                "counts": counts,
                "before": programs::before_a_box(&interface),
            })
        ));
    }
    let hidden = hidden_by(&interface).map_or(String::new(), |text| format!("{text}\n"));
    output::print(&(readable(&interface, doing, report.as_ref(), counts) + &hidden))
}

/// Sentence about the programs that see packets before the box of an interface, if there are any.
pub(super) fn hidden_by(interface: &str) -> Option<String> {
    let before = programs::before_a_box(interface);
    let named = listed_programs(&before);
    (!before.is_empty()).then(|| format!("runs before the box, and may keep packets from it: {named}"))
}

/// What it may mean that nearly all TCP data comes from the mobiles, as seen from this side of the radio.
pub(super) fn uploads_or(side: Side) -> String {
    let (leaves, arrives) = data_goes(side);
    let other = other_side(side);
    format!(
        "TCP data {leaves} through this interface and almost none {arrives}: it is uploaded, or the box is on the \
         {other} side of the radio (`--side {other}`; `box.side` in a file)"
    )
}

/// What data from the mobiles does at the interface of a box on this side of the radio, and what data from servers does.
pub(super) const fn data_goes(side: Side) -> (&'static str, &'static str) {
    match side {
        Side::Mobile => ("leaves", "arrives"),
        Side::Network => ("arrives", "leaves"),
    }
}

pub(super) const fn other_side(side: Side) -> &'static str {
    match side {
        Side::Mobile => "network",
        Side::Network => "mobile",
    }
}

pub(super) fn listed_programs(programs: &[Program]) -> String {
    programs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What is said if the reports of a box cannot be written or read.
pub(super) const UNKNOWN: &str = "no report of the box can be read, so its figures are unknown";

/// What the process with this ID does with the windows of an interface.
#[derive(Clone, Copy)]
enum Doing {
    Acts(i32),
    Measures(i32),
    /// The interface does not exist.
    Waits(i32),
    /// The process was killed.
    Unattended,
}

fn readable(interface: &str, doing: Doing, report: Option<&Report>, counts: Counts) -> String {
    let doing = match doing {
        Doing::Acts(pid) => {
            let regulator = report.map_or(String::new(), |report| format!(" by {}", report.regulator));
            format!("process {pid} lowers windows{regulator}")
        }
        Doing::Measures(pid) => format!("process {pid} measures; nothing is written"),
        Doing::Waits(pid) => {
            format!("process {pid} waits for the interface to exist again; no packet passes the box")
        }
        Doing::Unattended => {
            "no process: windows pass as receivers say; `ackclock box` takes over, `cleanup` removes"
                .to_owned()
        }
    };
    let unknown = Report::default();
    let missing = report.map_or(format!("{UNKNOWN}\n"), |_| String::new());
    let report = report.unwrap_or(&unknown);
    let wait = report.wait_p95_ms.map_or("unknown".to_owned(), |wait| format!("p95 {wait:.0} ms"));
    let Counts { acks, clipped, lower, .. } = counts;
    let shown = regulated(&Shares::of(&counts), counts.in_bytes);
    let share = |part: u64, all: u64| part as f64 / all.max(1) as f64 * 100.0;
    let (asks, does) = (share(lower, acks), share(clipped, acks));
    let more = more(report);
    let Counts { unknown, protected, stale, refused, lost_records, .. } = counts;
    format!(
        "{interface}: {doing}\n\
         last 10 s: {:.0} kbit/s, wait in the queue {wait}\n\
         since the box was attached:\n\
         {shown}\n\
         windows: {acks} ACKs, the law asks for less at {asks:.0} %, lowered at {does:.0} %\n\
         left alone: {unknown} ACKs of connections that pass only in part, {protected} signed or of Multipath TCP, \
         {stale} with too old an allowance, {refused} refused; \
         {lost_records} records lost\n{missing}{more}",
        report.rate_bps / 1e3
    )
}

/// Share of the bytes that a box can regulate, and the shares of the protocols.
pub(super) fn regulated(shares: &Shares, bytes: u64) -> String {
    let percent =
        |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0));
    format!(
        "bytes that can be regulated: {} of {bytes} from the servers (TCP: {}, QUIC: {}, other UDP: {}, ESP: {}, other: {})",
        percent(shares.regulated_share),
        percent(shares.tcp_share),
        percent(shares.quic_share),
        percent(shares.udp_share),
        percent(shares.esp_share),
        percent(shares.other_share)
    )
}

/// What is said of a fixed buffer below the bandwidth-delay product, which is this many packets.
pub(super) fn too_small(packets: u32) -> String {
    format!(
        "the buffer may limit the rate: a bandwidth-delay product is {packets} packets; \"3bdp\" follows it"
    )
}

/// Lines of a status that only some boxes have.
fn more(report: &Report) -> String {
    let mut text = String::new();
    if let Some(side) = report.side.filter(|_| report.data_from_mobiles) {
        text += &format!("{}\n", uploads_or(side));
    }
    if let Some(file) = &report.file {
        text += &format!(
            "{}: {} subscribers; `ackclock box top` lists them\n",
            file.display(),
            report.subscribers
        );
    }
    for (one, packets) in report.worst.iter().filter_map(|one| Some((one, one.packets_missed?))) {
        text += &format!("{}: {}\n", one.key, too_small(packets));
    }
    if report.unobserved > 0 {
        text += &format!(
            "not observed: {} connections with data, beyond {MOST_FLOWS} of a subscriber or {MOST_CONNECTIONS} in all; \
             no estimate includes them\n",
            report.unobserved
        );
    }
    if let Some(error) = &report.refused_file {
        text += &format!("the changed file was refused: {error}\n");
    }
    if let Some(day) = &report.day {
        text += &format!("{day}\n");
    }
    text
}

pub(super) fn top(named: &Named) -> Result<(), Failure> {
    let interface = file::interface_of(&named.interface)?;
    let files = running(&interface)?;
    let report = files.last_report().ok_or_else(|| Failure::Run(format!("{interface}: {UNKNOWN}")))?;
    let worst = report.worst;
    if named.json {
        return output::print(&format!("{}\n", json!(worst)));
    }
    let headings = "last 10 s:\nwait p95 ms  wait p50 ms      kbit/s  traffic %  connections  regulator  acted on  subscriber\n";
    output::print(&worst.iter().fold(headings.to_owned(), |text, one| text + &row(one)))
}

fn row(one: &SubscriberReport) -> String {
    let wait = |wait: Option<f64>| wait.map_or("-".to_owned(), |wait| format!("{wait:.0}"));
    format!(
        "{:>11}  {:>11}  {:>10.0}  {:>9}  {:>11}  {:<9}  {:<8}  {}{}\n",
        wait(one.wait_p95_ms),
        wait(one.wait_p50_ms),
        one.rate_bps / 1e3,
        one.traffic_share.map_or("-".to_owned(), |share| format!("{:.0}", share * 100.0)),
        one.connections,
        one.regulator,
        if one.acted_on { "yes" } else { "no" },
        one.key,
        one.name.as_ref().map_or(String::new(), |name| format!(" ({name})")),
    )
}
