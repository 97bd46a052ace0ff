//! Requirements of a link on a machine or in a container, and how to meet each requirement.
//!
//! Each requirement is tested separately, so that all missing requirements are reported together. A test that would
//! change the process runs in a short-lived child process. If a requirement cannot be tested because another
//! requirement is missing, the rights of this process decide.

use std::path::Path;
use std::{env, fs, io};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::Mode;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork, getegid, geteuid};

use super::keeper::own_mounts;
use super::obstacle::Obstacle;
use super::tun::DEVICE;
use super::users::{self, Rights, map_to_themselves};
use crate::reach;

/// Requirement of a link.
#[derive(Debug)]
pub struct Need {
    /// Purpose of the requirement for a link.
    pub what: &'static str,
    check: fn() -> nix::Result<()>,
    /// Text that explains how to meet the requirement after the check failed with this error.
    remedy: fn(Errno) -> String,
}

/// All requirements of a link.
pub const NEEDS: [Need; 6] = [
    Need { what: "creating namespaces", check: namespaces, remedy: namespaces_remedy },
    Need { what: "creating a network device", check: network, remedy: |_| start_with(NET_ADMIN) },
    Need { what: "opening /dev/net/tun", check: device, remedy: device_remedy },
    Need { what: "keeping mounts to the link", check: mounts, remedy: mounts_remedy },
    Need { what: "translating addresses by nftables", check: translation, remedy: translation_remedy },
    Need { what: "writing to /proc/sys/net", check: settings, remedy: |_| settings_remedy() },
];

/// Options of `docker run` and `podman run` that meet the requirements in a container.
pub const OPTIONS: [&str; 7] = [SYS_ADMIN, NET_ADMIN, TUN, APPARMOR, SECCOMP, SYSTEMPATHS, UNMASK];

const SYS_ADMIN: &str = "--cap-add SYS_ADMIN";
const NET_ADMIN: &str = "--cap-add NET_ADMIN";
const TUN: &str = "--device /dev/net/tun";
const APPARMOR: &str = "--security-opt apparmor=unconfined";
const SECCOMP: &str = "--security-opt seccomp=unconfined";
/// Options of Docker and of Podman that show all of `/proc`.
const SYSTEMPATHS: &str = "--security-opt systempaths=unconfined";
const UNMASK: &str = "--security-opt unmask=ALL";

impl Need {
    /// Returns why the requirement is missing and how to meet it; `None` if the requirement is met. Call this function
    /// before the process starts a thread.
    pub fn obstacle(&self) -> Option<Obstacle> {
        let errno = (self.check)().err()?;
        Some(Obstacle::new(self.what, errno.desc()).remedy((self.remedy)(errno)))
    }
}

/// Obstacles to a link: all missing requirements, or the actual failure if none is missing.
pub fn obstacles(failed: Obstacle) -> Vec<Obstacle> {
    let missing: Vec<Obstacle> = NEEDS.iter().filter_map(Need::obstacle).collect();
    if missing.is_empty() { vec![failed] } else { missing }
}

fn namespaces() -> nix::Result<()> {
    tried(|| enter().map(drop))
}

fn namespaces_remedy(_: Errno) -> String {
    match users::remedy() {
        Some(remedy) if !geteuid().is_root() && !is_container() => remedy.to_owned(),
        None if !geteuid().is_root() && !is_container() => "run with sudo".to_owned(),
        _ if holds(CAP_SYS_ADMIN) => start_with(SECCOMP),
        _ if !geteuid().is_root() => format!("{}, and as root (--user 0)", start_with(SYS_ADMIN)),
        _ => start_with(SYS_ADMIN),
    }
}

/// An ordinary user gains the right to administer networks in a user namespace; root must have this right in the
/// current namespace.
fn network() -> nix::Result<()> {
    tried(|| if administers_networks(enter()) { Ok(()) } else { Err(Errno::EPERM) })
}

fn administers_networks(entered: nix::Result<Rights>) -> bool {
    entered == Ok(Rights::User) || !geteuid().is_root() || holds(CAP_NET_ADMIN)
}

fn device() -> nix::Result<()> {
    open(DEVICE, OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty()).map(drop)
}

fn device_remedy(errno: Errno) -> String {
    match errno {
        Errno::EACCES => "let everyone open it: sudo chmod 666 /dev/net/tun".to_owned(),
        // The container's device cgroup does not allow the TUN device.
        Errno::EPERM => start_with(TUN),
        _ if is_container() => {
            format!("{}; it needs the driver on the host: sudo modprobe tun", start_with(TUN))
        }
        _ => "load the driver: sudo modprobe tun".to_owned(),
    }
}

fn mounts() -> nix::Result<()> {
    let none = None::<&str>;
    tried(|| match enter() {
        Ok(_) => mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none),
        // The security profile of a container refuses mounts regardless of rights.
        Err(_) if is_confined() => Err(Errno::EACCES),
        Err(_) => Ok(()),
    })
}

