//! # ackclock-exchange
//!
//! Drives one TCP sender without a network. A [`Connection`] takes the peer's segments and returns the sender's
//! segments. A [`Script`] lists the segments of peer and sender with their times, and [`run`] checks the sender against
//! the script. Scripts use the part of the packetdrill language that concerns a sender (Cardwell et al., "packetdrill:
//! scriptable network stack testing, from sockets to packets", USENIX ATC 2013).

mod assertion;
mod connection;
pub mod hostile;
mod peer;
mod refusal;
mod report;
mod runner;
pub mod script;

pub use connection::{Connection, Data, Sent, Setup, WriteAfterClose};
pub use peer::{Ack, Peer, Syn};
pub use refusal::Refusal;
pub use report::{Direction, Failure, Outcome, Seen};
pub use runner::{RunOptions, run};
pub use script::{Script, letters};
