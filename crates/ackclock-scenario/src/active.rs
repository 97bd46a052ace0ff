//! Active time of an island, from the start of its first flow to the end of its last flow. Capacity and utilisation
//! cover only the active time.
//!
//! Links keep no history, so their capacity is queried at the start and at the end of the active time.

use ackclock_core::{Span, Time};
use ackclock_link::Direction;

use crate::island::boxes::Boxes;
use crate::link_share::{CapacityReports, Mark};

/// Start and end of an island's flows, the capacity of its links up to the start and up to the end, and the bytes that the
/// links had delivered at the end.
pub(crate) struct Active {
    link: CapacityReports,
    start: Time,
    begin: Option<[Mark; 2]>,
    /// Number of files that have not arrived completely; `None` if any flow is endless.
    unfinished: Option<usize>,
    end: Option<[(Mark, u64); 2]>,
}

/// Capacity of one direction while flows were active, and its use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ActiveCapacity {
    /// Number of bits that the link could have delivered.
    pub(crate) bits: f64,
    /// Time during which flows were active.
    pub(crate) time: Span,
    /// Number of bytes delivered by the end of the flows; `None` if flows were active until the end of the run.
    pub(crate) delivered_bytes: Option<u64>,
}

impl Default for Active {
    fn default() -> Self {
        Self { link: CapacityReports::Always, start: Time::ZERO, begin: None, unfinished: None, end: None }
    }
}

impl Active {
    /// Creates the record of an island's active time. `link` says when the capacity of the links can be read, and
    /// `start` is the start of the first flow. `files` is the number of flows if every flow is a file.
    pub(crate) fn new(link: CapacityReports, start: Time, files: Option<usize>) -> Self {
        let unfinished = files.filter(|_| link == CapacityReports::Always);
        Self { link, start, begin: None, unfinished, end: None }
    }

    /// Whether [`finished`](Self::finished) must be called at the end of every file.
    pub(crate) fn awaits_ends(&self) -> bool {
        self.unfinished.is_some()
    }

    /// Whether start and end of the active time are known, or will not be recorded.
    pub(crate) fn is_settled(&self) -> bool {
        self.due() == Time::NEVER && self.unfinished.is_none_or(|files| files == 0)
    }

    /// Time at which the links must next be queried; [`Time::NEVER`] if no query is needed.
    pub(crate) fn due(&self) -> Time {
        match (self.link, self.start) {
            (CapacityReports::AtTheEnd, _) | (_, Time::ZERO) => Time::NEVER,
            (CapacityReports::Always, start) if self.begin.is_none() => start,
            _ => Time::NEVER,
        }
    }

    /// Queries the links if the first flow starts at `now`. Returns whether the first flow starts at `now`.
    pub(crate) fn begin(&mut self, now: Time, boxes: &mut Boxes<'_>) -> bool {
        let due = self.due() <= now;
        if due {
            Direction::BOTH.iter().for_each(|&direction| boxes.queue().start_capacity(now, direction));
            self.begin = Some(self.marks(now, boxes));
        }
        due
    }

    /// Registers that a file has arrived completely.
    pub(crate) fn finished(&mut self, now: Time, boxes: &mut Boxes<'_>) {
        let Some(unfinished) = &mut self.unfinished else { return };
        *unfinished -= 1;
        if *unfinished == 0 {
            // Acknowledgements of the last bytes follow later.
            let of = |direction| {
                let delivered = boxes.queue().link_counts(now, direction).delivered_bytes;
                (Mark::of(self.link, now, direction, boxes), delivered)
            };
            self.end = Some(Direction::BOTH.map(of));
        }
    }

    /// Capacity of one direction while flows were active; `None` if flows were active during the entire run, or if the
    /// capacity is unknown.
    pub(crate) fn could(
        &self,
        until: Time,
        direction: Direction,
        boxes: &mut Boxes<'_>,
    ) -> Option<ActiveCapacity> {
        if self.begin.is_none() && self.end.is_none() {
            return None;
        }
        let begin = self.begin.map_or(Mark::START, |marks| marks[direction as usize]);
        let end = self.end.map(|ends| ends[direction as usize]);
        let delivered_bytes = end.map(|(_, delivered)| delivered);
        let end = end.map_or_else(|| Mark::of(self.link, until, direction, boxes), |(mark, _)| mark);
        let (time, all) = (end.at().since(begin.at()), end.bits()?);
        // A link whose capacity is unknown before its first packet counts its capacity from the start of the flows.
        let bits = (all - begin.bits().unwrap_or(0.0)).max(0.0);
        (time > Span::ZERO).then_some(ActiveCapacity { bits, time, delivered_bytes })
    }

    fn marks(&self, now: Time, boxes: &mut Boxes<'_>) -> [Mark; 2] {
        Direction::BOTH.map(|direction| Mark::of(self.link, now, direction, boxes))
    }
}
