//! Hand-overs of users: the steps `handover` of `[[edge.at]]`.

use std::collections::BTreeMap;

use ackclock_core::{ConfigError, Span, Time, name_of};
use ackclock_link::{Handover, HandoverTo};

use crate::scheduled::{HandoverEvent, Handovers};
use crate::{EdgeConfig, HandoverTable, Step};

/// Start and end of the latest hand-over of each user.
type Latest = BTreeMap<u32, [Span; 2]>;

impl EdgeConfig {
    /// Returns the hand-overs that `at` describes.
    ///
    /// # Errors
    /// Fails with the invalid key of a step.
    pub(crate) fn handovers(&self) -> Result<Handovers, ConfigError> {
        let (mut handovers, mut latest) = (Handovers::default(), Latest::new());
        for (number, step) in self.at.iter().enumerate() {
            let under = |error: ConfigError| error.under(&format!("at[{number}]"));
            check_time(step, &latest).map_err(under)?;
            let Some(table) = step.handover else { continue };
            if step.outage.is_some() {
                let message = "a step is an outage or a hand-over, not both";
                return Err(under(ConfigError::new("outage", message)));
            }
            self.check_handover(&table).map_err(|error| under(error.under("handover")))?;
            let end = Span::from_nanos(step.time.as_nanos().saturating_add(table.lasts.as_nanos()));
            latest.insert(table.user, [step.time, end]);
            let [time, until] = [step.time, end].map(|span| Time::ZERO + span);
            let HandoverTable { user, to, forward, regulator, .. } = table;
            let forward = forward.unwrap_or(to == HandoverTo::Controller);
            let begins = Handover { user, to, until, forward };
            handovers.add(time, HandoverEvent::Begins(begins, regulator.unwrap_or_default()));
            if until > time {
                handovers.add(until, HandoverEvent::Ends(user));
            }
        }
        Ok(handovers)
    }

    fn check_handover(&self, table: &HandoverTable) -> Result<(), ConfigError> {
        let bearer = self.bearer()?;
        if !bearer.hands_over() {
            let message = format!(
                "a bearer of kind `{}` has no hand-over; bearer = \"radio-access\" has",
                name_of(&self.bearer)
            );
            return Err(ConfigError::new("user", message));
        }
        self.check_user(table.user)?;
        if table.regulator.is_some() && table.to == HandoverTo::Cell {
            let message = "a hand-over to another cell keeps the controller and its regulator; \
                           to = \"controller\" takes this key";
            return Err(ConfigError::new("regulator", message));
        }
        Ok(())
    }
}

/// Refuses a step within a running hand-over, unless the step is the hand-over of another user.
fn check_time(step: &Step, latest: &Latest) -> Result<(), ConfigError> {
    let own = step.handover.map(|table| table.user);
    let of_all = !step.set.is_empty() || step.outage.is_some();
    for (&user, &[start, end]) in latest.iter().filter(|&(&user, _)| of_all || own == Some(user)) {
        if step.time < end {
            let message =
                format!("{} is within the hand-over of user {user}, which ends at {end}", step.time);
            return Err(ConfigError::new("time", message));
        }
        if own == Some(user) && step.time == start {
            return Err(ConfigError::new("time", format!("{start} has another hand-over of user {user}")));
        }
    }
    Ok(())
}
