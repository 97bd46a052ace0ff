//! Refused clients, counted by reason.

use crate::asked::Trouble;

/// Reason for which a client is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The client belongs to no allowed network.
    Network,
    /// Too many connections, and none of them is idle.
    Limit,
    /// The request is malformed or could be read in two ways.
    Request,
    /// The client requested an address that is not on another machine.
    Address,
    /// The server is unknown, cannot be reached, or its answer is unreadable.
    Server,
}

impl Refusal {
    /// All reasons.
    pub const ALL: [Self; 5] = [Self::Network, Self::Limit, Self::Request, Self::Address, Self::Server];

    /// Name of the reason in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Limit => "limit",
            Self::Request => "request",
            Self::Address => "address",
            Self::Server => "server",
        }
    }
}

impl From<Trouble> for Refusal {
    fn from(trouble: Trouble) -> Self {
        if trouble == Trouble::Forbidden { Self::Address } else { Self::Server }
    }
}

/// Numbers of refused clients, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedClients([u64; Refusal::ALL.len()]);

impl RefusedClients {
    /// Counts one refused client.
    pub const fn count(&mut self, reason: Refusal) {
        self.0[reason as usize] += 1;
    }

    /// Number of clients refused for a reason.
    pub const fn of(&self, reason: Refusal) -> u64 {
        self.0[reason as usize]
    }

    /// Number of refused clients.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}
