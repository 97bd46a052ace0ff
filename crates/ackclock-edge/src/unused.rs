//! Keys of the `[edge]` table that have no effect because of its other keys.

use ackclock_core::{ConfigError, Unused, name_of};

use crate::{EdgeConfig, Properties, REGULATORS, RegulatorConfig};

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
        let up = self.up_regulator()?;
        let regulator = self.regulator.config(&REGULATORS).map_err(|error| error.under("regulator"))?;
        let [down_bearer, up_bearer] = self.properties()?;
        let mut unused = of_regulator("regulator", &**regulator, down_bearer);
        unused.extend(up.into_iter().flat_map(|up| of_regulator("up_regulator", &**up, up_bearer)));
        if self.max_flows != Self::default().max_flows && name_of(&self.regulator) == "none" && up.is_none() {
            let reason = "has no effect, since no flow is regulated: set a `regulator` or an `up_regulator`";
            unused.push(Unused::new("max_flows", &["regulator", "up_regulator"], reason));
        }
        Ok(unused)
    }

    /// Properties of the bearer in each direction.
    fn properties(&self) -> Result<[Properties; 2], ConfigError> {
        let bearer = self.bearer()?;
        let keeps_sent = match bearer.uses_links() {
            true => [self.downlink()?.keeps_sent(), self.uplink()?.keeps_sent()],
            false => [bearer.keeps_sent(); 2],
        };
        let observes = [bearer.observes(), None];
        Ok([0, 1].map(|side| Properties { observes: observes[side], keeps_sent: keeps_sent[side] }))
    }
}

/// Keys of the edge that select the bearer's [`Properties`].
const OF_BEARER: [&str; 7] =
    ["bearer", "down.kind", "down.harq", "down.inner", "up.kind", "up.harq", "up.inner"];

/// Keys without effect of the regulator at `table`. A key that another bearer would use also depends on the bearer.
fn of_regulator(table: &str, regulator: &dyn RegulatorConfig, bearer: Properties) -> Vec<Unused> {
    let with_any = regulator.unused(Properties { observes: None, keeps_sent: true });
    let of = |key: Unused| {
        let is_of_bearer = !with_any.contains(&key);
        let mut key = key.under(table);
        key.needs.extend(OF_BEARER.iter().filter(|_| is_of_bearer).map(|&key| key.to_owned()));
        key
    };
    regulator.unused(bearer).into_iter().map(of).collect()
}
