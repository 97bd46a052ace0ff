//! Attaches the BPF program by the queue discipline clsact, on kernels without tcx (before Linux 6.6).
//!
//! A clsact filter stays attached when the process that attached it exits. All filters of a box have one handle, by which
//! the next process replaces them and `cleanup` removes them.

use std::io;
use std::mem::ManuallyDrop;

use ackclock_netlink::{Message, Netlink, attribute, u32_at};
use aya::programs::links::Link;
use aya::programs::tc::{
    NlOptions, SchedClassifierLink, TcAttachOptions, TcError, TcHandle, qdisc_add_clsact,
};
use aya::programs::{ProgramError, SchedClassifier, TcAttachType};
use nix::errno::Errno;
use nix::libc;
use nix::net::if_::if_nametoindex;

/// Priorities of a box's filters, in the order in which they are tried. The first is the most urgent one, so that no other
/// filter hides a packet from the box; the kernel refuses it if filters of another kind have it. Filters without a
/// priority of their own are less urgent than the second.
const PRIORITIES: [u16; 2] = [1, 0xacc];
/// Handle of a box's filters within the priority.
const HANDLE: TcHandle = TcHandle::new(0xacc1, 0x0c10);

/// Whether an attempt to attach by tcx failed because the kernel has no tcx.
pub(crate) fn is_needed(error: &ProgramError) -> bool {
    matches!(error, ProgramError::SyscallError(error) if error.io_error.raw_os_error() == Some(Errno::EINVAL as i32))
}

/// Adds the queue discipline to an interface. Returns false if the interface had it already.
///
/// # Errors
/// Fails if the kernel refuses the queue discipline.
pub(crate) fn add(interface: &str) -> Result<bool, ProgramError> {
    match qdisc_add_clsact(interface) {
        Err(TcError::NetlinkError(error)) if error.raw_os_error() == Some(Errno::EEXIST as i32) => Ok(false),
        added => Ok(added.map(|()| true)?),
    }
}

/// Attaches a program by a new filter.
///
/// # Errors
/// Fails if the kernel refuses the filter.
pub(crate) fn attach(
    program: &mut SchedClassifier,
    interface: &str,
    hook: TcAttachType,
) -> Result<(), ProgramError> {
    let attached = by_priority(|priority| {
        let options = NlOptions { priority, handle: HANDLE, classid: None };
        program.attach_with_options(interface, hook, TcAttachOptions::Netlink(options))
    });
    let link = attached?;
    // Dropping the link would remove the filter.
    let _ = ManuallyDrop::new(program.take_link(link)?);
    Ok(())
}

/// Replaces the program of the filter that an earlier process attached.
///
/// # Errors
/// Fails if there is no such filter, or the kernel refuses the program.
pub(crate) fn replace(
    program: &mut SchedClassifier,
    interface: &str,
    hook: TcAttachType,
) -> Result<(), ProgramError> {
    let link = by_priority(|priority| program.attach_to_link(filter(interface, hook, priority)?))?;
    let _ = ManuallyDrop::new(program.take_link(link)?);
    Ok(())
}

/// Removes a box's filters from an interface. Removes the queue discipline too if the box added it and no other filter
/// uses it.
///
/// # Errors
/// Fails if the kernel refuses a removal.
pub(crate) fn remove(interface: &str, is_added: bool) -> io::Result<()> {
    let Ok(index) = if_nametoindex(interface) else { return Ok(()) };
    let hooks = [TcAttachType::Ingress, TcAttachType::Egress];
    for (hook, priority) in hooks.into_iter().flat_map(|hook| PRIORITIES.map(|priority| (hook, priority))) {
        let removed = filter(interface, hook, priority).map_err(io::Error::other)?.detach();
        if let Err(error) = removed
            && !is_missing(&error)
        {
            return Err(io::Error::other(error));
        }
    }
    if !is_added || filters(index)? > 0 {
        return Ok(());
    }
    let delete = Message::new(libc::RTM_DELQDISC, 0, &about(index, QDISC, PARENT));
    match Netlink::route()?.request(&[delete]) {
        // An interface that was recreated has no queue discipline.
        Err(error) if !MISSING.contains(&error.raw_os_error()) => Err(error),
        _ => Ok(()),
    }
}

