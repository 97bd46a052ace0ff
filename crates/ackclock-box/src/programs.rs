//! BPF programs of others on the interface of a box. A program that runs before the box can keep packets from it.

use std::fmt;

use aya::programs::{ProgramError, SchedClassifier, TcAttachType, loaded_programs};
use serde::Serialize;

use crate::names::PROGRAMS;
use crate::{clsact, devices, interface};

/// Program on an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Program {
    /// Hook of the interface: "xdp", "ingress" or "egress".
    pub hook: &'static str,
    /// Number of the program in the kernel; `None` for a filter of traffic control that is not a BPF program.
    pub id: Option<u32>,
    /// Name of the program, or kind of the filter; empty if the program has no name.
    pub name: String,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(f, "program {id} `{}` at {}", self.name, self.hook),
            None => write!(f, "filter `{}` at {}", self.name, self.hook),
        }
    }
}

impl Program {
    fn is_of_a_box(&self) -> bool {
        PROGRAMS.contains(&self.name.as_str())
    }
}

/// Way to attach programs to the two hooks of an interface, and the programs there in their order.
#[derive(Debug)]
pub(crate) struct Hooks {
    /// Name of the way: "tcx" or "clsact".
    pub(crate) way: &'static str,
    /// Programs at ingress and at egress, each in the order in which they see a packet.
    programs: [Vec<Program>; 2],
}

/// Hooks of traffic control, with their names.
const HOOKS: [(&str, TcAttachType); 2] =
    [("ingress", TcAttachType::Ingress), ("egress", TcAttachType::Egress)];

impl Hooks {
    /// Reads the programs of an interface.
    ///
    /// # Errors
    /// Fails if the kernel does not list the programs.
    pub(crate) fn of(interface: &str) -> Result<Self, ProgramError> {
        let by_tcx = HOOKS.map(|(hook, kind)| tcx(interface, hook, kind));
        match by_tcx {
            [Ok(ingress), Ok(egress)] => Ok(Self { way: "tcx", programs: [ingress, egress] }),
            [Err(error), _] | [_, Err(error)] if !clsact::is_needed(&error) => Err(error),
            _ => {
                let index = interface::index(interface).unwrap_or_default();
                let [ingress, egress] = HOOKS.map(|(hook, kind)| {
                    let program = |(id, name)| Program { hook, id, name };
                    clsact::programs(index, kind).map(|found| found.into_iter().map(program).collect())
                });
                Ok(Self { way: "clsact", programs: [ingress?, egress?] })
            }
        }
    }

    /// Programs that are not those of a box.
    pub(crate) fn others(&self) -> impl Iterator<Item = &Program> {
        self.programs.iter().flatten().filter(|program| !program.is_of_a_box())
    }
}

fn tcx(interface: &str, hook: &'static str, kind: TcAttachType) -> Result<Vec<Program>, ProgramError> {
    let (_, programs) = SchedClassifier::query_tcx(interface, kind)?;
    let name = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let program =
        |info: &aya::programs::ProgramInfo| Program { hook, id: Some(info.id()), name: name(info.name()) };
    Ok(programs.iter().map(program).collect())
}

/// Programs that see the packets of an interface before the box that is attached there; all programs if there is no box.
/// Programs that the kernel does not list for this user are missing.
pub fn before_a_box(interface: &str) -> Vec<Program> {
    let xdp = interface::index(interface).and_then(|index| devices::device(index).ok()?.xdp).map(xdp_program);
    let hooks = Hooks::of(interface).map(|hooks| hooks.programs).unwrap_or_default();
    let before =
        hooks.into_iter().flat_map(|hook| hook.into_iter().take_while(|program| !program.is_of_a_box()));
    xdp.into_iter().chain(before).collect()
}

/// XDP programs see the packets of an interface before every hook of traffic control.
fn xdp_program(id: u32) -> Program {
    let info = loaded_programs().filter_map(Result::ok).find(|info| info.id() == id);
    let name = info.map_or(String::new(), |info| String::from_utf8_lossy(info.name()).into_owned());
    Program { hook: "xdp", id: Some(id), name }
}
