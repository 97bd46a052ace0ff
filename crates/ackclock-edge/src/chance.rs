//! Determines which parts of a channel are random.

use ackclock_core::{ConfigError, name_of};
use ackclock_import::Begin;
use ackclock_link::Loss;

use crate::EdgeConfig;

impl EdgeConfig {
    /// Returns whether any property of the channel is drawn from the seed. Random drops of a queue discipline do not
    /// count as properties of the channel.
    ///
    /// # Errors
    /// Fails if a link or the bearer is invalid.
    pub fn draws(&self) -> Result<bool, ConfigError> {
        let radio = self.radio();
        let reports = self.report.as_ref();
        if reports.is_some_and(|report| report.delay.constant().is_none() || report.loss != Loss::NONE) {
            return Ok(true);
        }
        if !radio.bearer()?.uses_links() {
            return Ok(true);
        }
        Ok(radio.downlink()?.draws() || radio.uplink()?.draws())
    }

    /// Gives each recording without `begin` a random start offset. Returns whether any recording was changed.
    pub fn begin_anywhere(&mut self) -> bool {
        let radio = self.radio_mut();
        let mut any = false;
        for table in [radio.down.edit(), radio.up.edit()] {
            let is_open = name_of(table) == "trace" && table.get("begin").is_none();
            if let (true, Some(keys)) = (is_open, table.as_object_mut()) {
                keys.insert("begin".to_owned(), Begin::ANYWHERE.into());
                any = true;
            }
        }
        any
    }

    /// Paths of the recordings that the links play.
    pub fn recordings(&self) -> Vec<&str> {
        let radio = self.radio();
        let played = [&radio.down, &radio.up].into_iter().filter(|table| name_of(table) == "trace");
        let parts = played
            .flat_map(|table| [table.get("file"), table.get("light").and_then(|light| light.get("file"))]);
        parts.flatten().filter_map(|path| path.as_str()).collect()
    }

    /// Returns whether this link plays a recording.
    pub fn plays_recording(&self) -> bool {
        let radio = self.radio();
        [&radio.down, &radio.up].into_iter().any(|table| name_of(table) == "trace")
    }
}
