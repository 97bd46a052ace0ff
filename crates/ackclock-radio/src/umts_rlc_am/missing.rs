//! Lists of missing PDUs in a STATUS: LIST or BITMAP super-fields (TS 25.322 sections 9.2.2.11.3 and 9.2.2.11.5).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sn::{Sn, SnSet};

/// Format in which a STATUS lists missing PDUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MissingFormat {
    /// LIST: runs of up to 16 missing PDUs, 16 bits each.
    #[default]
    List,
    /// BITMAP: one bit for each PDU from the first missing PDU on.
    Bitmap,
    /// The shorter of LIST and BITMAP, or the format that covers more PDUs if neither format covers all.
    Shorter,
}

/// Missing PDUs reported by one STATUS PDU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Missing {
    /// Missing PDUs as LIST super-fields.
    List(List),
    /// Missing PDUs as BITMAP super-fields.
    Bitmap(Bitmap),
}

/// Runs of missing PDUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct List {
    runs: [Run; MOST_RUNS],
    count: u8,
}

/// Run of consecutive missing PDUs: a pair of a LIST.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Run {
    first: Sn,
    /// Number of missing PDUs after the first of the run, 4 bits.
    more: u8,
}

/// Bitmap of complete octets, in consecutive BITMAP super-fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bitmap {
    /// FSN: sequence number of the PDU for the first bit.
    first: Sn,
    octets: u8,
    /// One bit per PDU; a cleared bit stands for a missing PDU.
    received: [u64; BITMAP_WORDS],
}

/// Room in a STATUS PDU for a LIST or a BITMAP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) runs: u8,
    pub(crate) octets: u8,
}

/// Maximum number of LIST pairs in a STATUS PDU of 336 bits.
const MOST_RUNS: usize = 18;
/// Maximum number of pairs in a LIST.
const RUNS_OF_LIST: u32 = 15;
/// Maximum number of missing PDUs in a pair.
const MOST_OF_RUN: u8 = 16;
/// Maximum octets of bitmap in a STATUS PDU of 336 bits.
const MOST_OCTETS: u32 = 32;
const BITMAP_WORDS: usize = MOST_OCTETS as usize / 8;
/// Maximum octets of bits in a BITMAP.
const OCTETS_OF_BITMAP: u32 = 16;

// Size in bits of a super-field's type; the next constants are the sizes of a sequence number and of a length.
pub(crate) const TYPE: u32 = 4;
pub(crate) const NUMBER: u32 = 12;
pub(crate) const LENGTH: u32 = 4;

impl Room {
    /// Room for LIST pairs and BITMAP octets in this many bits.
    pub(crate) fn of(bits: u32) -> Self {
        let most =
            |fits: &dyn Fn(&u32) -> bool, most: u32| (1..=most).take_while(fits).last().unwrap_or(0) as u8;
        Self {
            runs: most(&|&runs| list_bits(runs) <= bits, MOST_RUNS as u32),
            octets: most(&|&octets| bitmap_bits(octets) <= bits, MOST_OCTETS),
        }
    }
}

const fn list_bits(runs: u32) -> u32 {
    runs.div_ceil(RUNS_OF_LIST) * (TYPE + LENGTH) + runs * (NUMBER + LENGTH)
}

const fn bitmap_bits(octets: u32) -> u32 {
    octets.div_ceil(OCTETS_OF_BITMAP) * (TYPE + LENGTH + NUMBER) + octets * 8
}

impl Missing {
    /// Report without missing PDUs.
    pub(crate) const NONE: Self = Self::List(List::NONE);

    /// Describes missing PDUs from `from`, which is missing, up to `to`, as far as the room allows. The second result
    /// is the first missing PDU that is not covered, or `to` if all are covered. The receiver has all PDUs before
    /// `base`.
    pub(crate) fn describe(
        received: &SnSet,
        base: Sn,
        [from, to]: [Sn; 2],
        room: Room,
        format: MissingFormat,
    ) -> (Self, Sn) {
        let list = || List::describe(received, [from, to], room.runs);
        let bitmap = || Bitmap::describe(received, base, [from, to], room.octets);
        match format {
            MissingFormat::List => list(),
            MissingFormat::Bitmap => bitmap(),
            MissingFormat::Shorter => {
                let (list, bitmap) = (list(), bitmap());
                let told = |(missing, end): &(Self, Sn)| (end.above(from), u32::MAX - missing.bits());
                if told(&bitmap) > told(&list) { bitmap } else { list }
            }
        }
    }

