//! Congestion marks that the peer reports, beyond the ECN echo of RFC 3168: AccECN (RFC 9768) and DCTCP (RFC 8257).

use ackclock_core::{AccEcn, Ecn, Flags, Segment};

use super::TcpSender;
use super::ack::AckOutcome;
use super::connection::Extra;
use crate::cc::RenewControl;
use crate::ecn::{EcnMode, INITIAL_CE_PACKETS, handshake_ace};
use crate::recovery::Recovery;

/// Largest number of packets by which the ACE field can increase without ambiguity.
const UNAMBIGUOUS: u32 = 7;

/// Counters of the marks that the peer reported, and of the marks that arrived from the peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Feedback {
    /// Reported number of marked packets, modulo 8 (s.cep).
    ce_packets: u8,
    /// Reported marked bytes, modulo 2^24 (s.ceb).
    ce_bytes: u32,
    /// Bytes that the last acknowledgement newly reported as marked.
    pub(super) news: u32,
    /// Bytes reported as marked since the controller's last sample.
    unread: u32,
    /// Whether a handshake without ACE bits forbids ECN-capable packets and reactions to marks (RFC 9768 section
    /// 3.2.2.1, note 1 of table 4).
    pub(super) silent: bool,
    /// IP codepoint of the peer's latest SYN or SYN-ACK.
    pub(super) syn: Ecn,
    /// Number of marked packets from the peer (r.cep): at most the SYN-ACK.
    own_ce_packets: u8,
}

impl Default for Feedback {
    fn default() -> Self {
        Self {
            ce_packets: INITIAL_CE_PACKETS,
            ce_bytes: 0,
            news: 0,
            unread: 0,
            silent: false,
            syn: Ecn::NotEct,
            own_ce_packets: INITIAL_CE_PACKETS,
        }
    }
}

impl Feedback {
    /// Processes the ACE field of the acknowledgement of our SYN-ACK (RFC 9768 table 4).
    pub(super) fn on_handshake(&mut self, ace: u8) {
        self.silent = ace == 0;
        self.ce_packets =
            if ace == handshake_ace(Ecn::Ce) { INITIAL_CE_PACKETS + 1 } else { INITIAL_CE_PACKETS };
    }

    /// Processes the counters of an ACK that acknowledges `delivered` bytes in segments of `mss` bytes. Returns the
    /// newly marked bytes.
    ///
    /// Without the option, an ACK for more than seven packets may hide a wrap of the ACE field. The largest possible
    /// number of marks is assumed then (RFC 9768 section 3.2.2.5.2 and appendix A.2).
    fn on_counters(&mut self, ack: &Segment, delivered: u32, mss: u32) -> u32 {
        let increase = u32::from(ack.ace().wrapping_sub(self.ce_packets) & 7);
        self.ce_packets = ack.ace();
        if let Some(option) = ack.acc_ecn() {
            let bytes = AccEcn::increase(self.ce_bytes, option.ce_bytes);
            self.ce_bytes = option.ce_bytes;
            return bytes;
        }
        let packets = delivered.div_ceil(mss);
        let marked = if packets > UNAMBIGUOUS { packets - ((packets - increase) & 7) } else { increase };
        let bytes = marked.saturating_mul(mss);
        self.ce_bytes = AccEcn::increase(0, self.ce_bytes.wrapping_add(bytes));
        bytes
    }
}

impl<R: Recovery, C: RenewControl> TcpSender<R, C> {
    /// Processes the marks that an acknowledgement reports.
    ///
    /// An ACK that delivers nothing is ignored, because a newer ACK may have superseded it (RFC 9768 appendix A.1): the
    /// next ACK repeats its counters.
    #[inline(never)]
    pub(super) fn take_feedback(&mut self, seg: &Segment, outcome: &AckOutcome) {
        let Some(Extra { feedback, .. }) = self.extra.as_deref_mut() else { return };
        let delivered = outcome.acked.bytes.saturating_add(outcome.sacked);
        feedback.news = 0;
        if delivered == 0 || feedback.silent {
            return;
        }
        let bytes = match self.ecn.mode {
            EcnMode::Accurate => feedback.on_counters(seg, delivered, self.mss.into()),
            _ if seg.flags.intersects(Flags::ECE) => delivered,
            _ => 0,
        };
        feedback.news = bytes;
        feedback.unread = feedback.unread.saturating_add(bytes);
    }

    /// Whether an acknowledgement reports congestion.
    pub(super) fn reports_congestion(&self, seg: &Segment) -> bool {
        match self.feedback() {
            Some(feedback) => feedback.news > 0,
            None => seg.flags.intersects(Flags::ECE),
        }
    }

    /// Writes the ACE field of an outgoing segment that is not a SYN. The peer's data is not processed, so the field
    /// keeps its value from the handshake.
    pub(super) fn write_ace(&self, segment: &mut Segment) {
        if let Some(feedback) = self.accurate() {
            segment.set_ace(feedback.own_ce_packets);
        }
    }

