//! Divides the expected service of a link among the flows that share it.
//!
//! A flow shares the link while it sends data. If all data of a flow is acknowledged and a round trip later the sender
//! has sent no more, then the sender had nothing to send: its flow is idle and has no share. After an idle time, a flow
//! has a share again from its third packet on. Every sender may send two packets at any time, so keep-alives, and the
//! keystrokes of a terminal, need no share.
//!
//! A flow that has sent little is young: it may be a web page, or the start of a long transfer. A young flow may use
//! the complete service of the link, as if only young flows existed. The older flows share a budget from which the data
//! that young flows are about to send is subtracted. The reservation of a young flow is a first window from the SYN-ACK
//! on, then twice the data of the last round trip, and nothing after the young flow's last data. If most flows are
//! young, as when many flows start together, all flows share equally; a single flow has the complete budget. A flow
//! with data in the queue shares the link, however long the data has been queued.

use ackclock_core::{Span, Time};

/// A flow shares the link if it has data in the queue, or was active within the last `SLOTS` slots, each of length
/// `SLOT`.
const SLOT: Span = Span::from_millis(250);
const SLOTS: u64 = 8;
/// Number of slots after the last activity of a young flow for which its reservation lasts.
const KEPT: u64 = 4;
/// Maximum number of bytes that a young flow has sent: the first three round trips from an initial window of ten
/// packets.
const YOUNG: u64 = 100_000;
/// Time for which a young flow can have data before it is no longer young, because the link is slow or many flows share
/// it.
const YOUTH: Span = Span::from_secs(20);
/// Time without data, ACKs and bytes in flight after which a flow is young again.
pub(super) const QUIET: Span = Span::from_secs(1);
/// Number of packets of an initial window (RFC 6928).
pub(super) const FIRST_WINDOW: u32 = 10;
/// Bytes that fit into the two packets that every sender may send at any time.
const SMALL: u64 = 2 * 1460;
/// Maximum growth factor of a congestion window per round trip.
const GROWTH: f64 = 2.0;

/// Latest counted activity of a flow.
#[derive(Clone, Copy, Debug)]
struct Note {
    /// First slot in which the activity no longer counts.
    until: u64,
    /// First slot in which the reservation has ended.
    kept_until: u64,
    /// Whether the flow has a share; a flow without a share has only a reservation.
    shares: bool,
    is_young: bool,
    /// Bytes reserved for a young flow.
    kept: u32,
}

/// State of one flow that shares the link.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    /// Bytes that the flow has sent since its start or its last idle time.
    sent: u64,
    /// Bytes that the flow has sent since its last idle time; `None` before the first idle time.
    burst: Option<u64>,
    /// Time since which the flow has had data without interruption.
    began: Time,
    /// Time when data of the flow last arrived or an ACK was last sent.
    heard: Option<Time>,
    noted: Option<Note>,
    /// Set when the flow's last data has arrived.
    ended: bool,
}

impl Share {
    /// Whether the flow has sent few enough bytes to be young.
    fn is_young(&self, now: Time) -> bool {
        self.sent <= YOUNG && now.since(self.began) <= YOUTH
    }

    /// Whether the flow has sent more than the packets that every sender may send, since its last idle time.
    pub(super) fn is_due(&self) -> bool {
        self.burst.is_none_or(|burst| burst > SMALL)
    }

    /// Whether the flow was young at its latest activity.
    pub(super) fn is_noted_young(&self) -> bool {
        self.noted.is_some_and(|noted| noted.is_young)
    }

    /// Handles `bytes` of arriving data. If all earlier data was acknowledged, a sender with more data would have sent
    /// the data within `at_once`.
    pub(super) fn on_data(&mut self, now: Time, bytes: u32, at_once: Option<Span>) {
        let paused = self.heard.map_or(Span::ZERO, |heard| now.since(heard));
        if at_once.is_some_and(|at_once| paused > at_once) {
            let small = self.burst.filter(|burst| *burst <= SMALL).unwrap_or(0);
            (self.began, self.burst, self.sent) = (now, Some(0), self.sent.saturating_sub(small));
        }
        if at_once.is_some() && paused >= QUIET {
            self.sent = 0;
        }
        self.heard = Some(now);
        self.burst = self.burst.map(|burst| burst + u64::from(bytes));
        self.sent += u64::from(bytes);
    }

