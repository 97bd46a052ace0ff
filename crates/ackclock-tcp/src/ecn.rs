//! Modes of ECN feedback, and the handshakes that select them.
//!
//! Source: RFC 3168 section 6.1.1, RFC 8257 section 3 and RFC 9768 (AccECN, draft-ietf-tcpm-accurate-ecn-34) section
//! 3.1.

use ackclock_core::Ecn;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Explicit congestion notification (ECN): whether packets are ECN-capable, and how the receiver reports congestion
/// marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnMode {
    /// The sender is not ECN-capable.
    #[default]
    Off,
    /// The receiver reports at most one mark per round trip (RFC 3168).
    On,
    /// The receiver counts all marks (AccECN, RFC 9768).
    Accurate,
    /// Each ACK reports whether the segments that it acknowledges were marked (DCTCP, RFC 8257).
    Dctcp,
}

/// SYNs that request AccECN before the client asks for no ECN at all (RFC 9768 section 3.1.4.1).
const ACCURATE_SYNS: u32 = 2;

impl EcnMode {
    /// Whether packets are ECN-capable.
    pub const fn is_on(self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Whether the receiver reports more than one mark per round trip.
    pub const fn counts_marks(self) -> bool {
        matches!(self, Self::Accurate | Self::Dctcp)
    }

    /// ACE bits of our SYN, after `earlier` SYNs without an answer. The Linux stack asks for classic ECN only in its
    /// first SYN (tcp_ecn_clear_syn).
    pub(crate) const fn request(self, earlier: u32, linux: bool) -> u8 {
        match self {
            Self::Accurate if earlier < ACCURATE_SYNS => 0b111,
            Self::On | Self::Dctcp if earlier == 0 || !linux => 0b011,
            _ => 0,
        }
    }

    /// Mode of a server that received a SYN with these ACE bits (RFC 9768 table 2 and section 3.1.3).
    pub(crate) const fn of_syn(self, ace: u8) -> Self {
        match (self, ace) {
            (Self::Off, _) | (_, 0) => Self::Off,
            (Self::Accurate, 0b011) => Self::On,
            (Self::On | Self::Dctcp, ace) if ace & 0b011 != 0b011 => Self::Off,
            (mode, _) => mode,
        }
    }

    /// ACE bits of a SYN-ACK in this mode; `syn` is the IP codepoint of the latest SYN.
    pub(crate) const fn answer(self, syn: Ecn) -> u8 {
        match self {
            Self::Off => 0,
            Self::On | Self::Dctcp => 0b001,
            Self::Accurate => handshake_ace(syn),
        }
    }

    /// Mode of a client whose SYN requested this mode, and was answered by a SYN-ACK with these ACE bits (RFC 9768 table
    /// 2). A SYN-ACK that reflects the SYN comes from a peer without ECN (RFC 3168 section 6.1.1).
    pub(crate) const fn of_syn_ack(self, ace: u8) -> Self {
        match (self, ace) {
            (Self::Accurate, 0 | 0b111) => Self::Off,
            (Self::Accurate, 0b001) => Self::On,
            (Self::On | Self::Dctcp, ace) if ace & 0b011 != 0b001 => Self::Off,
            (mode, _) => mode,
        }
    }
}

/// Initial value of the counter of CE-marked packets (RFC 9768 section 3.2.1).
pub(crate) const INITIAL_CE_PACKETS: u8 = 5;

/// ACE bits that report the IP codepoint of a SYN in the SYN-ACK, or of a SYN-ACK in its acknowledgement (RFC 9768
/// tables 2 and 3).
pub(crate) const fn handshake_ace(arrived: Ecn) -> u8 {
    match arrived {
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
        _ => 0b010,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of RFC 9768 table 2: mode of client and server, and the mode of both after the handshake.
    #[test]
    fn both_ends_agree_on_the_mode_of_table_2() {
        use EcnMode::{Accurate, Off, On};
        for (client, server, agreed) in [
            (Accurate, Accurate, Accurate),
            (Accurate, On, On),
            (Accurate, Off, Off),
            (On, Accurate, On),
            (Off, Accurate, Off),
            (On, On, On),
            (On, Off, Off),
            (Off, On, Off),
        ] {
            let at_server = server.of_syn(client.request(0, false));
            let at_client = client.of_syn_ack(at_server.answer(Ecn::NotEct));
            assert_eq!((at_client, at_server), (agreed, agreed), "{client:?} {server:?}");
        }
    }

    #[test]
    fn the_answer_reports_the_codepoint_of_the_syn_and_broken_answers_turn_ecn_off() {
        let answers = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce].map(|syn| EcnMode::Accurate.answer(syn));
        assert_eq!(answers, [0b010, 0b011, 0b100, 0b110]);
        // Reserved (1,0,1) counts as AccECN, reflected (1,1,1) as no ECN.
        let modes = [0b101, 0b111].map(|ace| EcnMode::Accurate.of_syn_ack(ace));
        assert_eq!(modes, [EcnMode::Accurate, EcnMode::Off]);
        // Unused combinations of a SYN request AccECN (section 3.1.3).
        assert!(
            [0b001, 0b010, 0b100, 0b101, 0b110]
                .iter()
                .all(|&ace| EcnMode::Accurate.of_syn(ace) == EcnMode::Accurate)
        );
    }

    #[test]
    fn a_second_syn_requests_accecn_and_a_third_none() {
        let requests = |mode: EcnMode, linux| [0, 1, 2].map(|earlier| mode.request(earlier, linux));
        assert_eq!(requests(EcnMode::Accurate, true), [0b111, 0b111, 0]);
        assert_eq!(requests(EcnMode::On, true), [0b011, 0, 0]);
        assert_eq!(requests(EcnMode::On, false), [0b011; 3]);
    }
}
