//! # ackclock-exchange
//!
//! One connection of a sender without a network: [`Connection`] takes what the peer says and gives what the sender says to
//! it, and a [`Script`] writes both down, with times, so that [`run`] can judge the sender. The scripts are the plain ones
//! of packetdrill (Cardwell et al., "packetdrill: scriptable network stack testing, from sockets to packets", USENIX ATC
//! 2013), as far as they speak to a sender.

mod assertion;
mod connection;
pub mod hostile;
mod peer;
mod report;
mod runner;
pub mod script;

pub use connection::{Connection, Data, Sent, Setup, WriteAfterClose};
pub use peer::{Ack, Peer, Syn};
pub use report::{Direction, Failure, Outcome, Seen};
pub use runner::{RunOptions, run};
pub use script::{Refusal, Script, letters};
