//! The keeper: process 1 of the link's process namespace. The keeper creates the outside, starts the command inside,
//! forwards signals and exits with the command's status. The keeper's exit ends every process of the namespace.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::addresses::{Candidate, Pair, Prefix, beyond, free};
use super::forward::{self, Forward};
use super::inside;
use super::interface::{ask_for_ecn, bring_loopback_up, routed};
use super::obstacle::{Obstacle, Trying};
use super::plan::{Outside, Setting};
use super::process::{FAILED, apart};
use super::publish;
use super::relay::Entrance;
use super::resolver;
use super::signals::{Received, Signals};
use super::tun::Tun;
use super::users::{Rights, map_to_themselves};
use crate::reach::{self, Way};

/// Outside end of the link. The resources of the outside end exist as long as the keeper process runs.
struct End {
    pair: Pair,
    tun: Tun,
    way: Way,
    /// Sockets of the relay for forwarded ports.
    forwards: Vec<Entrance>,
    /// Destinations routed beyond the link, whose addresses must not be used inside.
    beyond: BTreeSet<Prefix>,
    /// Messages for the user, one per line.
    remarks: Vec<String>,
}

/// Runs the keeper; returns its exit status.
pub(crate) fn run(setting: &Setting<'_>) -> u8 {
    match set_up(setting).and_then(|(signals, command, _end)| await_end(&signals, command)) {
        Ok(status) => status,
        Err(obstacle) => {
            setting.channel.complain(&obstacle);
            FAILED
        }
    }
}

fn set_up(setting: &Setting<'_>) -> Result<(Signals, Pid, End), Obstacle> {
    // Creating a user namespace clears the parent-death signal, so the signal is set afterwards.
    set_pdeathsig(Signal::SIGKILL).trying("tying the namespaces to ackclock")?;
    if setting.channel.is_dead() {
        // If ackclock ended before the parent-death signal was set, the signal would never end this process.
        return Err(Obstacle::new("tying the namespaces to ackclock", "it has died"));
    }
    if setting.rights == Rights::User {
        map_to_themselves(setting.user, setting.group)?;
    }
    own_mounts()?;
    let mut end = outside(setting)?;
    let resolver = resolver::choose(&end.way, end.pair);
    let entrance = resolver.entrance();
    if let Outside::Server(server) = &setting.plan.outside {
        end.remarks.extend(start_server(server, end.pair)?);
    }
    // The keeper takes over signals before the command starts: process 1 of a namespace receives only signals that it
    // blocks or handles.
    let signals = Signals::take().trying(COLLECTING)?;
    publish::serve_outside(&setting.plan.publishes, end.pair)?;
    let command = apart(|| {
        if let Err(obstacle) = signals.leave().trying(COLLECTING) {
            setting.channel.complain(&obstacle);
            return FAILED;
        }
        let setup = inside::InsideSetup {
            pair: end.pair,
            way: &end.way,
            beyond: &end.beyond,
            resolver,
            entrance: entrance.as_ref(),
            forwards: &end.forwards,
            remarks: &end.remarks,
            outside: &end.tun,
        };
        inside::run(setting, &setup)
    })?;
    Ok((signals, command, end))
}

const COLLECTING: &str = "collecting signals";

/// Creates private mounts, with this process namespace under `/proc`.
pub(crate) fn own_mounts() -> Result<(), Obstacle> {
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .trying("keeping mounts to ourselves")?;
    // A container may hide parts of /proc and refuse a new mount; the existing mount works as well.
    let _ = mount(
        Some("proc"),
        "/proc",
        Some("proc"),
        MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC,
        none,
    );
    Ok(())
}

