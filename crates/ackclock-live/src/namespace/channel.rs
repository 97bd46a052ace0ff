//! Channel between `ackclock` and the processes in the namespaces, which passes a report with open files, then the
//! permission to start.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;

use nix::cmsg_space;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recv, recvmsg, send,
    sendmsg, socketpair,
};
use serde_json::{Value, json};

use super::addresses::Pair;
use super::forward::MOST_PORTS;
use super::obstacle::{Obstacle, Trying};
use super::refusals::Refusals;
use super::relay::Entrance;
use super::tun::{DeviceCounters, Tun};
use crate::reach::Reach;
use ackclock_netlink::Netlink;

/// One end of the setup channel.
#[derive(Debug)]
pub(crate) struct SetupSocket(OwnedFd);

/// Report of the prepared namespaces.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) pair: Pair,
    pub(crate) reach: Reach,
    /// Messages for the user, one per line.
    pub(crate) remarks: Vec<String>,
    /// Open files: the outer TUN, the inner TUN, and the listening control socket inside.
    pub(crate) files: [OwnedFd; 3],
    /// Drop counters of the outer and the inner TUN.
    pub(crate) counters: [DeviceCounters; 2],
    /// Sockets of the name server relay, if needed.
    pub(crate) entrance: Option<Entrance>,
    /// Listening sockets of the relay for forwarded ports.
    pub(crate) forwards: Vec<Entrance>,
    /// Socket that keeps the redirection of forwarded ports alive until it is closed.
    pub(crate) redirect: Option<OwnedFd>,
    /// Reports of refused connections inside, if the kernel provides them.
    pub(crate) refusals: Option<Refusals>,
    /// Listening socket inside for control by HTTP, if requested.
    pub(crate) web_control: Option<TcpListener>,
}

impl Report {
    /// Parses a report with its open files; `None` if the report is incomplete.
    fn read(text: &Value, files: Vec<OwnedFd>) -> Option<Self> {
        let address = |key: &str| text[key].as_str().and_then(|text| text.parse::<Ipv4Addr>().ok());
        let has = |what: &str| text[what].as_bool().unwrap_or(false);
        let mut files = files.into_iter();
        let [outside, inside] = [files.next()?, files.next()?];
        let mut counters = |at: usize| {
            let device = text["devices"][at].as_u64()?;
            Some(DeviceCounters::new(files.next()?.into(), device as u32))
        };
        let counters = [counters(0)?, counters(1)?];
        let control = files.next()?;
        let mut entrance =
            || Some(Entrance { datagrams: files.next()?.into(), streams: files.next()?.into() });
        let remarks = text["remarks"].as_array()?.iter();
        Some(Self {
            pair: Pair { base: address("base")?, inside: address("inside")? },
            reach: Reach::from_json(&text["reach"]),
            remarks: remarks.filter_map(|remark| remark.as_str().map(str::to_owned)).collect(),
            files: [outside, inside, control],
            counters,
            entrance: if has("names") { Some(entrance()?) } else { None },
            forwards: (0..text["forwards"].as_u64()?).map(|_| entrance()).collect::<Option<_>>()?,
            redirect: if has("redirect") { Some(files.next()?) } else { None },
            refusals: if has("refusals") { Some(files.next()?.into()) } else { None },
            web_control: if has("web_control") { Some(files.next()?.into()) } else { None },
        })
    }
}

/// Sockets of a link, apart from the sockets that query the link's TUNs.
pub(crate) struct Sockets<'a> {
    pub(crate) control: &'a UnixListener,
    pub(crate) names: Option<&'a Entrance>,
    pub(crate) forwards: &'a [Entrance],
    pub(crate) redirect: Option<&'a Netlink>,
    pub(crate) refusals: Option<&'a Refusals>,
    pub(crate) web_control: Option<&'a TcpListener>,
}

impl Sockets<'_> {
    fn files(&self) -> Vec<RawFd> {
        let relayed = self.names.into_iter().chain(self.forwards);
        let relayed = relayed.flat_map(|at| [at.datagrams.as_raw_fd(), at.streams.as_raw_fd()]);
        let others = [
            self.redirect.map(AsRawFd::as_raw_fd),
            self.refusals.map(AsRawFd::as_raw_fd),
            self.web_control.map(AsRawFd::as_raw_fd),
        ];
        let control = std::iter::once(self.control.as_raw_fd());
        control.chain(relayed).chain(others.into_iter().flatten()).collect()
    }
}

