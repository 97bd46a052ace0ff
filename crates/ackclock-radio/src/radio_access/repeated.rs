//! HARQ of a dedicated channel: a TTI that failed is sent again in a later TTI, before new data.

use std::collections::VecDeque;

use ackclock_core::results::HarqResult;
use ackclock_core::{ConfigError, Time};
use ackclock_link::errors::ErrorContext;
use ackclock_link::{Fate, Repetitions};

use super::filling::OfChannel;
use crate::cell::{Harq, HarqConfig, Rest};

/// A PDU that HARQ has finished, with its retransmissions; `None` if the PDU was lost.
pub(super) type Landed = (OfChannel, Option<Repetitions>);

/// TTIs of a dedicated channel that may be sent again.
pub(super) struct Repeated {
    harq: Harq<OfChannel>,
    /// Times from which failed TTIs may be sent again.
    returns: VecDeque<Time>,
    /// Finished PDUs, each with the time at which it reaches the end of the channel, without the delay of the channel.
    landed: VecDeque<(Time, Landed)>,
}

impl Repeated {
    /// Creates the HARQ of a channel whose stream of errors has the name of `errors`.
    pub(super) fn new(config: &HarqConfig, errors: ErrorContext<'_>) -> Result<Self, ConfigError> {
        let names =
            ["harq", "harq/again", "harq/feedback"].map(|what| errors.name.replacen("errors", what, 1));
        let harq = Harq::new(config, names.each_ref().map(|name| ErrorContext { name, ..errors }))?;
        Ok(Self { harq, returns: VecDeque::new(), landed: VecDeque::new() })
    }

    /// Time from which a failed TTI may be sent again; [`Time::NEVER`] if none has failed.
    pub(super) fn due(&self) -> Time {
        self.returns.front().copied().unwrap_or(Time::NEVER)
    }

    /// Starts to send a failed TTI again at `now`. Returns its number of units, or `None` if no TTI is due.
    pub(super) fn repeat(&mut self, now: Time) -> Option<u64> {
        self.returns.pop_front_if(|&mut due| due <= now)?;
        self.harq.repeat(now).map(|(units, _)| units)
    }

    /// Adds a TTI with new data of `units` units that ends at `ends`.
    pub(super) fn add(&mut self, ends: Time, pdus: &[OfChannel], units: u64) {
        self.harq.sent(ends, pdus, Rest::Empty, units, 0.0);
    }

    /// Ends the TTI that lasts from `began` to `ends`, with the fate `radio` unless it has an error.
    pub(super) fn land(&mut self, began: Time, ends: Time, radio: Fate) {
        self.returns.extend(self.harq.land(began, ends, radio));
        while let Some((sent, fate, repetitions)) = self.harq.release() {
            let told = (fate == Fate::Arrives).then_some(repetitions);
            let earliest = self.landed.back().map_or(ends, |&(last, _)| ends.max(last));
            let wait = if told.is_some() { self.harq.take_wait() } else { Default::default() };
            self.landed.push_back((earliest + wait, (sent, told)));
        }
    }

    /// Time of the next finished PDU.
    pub(super) fn next_landed(&self) -> Option<Time> {
        self.landed.front().map(|&(at, _)| at)
    }

    /// Removes and returns the next finished PDU.
    pub(super) fn take(&mut self) -> Option<Landed> {
        self.landed.pop_front().map(|(_, landed)| landed)
    }

    /// Counts of all blocks so far.
    pub(super) const fn counted(&self) -> HarqResult {
        self.harq.counted
    }

    /// Loses all PDUs. Returns the number of data PDUs among them.
    pub(super) fn clear(&mut self) -> u64 {
        self.returns.clear();
        let landed = self.landed.drain(..).map(|(_, (sent, _))| sent);
        self.harq.withdraw().chain(landed).map(|(_, sent)| sent.pdu.data_pdus()).sum()
    }
}
