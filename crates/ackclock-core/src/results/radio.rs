//! Results of a radio network with RLC: queues, PDUs, HARQ blocks, the Iub interface, and lost packets.

use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Distribution;
use crate::{Histogram, Span};

/// Results of the radio network in one direction. The downlink starts at the controller, the uplink at the terminal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RadioResult {
    /// Time from a packet's arrival until its first octet is in a PDU, ms. In the uplink this queue is in the terminal.
    pub controller_queue_ms: Distribution,
    /// Time from a PDU's arrival at the base station until its first transmission starts, ms. The key
    /// `base_station_queue_ms` is left out without a queue at a base station.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_station_queue_ms: Option<Distribution>,
    /// PDUs of the radio link control.
    pub rlc: RlcResult,
    /// Blocks of HARQ. The key `harq` is left out without HARQ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harq: Option<HarqResult>,
    /// Share of the bits of blocks in a cell that hold no PDU, retransmissions not counted; null without a block.
    pub padding: Option<f64>,
    /// The Iub interface. The key `iub` is left out without this interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iub: Option<IubResult>,
    /// Packets that the radio network lost after their first octet was in a PDU, or in a hand-over.
    pub lost_by: LostBy,
}

/// Counts of PDUs in one direction. Without resets, hand-overs and discarded packets, `retransmitted` is the sum of
/// `duplicates` and `lost` as soon as no PDU is in transit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RlcResult {
    /// Number of data PDUs sent, retransmissions included.
    pub pdus: u64,
    /// Number of data PDUs retransmitted.
    pub retransmitted: u64,
    /// Number of data PDUs that arrived although the receiver had them already.
    pub duplicates: u64,
    /// Number of data PDUs that the radio network lost.
    pub lost: u64,
    /// Number of STATUS reports sent, in separate PDUs or in the padding of data PDUs.
    pub status: u64,
    /// Number of resets that the sending end has requested.
    pub resets: u64,
    /// Number of packets that the sending end gave up because of MaxDAT. Some of them may have arrived.
    pub discarded_sdus: u64,
}

/// Counts of HARQ blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HarqResult {
    /// Number of blocks sent, without retransmissions.
    pub blocks: u64,
    /// Number of retransmissions of blocks.
    pub repeated: u64,
    /// Number of blocks given up, or lost because a NACK was taken for an ACK.
    pub lost: u64,
}

/// Results of the Iub interface between controller and base station.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IubResult {
    /// Number of allocations that the base station has sent to the controller.
    pub allocations: u64,
    /// Number of granted PDUs that the controller has not sent by the end of the run; null without a limit.
    pub credits_unused: Option<u64>,
    /// Number of checks at which the base station had no PDU of a user although PDUs waited at the controller.
    pub underruns: u64,
    /// Mean target queueing delay at the base station over the checks, ms; null without a check.
    pub target_ms: Option<f64>,
}

/// Packets that the radio network lost, by the cause of the loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LostBy {
    /// Number of packets given up because a PDU was sent too often.
    pub max_dat: u64,
    /// Number of packets lost by a reset of the radio link control.
    pub reset: u64,
    /// Number of packets with a PDU that the air interface lost; always 0 in acknowledged mode.
    pub air: u64,
    /// Number of packets with a PDU that the Iub interface or a full queue of the base station lost; always 0 in
    /// acknowledged mode.
    pub base_station: u64,
    /// Number of packets that a hand-over did not forward.
    pub handover: u64,
    /// Number of packets discarded at the age limit, `edge.age_limit`, after their first octet was in a PDU. The key is
    /// left out without such packets.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub aged: u64,
}

// Serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Results of the radio network for one user, by direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserRadioResult {
    /// Results of the user's downlink.
    pub down: RadioResult,
    /// Results of the user's uplink.
    pub up: RadioResult,
}

