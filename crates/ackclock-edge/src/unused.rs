//! Keys of the `[edge]` table that have no effect because of its other keys.

use ackclock_core::{ConfigError, Unused, name_of};

use crate::{EdgeConfig, REGULATORS};

impl EdgeConfig {
    /// Keys that are not at their default and have no effect, with paths in this table.
    ///
    /// # Errors
    /// Same errors as [`check`](ackclock_core::Config::check).
    pub fn unused(&self) -> Result<Vec<Unused>, ConfigError> {
        let mut unused = self.unused_regulation()?;
        if self.bearer()?.uses_links() {
            let sides = [("down", self.downlink()?.unused()), ("up", self.uplink()?.unused())];
            let under =
                |(side, keys): (&'static str, Vec<Unused>)| keys.into_iter().map(|key| key.under(side));
            unused.extend(sides.into_iter().flat_map(under));
        }
        if let Some(behind) = &self.behind {
            unused.extend(behind.unused()?.into_iter().map(|key| key.under("behind")));
        }
        Ok(unused)
    }

    /// Keys of regulators without effect.
    fn unused_regulation(&self) -> Result<Vec<Unused>, ConfigError> {
        let (side, up) = (self.observes()?, self.up_regulator()?);
        let regulator = self.regulator.config(&REGULATORS).map_err(|error| error.under("regulator"))?;
        let of = |keys: Vec<Unused>, table: &'static str| {
            keys.into_iter().map(move |key| {
                let mut key = key.under(table);
                key.needs.extend(side.map(|_| "bearer".to_owned()));
                key
            })
        };
        let mut unused: Vec<_> = of(regulator.unused(side), "regulator").collect();
        unused.extend(up.into_iter().flat_map(|up| of(up.unused(None), "up_regulator")));
        if self.max_flows != Self::default().max_flows && name_of(&self.regulator) == "none" && up.is_none() {
            let reason = "has no effect, since no flow is regulated: set a `regulator` or an `up_regulator`";
            unused.push(Unused::new("max_flows", &["regulator", "up_regulator"], reason));
        }
        Ok(unused)
    }
}
