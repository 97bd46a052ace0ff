//! How well the driver keeps time and how much it carries, beside plain kernel forwarding between the same two hosts in the
//! same run. `make bench-live`; needs root, and makes network namespaces of its own.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a bench prints what it measured")]
#![allow(clippy::disallowed_methods, reason = "a bench measures time")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ackclock_core::{Size, Span};
use ackclock_edge::EdgeConfig;
use ackclock_link::Direction;
use ackclock_live::{Clock, Plane, Waits};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::TimeValLike;
use serde_json::json;
use support::{ADDRESS, Lab, MOBILE, Packets, Running, SERVER, pin};

/// How long each measurement lasts.
const LASTS: Duration = Duration::from_secs(4);
/// The core of senders and receivers, and that of the driver.
const CORES: [usize; 2] = [0, 1];

type Outcome = Result<(), String>;
type Part = (&'static str, fn() -> Outcome);

fn main() {
    println!("load when it began: {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    let parts: [Part; 4] = [
        ("error of departure", punctuality),
        ("one TCP flow, 1500-byte packets", bulk),
        ("one TCP flow that fills a link of 2.5 Gbit/s", shaped_bulk),
        ("small packets", small),
    ];
    // A part can be chosen by a word of its title.
    let wanted = std::env::args().nth(1).unwrap_or_default();
    for (title, part) in parts.into_iter().filter(|(title, _)| title.contains(&wanted)) {
        println!("\n{title}");
        if let Err(error) = part() {
            println!("  skipped: {error}");
        }
    }
}

fn link(rate: &str) -> EdgeConfig {
    let way = json!({ "kind": "constant", "rate": rate, "delay": "1ms" });
    EdgeConfig {
        down: way.clone().into(),
        up: way.into(),
        buffer: Size::Packets(1000),
        ..EdgeConfig::default()
    }
}

/// UDP at nine tenths of the link's rate; how late each packet is written.
fn punctuality() -> Outcome {
    println!(
        "  {:>12} {:>8} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8}",
        "rate", "spin", "p50", "p99", "p99.9", "CPU", "spun", "packets"
    );
    for (rate, mbits) in [("12Mbit/s", 12u64), ("100Mbit/s", 100)] {
        for spin in [0, 50] {
            let lab = Lab::new("timing")?;
            let running = Running::start(
                lab.tuns(Packets::Super)?,
                &link(rate),
                Span::ZERO,
                Span::from_micros(spin),
                Some(CORES[1]),
            );
            let before = running.remote.ask(|_, _| cpu()).unwrap_or_default();
            let sender = lab.within(SERVER, move || paced(mbits * 900_000, LASTS));
            sender.join().map_err(|_| "the sender died")??;
            let spent = running.remote.ask(|_, _| cpu()).unwrap_or_default() - before;
            let driver = running.stop();
            let error = &driver.punctuality().error;
            let micros = |q| error.quantile(q).map_or(f64::NAN, |span| span.as_nanos() as f64 / 1e3);
            let Waits { spun, .. } = driver.clock().waits();
            println!(
                "  {rate:>12} {spin:>6}us {:>7.1}us {:>7.1}us {:>7.1}us {:>7.1}% {:>7.1}% {:>8}",
                micros(0.5),
                micros(0.99),
                micros(0.999),
                100.0 * spent.as_secs_f64() / LASTS.as_secs_f64(),
                100.0 * spun.as_secs_f64() / LASTS.as_secs_f64(),
                error.count(),
            );
        }
    }
    Ok(())
}

fn bulk() -> Outcome {
    over_tun("10Gbit/s")?;
    for (split, name) in
        [(true, "kernel forwarding, packet by packet"), (false, "kernel forwarding, super-packets")]
    {
        let lab = Lab::new("bulk")?;
        lab.wires(split)?;
        println!("  {name:<44} {:>6.2} Gbit/s", transfer(&lab)? / 1e9);
    }
    Ok(())
}

fn shaped_bulk() -> Outcome {
    over_tun("2.5Gbit/s")
}

fn over_tun(rate: &str) -> Outcome {
    let lab = Lab::new("bulk")?;
    let running =
        Running::start(lab.tuns(Packets::Super)?, &link(rate), Span::ZERO, Span::from_micros(50), None);
    let bps = transfer(&lab)?;
    let driver = running.stop();
    let (punctuality, edge) = (driver.punctuality(), driver.plane().edge().statistics());
    println!(
        "  {:<44} {:>6.2} Gbit/s, {} packets, {} dropped at the link, {} at the devices, p99 {:.0} us late",
        format!("emulated link of {rate}"),
        bps / 1e9,
        punctuality.error.count(),
        edge.dropped,
        lost_at_devices(driver.plane()),
        punctuality.error.quantile(0.99).unwrap_or_default().as_nanos() as f64 / 1e3,
    );
    Ok(())
}

/// Packets that could not be read from a device or written to one.
fn lost_at_devices(plane: &Plane) -> u64 {
    let lost = Direction::BOTH.map(|direction| plane.traffic(direction).lost);
    lost.iter().map(|lost| lost.unread + lost.refused).sum()
}

/// UDP of 18 bytes, as fast as one core can send.
fn small() -> Outcome {
    // What came in the last part of the time, when everything is warm.
    let rate = |lab: &Lab, interface: &'static str| -> Result<f64, String> {
        let sink = lab.within(MOBILE, || UdpSocket::bind((ADDRESS[MOBILE], 9)));
        let _sink = sink.join().map_err(|_| "the sink died")?.map_err(|error| error.to_string())?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let sender = lab.within(SERVER, move || flood(&stopped));
        std::thread::sleep(LASTS / 4);
        let (before, began) = (lab.received(MOBILE, interface), Instant::now());
        std::thread::sleep(LASTS);
        let came = lab.received(MOBILE, interface) - before;
        let rate = came as f64 / began.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        let sent = sender.join().map_err(|_| "the sender died")??;
        println!("      (offered {:.0} kpps)", sent / 1e3);
        Ok(rate)
    };
    let lab = Lab::new("small")?;
    lab.wires(false)?;
    let kernel = rate(&lab, "eth0")?;
    drop(lab);
    println!("  {:<44} {:>6.0} kpps", "kernel forwarding", kernel / 1e3);
    let lab = Lab::new("small")?;
    let tuns = lab.tuns(Packets::Super)?;
    let running = Running::start(tuns, &link("10Gbit/s"), Span::ZERO, Span::from_micros(50), Some(CORES[1]));
    let ours = rate(&lab, "tun0")?;
    let driver = running.stop();
    let lost = lost_at_devices(driver.plane());
    println!(
        "  {:<44} {:>6.0} kpps, {:.0} % of it; {lost} lost at the devices",
        "TUN to TUN",
        ours / 1e3,
        100.0 * ours / kernel
    );
    Ok(())
}

