//! # Receive-window autotuning
//!
//! Receive window autotuning: the advertised window grows with the data received.
//!
//! ## Source
//! Dynamic right-sizing (Fisk and Feng, LANL 2001), and Linux's window threshold at the receiver (rcv_ssthresh). The
//! form and the constants of the algorithm are from Linux 6.18.
//!
//! ## What it does
//! The window is the smaller of a threshold and a clamp. The threshold rises by two segments for each arriving segment;
//! out-of-order segments count only with SACK. The clamp is twice the data read in the last round trip, so that the
//! sender can double its rate. If the amount of data read grew since the round trip before, the clamp is larger. Bytes
//! beyond a gap are also added to the clamp. Data beyond gaps or waiting to be read uses up part of the clamp. The
//! window can therefore fall below the threshold, but its right edge never moves back. Without SACK, a sender repairs
//! one loss per round trip and delivers little in order, so the threshold or the clamp stops the window's growth.
//!
//! ## Differences from the source
//! All amounts are bytes of payload, whereas Linux counts memory. The payload's share of the memory is assumed to be
//! the share in segments of 1448 bytes.
//!
//! ## Validation
//! Unit tests below compare with hand-computed values, and with the window of a captured download without SACK, which
//! rises by two segments per round trip.

use ackclock_core::{Seq, Span, Time};

use super::reading::{Reading, WAKES};

/// First advertised window, bytes: half of the memory that Linux gives a new connection.
const FIRST: u32 = 65_536;
/// First value of the window clamp, bytes. Once Linux has seen a full segment, it assumes that 160/256 of the memory is
/// payload.
const FIRST_CLAMP: u32 = 81_920;
/// Segments expected in the first round trip, limited by the first window.
const FIRST_ROUND: u32 = 10;
/// Segments added to the threshold for each counted segment.
const RISE: u32 = 2;

/// Payload of a full segment, bytes. An unread full segment uses 160/256 of its 2304 bytes of memory as window.
const SEGMENT: u64 = 1448;
const TAKES: u64 = 1440;

/// Autotuned window of one receiver. Amounts are bytes of payload.
#[derive(Clone, Debug)]
pub(super) struct Autotune {
    mss: u32,
    most: u32,
    threshold: u32,
    clamp: u32,
    /// Largest amount of data read in a round trip.
    space: u32,
    /// Total of data delivered in order.
    delivered: u64,
    reading: Reading,
    /// Bytes beyond gaps, and bytes from the left edge to the end of the data beyond gaps.
    held: u32,
    ahead: u32,
    /// Window scale, last advertised window, and right edge of that window.
    scale: u8,
    offered: u32,
    edge: Seq,
    /// Total of delivered data at the start of this round trip, and the time of the start.
    mark: u64,
    since: Time,
    /// Last timestamp that the peer echoed.
    echo: Option<u32>,
    round_trip: Option<Span>,
}

/// Facts about an arriving segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) now: Time,
    /// Total of payload delivered in order so far.
    pub(super) delivered: u64,
    /// Bytes from the left edge to the end of the data beyond gaps.
    pub(super) ahead: u32,
    /// Bytes stored beyond gaps.
    pub(super) held: u32,
    /// Whether the segment was the next expected, or is reported by SACK.
    pub(super) counts: bool,
    /// Timestamp that the segment echoes, if any, and the resulting round-trip time.
    pub(super) echo: Option<(u32, Span)>,
}

impl Autotune {
    /// Window of a new connection that expects `next`. The window may grow to `most` and uses the window scale `scale`.
    /// A full segment has `mss` bytes of payload and `options` bytes of TCP options.
    pub(super) fn new(mss: u16, options: u16, most: u32, scale: u8, next: Seq) -> Self {
        let mss = u32::from(mss).max(1);
        // The first window is a whole number of segments without options, like the window of the SYN.
        let offered = mss + u32::from(options);
        let threshold = ((FIRST / offered).max(1) * offered).min(most);
        Self {
            mss,
            most,
            threshold,
            clamp: FIRST_CLAMP.min(most),
            space: (FIRST_ROUND * mss).min(threshold).max(1),
            delivered: 0,
            reading: Reading::default(),
            held: 0,
            ahead: 0,
            scale,
            offered: threshold,
            edge: next + threshold,
            mark: 0,
            since: Time::ZERO,
            echo: None,
            round_trip: None,
        }
    }

