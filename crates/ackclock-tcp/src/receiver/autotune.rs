//! # Receive-window autotuning
//!
//! The window that a receiver offers grows with what it receives.
//!
//! ## Source
//! Dynamic right-sizing (Fisk and Feng, LANL 2001) and the receive-side threshold, in the form and with the constants of
//! Linux 6.18.
//!
//! ## What it does
//! Two bounds, of which the smaller holds. The threshold rises by two segments for each that arrives, but out of order only
//! with SACK, and not into what waits behind gaps or to be read. The clamp is twice what was read in the last round trip, and more where that grew, so that the sender may
//! double; bytes behind a gap come on top. Nothing shrinks. A sender without SACK, which repairs one loss a round trip and so
//! delivers little in order, meets the threshold.
//!
//! ## Differences from the source
//! Counts payload; the source counts memory, and takes half of it for payload. There what waits behind gaps also takes room
//! of the window that is offered; counted in payload that stopped senders without SACK earlier than the kernel's.
//!
//! ## Validation
//! By hand (tests below); the window of a captured download without SACK, which rises by two segments a round trip.

use ackclock_core::{Span, Time};

use super::reading::Reading;

/// First window, bytes: half of the memory that Linux gives to a new connection.
const FIRST: u32 = 65_536;
/// First clamp, bytes: once Linux has seen a full segment it knows what share of the memory is payload, 160/256.
const FIRST_CLAMP: u32 = 81_920;
/// Segments that are expected of the first round trip, but no more than the first window.
const FIRST_ROUND: u32 = 10;
/// Segments by which one that counts raises the threshold.
const RISE: u32 = 2;

/// The window of one receiver. Amounts are bytes of payload.
#[derive(Clone, Debug)]
pub(super) struct Autotune {
    mss: u32,
    most: u32,
    threshold: u32,
    clamp: u32,
    /// Most that was read in a round trip.
    space: u32,
    /// What has come in order.
    delivered: u64,
    reading: Reading,
    /// What had come when this round trip began, and when that was.
    mark: u64,
    since: Time,
    /// The timestamp that was echoed last.
    echo: Option<u32>,
    round_trip: Option<Span>,
}

/// What an arrival tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) now: Time,
    /// Payload delivered in order so far.
    pub(super) delivered: u64,
    /// Bytes from the left edge to the end of what waits behind gaps.
    pub(super) ahead: u32,
    /// Bytes that waited behind gaps when it came.
    pub(super) held: u32,
    /// The segment was the next one expected, or is told by SACK.
    pub(super) counts: bool,
    /// The timestamp that it echoes, if any, and the round-trip time that this makes.
    pub(super) echo: Option<(u32, Span)>,
}

impl Autotune {
    /// The window of a new connection, which may grow to `most`; a segment carries `mss` bytes and options.
    pub(super) fn new(mss: u16, options: u16, most: u32) -> Self {
        let mss = u32::from(mss).max(1);
        // In whole segments without options, as the window of the SYN is.
        let offered = mss + u32::from(options);
        let threshold = ((FIRST / offered).max(1) * offered).min(most);
        let clamp = FIRST_CLAMP.min(most);
        let space = (FIRST_ROUND * mss).min(threshold).max(1);
        let (mark, since, echo, round_trip) = (0, Time::ZERO, None, None);
        let (delivered, reading) = (0, Reading::default());
        Self { mss, most, threshold, clamp, space, delivered, reading, mark, since, echo, round_trip }
    }

    /// The window, bytes.
    pub(super) fn window(&self) -> u32 {
        self.threshold
    }

    /// Whether the window would be as large as it is although data waits to be read at `now`.
    pub(super) fn offers_as_much(&self, now: Time) -> bool {
        self.threshold <= self.clamp.saturating_sub(self.reading.unread(now, self.delivered))
    }

    /// When the program will have read what has come.
    pub(super) fn reads_until(&self) -> Time {
        self.reading.until()
    }

    /// Takes in a segment with data; whether it let the window grow, so that it is acknowledged at once.
    pub(super) fn on_data(&mut self, arrival: &Arrival) -> bool {
        // What is not read counts too, and the memory of the segment itself.
        let unread = self.reading.unread(arrival.now, self.delivered);
        let room = self.clamp.saturating_sub(arrival.held.saturating_add(unread).saturating_add(self.mss));
        let grows = arrival.counts && self.threshold < room;
        if grows {
            self.threshold = self.threshold.saturating_add(RISE * self.mss).min(room);
        }
        if let Some((echo, sample)) = arrival.echo {
            self.time(echo, sample, unread > 0);
        }
        let before = self.space;
        if self.delivered != arrival.delivered {
            self.reading.on_data(arrival.now, self.delivered);
            self.delivered = arrival.delivered;
            self.on_read(arrival);
        }
        if self.space > before || arrival.ahead > 0 {
            self.clamp = self.clamp.max(self.wanted(before, arrival.ahead));
        }
        grows
    }

    /// The application reads what has come, and where a round trip is over knows how much that was.
    fn on_read(&mut self, arrival: &Arrival) {
        let read = u32::try_from(arrival.delivered - self.mark).unwrap_or(u32::MAX);
        // Without timestamps a round trip lasts as long as a whole window takes to come in.
        let over =
            self.round_trip.map_or(read >= self.threshold, |round| arrival.now.since(self.since) >= round);
        if over {
            self.space = self.space.max(read);
            (self.mark, self.since) = (arrival.delivered, arrival.now);
        }
    }