    /// Handles an ACK that is sent to the flow's sender.
    pub(super) fn on_ack(&mut self, now: Time) {
        self.heard = Some(now);
    }
}

/// All flows that share a link, counted by the slot in which their latest activity ceases to count.
#[derive(Debug, Default)]
pub(super) struct Shares {
    slot: u64,
    /// Rows of this slot and the next ones.
    rows: [Row; SLOTS as usize],
    /// Totals of all flows.
    all: Row,
    /// Number of flows that have data in the queue, or held ACKs.
    waiting: u32,
    /// Number of flows, and the cube root of this number.
    rooted: (u32, f64),
}

/// Totals of the flows whose latest activity, or whose reservation, ends with one slot.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    flows: u32,
    young: u32,
    /// Total number of bytes reserved for young flows.
    kept: u64,
}

impl Shares {
    /// Number of flows that share the link: the recently active flows, or the flows with data in the queue or held
    /// ACKs, whichever number is larger.
    pub(super) fn flows(&self) -> u32 {
        self.all.flows.max(self.waiting).max(1)
    }

    /// Cube root of the number of flows, recalculated when the number changes.
    pub(super) fn root(&mut self) -> f64 {
        let flows = self.flows();
        if self.rooted.0 != flows {
            self.rooted = (flows, libm::cbrt(f64::from(flows)));
        }
        self.rooted.1
    }

    /// Updates the number of waiting flows; `before` says whether the flow waited for the link until now, and `now`
    /// whether it waits from now on.
    pub(super) fn on_waiting(&mut self, before: bool, now: bool) {
        self.waiting = self.waiting + u32::from(now) - u32::from(before);
    }

    /// Bytes of `total` that are the share of a flow.
    pub(super) fn of(&self, share: &Share, total: f64) -> f64 {
        let Row { young, kept, .. } = self.all;
        let flows = self.flows();
        match share.noted {
            _ if 2 * young > flows => total / f64::from(flows),
            Some(noted) if noted.is_young && noted.shares && self.counts(noted) => {
                total / f64::from(young.max(1))
            }
            _ => (total - kept as f64).max(0.0) / f64::from((flows - young).max(1)),
        }
    }

    /// Handles the start of a flow whose packets have `payload` bytes.
    pub(super) fn on_begun(&mut self, now: Time, share: &mut Share, payload: u32) {
        (share.sent, share.burst, share.began, share.ended) = (0, None, now, false);
        self.note(now, share, FIRST_WINDOW.saturating_mul(payload));
    }

    /// Handles activity of a flow that used `used` bytes in its last round trip, if known.
    pub(super) fn on_heard(&mut self, now: Time, share: &mut Share, used: Option<f64>) {
        if !share.ended {
            let before = share.noted.map_or(0, |noted| noted.kept);
            let twice = used.map_or(before, |used| (GROWTH * used) as u32);
            let most = share.burst.map_or(u32::MAX, |burst| (GROWTH * burst as f64) as u32);
            self.note(now, share, twice.min(most));
        }
    }

    /// Handles an ACK of all data of a flow. If the sender has more data, it sends more data within `at_once`.
    pub(super) fn on_all_acknowledged(&mut self, now: Time, share: &mut Share, at_once: Span) {
        let Some(noted) = share.noted.filter(|noted| self.counts(*noted)) else { return };
        let ends = slot_of(now + at_once) + 1;
        self.forget(now, share);
        if noted.until > self.slot {
            let until = noted.until.min(ends.max(self.slot + 1));
            self.count(share, Note { until, kept_until: noted.kept_until.min(until), ..noted });
        }
    }

    /// Handles the end of a flow: its sender will send nothing more.
    pub(super) fn on_ended(&mut self, now: Time, share: &mut Share) {
        share.ended = true;
        self.forget(now, share);
    }

    fn note(&mut self, now: Time, share: &mut Share, kept: u32) {
        self.forget(now, share);
        let is_young = share.is_young(now);
        let (until, kept_until) = (self.slot + SLOTS, self.slot + KEPT);
        let (shares, kept) = (share.is_due(), if is_young { kept } else { 0 });
        self.count(share, Note { until, kept_until, shares, is_young, kept });
    }