/// Maximum number of files in a report: two TUNs, a query socket for each, the listener of the control socket, two
/// sockets of each relayed port, and three more. The kernel passes at most 253 files at a time.
const MOST_FILES: usize = 5 + 2 * (1 + MOST_PORTS) + 3;
const LONGEST: usize = 8192;

impl SetupSocket {
    /// Creates the two ends of a channel.
    pub(crate) fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        Ok((Self(a), Self(b)))
    }

    /// Reports that the namespaces are ready, and passes the open files.
    pub(crate) fn report(
        &self,
        pair: Pair,
        reach: &Reach,
        remarks: &[String],
        [outside, inside]: [&Tun; 2],
        sockets: &Sockets<'_>,
    ) -> Result<(), Obstacle> {
        let text = json!({
            "base": pair.base.to_string(),
            "inside": pair.inside.to_string(),
            "reach": reach.to_json(),
            "remarks": remarks,
            "devices": [outside.interface.index, inside.interface.index],
            "names": sockets.names.is_some(),
            "forwards": sockets.forwards.len(),
            "redirect": sockets.redirect.is_some(),
            "refusals": sockets.refusals.is_some(),
            "web_control": sockets.web_control.is_some(),
        });
        let mut files = [outside, inside].map(|tun| tun.file.as_raw_fd()).to_vec();
        files.extend([outside, inside].map(|tun| tun.netlink.as_raw_fd()));
        files.extend(sockets.files());
        self.send(&text, &[ControlMessage::ScmRights(&files)]).map(drop).trying("reporting to ackclock")
    }

    /// Reports an obstacle to the link.
    pub(crate) fn complain(&self, obstacle: &Obstacle) {
        // If the receiver has ended, the link is not needed, so errors are ignored.
        let _ = self.send(&json!({ "obstacle": obstacle.to_json() }), &[]);
    }

    /// Waits for the report of the prepared namespaces.
    pub(crate) fn await_report(&self) -> Result<Report, Obstacle> {
        let mut bytes = vec![0; LONGEST];
        let (length, files) = self.receive(&mut bytes).trying("hearing from the namespaces")?;
        if length == 0 {
            return Err(Obstacle::new("setting up the namespaces", "their first process died"));
        }
        let text: Value = serde_json::from_slice(&bytes[..length]).trying("hearing from the namespaces")?;
        if let Some(obstacle) = text.get("obstacle") {
            return Err(Obstacle::from_json(obstacle));
        }
        Report::read(&text, files)
            .ok_or_else(|| Obstacle::new("hearing from the namespaces", "the report is not whole"))
    }

    /// Permits the command to start.
    pub(crate) fn go(&self) -> io::Result<()> {
        send(self.0.as_raw_fd(), b"go", MsgFlags::MSG_NOSIGNAL)?;
        Ok(())
    }

    /// Waits for the permission to start; returns false if the permission cannot arrive any more.
    pub(crate) fn await_go(&self) -> bool {
        let mut word = [0; 2];
        recv(self.0.as_raw_fd(), &mut word, MsgFlags::empty()).is_ok_and(|length| length > 0)
    }

    /// Whether the process at the opposite end has died.
    pub(crate) fn is_dead(&self) -> bool {
        let mut end = [PollFd::new(self.0.as_fd(), PollFlags::empty())];
        poll(&mut end, PollTimeout::ZERO).is_ok()
            && end[0].revents().is_some_and(|events| events.contains(PollFlags::POLLHUP))
    }

    fn send(&self, text: &Value, with: &[ControlMessage<'_>]) -> nix::Result<usize> {
        let text = text.to_string();
        let text = [IoSlice::new(text.as_bytes())];
        sendmsg::<()>(self.0.as_raw_fd(), &text, with, MsgFlags::MSG_NOSIGNAL, None)
    }

    #[allow(unsafe_code)]
    fn receive(&self, bytes: &mut [u8]) -> nix::Result<(usize, Vec<OwnedFd>)> {
        let mut space = cmsg_space!([RawFd; MOST_FILES]);
        let mut into = [IoSliceMut::new(bytes)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let message = recvmsg::<()>(self.0.as_raw_fd(), &mut into, Some(&mut space), flags)?;
        let mut files = Vec::new();
        for control in message.cmsgs()? {
            if let ControlMessageOwned::ScmRights(received) = control {
                // SAFETY: the kernel has just created these descriptors, and no other code uses them.
                files.extend(received.into_iter().map(|file| unsafe { OwnedFd::from_raw_fd(file) }));
            }
        }
        Ok((message.bytes, files))
    }
}
