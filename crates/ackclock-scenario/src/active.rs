//! The time in which an island has flows, from the first start to the last end: its capacity and utilisation count that time alone.
//!
//! Links remember no past, so they are asked at both instants.

use ackclock_core::{Span, Time};
use ackclock_link::Direction;

use crate::island::Boxes;
use crate::link_share::{Mark, Telling};

/// When an island has flows, and what its links could have carried by then.
pub(crate) struct Active {
    link: Telling,
    start: Time,
    begin: Option<[Mark; 2]>,
    /// Files that have not arrived; `None` where a flow has no end.
    unfinished: Option<usize>,
    end: Option<[Mark; 2]>,
}

/// What a direction could have carried while there were flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Could {
    /// Bits.
    pub(crate) bits: f64,
    /// How long there were flows.
    pub(crate) time: Span,
}

impl Default for Active {
    fn default() -> Self {
        Self { link: Telling::Always, start: Time::ZERO, begin: None, unfinished: None, end: None }
    }
}

impl Active {
    /// Over such a link; the first flow starts at `start`. `files` is the number of flows where each is a file.
    pub(crate) fn new(link: Telling, start: Time, files: Option<usize>) -> Self {
        let unfinished = files.filter(|_| link == Telling::Always);
        Self { link, start, begin: None, unfinished, end: None }
    }

    /// Whether the end of every file is to be told.
    pub(crate) fn awaits_ends(&self) -> bool {
        self.unfinished.is_some()
    }

    /// Whether neither the start nor an end is awaited.
    pub(crate) fn is_settled(&self) -> bool {
        self.due() == Time::NEVER && self.unfinished.is_none_or(|files| files == 0)
    }

    /// When the links are to be asked next; [`Time::NEVER`] where they are not.
    pub(crate) fn due(&self) -> Time {
        match (self.link, self.start) {
            (Telling::AtTheEnd, _) | (_, Time::ZERO) => Time::NEVER,
            (Telling::Always, start) if self.begin.is_none() => start,
            _ => Time::NEVER,
        }
    }

    /// Asks the links where the first flow starts at `now`; whether it does.
    pub(crate) fn begin(&mut self, now: Time, boxes: &mut Boxes<'_>) -> bool {
        let due = self.due() <= now;
        if due {
            self.begin = Some(self.marks(now, boxes));
        }
        due
    }

    /// A file has arrived.
    pub(crate) fn finished(&mut self, now: Time, boxes: &mut Boxes<'_>) {
        let Some(unfinished) = &mut self.unfinished else { return };
        *unfinished -= 1;
        if *unfinished == 0 {
            self.end = Some(self.marks(now, boxes));
        }
    }

    /// What a direction could have carried; `None` where that is what it could in the whole run, or where nothing shows it.
    pub(crate) fn could(&self, until: Time, direction: Direction, boxes: &mut Boxes<'_>) -> Option<Could> {
        if self.begin.is_none() && self.end.is_none() {
            return None;
        }
        let begin = self.begin.map_or(Mark::START, |marks| marks[direction as usize]);
        let end = self
            .end
            .map_or_else(|| Mark::of(self.link, until, direction, boxes), |marks| marks[direction as usize]);
        let (time, all) = (end.at().since(begin.at()), end.bits()?);
        // A link that shows nothing before its first packet shows its mean rate afterwards.
        let share = |time: Span| time.as_secs_f64() / end.at().since(Time::ZERO).as_secs_f64();
        let bits = begin.bits().map_or_else(|| all * share(time), |before| (all - before).max(0.0));
        (time > Span::ZERO).then_some(Could { bits, time })
    }

    fn marks(&self, now: Time, boxes: &mut Boxes<'_>) -> [Mark; 2] {
        Direction::BOTH.map(|direction| Mark::of(self.link, now, direction, boxes))
    }
}
