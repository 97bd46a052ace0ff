//! pasta (of the Debian package `passt`): the network for an ordinary user, by sockets that it opens in his name.
//!
//! Connections end in pasta: what comes from beyond it crosses the link by pasta's own TCP, which has no congestion
//! control. Measurements take a server in the namespace outside, or root.

use std::env;
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use nix::unistd::Pid;

use crate::namespace::Obstacle;

/// An address of our end, at which the machine's name servers are asked. The base address stands for the machine.
pub(crate) const RESOLVER: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 1);
/// An address at which pasta answers for the machine's loopback address. Were it the machine's own gateway, as pasta has
/// it by itself, that could not be reached.
pub(crate) const MACHINE: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 2);
/// What the namespace is called at pasta's end.
const OWN: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 3);
/// A local address, for where the machine's way out is a device without one, like another link.
const HARDWARE: &str = "02:61:63:6b:00:01";

/// A pasta that serves the outside of a link. It ends with this, or with the process that has it.
#[derive(Debug)]
pub struct Pasta(Child);

impl Pasta {
    /// Where the program is, if it is installed.
    pub(crate) fn program() -> Option<PathBuf> {
        let paths = env::var_os("PATH")?;
        env::split_paths(&paths).map(|folder| folder.join("pasta")).find(|program| program.is_file())
    }

    /// Connects the network namespace of a process with the machine's network.
    ///
    /// # Errors
    /// Where pasta cannot be started or sets nothing up.
    pub(crate) fn attach(program: &Path, process: Pid) -> Result<Self, Obstacle> {
        let mut guard = Self(start(program, process)?);
        for _ in 0..LOOKS {
            if has_default_route(process) {
                return Ok(guard);
            }
            if !matches!(guard.0.try_wait(), Ok(None)) {
                break;
            }
            pause(LOOK);
        }
        let tried = Obstacle::new("connecting by pasta", "it set up no route");
        Err(tried.remedy("see what it says: pasta --config-net true"))
    }
}

impl Drop for Pasta {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // The shell ends as soon as its input has.
        let _ = self.0.wait();
    }
}

/// pasta clears the signal that would kill it with its parent. So a shell waits beside it until nobody holds the other
/// end of its input any more, whatever that process died of.
fn start(program: &Path, process: Pid) -> Result<Child, Obstacle> {
    Command::new("/bin/sh")
        .args(["-c", "\"$@\" & read -r _; kill -KILL $!; wait", "sh"])
        .arg(program)
        // No port of the machine is opened inside, and none of the inside on the machine.
        .args([
            "--config-net",
            "--foreground",
            "--quiet",
            "-t",
            "none",
            "-u",
            "none",
            "-T",
            "none",
            "-U",
            "none",
        ])
        .args(["--ipv4-only", "--ns-ifname", "pasta0", "--mac-addr", HARDWARE])
        .args(["--address", &OWN.to_string(), "--netmask", "24", "--gateway", &MACHINE.to_string()])
        .arg(process.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Not to be ended by a Ctrl-C that is meant for the command.
        .process_group(0)
        .spawn()
        .map_err(|error| Obstacle::new("starting pasta", error))
}

fn has_default_route(process: Pid) -> bool {
    let table = fs::read_to_string(format!("/proc/{process}/net/route")).unwrap_or_default();
    table.lines().skip(1).any(|line| line.split_whitespace().nth(1) == Some("00000000"))
}

const LOOK: Duration = Duration::from_millis(10);
const LOOKS: u32 = 500;

#[allow(clippy::disallowed_methods)] // The real world is waited for here; no model sleeps.
fn pause(length: Duration) {
    sleep(length);
}
