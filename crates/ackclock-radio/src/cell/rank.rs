//! Rank of a class of service among the classes of a user, and its weight among users.

/// Rank of a class of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rank {
    /// Packets of a class with a lower number are sent first; classes with equal numbers are served in turn.
    pub(crate) priority: u16,
    /// Weight by which the scheduler multiplies the claim of a user that has packets of this class.
    pub(crate) weight: u16,
}

impl Default for Rank {
    /// Rank of the only class of a cell without classes.
    fn default() -> Self {
        Self { priority: 1, weight: 1 }
    }
}
