//! # UMTS RLC, acknowledged mode
//!
//! ## Source
//! 3GPP TS 25.322, "Radio Link Control (RLC) protocol specification", release 6, with the settings of AC06 as `links.md` section 7
//! restates them.
//!
//! ## What it does
//! An entity stands at each end of the radio. It cuts the packets of its direction (SDUs) into PDUs of one size, sends as many as a
//! TTI has room for, and sends those again that its peer reports as missing. Each part of the protocol has a file:
//! - `segmentation`: PDUs are filled, one packet behind the other, with length indicators and padding;
//! - `transmitter`: VT(S), VT(A), VT(DAT), the window, what is sent again, lowest number first;
//! - `poll`: the triggers and timers of polls;
//! - `receiver`: VR(R), VR(H), the window, reassembly in or out of sequence, the triggers and timers of STATUS;
//! - `status`: ACK, WINDOW, MRW and MRW_ACK, and the room that they take; `missing`: LIST and BITMAP;
//! - `discard`: what was sent MaxDAT times is given up, and the peer told to move its window; `reset`: both ends begin anew;
//! - `sdus`: the buffer, in which a packet stays until the peer has acknowledged all of it; `places`: when it would have arrived, had
//!   nothing been sent again;
//! - `end`: an end of either mode, without a clock.
//!
//! Clock and air are those of a dedicated channel (`radio_access/dedicated.rs`), in each direction, as of the bearer `radio-access`, of
//! which this one is a short spelling.
//!
//! ## Differences from the source
//! - LIST or BITMAP report what is missing, one of both in a STATUS PDU, and no RLIST. What one has no room for follows in further ones. A bit
//!   that is set acknowledges nothing by itself; what bits of a last octet are left over are of PDUs before the first that is missing.
//! - When a receiver changes the window of its peer is said by the scenario (`status.windows`); each STATUS from then on tells it.
//! - A PDU that was sent less than a round trip ago is not sent again for a STATUS that cannot know of it (`guard`).
//! - Where PDUs are unacknowledged and nothing is left that would poll, Timer_Poll starts, so that a loss cannot be forgotten.
//! - Polls of the window can be those of the first PDU alone, each time that the share is reached (`poll.window_polls`).
//! - A packet that is discarded while the receiver is still being told of another moves what it is told, and begins MaxMRW anew.
//! - The end of a packet that fills a PDU is told in the next one; the special value of the HE field is not used.
//! - Behind MaxRST the bearer is set up anew at both ends, which in a network is the radio controller's to do.
//! - A PDU names the packets that it has parts of, where a real one has their octets. In unacknowledged mode a loss is known at once.
//!
//! ## Validation
//! Scripted exchanges for each trigger and timer; every packet delivered once and in order or reported lost, the window kept and memory bounded
//! under random errors; throughput and delay beside the closed form for independent errors (unit tests and `tests/bearers.rs`);
//! the conventional case of AC06 (`papers/ac06`); real senders over it beside the simulator's (`docs/how-to/umts.md`).

mod bounds;
mod config;
mod discard;
mod end;
mod entity;
mod missing;
mod pdu;
mod places;
mod poll;
mod receiver;
mod reset;
mod rlc;
mod sdus;
mod segmentation;
mod sn;
mod status;
mod transmitter;
mod unacknowledged;

pub use config::UmtsRlcAmConfig;
pub use missing::MissingFormat;
pub use poll::{PollConfig, WindowPolls};
pub use receiver::{StatusConfig, WindowChange};
pub use rlc::{OnMaxDat, RlcConfig, RlcMode, Tries};

pub(crate) use bounds::in_bounds;
pub(crate) use end::{Asks, End};
pub(crate) use pdu::{Data, Pdu};
pub(crate) use places::Places;
pub(crate) use sdus::Sdus;

/// Octets of the header of an AMD and of a UMD PDU.
const HEADER: [u32; 2] = [2, 1];

#[cfg(test)]
mod tests;
