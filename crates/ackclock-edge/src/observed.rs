//! What an edge may say whose bearer only observes: it has no queue of its own, and knows nothing of the radio behind it.

use ackclock_core::{ConfigError, Size, Streams, name_of};
use ackclock_link::{Files, Side};

use crate::{Edge, EdgeConfig, REGULATORS, Surroundings};

impl EdgeConfig {
    /// The table that says what the radio is like: what stands behind a box that observes, or the edge itself.
    pub fn radio(&self) -> &Self {
        self.behind.as_deref().unwrap_or(self)
    }

    /// The same table, for changing it.
    pub fn radio_mut(&mut self) -> &mut Self {
        match self.behind {
            None => self,
            Some(ref mut behind) => behind,
        }
    }

    /// On which side of the radio a box stands that only observes.
    ///
    /// # Errors
    /// Where the bearer is wrong.
    pub fn observes(&self) -> Result<Option<Side>, ConfigError> {
        Ok(self.bearer()?.observes())
    }

    /// Builds the radio that the box observes, as an edge without a regulator, where it does; and says on which side of it the box stands.
    ///
    /// # Errors
    /// Names the key that is wrong, relative to the table.
    pub fn build_behind(
        &self,
        streams: &Streams,
        files: &dyn Files,
        around: Surroundings,
    ) -> Result<Option<(Side, Edge)>, ConfigError> {
        let (Some(side), Some(behind)) = (self.observes()?, &self.behind) else { return Ok(None) };
        let radio = behind.build(streams, files, around).map_err(|error| error.under("behind"))?;
        Ok(Some((side, radio)))
    }

    pub(crate) fn check_observed(&self, side: Side) -> Result<(), ConfigError> {
        let (usual, kind) = (Self::default(), name_of(&self.bearer));
        let (name, regulator) = (name_of(&self.regulator), REGULATORS.resolve(&self.regulator));
        let observes = if self.bearer()?.regulates() && name != "none" {
            Err("the bearer regulates what passes by itself")
        } else {
            regulator.map_err(|error| error.under("regulator"))?.observes(side).map(|_| ())
        };
        observes.map_err(|reason| {
            let message = format!("`{name}` cannot stand beside a bearer of kind `{kind}`: {reason}");
            ConfigError::new("regulator", message)
        })?;
        if !matches!(self.buffer, Size::Packets(1..) | Size::Bytes(_)) {
            let message = format!(
                "{}: a box that only observes knows no rate to measure it by; a number of packets, \"20p\", or bytes, \"30kB\"",
                self.buffer
            );
            return Err(ConfigError::new("buffer", message));
        }
        let said = [
            ("queue", self.queue != usual.queue),
            ("up_buffer", self.up_buffer.is_some()),
            ("up_queue", self.up_queue.is_some()),
            ("report", self.report.is_some()),
        ];
        if let Some((key, _)) = said.iter().find(|(_, said)| *said) {
            let message = format!(
                "a bearer of kind `{kind}` has no radio of its own, and no queue that can be chosen, so no such key"
            );
            return Err(ConfigError::new(*key, message));
        }
        let Some(behind) = &self.behind else {
            let message =
                "the radio that is observed is missing: a table with `buffer`, `queue`, `down`, `up`";
            return Err(ConfigError::new("behind", message));
        };
        behind.check_behind().map_err(|error| error.under("behind"))
    }

    fn check_behind(&self) -> Result<(), ConfigError> {
        if name_of(&self.regulator) != "none" {
            let message =
                format!("`{}`: the regulator is that of the box, `edge.regulator`", name_of(&self.regulator));
            return Err(ConfigError::new("regulator", message));
        }
        let usual = Self::default();
        let said = [
            ("channel", self.channel != usual.channel),
            ("max_flows", self.max_flows != usual.max_flows),
            ("report", self.report.is_some()),
        ];
        if let Some((key, _)) = said.iter().find(|(_, said)| *said) {
            return Err(ConfigError::new(*key, format!("that is the box's to say: `edge.{key}`")));
        }
        if self.observes()?.is_some() {
            return Err(ConfigError::new(
                "bearer",
                "behind a box that observes stands a radio, not another box",
            ));
        }
        ackclock_core::Config::check(self)
    }
}
