//! `ackclock completions`: completion scripts for shells.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::Cli;
use crate::failure::Failure;
use crate::output;

/// Print a completion script for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Shell that the completion script is for.
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  ackclock completions bash > ~/.local/share/bash-completion/completions/ackclock
  ackclock completions fish > ~/.config/fish/completions/ackclock.fish";

/// Prints the completion script.
pub(crate) fn perform(args: &Args) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ackclock", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
