//! Estimators over a recent interval of time, for observers of a link and for regulators beside its queue.

mod history;
mod recent;

pub use history::{GRAIN, History, RATE_WINDOWS};
pub use recent::{Recent, WindowedMin};
