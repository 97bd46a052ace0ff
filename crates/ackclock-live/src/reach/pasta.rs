//! Network access through pasta (Debian package `passt`): an ordinary user reaches networks through sockets that pasta
//! opens with the user's rights.
//!
//! Connections end in pasta: data from beyond crosses the link over pasta's own TCP, which has no congestion control.
//! For measurements, use a server in the outer namespace, or root.

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

/// Address of our end for queries to the machine's name servers. The base address cannot be used, because it represents
/// the machine.
pub(crate) const RESOLVER: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 1);
/// Address at which pasta answers for the machine's loopback address. By default pasta uses the gateway's address,
/// which would make the machine's gateway unreachable.
pub(crate) const MACHINE: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 2);
/// Address of the namespace at pasta's end.
const OWN: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 3);
/// Locally administered hardware address, used if the machine's outgoing interface has no hardware address, as inside
/// another link.
const HARDWARE: &str = "02:61:63:6b:00:01";

/// A pasta process that serves the outside of a link. The process ends when this value is dropped, or with the process
/// that holds it.
#[derive(Debug)]
pub struct Pasta(Child);

impl Pasta {
    /// Path of the program pasta, if installed.
    pub(crate) fn program() -> Option<PathBuf> {
        let paths = env::var_os("PATH")?;
        env::split_paths(&paths).map(|folder| folder.join("pasta")).find(|program| program.is_file())
    }

    /// Connects a process's network namespace to the machine's network.
    ///
    /// # Errors
    /// Fails if the program pasta cannot be started or sets up no route.
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
        // The shell that supervises pasta ends as soon as its input is closed.
        let _ = self.0.wait();
    }
}

/// Starts pasta under a shell, because pasta clears the signal that would kill it with its parent. The shell waits
/// until its input is closed, however the holder of the input ended, and then kills pasta.
fn start(program: &Path, process: Pid) -> Result<Child, Obstacle> {
    Command::new("/bin/sh")
        .args(["-c", "\"$@\" & read -r _; kill -KILL $!; wait", "sh"])
        .arg(program)
        // The options with value `none` forward no port of the machine to the inside, and no port of the inside to the
        // machine.
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
        // A separate process group protects pasta from a Ctrl-C meant for the command.
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
