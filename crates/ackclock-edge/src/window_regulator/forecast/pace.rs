//! Whether a source paces what it sends, as BBR does, and is to be left its pace.
//!
//! A source that paces sends no bursts, and leaves its window unused for much of the time: it keeps no more outstanding than
//! it wants to. One that is clocked by ACKs sends what a jump of its window allows in a burst, and fills its window with
//! nearly every packet; where its congestion window is smaller it fills that, and what is outstanding hardly varies. What a
//! paced source measures is spoilt by a short window and by ACKs that are kept, so it gets a longer leash and none is
//! kept. A source that fills the leash is told its share again.
//!
//! A wire that is hardly faster than the link spreads bursts, and what waits there leaves the window unused. How fast it is shows
//! when a source sends its first window. Where it is too slow for a burst to show, fewer packets may fill the window.

use ackclock_core::{Span, Time};

use crate::window_regulator::source::Filling;

/// A verdict is made so often, of so many packets at least; what was counted before counts half.
const PERIOD: Span = Span::from_secs(5);
const LEAST: f64 = 100.0;
/// Packets that a source may have outstanding at least for what it sends to show anything, since with fewer nobody sends
/// bursts: half a packet more than the five that `forecast` tells where the link serves nothing in a round trip.
const ROOM: f64 = 5.5;
/// Packets that follow each other in less than this share of the link's time of a packet are a burst when they are so many. Where
/// the link fades a source may go on at the pace of before, which is more than the link serves.
const CLOSE: f64 = 0.25;
const BURST: usize = 4;
const GAPS: usize = BURST - 1;
/// A burst would have shown if the wire takes less than this share of the link's time for a packet.
const FAST: f64 = 0.125;
/// A source paces where fewer than the first share of its packets end a burst, and fewer than the second fill the window or a
/// congestion window, or than the third where no burst would have shown.
const BURSTS: f64 = 0.03;
const FULL: f64 = 0.85;
const FULL_UNSHOWN: f64 = 0.65;
/// A packet fills a congestion window where it leaves less of it than an ACK calls forth, or than this share: a source that
/// paces probes a quarter up and down. The window is what was outstanding at most in the last one or two spans of this length.
const CALLED: f64 = 2.0;
const SPARE: f64 = 0.1;
const LATELY: Span = Span::from_millis(500);
/// How many times its share a paced source may have outstanding.
const LEASH: f64 = 6.0;

/// What one source showed of its pace.
#[derive(Debug, Default)]
pub(super) struct Pace {
    paced: bool,
    /// Its share is so small that it shows no pace, and gets no leash.
    cramped: bool,
    /// When its last three packets came, and the least time in which a fourth followed.
    lately: [Option<Time>; GAPS],
    quickest: Option<Span>,
    /// New packets of late, those with which a burst would have shown, those that were the fourth of one, and those that filled the
    /// window or a congestion window.
    packets: f64,
    shown: f64,
    bursts: f64,
    full: f64,
    most: Most,
    /// Packets in a row that came close, and when the last came.
    run: usize,
    last: Option<Time>,
    judged: Time,
}

impl Pace {
    /// Whether the source paces what it sends, and has room for that.
    pub(super) const fn is_paced(&self) -> bool {
        self.paced && !self.cramped
    }

    /// How many times its share the source may have outstanding.
    pub(super) fn leash(&self) -> f64 {
        if self.is_paced() { LEASH } else { 1.0 }
    }

    /// A new packet comes, which may show how fast the wire is.
    pub(super) fn on_new(&mut self, now: Time) {
        if let Some(first) = self.lately[0] {
            let took = now.since(first);
            self.quickest = Some(self.quickest.map_or(took, |quickest| quickest.min(took)));
        }
        self.lately.rotate_left(1);
        self.lately[GAPS - 1] = Some(now);
    }

