//! # UMTS RLC
//!
//! ## Source
//! 3GPP TS 25.322, "Radio Link Control (RLC) protocol specification", release 6, with the settings of AC06 as restated
//! in `links.md` section 7.
//!
//! ## What it does
//! An RLC entity at each end of the radio cuts the packets of its direction (SDUs) into PDUs of one size. The entity
//! sends as many PDUs as fit into a TTI, and retransmits PDUs that its peer reports as missing. Each part of the
//! protocol has a file:
//! - `segmentation`: fills PDUs, packet by packet, with length indicators and padding; or fills what a grant leaves
//!   (TS 36.322), or has one packet in each PDU (TS 38.322);
//! - `transmitter`: VT(S), VT(A), VT(DAT), the window, and retransmissions, lowest number first;
//! - `poll`: the triggers and timers of polls;
//! - `receiver`: VR(R), VR(H), the window, reassembly in or out of sequence, the triggers and timers of STATUS;
//! - `status`: the fields ACK, WINDOW, MRW and MRW_ACK, and their sizes; `missing`: the fields LIST and BITMAP;
//! - `discard`: gives up PDUs after MaxDAT - 1 transmissions, and makes the peer move its window; `reset`: resets both
//!   ends;
//! - `sdus`: the buffer, in which a packet stays until the peer has acknowledged all of the packet; `places`:
//!   calculates arrival times without retransmissions;
//! - `reassembly`: t-Reassembly of TS 38.322, which delays reports of missing PDUs; `reordering`: t-Reordering of TS
//!   38.323;
//! - `end`: one end of the bearer in either mode, without a clock.
//!
//! The bearer `radio-access` provides clock and air interfaces.
//!
//! ## Differences from the source
//! - A STATUS PDU reports missing PDUs by either LIST or BITMAP, and never by RLIST. If the missing PDUs do not fit
//!   into one STATUS PDU, further STATUS PDUs report the rest. A set bit in a BITMAP acknowledges nothing by itself;
//!   spare bits of the last octet stand for PDUs before the first missing PDU.
//! - The scenario sets when a receiver changes its peer's window (`status.windows`); each later STATUS contains the new
//!   window.
//! - A PDU sent less than an RTT ago is not retransmitted, because a STATUS cannot cover it yet (`guard`).
//! - If PDUs are unacknowledged and no other rule would poll, Timer_Poll starts, so that a loss is always detected.
//! - Window polls can be limited to the first PDU each time the window share is reached (`poll.window_polls`).
//! - If a packet is discarded while an earlier MRW is pending, the new MRW replaces the earlier MRW, and the MaxMRW
//!   count restarts.
//! - If the end of a packet fills a PDU, the next PDU has the packet's length indicator; the special value of the HE
//!   field is not used.
//! - After MaxRST the bearer is set up again at its two ends; in a real network the radio controller sets it up.
//! - With `pdu = "packet"`, polls, STATUS and discards are those of TS 25.322, and each segment of a packet has a
//!   sequence number of its own; in TS 38.322 the segments of a packet share a number, and a STATUS names octets.
//! - A packet has its PDCP number when its first PDU is filled, so that no discarded packet of the queue leaves a gap.
//! - A simulated PDU names the packets whose parts it contains, but does not hold their octets. In unacknowledged mode
//!   the simulation knows a loss at once.
//!
//! ## Validation
//! Unit tests and `tests/bearers.rs` run scripted exchanges for each trigger and timer. Under random errors every
//! packet is delivered once and in order or reported lost, the window is respected and memory is bounded. Throughput
//! and delay are compared with the closed form for independent errors. `papers/ac06` has the conventional case of AC06;
//! `docs/how-to/umts.md` compares real senders over the bearer with simulated senders.

mod bounds;
mod discard;
mod end;
mod entity;
mod loss_cause;
mod missing;
mod pdu;
mod pdu_size;
mod places;
mod poll;
mod reassembly;
mod receiver;
mod reordering;
mod reset;
mod rlc;
mod sdus;
mod segmentation;
mod sn;
mod status;
mod status_config;
mod statuses;
mod transmitter;
mod unacknowledged;

pub use missing::MissingFormat;
pub use poll::{PollConfig, WindowPolls};
pub use rlc::{BufferCounts, OnMaxDat, RlcConfig, RlcMode, Tries};
pub use status_config::{StatusConfig, WindowChange};

pub(crate) use bounds::in_bounds;
pub(crate) use end::{Asks, End};
pub(crate) use loss_cause::LossCause;
pub(crate) use pdu::{Data, Pdu};
pub(crate) use places::Places;
pub(crate) use sdus::Sdus;

/// Header sizes of an AMD and of a UMD PDU, octets.
const HEADER: [u32; 2] = [2, 1];
/// Header sizes of an AMD and of a UMD PDU that has one packet, octets: RLC with 18-bit numbers, or 6-bit numbers (TS
/// 38.322 sections 6.2.2.3 and 6.2.2.4), and the MAC subheader with a length of 16 bits (TS 38.321 section 6.1.2).
const HEADER_OF_PACKET: [u32; 2] = [3 + 3, 1 + 3];
/// PDCP header with an 18-bit number, octets (TS 38.323 section 6.2.2.3).
const PDCP_HEADER: u32 = 3;
/// Segment offset in the header of each segment of a packet after its first segment, octets (TS 38.322 section 6.2.3.5).
const SEGMENT_OFFSET: u32 = 2;

#[cfg(test)]
mod tests;
