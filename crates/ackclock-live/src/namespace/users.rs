//! User namespaces: the same user inside as outside, with every right over what the namespace owns.

use std::fs;

use nix::unistd::{Gid, Uid};

use super::obstacle::{Obstacle, Trying};

/// Whose rights the namespaces of a link are made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    /// The administrator's: the network of the machine is ours to route through.
    Administrator,
    /// An ordinary user's, who is administrator of a user namespace only.
    User,
}

/// Maps the user and the group of this process, as they were before the user namespace was made, to themselves.
pub(crate) fn map_to_themselves(user: Uid, group: Gid) -> Result<(), Obstacle> {
    let write = |file: &str, text: &str| fs::write(format!("/proc/self/{file}"), text);
    // Without this a user could drop a group that keeps him out of a file.
    write("setgroups", "deny").trying("giving up supplementary groups")?;
    write("uid_map", &format!("{user} {user} 1")).trying("mapping the user into the user namespace")?;
    write("gid_map", &format!("{group} {group} 1")).trying("mapping the group into the user namespace")
}

/// What lets ordinary users make namespaces, where a setting of this machine keeps them from it.
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
