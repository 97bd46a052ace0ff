//! `ackclock paper`: rerun a source document. Claims, figures and verdicts are Python's.

use std::ffi::OsString;

use crate::failure::Failure;
use crate::python;

/// Options of `python -m ackclock paper`, which describes them itself (`ackclock paper --help`).
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// KEY or `all`, then the options.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Becomes the Python command; returns where there is none.
pub(crate) fn perform(args: &Args) -> Failure {
    python::become_module(&["paper"], &args.arguments)
}
