//! # ackclock-observe
//!
//! Boxes that only observe a radio queue: the observer that estimates the queue from passing traffic, and the shaper
//! that finds a link's rate. The simulated edge and the box in the kernel use the same observer.

mod autorate;
pub mod estimate;
mod observed;

pub use autorate::{Autorate, AutorateConfig, ShapedQueue};
pub use observed::{Acked, Advertised, Numbers, Observed, ObservedConfig, Observer, Passed, Record};
