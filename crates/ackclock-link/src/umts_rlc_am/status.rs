//! STATUS PDUs: super-fields (TS 25.322 section 9.2.2.11) and what room they take.

use super::pdu::SduNumber;
use super::sn::{Sn, SnSet};

/// The super-fields of a STATUS PDU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Status {
    /// LIST and ACK.
    pub(super) report: Option<Report>,
    /// MRW: the receiver moves its window.
    pub(super) mrw: Option<Mrw>,
    /// MRW_ACK: it has.
    pub(super) mrw_ack: Option<MrwAck>,
}

/// What has arrived and what has not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Report {
    /// LSN: every PDU before it has arrived but those that are listed.
    pub(super) lsn: Sn,
    /// LIST: what is missing.
    runs: [Run; MOST_RUNS],
    count: u8,
}

/// Missing PDUs with successive numbers: a pair of a LIST.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Run {
    first: Sn,
    /// How many are missing behind the first, in 4 bits.
    more: u8,
}

/// From which PDU on the receiver keeps what arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mrw {
    /// SN_MRW: the first PDU that is still wanted.
    pub(super) sn: Sn,
    /// N_LENGTH: how many SDUs that end in it are not.
    pub(super) ends: u16,
    /// The first SDU that is.
    pub(super) keep: SduNumber,
}

/// How far the window of the receiver has moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MrwAck {
    /// SN_ACK: its lower edge.
    pub(super) sn: Sn,
    /// N: as N_LENGTH, where the window ends at the PDU of the MRW.
    pub(super) ends: u16,
}

/// Pairs in a STATUS PDU of 336 bits.
const MOST_RUNS: usize = 18;
/// Pairs in a LIST.
const RUNS_OF_LIST: u32 = 15;
/// Missing PDUs in a pair.
const MOST_OF_RUN: u8 = 16;

// Bits: D/C and PDU type; type of a super-field and NO_MORE; a sequence number; a length.
const HEADER: u32 = 4;
const TYPE: u32 = 4;
const NUMBER: u32 = 12;
const LENGTH: u32 = 4;

impl Status {
    /// Octets that it takes, as a PDU or in place of padding.
    pub(super) fn octets(&self) -> u32 {
        let list = |report: Report| {
            let lists = u32::from(report.count).div_ceil(RUNS_OF_LIST);
            lists * (TYPE + LENGTH) + u32::from(report.count) * (NUMBER + LENGTH) + TYPE + NUMBER
        };
        // Without an ACK, which is always the last, NO_MORE ends it.
        let report = self.report.map_or(TYPE, list);
        let mrw = self.mrw.map_or(0, |_| TYPE + LENGTH + NUMBER + LENGTH);
        let ack = self.mrw_ack.map_or(0, |_| TYPE + LENGTH + NUMBER);
        (HEADER + report + mrw + ack).div_ceil(8)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.report.is_none() && self.mrw.is_none() && self.mrw_ack.is_none()
    }
}

impl Report {
    const fn new() -> Self {
        Self { lsn: Sn::ZERO, runs: [Run { first: Sn::ZERO, more: 0 }; MOST_RUNS], count: 0 }
    }

    /// One that acknowledges everything before `lsn`.
    #[cfg(test)]
    pub(super) fn of(lsn: Sn) -> Self {
        Self { lsn, ..Self::new() }
    }

    /// Every PDU that is listed as missing.
    pub(super) fn missing(&self) -> impl Iterator<Item = Sn> {
        let runs = &self.runs[..usize::from(self.count)];
        runs.iter().flat_map(|run| (0..=u16::from(run.more)).map(|step| run.first.plus(step)))
    }

