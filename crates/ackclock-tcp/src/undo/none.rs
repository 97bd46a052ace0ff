//! # No undo
//!
//! ## Source
//! RFC 5681, in which a reduction is never undone.
//!
//! ## What it does
//! Spurious reductions are ignored.
//!
//! ## Differences from the source
//! No deviations from RFC 5681 are known.
//!
//! ## Validation
//! [`NoUndo`] needs no tests, because it does nothing.

use super::{Before, Proof, Redress, Undo};

/// An undo that leaves every reduction in place.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoUndo;

impl Undo for NoUndo {
    fn on_reduction(&mut self, _: &Before) {}

    fn respond(&mut self, _: &Proof) -> Redress {
        Redress::Nothing
    }
}