/// Result of the first priority that the kernel accepts, or the last refusal.
fn by_priority<T>(mut attempt: impl FnMut(u16) -> Result<T, ProgramError>) -> Result<T, ProgramError> {
    let [first, second] = PRIORITIES;
    attempt(first).or_else(|_| attempt(second))
}

fn filter(interface: &str, hook: TcAttachType, priority: u16) -> Result<SchedClassifierLink, ProgramError> {
    Ok(SchedClassifierLink::attached(interface, hook, priority, HANDLE, None).map_err(TcError::IoError)?)
}

/// The kernel's errors if a filter, its queue discipline or its interface does not exist.
const MISSING: [Option<i32>; 3] =
    [Some(Errno::ENOENT as i32), Some(Errno::EINVAL as i32), Some(Errno::ENODEV as i32)];

/// Whether a filter cannot be removed because it does not exist.
fn is_missing(error: &ProgramError) -> bool {
    matches!(error, ProgramError::NetlinkError(error) if MISSING.contains(&error.raw_os_error()))
}

/// Number of filters of both directions of an interface.
///
/// # Errors
/// Fails if the kernel does not list the filters.
pub(crate) fn filters(index: u32) -> io::Result<usize> {
    Ok(listed(index, INGRESS)?.len() + listed(index, EGRESS)?.len())
}

/// Whether both filters of a box are attached to an interface.
///
/// # Errors
/// Fails if the kernel does not list the filters.
pub(crate) fn is_attached(index: u32) -> io::Result<bool> {
    let is_own = |(priority, handle): &Filter| PRIORITIES.contains(priority) && *handle == HANDLE;
    let own = |filters: Vec<Filter>| filters.iter().any(is_own);
    Ok(own(listed(index, INGRESS)?) && own(listed(index, EGRESS)?))
}

/// Priority and handle of a filter.
type Filter = (u16, TcHandle);

/// Filters of one direction of an interface.
fn listed(index: u32, hook: u32) -> io::Result<Vec<Filter>> {
    let mut filters = Vec::new();
    messages(index, hook, |body| {
        let (handle, info) = (u32_at(body, 8)?, u32_at(body, 16)?);
        // The kernel lists a priority once more, with handle 0, for the chain of its filters.
        filters.push(((info >> 16) as u16, TcHandle::from(handle)));
        Some(())
    })?;
    Ok(filters)
}

/// Filters of a hook in the order in which they see a packet: the number of a BPF program, and the name of the program or
/// the kind of the filter.
///
/// # Errors
/// Fails if the kernel does not list the filters.
pub(crate) fn programs(index: u32, kind: TcAttachType) -> io::Result<Vec<(Option<u32>, String)>> {
    let parent = if matches!(kind, TcAttachType::Ingress) { INGRESS } else { EGRESS };
    let mut programs = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned();
    // A message without options stands for all filters of a priority.
    messages(index, parent, |filter| {
        let attributes = filter.get(20..)?;
        let (kind, options) = (attribute(attributes, KIND)?, attribute(attributes, OPTIONS)?);
        let id = attribute(options, BPF_ID).and_then(|id| u32_at(id, 0));
        let name = id.and_then(|_| attribute(options, BPF_NAME));
        programs.push((id, text(name.unwrap_or(kind))));
        Some(())
    })?;
    Ok(programs)
}

/// Reads the kernel's messages about the filters of one direction.
fn messages(index: u32, hook: u32, mut read: impl FnMut(&[u8]) -> Option<()>) -> io::Result<()> {
    let list = Message::list(libc::RTM_GETTFILTER, &about(index, 0, hook));
    Netlink::route()?.list(list, |body| {
        read(body);
    })
}

// Numbers of linux/rtnetlink.h, linux/pkt_sched.h and linux/pkt_cls.h.
const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const BPF_NAME: u16 = 7;
const BPF_ID: u16 = 11;
const QDISC: u32 = 0xffff_0000;
const PARENT: u32 = 0xffff_fff1;
const INGRESS: u32 = 0xffff_fff2;
const EGRESS: u32 = 0xffff_fff3;

/// Content of a request about traffic control of an interface.
fn about(index: u32, handle: u32, parent: u32) -> Vec<u8> {
    let (family, info) = (0, 0);
    [family, index, handle, parent, info].map(u32::to_ne_bytes).concat()
}
