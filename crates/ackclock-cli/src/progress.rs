//! A progress bar on a terminal, and silence in a pipe.

use std::io::{self, IsTerminal};

use ackclock_core::text::printable_line;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar over `jobs` jobs, hidden where standard error is no terminal or there is only one job.
pub(crate) fn bar(title: &str, jobs: usize) -> ProgressBar {
    if jobs < 2 || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(jobs as u64), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {human_pos}/{human_len}, {eta} left")
        .expect("the template is a constant that the tests draw");
    bar.set_style(style);
    bar.set_prefix(printable_line(title).into_owned());
    bar
}
