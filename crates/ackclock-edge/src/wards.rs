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
pub(crate) struct WardId(u32);

impl WardId {
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

impl Default for WardId {
    fn default() -> Self {
        Self::NONE
    }
}

/// The regulators of an edge, by number.
pub(crate) struct Wards {
    config: Box<dyn RegulatorConfig>,
    scope: Scope,
    /// Whose flow it is; user 0 where nothing was said.
    users: Vec<u32>,
    wards: Vec<Ward>,
}

/// A regulator and its flows.
#[derive(Default)]
struct Ward {
    regulator: Option<Box<dyn Regulator>>,
    /// How many flows it serves.
    flows: u32,
    /// The one that it heard of last.
    heard: FlowId,
}

impl Wards {
    pub(crate) fn new(config: Box<dyn RegulatorConfig>) -> Self {
        Self { scope: config.scope(), config, users: Vec::new(), wards: Vec::new() }
    }

    /// Tells whose flow it is, before it joins.
    pub(crate) fn assign(&mut self, flow: FlowId, user: u32) {
        if self.users.len() <= flow.index() {
            self.users.resize(flow.index() + 1, 0);
        }
        self.users[flow.index()] = user;
    }

    /// Gives a flow its regulator, which is built where it is the first; none where flows are left alone.
    pub(crate) fn join(&mut self, flow: FlowId) -> WardId {
        let user = self.users.get(flow.index()).copied().unwrap_or(0);
        let number = match self.scope {
            Scope::Flow => flow.0,
            Scope::User => user,
            Scope::Queue => 0,
        };
        let id = WardId(number);
        if self.wards.len() <= id.index() {
            self.wards.resize_with(id.index() + 1, Ward::default);
        }
        let ward = &mut self.wards[id.index()];
        if ward.flows == 0 {
            ward.regulator = self.config.build(FlowContext { flow, user });
        }
        if ward.regulator.is_none() {
            return WardId::NONE;
        }
        ward.flows += 1;
        ward.heard = flow;
        id
    }

    /// A flow that has joined leaves; whether its regulator, which has been told, has gone with it.
    pub(crate) fn leave(&mut self, id: WardId) -> bool {
        let Some(ward) = self.wards.get_mut(id.index()) else { return false };
        ward.flows -= 1;
        if ward.flows == 0 {
            ward.regulator = None;
        }
        ward.flows == 0
    }

    /// The regulator of that number.
    #[inline]
    pub(crate) fn get(&self, id: WardId) -> Option<&dyn Regulator> {
        self.wards.get(id.index())?.regulator.as_deref()
    }

    /// The regulator of that number, to be called.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: WardId) -> Option<&mut (dyn Regulator + 'static)> {
        self.wards.get_mut(id.index())?.regulator.as_deref_mut()
    }

    /// The regulator of that number, to be told of one of its flows.
    #[inline]
    pub(crate) fn hear(&mut self, id: WardId, flow: FlowId) -> Option<&mut (dyn Regulator + 'static)> {
        let ward = self.wards.get_mut(id.index())?;
        ward.heard = flow;
        ward.regulator.as_deref_mut()
    }

    /// The flow that a regulator heard of last.
    pub(crate) fn heard(&self, id: WardId) -> FlowId {
        self.wards.get(id.index()).map_or(FlowId(0), |ward| ward.heard)
    }
}
