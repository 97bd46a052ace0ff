//! STATUS PDUs: super-fields (TS 25.322 section 9.2.2.11) and their sizes.

use super::loss_cause::LossCause;
use super::missing::{LENGTH, Missing, MissingFormat, NUMBER, Room, TYPE};
use super::sn::{SduNumber, Sn, SnSet};

/// Super-fields of a STATUS PDU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Status {
    /// LIST or BITMAP, and ACK: received and missing PDUs.
    pub(crate) report: Option<Report>,
    /// WINDOW: maximum number of unacknowledged PDUs.
    pub(crate) window: Option<u16>,
    /// MRW: moves the receiver's window.
    pub(crate) mrw: Option<Mrw>,
    /// MRW_ACK: acknowledges an MRW.
    pub(crate) mrw_ack: Option<MrwAck>,
}

/// Report of received and missing PDUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Report {
    /// LSN: every PDU below this sequence number has arrived, except for the PDUs listed as missing.
    pub(crate) lsn: Sn,
    pub(crate) missing: Missing,
}

/// Window move: the receiver keeps data from this PDU on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mrw {
    /// SN_MRW: sequence number of the first PDU to keep.
    pub(crate) sn: Sn,
    /// N_LENGTH: number of discarded SDUs that end in PDU SN_MRW.
    pub(crate) ends: u16,
    /// Number of the first SDU to keep.
    pub(crate) keep: SduNumber,
    /// Cause of the discard.
    pub(crate) cause: LossCause,
}

/// Acknowledgement of a window move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MrwAck {
    /// SN_ACK: lower edge of the receiver's window.
    pub(crate) sn: Sn,
    /// N: equal to N_LENGTH if the receiver's window starts at the PDU of the MRW; otherwise 0.
    pub(crate) ends: u16,
}

// Size in bits of the PDU header (D/C and PDU type); the next constants are the sizes of complete super-fields.
const HEADER: u32 = 4;
const ACK: u32 = TYPE + NUMBER;
const WINDOW: u32 = TYPE + NUMBER;
const MRW: u32 = TYPE + LENGTH + NUMBER + LENGTH;
const MRW_ACK: u32 = TYPE + LENGTH + NUMBER;

impl Status {
    /// Size of the STATUS in octets, as a PDU or in place of padding.
    pub(crate) fn octets(&self) -> u32 {
        // The last super-field is an ACK, or NO_MORE in a STATUS without a report.
        let report = self.report.map_or(TYPE, |report| report.missing.bits() + ACK);
        let window = self.window.map_or(0, |_| WINDOW);
        let mrw = self.mrw.map_or(0, |_| MRW);
        let ack = self.mrw_ack.map_or(0, |_| MRW_ACK);
        (HEADER + report + window + mrw + ack).div_ceil(8)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.report.is_none() && self.mrw.is_none() && self.mrw_ack.is_none()
    }
}

/// Whether a receiver reports a window size to its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TellsWindow {
    Never,
    Sometimes,
}

/// Room for missing PDUs in a STATUS PDU of this size. The STATUS PDU contains an ACK, an MRW_ACK and, if reported, the
/// window.
pub(crate) fn room(pdu_octets: u32, window: TellsWindow) -> Room {
    let window = if window == TellsWindow::Sometimes { WINDOW } else { 0 };
    Room::of((pdu_octets * 8).saturating_sub(HEADER + ACK + MRW_ACK + window))
}

