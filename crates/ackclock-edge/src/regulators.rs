//! The regulators of an edge, and the flows that each regulator serves.
//!
//! A regulator is built for its first flow and removed after its last flow. An edge never has more regulators than
//! regulated flows.

use std::sync::Arc;

use ackclock_core::FlowId;

use crate::{FlowContext, Regulator, RegulatorConfig, Scope};

/// Number of a regulator: the number of its flow, or of its user and class, or 0 if all flows share one regulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RegulatorId(u32);

impl RegulatorId {
    /// Number that marks a flow without a regulator.
    pub(crate) const NONE: Self = Self(u32::MAX);

    pub(crate) const fn at(slot: usize) -> Self {
        Self(slot as u32)
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the regulator's number, or `None` for [`NONE`](Self::NONE).
    #[inline]
    pub(crate) fn some(self) -> Option<Self> {
        if self == Self::NONE { None } else { Some(self) }
    }
}

impl Default for RegulatorId {
    fn default() -> Self {
        Self::NONE
    }
}

/// All regulators of an edge, indexed by number.
pub(crate) struct Regulators {
    config: Arc<dyn RegulatorConfig>,
    scope: Scope,
    /// User of each flow: 0 by default, [`LEFT_ALONE`] for an unregulated flow.
    users: Vec<u32>,
    /// Number of classes of service.
    pub(crate) classes: u32,
    /// Class of service of each flow: 0 by default.
    class_of: Vec<u8>,
    entries: Vec<Entry>,
}

/// Marker stored instead of the user for an unregulated flow.
const LEFT_ALONE: u32 = u32::MAX;

/// A regulator, and the number of flows that it serves.
#[derive(Default)]
struct Entry {
    regulator: Option<Box<dyn Regulator>>,
    /// Number of flows that the regulator serves.
    flows: u32,
    /// Flow of the latest call to the regulator.
    heard: FlowId,
}

impl Regulators {
    pub(crate) fn new(config: Arc<dyn RegulatorConfig>) -> Self {
        let scope = config.scope();
        Self { scope, config, users: Vec::new(), classes: 1, class_of: Vec::new(), entries: Vec::new() }
    }

    /// Sets the user of a flow, before the flow joins a regulator.
    pub(crate) fn assign(&mut self, flow: FlowId, user: u32) {
        if self.users.len() <= flow.index() {
            self.users.resize(flow.index() + 1, 0);
        }
        self.users[flow.index()] = user;
    }

    /// Sets the class of service of a flow, before the flow joins a regulator.
    pub(crate) fn classify(&mut self, flow: FlowId, class: u8) {
        if self.classes == 1 {
            return;
        }
        if self.class_of.len() <= flow.index() {
            self.class_of.resize(flow.index() + 1, 0);
        }
        self.class_of[flow.index()] = class;
    }

    /// Returns the user of a flow.
    pub(crate) fn user(&self, flow: FlowId) -> u32 {
        self.users.get(flow.index()).copied().unwrap_or(0)
    }

    /// Returns the class of service of a flow.
    fn class(&self, flow: FlowId) -> u32 {
        u32::from(self.class_of.get(flow.index()).copied().unwrap_or(0)).min(self.classes - 1)
    }

    /// Marks a flow as unregulated.
    pub(crate) fn leave_alone(&mut self, flow: FlowId) {
        self.assign(flow, LEFT_ALONE);
    }

    /// Marks a flow as an upload. The flow gets a regulator only if the regulators act on uploads.
    pub(crate) fn leave_upload_alone(&mut self, flow: FlowId) {
        if !self.config.regulates_uploads() {
            self.leave_alone(flow);
        }
    }

    /// Marks a flow whose headers cannot be read. The flow gets a regulator only if the regulators need no headers.
    pub(crate) fn hide_headers(&mut self, flow: FlowId) {
        if self.config.reads_headers() {
            self.leave_alone(flow);
        }
    }

    /// Assigns a regulator to a flow, and builds the regulator if this is its first flow. Returns `NONE` if flows are
    /// unregulated.
    pub(crate) fn join(&mut self, flow: FlowId) -> RegulatorId {
        let user = self.user(flow);
        if user == LEFT_ALONE {
            return RegulatorId::NONE;
        }
        let number = match self.scope {
            Scope::Flow => flow.0,
            Scope::User => user * self.classes + self.class(flow),
            Scope::Queue => 0,
        };
        let id = RegulatorId(number);
        if self.entries.len() <= id.index() {
            self.entries.resize_with(id.index() + 1, Entry::default);
        }
        let entry = &mut self.entries[id.index()];
        if entry.flows == 0 {
            entry.regulator = self.config.build(FlowContext { flow, user });
        }
        if entry.regulator.is_none() {
            return RegulatorId::NONE;
        }
        entry.flows += 1;
        entry.heard = flow;
        id
    }

    /// Assigns a regulator to a flow whose handshake the regulator has not seen. Returns `NONE` if the regulators need
    /// the handshake.
    pub(crate) fn join_midway(&mut self, flow: FlowId) -> RegulatorId {
        if self.config.needs_handshake() { RegulatorId::NONE } else { self.join(flow) }
    }

    /// Removes a flow from its regulator. Returns whether the regulator was also removed.
    pub(crate) fn leave(&mut self, id: RegulatorId) -> bool {
        let Some(entry) = self.entries.get_mut(id.index()) else { return false };
        entry.flows -= 1;
        if entry.flows == 0 {
            entry.regulator = None;
        }
        entry.flows == 0
    }

    /// Returns the regulator with this number.
    #[inline]
    pub(crate) fn get(&self, id: RegulatorId) -> Option<&dyn Regulator> {
        self.entries.get(id.index())?.regulator.as_deref()
    }

    /// Returns the regulator with this number, for changing it.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: RegulatorId) -> Option<&mut (dyn Regulator + 'static)> {
        self.entries.get_mut(id.index())?.regulator.as_deref_mut()
    }

    /// Returns the regulator with this number, for a call about `flow`, and notes the flow.
    #[inline]
    pub(crate) fn hear(&mut self, id: RegulatorId, flow: FlowId) -> Option<&mut (dyn Regulator + 'static)> {
        let entry = self.entries.get_mut(id.index())?;
        entry.heard = flow;
        entry.regulator.as_deref_mut()
    }

    /// Returns the flow of the latest call to this regulator.
    pub(crate) fn heard(&self, id: RegulatorId) -> FlowId {
        self.entries.get(id.index()).map_or(FlowId(0), |entry| entry.heard)
    }
}