fn mounts_remedy(errno: Errno) -> String {
    match users::remedy() {
        Some(remedy) if !geteuid().is_root() && !is_container() => remedy.to_owned(),
        _ if errno == Errno::EACCES => start_with(APPARMOR),
        _ => start_with(SECCOMP),
    }
}

/// The firewall table of a link, in a network namespace of its own.
fn translation() -> nix::Result<()> {
    tried(|| match enter() {
        Ok(rights) if administers_networks(Ok(rights)) => {
            reach::try_translation().map_err(|error| errno(&error))
        }
        _ => Ok(()),
    })
}

fn translation_remedy(errno: Errno) -> String {
    match errno {
        Errno::EPERM | Errno::EACCES if is_container() => start_with(SECCOMP),
        _ if is_container() => format!("on the host, {}", reach::NFTABLES),
        _ => reach::NFTABLES.to_owned(),
    }
}

/// Writes a setting of a network namespace, in a process namespace with its own `/proc` if the machine allows it.
fn settings() -> nix::Result<()> {
    tried(|| match enter() {
        Ok(rights) if administers_networks(Ok(rights)) => tried(|| match own_mounts() {
            Ok(()) => fs::write("/proc/sys/net/ipv4/ip_forward", "1").map_err(|error| errno(&error)),
            Err(_) => Ok(()),
        }),
        _ => Ok(()),
    })
}

fn settings_remedy() -> String {
    match is_container() {
        true if Path::new(PODMAN).exists() => start_with(UNMASK),
        true => start_with(SYSTEMPATHS),
        false => "make it writable: sudo mount -o remount,rw /proc/sys".to_owned(),
    }
}

/// Error number of an error that has one; other errors are errors of reading or writing.
fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

fn start_with(option: &str) -> String {
    format!("start the container with {option}")
}

/// Enters the namespaces that a link uses.
fn enter() -> nix::Result<Rights> {
    let base = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET;
    let (user, group) = (geteuid(), getegid());
    match unshare(base) {
        Err(Errno::EPERM) => {
            unshare(base | CloneFlags::CLONE_NEWUSER)?;
            map_to_themselves(user, group).map_err(|_| Errno::EACCES)?;
            Ok(Rights::User)
        }
        outcome => outcome.map(|()| Rights::Administrator),
    }
}

/// Runs a check in a child process whose exit status is the error number.
#[allow(unsafe_code)]
fn tried(check: impl FnOnce() -> nix::Result<()>) -> nix::Result<()> {
    // SAFETY: this process has one thread, so the copy inherits no locked mutex.
    match unsafe { fork() }? {
        ForkResult::Child => std::process::exit(check().map_or_else(|errno| errno as i32, |()| 0)),
        ForkResult::Parent { child } => match waitpid(child, None)? {
            WaitStatus::Exited(_, 0) => Ok(()),
            WaitStatus::Exited(_, errno) => Err(Errno::from_raw(errno)),
            // The child has no exit status, so a system call filter may have killed it.
            _ => Err(Errno::EPERM),
        },
    }
}

/// Whether this process has a capability, by its number (`linux/capability.h`).
fn holds(capability: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective
        .is_some_and(|text| u64::from_str_radix(text.trim(), 16).is_ok_and(|all| all >> capability & 1 == 1))
}

const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;

/// Whether an AppArmor profile is enforced on this process.
fn is_confined() -> bool {
    fs::read_to_string("/proc/self/attr/current").is_ok_and(|profile| profile.trim().ends_with("(enforce)"))
}

/// File that Podman puts into its containers.
const PODMAN: &str = "/run/.containerenv";

/// Whether this is a container, as marked by Docker, Podman and systemd.
fn is_container() -> bool {
    ["/.dockerenv", PODMAN].iter().any(|mark| Path::new(mark).exists()) || env::var_os("container").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_about_containers_has_every_option_and_no_other() {
        let page = include_str!("../../../../docs/how-to/containers.md");
        let mut words = page.split_whitespace().map(|word| word.trim_matches('`')).peekable();
        let mut options = Vec::new();
        while let Some(word) = words.next() {
            if ["--cap-add", "--device", "--security-opt"].contains(&word) {
                let value = words.peek().copied().unwrap_or_default();
                options.push(format!("{word} {value}"));
            }
        }
        for option in OPTIONS {
            assert!(options.iter().any(|written| written == option), "{option} is missing in {options:?}");
        }
        for written in options {
            assert!(OPTIONS.contains(&written.as_str()), "{written} gives nothing that a link needs");
        }
    }

    #[test]
    fn each_need_is_told_with_what_gives_it() {
        for (need, errno, remedy) in [
            (&NEEDS[1], Errno::EPERM, "start the container with --cap-add NET_ADMIN"),
            (&NEEDS[2], Errno::EACCES, "let everyone open it: sudo chmod 666 /dev/net/tun"),
            (&NEEDS[2], Errno::EPERM, "start the container with --device /dev/net/tun"),
        ] {
            assert_eq!((need.remedy)(errno), remedy);
        }
    }
}
