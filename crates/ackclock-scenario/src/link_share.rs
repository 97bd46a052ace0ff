//! Share of the link capacity that each transfer used while it was active: `measure = ["utilisation"]`.
//!
//! A link reports only the total of its capacity so far. The capacity of the link is therefore queried at the start and
//! end of each transfer.

use std::collections::{BTreeMap, BTreeSet};

use ackclock_core::results::{LinkShareResult, Towards};
use ackclock_core::{FlowId, Span, Time};
use ackclock_link::Direction;

use crate::island::boxes::Boxes;

/// Direction in which the data of a flow crosses the link.
pub(crate) const fn direction_of(towards: Towards) -> Direction {
    match towards {
        Towards::Mobile => Direction::Down,
        Towards::Server => Direction::Up,
    }
}

/// Total link capacity from the start of the run up to an instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    at: Time,
    /// Link capacity in bits; `None` if unknown.
    bits: Option<f64>,
}

impl Mark {
    /// Link capacity counted at the start of the run: zero bits.
    pub(crate) const START: Self = Self { at: Time::ZERO, bits: Some(0.0) };

    /// Total capacity of one direction of the link up to `now`.
    pub(crate) fn of(link: CapacityReports, now: Time, direction: Direction, boxes: &mut Boxes<'_>) -> Self {
        let seconds = now.since(Time::ZERO).as_secs_f64();
        match (link, now) {
            (CapacityReports::AtTheEnd, _) => Self { at: now, bits: None },
            (CapacityReports::Always, Time::ZERO) => Self::START,
            (CapacityReports::Always, _) => {
                let bits = boxes.queue().capacity_bps(now, direction).map(|bps| bps * seconds);
                Self { at: now, bits }
            }
        }
    }

    pub(crate) const fn at(&self) -> Time {
        self.at
    }

    pub(crate) const fn bits(&self) -> Option<f64> {
        self.bits
    }
}

/// Link capacity during transfers and the bytes delivered, summed over the transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LinkShare {
    carried_bytes: u64,
    could_bits: f64,
    time: Span,
}

impl LinkShare {
    /// Link share of one transfer that delivered `carried_bytes`; `None` if the link capacity is unknown.
    pub(crate) fn between(begin: Mark, end: Mark, carried_bytes: u64) -> Option<Self> {
        // A link capacity that is estimated from few packets may decrease between the start and the end of a transfer.
        let could_bits = Some(end.bits? - begin.bits?).filter(|&bits| bits > 0.0)?;
        Some(Self { carried_bytes, could_bits, time: end.at.since(begin.at) })
    }

    /// Adds the link share of other transfers to this sum.
    pub(crate) fn add(&mut self, other: &Self) {
        self.carried_bytes += other.carried_bytes;
        self.could_bits += other.could_bits;
        self.time += other.time;
    }

    pub(crate) fn result(&self) -> LinkShareResult {
        let known = self.could_bits > 0.0 && self.time > Span::ZERO;
        LinkShareResult {
            capacity_bps: known.then(|| self.could_bits / self.time.as_secs_f64()),
            utilisation: known.then(|| self.carried_bytes as f64 * 8.0 / self.could_bits),
        }
    }
}

/// Queries the link capacity at the start and end of transfers, and keeps the link shares of files on long-lived
/// connections.
#[derive(Default)]
pub(crate) struct Shares {
    link: CapacityReports,
    /// Files that have not started, by start time.
    ahead: BTreeSet<(Time, FlowId)>,
    all: BTreeMap<FlowId, File>,
}

/// Times at which a link can report its capacity.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CapacityReports {
    /// The link reports its capacity at any time.
    #[default]
    Always,
    /// The link reports its capacity only for a complete run: a cell estimates the capacity from samples spread over
    /// the run.
    AtTheEnd,
}

/// A file that has a connection of its own.
struct File {
    towards: Towards,
    begun: Option<Mark>,
    share: Option<LinkShare>,
}

