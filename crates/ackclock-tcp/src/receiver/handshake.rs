//! Handshake of the receiver, by active or passive open (RFC 9293 section 3.5).

use ackclock_core::{Flags, Segment, Span, SynOptions, Time, Timestamps};

use super::{INITIAL, Receiver, ReceiverState, clock};
use crate::config::{PLAIN_HEADER, TIMESTAMPS};
use crate::ecn::{EcnMode, handshake_ace};
use crate::stack::LINEAR_SYN_TIMEOUTS;

/// Parameters of the SYN timeout: first value, largest number of doublings, and upper limit (RFC 6298 (2.1), (5.5),
/// (2.5)).
const FIRST_TIMEOUT: Span = Span::from_secs(1);
const MOST_DOUBLINGS: u32 = 6;
const LONGEST_TIMEOUT: Span = Span::from_secs(60);

impl Receiver {
    /// Sends the SYN, or the SYN-ACK that answers the peer's SYN.
    pub(super) fn send_syn(&mut self, now: Time, out: &mut impl FnMut(&Segment)) {
        let answers = self.state == ReceiverState::SynReceived;
        let mut syn = Segment::data(self.flow, INITIAL, 0, PLAIN_HEADER);
        syn.flags = Flags::SYN;
        if answers {
            syn.flags |= Flags::ACK;
            syn.set_ace(self.config.ecn.answer(self.syn_ecn));
        } else {
            syn.set_ace(self.config.ecn.request(self.syns, self.quick.is_used()));
        }
        if answers {
            syn.ack = self.next;
        }
        // The window of a SYN is never scaled (RFC 7323 section 2.2).
        syn.window = u16::try_from(self.window()).unwrap_or(u16::MAX);
        syn.set_scale(Some(self.scale));
        let every =
            if self.config.timestamps { self.header_with(TIMESTAMPS) - self.header_with(0) } else { 0 };
        syn.set_syn_options(SynOptions {
            // The MSS offered is not reduced by the size of the options, because the sender deducts them (RFC 6691).
            mss: Some(self.config.mss.saturating_add(every)),
            window_scale: Some(self.scale).filter(|_| self.scales),
            sack_permitted: self.config.sack,
        });
        if self.config.timestamps {
            syn.set_timestamps(Timestamps { value: clock(now), echo: self.echo.unwrap_or(0) });
        }
        syn.header = self.header_of(&syn);
        self.syn_sent = now;
        self.deadline = now + self.syn_timeout(answers);
        self.syns = self.syns.saturating_add(1);
        out(&syn);
    }

    /// Timeout of the SYN now being sent: twice the previous timeout. In Linux the doubling of the timeout starts
    /// later.
    fn syn_timeout(&self, answers: bool) -> Span {
        let alike = if self.quick.is_used() && !answers { LINEAR_SYN_TIMEOUTS } else { 0 };
        let doublings = self.syns.saturating_sub(alike).min(MOST_DOUBLINGS);
        (FIRST_TIMEOUT * (1 << doublings)).min(LONGEST_TIMEOUT)
    }

    /// Processes a segment with a SYN: the peer's own SYN, or the SYN-ACK to our SYN.
    pub(super) fn on_syn(&mut self, now: Time, seg: &Segment, out: &mut impl FnMut(&Segment)) {
        match self.state {
            ReceiverState::Listening if !seg.flags.intersects(Flags::ACK) => {
                self.state = ReceiverState::SynReceived;
                self.next = seg.seq + 1;
                self.syn_ecn = seg.ecn;
                self.config.ecn = self.config.ecn.of_syn(seg.ace());
                self.agree(seg);
                self.anchor(now);
                self.send_syn(now, out);
            }
            // The peer repeats its SYN because our SYN-ACK was lost.
            ReceiverState::SynReceived if seg.seq + 1 == self.next => {
                self.syn_ecn = seg.ecn;
                self.send_syn(now, out);
            }
            _ => self.on_syn_ack(now, seg, out),
        }
    }

    /// Processes the peer's acknowledgement of our SYN-ACK. Returns whether `seg` is the acknowledgement of our
    /// SYN-ACK.
    pub(super) fn on_answer(&mut self, seg: &Segment) -> bool {
        let answers = self.state == ReceiverState::SynReceived
            && seg.flags.contains(Flags::ACK)
            && seg.ack == INITIAL + 1;
        if answers {
            self.state = ReceiverState::Established;
            self.deadline = Time::NEVER;
        }
        answers
    }