/// Counters of the radio network in one direction.
#[derive(Clone, Debug, Default)]
pub struct RadioCounts {
    /// Time of packets until their first octet is in a PDU.
    pub queue: Histogram,
    /// Time of PDUs in the queue of the base station; `None` without this queue.
    pub base_station: Option<Histogram>,
    /// Counts of PDUs.
    pub rlc: RlcResult,
    /// Counts of HARQ blocks; `None` without HARQ.
    pub harq: Option<HarqResult>,
    /// Use of the blocks of a cell.
    pub blocks: BlockUse,
    /// Counters of the Iub interface; `None` without this interface.
    pub iub: Option<IubCounts>,
    /// Lost packets by cause.
    pub lost_by: LostBy,
}

/// Capacity of blocks at their first transmission, and its used part, in the same unit.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockUse {
    /// Total capacity of the blocks.
    pub capacity: u64,
    /// Part of the capacity that held PDUs.
    pub used: u64,
}

/// Counters of the Iub interface.
#[derive(Clone, Copy, Debug)]
pub struct IubCounts {
    /// Number of allocations sent.
    pub allocations: u64,
    /// Granted PDUs that were not sent; `None` without a limit.
    pub credits_unused: Option<u64>,
    /// Number of checks that found an underrun.
    pub underruns: u64,
    /// Number of checks, and the sum of the target delays at the checks.
    pub targets: (u64, Span),
}

impl IubCounts {
    /// Counters before the first event.
    pub const NONE: Self =
        Self { allocations: 0, credits_unused: Some(0), underruns: 0, targets: (0, Span::ZERO) };

    /// Counts a check of a user's queue at the base station.
    pub fn on_check(&mut self, underrun: bool, target: Span) {
        self.underruns += u64::from(underrun);
        self.targets.0 += 1;
        self.targets.1 += target;
    }
}

impl RadioCounts {
    /// Converts the counters to a result.
    pub fn result(&self) -> RadioResult {
        let BlockUse { capacity, used } = self.blocks;
        RadioResult {
            controller_queue_ms: Distribution::from(&self.queue),
            base_station_queue_ms: self.base_station.as_ref().map(Distribution::from),
            rlc: self.rlc,
            harq: self.harq,
            padding: (capacity > 0).then(|| 1.0 - used as f64 / capacity as f64),
            iub: self.iub.map(|iub| IubResult {
                allocations: iub.allocations,
                credits_unused: iub.credits_unused,
                underruns: iub.underruns,
                target_ms: (iub.targets.0 > 0).then(|| iub.targets.1.as_millis_f64() / iub.targets.0 as f64),
            }),
            lost_by: self.lost_by,
        }
    }
}

impl AddAssign<&Self> for RadioCounts {
    fn add_assign(&mut self, other: &Self) {
        self.queue.merge(&other.queue);
        if let Some(theirs) = &other.base_station {
            self.base_station.get_or_insert_default().merge(theirs);
        }
        self.rlc += other.rlc;
        if let Some(theirs) = other.harq {
            *self.harq.get_or_insert_default() += theirs;
        }
        self.blocks.capacity += other.blocks.capacity;
        self.blocks.used += other.blocks.used;
        if let Some(theirs) = other.iub {
            *self.iub.get_or_insert(IubCounts::NONE) += theirs;
        }
        self.lost_by += other.lost_by;
    }
}

impl AddAssign for RlcResult {
    fn add_assign(&mut self, other: Self) {
        self.pdus += other.pdus;
        self.retransmitted += other.retransmitted;
        self.duplicates += other.duplicates;
        self.lost += other.lost;
        self.status += other.status;
        self.resets += other.resets;
        self.discarded_sdus += other.discarded_sdus;
    }
}

impl AddAssign for HarqResult {
    fn add_assign(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.repeated += other.repeated;
        self.lost += other.lost;
    }
}

impl AddAssign for IubCounts {
    fn add_assign(&mut self, other: Self) {
        self.allocations += other.allocations;
        self.credits_unused =
            self.credits_unused.zip(other.credits_unused).map(|(ours, theirs)| ours + theirs);
        self.underruns += other.underruns;
        self.targets.0 += other.targets.0;
        self.targets.1 += other.targets.1;
    }
}

impl AddAssign for LostBy {
    fn add_assign(&mut self, other: Self) {
        self.max_dat += other.max_dat;
        self.reset += other.reset;
        self.air += other.air;
        self.base_station += other.base_station;
        self.handover += other.handover;
        self.aged += other.aged;
    }
}
