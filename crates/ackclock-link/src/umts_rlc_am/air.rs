//! The radio of a direction: TTIs on their way, and which PDUs it loses.

use std::collections::VecDeque;

use ackclock_core::{Span, Time};

use super::config::ErrorsBy;
use super::pdu::{Data, Pdu};
use crate::Fate;
use crate::errors::{AnyErrorProcess, ErrorProcess};

/// PDUs on their way over the radio.
pub(super) struct Air {
    errors: AnyErrorProcess,
    by: ErrorsBy,
    tti: Span,
    /// PDUs of a TTI.
    room: u32,
    /// From the end of a TTI until its PDUs have arrived.
    delay: Span,
    /// When the PDUs of each TTI arrive, and how many they are.
    ttis: VecDeque<(Time, usize)>,
    pdus: VecDeque<Pdu>,
    /// PDUs that were sent, and those of them that were not lost.
    pub(super) sent: u64,
    pub(super) arrived: u64,
}

impl Air {
    pub(super) fn new(errors: AnyErrorProcess, by: ErrorsBy, tti: Span, room: u32, delay: Span) -> Self {
        let (ttis, pdus) = (VecDeque::new(), VecDeque::new());
        Self { errors, by, tti, room, delay, ttis, pdus, sent: 0, arrived: 0 }
    }

    /// Sends the PDUs of the TTI that begins at `now`; none are left.
    pub(super) fn send(&mut self, now: Time, pdus: &mut Vec<Pdu>) {
        if pdus.is_empty() {
            return;
        }
        self.sent += pdus.len() as u64;
        let (before, one) = (self.pdus.len(), self.tti / u64::from(self.room));
        let mut fate = Fate::Arrives;
        for (place, pdu) in (0u64..).zip(pdus.drain(..)) {
            if place == 0 || self.by == ErrorsBy::Pdu {
                fate = self.errors.fate(now + one * place);
            }
            match (fate, pdu) {
                (Fate::Arrives, pdu) => {
                    self.arrived += 1;
                    self.pdus.push_back(pdu);
                }
                (Fate::Lost, Pdu::Data(Data { payload, .. })) => self.pdus.push_back(Pdu::Lost(payload)),
                (Fate::Lost, _) => {}
            }
        }
        let count = self.pdus.len() - before;
        if count > 0 {
            self.ttis.push_back((now + self.tti + self.delay, count));
        }
    }

    /// When PDUs arrive next; [`Time::NEVER`] where none are on their way.
    pub(super) fn due(&self) -> Time {
        self.ttis.front().map_or(Time::NEVER, |&(at, _)| at)
    }

    /// Takes the PDUs that arrive next, which are `due`.
    pub(super) fn receive(&mut self) -> impl Iterator<Item = Pdu> + '_ {
        let count = self.ttis.pop_front().map_or(0, |(_, count)| count);
        self.pdus.drain(..count)
    }

    /// Loses what is on its way.
    pub(super) fn clear(&mut self) {
        self.ttis.clear();
        self.pdus.clear();
    }
}