/// Creates the outside end of the link.
fn outside(setting: &Setting<'_>) -> Result<End, Obstacle> {
    // Routes are read before a new network namespace hides the addresses in use outside. Links can be nested, so these
    // addresses must not be used again.
    let routed = routed().trying(FINDING)?;
    let mut free = free(&routed).peekable();
    let Some(&Candidate { pair, .. }) = free.peek() else {
        let all = "every network of 100.64.0.0/16 and 198.18.0.0/16 is routed somewhere already";
        return Err(Obstacle::new(FINDING, all));
    };
    let forwards = &setting.plan.forwards;
    let (pair, tun, way, forwards) = match (&setting.plan.outside, setting.rights) {
        (Outside::Machine, Rights::Administrator) => match reach::through_machine(free, forwards) {
            Ok(stands) => stands,
            Err(obstacle) => {
                let (tun, entrances) = alone(pair, forwards)?;
                (pair, tun, reach::closed(obstacle.to_string()), entrances)
            }
        },
        (Outside::Machine, Rights::User) => {
            let (tun, entrances) = alone(pair, forwards)?;
            let way = reach::through_pasta(&tun, pair, setting.pasta);
            (pair, tun, way, entrances)
        }
        (Outside::Nothing | Outside::Server(_), _) => {
            let (tun, entrances) = alone(pair, forwards)?;
            if setting.plan.ecn {
                ask_for_ecn()?;
            }
            (pair, tun, reach::closed("as asked".to_owned()), entrances)
        }
    };
    let remarks = way.remarks.clone();
    Ok(End { pair, tun, way, forwards, beyond: beyond(&routed), remarks })
}

const FINDING: &str = "finding free addresses";

/// Creates the outside end in a new network namespace and enters it. Returns the outside TUN, and the sockets of
/// forwarded ports in the new namespace.
fn alone(pair: Pair, forwards: &[Forward]) -> Result<(Tun, Vec<Entrance>), Obstacle> {
    unshare(CloneFlags::CLONE_NEWNET).trying("creating a network namespace")?;
    bring_loopback_up().trying("bringing loopback up")?;
    let tun = Tun::open("ackclock%d")?;
    tun.interface.configure(pair.base, pair.inside)?;
    if !forwards.is_empty() {
        // Forwarded ports need a separate address, because the base address may stand for the machine.
        tun.interface.add_address(pair.router()).trying("adding the address of forwarded ports")?;
    }
    Ok((tun, forward::open(pair, forwards)?))
}

/// Starts the server and waits until it listens on a port. The wait is limited, because the program may not be a
/// network server. Returns a remark if the server went to the background; the server's processes then become children
/// of the keeper.
fn start_server(server: &OsStr, pair: Pair) -> Result<Option<String>, Obstacle> {
    let mut child = Command::new("/bin/sh")
        .arg("-c")
        .arg(server)
        .env("ACKCLOCK_BASE", pair.base.to_string())
        .stdin(Stdio::null())
        .stdout(io::stderr().as_fd().try_clone_to_owned().map_or(Stdio::null(), Stdio::from))
        .spawn()
        .trying("starting the server")?;
    let mut remark = None;
    for _ in 0..SERVER_LOOKS {
        let listens = listens();
        if remark.is_none()
            && let Ok(Some(status)) = child.try_wait()
        {
            if !status.success() || !has_children() {
                return Err(Obstacle::new("starting the server", format!("it ended at once, {status}")));
            }
            remark = Some("the server went to the background; it runs until the link ends".to_owned());
        }
        if listens {
            return Ok(remark);
        }
        pause(SERVER_LOOK);
    }
    Ok(remark.map(|text| format!("{text}, and does not listen on any port")))
}

/// Whether this process has running children. Reaps ended children.
fn has_children() -> bool {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

const SERVER_LOOK: Duration = Duration::from_millis(20);
const SERVER_LOOKS: u32 = 250;

#[allow(clippy::disallowed_methods)] // The real world is waited for here; no model sleeps.
fn pause(length: Duration) {
    sleep(length);
}

/// Whether any process in this network namespace listens for connections or datagrams.
fn listens() -> bool {
    // In the kernel's tables, state 0A is a listening TCP socket and state 07 an unconnected UDP socket.
    [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")].iter().any(|(table, state)| {
        let text = fs::read_to_string(format!("/proc/self/net/{table}")).unwrap_or_default();
        text.lines().skip(1).any(|line| line.split_whitespace().nth(3) == Some(state))
    })
}

/// Waits for the command to end. While waiting, the keeper reaps orphaned processes and forwards signals sent to the
/// link.
fn await_end(signals: &Signals, command: Pid) -> Result<u8, Obstacle> {
    loop {
        if let Some(status) = bury(command) {
            return Ok(status);
        }
        for received in signals.wait().trying("waiting for the command")?.filter(Received::is_ours) {
            // If the command has just ended, sending the signal fails, and the command's status is read next.
            let _ = kill(command, received.signal);
        }
    }
}

/// Reaps every ended process; returns the command's status if it has ended.
fn bury(command: Pid) -> Option<u8> {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, status)) if pid == command => return Some(status as u8),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == command => return Some(128 + signal as u8),
            Ok(WaitStatus::StillAlive) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}