    /// Whether the wire is so fast that a burst shows over a link that takes so many seconds for a packet.
    fn shows_bursts(&self, time: f64) -> bool {
        self.quickest.is_some_and(|took| took.as_secs_f64() < FAST * time * GAPS as f64)
    }

    /// The packet is one of a source whose share is so many packets, and fills what it may send or does not. The link takes `time`
    /// for one.
    pub(super) fn on_packet(&mut self, now: Time, share: f64, time: f64, filling: Filling) {
        self.cramped = share < ROOM;
        if self.cramped {
            return;
        }
        let close = self.last.replace(now).is_some_and(|last| now.since(last).as_secs_f64() < CLOSE * time);
        self.run = if close { self.run + 1 } else { 1 };
        self.packets += 1.0;
        self.shown += f64::from(u8::from(self.shows_bursts(time)));
        self.bursts += f64::from(u8::from(self.run == BURST));
        let near = filling.outstanding.is_some_and(|packets| self.most.is_near(now, packets));
        self.full += f64::from(u8::from(filling.window || near));
        if now.since(self.judged) >= PERIOD && self.packets >= LEAST {
            self.judge(now);
        }
    }

    fn judge(&mut self, now: Time) {
        let full = FULL * self.shown + FULL_UNSHOWN * (self.packets - self.shown);
        self.paced = self.bursts < BURSTS * self.packets && self.full < full;
        for count in [&mut self.packets, &mut self.shown, &mut self.bursts, &mut self.full] {
            *count /= 2.0;
        }
        self.judged = now;
    }
}

/// The most packets that were outstanding in the last one or two of `LATELY`.
#[derive(Debug, Default)]
struct Most {
    began: Time,
    /// Since then, and in the time before.
    since: [f64; 2],
}