    /// Size of the super-fields in bits.
    pub(crate) fn bits(&self) -> u32 {
        match self {
            Self::List(list) => list_bits(list.count.into()),
            Self::Bitmap(bitmap) => bitmap_bits(bitmap.octets.into()),
        }
    }

    /// Missing PDUs that the STATUS reports, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Sn> {
        let (list, bitmap) = match self {
            Self::List(list) => (Some(list), None),
            Self::Bitmap(bitmap) => (None, Some(bitmap)),
        };
        list.into_iter().flat_map(List::iter).chain(bitmap.into_iter().flat_map(Bitmap::iter))
    }
}

impl List {
    const NONE: Self = Self { runs: [Run { first: Sn::ZERO, more: 0 }; MOST_RUNS], count: 0 };

    fn describe(received: &SnSet, [from, to]: [Sn; 2], most_runs: u8) -> (Missing, Sn) {
        let mut list = Self::NONE;
        let mut missing = missing(received, [from, to]);
        let end = missing.find(|&sn| !list.push(sn, most_runs)).unwrap_or(to);
        (Missing::List(list), end)
    }

    /// Adds the next missing PDU in order; returns false if the list is full.
    fn push(&mut self, sn: Sn, most_runs: u8) -> bool {
        let last = self.runs[..usize::from(self.count)].last_mut();
        if let Some(run) = last
            && run.more + 1 < MOST_OF_RUN
            && run.first.plus(u16::from(run.more) + 1) == sn
        {
            run.more += 1;
            return true;
        }
        if self.count >= most_runs {
            return false;
        }
        self.runs[usize::from(self.count)] = Run { first: sn, more: 0 };
        self.count += 1;
        true
    }

    fn iter(&self) -> impl Iterator<Item = Sn> {
        let runs = &self.runs[..usize::from(self.count)];
        runs.iter().flat_map(|run| (0..=u16::from(run.more)).map(|step| run.first.plus(step)))
    }
}

impl Bitmap {
    /// Describes missing PDUs as a bitmap. The last bit stands for the PDU before `to`, or for the last PDU that fits;
    /// spare bits stand for PDUs before `from`.
    fn describe(received: &SnSet, base: Sn, [from, to]: [Sn; 2], most_octets: u8) -> (Missing, Sn) {
        let told = to.above(from).min(u16::from(most_octets) * 8);
        let octets = told.div_ceil(8);
        let first = from.minus(octets * 8 - told);
        let mut bitmap = Self { first, octets: octets as u8, received: [0; BITMAP_WORDS] };
        for step in 0..octets * 8 {
            let sn = first.plus(step);
            // PDUs before `base` have arrived; counted modulo 4096, their numbers compare above all numbers in use.
            let arrived = received.contains(sn) || sn.above(base) >= to.above(base);
            bitmap.received[usize::from(step / 64)] |= u64::from(arrived) << (step % 64);
        }
        let end = missing(received, [from.plus(told), to]).next().unwrap_or(to);
        (Missing::Bitmap(bitmap), end)
    }

    fn iter(&self) -> impl Iterator<Item = Sn> {
        let bit = |step: u16| self.received[usize::from(step / 64)] >> (step % 64) & 1;
        (0..u16::from(self.octets) * 8).filter(move |&step| bit(step) == 0).map(|step| self.first.plus(step))
    }
}