    /// Of segments that echo the same timestamp the first one alone is timed: the others followed it out of the sender. One that
    /// comes while others wait to be read has waited for them on its way: it can only tell a shorter round trip.
    fn time(&mut self, echo: u32, sample: Span, waits: bool) {
        let known = self.round_trip.unwrap_or(sample);
        if self.echo.replace(echo) == Some(echo) || waits && sample >= known {
            return;
        }
        // A shorter one is believed at once.
        self.round_trip = Some(if sample < known { sample } else { (known * 7 + sample) / 8 });
    }

    /// Room for twice what was read, and for twice the growth of that again.
    fn wanted(&self, before: u32, ahead: u32) -> u32 {
        let twice = 2 * u64::from(self.space);
        let growth = twice * u64::from(self.space - before) / u64::from(before);
        u32::try_from(twice + 2 * growth + u64::from(ahead)).unwrap_or(u32::MAX).min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u16 = 1000;

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn arrival(ms: u64, delivered: u64) -> Arrival {
        let now = Time::ZERO + Span::from_millis(ms);
        let echo = Some((ms as u32, Span::from_millis(100)));
        Arrival { now, delivered, ahead: 0, held: 0, counts: true, echo }
    }

    #[test]
    fn the_threshold_rises_by_two_segments_up_to_the_clamp() {
        let mut tune = Autotune::new(MSS, 0, 1_000_000);
        assert_eq!(tune.window(), 65_000);
        // 20 segments in the first round trip where 10 were expected: 2 * 20 000 + 2 * 40 000 * 10 / 10.
        tune.on_data(&arrival(100, 20_000));
        assert_eq!(tune.clamp, 120_000);
        assert_eq!(tune.window(), 67_000);
        let grown = (0..100).filter(|_| tune.on_data(&arrival(110, 20_000))).count();
        // From 67 000 by 2000 each, and the segment itself takes room.
        assert_eq!((tune.window(), grown), (119_000, 26));
    }

    #[test]
    fn a_round_trip_of_reading_ends_where_something_is_read() {
        let mut tune = Autotune::new(MSS, 0, 1_000_000);
        tune.on_data(&arrival(0, 1000));
        tune.on_data(&Arrival { ahead: 5000, ..arrival(150, 1000) });
        tune.on_data(&arrival(160, 31_000));
        assert_eq!(tune.space, 31_000);
    }

    #[test]
    fn the_threshold_does_not_rise_into_what_waits_behind_gaps() {
        let mut tune = Autotune::new(MSS, 0, 1_000_000);
        let mut ms = 0;
        let windows = [10_000, 10_000, 10_000, 10_000, 0].map(|held| {
            ms += 10;
            tune.on_data(&Arrival { held, ..arrival(ms, 1000) });
            tune.window()
        });
        // From 65 000 by 2000 each, up to 81 920 - 10 000 - 1000.
        assert_eq!(windows, [67_000, 69_000, 70_920, 70_920, 72_920]);
    }

    #[test]
    fn nor_into_what_waits_to_be_read() {
        let mut tune = Autotune::new(MSS, 0, 1_000_000);
        assert_eq!((1..=7).filter(|&n| tune.on_data(&arrival(10 * n, n * 1000))).count(), 7);
        // 65 000 and 7 * 2000; 81 920 less two that wait and that which comes leave nothing.
        let bunch = [8, 9, 10].map(|n| (tune.on_data(&arrival(80, n * 1000)), tune.window()));
        assert_eq!(bunch, [(true, 80_920), (false, 80_920), (false, 80_920)]);
        assert!(!tune.offers_as_much(ms(80)));
        assert!(tune.offers_as_much(ms(81)), "it has been read");
    }

    #[test]
    fn a_window_of_few_large_segments_grows_once_it_has_been_filled() {
        let mut tune = Autotune::new(8948, 12, 4_000_000);
        assert_eq!(tune.window(), 7 * 8960);
        tune.on_data(&arrival(100, 8 * 8948));
        assert!(
            tune.clamp > FIRST_CLAMP,
            "more than the first window was read in a round trip: {}",
            tune.clamp
        );
        assert_eq!(Autotune::new(65_000, 12, 4_000_000).window(), 65_012, "one segment at least");
    }

    #[test]
    fn what_does_not_count_raises_the_clamp_alone() {
        let mut tune = Autotune::new(MSS, 0, 1_000_000);
        for n in 1..=200 {
            tune.on_data(&Arrival { ahead: n * 1000, counts: false, ..arrival(50, 0) });
        }
        // twice the 10 000 of the first round trip, and 200 000 ahead
        assert_eq!((tune.window(), tune.clamp), (65_000, 220_000));
    }

    #[test]
    fn a_shorter_round_trip_is_believed_at_once_and_a_longer_one_by_an_eighth() {
        let mut tune = Autotune::new(MSS, 0, 1_000_000);
        let known = [(1, 80), (2, 160), (2, 500), (3, 20)].map(|(echo, ms)| {
            tune.on_data(&Arrival { echo: Some((echo, Span::from_millis(ms))), ..arrival(0, 0) });
            tune.round_trip
        });
        // The third echoes what the second one did.
        assert_eq!(known, [80, 90, 90, 20].map(|ms| Some(Span::from_millis(ms))));
    }

    #[test]
    fn it_never_exceeds_what_is_configured() {
        let mut tune = Autotune::new(MSS, 0, 80_000);
        for n in 1..100u64 {
            tune.on_data(&arrival(100 * n, 100_000 * n));
        }
        assert_eq!(tune.window(), 79_000, "the last segment takes room");
        assert_eq!(Autotune::new(MSS, 0, 5000).window(), 5000);
    }
}
