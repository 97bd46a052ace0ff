//! The regulators of an edge, each with the flows that it serves.
//!
//! A regulator is built when the first of its flows is seen and goes with the last that ends, so that there are never more
//! regulators than regulated flows.

use ackclock_core::FlowId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FlowContext, Regulator, RegulatorConfig};

/// Whose flows one regulator serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Each flow has a regulator of its own.
    #[default]
    Flow,
    /// The flows of a user share a regulator.
    User,
    /// All flows of the edge share a regulator.
    Queue,
}

/// The number of a regulator: that of its flow or user, or 0 where all flows share one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RegulatorId(u32);

impl RegulatorId {
    /// Of a flow that has no regulator.
    pub(crate) const NONE: Self = Self(u32::MAX);

    pub(crate) const fn at(slot: usize) -> Self {
        Self(slot as u32)
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// Nothing where there is no regulator.
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

/// The regulators of an edge, by number.
pub(crate) struct Regulators {
    config: Box<dyn RegulatorConfig>,
    scope: Scope,
    /// Whose flow it is; user 0 where nothing was said, [`LEFT_ALONE`] where it is left alone.
    users: Vec<u32>,
    entries: Vec<Entry>,
}

/// In the place of the user of a flow that is left alone.
const LEFT_ALONE: u32 = u32::MAX;

/// A regulator and its flows.
#[derive(Default)]
struct Entry {
    regulator: Option<Box<dyn Regulator>>,
    /// How many flows it serves.
    flows: u32,
    /// The one that it heard of last.
    heard: FlowId,
}

impl Regulators {
    pub(crate) fn new(config: Box<dyn RegulatorConfig>) -> Self {
        Self { scope: config.scope(), config, users: Vec::new(), entries: Vec::new() }
    }

    /// Tells whose flow it is, before it joins.
    pub(crate) fn assign(&mut self, flow: FlowId, user: u32) {
        if self.users.len() <= flow.index() {
            self.users.resize(flow.index() + 1, 0);
        }
        self.users[flow.index()] = user;
    }

    /// Whose flow it is.
    pub(crate) fn user(&self, flow: FlowId) -> u32 {
        self.users.get(flow.index()).copied().unwrap_or(0)
    }

    /// The flow is an upload: it will have no regulator, where they do not act on those.
    pub(crate) fn leave_upload_alone(&mut self, flow: FlowId) {
        if !self.config.regulates_uploads() {
            self.assign(flow, LEFT_ALONE);
        }
    }

    /// Gives a flow its regulator, which is built where it is the first; none where flows are left alone.
    pub(crate) fn join(&mut self, flow: FlowId) -> RegulatorId {
        let user = self.user(flow);
        if user == LEFT_ALONE {
            return RegulatorId::NONE;
        }
        let number = match self.scope {
            Scope::Flow => flow.0,
            Scope::User => user,
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

    /// A flow that has joined leaves; whether its regulator, which has been told, has gone with it.
    pub(crate) fn leave(&mut self, id: RegulatorId) -> bool {
        let Some(entry) = self.entries.get_mut(id.index()) else { return false };
        entry.flows -= 1;
        if entry.flows == 0 {
            entry.regulator = None;
        }
        entry.flows == 0
    }

    /// The regulator of that number.
    #[inline]
    pub(crate) fn get(&self, id: RegulatorId) -> Option<&dyn Regulator> {
        self.entries.get(id.index())?.regulator.as_deref()
    }

    /// The regulator of that number, to be called.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: RegulatorId) -> Option<&mut (dyn Regulator + 'static)> {
        self.entries.get_mut(id.index())?.regulator.as_deref_mut()
    }

    /// The regulator of that number, to be told of one of its flows.
    #[inline]
    pub(crate) fn hear(&mut self, id: RegulatorId, flow: FlowId) -> Option<&mut (dyn Regulator + 'static)> {
        let entry = self.entries.get_mut(id.index())?;
        entry.heard = flow;
        entry.regulator.as_deref_mut()
    }

    /// The flow that a regulator heard of last.
    pub(crate) fn heard(&self, id: RegulatorId) -> FlowId {
        self.entries.get(id.index()).map_or(FlowId(0), |entry| entry.heard)
    }
}
