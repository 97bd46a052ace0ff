//! Support for an edge whose bearer only observes. A bearer that only observes has no queue and no radio of its own.

use ackclock_core::{ConfigError, Size, Streams, name_of};
use ackclock_link::{Files, Side};

use crate::{Edge, EdgeConfig, REGULATORS, Surroundings};

/// Checks that a box can have this buffer.
pub(crate) fn check_box_buffer(buffer: Size) -> Result<(), ConfigError> {
    match buffer {
        Size::Packets(1..) | Size::Bytes(1..) => Ok(()),
        Size::Bdp(times) if times > 0.0 => Ok(()),
        other => {
            let allowed = "packets, \"20p\", bytes, \"30kB\", or multiples of the measured bandwidth-delay product, \"3bdp\"";
            Err(ConfigError::new("buffer", format!("{other}: a box that only observes takes {allowed}")))
        }
    }
}

impl EdgeConfig {
    /// Returns the table that describes the radio: `behind` if the bearer only observes, otherwise the edge's own
    /// table.
    pub fn radio(&self) -> &Self {
        self.behind.as_deref().unwrap_or(self)
    }

    /// Returns the table that describes the radio, for changing it.
    pub fn radio_mut(&mut self) -> &mut Self {
        match self.behind {
            None => self,
            Some(ref mut behind) => behind,
        }
    }

    /// Side of the radio on which an observing box is located; `None` if the bearer does not observe.
    ///
    /// # Errors
    /// Fails if the bearer is invalid.
    pub fn observes(&self) -> Result<Option<Side>, ConfigError> {
        Ok(self.bearer()?.observes())
    }

    /// Builds the radio behind an observing box as an edge without a regulator. The returned side is the side of the
    /// radio on which the box is located.
    ///
    /// # Errors
    /// Fails with the invalid key, relative to this table.
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
        let (name, regulator) = (name_of(&self.regulator), self.regulator.config(&REGULATORS));
        let observes = if self.bearer()?.regulates() && name != "none" {
            Err("the bearer regulates traffic itself")
        } else {
            regulator.map_err(|error| error.under("regulator"))?.observes(side).map(|_| ())
        };
        observes.map_err(|reason| {
            let message = format!("`{name}` cannot be used with a bearer of kind `{kind}`: {reason}");
            ConfigError::new("regulator", message)
        })?;
        check_box_buffer(self.buffer)?;
        let said = [
            ("queue", self.queue != usual.queue),
            ("age_limit", self.age_limits()[0].is_some()),
            ("up_age_limit", self.age_limits()[1].is_some()),
            ("up_buffer", self.up_buffer.is_some()),
            ("up_queue", self.up_queue.is_some()),
            ("up_regulator", self.up_regulator.is_some()),
            ("report", self.report.is_some()),
        ];
        if let Some((key, _)) = said.iter().find(|(_, said)| *said) {
            let message = format!(
                "a bearer of kind `{kind}` has no radio and no configurable queue, so this key is not allowed"
            );
            return Err(ConfigError::new(*key, message));
        }
        let Some(behind) = &self.behind else {
            let message = "the observed radio is missing: add a table with `buffer`, `queue`, `down`, `up`";
            return Err(ConfigError::new("behind", message));
        };
        behind.check_behind().map_err(|error| error.under("behind"))
    }

    fn check_behind(&self) -> Result<(), ConfigError> {
        if name_of(&self.regulator) != "none" {
            let message = format!(
                "`{}`: the observing box has the regulator; set `edge.regulator`",
                name_of(&self.regulator)
            );
            return Err(ConfigError::new("regulator", message));
        }
        let usual = Self::default();
        let said = [
            ("channel", self.channel != usual.channel),
            ("max_flows", self.max_flows != usual.max_flows),
            ("up_regulator", self.up_regulator.is_some()),
            ("report", self.report.is_some()),
        ];
        if let Some((key, _)) = said.iter().find(|(_, said)| *said) {
            return Err(ConfigError::new(*key, format!("a setting of the observing box; use `edge.{key}`")));
        }
        if self.observes()?.is_some() {
            return Err(ConfigError::new(
                "bearer",
                "behind an observing box must be a radio, not another observing box",
            ));
        }
        ackclock_core::Config::check(self)
    }
}