    /// Writes the ACE field of the acknowledgement of the peer's SYN-ACK (RFC 9768 section 3.2.2.1).
    pub(super) fn write_handshake_ace(&self, segment: &mut Segment) {
        if let Some(feedback) = self.accurate() {
            segment.set_ace(handshake_ace(feedback.syn));
        }
    }

    /// Counters of a connection whose peer reports all marks.
    fn feedback(&self) -> Option<&Feedback> {
        if self.ecn.mode.counts_marks() { self.extra.as_ref().map(|extra| &extra.feedback) } else { None }
    }

    fn feedback_mut(&mut self) -> Option<&mut Feedback> {
        if self.ecn.mode.counts_marks() { self.extra.as_mut().map(|extra| &mut extra.feedback) } else { None }
    }

    /// Counters of a connection that negotiated AccECN.
    fn accurate(&self) -> Option<&Feedback> {
        self.feedback().filter(|_| self.ecn.mode == EcnMode::Accurate)
    }

    /// Whether the handshake forbids ECN-capable packets.
    pub(super) fn is_silent(&self) -> bool {
        self.feedback().is_some_and(|feedback| feedback.silent)
    }

    /// IP codepoint of the peer's latest SYN or SYN-ACK.
    pub(super) fn syn_codepoint(&self) -> Ecn {
        self.feedback().map_or(Ecn::NotEct, |feedback| feedback.syn)
    }

    /// Records the codepoint of the peer's SYN.
    pub(super) fn note_syn(&mut self, ecn: Ecn) {
        if let Some(feedback) = self.feedback_mut() {
            feedback.syn = ecn;
        }
    }

    /// Processes the acknowledgement of our SYN-ACK.
    pub(super) fn note_answer(&mut self, seg: &Segment) {
        if self.ecn.mode == EcnMode::Accurate
            && let Some(feedback) = self.feedback_mut()
        {
            feedback.on_handshake(seg.ace());
        }
    }

    /// Marked bytes for the controller's next sample.
    #[inline]
    pub(super) fn take_marked(&mut self) -> u32 {
        self.feedback_mut().map_or(0, |feedback| std::mem::take(&mut feedback.unread))
    }

    /// Records the codepoint of the peer's SYN-ACK.
    pub(super) fn note_syn_ack(&mut self, ecn: Ecn) {
        if let Some(feedback) = self.feedback_mut() {
            feedback.syn = ecn;
            feedback.own_ce_packets = INITIAL_CE_PACKETS + u8::from(ecn == Ecn::Ce);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::{EctField, FlowId, Seq};

    const MSS: u32 = 1000;

    fn ack(ace: u8, ce_bytes: Option<u32>) -> Segment {
        let mut ack = Segment::pure_ack(FlowId(0), Seq(1), 40);
        ack.set_ace(ace);
        if let Some(ce_bytes) = ce_bytes {
            ack.set_acc_ecn(AccEcn { field: EctField::Ect1, ect_bytes: 1, ce_bytes });
        }
        ack
    }

    #[test]
    fn the_field_counts_modulo_eight_and_the_safest_likely_case_is_taken() {
        let mut feedback = Feedback::default();
        // 5 to 7 are two marks; 7 to 1 are two more across the wrap.
        assert_eq!(feedback.on_counters(&ack(7, None), 2 * MSS, MSS), 2 * MSS);
        assert_eq!(feedback.on_counters(&ack(1, None), 2 * MSS, MSS), 2 * MSS);
        // Appendix A.2.1: 9 packets and an increase of 0 modulo 8: 9 - ((9 - 0) mod 8) = 8 marks.
        assert_eq!(feedback.on_counters(&ack(1, None), 9 * MSS, MSS), 8 * MSS);
        // 30 packets and an increase of 1: 30 - (29 mod 8) = 25 marks.
        assert_eq!(feedback.on_counters(&ack(2, None), 30 * MSS, MSS), 25 * MSS);
    }

    #[test]
    fn the_option_tells_the_bytes_whatever_the_field_may_hide() {
        let mut feedback = Feedback::default();
        assert_eq!(feedback.on_counters(&ack(5, Some(8 * MSS)), 9 * MSS, MSS), 8 * MSS);
        assert_eq!(feedback.on_counters(&ack(5, Some(8 * MSS)), 9 * MSS, MSS), 0);
        // The field counts on while SACK blocks leave no room for the option, and the next option repeats nothing.
        assert_eq!(feedback.on_counters(&ack(6, None), MSS, MSS), MSS);
        assert_eq!(feedback.on_counters(&ack(7, Some(10 * MSS)), MSS, MSS), MSS);
    }

    #[test]
    fn the_acknowledgement_of_the_syn_ack_sets_the_first_count() {
        let mut feedback = Feedback::default();
        // A marked SYN-ACK is counted once (table 4), so a field of 6 reports nothing new.
        feedback.on_handshake(0b110);
        assert_eq!(feedback.on_counters(&ack(6, None), MSS, MSS), 0);
        feedback.on_handshake(0b010);
        assert!(!feedback.silent);
        feedback.on_handshake(0);
        assert!(feedback.silent);
    }
}
