//! How what a link is expected to serve is divided among the flows that share it.
//!
//! A flow that has sent little, a page or the beginning of something longer, is young. Young flows share the whole as if no
//! others were there. What they are about to send is taken from what the others are told, who share the rest: from the answer
//! to the mobile's SYN on a first window, then twice what was used in the last round trip, and after their last data nothing.
//! Where most flows are young, as when many begin together, all share alike; a flow that is alone has all. A flow that has
//! packets in the queue shares the link however long they wait.

use ackclock_core::{Span, Time};

/// Flows share the link that were heard of in the last `SLOTS` times `SLOT`, or have packets in the queue.
const SLOT: Span = Span::from_millis(250);
const SLOTS: u64 = 8;
/// What is kept for a flow is kept for so many slots after it was heard of.
const KEPT: u64 = 4;
/// A flow is young until it has sent more, bytes: what comes in the first three round trips of a source that begins with ten
/// packets. What a source sends for longer without a pause is no page any more: the link is slow, or many share it.
const YOUNG: u64 = 100_000;
const YOUTH: Span = Span::from_secs(20);
/// After so long without data and ACKs, and with nothing outstanding, a flow is young again.
pub(super) const QUIET: Span = Span::from_secs(1);
/// Packets of a first window (RFC 6928).
pub(super) const FIRST_WINDOW: u32 = 10;
/// A congestion window doubles in a round trip at most.
const GROWTH: f64 = 2.0;

/// What was last noted of a flow.
#[derive(Clone, Copy, Debug)]
struct Note {
    slot: u64,
    is_young: bool,
    /// Bytes that are kept for it, if it is young.
    kept: u32,
}

/// The place of one flow among those that share the link.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    /// Bytes sent since it began or was last quiet.
    sent: u64,
    /// Since when it has always had something to send.
    began: Time,
    /// When data last came or an ACK last went.
    heard: Option<Time>,
    noted: Option<Note>,
    /// Its last data has come.
    ended: bool,
}

impl Share {
    /// Whether it has sent little yet.
    fn is_young(&self, now: Time) -> bool {
        self.sent <= YOUNG && now.since(self.began) <= YOUTH
    }

    /// Whether that was so when it was last noted.
    pub(super) fn is_noted_young(&self) -> bool {
        self.noted.is_some_and(|noted| noted.is_young)
    }

    /// So many bytes come of it. Where all before was acknowledged to the source, it would have sent them so soon if it had had
    /// them.
    pub(super) fn on_data(&mut self, now: Time, bytes: u32, at_once: Option<Span>) {
        let paused = self.heard.map_or(Span::ZERO, |heard| now.since(heard));
        if at_once.is_some_and(|at_once| paused > at_once) {
            self.began = now;
        }
        if at_once.is_some() && paused >= QUIET {
            self.sent = 0;
        }
        self.heard = Some(now);
        self.sent += u64::from(bytes);
    }

    /// An ACK goes to its source.
    pub(super) fn on_ack(&mut self, now: Time) {
        self.heard = Some(now);
    }
}

/// All flows that share a link, counted by the slot in which each was last heard of.
#[derive(Debug, Default)]
pub(super) struct Shares {
    slot: u64,
    rows: [Row; SLOTS as usize],
    /// Of the last `SLOTS`; what is kept of the last `KEPT`.
    all: Row,
    /// Flows that have packets in the queue, or ACKs that are kept.
    waiting: u32,
    /// A number of flows, and its third root.
    rooted: (u32, f64),
}

/// The flows that were last heard of in a slot.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    flows: u32,
    young: u32,
    /// Bytes kept for young flows.
    kept: u64,
}

impl Shares {
    /// Flows that share the link: those that were heard of, or those that wait for it where they are more.
    pub(super) fn flows(&self) -> u32 {
        self.all.flows.max(self.waiting).max(1)
    }

    /// The third root of their number, worked out where that has changed.
    pub(super) fn root(&mut self) -> f64 {
        let flows = self.flows();
        if self.rooted.0 != flows {
            self.rooted = (flows, libm::cbrt(f64::from(flows)));
        }
        self.rooted.1
    }

    /// Whether a flow yields to young ones: it is not of them, they are not most, and they are about to send more than a packet
    /// of so much payload.
    pub(super) fn yields(&self, share: &Share, payload: u32) -> bool {
        let Row { young, kept, .. } = self.all;
        kept > payload.into() && 2 * young <= self.flows() && share.noted.is_some_and(|noted| !noted.is_young)
    }

    /// A flow wanted the link `before`, or did not, and wants it `now`.
    pub(super) fn on_waiting(&mut self, before: bool, now: bool) {
        self.waiting = self.waiting + u32::from(now) - u32::from(before);
    }

