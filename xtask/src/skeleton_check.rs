//! Checks in a copy of the workspace that skeletons of `new` compile without warnings, have all headings and satisfy
//! the laws, and that the tutorial's regulator runs.

use std::path::Path;

use crate::copy::{self, laws, of_laws};
use crate::headings;

/// Runs lints and laws in a copy of the workspace with a skeleton of each kind and the tutorial's component.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let copy = copy::complete(root)?;
    copy::cargo(root, &copy, &of_laws("clippy", &["-D", "warnings"]))?;
    copy::cargo(root, &copy, &laws(&[]))?;
    let silent = headings::check(&copy)?;
    if silent.is_empty() { Ok(()) } else { Err(silent.join("\n")) }
}

/// Runs the last step of the tutorial in a copy of the workspace: the new regulator in a comparison.
pub(crate) fn tutorial(root: &Path) -> Result<(), String> {
    let copy = copy::with_tutorial(root)?;
    let compare = ["compare", "scenarios/demo.toml", "--regulators", "none,ack-pacer", "--senders", "cubic"];
    let run = ["run", "--quiet", "--package", "ackclock-cli", "--"].into_iter().chain(compare);
    copy::cargo(root, &copy, &run.map(str::to_owned).collect::<Vec<_>>())
}
