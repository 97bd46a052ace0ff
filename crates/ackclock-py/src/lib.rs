//! # ackclock-py
//!
//! The Python module `ackclock._core`, which only converts between Python and the Rust crates.
//! `python/ackclock/_core.pyi` documents its interface.

mod arguments;
mod classes;
mod files;
mod json;
mod runs;
mod sender;
mod series;
mod trace;

use pyo3::prelude::*;

/// The compiled module, which only converts between Python and the Rust crates.
#[pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::classes::{
        AckInfo, CongestionInfo, Packet, PythonControl, PythonRegulator, Queue, add_congestion_control,
        add_regulator,
    };
    #[pymodule_export]
    use crate::files::write_whole;
    #[pymodule_export]
    use crate::runs::{Jobs, RunOutcome, list_components, run, run_many, sweep};
    #[pymodule_export]
    use crate::sender::{HandDrivenSender, SentSegment};
    #[pymodule_export]
    use crate::trace::{read_recording, trace};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