    /// Bytes that a flow may have of `total`.
    pub(super) fn of(&self, share: &Share, total: f64) -> f64 {
        let Row { young, kept, .. } = self.all;
        let flows = self.flows();
        match share.noted {
            _ if 2 * young > flows => total / f64::from(flows),
            Some(noted) if noted.is_young && self.counts(noted) => total / f64::from(young.max(1)),
            _ => (total - kept as f64).max(0.0) / f64::from((flows - young).max(1)),
        }
    }

    /// The source of a flow is about to send, packets of so much payload.
    pub(super) fn on_begun(&mut self, now: Time, share: &mut Share, payload: u32) {
        (share.sent, share.began, share.ended) = (0, now, false);
        self.note(now, share, FIRST_WINDOW.saturating_mul(payload));
    }

    /// A flow is heard of that used so many bytes in its last round trip, where that is known.
    pub(super) fn on_heard(&mut self, now: Time, share: &mut Share, used: Option<f64>) {
        if !share.ended {
            let before = share.noted.map_or(0, |noted| noted.kept);
            self.note(now, share, used.map_or(before, |used| (GROWTH * used) as u32));
        }
    }

    /// A flow will send nothing more.
    pub(super) fn on_ended(&mut self, now: Time, share: &mut Share) {
        share.ended = true;
        self.forget(now, share);
    }

    fn note(&mut self, now: Time, share: &mut Share, kept: u32) {
        self.forget(now, share);
        let is_young = share.is_young(now);
        let kept = if is_young { kept } else { 0 };
        share.noted = Some(Note { slot: self.slot, is_young, kept });
        for row in [&mut self.rows[(self.slot % SLOTS) as usize], &mut self.all] {
            row.flows += 1;
            row.young += u32::from(is_young);
            row.kept += u64::from(kept);
        }
    }

    /// Takes away what was noted of a flow, if it counts still.
    fn forget(&mut self, now: Time, share: &mut Share) {
        self.advance(now.as_nanos() / SLOT.as_nanos());
        let Some(Note { slot, is_young, kept }) = share.noted.take().filter(|noted| self.counts(*noted))
        else {
            return;
        };
        let still_kept = if slot + KEPT > self.slot { kept } else { 0 };
        for (row, kept) in [(&mut self.rows[(slot % SLOTS) as usize], kept), (&mut self.all, still_kept)] {
            row.flows -= 1;
            row.young -= u32::from(is_young);
            row.kept -= u64::from(kept);
        }
    }

    /// Whether what was noted is not too long ago.
    const fn counts(&self, noted: Note) -> bool {
        noted.slot + SLOTS > self.slot
    }