fn missing(received: &SnSet, [from, to]: [Sn; 2]) -> impl Iterator<Item = Sn> {
    (0..to.above(from)).map(move |step| from.plus(step)).filter(|&sn| !received.contains(sn))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sn(number: u16) -> Sn {
        Sn::ZERO.plus(number)
    }

    fn set(numbers: impl IntoIterator<Item = u16>) -> SnSet {
        let mut set = SnSet::default();
        numbers.into_iter().for_each(|number| set.insert(sn(number)));
        set
    }

    /// Report of PDUs from 0 on: its missing PDUs, its end, and its size in bits.
    fn told(received: &SnSet, to: u16, room: Room, format: MissingFormat) -> (Vec<u16>, u16, u32) {
        let (missing, end) = Missing::describe(received, Sn::ZERO, [Sn::ZERO, sn(to)], room, format);
        let number = |sn: Sn| sn.above(Sn::ZERO);
        (missing.iter().map(number).collect(), number(end), missing.bits())
    }

    const WIDE: Room = Room { runs: 18, octets: 32 };

    /// A PDU of 42 octets minus a header of 4 bits, an ACK of 16 bits and an MRW_ACK of 20 bits leaves 296 bits.
    #[test]
    fn room_is_that_of_the_super_fields() {
        // A LIST of up to 15 pairs takes 16 bits per pair and 8 more, so 17 pairs take 288 bits. A BITMAP of up to 16
        // octets takes 20 bits and its octets, so 32 octets take 296 bits.
        assert_eq!(Room::of(296), Room { runs: 17, octets: 32 });
        assert_eq!(Room::of(295), Room { runs: 17, octets: 31 });
        // One LIST pair takes 24 bits, one BITMAP octet 28 bits.
        assert_eq!(Room::of(27), Room { runs: 1, octets: 0 });
        assert_eq!(Room::of(0), Room { runs: 0, octets: 0 });
    }

    #[test]
    fn a_pair_has_at_most_16() {
        let (missing, end) =
            Missing::describe(&set([]), Sn::ZERO, [Sn::ZERO, sn(33)], WIDE, MissingFormat::List);
        assert_eq!((missing.iter().count(), end), (33, sn(33)));
        assert_eq!(missing.bits(), 8 + 3 * 16);
    }

    #[test]
    fn a_list_is_shorter_for_runs_and_a_bitmap_for_scattered_pdus() {
        // PDUs 0 to 11, one TTI, are missing: one pair takes 24 bits, three octets take 20 + 24 bits.
        let run = set(12..24);
        assert_eq!(told(&run, 24, WIDE, MissingFormat::Shorter), ((0..12).collect(), 24, 24));
        // Every third PDU is missing: eight pairs take 8 + 128 bits.
        let third = set((0..24).filter(|n| n % 3 != 0));
        let missing: Vec<u16> = (0..24).step_by(3).collect();
        assert_eq!(told(&third, 24, WIDE, MissingFormat::List), (missing.clone(), 24, 136));
        assert_eq!(told(&third, 24, WIDE, MissingFormat::Shorter), (missing, 24, 44));
    }

    #[test]
    fn bits_that_are_left_over_are_of_pdus_that_have_arrived() {
        // The report has two octets for PDUs 0 to 8; the first seven bits stand for PDUs 4089 to 4095, which were
        // acknowledged.
        let (missing, end) =
            Missing::describe(&set([1, 8]), Sn::ZERO, [Sn::ZERO, sn(9)], WIDE, MissingFormat::Bitmap);
        assert!(missing.iter().eq([0, 2, 3, 4, 5, 6, 7].map(sn)));
        assert_eq!((end, missing.bits()), (sn(9), 20 + 16));
        // A further report repeats earlier PDUs in their current state: PDU 3, below 4, is missing.
        let (missing, _) = Missing::describe(&set([]), Sn::ZERO, [sn(4), sn(9)], WIDE, MissingFormat::Bitmap);
        assert!(missing.iter().eq((1..9).map(sn)));
    }

    #[test]
    fn where_neither_form_tells_all_the_one_that_tells_more_is_taken() {
        let narrow = Room { runs: 2, octets: 1 };
        let every_second = set((0..24).filter(|n| n % 2 == 1));
        assert_eq!(told(&every_second, 24, narrow, MissingFormat::List), (vec![0, 2], 4, 40));
        assert_eq!(told(&every_second, 24, narrow, MissingFormat::Shorter), (vec![0, 2, 4, 6], 8, 28));
        // Two runs of a LIST cover more PDUs than a BITMAP.
        let runs = set((0..24).filter(|n| n % 12 > 5));
        let missing = (0..6).chain(12..18).collect();
        assert_eq!(told(&runs, 24, narrow, MissingFormat::Shorter), (missing, 24, 40));
    }
}
