//! Random differences between the runs of a scenario. Runs over a recording would be identical without random numbers,
//! so in this case each run starts at a random offset.

use ackclock_core::{ConfigError, Span};
use ackclock_link::Loss;

use crate::{Scenario, Tables};

impl Tables {
    /// Whether links, paths or flows use random numbers.
    ///
    /// # Errors
    /// Fails if a component is invalid.
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

    /// Sets a random start offset for recordings, if the scenario has several runs that would otherwise be identical
    /// and `begin` is not set. Returns whether the offset was set. Errors in the scenario are reported by the check.
    pub(crate) fn begin_anywhere(&mut self) -> bool {
        self.runs > 1 && self.draws().is_ok_and(|draws| !draws) && self.edge.begin_anywhere()
    }
}

/// Note to the user that each run starts at a random offset of its recording, because nothing else is random; `None` if
/// no scenario needs the note.
pub fn said_of_begins<'a>(scenarios: impl IntoIterator<Item = &'a Scenario>) -> Option<String> {
    let (anywhere, others): (Vec<_>, Vec<_>) =
        scenarios.into_iter().partition(|scenario| scenario.begins_anywhere());
    let first = anywhere.first()?;
    let mixed = match others.iter().any(|scenario| scenario.tables().edge.plays_recording()) {
        true => {
            "; runs of other points, which use random numbers, start at `begin`: set it to compare the points"
        }
        false => "",
    };
    Some(format!(
        "{}: nothing else is random, so each run starts at a random offset of its recording (`begin = \"anywhere\"`); \
         `begin = \"0s\"` starts every run at the beginning{mixed}",
        first.name()
    ))
}