    /// Lists one more, the next in order; false where it has no room.
    fn list(&mut self, sn: Sn, most_runs: u8) -> bool {
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
}

/// Pairs that a STATUS PDU of this size has room for beside an ACK and an MRW_ACK.
pub(super) fn most_runs(pdu_octets: u32) -> u8 {
    let beside = HEADER + TYPE + NUMBER + (TYPE + LENGTH + NUMBER);
    let free = (pdu_octets * 8).saturating_sub(beside);
    let fits = |runs: &u32| runs.div_ceil(RUNS_OF_LIST) * (TYPE + LENGTH) + runs * (NUMBER + LENGTH) <= free;
    (1..=MOST_RUNS as u32).take_while(fits).last().unwrap_or(0) as u8
}

/// Gives the reports of a receiver whose next PDU in sequence is `from` and whose highest expected one is `to`: as many as it
/// takes, at most `most`. An ACK beyond `from` must stand in one PDU with all that is missing below it, so the first report acknowledges as
/// far as it lists, and further ones only list.
pub(super) fn reports(
    received: &SnSet,
    [from, to]: [Sn; 2],
    most_runs: u8,
    most: u32,
    mut emit: impl FnMut(Report),
) {
    let (mut report, mut emitted) = (Report::new(), 0);
    for sn in (0..to.above(from)).map(|step| from.plus(step)) {
        if received.contains(sn) || report.list(sn, most_runs) {
            continue;
        }
        report.lsn = if emitted == 0 { sn } else { from };
        emit(report);
        emitted += 1;
        if emitted >= most {
            return;
        }
        report = Report::new();
        report.list(sn, most_runs);
    }
    report.lsn = if emitted == 0 { to } else { from };
    emit(report);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(numbers: &[u16]) -> SnSet {
        let mut set = SnSet::default();
        numbers.iter().for_each(|&number| set.insert(Sn::ZERO.plus(number)));
        set
    }

    fn told(received: &SnSet, from: u16, to: u16, runs: u8, most: u32) -> Vec<(u16, Vec<u16>)> {
        let number = |sn: Sn| sn.above(Sn::ZERO);
        let mut told = Vec::new();
        reports(received, [from, to].map(|n| Sn::ZERO.plus(n)), runs, most, |report| {
            told.push((number(report.lsn), report.missing().map(number).collect()));
        });
        told
    }

    #[test]
    fn a_report_acknowledges_what_it_does_not_list() {
        assert_eq!(told(&set(&[]), 7, 7, 18, 9), [(7, vec![])]);
        assert_eq!(told(&set(&[5, 8, 9]), 4, 10, 18, 9), [(10, vec![4, 6, 7])]);
        // Around the end of the numbers: 4094 and 1 have arrived, 4093, 4095 and 0 have not.
        assert_eq!(told(&set(&[4094, 1]), 4093, 2, 18, 9), [(2, vec![4093, 4095, 0])]);
    }

    #[test]
    fn what_does_not_fit_comes_in_further_reports_that_acknowledge_nothing_new() {
        let arrived: Vec<u16> = (0..10).map(|n| 2 * n + 1).collect();
        let expected = [(8, vec![0, 2, 4, 6]), (0, vec![8, 10, 12, 14]), (0, vec![16, 18])];
        assert_eq!(told(&set(&arrived), 0, 20, 4, 9), expected);
        assert_eq!(told(&set(&arrived), 0, 20, 4, 2), expected[..2]);
    }

    #[test]
    fn sizes_are_those_of_the_super_fields() {
        // 4 + LIST 4 + 4 + n x 16 + ACK 4 + 12 + MRW_ACK 4 + 4 + 12 of 336 bits: 18 pairs in two lists take 348 with the MRW_ACK.
        assert_eq!(most_runs(42), 17);
        assert_eq!(most_runs(4), 0);
        let ack = Status { report: Some(Report { lsn: Sn::ZERO, ..Report::new() }), ..Status::default() };
        assert_eq!(ack.octets(), 3, "4 + 16 bits");
        let mrw = Status { mrw: Some(Mrw { sn: Sn::ZERO, ends: 0, keep: 0 }), ..Status::default() };
        assert_eq!(mrw.octets(), 4, "4 + 24 + 4 bits");
        let mut report = Report::new();
        (0..17u16).for_each(|n| assert!(report.list(Sn::ZERO.plus(2 * n), 17)));
        // 4 + 2 x 8 + 17 x 16 + 16 = 308 bits.
        assert_eq!(Status { report: Some(report), ..Status::default() }.octets(), 39);
    }

    #[test]
    fn a_pair_has_at_most_16() {
        let (mut report, mut count) = (Report::new(), 0);
        (0..33u16).for_each(|n| count += u32::from(report.list(Sn::ZERO.plus(n), 18)));
        assert_eq!((count, report.count, report.missing().count()), (33, 3, 33));
    }
}