/// Sends UDP packets of 1500 bytes at this rate. Each is on its own, so that the link transmits one at a time.
fn paced(bps: u64, lasts: Duration) -> Outcome {
    pin(CORES[0]);
    let socket = UdpSocket::bind((ADDRESS[SERVER], 0)).map_err(|error| error.to_string())?;
    socket.connect((ADDRESS[MOBILE], 9)).map_err(|error| error.to_string())?;
    let gap = Duration::from_nanos(1500 * 8 * 1_000_000_000 / bps);
    let began = Instant::now();
    let mut due = Duration::ZERO;
    while due < lasts {
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        // Nobody listens, which the sender is told.
        let _ = socket.send(&[0; 1472]);
        due += gap;
    }
    Ok(())
}

/// Sends UDP packets of 18 bytes until it is told to stop; gives the packets a second.
fn flood(stop: &AtomicBool) -> Result<f64, String> {
    pin(CORES[0]);
    let socket = UdpSocket::bind((ADDRESS[SERVER], 0)).map_err(|error| error.to_string())?;
    socket.connect((ADDRESS[MOBILE], 9)).map_err(|error| error.to_string())?;
    let (began, mut sent) = (Instant::now(), 0u64);
    while !stop.load(Ordering::Relaxed) {
        sent += u64::from(socket.send(&[0; 18]).is_ok());
    }
    Ok(sent as f64 / began.elapsed().as_secs_f64())
}

/// One TCP flow from server to mobile; gives its goodput in bit/s.
fn transfer(lab: &Lab) -> Result<f64, String> {
    const PORT: u16 = 5001;
    let receiver = lab.within(MOBILE, || {
        let listener = TcpListener::bind((ADDRESS[MOBILE], PORT)).map_err(|error| error.to_string())?;
        Ok::<_, String>(listener)
    });
    let listener = receiver.join().map_err(|_| "the receiver died")??;
    let sink = std::thread::spawn(move || -> std::io::Result<f64> {
        let (mut stream, _) = listener.accept()?;
        let mut buffer = vec![0; 1 << 18];
        let (mut bytes, mut began) = (0usize, Instant::now());
        let mut warm = false;
        loop {
            let count = stream.read(&mut buffer)?;
            if count == 0 {
                return Ok(bytes as f64 * 8.0 / began.elapsed().as_secs_f64());
            }
            bytes += count;
            if !warm && began.elapsed() > LASTS / 4 {
                (warm, bytes, began) = (true, 0, Instant::now());
            }
        }
    });
    let sender = lab.within(SERVER, || -> std::io::Result<()> {
        let mut stream = TcpStream::connect((ADDRESS[MOBILE], PORT))?;
        setsockopt(&stream, sockopt::TcpCongestion, &"cubic".into())?;
        let (chunk, began) = (vec![0; 1 << 18], Instant::now());
        while began.elapsed() < LASTS {
            stream.write_all(&chunk)?;
        }
        Ok(())
    });
    sender.join().map_err(|_| "the sender died")?.map_err(|error| error.to_string())?;
    sink.join().map_err(|_| "the receiver died")?.map_err(|error| error.to_string())
}

/// Processor time of the calling thread.
fn cpu() -> Duration {
    use nix::sys::resource::{UsageWho, getrusage};
    let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else { return Duration::ZERO };
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(micros as u64)
}
