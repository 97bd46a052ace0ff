//! The inside of a link: a network namespace whose only route out is the link, with the command in it.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::process::Command;

use ackclock_core::text::printable_line;
use nix::sched::{CloneFlags, unshare};

use super::addresses::{Pair, Prefix};
use super::channel::Sockets;
use super::interface::{add_default_route, add_default_route_v6, add_routes, ask_for_ecn, bring_loopback_up};
use super::obstacle::{Obstacle, Trying};
use super::plan::Setting;
use super::process::{FAILED, say};
use super::publish;
use super::refusals::Refusals;
use super::relay::Entrance;
use super::resolver::Resolver;
use super::tun::Tun;
use crate::control;
use crate::reach::{V6, Way, redirect};

/// Information from the outside that is needed to set up the inside.
pub(crate) struct InsideSetup<'a> {
    pub(crate) pair: Pair,
    pub(crate) way: &'a Way,
    /// Destinations that are routed beyond the link.
    pub(crate) beyond: &'a BTreeSet<Prefix>,
    pub(crate) resolver: Resolver,
    /// Sockets of the name server relay.
    pub(crate) entrance: Option<&'a Entrance>,
    /// Listening sockets of the relay for forwarded ports.
    pub(crate) forwards: &'a [Entrance],
    /// Messages for the user, one per line.
    pub(crate) remarks: &'a [String],
    pub(crate) outside: &'a Tun,
}

/// Replaces this process by the command; returns the exit status if the replacement fails.
pub(crate) fn run(setting: &Setting<'_>, setup: &InsideSetup<'_>) -> u8 {
    if let Err(obstacle) = stand(setting, setup) {
        setting.channel.complain(&obstacle);
        return FAILED;
    }
    if !setting.channel.await_go() {
        return FAILED;
    }
    let error = command(setting, setup.pair).exec();
    let name = setting.plan.command.first().map(|name| name.display().to_string()).unwrap_or_default();
    let name = printable_line(&name);
    say(&format!("ackclock: {name}: cannot be started: {error}\n"));
    // The exit status is the same as in a shell: 127 if the command does not exist, 126 if the command cannot be run.
    if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }
}

/// Creates the inside namespace and passes the two ends of the link to `ackclock`.
fn stand(setting: &Setting<'_>, setup: &InsideSetup<'_>) -> Result<(), Obstacle> {
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).trying("creating a network namespace")?;
    bring_loopback_up().trying("bringing loopback up")?;
    let tun = Tun::open("ackclock%d")?;
    let pair = setup.pair;
    tun.interface.configure(pair.inside, pair.base)?;
    let index = tun.interface.index;
    add_default_route(index, pair.base).trying("routing through the link")?;
    // The default route would suffice for packets, but a link nested in this link must see the addresses in use.
    add_routes(index, setup.beyond).trying("routing through the link")?;
    if setup.way.v6 == V6::Beyond {
        add_default_route_v6(index).trying("routing IPv6 through the link")?;
    }
    // This setting allows `ping` without privileges; an error is ignored.
    let group = setting.group;
    let _ = fs::write("/proc/sys/net/ipv4/ping_group_range", format!("{group} {group}"));
    if setting.plan.ecn {
        ask_for_ecn()?;
    }
    setup.resolver.install()?;
    let name = SocketAddr::from_abstract_name(control::NAME_INSIDE).trying("naming the control socket")?;
    let control = UnixListener::bind_addr(&name).trying("binding the control socket")?;
    let web_control = setting.plan.web_control.map(TcpListener::bind).transpose();
    let web_control = web_control.trying("listening at the address of --control")?;
    let forwards = &setting.plan.forwards;
    let redirect =
        if forwards.is_empty() { None } else { Some(redirect::install(&tun.interface, pair, forwards)?) };
    publish::serve_inside(&tun.interface, pair, &setting.plan.publishes)?;
    // If the kernel has no packet sockets, the link works, but gives the user no hint about refused connections.
    let refusals = Refusals::open().ok();
    let sockets = Sockets {
        control: &control,
        names: setup.entrance,
        forwards: setup.forwards,
        redirect: redirect.as_ref(),
        refusals: refusals.as_ref(),
        web_control: web_control.as_ref(),
    };
    setting.channel.report(pair, &setup.way.reach, setup.remarks, [setup.outside, &tun], &sockets)
}

fn command(setting: &Setting<'_>, pair: Pair) -> Command {
    let mut parts = setting.plan.command.iter();
    let mut command = Command::new(parts.next().map(|name| name.as_os_str()).unwrap_or_default());
    command.args(parts);
    for name in ["ACKCLOCK_BASE", "MAHIMAHI_BASE"] {
        command.env(name, pair.base.to_string());
    }
    if !setting.plan.forwards.is_empty() {
        let ports = setting.plan.forwards.iter().map(|forward| forward.inside.to_string());
        command.env("ACKCLOCK_FORWARD", ports.collect::<Vec<_>>().join(","));
    }
    command.envs(setting.plan.environment.iter().map(|(name, value)| (name, value)));
    command
}
