//! `ackclock report`: an HTML report of finished runs. Reports are drawn by Python.

use std::ffi::OsString;

use crate::failure::Failure;
use crate::python;

/// Options of the Python half, which describes them itself (`ackclock report --help`).
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// The JSON lines of runs, then the options.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Becomes the Python command; returns where there is none.
pub(crate) fn perform(args: &Args) -> Failure {
    python::become_module(&["report"], &args.arguments)
}
