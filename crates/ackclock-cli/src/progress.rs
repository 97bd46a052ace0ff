//! Progress bar on a terminal for the runs of a batch or for a single run. No progress bar is shown if standard error
//! is not a terminal.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use ackclock_core::text::printable_line;
use ackclock_scenario::{Progress, Stage};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Progress display of a batch.
pub(crate) struct Shown {
    bar: ProgressBar,
    /// Progress of the run, if the batch has only one run.
    pub(crate) only: Arc<Progress>,
    jobs: usize,
}

const OF_BATCH: &str = "{prefix} {wide_bar} {human_pos}/{human_len}, {eta} left";
const OF_RUN: &str = "{prefix} {wide_bar} {percent} % {msg}, {eta} left";
/// Minimum duration of a run for which a bar is shown.
const SHORT: Duration = Duration::from_millis(500);
/// Number of steps of the progress bar of one run.
const STEPS: f64 = 1000.0;

impl Shown {
    /// Creates the progress bar of a batch. The progress bar is hidden if standard error is not a terminal. For a
    /// single job, the progress bar appears after a delay.
    pub(crate) fn new(title: &str, jobs: usize) -> Self {
        let (template, target) = match jobs {
            1 => (OF_RUN, ProgressDrawTarget::hidden()),
            _ => (OF_BATCH, ProgressDrawTarget::stderr()),
        };
        let style = ProgressStyle::with_template(template).expect("a test draws both templates");
        let bar = ProgressBar::with_draw_target(Some(jobs as u64), target);
        bar.set_style(style);
        bar.set_prefix(printable_line(title).into_owned());
        Self { bar, only: Arc::default(), jobs }
    }

    /// Advances the progress bar by one finished job.
    pub(crate) fn done(&self) {
        if self.jobs > 1 {
            self.bar.inc(1);
        }
    }

    /// Updates the bar of a batch with only one run until the run is done.
    pub(crate) fn attend(&self) {
        if self.jobs != 1 || self.bar.elapsed() < SHORT {
            return;
        }
        if self.bar.is_hidden() && io::stderr().is_terminal() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        let (words, done, all) = match self.only.stage() {
            Stage::Building { built, flows } => ("of the flows are built", built, flows),
            Stage::Simulating(share) => ("are simulated", (share * STEPS) as u64, STEPS as u64),
        };
        if self.bar.message() != words {
            self.bar.set_message(words);
            self.bar.reset_eta();
        }
        self.bar.set_length(all);
        self.bar.set_position(done);
    }

    /// Removes the progress bar from the terminal.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_bars_can_be_drawn() {
        for jobs in [1, 2] {
            let shown = Shown::new("first", jobs);
            shown.attend();
            shown.done();
            shown.clear();
            assert!(shown.bar.is_finished());
        }
    }
}