/// Emits the reports of a receiver in at most `most` PDUs. The next PDU that the receiver expects in sequence is
/// `from`; `to` is the PDU after its highest received PDU. An ACK beyond `from` must be in one PDU with all missing
/// PDUs below the acknowledged number. The first report acknowledges all PDUs that it covers, and further reports only
/// list missing PDUs.
pub(crate) fn reports(
    received: &SnSet,
    [from, to]: [Sn; 2],
    room: Room,
    format: MissingFormat,
    most: u32,
    mut emit: impl FnMut(Report),
) {
    if from == to {
        emit(Report { lsn: to, missing: Missing::NONE });
        return;
    }
    let mut at = from;
    for number in 0..most {
        let (missing, end) = Missing::describe(received, from, [at, to], room, format);
        let lsn = if number == 0 { end } else { from };
        emit(Report { lsn, missing });
        if end == to {
            return;
        }
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(numbers: &[u16]) -> SnSet {
        let mut set = SnSet::default();
        numbers.iter().for_each(|&number| set.insert(Sn::ZERO.plus(number)));
        set
    }

    fn told(received: &SnSet, from: u16, to: u16, room: Room, most: u32) -> Vec<(u16, Vec<u16>)> {
        let number = |sn: Sn| sn.above(Sn::ZERO);
        let mut told = Vec::new();
        let format = if room.runs == 0 { MissingFormat::Bitmap } else { MissingFormat::List };
        reports(received, [from, to].map(|n| Sn::ZERO.plus(n)), room, format, most, |report| {
            told.push((number(report.lsn), report.missing.iter().map(number).collect()));
        });
        told
    }

    const LISTS: Room = Room { runs: 18, octets: 0 };
    const BITMAPS: Room = Room { runs: 0, octets: 32 };

    #[test]
    fn a_report_acknowledges_what_it_does_not_list() {
        for room in [LISTS, BITMAPS] {
            assert_eq!(told(&set(&[]), 7, 7, room, 9), [(7, vec![])]);
            assert_eq!(told(&set(&[5, 8, 9]), 4, 10, room, 9), [(10, vec![4, 6, 7])]);
            // The sequence numbers wrap: PDUs 4094 and 1 have arrived, PDUs 4093, 4095 and 0 have not.
            assert_eq!(told(&set(&[4094, 1]), 4093, 2, room, 9), [(2, vec![4093, 4095, 0])]);
        }
    }

    #[test]
    fn what_does_not_fit_comes_in_further_reports_that_acknowledge_nothing_new() {
        let arrived: Vec<u16> = (0..10).map(|n| 2 * n + 1).collect();
        let expected = [(8, vec![0, 2, 4, 6]), (0, vec![8, 10, 12, 14]), (0, vec![16, 18])];
        for room in [Room { runs: 4, octets: 0 }, Room { runs: 0, octets: 1 }] {
            assert_eq!(told(&set(&arrived), 0, 20, room, 2), expected[..2]);
        }
        assert_eq!(told(&set(&arrived), 0, 20, Room { runs: 4, octets: 0 }, 9), expected);
        // The last octet has four spare bits, which repeat PDUs 12 to 15.
        let last = (0, vec![12, 14, 16, 18]);
        assert_eq!(told(&set(&arrived), 0, 20, Room { runs: 0, octets: 1 }, 9)[2], last);
    }

    #[test]
    fn sizes_are_those_of_the_super_fields() {
        let missing = Missing::NONE;
        let ack = Status { report: Some(Report { lsn: Sn::ZERO, missing }), ..Status::default() };
        assert_eq!(ack.octets(), 3, "4 + 16 bits");
        assert_eq!(Status { window: Some(9), ..ack }.octets(), 5, "16 bits more");
        let mrw = Status {
            mrw: Some(Mrw { sn: Sn::ZERO, ends: 0, keep: 0, cause: LossCause::MaxDat }),
            ..Status::default()
        };
        assert_eq!(mrw.octets(), 4, "4 + 24 + 4 bits");
        // The STATUS has 4 + 2 x 8 + 17 x 16 + 16 = 308 bits.
        let arrived: Vec<u16> = (0..17).map(|n| 2 * n + 1).collect();
        reports(&set(&arrived), [Sn::ZERO, Sn::ZERO.plus(34)], LISTS, MissingFormat::List, 9, |report| {
            assert_eq!(Status { report: Some(report), ..Status::default() }.octets(), 39);
        });
        assert_eq!(room(42, TellsWindow::Never), Room { runs: 17, octets: 32 });
        // The room is 280 bits: 17 pairs would take 288 bits, and 31 octets 288 bits.
        assert_eq!(room(42, TellsWindow::Sometimes), Room { runs: 16, octets: 30 });
        assert_eq!(room(4, TellsWindow::Never), Room { runs: 0, octets: 0 });
    }
}