    /// Completes the handshake. If our acknowledgement was lost, answers the repeated SYN-ACK.
    pub(super) fn on_syn_ack(&mut self, now: Time, seg: &Segment, out: &mut impl FnMut(&Segment)) {
        if !seg.flags.contains(Flags::SYN | Flags::ACK)
            || seg.ack != INITIAL + 1
            || !matches!(self.state, ReceiverState::SynSent | ReceiverState::Established)
        {
            return;
        }
        if self.state == ReceiverState::SynSent {
            self.state = ReceiverState::Established;
            self.next = seg.seq + 1;
            self.quick.on_handshake(now.since(self.syn_sent));
            self.config.ecn = self.config.ecn.of_syn_ack(seg.ace());
            self.feedback.on_syn_ack(seg.ecn);
            self.agree(seg);
            self.anchor(now);
        }
        if self.config.ecn == EcnMode::Accurate {
            // The acknowledgement of the SYN-ACK reports its codepoint (RFC 9768 section 3.2.2.1).
            self.acknowledge(now, None, &mut |ack: &Segment| {
                let mut answer = *ack;
                answer.set_ace(handshake_ace(seg.ecn));
                out(&answer);
            });
        } else {
            self.acknowledge(now, None, out);
        }
    }

    /// Disables features that the peer's SYN did not offer.
    fn agree(&mut self, syn: &Segment) {
        let offered = syn.syn_options().unwrap_or_default();
        self.config.sack &= offered.sack_permitted;
        self.config.dsack &= offered.sack_permitted;
        self.config.timestamps &= syn.timestamps().is_some();
        self.echo = syn.timestamps().map(|stamp| stamp.value);
        if offered.window_scale.is_none() {
            self.window_field = u16::try_from(self.window()).unwrap_or(u16::MAX);
            self.scale = 0;
            self.scales = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::FlowId;

    use super::*;
    use crate::receiver::{AckPolicy, Opening, ReceiverConfig};

    /// Times in seconds at which a receiver without an answer sends its SYN.
    fn syns(acks: AckPolicy) -> Vec<u64> {
        let config = ReceiverConfig { opening: Opening::Handshake, acks, ..ReceiverConfig::default() };
        let mut receiver = Receiver::new(config, FlowId(0));
        let mut sent = Vec::new();
        receiver.start(Time::ZERO, &mut |_| sent.push(0));
        while sent.len() < 8 {
            let due = receiver.poll_timeout().unwrap_or(Time::NEVER);
            receiver.on_timeout(due, &mut |_| sent.push(due.as_nanos() / 1_000_000_000));
        }
        sent
    }

    /// Flags of the first two SYNs of a receiver that asks for ECN.
    fn asking(acks: AckPolicy) -> Vec<Flags> {
        let config = ReceiverConfig {
            opening: Opening::Handshake,
            acks,
            ecn: EcnMode::On,
            ..ReceiverConfig::default()
        };
        let mut receiver = Receiver::new(config, FlowId(0));
        let mut sent = Vec::new();
        receiver.start(Time::ZERO, &mut |syn| sent.push(syn.flags));
        receiver.on_timeout(Time::ZERO + FIRST_TIMEOUT, &mut |syn| sent.push(syn.flags));
        sent
    }

    #[test]
    fn only_linux_repeats_its_syn_without_asking_for_ecn() {
        let asks = Flags::SYN | Flags::ECE | Flags::CWR;
        assert_eq!(asking(AckPolicy::Every), [asks, asks]);
        let linux = AckPolicy::Delayed { count: 2, timeout: Span::from_millis(40), quick: 16 };
        assert_eq!(asking(linux), [asks, Flags::SYN]);
    }

    #[test]
    fn waits_for_an_answer_double_and_in_linux_only_after_four() {
        assert_eq!(syns(AckPolicy::Every), [0, 1, 3, 7, 15, 31, 63, 123]);
        let linux = AckPolicy::Delayed { count: 2, timeout: Span::from_millis(40), quick: 16 };
        assert_eq!(syns(linux), [0, 1, 2, 3, 4, 5, 7, 11]);
    }
}
