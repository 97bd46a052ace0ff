//! # No undo
//!
//! ## Source
//! RFC 5681: a reduction is never undone.
//!
//! ## What it does
//! Ignores spurious reductions.
//!
//! ## Differences from the source
//! None.
//!
//! ## Validation
//! Not needed.

use super::{Before, Proof, Redress, Undo};

/// Leaves every reduction in place.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoUndo;

impl Undo for NoUndo {
    fn on_reduction(&mut self, _: &Before) {}

    fn respond(&mut self, _: &Proof) -> Redress {
        Redress::Nothing
    }
}