    /// Right edge of the last advertised window.
    pub(super) fn edge(&self) -> Seq {
        self.edge
    }

    /// Starts the first round trip when the connection is established at `now` (tcp_init_buffer_space). Later round
    /// trips start when data is read.
    pub(super) fn on_established(&mut self, now: Time) {
        self.since = now + WAKES;
    }

    /// Records that an ACK up to `next` advertised a window of `window` bytes.
    pub(super) fn on_advertised(&mut self, next: Seq, window: u32) {
        (self.offered, self.edge) = (window, next + window);
    }

    /// Free part of the window at `now`, rounded up to a value that the header field can express.
    pub(super) fn free(&self, now: Time) -> u32 {
        let waits = u64::from(self.held) + u64::from(self.reading.unread(now, self.delivered));
        let free = self.threshold.min(self.clamp.saturating_sub(memory(waits)));
        let rest = (1 << self.scale) - 1;
        (free + rest) & !rest
    }

    /// Whether the data still unread at `now` leaves the window unchanged.
    pub(super) fn is_unchanged_by_unread(&self, now: Time) -> bool {
        self.free(now) >= self.offered
    }

    /// Time at which the program will have read all arrived data.
    pub(super) fn reads_until(&self) -> Time {
        self.reading.until()
    }

    /// Processes a data segment. Returns whether the segment opened the window and must be acknowledged at once.
    pub(super) fn on_data(&mut self, arrival: &Arrival) -> bool {
        self.read(arrival.now);
        // Unread data uses up part of the window, and so does the memory of an in-order segment. A segment beyond a gap
        // does not use up memory yet (tcp_data_queue_ofo).
        let unread = self.reading.unread(arrival.now, self.delivered);
        let own = if arrival.delivered == self.delivered { 0 } else { self.mss };
        let waits = u64::from(self.held) + u64::from(unread) + u64::from(own);
        let room = self.clamp.saturating_sub(memory(waits));
        let grows = arrival.counts && self.threshold < room;
        if grows {
            self.threshold = self.threshold.saturating_add(RISE * self.mss).min(room);
        }
        if let Some((echo, sample)) = arrival.echo {
            self.time(echo, sample, unread > 0);
        }
        if self.delivered != arrival.delivered {
            self.reading.on_data(arrival.now, self.delivered);
            self.delivered = arrival.delivered;
        }
        (self.held, self.ahead) = (arrival.held, arrival.ahead);
        if arrival.ahead > 0 {
            self.clamp = self.clamp.max(self.wanted(self.space));
        }
        grows
    }

    /// Processes the data that the program read before `now`. If the reading completed a round trip, the data of the
    /// round trip ends with the first segment of this reading. Unread data behind the first segment of the reading is
    /// deducted.
    fn read(&mut self, now: Time) {
        let Some((at, before)) = self.reading.finished(now, self.delivered) else { return };
        let first = (self.delivered - before).min(self.mss.into());
        let waits = self.delivered - before - first;
        let all = before + first - self.mark;
        // Without timestamps, a round trip lasts until a complete window has arrived.
        let over =
            self.round_trip.map_or(all >= self.threshold.into(), |round| at.since(self.since) >= round);
        if !over {
            return;
        }
        let known = self.space;
        self.space = known.max(u32::try_from(all.saturating_sub(waits)).unwrap_or(u32::MAX));
        (self.mark, self.since) = (before + first, at);
        if self.space > known {
            self.clamp = self.clamp.max(self.wanted(known));
        }
    }

    /// Takes a round-trip time sample. Among segments with equal timestamp echoes, only the first is timed, because the
    /// sender sent the other segments later. A segment that arrives while earlier segments wait to be read may only
    /// shorten the estimate, because it was queued behind them.
    fn time(&mut self, echo: u32, sample: Span, waits: bool) {
        let known = self.round_trip.unwrap_or(sample);
        if self.echo.replace(echo) == Some(echo) || waits && sample >= known {
            return;
        }
        // A round-trip time below the estimate is adopted at once.
        self.round_trip = Some(if sample < known { sample } else { (known * 7 + sample) / 8 });
    }

