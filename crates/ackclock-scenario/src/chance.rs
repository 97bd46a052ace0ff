//! What differs between the runs of a scenario. Runs over a recording that draw nothing would all be the same run, so they start
//! anywhere in it.

use ackclock_core::{ConfigError, Span};
use ackclock_link::Loss;

use crate::{Scenario, Tables};

impl Tables {
    /// Whether links, paths or flows draw anything from the seed.
    ///
    /// # Errors
    /// Where a component is wrong.
    fn draws(&self) -> Result<bool, ConfigError> {
        let paths = [Some(&self.path), self.relay.as_ref().map(|relay| &relay.core)];
        if paths.into_iter().flatten().any(|path| path.loss != Loss::NONE) {
            return Ok(true);
        }
        for flow in &self.flow {
            if flow.spread != Span::ZERO || !flow.lasts()? {
                return Ok(true);
            }
        }
        self.edge.draws()
    }

    /// Lets several runs that would draw nothing start anywhere in their recordings, unless those say where; whether there are such
    /// recordings. What is wrong is left to the check.
    pub(crate) fn begin_anywhere(&mut self) -> bool {
        self.runs > 1 && self.draws().is_ok_and(|draws| !draws) && self.edge.begin_anywhere()
    }
}

/// The remark that runs start anywhere in their recordings though no scenario says so.
pub fn said_of_begins<'a>(scenarios: impl IntoIterator<Item = &'a Scenario>) -> Option<String> {
    let (anywhere, others): (Vec<_>, Vec<_>) =
        scenarios.into_iter().partition(|scenario| scenario.begins_anywhere());
    let first = anywhere.first()?;
    let mixed = match others.iter().any(|scenario| scenario.tables().edge.plays_recording()) {
        true => {
            "; those of other points, which draw something else, start where `begin` says: set it to compare the points"
        }
        false => "",
    };
    Some(format!(
        "{}: nothing else is drawn, so each run starts anywhere in its recording (`begin = \"anywhere\"`); `begin = \"0s\"` \
         starts every run at the beginning{mixed}",
        first.name()
    ))
}
