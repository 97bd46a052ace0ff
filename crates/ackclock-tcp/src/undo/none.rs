//! # No undo
//!
//! ## Source
//! RFC 5681: a reduction is never taken back.
//!
//! ## What it does
//! Nothing.
//!
//! ## Differences from the source
//! None.
//!
//! ## Validation
//! None needed.

use super::{Before, Proof, Redress, Undo};

/// Leaves every reduction as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoUndo;

impl Undo for NoUndo {
    fn on_reduction(&mut self, _: &Before) {}

    fn respond(&mut self, _: &Proof) -> Redress {
        Redress::Nothing
    }
}
