//! The namespaces of one link, as seen by the process that created them.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::thread;

use nix::errno::Errno;
use nix::sched::{CloneFlags, clone};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getegid, geteuid};

use super::addresses::Pair;
use super::channel::{Report, SetupSocket};
use super::forward::{Forwarding, Used};
use super::keeper;
use super::obstacle::{Obstacle, Trying};
use super::plan::{Plan, Setting};
use super::refusals::Refusals;
use super::relay::Relay;
use super::resolver;
use super::tun::DeviceCounters;
use super::users::Rights;
use crate::reach::Reach;
use crate::reach::pasta::Pasta;

/// Prepared namespaces, and the command that waits in them to start.
#[derive(Debug)]
pub struct World {
    /// Addresses of the two ends of the link.
    pub pair: Pair,
    /// Networks that the inside can reach.
    pub reach: Reach,
    /// Messages for the user, one per line.
    pub remarks: Vec<String>,
    /// Relay that answers for the machine's name servers if they are unreachable from inside.
    relay: Option<Relay>,
    forwarding: Option<Forwarding>,
    /// Whether each forwarded port was used, in the order of the ports.
    used: Used,
    refusals: Option<Refusals>,
    _redirect: Option<OwnedFd>,
    channel: SetupSocket,
    keeper: Pid,
    _pasta: Option<Pasta>,
}

/// Open files of a link.
#[derive(Debug)]
pub struct Ends {
    /// File of the TUN on the wired side.
    pub outside: OwnedFd,
    /// File of the TUN on the mobile side.
    pub inside: OwnedFd,
    /// Listening stream socket inside, for programs that control the link.
    pub control: OwnedFd,
    /// Listening TCP socket inside, for control by HTTP.
    pub web_control: Option<TcpListener>,
    /// Counters of the TUN on the wired side, and of the TUN on the mobile side.
    pub counters: [DeviceCounters; 2],
}

impl World {
    /// Creates the namespaces of a link. Call this function before the process starts a thread, because the process's
    /// memory is copied as by `fork`.
    ///
    /// # Errors
    /// Returns the operation that this machine does not allow, with a remedy.
    pub fn begin(plan: &Plan) -> Result<(Self, Ends), Obstacle> {
        let (ours, theirs) = SetupSocket::pair().trying("making a socket pair")?;
        let pasta = Pasta::program();
        let mut ours = Some(ours);
        let keeper = start_keeper(plan, (&mut ours, &theirs), pasta.is_some())?;
        drop(theirs);
        // The channel end is dropped only in the child's copy of the memory.
        let ours = ours.ok_or_else(|| Obstacle::new("setting up the namespaces", "the channel is gone"))?;
        let report = match ours.await_report() {
            Ok(report) => report,
            Err(obstacle) => {
                // The keeper ends by itself. The obstacle already states the reason, so the keeper's exit status is
                // ignored.
                let _ = waitpid(keeper, None);
                return Err(obstacle);
            }
        };
        let (reach, pasta) = attach(report.reach, pasta, keeper);
        let [outside, inside, control] = report.files;
        let Report { pair, remarks, entrance, counters, forwards, redirect, refusals, web_control, .. } =
            report;
        let relay =
            entrance.map(|entrance| Relay::new(entrance, resolver::of_machine()).trying("relaying names"));
        let forwarding = Forwarding::new(&plan.forwards, forwards).trying("relaying forwarded ports")?;
        let world = Self {
            pair,
            reach,
            remarks,
            relay: relay.transpose()?,
            used: forwarding.used(),
            forwarding: (!plan.forwards.is_empty()).then_some(forwarding),
            refusals,
            _redirect: redirect,
            channel: ours,
            keeper,
            _pasta: pasta,
        };
        Ok((world, Ends { outside, inside, control, web_control, counters }))
    }

    /// Starts the command. After the start, threads of this process relay name server queries and forwarded ports;
    /// `say` receives messages for the user about forwarded ports, one line each.
    ///
    /// # Errors
    /// Fails if the command has already ended.
    pub fn go(&mut self, say: fn(&str)) -> io::Result<()> {
        if let Some(relay) = self.relay.take() {
            thread::spawn(move || relay.serve());
        }
        if let Some(forwarding) = self.forwarding.take() {
            thread::spawn(move || forwarding.serve(say));
        }
        self.channel.go()
    }

