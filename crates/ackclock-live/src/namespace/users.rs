//! User namespaces: inside, a process has the same user as outside, with all rights over the namespace's resources.

use std::fs;

use nix::unistd::{Gid, Uid};

use super::obstacle::{Obstacle, Trying};

/// Rights with which the namespaces of a link are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    /// Administrator rights: the link may route through the machine's network.
    Administrator,
    /// Rights of an ordinary user, who is administrator only of a user namespace.
    User,
}

/// Maps user and group of this process to the same numbers as before the user namespace was created.
pub(crate) fn map_to_themselves(user: Uid, group: Gid) -> Result<(), Obstacle> {
    let write = |file: &str, text: &str| fs::write(format!("/proc/self/{file}"), text);
    // Without this setting, a user could drop a group that denies access to a file.
    write("setgroups", "deny").trying("giving up supplementary groups")?;
    write("uid_map", &format!("{user} {user} 1")).trying("mapping the user into the user namespace")?;
    write("gid_map", &format!("{group} {group} 1")).trying("mapping the group into the user namespace")
}

/// Command that allows ordinary users to create namespaces, if a setting of this machine forbids it.
pub(crate) fn remedy() -> Option<&'static str> {
    let is = |file: &str, value: &str| fs::read_to_string(file).is_ok_and(|text| text.trim() == value);
    Some(if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        "allow it: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or run with sudo"
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "allow it: sudo sysctl kernel.unprivileged_userns_clone=1, or run with sudo"
    } else if is("/proc/sys/user/max_user_namespaces", "0") {
        "allow it: sudo sysctl user.max_user_namespaces=10000, or run with sudo"
    } else {
        return None;
    })
}