    fn advance(&mut self, slot: u64) {
        for new in (self.slot + 1..=slot).take(SLOTS as usize) {
            let gone = std::mem::take(&mut self.rows[(new % SLOTS) as usize]);
            self.all.flows -= gone.flows;
            self.all.young -= gone.young;
            if let Some(old) = new.checked_sub(KEPT) {
                self.all.kept -= self.rows[(old % SLOTS) as usize].kept;
            }
        }
        self.slot = self.slot.max(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    const AT_ONCE: Span = Span::from_millis(50);

    /// A flow that has sent much.
    fn old() -> Share {
        Share { sent: YOUNG + 1, ..Share::default() }
    }

    fn hear(shares: &mut Shares, now: u64, share: &mut Share, used: f64) {
        shares.on_heard(at(now), share, Some(used));
    }

    #[test]
    fn flows_share_alike_for_two_seconds() {
        let (mut shares, mut one, mut other) = (Shares::default(), old(), old());
        hear(&mut shares, 100, &mut one, 9000.0);
        assert_eq!(shares.of(&one, 12_000.0), 12_000.0);
        hear(&mut shares, 100, &mut other, 9000.0);
        assert_eq!((shares.flows(), shares.of(&one, 12_000.0)), (2, 6000.0));
        hear(&mut shares, 1900, &mut other, 9000.0);
        assert_eq!(shares.flows(), 2);
        hear(&mut shares, 2400, &mut other, 9000.0);
        assert_eq!((shares.flows(), shares.of(&other, 12_000.0)), (1, 12_000.0), "the other came 2.3 s ago");
        hear(&mut shares, 60_000, &mut one, 9000.0);
        shares.on_ended(at(60_000), &mut one);
        shares.on_ended(at(60_000), &mut other);
        assert_eq!((shares.all.flows, shares.flows()), (0, 1));
    }

    #[test]
    fn a_young_flow_has_all_and_the_others_what_it_is_not_about_to_use() {
        let (mut shares, mut long, mut page) = (Shares::default(), old(), Share::default());
        hear(&mut shares, 100, &mut long, 0.0);
        shares.on_begun(at(100), &mut page, 500);
        assert_eq!(shares.of(&page, 12_000.0), 12_000.0);
        assert_eq!((shares.yields(&long, 500), shares.yields(&page, 500)), (true, false));
        assert!(!shares.yields(&long, 5000), "what is about to come is no more than a packet");
        assert_eq!(shares.of(&long, 12_000.0), 7000.0, "ten packets are to come");
        hear(&mut shares, 110, &mut page, 10_000.0);
        assert_eq!(shares.of(&long, 12_000.0), 0.0);
        // Between 0.75 and 1 s after it was heard of nothing is kept for it any more.
        hear(&mut shares, 1100, &mut long, 0.0);
        assert_eq!(shares.of(&long, 12_000.0), 12_000.0);
        // Where most are young, all share alike.
        let mut second = Share::default();
        shares.on_begun(at(1120), &mut second, 500);
        assert_eq!((shares.of(&second, 12_000.0), shares.of(&long, 12_000.0)), (4000.0, 4000.0));
        assert!(!shares.yields(&long, 500));
        // With its last data a page has what it wanted.
        shares.on_ended(at(1130), &mut page);
        shares.on_ended(at(1130), &mut second);
        hear(&mut shares, 1140, &mut page, 10_000.0);
        assert_eq!(shares.of(&long, 12_000.0), 12_000.0);
    }

    #[test]
    fn a_flow_that_waits_in_the_queue_has_its_share_however_long() {
        let (mut shares, mut one, mut other) = (Shares::default(), old(), old());
        hear(&mut shares, 100, &mut one, 9000.0);
        hear(&mut shares, 100, &mut other, 9000.0);
        shares.on_waiting(false, true);
        shares.on_waiting(false, true);
        shares.on_waiting(true, true);
        hear(&mut shares, 5000, &mut one, 9000.0);
        assert_eq!((shares.flows(), shares.of(&one, 12_000.0)), (2, 6000.0));
        shares.on_waiting(true, false);
        assert_eq!((shares.flows(), shares.of(&one, 12_000.0)), (1, 12_000.0));
    }

    #[test]
    fn young_flows_alone_share_alike() {
        let (mut shares, mut one, mut other) = (Shares::default(), Share::default(), Share::default());
        shares.on_begun(at(0), &mut one, 500);
        assert_eq!(shares.of(&one, 12_000.0), 12_000.0);
        shares.on_begun(at(0), &mut other, 500);
        assert_eq!(shares.of(&one, 12_000.0), 6000.0);
    }

    #[test]
    fn a_flow_is_young_for_100_kb_and_again_after_a_quiet_second() {
        let mut share = Share::default();
        (0..100).for_each(|number| share.on_data(at(number), 1000, None));
        assert!(share.is_young(at(99)));
        share.on_data(at(100), 1000, None);
        assert!(!share.is_young(at(100)));
        share.on_data(at(2000), 1000, None);
        assert!(!share.is_young(at(2000)), "an outage: its data was outstanding");
        share.on_data(at(2900), 1000, Some(AT_ONCE));
        assert!(!share.is_young(at(2900)), "900 ms");
        share.on_ack(at(3800));
        share.on_data(at(3900), 1000, Some(AT_ONCE));
        assert!(!share.is_young(at(3900)), "it waited for the ACK");
        share.on_data(at(4900), 1000, Some(AT_ONCE));
        assert!(share.is_young(at(4900)));
    }

    #[test]
    fn what_takes_longer_than_20_s_without_a_pause_is_no_page() {
        let (mut shares, mut share) = (Shares::default(), Share::default());
        shares.on_begun(at(5000), &mut share, 500);
        share.on_data(at(24_000), 500, None);
        share.on_ack(at(24_100));
        share.on_data(at(24_150), 500, Some(AT_ONCE));
        assert!(share.is_young(at(25_000)));
        assert!(!share.is_young(at(25_001)));
        // A small answer each quarter of a second is none that waits.
        share.on_ack(at(25_100));
        share.on_data(at(25_200), 500, Some(AT_ONCE));
        assert!(share.is_young(at(45_000)));
    }

    #[test]
    fn a_flow_that_waits_for_longer_than_two_seconds_is_young_no_more() {
        let (mut shares, mut page) = (Shares::default(), Share::default());
        let mut long: Vec<_> = (0..4).map(|_| old()).collect();
        shares.on_begun(at(0), &mut page, 500);
        shares.on_waiting(false, true);
        for now in [0, 3000] {
            for share in &mut long {
                hear(&mut shares, now, share, 0.0);
            }
        }
        (0..4).for_each(|_| shares.on_waiting(false, true));
        assert_eq!((shares.flows(), shares.of(&page, 10_000.0)), (5, 2000.0));
    }
}
