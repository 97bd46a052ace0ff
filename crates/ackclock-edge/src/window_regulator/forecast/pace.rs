//! Whether a source paces what it sends, as BBR does, and is to be left its pace.
//!
//! A source that paces sends no bursts, and leaves its window unused for much of the time: it keeps no more outstanding than
//! it wants to. One that is clocked by ACKs sends what a jump of its window allows in a burst, and fills its window with
//! nearly every packet where its congestion window is large. What a paced source measures is spoilt by a short window
//! and by ACKs that are kept, so it gets a longer leash and none is kept. A source that fills the leash has no pace of its
//! own: it is not asked again for a while.

use ackclock_core::{Span, Time};

/// A verdict is made so often, of so many packets at least; what was counted before counts half.
const PERIOD: Span = Span::from_secs(5);
const LEAST: f64 = 100.0;
/// Packets that a source may have outstanding at least for what it sends to show anything, since with fewer nobody sends
/// bursts: half a packet more than the five that `forecast` tells where the link serves nothing in a round trip.
const ROOM: f64 = 5.5;
/// Packets that follow each other in less than this share of the link's time of a packet are a burst when they are so many.
const CLOSE: f64 = 0.5;
const BURST: u32 = 4;
/// A source paces where fewer than the first share of its packets end a burst, and fewer than the second fill the window.
const BURSTS: f64 = 0.03;
const FULL: f64 = 0.95;
/// Who filled the leash is not asked for so long at first, and for twice as long each time.
const REFUSED: Span = Span::from_secs(60);
/// How many times its share a paced source may have outstanding.
const LEASH: f64 = 6.0;

/// What one source showed of its pace.
#[derive(Debug, Default)]
pub(super) struct Pace {
    paced: bool,
    /// New packets of late, those that were the fourth of a burst, and those that filled the window.
    packets: f64,
    bursts: f64,
    full: f64,
    /// Packets in a row that came close, and when the last came.
    run: u32,
    last: Option<Time>,
    judged: Time,
    /// Until when it is not asked, and for how long that was.
    refused: Option<(Time, Span)>,
}

impl Pace {
    /// Whether the source paces what it sends.
    pub(super) const fn is_paced(&self) -> bool {
        self.paced
    }

    /// How many times its share the source may have outstanding.
    pub(super) fn leash(&self) -> f64 {
        if self.paced { LEASH } else { 1.0 }
    }

    /// A new packet comes of a source whose share is so many packets. The link takes `time` for one; it fills the window, or
    /// does not.
    pub(super) fn on_packet(&mut self, now: Time, share: f64, time: f64, fills: bool) {
        if share < ROOM {
            self.paced = false;
            return;
        }
        let close = self.last.replace(now).is_some_and(|last| now.since(last).as_secs_f64() < CLOSE * time);
        self.run = if close { self.run + 1 } else { 1 };
        self.packets += 1.0;
        self.bursts += f64::from(u8::from(self.run == BURST));
        self.full += f64::from(u8::from(fills));
        if now.since(self.judged) >= PERIOD && self.packets >= LEAST {
            self.judge(now);
        }
    }

    fn judge(&mut self, now: Time) {
        let fills = self.full >= FULL * self.packets;
        if self.paced && fills {
            let wait = self.refused.map_or(REFUSED, |(_, before)| before * 2);
            self.refused = Some((now + wait, wait));
        }
        let refused = self.refused.is_some_and(|(until, _)| now < until);
        self.paced = !fills && !refused && self.bursts < BURSTS * self.packets;
        for count in [&mut self.packets, &mut self.bursts, &mut self.full] {
            *count /= 2.0;
        }
        self.judged = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many packets from `since` on, some ms apart in turn, of which every `filling`th fills the window. The link takes
    /// 10 ms for a packet.
    fn sends(pace: &mut Pace, since: u64, packets: u64, gaps: &[u64], filling: u64) -> u64 {
        let mut now = since;
        for packet in 0..packets {
            now += gaps[packet as usize % gaps.len()];
            pace.on_packet(Time::from_nanos(now * 1_000_000), 10.0, 0.01, packet % filling == 0);
        }
        now
    }

    #[test]
    fn a_source_that_sends_no_bursts_and_leaves_window_unused_is_paced() {
        let mut pace = Pace::default();
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
        let mut pace = Pace::default();
        sends(&mut pace, 0, 2000, &[37, 1, 1, 1], 2);
        assert!(!pace.is_paced());
        // A wire spreads them, but nearly every packet fills the window.
        let mut pace = Pace::default();
        sends(&mut pace, 0, 2000, &[10], 1);
        assert!(!pace.is_paced());
    }

    #[test]
    fn a_source_of_a_few_packets_shows_no_pace() {
        let mut pace = Pace::default();
        let mut now = sends(&mut pace, 0, 1000, &[10], 2);
        assert!(pace.is_paced());
        for _ in 0..1000 {
            now += 10;
            pace.on_packet(Time::from_nanos(now * 1_000_000), 5.4, 0.01, false);
        }
        assert!(!pace.is_paced());
    }

    #[test]
    fn a_source_that_fills_the_leash_is_not_asked_again_for_a_while() {
        let mut pace = Pace::default();
        let mut now = sends(&mut pace, 0, 1000, &[10], 2);
        assert!(pace.is_paced());
        for wait in [60, 120] {
            while pace.is_paced() {
                now = sends(&mut pace, now, 100, &[10], 1);
            }
            let refused = now;
            while !pace.is_paced() {
                now = sends(&mut pace, now, 100, &[10], 2);
            }
            // Until the next verdict after it, and the one in which old packets count less.
            let waited = (now - refused) / 1000;
            assert!((wait..wait + 12).contains(&waited), "{waited} s instead of {wait}");
        }
    }
}
