//! Detects senders that pace, like BBR, so that `forecast` leaves their pacing alone.
//!
//! A sender that paces sends no bursts and often leaves its window unused, because it limits its data in flight itself.
//! An ACK-clocked sender answers a larger window with a burst and fills its window with nearly every packet. If its
//! congestion window is smaller than the advertised window, an ACK-clocked sender fills the congestion window, and its
//! data in flight hardly varies. A short window and held ACKs distort the rate and RTT that a pacing sender measures. A
//! pacing sender therefore gets a larger budget, and none of its ACKs are held. A pacing sender that uses all of the
//! larger budget loses the larger budget again.
//!
//! A wired path that is hardly faster than the link spreads bursts, and a queue in the wired path leaves the advertised
//! window unused. The first window of a sender shows the speed of the wired path. If the wired path is too slow for
//! bursts to show, a sender counts as pacing only if it fills the window less often.

use ackclock_core::{Span, Time};
use ackclock_observe::estimate::Recent;

use crate::window_regulator::source::Filling;

/// Interval between two verdicts on pacing; each verdict halves the packet counts.
const PERIOD: Span = Span::from_secs(5);
/// Minimum number of packets counted before a verdict on pacing.
const LEAST: f64 = 100.0;
/// Minimum share of a sender, in packets, at which pacing can be detected; with fewer packets in flight no sender sends
/// bursts. The value is half a packet more than the five packets that `forecast` allows if the link serves nothing in a
/// round trip.
const ROOM: f64 = 5.5;
/// Two packets belong to one burst if the time between them is below this share of the link's packet time. The share is
/// small because, in a fade, a sender may continue at its previous pace, which is above the link's rate.
const CLOSE: f64 = 0.25;
/// Number of packets that make a burst.
const BURST: usize = 4;
const GAPS: usize = BURST - 1;
/// Bursts are visible if the wired path's packet time is less than this share of the link's packet time.
const FAST: f64 = 0.125;
/// A sender paces if the share of its packets that end a burst is below `BURSTS`, and the share that fill the
/// advertised window or a congestion window is below `FULL`. `FULL_UNSHOWN` replaces `FULL` while bursts are not
/// visible.
const BURSTS: f64 = 0.03;
const FULL: f64 = 0.85;
const FULL_UNSHOWN: f64 = 0.65;
/// A packet fills the congestion window if less than `CALLED` packets, or less than the share `SPARE` of the congestion
/// window, remain unused. A pacing sender varies its data in flight by a quarter while it probes. The congestion window
/// is estimated as the maximum of packets in flight in the last one or two intervals of `LATELY`.
const CALLED: f64 = 2.0;
const SPARE: f64 = 0.1;
const LATELY: Span = Span::from_millis(500);
/// Budget of a pacing sender, as a multiple of its share.
const LEASH: f64 = 6.0;

/// Evidence of whether one sender paces.
#[derive(Debug, Default)]
pub(super) struct Pace {
    paced: bool,
    /// Set if the sender's share is too small to detect pacing, so that its budget is not raised.
    cramped: bool,
    /// Arrival times of the sender's last three new packets, and the shortest time in which four new packets have
    /// arrived.
    lately: [Option<Time>; GAPS],
    quickest: Option<Span>,
    /// Four decaying counts of recent packets: all packets; packets while bursts were visible; fourth packets of a
    /// burst; packets that filled the advertised window or a congestion window.
    packets: f64,
    shown: f64,
    bursts: f64,
    full: f64,
    most: WindowedMax,
    /// Number of packets in the current burst, and the arrival time of the last packet.
    run: usize,
    last: Option<Time>,
    judged: Time,
}

impl Pace {
    /// Whether the sender paces and its share is large enough to detect pacing.
    pub(super) const fn is_paced(&self) -> bool {
        self.paced && !self.cramped
    }

    /// The sender's budget as a multiple of its share.
    pub(super) fn leash(&self) -> f64 {
        if self.is_paced() { LEASH } else { 1.0 }
    }

    /// Handles the arrival of a new packet, which may show the speed of the wired path.
    pub(super) fn on_new(&mut self, now: Time) {
        if let Some(first) = self.lately[0] {
            let took = now.since(first);
            self.quickest = Some(self.quickest.map_or(took, |quickest| quickest.min(took)));
        }
        self.lately.rotate_left(1);
        self.lately[GAPS - 1] = Some(now);
    }

    /// Whether bursts are visible in front of a link with packet time `time`, in seconds.
    fn shows_bursts(&self, time: f64) -> bool {
        self.quickest.is_some_and(|took| took.as_secs_f64() < FAST * time * GAPS as f64)
    }

    /// Handles the arrival of a packet from a sender whose share is `share` packets. `filling` says how full the
    /// sender's windows were; `time` is the link's packet time in seconds.
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

/// Maximum packets in flight in the last one or two intervals of `LATELY`.
#[derive(Debug)]
struct WindowedMax(Recent<f64>);

impl Default for WindowedMax {
    fn default() -> Self {
        Self(Recent::since(Time::ZERO, LATELY))
    }
}

impl WindowedMax {
    /// Adds a sample of `packets` in flight; returns whether the sample is near the maximum.
    fn is_near(&mut self, now: Time, packets: f64) -> bool {
        let most = self.0.at(now);
        *most = most.max(packets);
        let most = self.0.both().into_iter().fold(0.0, f64::max);
        packets > most - CALLED.max(SPARE * most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evidence from a source whose first packets were `gap` ms apart and later ones further apart.
    fn begun(gap: u64) -> Pace {
        let mut pace = Pace::default();
        let first = (0..10).map(|packet| packet * gap);
        first.chain([200, 400, 600, 800]).for_each(|now| pace.on_new(Time::from_nanos(now * 1_000_000)));
        pace
    }

    /// Whether a sender is classified as pacing if its packets fill the window in this pattern.
    fn paced_with(mut pace: Pace, window: [bool; 4]) -> bool {
        for packet in 0..2000 {
            let filling = Filling { window: window[packet % 4], outstanding: None };
            pace.on_packet(Time::from_nanos(packet as u64 * 10_000_000), 10.0, 0.01, filling);
        }
        pace.is_paced()
    }

    /// Sends `packets` from `since` on, with these gaps in ms in turn; every `filling`th fills the window. The link
    /// takes 10 ms per packet, and packets in flight vary by a quarter.
    fn sends(pace: &mut Pace, since: u64, packets: u64, gaps: &[u64], filling: u64) -> u64 {
        sends_out(pace, since, packets, gaps, filling, &[40.0, 40.0, 30.0, 30.0])
    }

    /// Sends with these numbers of packets in flight, in turn.
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
        // The wired path spreads them, but nearly every packet fills the window.
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
        // Four packets take 3 or 6 ms, and the link 10 for one. Three of four fill the window, or half.
        for (gap, filling, paced) in
            [(1, [true, true, true, false], true), (2, [true, true, true, false], false)]
        {
            assert_eq!(paced_with(begun(gap), filling), paced, "{gap} ms, {filling:?}");
        }
        assert!(paced_with(begun(2), [true, false, true, false]));
    }

    #[test]
    fn a_source_that_fills_a_congestion_window_is_not_paced() {
        // No bursts and room in the window, but packets in flight hardly vary.
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
        // It grows: data in flight is the smaller the longer ago.
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
