//! Blocks of a cell: their room for PDUs, and the share of payload in them.

use crate::cell::{BlockPdus, CellConfig};
use crate::umts_rlc_am::{Pdu, RlcConfig};

/// Layout of a cell's blocks.
pub(super) struct Blocks {
    /// Payload size and header size of a unit of room in a block, octets.
    unit: [u32; 2],
    pdus: BlockPdus,
    /// Header size of PDUs that fill their blocks, octets; 0 for PDUs of one size.
    header: u32,
    /// Octets of all PDUs that filled their blocks, and of the headers of these PDUs.
    filled: [u64; 2],
}

impl Blocks {
    pub(super) fn new(cell: &CellConfig, rlc: &RlcConfig, unit: [u32; 2]) -> Self {
        let header = if rlc.grants() { rlc.header_octets() } else { 0 };
        Self { unit, pdus: cell.pdus, header, filled: [0; 2] }
    }

    /// Number of units that a block has room for in this number of bits.
    pub(super) fn room(&self, bits: u64) -> u64 {
        let unit = u64::from(self.unit[0] + self.unit[1]) * 8;
        match self.pdus {
            BlockPdus::Whole => bits / unit,
            BlockPdus::Split => bits.div_ceil(unit),
        }
    }

    /// Payload size and header size of each PDU, octets; `None` if PDUs fill blocks.
    pub(super) fn pdu_sizes(&self) -> Option<[u16; 2]> {
        (self.header == 0).then(|| self.unit.map(|octets| octets as u16))
    }

    /// Maximum number of PDUs that the cell handles as one packet: a packet of several PDUs lies within one block.
    pub(super) fn most_in_packet(&self) -> u16 {
        match self.pdus {
            BlockPdus::Whole => u16::MAX / self.unit[0] as u16,
            BlockPdus::Split => 1,
        }
    }

    /// Payload size and header size of a PDU in a block, or of a run of PDUs, octets.
    pub(super) fn sizes(&self, pdu: &Pdu) -> [u16; 2] {
        match self.header {
            0 => self.unit.map(|octets| octets as u16 * pdu.count()),
            // The header of a PDU that fills its block is part of the PDU.
            _ => [pdu.octets() as u16, 0],
        }
    }

    /// Registers a PDU that is sent in a block.
    pub(super) fn on_sent(&mut self, pdu: &Pdu) {
        if self.header > 0 {
            self.filled[0] += u64::from(pdu.octets());
            self.filled[1] += u64::from(self.header);
        }
    }

    /// Payload of PDUs, and the size of the PDUs with this payload. For PDUs that fill their blocks, the PDUs sent so far
    /// count.
    pub(super) fn payload_share(&self) -> [u64; 2] {
        match (self.unit.map(u64::from), self.filled) {
            ([payload, header], _) if self.header == 0 => [payload, payload + header],
            (_, [0, _]) => [1, 1],
            (_, [all, headers]) => [all - headers.min(all), all],
        }
    }

    /// Size of a PDU with its header, octets; 1 if PDUs fill blocks.
    pub(super) const fn unit_octets(&self) -> u32 {
        self.unit[0] + self.unit[1]
    }

    /// Size of a PDU or octet of room, bits.
    pub(super) fn unit_bits(&self) -> f64 {
        f64::from(self.unit[0] + self.unit[1]) * 8.0
    }
}
