//! `ackclock model`: throughput by formula. The analytical models are Python's.

use std::ffi::OsString;

use crate::failure::Failure;
use crate::python;

/// Options of `python -m ackclock model`, which describes them itself (`ackclock model --help`).
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// The model, then its parameters.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Becomes the Python command; returns where there is none.
pub(crate) fn perform(args: &Args) -> Failure {
    python::become_module(&["model"], &args.arguments)
}