    fn count(&mut self, share: &mut Share, noted: Note) {
        share.noted = Some(noted);
        let Note { until, kept_until, shares, is_young, kept } = noted;
        for row in [&mut self.rows[(until % SLOTS) as usize], &mut self.all] {
            row.flows += u32::from(shares);
            row.young += u32::from(shares && is_young);
        }
        if kept_until > self.slot {
            for row in [&mut self.rows[(kept_until % SLOTS) as usize], &mut self.all] {
                row.kept += u64::from(kept);
            }
        }
    }

    /// Removes a flow from the sums, if its latest activity still counts.
    fn forget(&mut self, now: Time, share: &mut Share) {
        self.advance(slot_of(now));
        let Some(noted) = share.noted.take().filter(|noted| self.counts(*noted)) else { return };
        let Note { until, kept_until, shares, is_young, kept } = noted;
        for row in [&mut self.rows[(until % SLOTS) as usize], &mut self.all] {
            row.flows -= u32::from(shares);
            row.young -= u32::from(shares && is_young);
        }
        if kept_until > self.slot {
            for row in [&mut self.rows[(kept_until % SLOTS) as usize], &mut self.all] {
                row.kept -= u64::from(kept);
            }
        }
    }

    /// Whether the activity `noted` is recent enough to count.
    const fn counts(&self, noted: Note) -> bool {
        noted.until > self.slot
    }

    fn advance(&mut self, slot: u64) {
        for new in (self.slot + 1..=slot).take(SLOTS as usize) {
            let gone = std::mem::take(&mut self.rows[(new % SLOTS) as usize]);
            self.all.flows -= gone.flows;
            self.all.young -= gone.young;
            self.all.kept -= gone.kept;
        }
        self.slot = self.slot.max(slot);
    }
}

/// Number of the slot that contains a time.
const fn slot_of(time: Time) -> u64 {
    time.as_nanos() / SLOT.as_nanos()
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
    fn a_flow_that_is_idle_has_no_share_after_a_round_trip() {
        let (mut shares, mut long, mut page) = (Shares::default(), old(), Share::default());
        hear(&mut shares, 0, &mut long, 9000.0);
        shares.on_begun(at(0), &mut page, 500);
        assert_eq!((shares.flows(), shares.of(&long, 12_000.0)), (2, 7000.0));
        // All data of both is acknowledged at 100 ms, and the download goes on within a round trip.
        shares.on_all_acknowledged(at(100), &mut long, AT_ONCE);
        shares.on_all_acknowledged(at(100), &mut page, AT_ONCE);
        hear(&mut shares, 150, &mut long, 9000.0);
        assert_eq!(shares.flows(), 2, "the page may go on until 150 ms, and slots have 250 ms");
        hear(&mut shares, 250, &mut long, 9000.0);
        assert_eq!((shares.flows(), shares.of(&long, 12_000.0)), (1, 12_000.0));
        // An ACK that repeats what is known does not begin the time again.
        shares.on_all_acknowledged(at(260), &mut page, AT_ONCE);
        assert_eq!(shares.flows(), 1);
    }

    #[test]
    fn two_packets_after_an_idle_time_need_no_share_and_do_not_age_a_flow() {
        let (mut shares, mut long, mut typist) = (Shares::default(), old(), Share::default());
        for now in (0..100_000).step_by(500) {
            hear(&mut shares, now, &mut long, 9000.0);
            typist.on_data(at(now), 1460, Some(AT_ONCE));
            hear(&mut shares, now, &mut typist, 9000.0);
            if now > 2000 {
                let share = shares.of(&long, 12_000.0);
                assert_eq!((shares.flows(), share), (1, 12_000.0 - GROWTH * 1460.0), "{now} ms");
            }
        }
        // Two more packets make a burst of three, which is the start of a page.
        (0..2).for_each(|_| typist.on_data(at(99_510), 1460, None));
        hear(&mut shares, 99_510, &mut typist, 4380.0);
        assert_eq!((shares.flows(), shares.of(&typist, 12_000.0)), (2, 12_000.0), "it is young");
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