    /// Name of the congestion control with which the relay sends downloads from forwarded ports. Returns `None` without
    /// forwarded ports, or after the relay has started.
    pub fn forwarding_congestion_control(&self) -> Option<String> {
        self.forwarding.as_ref()?.congestion_control()
    }

    /// Whether each forwarded port was used, in the order of the ports.
    pub fn used_ports(&self) -> impl Iterator<Item = bool> + '_ {
        self.used.iter().map(|used| used.load(Ordering::Relaxed))
    }

    /// Counts connections that were refused at loopback addresses inside. Call this function often, so that no refusal
    /// is missed.
    pub fn note_refusals(&mut self) {
        if let Some(refusals) = &mut self.refusals {
            refusals.take();
        }
    }

    /// Number of refused connections at each loopback address inside that accepted no connection.
    pub fn refusals(&self) -> impl Iterator<Item = (SocketAddr, u64)> + '_ {
        self.refusals.iter().flat_map(Refusals::all)
    }

    /// Forwards a signal to the command.
    pub fn signal(&self, signal: Signal) {
        // If the keeper has ended, the command has ended as well, so errors are ignored.
        let _ = kill(self.keeper, signal);
    }

    /// Exit status of the command; `None` while it runs, and 128 plus the signal number if a signal ended it.
    pub fn ended(&self) -> Option<u8> {
        match waitpid(self.keeper, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, status)) => Some(status as u8),
            Ok(WaitStatus::Signaled(_, signal, _)) => Some(128 + signal as u8),
            Ok(_) => None,
            Err(_) => Some(1),
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.ended().is_none() {
            // Dropping a running world kills all of its processes.
            let _ = kill(self.keeper, Signal::SIGKILL);
            let _ = waitpid(self.keeper, None);
        }
    }
}

/// Attaches pasta if the inside needs it to reach networks beyond the link; returns the resulting reach.
fn attach(reach: Reach, pasta: Option<PathBuf>, keeper: Pid) -> (Reach, Option<Pasta>) {
    match (&reach, pasta) {
        (Reach::Pasta, Some(program)) => match Pasta::attach(&program, keeper) {
            Ok(pasta) => (reach, Some(pasta)),
            Err(obstacle) => (Reach::Closed(obstacle.to_string()), None),
        },
        _ => (reach, None),
    }
}

/// Starts the keeper with administrator rights or, without them, in a user namespace.
fn start_keeper(plan: &Plan, (ours, theirs): Both<'_>, pasta: bool) -> Result<Pid, Obstacle> {
    let base = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS;
    match copy_process(plan, (ours, theirs), pasta, Rights::Administrator, base) {
        Err(Errno::EPERM) => {
            let flags = base | CloneFlags::CLONE_NEWUSER;
            copy_process(plan, (ours, theirs), pasta, Rights::User, flags).trying("creating namespaces")
        }
        outcome => outcome.trying("creating namespaces"),
    }
}

/// The two ends of the setup channel: this process's end, and the keeper's end.
type Both<'a> = (&'a mut Option<SetupSocket>, &'a SetupSocket);

#[allow(unsafe_code)]
fn copy_process(
    plan: &Plan,
    (ours, channel): Both<'_>,
    pasta: bool,
    rights: Rights,
    flags: CloneFlags,
) -> nix::Result<Pid> {
    let (user, group) = (geteuid(), getegid());
    let mut stack = vec![0; STACK];
    let run = || {
        // The child drops its copy of this end of the channel, so that the peer notices the death of this process.
        *ours = None;
        let setting = Setting { plan, channel, rights, user, group, pasta };
        isize::from(keeper::run(&setting))
    };
    // SAFETY: without CLONE_VM the copy has separate memory and stack, as after fork; there is no other thread whose
    // locks it could inherit.
    unsafe { clone(Box::new(run), &mut stack, flags, Some(Signal::SIGCHLD as i32)) }
}

/// Stack size of the keeper in bytes, the usual size of a main thread's stack.
const STACK: usize = 8 << 20;