impl Shares {
    /// Creates an empty list of transfers; `link` states when the link reports its capacity.
    pub(crate) fn over(link: CapacityReports) -> Self {
        Self { link, ..Self::default() }
    }

    /// Total capacity so far of the link in the direction of `towards`.
    pub(crate) fn mark(&self, now: Time, towards: Towards, boxes: &mut Boxes<'_>) -> Mark {
        Mark::of(self.link, now, direction_of(towards), boxes)
    }

    /// Registers a file that starts at `start`. Call [`reached`](Self::reached) when the file has arrived.
    pub(crate) fn add(&mut self, start: Time, flow: FlowId, towards: Towards) {
        self.ahead.insert((start, flow));
        self.all.insert(flow, File { towards, begun: None, share: None });
    }

    /// Whether no file has been registered.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Start time of the next file; [`Time::NEVER`] if no file is left.
    pub(crate) fn due(&self) -> Time {
        self.ahead.first().map_or(Time::NEVER, |&(start, _)| start)
    }

    /// Queries the link capacity for files that start at `now`. Returns whether any file starts.
    pub(crate) fn begin(&mut self, now: Time, boxes: &mut Boxes<'_>) -> bool {
        let due = self.due() <= now;
        while self.due() <= now {
            let Some((_, flow)) = self.ahead.pop_first() else { break };
            let Some(towards) = self.all.get(&flow).map(|file| file.towards) else { continue };
            let begun = Some(self.mark(now, towards, boxes));
            self.all.insert(flow, File { towards, begun, share: None });
        }
        due
    }

    /// Ends the file of a flow, whose last byte has arrived at `now`.
    pub(crate) fn reached(&mut self, now: Time, flow: FlowId, boxes: &mut Boxes<'_>) {
        let Some(&File { towards, begun: Some(begin), .. }) = self.all.get(&flow) else { return };
        let carried_bytes = boxes.delivered(flow).map_or(0, |payload| payload.wire_bytes);
        let share = LinkShare::between(begin, self.mark(now, towards, boxes), carried_bytes);
        self.all.insert(flow, File { towards, begun: Some(begin), share });
    }

    /// Link share of a flow's file; empty until the file has arrived.
    pub(crate) fn result(&self, flow: FlowId) -> LinkShareResult {
        let share = self.all.get(&flow).and_then(|file| file.share);
        share.map_or_else(LinkShareResult::default, |share| share.result())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(ms: u64, bits: Option<f64>) -> Mark {
        Mark { at: Time::ZERO + Span::from_millis(ms), bits }
    }

    #[test]
    fn a_share_is_what_was_delivered_of_what_could_have_been() {
        // In these 2 s the link could have delivered 1 Mbit, the fifth Mbit since the start. The transfer of 100 kB is
        // 0.8 Mbit.
        let share = LinkShare::between(mark(1000, Some(4e6)), mark(3000, Some(5e6)), 100_000).unwrap();
        let expected = LinkShareResult { capacity_bps: Some(500e3), utilisation: Some(0.8) };
        assert_eq!(share.result(), expected);
    }

    #[test]
    fn several_transfers_are_weighed_by_what_the_link_could_have_carried() {
        let mut sum = LinkShare::between(mark(0, Some(0.0)), mark(1000, Some(1e6)), 125_000).unwrap();
        sum.add(&LinkShare::between(mark(0, Some(0.0)), mark(3000, Some(9e6)), 125_000).unwrap());
        // The link share covers 2 Mbit of 10 Mbit, in 4 s.
        let expected = LinkShareResult { capacity_bps: Some(2.5e6), utilisation: Some(0.2) };
        assert_eq!(sum.result(), expected);
    }

    #[test]
    fn what_nothing_shows_is_null() {
        let known = mark(1000, Some(4e6));
        assert_eq!(LinkShare::between(mark(0, None), known, 1000), None);
        assert_eq!(LinkShare::between(known, mark(2000, None), 1000), None);
        assert_eq!(LinkShare::between(known, mark(2000, Some(3e6)), 1000), None);
        assert_eq!(LinkShare::default().result(), LinkShareResult::default());
    }
}
