//! Changes of a running cell: channels of its users, errors, delay, and outages.

use std::ops::Range;

use ackclock_core::{ConfigError, Rate, Time};
use ackclock_link::errors::ErrorContext;
use ackclock_link::{CellChange, CellUser, ChangeContext, FadingKind, OutageKind};

use super::Cell;
use super::config::CellConfig;
use super::interruption::{Interruption, InterruptionKind};
use super::member::Member;

/// Key of a cell that may change while the cell runs.
enum CellKey {
    /// Channel of the users of the table `[[edge.user]]` with this number.
    User(usize),
    Loss,
    HarqError,
    Delay,
}

impl CellConfig {
    /// Returns a key of this table, or of a user, that may change while the cell runs.
    fn changed(&self, path: &str) -> Result<CellKey, ConfigError> {
        let mut parts = path.split('.');
        let key = match [parts.next(), parts.next(), parts.next()] {
            [Some("loss"), ..] => Some(CellKey::Loss),
            [Some("delay"), None, _] => Some(CellKey::Delay),
            [Some("harq"), Some("error"), _] if self.harq.is_some() => Some(CellKey::HarqError),
            [Some("user"), Some(number), Some("mean_snr" | "doppler")] => {
                let fades = |&number: &usize| {
                    self.users().get(number).is_some_and(|user| user.fading != FadingKind::Table)
                };
                number.parse().ok().filter(fades).map(CellKey::User)
            }
            _ => None,
        };
        let harq = if self.harq.is_some() { "`harq.error`, " } else { "" };
        let message = format!(
            "is fixed when the cell starts; `loss`, `delay`, {harq}`user.N.mean_snr` and `user.N.doppler` may change, \
             where N is the number of a table [[edge.user]] that has not fading = \"table\""
        );
        key.ok_or_else(|| ConfigError::new(path, message))
    }

    /// Checks that a key of this table, or of a user, may change while the cell runs.
    pub(crate) fn check_changed(&self, path: &str) -> Result<(), ConfigError> {
        self.changed(path).map(drop)
    }

    /// Returns the change by which a running cell gets the value that `path` has here.
    pub(crate) fn change(
        &self,
        path: &str,
        ChangeContext { streams, name, files }: ChangeContext<'_>,
    ) -> Result<CellChange, ConfigError> {
        let processes = |key: &'static str, what: &'static str| {
            let process = move |number| {
                let name = &format!("down/{name}/{what}/{number}");
                let context = ErrorContext { streams, name, files, block: self.slot() };
                let errors = self.harq.as_ref().filter(|_| key == "harq.error").map(|harq| &harq.error);
                errors.unwrap_or(&self.loss).build(context).map_err(|error| error.under(key))
            };
            (0..self.each_user().count()).map(process).collect::<Result<Vec<_>, _>>()
        };
        Ok(match self.changed(path)? {
            CellKey::Loss => CellChange::Loss(processes("loss", "loss")?),
            CellKey::HarqError => CellChange::HarqError(processes("harq.error", "harq")?),
            CellKey::Delay => CellChange::Delay(self.delay.clone()),
            CellKey::User(group) => {
                let user = self.users()[group].clone();
                CellChange::User(numbers_of(self.users(), group), user)
            }
        })
    }
}

/// Numbers of the users of a group.
fn numbers_of(users: &[CellUser], group: usize) -> Range<u32> {
    let count = |users: &[CellUser]| users.iter().map(|user| user.count).sum::<u32>();
    count(&users[..group])..count(&users[..=group])
}

impl Cell {
    /// Changes the cell at `now`.
    pub(crate) fn change(&mut self, now: Time, change: CellChange) {
        self.advance(now);
        let first = self.slots.after(now);
        match change {
            CellChange::User(numbers, user) => {
                let mean_bps = self.reference.config().mean_rate(&user);
                for number in numbers.clone() {
                    let member = &mut self.members[number as usize];
                    member.channel.change(&user, &self.reference.config().rates, first);
                    member.mean_bps = mean_bps;
                    self.reports.set_mean(number, mean_bps);
                }
                self.reference.change(first, numbers.clone(), user);
                self.tell_shares(now, numbers);
            }
            CellChange::Loss(errors) => {
                self.members.iter_mut().zip(errors).for_each(|(member, errors)| member.errors = errors);
            }
            CellChange::HarqError(errors) => {
                let harqs = self.members.iter_mut().filter_map(|member| member.harq.as_mut());
                harqs.zip(errors).for_each(|(harq, errors)| harq.set_errors(errors));
            }
            CellChange::Delay(law) => {
                self.members.iter_mut().for_each(|member| member.delays.change(law.clone()));
            }
            CellChange::Outage(numbers, until, kind) => {
                for member in self.members_of(numbers.clone()) {
                    member.interruption =
                        Some(Interruption { from: now, until, kind: InterruptionKind::Outage(kind) });
                }
                let numbers = numbers.start..numbers.end.min(self.members.len() as u32);
                self.reference.interrupt(numbers.clone(), first, self.slots.after(until));
                self.tell_shares(now, numbers);
            }
        }
    }

    /// Reports the shares of the users with these numbers.
    fn tell_shares(&mut self, now: Time, numbers: Range<u32>) {
        for number in numbers {
            if let Some(share) = self.share(now, number) {
                self.reports.tell(now, number, share, self.backlog.of_user(number));
            }
        }
    }

    /// Share of a user at `now`: zero while the cell does not serve the user. `None` if no reports are requested.
    pub(super) fn share(&self, now: Time, user: u32) -> Option<Rate> {
        let share = self.reports.share(now, user)?;
        let interrupted = self.members[user as usize].is_interrupted(OutageKind::Silent, now);
        Some(if interrupted { Rate::ZERO } else { share })
    }

    fn members_of(&mut self, numbers: Range<u32>) -> impl Iterator<Item = &mut Member> {
        let Range { start, end } = numbers;
        self.members.iter_mut().take(end as usize).skip(start as usize)
    }
}