    /// Clamp for the amount of data read: twice this amount, enlarged by its relative growth, plus the bytes up to the
    /// end of data beyond gaps.
    fn wanted(&self, before: u32) -> u32 {
        let twice = 2 * u64::from(self.space);
        let growth = twice * u64::from(self.space - before) / u64::from(before);
        u32::try_from(twice + 2 * growth + u64::from(self.ahead)).unwrap_or(u32::MAX).min(self.most)
    }
}

/// Part of the window that `bytes` of unread payload use up.
fn memory(bytes: u64) -> u32 {
    u32::try_from(bytes * TAKES / SEGMENT).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u16 = 1448;

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// Rounds a window up as a header does, in steps of 256 bytes.
    fn told(bytes: u32) -> u32 {
        bytes.next_multiple_of(256)
    }

    fn tune() -> Autotune {
        Autotune::new(MSS, 12, 10_000_000, 8, Seq(1))
    }

    /// An arrival that completes `segments` in-order segments at `at` milliseconds.
    fn arrival(at: u64, segments: u64) -> Arrival {
        let echo = Some((at as u32, Span::from_millis(100)));
        let delivered = segments * u64::from(MSS);
        Arrival { now: ms(at), delivered, ahead: 0, held: 0, counts: true, echo }
    }

    /// Lets segments arrive 10 ms apart from `at` on, each read before the next. Returns the time of the last.
    fn arrive(tune: &mut Autotune, at: u64, segments: std::ops::RangeInclusive<u64>) -> u64 {
        let last = at + 10 * (segments.end() - segments.start());
        for (n, segment) in segments.enumerate() {
            tune.on_data(&arrival(at + 10 * n as u64, segment));
        }
        last
    }

    #[test]
    fn the_threshold_rises_by_two_segments_up_to_the_clamp() {
        let mut tune = tune();
        assert_eq!(tune.threshold, 44 * 1460);
        let grown: Vec<bool> = (1..9).map(|n| tune.on_data(&arrival(n, n))).collect();
        assert_eq!(grown, [true, true, true, true, true, true, false, false]);
        // The window is the clamp minus the memory of the segment itself: 80 480 in the kernel.
        assert_eq!(tune.threshold, 81_920 - 1440);
    }

    #[test]
    fn what_was_read_in_a_round_trip_raises_the_clamp_by_twice_that_and_more_where_it_grew() {
        let mut tune = tune();
        let at = arrive(&mut tune, 10, 1..=32);
        // Ten segments were read in each round trip, as expected.
        assert_eq!((tune.space, tune.clamp), (14_480, 81_920));
        // 28 more segments arrive together and are read one by one: the first of them ends the round trip.
        tune.on_data(&arrival(at + 90, 60));
        tune.on_data(&arrival(at + 100, 61));
        assert_eq!((tune.space, tune.clamp), (14_480, 81_920), "27 wait behind the first");
        tune.on_data(&arrival(at + 200, 62));
        tune.on_data(&arrival(at + 210, 63));
        // The clamp is twice 29 segments, plus twice the growth of that amount: 58 * 1448 * 19 / 10 each.
        assert_eq!((tune.space, tune.clamp / 100), (29 * 1448, (83_984 + 2 * 159_569) / 100));
    }

    #[test]
    fn the_first_round_trip_begins_with_the_connection() {
        let mut tune = tune();
        tune.on_established(ms(1000));
        // The timestamp echo gives an RTT of 100 ms: the segment that arrives after 100 ms is the tenth.
        for n in 1..=11 {
            tune.on_data(&arrival(1090 + n, n));
        }
        assert_eq!((tune.mark, tune.since), (10 * 1448, ms(1100) + WAKES));
    }

    #[test]
    fn what_waits_takes_room_of_the_window_and_its_right_edge_stays() {
        let mut tune = tune();
        let at = arrive(&mut tune, 1000, 1..=20);
        tune.on_advertised(Seq(1 + 20 * 1448), tune.free(ms(at + 1)));
        assert_eq!(tune.free(ms(at + 1)), told(80_480));
        let behind = |n: u32| Arrival {
            held: n * 1448,
            ahead: (n + 1) * 1448,
            counts: false,
            ..arrival(at + 100, 20)
        };
        tune.on_data(&behind(30));
        assert_eq!(tune.free(ms(at + 101)), told(81_920 - 30 * 1440));
        assert_eq!(tune.edge(), Seq(1 + 20 * 1448 + told(80_480)));
        // Twice 10 segments and the 40 segments beyond the gap are more than the first clamp.
        tune.on_data(&behind(39));
        assert_eq!(tune.free(ms(at + 101)), told(86_880 - 39 * 1440));
    }

    #[test]
    fn what_waits_to_be_read_takes_room_until_it_is_read() {
        let mut tune = tune();
        let at = arrive(&mut tune, 1000, 1..=20);
        tune.on_advertised(Seq(1), tune.free(ms(at + 1)));
        for n in 21..24 {
            assert!(!tune.on_data(&arrival(at + 10, n)), "no room to grow");
        }
        assert_eq!(tune.free(ms(at + 10)), told(81_920 - 3 * 1440));
        assert!(!tune.is_unchanged_by_unread(ms(at + 10)));
        assert_eq!(tune.free(tune.reads_until()), told(80_480), "what is acknowledged once it is read");
        assert!(tune.is_unchanged_by_unread(ms(at + 11)), "it has been read");
    }

    #[test]
    fn behind_a_gap_the_window_grows_by_the_last_segment_too_and_then_what_comes_in_order_waits_to_be_read() {
        let mut tune = tune();
        let at = arrive(&mut tune, 1000, 1..=20);
        assert_eq!(tune.threshold, 81_920 - 1440);
        assert!(tune.on_data(&Arrival { ahead: 2 * 1448, ..arrival(at + 10, 20) }));
        assert_eq!(tune.threshold, 81_920);
        assert!(
            !tune.on_data(&Arrival { held: 1448, ahead: 3 * 1448, ..arrival(at + 11, 20) }),
            "the first has its room"
        );
        tune.on_data(&arrival(at + 20, 22));
        tune.on_advertised(Seq(1), tune.free(ms(at + 21)));
        tune.on_data(&arrival(at + 30, 23));
        assert!(!tune.is_unchanged_by_unread(ms(at + 30)), "one segment is unread");
    }

    #[test]
    fn a_window_of_few_large_segments_grows_once_it_has_been_filled() {
        let mut tune = Autotune::new(8948, 12, 4_000_000, 6, Seq(1));
        assert_eq!(tune.threshold, 7 * 8960);
        for n in 1..=8 {
            tune.on_data(&Arrival { delivered: n * 8948, ..arrival(10 * n, 0) });
        }
        tune.on_data(&Arrival { delivered: 9 * 8948, ..arrival(200, 0) });
        tune.on_data(&Arrival { delivered: 10 * 8948, ..arrival(300, 0) });
        assert!(
            tune.clamp > FIRST_CLAMP && tune.threshold > FIRST_CLAMP,
            "{} {}",
            tune.clamp,
            tune.threshold
        );
        assert_eq!(Autotune::new(65_000, 12, 4_000_000, 6, Seq(1)).threshold, 65_012, "one segment at least");
    }

    #[test]
    fn a_shorter_round_trip_is_believed_at_once_and_a_longer_one_by_an_eighth() {
        let mut tune = tune();
        let known = [(1, 80), (2, 160), (2, 500), (3, 20)].map(|(echo, ms)| {
            tune.on_data(&Arrival { echo: Some((echo, Span::from_millis(ms))), ..arrival(0, 0) });
            tune.round_trip
        });
        // The third segment echoes the same timestamp as the second.
        assert_eq!(known, [80, 90, 90, 20].map(|ms| Some(Span::from_millis(ms))));
    }

    #[test]
    fn it_never_exceeds_what_is_configured() {
        let mut tune = Autotune::new(MSS, 12, 80_000, 1, Seq(1));
        for n in 1..100u64 {
            tune.on_data(&arrival(100 * n, 100 * n));
        }
        assert_eq!(tune.threshold, 80_000 - 1440, "the last segment takes room");
        assert_eq!(Autotune::new(MSS, 12, 5000, 0, Seq(1)).threshold, 5000);
    }
}