impl Most {
    /// So many are outstanding: whether that is nearly the most.
    fn is_near(&mut self, now: Time, packets: f64) -> bool {
        if now.since(self.began) >= LATELY {
            (self.began, self.since) = (now, [packets, self.since[0]]);
        }
        self.since[0] = self.since[0].max(packets);
        let most = self.since[0].max(self.since[1]);
        packets > most - CALLED.max(SPARE * most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a source showed whose first packets came some ms apart, and the next with more time between them.
    fn begun(gap: u64) -> Pace {
        let mut pace = Pace::default();
        let first = (0..10).map(|packet| packet * gap);
        first.chain([200, 400, 600, 800]).for_each(|now| pace.on_new(Time::from_nanos(now * 1_000_000)));
        pace
    }

    /// Whether a source is taken for one that paces of whose packets such fill the window, in turn.
    fn paced_with(mut pace: Pace, window: [bool; 4]) -> bool {
        for packet in 0..2000 {
            let filling = Filling { window: window[packet % 4], outstanding: None };
            pace.on_packet(Time::from_nanos(packet as u64 * 10_000_000), 10.0, 0.01, filling);
        }
        pace.is_paced()
    }

    /// So many packets from `since` on, some ms apart in turn, of which every `filling`th fills the window. The link takes
    /// 10 ms for a packet, and what is outstanding varies by a quarter.
    fn sends(pace: &mut Pace, since: u64, packets: u64, gaps: &[u64], filling: u64) -> u64 {
        sends_out(pace, since, packets, gaps, filling, &[40.0, 40.0, 30.0, 30.0])
    }

    /// So many are outstanding in turn.
    fn sends_out(
        pace: &mut Pace,
        since: u64,
        packets: u64,
        gaps: &[u64],
        filling: u64,
        outstanding: &[f64],
    ) -> u64 {
        let mut now = since;
        for packet in 0..packets {
            now += gaps[packet as usize % gaps.len()];
            let outstanding = Some(outstanding[packet as usize % outstanding.len()]);
            let filling = Filling { window: packet % filling == 0, outstanding };
            pace.on_packet(Time::from_nanos(now * 1_000_000), 10.0, 0.01, filling);
        }
        now
    }

    #[test]
    fn a_source_that_sends_no_bursts_and_leaves_window_unused_is_paced() {
        let mut pace = begun(0);
        sends(&mut pace, 0, 400, &[10], 2);
        assert!(!pace.is_paced());
        assert_eq!(pace.leash(), 1.0);
        sends(&mut pace, 4000, 200, &[10], 2);
        assert!(pace.is_paced());
        assert_eq!(pace.leash(), LEASH);
    }

    #[test]
    fn a_source_that_sends_bursts_or_fills_its_window_is_not() {
        // Bursts of four in 3 ms.
        let mut pace = begun(0);
        sends(&mut pace, 0, 2000, &[37, 1, 1, 1], 2);
        assert!(!pace.is_paced());
        // A wire spreads them, but nearly every packet fills the window.
        let mut pace = begun(0);
        sends(&mut pace, 0, 2000, &[10], 1);
        assert!(!pace.is_paced());
    }

    #[test]
    fn a_pace_of_three_times_what_the_link_serves_shows_no_bursts() {
        let mut pace = begun(0);
        sends(&mut pace, 0, 2000, &[31, 3, 3, 3], 2);
        assert!(pace.is_paced());
    }

    #[test]
    fn behind_a_wire_that_spreads_bursts_fewer_packets_of_a_paced_source_fill_the_window() {
        // Four packets take 3 or 6 ms, and the link 10 for one. Three of four fill it, or half.
        for (gap, filling, paced) in
            [(1, [true, true, true, false], true), (2, [true, true, true, false], false)]
        {
            assert_eq!(paced_with(begun(gap), filling), paced, "{gap} ms, {filling:?}");
        }
        assert!(paced_with(begun(2), [true, false, true, false]));
    }

    #[test]
    fn a_source_that_fills_a_congestion_window_is_not_paced() {
        // No bursts and room in the window, but nearly as many are outstanding with every packet.
        for outstanding in [[40.0, 40.0], [8.0, 6.1], [100.0, 91.0]] {
            let mut pace = begun(0);
            sends_out(&mut pace, 0, 2000, &[10], 1000, &outstanding);
            assert!(!pace.is_paced(), "{outstanding:?}");
        }
        for outstanding in [[40.0, 35.0], [8.0, 6.0], [100.0, 90.0]] {
            let mut pace = begun(0);
            sends_out(&mut pace, 0, 2000, &[10], 1000, &outstanding);
            assert!(pace.is_paced(), "{outstanding:?}");
        }
        // It grows: what was outstanding is the less the longer ago.
        let mut pace = begun(0);
        let grows: Vec<f64> = (0..2000).map(|packet| 10.0 + f64::from(packet) / 20.0).collect();
        sends_out(&mut pace, 0, 2000, &[10], 1000, &grows);
        assert!(!pace.is_paced());
    }

    #[test]
    fn a_source_of_a_few_packets_shows_no_pace_and_its_verdict_waits() {
        let mut pace = begun(0);
        let mut now = sends(&mut pace, 0, 1000, &[10], 2);
        assert!(pace.is_paced());
        for _ in 0..1000 {
            now += 10;
            let filling = Filling { window: false, outstanding: None };
            pace.on_packet(Time::from_nanos(now * 1_000_000), 5.4, 0.01, filling);
        }
        assert!(!pace.is_paced());
        let filling = Filling { window: false, outstanding: None };
        pace.on_packet(Time::from_nanos((now + 10) * 1_000_000), 10.0, 0.01, filling);
        assert!(pace.is_paced(), "what it showed before");
    }

    #[test]
    fn a_source_that_fills_the_leash_is_told_its_share_again() {
        let mut pace = begun(0);
        let now = sends(&mut pace, 0, 1000, &[10], 2);
        assert!(pace.is_paced());
        sends(&mut pace, now, 2000, &[10], 1);
        assert_eq!(pace.leash(), 1.0);
    }
}
