//! Divides the expected service of a link among the flows that share it.
//!
//! A flow that has sent little is young: a page, or the start of something longer. Young flows are allowed the whole
//! as if no others existed. The data that they are about to send is subtracted from the others' budget, which those
//! share: a first window from the SYN-ACK on, then twice the data of the last round trip, and nothing after their last
//! data. If most flows are young, as when many start together, all share equally; a single flow has everything. A flow
//! with packets in the queue shares the link, however long they have been queued.

use ackclock_core::{Span, Time};

/// Flows share the link if they were active in the last `SLOTS` times `SLOT`, or have packets in the queue.
const SLOT: Span = Span::from_millis(250);
const SLOTS: u64 = 8;
/// The reservation for a flow lasts this many slots after its last activity.
const KEPT: u64 = 4;
/// A flow is young until it has sent more bytes than this: the first three round trips from an initial window of ten
/// packets.
const YOUNG: u64 = 100_000;
/// A flow that has had data for longer than this is not young: the link is slow, or many share it.
const YOUTH: Span = Span::from_secs(20);
/// A flow is young again after this long without data and ACKs, and with nothing in flight.
pub(super) const QUIET: Span = Span::from_secs(1);
/// Packets of an initial window (RFC 6928).
pub(super) const FIRST_WINDOW: u32 = 10;
/// Maximum growth of a congestion window per round trip.
const GROWTH: f64 = 2.0;

/// The latest activity of a flow.
#[derive(Clone, Copy, Debug)]
struct Note {
    slot: u64,
    is_young: bool,
    /// Bytes reserved for it, if it is young.
    kept: u32,
}

/// State of one flow that shares the link.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    /// Bytes sent since it began or was last idle.
    sent: u64,
    /// Since when it has always had data.
    began: Time,
    /// When data last arrived or an ACK was last sent.
    heard: Option<Time>,
    noted: Option<Note>,
    /// Its last data has arrived.
    ended: bool,
}

impl Share {
    /// Whether it has sent little so far.
    fn is_young(&self, now: Time) -> bool {
        self.sent <= YOUNG && now.since(self.began) <= YOUTH
    }

    /// Whether it was young at its latest activity.
    pub(super) fn is_noted_young(&self) -> bool {
        self.noted.is_some_and(|noted| noted.is_young)
    }

    /// `bytes` of data arrive. If everything before was acknowledged, a sender with more data would have sent it
    /// within `at_once`.
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

    /// An ACK is sent to its sender.
    pub(super) fn on_ack(&mut self, now: Time) {
        self.heard = Some(now);
    }
}

/// All flows that share a link, counted by the slot of their latest activity.
#[derive(Debug, Default)]
pub(super) struct Shares {
    slot: u64,
    rows: [Row; SLOTS as usize],
    /// Sums over the last `SLOTS`; reservations over the last `KEPT`.
    all: Row,
    /// Flows that have packets in the queue, or held ACKs.
    waiting: u32,
    /// A number of flows, and its cube root.
    rooted: (u32, f64),
}

/// Flows whose latest activity was in a slot.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    flows: u32,
    young: u32,
    /// Bytes reserved for young flows.
    kept: u64,
}

impl Shares {
    /// Flows that share the link: recently active ones, or waiting ones if they are more.
    pub(super) fn flows(&self) -> u32 {
        self.all.flows.max(self.waiting).max(1)
    }

    /// Cube root of the number of flows, recalculated when it changes.
    pub(super) fn root(&mut self) -> f64 {
        let flows = self.flows();
        if self.rooted.0 != flows {
            self.rooted = (flows, libm::cbrt(f64::from(flows)));
        }
        self.rooted.1
    }

    /// Whether a flow yields to young ones: it is not young, most are not young, and young flows are about to send
    /// more than a packet of this payload.
    pub(super) fn yields(&self, share: &Share, payload: u32) -> bool {
        let Row { young, kept, .. } = self.all;
        kept > payload.into() && 2 * young <= self.flows() && share.noted.is_some_and(|noted| !noted.is_young)
    }

    /// Whether a flow wanted the link `before`, and wants it `now`.
    pub(super) fn on_waiting(&mut self, before: bool, now: bool) {
        self.waiting = self.waiting + u32::from(now) - u32::from(before);
    }

    /// Share of a flow in `total`, bytes.
    pub(super) fn of(&self, share: &Share, total: f64) -> f64 {
        let Row { young, kept, .. } = self.all;
        let flows = self.flows();
        match share.noted {
            _ if 2 * young > flows => total / f64::from(flows),
            Some(noted) if noted.is_young && self.counts(noted) => total / f64::from(young.max(1)),
            _ => (total - kept as f64).max(0.0) / f64::from((flows - young).max(1)),
        }
    }

    /// The sender of a flow is about to start, with packets of this payload.
    pub(super) fn on_begun(&mut self, now: Time, share: &mut Share, payload: u32) {
        (share.sent, share.began, share.ended) = (0, now, false);
        self.note(now, share, FIRST_WINDOW.saturating_mul(payload));
    }

    /// A flow is active, and used this many bytes in its last round trip, if known.
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

    /// Removes the contribution of a flow, if it still counts.
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

    /// Whether an activity is recent enough to count.
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
        // Its reservation ends between 0.75 and 1 s after its latest activity.
        hear(&mut shares, 1100, &mut long, 0.0);
        assert_eq!(shares.of(&long, 12_000.0), 12_000.0);
        // If most are young, all share equally.
        let mut second = Share::default();
        shares.on_begun(at(1120), &mut second, 500);
        assert_eq!((shares.of(&second, 12_000.0), shares.of(&long, 12_000.0)), (4000.0, 4000.0));
        assert!(!shares.yields(&long, 500));
        // With its last data a page is complete.
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
        // A small answer every quarter of a second is not a flow that waits.
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
