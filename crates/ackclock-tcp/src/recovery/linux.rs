//! # Recovery in Linux
//!
//! Recovery as in Linux: RACK-TLP if the peer sends SACK, otherwise counted duplicates.
//!
//! ## Source
//! Linux 6.18; the modules of the two recoveries list further sources.
//!
//! ## What it does
//! The handshake decides which recovery is used. In a connection without handshake, a duplicate acknowledgement without
//! SACK indicates a peer without SACK, and the first SACK indicates a peer with SACK.
//!
//! ## Differences from the source
//! Linux has no connections without a handshake.
//!
//! ## Validation
//! `tests/linux.rs` checks exchanges of segments.

use ackclock_core::{Seq, Time};

use super::{AckFacts, Counted, Next, Rack, Recovery, Sending, Verdict, Window};
use crate::cc::{Congestion, Phase};
use crate::config::{Halves, SenderConfig, Switch};
use crate::scoreboard::Scoreboard;
use crate::sent::Index;

/// Loss recovery that Linux would choose for the peer.
#[derive(Clone, Debug)]
pub struct Linux {
    way: Way,
    /// Whether the peer is known to send SACK.
    sack: Option<Switch>,
}

#[derive(Clone, Debug)]
enum Way {
    Rack(Rack),
    Counted(Counted),
}

/// Calls a method of the recovery in use.
macro_rules! of {
    ($way:expr, $recovery:ident => $call:expr) => {
        match $way {
            Way::Rack($recovery) => $call,
            Way::Counted($recovery) => $call,
        }
    };
}

impl Recovery for Linux {
    const USES_SACK: bool = true;
    const HALVES: Halves = Halves::Flight;
    const KNOWS_FLIGHT: bool = true;
    const FOLLOWS_ARRIVALS: bool = true;

    type InLinux = Self;

    fn new(config: &SenderConfig) -> Self {
        // The option `probe_timeout` needs a peer with SACK.
        let sack = Some(Switch::On).filter(|_| config.probe_timeout == Switch::On);
        Self { way: Way::Rack(Rack::new(config)), sack }
    }

    fn on_advance(&mut self, ack: &AckFacts, board: &mut Scoreboard) -> Verdict {
        of!(&mut self.way, recovery => recovery.on_advance(ack, board))
    }

    fn on_duplicate(&mut self, ack: &AckFacts, board: &mut Scoreboard) -> Verdict {
        if self.sack.is_none() {
            self.guess(ack);
        }
        of!(&mut self.way, recovery => recovery.on_duplicate(ack, board))
    }

    fn on_timeout(&mut self, now: Time, board: &mut Scoreboard) {
        of!(&mut self.way, recovery => recovery.on_timeout(now, board));
    }

    fn on_spurious(&mut self, cause: Congestion, board: &mut Scoreboard) {
        of!(&mut self.way, recovery => recovery.on_spurious(cause, board));
    }

    fn ends_at(&mut self, point: Seq) {
        of!(&mut self.way, recovery => recovery.ends_at(point));
    }

    fn reordered(&self) -> u32 {
        of!(&self.way, recovery => recovery.reordered())
    }

    fn on_sent(&mut self, sending: &Sending, board: &Scoreboard) {
        of!(&mut self.way, recovery => recovery.on_sent(sending, board));
    }

    fn on_sent_again(&mut self, index: Index, board: &Scoreboard) {
        of!(&mut self.way, recovery => recovery.on_sent_again(index, board));
    }

    fn take_probe(&mut self) -> bool {
        of!(&mut self.way, recovery => recovery.take_probe())
    }

    fn on_probe_timeout(&mut self) -> bool {
        of!(&mut self.way, recovery => recovery.on_probe_timeout())
    }

    fn on_window_probe(&mut self) {
        of!(&mut self.way, recovery => recovery.on_window_probe());
    }

    fn agree(&mut self, sack: Switch) {
        self.sack = Some(sack);
        if sack == Switch::Off {
            self.way = Way::Counted(Counted::begin());
        }
    }

    fn poll_timeout(&self) -> Time {
        of!(&self.way, recovery => recovery.poll_timeout())
    }

    fn on_time(&mut self, now: Time, board: &mut Scoreboard) -> Verdict {
        of!(&mut self.way, recovery => recovery.on_time(now, board))
    }

    fn in_flight(&self, board: &Scoreboard) -> u32 {
        of!(&self.way, recovery => recovery.in_flight(board))
    }

    fn delivered(&self, told: u32) -> u32 {
        of!(&self.way, recovery => recovery.delivered(told))
    }

    #[inline]
    fn poll(&mut self, window: &Window, board: &mut Scoreboard) -> Option<Next> {
        of!(&mut self.way, recovery => recovery.poll(window, board))
    }

    fn phase(&self) -> Phase {
        of!(&self.way, recovery => recovery.phase())
    }

    fn is_repaired(&self, board: &Scoreboard) -> bool {
        of!(&self.way, recovery => recovery.is_repaired(board))
    }

    fn has_duplicates(&self) -> bool {
        of!(&self.way, recovery => recovery.has_duplicates())
    }
}

impl Linux {
    /// Infers from a duplicate acknowledgement whether the peer sends SACK, if there was no handshake. The call has no
    /// effect during recovery.
    #[cold]
    fn guess(&mut self, ack: &AckFacts) {
        if self.phase() != Phase::Open {
            return;
        }
        let tells = ack.sacked > 0 || ack.dsack.is_some();
        if tells {
            self.sack = Some(Switch::On);
        }
        match self.way {
            Way::Counted(_) if tells => self.way = Way::Rack(Rack::begin()),
            Way::Rack(_) if ack.duplicate && !tells => self.way = Way::Counted(Counted::begin()),
            _ => {}
        }
    }
}
