//! Scripted exchanges of senders in the Linux stack: RACK-TLP, F-RTO, PRR, counted duplicates, growth by bytes.
//!
//! Segments have 1000 bytes and numbers begin at 0; outgoing segments are listed in thousands.

// Test helpers may unwrap.
#![allow(clippy::unwrap_used)]

use ackclock_core::{Flags, FlowId, SackBlock, Segment, Seq, Size, Span, Time, Timestamps};
use ackclock_tcp::cc::Phase;
use ackclock_tcp::{FlowParams, SENDERS, Sender, Supply};
use serde_json::{Value, json};

const NOTHING: [u32; 0] = [];

struct Script {
    sender: Box<dyn Sender>,
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// The Linux stack with a peer without timestamps.
fn options(kind: &str) -> Value {
    json!({ "kind": kind, "stack": "linux", "timestamps": "off" })
}

impl Script {
    /// Sends `window` segments at 0, with unlimited data.
    fn begun(kind: &str, window: u32) -> Self {
        Self::with(kind, window, Supply::Endless)
    }

    fn with(kind: &str, window: u32, supply: Supply) -> Self {
        Self::of(&options(kind), window, supply)
    }

    fn of(options: &Value, window: u32, supply: Supply) -> Self {
        let params = FlowParams {
            packet: 1040,
            initial_window: Size::Packets(window),
            first: Seq(0),
            ..FlowParams::new(FlowId(0))
        };
        let mut sender = SENDERS.resolve(options).unwrap().build(params).unwrap();
        sender.supply(supply);
        sender.on_timeout(Time::ZERO);
        let mut script = Self { sender };
        assert_eq!(script.sent(at(0)).len() as u32, window);
        script
    }

    fn sent(&mut self, now: Time) -> Vec<u32> {
        std::iter::from_fn(|| self.sender.poll_segment(now)).map(|segment| segment.seq.0 / 1000).collect()
    }

    fn ack(&mut self, ms: u64, thousands: u32, blocks: &[(u32, u32)]) -> Vec<u32> {
        self.ack_with(ms, thousands, blocks, |_| {})
    }

    fn ack_with(
        &mut self,
        ms: u64,
        thousands: u32,
        blocks: &[(u32, u32)],
        change: fn(&mut Segment),
    ) -> Vec<u32> {
        let mut ack = Segment::pure_ack(FlowId(0), Seq(thousands * 1000), 40);
        ack.seq = Seq(1);
        ack.window = u16::MAX;
        ack.set_scale(Some(4));
        for &(left, right) in blocks {
            ack.push_sack(SackBlock { left: Seq(left * 1000), right: Seq(right * 1000) });
        }
        change(&mut ack);
        self.sender.on_segment(at(ms), &ack);
        self.sent(at(ms))
    }

    /// Time of the next deadline in milliseconds, and the segments sent then.
    fn timeout(&mut self) -> (u64, Vec<u32>) {
        let now = self.sender.poll_timeout().unwrap();
        self.sender.on_timeout(now);
        (now.as_nanos() / 1_000_000, self.sent(now))
    }

    fn cwnd(&self) -> u32 {
        self.sender.cwnd() / 1000
    }
}

#[test]
fn slow_start_counts_what_an_ack_delivers() {
    let mut script = Script::begun("sack", 10);
    // Two are delivered, so two more are sent and two that replace them.
    assert_eq!(script.ack(100, 2, &[]), [10, 11, 12, 13]);
    assert_eq!(script.cwnd(), 12);
}

#[test]
fn three_sacked_segments_make_what_was_sent_before_them_lost() {
    let mut script = Script::begun("sack", 10);
    // Two SACKed segments release two new ones; no segment was sent a quarter of a round trip before them.
    assert_eq!(script.ack(100, 0, &[(1, 2)]), [10]);
    assert_eq!(script.ack(101, 0, &[(1, 3)]), [11]);
    assert_eq!(script.ack(102, 0, &[(1, 4)]), [0]);
    assert_eq!((script.cwnd(), script.sender.phase()), (5, Phase::FastRecovery));
}

fn probing_options(kind: &str) -> Value {
    json!({ "kind": kind, "stack": "linux", "timestamps": "off", "probe_timeout": "on" })
}

/// A sender with the probe timeouts of QUIC. Segments 2 to 13 are lost: 0 and 1 are acknowledged after 100 ms, so the
/// probe timeout is 100 + 4 · 50 + 25 = 325 ms, and doubles.
fn probing() -> Script {
    let mut script = Script::of(&probing_options("cubic"), 10, Supply::Endless);
    assert_eq!(script.ack(100, 2, &[]), [10, 11, 12, 13]);
    assert_eq!(script.timeout(), (425, vec![14]));
    assert_eq!(script.timeout(), (1075, vec![15]));
    assert_eq!((script.cwnd(), script.sender.phase()), (12, Phase::Open));
    script
}

/// The answer to the second probe makes the probe timeout 100 + 4 · 37.5 + 25 = 275 ms. The losses from 100 ms to 425 ms
/// are shorter than three of them: CUBIC's 0.7 of the window.
#[test]
fn a_probe_timeout_reduces_no_window_and_its_answer_finds_the_losses() {
    let mut script = probing();
    assert_eq!(script.ack(1175, 2, &[(15, 16)]).first(), Some(&2));
    assert_eq!((script.cwnd(), script.sender.phase()), (8, Phase::FastRecovery));
    assert_eq!((script.sender.stats().timeouts, script.sender.stats().fast_retransmits), (0, 1));
}

/// A third probe at 1075 + 1300 ms: its answer shows losses from 100 ms to 1075 ms, longer than 3 · 275 ms.
#[test]
fn losses_longer_than_three_probe_timeouts_are_persistent_congestion() {
    let mut script = probing();
    assert_eq!(script.timeout(), (2375, vec![16]));
    assert_eq!(script.ack(2475, 2, &[(16, 17)]), [2, 3]);
    assert_eq!((script.cwnd(), script.sender.stats().timeouts), (2, 1));
    assert_eq!(script.ack(2575, 4, &[(16, 17)]), [4, 5, 6, 7]);
}

/// The same with an arrival between: the first probe arrived, and its acknowledgement did not.
#[test]
fn an_arrival_between_the_losses_is_no_persistent_congestion() {
    let mut script = probing();
    assert_eq!(script.timeout(), (2375, vec![16]));
    script.ack(2475, 2, &[(14, 15), (16, 17)]);
    assert_eq!((script.cwnd(), script.sender.stats().timeouts), (8, 0));
}

/// 2 and 3 are acknowledged at 300 ms, and no data is left: the probe timeout counts from 100 ms, when 10 and 11 were sent.
#[test]
fn a_probe_timeout_counts_from_the_last_transmission() {
    let mut script = Script::of(&probing_options("cubic"), 10, Supply::Open(12_000));
    assert_eq!(script.ack(100, 2, &[]), [10, 11]);
    assert_eq!(script.ack(300, 4, &[]), NOTHING);
    let srtt = 0.875 * 100.0 + 0.125 * 300.0;
    let rttvar = 0.75 * 50.0 + 0.25 * 200.0;
    assert_eq!(script.timeout(), ((100.0 + srtt + 4.0 * rttvar + 25.0) as u64, vec![11]));
}

/// An arrival above a gap ends the backoff and counts from the last transmission too.
#[test]
fn an_arrival_above_a_gap_sets_the_probe_timeout_again() {
    let mut script = probing();
    assert_eq!(script.timeout(), (2375, vec![16]));
    script.ack(2400, 2, &[]);
    assert_eq!(script.timeout(), (4975, vec![17]));
}

/// The answer to a repeated probe gives no sample and leaves the backoff at 32. The losses from 100 ms to 2375 ms are
/// longer than three probe timeouts of 325 ms all the same.
#[test]
fn backoff_does_not_lengthen_persistent_congestion() {
    let mut script = Script::of(&probing_options("cubic"), 10, Supply::Open(18_000));
    assert_eq!(script.ack(100, 2, &[]), [10, 11, 12, 13]);
    for due in [(425, 14), (1075, 15), (2375, 16), (4975, 17), (10_175, 17)] {
        assert_eq!(script.timeout(), (due.0, vec![due.1]));
    }
    assert_eq!(script.ack(10_275, 2, &[(17, 18)]), [2, 3]);
    assert_eq!((script.cwnd(), script.sender.stats().timeouts), (2, 1));
}

/// At the end of a file each probe sends the last segment again, and only its last transmission time is known: the losses
/// were all sent at 100 ms, and span nothing.
#[test]
fn losses_at_the_end_of_a_file_do_not_span_the_probes() {
    let mut script = Script::of(&probing_options("cubic"), 10, Supply::Open(14_000));
    assert_eq!(script.ack(100, 2, &[]), [10, 11, 12, 13]);
    for due in [425, 1075, 2375, 4975] {
        assert_eq!(script.timeout(), (due, vec![13]));
    }
    assert_eq!(script.ack(5075, 2, &[(13, 14)]).first(), Some(&2));
    assert_eq!((script.cwnd(), script.sender.stats().timeouts), (8, 0));
}

/// Whatever the congestion control: its window falls to two packets.
#[test]
fn persistent_congestion_reduces_the_window_of_every_control() {
    for kind in ["sack", "westwood-plus", "cubic", "bbr", "bbr3", "copa", "dctcp", "prague", "abc"] {
        let mut script = Script::of(&probing_options(kind), 10, Supply::Endless);
        script.ack(100, 2, &[]);
        let mut last = (0, 0);
        while last.0 < 4000 {
            let (due, sent) = script.timeout();
            last = sent.last().map_or(last, |&segment| (due, segment));
        }
        script.ack(last.0 + 100, 2, &[(last.1, last.1 + 1)]);
        assert_eq!((script.cwnd(), script.sender.stats().timeouts), (2, 1), "{kind}");
    }
}

#[test]
fn probe_timeouts_refuse_the_options_that_they_replace() {
    for (key, value, default) in [
        ("min", "300ms", "200ms"),
        ("bounds", "timeout", "variation"),
        ("anchor", "segment", "ack"),
        ("tick", "100ms", "0ms"),
    ] {
        let mut table = probing_options("cubic");
        table["rto"] = json!({ key: value });
        let error = SENDERS.resolve(&table).unwrap_err().to_string();
        let allowed = format!("rto.{key}: probe_timeout = \"on\" allows only the default, \"{default}\"");
        assert_eq!(error, allowed);
        table["rto"] = json!({ key: default, "max": "10s", "initial": "333ms", "granularity": "2ms" });
        assert!(SENDERS.resolve(&table).is_ok(), "{key}");
    }
}

#[test]
fn probe_timeouts_need_the_linux_stack_and_sack() {
    for (kind, stack) in [("cubic", "rfc"), ("reno", "linux")] {
        let table = json!({ "kind": kind, "stack": stack, "probe_timeout": "on" });
        let error = SENDERS.resolve(&table).unwrap_err().to_string();
        assert!(
            error.starts_with("probe_timeout: needs stack = \"linux\" and a sender with SACK: sack, "),
            "{error}"
        );
    }
}

#[test]
fn two_sacked_segments_are_enough_after_a_quarter_of_the_round_trip() {
    let mut script = Script::begun("sack", 4);
    assert_eq!(script.ack(100, 0, &[(1, 2)]), [4]);
    // 0 was sent at 0, RACK.rtt is 100 ms, and the smallest round trip is too: lost at 125 ms and two ticks of 4 ms.
    assert_eq!(script.timeout(), (133, vec![0]));
    assert_eq!(script.sender.stats().fast_retransmits, 1);
}

#[test]
fn a_retransmission_that_is_lost_is_sent_again() {
    let mut script = Script::begun("sack", 10);
    script.ack(100, 0, &[(1, 2)]);
    script.ack(100, 0, &[(1, 3)]);
    assert_eq!(script.ack(100, 0, &[(1, 4)]), [0]);
    // Of the segments sent at 100 ms, 10 was sent before 0 was retransmitted and proves nothing; later ones do.
    let mut out = Vec::new();
    for end in 5..=10 {
        out.extend(script.ack(100 + u64::from(end), 0, &[(1, end)]));
    }
    assert!(!out.contains(&0), "{out:?}");
    let newest = *out.last().unwrap();
    assert!(newest >= 12);
    // 12, sent after the retransmission of 0, arrives a round trip later; the retransmission does not.
    assert_eq!(script.ack(210, 0, &[(12, 13), (1, 10)])[0], 0);
    assert_eq!(script.sender.stats().timeouts, 0);
}

#[test]
fn a_silent_tail_is_probed_with_new_data_after_two_round_trips() {
    let mut script = Script::begun("sack", 4);
    script.ack(100, 2, &[]);
    // srtt is 100 ms plus 8 ms, but the timeout of the first segment in flight, sent at 0, is earlier: rto = 100 +
    // max(200, 200). The probe is the next new segment, beyond the window, and the timer restarts.
    let (due, probe) = script.timeout();
    assert_eq!((due, probe), (300, vec![8]));
    assert_eq!(script.timeout().0, 600);
    assert_eq!(script.sender.stats().timeouts, 1);
}

#[test]
fn the_probe_waits_for_two_round_trips_from_the_last_ack() {
    let mut script = Script::with("sack", 4, Supply::Bytes(4000));
    // No more data: two of the four segments are acknowledged, then the third.
    script.ack(100, 2, &[]);
    script.ack(290, 3, &[]);
    // srtt = 7/8 100 + 1/8 290 = 123.75 ms; a lone segment is probed 2 srtt + 200 ms later, or at the timeout.
    assert!(script.timeout().0 > 290 + 247);
    assert_eq!(script.sender.stats().retransmits, 1);
}

#[test]
fn a_window_halves_for_each_timeout_of_silence() {
    let mut script = Script::with("sack", 2, Supply::Open(14_000));
    for (ms, acked) in [(100, 2), (200, 6), (300, 14)] {
        script.ack(ms, acked, &[]);
    }
    assert_eq!(script.cwnd(), 16);
    script.sender.supply(Supply::Open(100_000));
    // The last segment was sent at 200 ms, and the timeout is 300 ms: 650 ms exceed two of them.
    assert_eq!(script.sent(at(850)).len(), 4);
    assert_eq!(script.sender.ssthresh(), Some(500_000));
}

#[test]
fn a_window_halves_in_whole_segments() {
    let mut script = Script::with("sack", 2, Supply::Open(13_000));
    for (ms, acked) in [(100, 2), (200, 6), (300, 13)] {
        script.ack(ms, acked, &[]);
    }
    assert_eq!(script.sender.cwnd(), 15_000);
    script.sender.supply(Supply::Open(100_000));
    assert_eq!(script.sent(at(850)).len(), 3);
    assert_eq!(script.sender.cwnd(), 3000);
}

#[test]
fn silence_begins_with_what_was_sent_again_last() {
    let mut script = Script::with("sack", 10, Supply::Open(70_000));
    script.ack(100, 10, &[]);
    script.ack(200, 30, &[]);
    assert_eq!(script.ack(300, 31, &[(32, 70)]), [31]);
    script.ack(400, 70, &[]);
    // Half of 41; the timeout is 100 + 200 ms.
    assert_eq!(script.cwnd(), 20);
    script.sender.supply(Supply::Open(100_000));
    assert_eq!(script.sent(at(601)).len(), 10, "301 ms after what was sent again");
}

#[test]
fn a_timeout_sends_one_segment_and_is_spurious_where_an_original_arrives() {
    let mut script = Script::begun("sack", 8);
    script.ack(100, 4, &[]);
    assert_eq!(script.cwnd(), 12);
    script.timeout();
    let (due, again) = script.timeout();
    assert_eq!((due, again), (600, vec![4]));
    assert_eq!(script.cwnd(), 1);
    // 4 may be either copy; it triggers new data. 5 was sent once, so its arrival proves it.
    script.ack(700, 5, &[]);
    assert!(script.sender.phase() == Phase::TimeoutRecovery);
    script.ack(701, 6, &[]);
    assert_eq!(script.sender.phase(), Phase::Open);
    assert_eq!(script.cwnd(), 13, "the window of before, grown by this acknowledgement");
    assert_eq!(script.sender.stats().retransmits, 1);
}

#[test]
fn after_a_real_timeout_new_data_is_tried_once_and_then_the_rest_is_sent_again() {
    let mut script = Script::begun("sack", 8);
    script.ack(100, 4, &[]);
    let (_, probe) = script.timeout();
    assert_eq!(probe, [16]);
    assert_eq!(script.timeout().1, [4]);
    // Only the retransmission arrives: cwnd 2, new data.
    assert_eq!(script.ack(700, 5, &[]), [17, 18]);
    // The new data arrives beyond a gap: the loss was real.
    assert_eq!(script.ack(800, 5, &[(17, 18)])[0], 5);
    assert_eq!(script.sender.phase(), Phase::TimeoutRecovery);
}

#[test]
fn where_no_new_data_may_be_sent_the_rest_is_sent_again_at_once() {
    for kind in ["sack", "newreno"] {
        let mut script = Script::with(kind, 8, Supply::Bytes(8000));
        script.ack(100, 4, &[]);
        let again = std::iter::repeat_with(|| script.timeout().1).find(|out| out == &[4]);
        assert_eq!(again, Some(vec![4]), "{kind}");
        assert_eq!(script.ack(2000, 5, &[]), [5, 6], "{kind}");
    }
}

#[test]
fn a_timeout_between_repairs_is_not_doubted_and_halves_again() {
    let mut script = Script::begun("newreno", 8);
    script.ack(100, 8, &[]);
    assert_eq!(script.cwnd(), 16);
    assert_eq!(script.timeout().1, [8]);
    // The ACK triggers new data; the two segments sent prove nothing.
    script.ack(600, 9, &[]);
    assert_eq!(script.sender.ssthresh(), Some(8000));
    script.timeout();
    // cwnd was 2, which is also the smallest threshold.
    assert_eq!(script.sender.ssthresh(), Some(2000));
    // A segment that was never retransmitted arrives, and proves nothing.
    script.ack(1500, 11, &[]);
    assert_eq!(script.sender.phase(), Phase::TimeoutRecovery);
}

#[test]
fn half_of_what_is_delivered_goes_out_while_the_window_is_halved() {
    let mut script = Script::begun("sack", 20);
    for end in 2..=3 {
        script.ack(100, 0, &[(1, end)]);
    }
    let mut out = Vec::new();
    for end in 4..=13 {
        out.push(script.ack(100, 0, &[(1, end)]).len());
    }
    // The retransmission at once, then one segment for two delivered.
    assert_eq!(out, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
}

#[test]
fn without_sack_a_duplicate_stands_for_a_segment_that_left() {
    let mut script = Script::begun("newreno", 10);
    assert_eq!(script.ack(100, 0, &[]), [10]);
    assert_eq!(script.ack(101, 0, &[]), [11]);
    assert_eq!(script.ack(102, 0, &[]), [0]);
    assert_eq!((script.cwnd(), script.sender.phase()), (5, Phase::FastRecovery));
    // A partial acknowledgement: the next hole, once the halved window allows it. 8 unacknowledged, one lost: 7 in
    // flight.
    assert_eq!(script.ack(200, 4, &[]), NOTHING);
    assert_eq!(script.ack(201, 4, &[]), [4]);
    // 7 in flight with the retransmission; each duplicate subtracts one, and below 5 new data follows.
    assert_eq!(script.ack(202, 4, &[]), NOTHING);
    assert_eq!(script.ack(203, 4, &[]), NOTHING);
    assert_eq!(script.ack(204, 4, &[]), [12]);
    // All data in flight at the loss is acknowledged: recovery lasts until more is.
    script.ack(300, 12, &[]);
    assert_eq!(script.sender.phase(), Phase::FastRecovery);
    script.ack(400, 13, &[]);
    assert_eq!(script.sender.phase(), Phase::Open);
}

#[test]
fn the_timeout_stays_200_ms_above_the_round_trip() {
    let mut script = Script::begun("reno", 2);
    let mut sent = 2;
    for n in 1..6 {
        sent += script.ack(n * 100, sent, &[]).len() as u32;
    }
    // RFC 6298: 100 + 4 * 50 * 0.75^4 = 163 ms, and so the lower limit of 200; here it is 100 + 200.
    assert_eq!(script.sender.rto(), Span::from_millis(300));
}

#[test]
fn a_connection_that_is_over_waits_for_nothing() {
    let params = FlowParams { packet: 1040, first: Seq(0), ..FlowParams::new(FlowId(0)) };
    let mut sender = SENDERS.resolve(&options("sack")).unwrap().build(params).unwrap();
    sender.supply(Supply::Bytes(2000));
    sender.on_timeout(Time::ZERO);
    let mut script = Script { sender };
    script.sent(at(0));
    // One segment and then the other, with the FIN, which uses a number.
    script.ack(100, 1, &[]);
    let mut last = Segment::pure_ack(FlowId(0), Seq(2001), 40);
    last.seq = Seq(1);
    script.sender.on_segment(at(200), &last);
    assert_eq!(script.sent(at(200)), NOTHING);
    assert_eq!(script.sender.finished_at(), Some(at(200)));
    assert_eq!(script.sender.poll_timeout(), None);
}

#[test]
fn the_last_window_of_an_object_still_lets_the_window_grow() {
    for kind in ["sack", "cubic"] {
        let mut script = Script::with(kind, 10, Supply::Open(10_000));
        for (n, ms) in [105, 110, 115, 120, 125].into_iter().enumerate() {
            script.ack(ms, 2 * (n as u32 + 1), &[]);
        }
        // The ten filled the window: it grows by all data delivered, though no data is left.
        assert_eq!(script.cwnd(), 20, "{kind}");
        script.sender.supply(Supply::Open(40_000));
        assert_eq!(script.sent(at(126)).len(), 20, "{kind}");
    }
}

#[test]
fn a_window_that_is_not_used_for_a_timeout_falls_half_way() {
    let mut script = Script::with("sack", 10, Supply::Open(10_000));
    script.ack(100, 10, &[]);
    assert_eq!(script.cwnd(), 20);
    // The timeout is 100 + 200 ms, and the window was last full at 0.
    for (ms, cwnd) in [(110, 20), (220, 20), (330, 15)] {
        script.sender.supply(Supply::Open(2000));
        assert_eq!(script.sent(at(ms)).len(), 2);
        // Half-way from 20 to the initial window of 10, which exceeds the two in use.
        assert_eq!(script.cwnd(), cwnd, "{ms} ms");
        let sent = 10 + 2 * (ms as u32 / 110);
        script.ack(ms + 100, sent, &[]);
    }
}

#[test]
fn a_reduction_is_taken_back_where_what_was_sent_again_had_arrived() {
    let mut script = Script::with("sack", 10, Supply::Open(10_000));
    assert_eq!(script.ack(100, 0, &[(1, 4)]), [0]);
    assert_eq!(script.sender.ssthresh(), Some(5000));
    // D-SACK of the retransmission: the first block lies below the acknowledgement.
    script.ack(200, 10, &[(0, 1)]);
    assert!(script.cwnd() >= 10);
    assert_eq!(script.sender.ssthresh(), Some(500_000));
}

#[test]
fn one_of_two_retransmissions_that_had_arrived_takes_nothing_back() {
    let mut script = Script::begun("sack", 20);
    let mut again: Vec<u32> = script.ack(100, 0, &[(2, 6)]);
    again.extend(script.ack(101, 0, &[(2, 8)]));
    assert!(again.contains(&0) && again.contains(&1), "{again:?}");
    script.ack(200, 20, &[(0, 1)]);
    assert_eq!(script.sender.ssthresh(), Some(10_000));
    script.ack(201, 20, &[(1, 2)]);
    assert_eq!(script.sender.ssthresh(), Some(500_000), "late, but all of it");
}

#[test]
fn an_echo_of_congestion_takes_the_window_down_segment_by_segment() {
    let options = json!({ "kind": "sack", "stack": "linux", "timestamps": "off", "ecn": "on" });
    let mut script = Script::of(&options, 10, Supply::Endless);
    let marked = |ack: &mut Segment| ack.flags |= Flags::ECE;
    // From 10 to 5: ceil(n / 2) after n delivered.
    let sent: Vec<usize> =
        (1..=8).map(|n| script.ack_with(99 + u64::from(n), n, &[], marked).len()).collect();
    assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0]);
    assert_eq!((script.cwnd(), script.sender.stats().ecn_reductions), (5, 1));
    // All data in flight at the echo is acknowledged: congestion avoidance.
    script.ack(108, 10, &[]);
    assert_eq!(script.ack(200, 11, &[]).len(), 1);
    assert_eq!(script.cwnd(), 5);
}

#[test]
fn a_path_that_reorders_is_given_a_quarter_of_the_round_trip() {
    let mut script = Script::begun("sack", 10);
    script.ack(100, 0, &[(1, 2)]);
    // 0 was sent once, and arrives after 1.
    script.ack(101, 4, &[]);
    let out = script.ack(110, 4, &[(5, 8)]);
    assert!(!out.contains(&4), "three SACKed segments are no proof here: {out:?}");
    // RACK.rtt is that of 7, 110 ms; plus a quarter of the smallest, 100 ms, and two ticks.
    assert_eq!(script.timeout(), (143, vec![4]));
}

#[test]
fn a_closed_window_is_probed_without_data_and_its_tail_is_not() {
    let mut script = Script::begun("sack", 4);
    script.ack(100, 4, &[]);
    assert_eq!(script.cwnd(), 8);
    assert_eq!(script.ack_with(200, 12, &[], |ack| ack.window = 0), NOTHING);
    assert_eq!(script.cwnd(), 16);
    // rto = 100 + 200 ms. The probe has an acknowledged number; no further probe follows after two round trips.
    let (due, out) = script.timeout();
    assert_eq!((due, out), (500, vec![11]));
    script.ack_with(510, 12, &[], |ack| ack.window = 0);
    assert_eq!(script.timeout().0, 1110);
    // The last data was sent at 100 ms: after 3 s, ten timeouts, the window is the initial one.
    assert_eq!(script.ack(3100, 12, &[]).len(), 4);
    assert_eq!(script.sender.rto(), Span::from_millis(300), "probes do not double it");
}

#[test]
fn a_probe_that_repaired_a_loss_lowers_the_threshold_and_then_the_window() {
    let mut script = Script::with("sack", 8, Supply::Open(8000));
    script.ack(100, 7, &[]);
    assert_eq!(script.timeout().1, [7]);
    script.ack(500, 8, &[]);
    assert_eq!((script.cwnd(), script.sender.ssthresh()), (16, Some(8000)));
    script.sender.supply(Supply::Open(1000));
    assert_eq!(script.sent(at(500)), [8]);
    // For longer than a timeout, 300 ms, at most 8 of 16 were used: 12. The loss halves this.
    assert_eq!(script.cwnd(), 12);
    script.ack(600, 9, &[]);
    assert_eq!(
        (script.cwnd(), script.sender.ssthresh()),
        (6, Some(6000)),
        "nothing has spoken for the original"
    );
}

#[test]
fn a_probe_that_repeated_what_had_arrived_costs_nothing() {
    let mut script = Script::with("sack", 8, Supply::Open(8000));
    script.ack(100, 7, &[]);
    assert_eq!(script.timeout().1, [7]);
    script.ack(410, 8, &[]);
    script.ack(500, 8, &[(7, 8)]);
    assert_eq!((script.cwnd(), script.sender.ssthresh()), (16, Some(500_000)));
}

#[test]
fn the_first_retransmission_waits_for_no_room() {
    for kind in ["sack", "newreno"] {
        let options = json!({ "kind": kind, "stack": "linux", "timestamps": "off", "prr": "off" });
        let mut script = Script::of(&options, 10, Supply::Endless);
        // 10 in flight and a window of 5: it is sent nevertheless (RFC 6675 section 5 step 4.3).
        let out: Vec<u32> = if kind == "sack" {
            script.ack(100, 0, &[(1, 4)])
        } else {
            (0..3).flat_map(|n| script.ack(100 + n, 0, &[])).collect()
        };
        assert_eq!(out.iter().filter(|&&segment| segment == 0).count(), 1, "{kind}: {out:?}");
    }
}

#[test]
fn duplicates_of_a_peer_without_sack_are_counted() {
    let mut script = Script::begun("cubic", 10);
    assert_eq!(script.ack(100, 0, &[]), [10]);
    assert_eq!(script.ack(101, 0, &[]), [11]);
    assert_eq!(script.ack(102, 0, &[]), [0]);
    assert_eq!((script.cwnd(), script.sender.phase()), (7, Phase::FastRecovery));
}

#[test]
fn a_smaller_window_on_a_duplicate_is_not_taken() {
    let mut script = Script::begun("newreno", 10);
    let smaller = |ack: &mut Segment| ack.window = 100;
    let out: Vec<u32> = (0..3).flat_map(|n| script.ack_with(100 + n, 0, &[], smaller)).collect();
    // 100 * 16 bytes would stop it.
    assert_eq!(out, [10, 11, 0]);
}

/// Numbers, in thousands, of the segments with PSH among those sent at `ms`.
fn pushed(script: &mut Script, ms: u64) -> Vec<u32> {
    let sent = std::iter::from_fn(|| script.sender.poll_segment(at(ms)));
    sent.filter(|segment| segment.flags.contains(Flags::PSH)).map(|segment| segment.seq.0 / 1000).collect()
}

fn acknowledge(script: &mut Script, ms: u64, thousands: u32, flags: Flags) {
    let mut ack = Segment::pure_ack(FlowId(0), Seq(thousands * 1000), 40);
    (ack.seq, ack.window) = (Seq(1), u16::MAX);
    ack.set_scale(Some(4));
    ack.flags |= flags;
    script.sender.on_segment(at(ms), &ack);
}

#[test]
fn the_second_of_two_segments_that_leave_together_is_pushed_and_so_is_the_last_of_an_object() {
    let mut script = Script::with("sack", 10, Supply::Open(23_000));
    // Two are acknowledged and four sent; then one, and two; then the rest, three as a chunk of two and a last one.
    acknowledge(&mut script, 100, 2, Flags(0));
    assert_eq!(pushed(&mut script, 100), [11, 13]);
    acknowledge(&mut script, 101, 3, Flags(0));
    assert_eq!(pushed(&mut script, 101), [15]);
    acknowledge(&mut script, 102, 6, Flags(0));
    assert_eq!(pushed(&mut script, 102), [17, 19, 21]);
    acknowledge(&mut script, 103, 7, Flags(0));
    assert_eq!(pushed(&mut script, 103), [22]);
}

#[test]
fn a_chunk_is_half_of_the_window_at_most() {
    for (window, expected) in [(2, &[][..]), (3, &[]), (4, &[1, 3]), (5, &[1, 3]), (6, &[1, 3, 5])] {
        let params = FlowParams {
            packet: 1040,
            initial_window: Size::Packets(window),
            first: Seq(0),
            ..FlowParams::new(FlowId(0))
        };
        let mut sender = SENDERS.resolve(&options("sack")).unwrap().build(params).unwrap();
        sender.supply(Supply::Endless);
        sender.on_timeout(Time::ZERO);
        assert_eq!(pushed(&mut Script { sender }, 0), expected, "{window} segments");
    }
}

#[test]
fn what_is_sent_again_is_pushed_where_it_leaves_behind_the_other_segment_of_its_chunk() {
    let mut script = Script::with("sack", 10, Supply::Bytes(10_000));
    assert!(std::iter::repeat_with(|| script.timeout().1).any(|out| out == [0]));
    // Windows of two, of four and of the rest; 1, 3, 5, 7 and 9 were pushed.
    for (ms, thousands, expected) in [(2000, 1, &[][..]), (2100, 3, &[5]), (2200, 7, &[9])] {
        acknowledge(&mut script, ms, thousands, Flags(0));
        assert_eq!(pushed(&mut script, ms), expected);
    }
}

#[test]
fn a_lone_segment_is_not_pushed_and_one_sent_again_as_it_was() {
    let mut script = Script::begun("sack", 2);
    // 0 and 1 were sent together. A reduced window of two releases one at a time.
    script.ack(100, 0, &[(1, 2)]);
    let (_, again) = script.timeout();
    assert_eq!(again, [0]);
    let mut script = Script::begun("sack", 10);
    for end in 4..=5 {
        script.ack(100, 0, &[(2, end)]);
    }
    acknowledge(&mut script, 101, 0, Flags(0));
    assert_eq!(pushed(&mut script, 101), NOTHING);
}

#[test]
fn the_first_new_segment_after_a_repaired_loss_says_that_the_window_was_reduced() {
    let mut options = options("sack");
    options["ecn"] = json!("on");
    let mut script = Script::of(&options, 10, Supply::Endless);
    // 10 and 11 are sent before the loss is found, at the third SACKed segment. Then 0 again, and no new data while
    // more than half is in flight.
    for end in 2..=4 {
        script.ack(98 + u64::from(end), 0, &[(1, end)]);
    }
    // RFC 3168 section 6.1.2: whatever reduced the window.
    acknowledge(&mut script, 200, 10, Flags(0));
    let sent: Vec<Segment> = std::iter::from_fn(|| script.sender.poll_segment(at(200))).collect();
    let told: Vec<bool> = sent.iter().map(|segment| segment.flags.contains(Flags::CWR)).collect();
    assert_eq!((sent[0].seq, &told[..2]), (Seq(12_000), &[true, false][..]));
}

#[test]
fn an_echo_while_a_loss_is_repaired_is_not_heard_and_one_afterwards_is() {
    let mut options = options("sack");
    options["ecn"] = json!("on");
    let mut script = Script::of(&options, 20, Supply::Endless);
    for end in 2..=4 {
        script.ack(98 + u64::from(end), 0, &[(1, end)]);
    }
    script.ack_with(103, 0, &[(1, 5)], |ack| ack.flags |= Flags::ECE);
    assert_eq!((script.cwnd(), script.sender.stats().ecn_reductions), (10, 0));
    // All data in flight at the loss is acknowledged: recovery is over, and the echo continues.
    script.ack(200, 22, &[]);
    assert_eq!(script.sender.phase(), Phase::Open);
    script.ack_with(201, 23, &[], |ack| ack.flags |= Flags::ECE);
    assert_eq!((script.cwnd(), script.sender.stats().ecn_reductions), (5, 1));
}

#[test]
fn a_repair_within_the_reduction_for_an_echo_ends_with_it_and_the_next_loss_reduces_again() {
    let mut options = options("sack");
    options["ecn"] = json!("on");
    let mut script = Script::of(&options, 20, Supply::Endless);
    script.ack_with(100, 1, &[], |ack| ack.flags |= Flags::ECE);
    assert_eq!((script.cwnd(), script.sender.phase()), (10, Phase::Open));
    // 1 is lost, and so is 20, the first sent after the echo. Recovery of 1 is part of the reduction, which lasts until
    // 20.
    let mut sent = Vec::new();
    for end in 3..=20 {
        sent.extend(script.ack(101, 1, &[(2, end)]));
    }
    assert_eq!((script.cwnd(), script.sender.phase()), (10, Phase::FastRecovery));
    assert!(sent.contains(&1) && sent.contains(&24), "{sent:?}");
    script.ack(200, 20, &[(21, 25)]);
    assert_eq!((script.cwnd(), script.sender.phase()), (5, Phase::FastRecovery));
}

#[test]
fn bbr_repairs_a_loss_within_the_window_of_an_echo_no_longer_than_that() {
    let mut options = options("bbr");
    options["ecn"] = json!("on");
    let mut script = Script::of(&options, 10, Supply::Endless);
    // The echo counts until 10, the data now in flight. 1 is lost before; segments sent between echo and retransmission
    // are beyond.
    let mut sent = script.ack_with(100, 1, &[], |ack| ack.flags |= Flags::ECE);
    let ms = 140;
    sent.extend((101..=ms).flat_map(|ms| script.sent(at(ms))));
    assert!(sent.starts_with(&[10]), "{sent:?}");
    for end in 3..=10 {
        script.ack(ms, 1, &[(2, end)]);
    }
    assert_eq!(script.sender.stats().fast_retransmits, 1);
    assert_eq!(script.sender.phase(), Phase::FastRecovery);
    // Segments sent between echo and retransmission are still in flight.
    script.ack(ms + 100, 10, &[]);
    assert!(script.sender.flight() > 0);
    assert_eq!(script.sender.phase(), Phase::Open);
}

/// A fast retransmit that a timestamp echo proves spurious; `echoes` are congestion echoes during it. Returns window
/// and phase after the proof.
fn disproved(echoes: Flags) -> (u32, Phase) {
    let options = json!({ "kind": "cubic", "stack": "linux", "ecn": "on" });
    let mut script = Script::of(&options, 20, Supply::Endless);
    let stamped = |script: &mut Script, ms: u64, thousands: u32, block: Option<(u32, u32)>, flags: Flags| {
        let mut ack = Segment::pure_ack(FlowId(0), Seq(thousands * 1000), 40);
        (ack.seq, ack.window) = (Seq(1), u16::MAX);
        ack.flags |= flags;
        ack.set_scale(Some(4));
        // Echoes the segment sent at 0.
        ack.set_timestamps(Timestamps { value: ms as u32, echo: 0 });
        if let Some((left, right)) = block {
            ack.push_sack(SackBlock { left: Seq(left * 1000), right: Seq(right * 1000) });
        }
        script.sender.on_segment(at(ms), &ack);
        script.sent(at(ms))
    };
    for end in 2..=4 {
        stamped(&mut script, 100, 0, Some((1, end)), Flags(0));
    }
    assert_eq!(script.sender.phase(), Phase::FastRecovery);
    stamped(&mut script, 101, 0, Some((1, 5)), echoes);
    stamped(&mut script, 102, 5, None, Flags(0));
    (script.cwnd(), script.sender.phase())
}

#[test]
fn an_echo_during_a_repair_lets_a_proof_end_it_and_give_no_window_back() {
    let (cwnd, phase) = disproved(Flags(0));
    assert!(cwnd >= 20 && phase == Phase::Open, "{cwnd} {phase:?}");
    let (cwnd, phase) = disproved(Flags::ECE);
    assert!(cwnd < 20 && phase == Phase::Open, "{cwnd} {phase:?}");
}

#[test]
fn what_left_before_the_left_edge_did_again_restarts_the_timer() {
    let mut script = Script::begun("sack", 10);
    for end in 2..=5 {
        script.ack(100, 0, &[(1, end)]);
    }
    // 0 was retransmitted at 100 ms, after 5. srtt = 7/8 100 + 1/8 150 = 106.25 ms, plus 200.
    script.ack(150, 0, &[(1, 6)]);
    assert_eq!(script.timeout().0, 456);
}

#[test]
fn a_chunk_cut_short_by_the_window_waits_for_the_next_ack_where_something_was_just_sent() {
    let mut script = Script::begun("sack", 10);
    assert_eq!(script.ack(100, 1, &[]), [10, 11]);
    // Two ACKs at once release one segment and then two, which are sent together.
    assert_eq!(script.ack(105, 1, &[(2, 3)]), [12]);
    assert_eq!(script.ack(105, 1, &[(2, 4)]), NOTHING);
    assert_eq!(script.sent(at(109)), NOTHING, "until something happens");
    // 9 are in flight in a window of 12: a chunk of two is sent, and the third waits again.
    assert_eq!((script.ack(110, 4, &[]), script.cwnd()), (vec![13, 14], 12));
}

#[test]
fn an_ack_from_before_an_object_was_written_lets_the_send_buffer_not_grow() {
    let mut script = Script::with("sack", 10, Supply::Open(10_000));
    let window = |ack: &mut Segment| ack.window = 4096;
    assert_eq!(script.ack_with(100, 10, &[], window), NOTHING);
    script.sender.supply(Supply::Open(20_000));
    assert_eq!(script.sent(at(100)).len(), 20);
    assert_eq!(script.ack_with(200, 30, &[], window), NOTHING);
    script.sender.supply(Supply::Open(60_000));
    // Pieces of 32 segments, half of the peer's 65 536 bytes. 34 are sent, using 34 000 + 17 * 832 bytes of 2 * 10 *
    // 2304.
    assert_eq!((script.cwnd(), script.sent(at(200)).len()), (40, 34));
    // The program waits, and the window of 42 segments is not full: the rest fits in 2 * 42 * 2304 bytes.
    assert_eq!(script.ack_with(300, 32, &[], window).len(), 10);
}

impl Script {
    /// Duplicates from `ms` on: `arrivals`, and one for each segment they trigger, until none is sent; returns those
    /// segments.
    fn repeat_ack(&mut self, ms: u64, thousands: u32, mut arrivals: usize) -> Vec<u32> {
        let mut out = Vec::new();
        while arrivals > 0 {
            let more = self.ack(ms + out.len() as u64, thousands, &[]);
            // The missing segment arrives later.
            arrivals = arrivals + more.iter().filter(|&&segment| segment != thousands).count() - 1;
            out.extend(more);
        }
        out
    }
}

#[test]
fn each_segment_that_leaves_alone_takes_the_memory_of_a_chunk() {
    let mut script = Script::begun("newreno", 40);
    // A piece of 65 is written after the first 40, and is sent one by one.
    let out = script.repeat_ack(100, 0, 37);
    assert_eq!((out[..3].to_vec(), out.last()), (vec![40, 41, 0], Some(&104)));
    // At most two thirds of the buffer, 4/3 * 40 * 2304 = 122 880 bytes, may be in use. 68 segments are in flight, two
    // of them sent together: 68 000 + 67 * 832 bytes, and no more is written; ...
    assert_eq!(script.ack(300, 37, &[]), [37]);
    // ... then 67 single ones, as 38 is retransmitted without 39: 67 000 + 67 * 832.
    assert_eq!(script.ack(301, 38, &[])[..2], [38, 105]);
}

#[test]
fn the_end_of_a_full_buffer_waits_while_a_part_of_a_segment_is_outstanding() {
    let mut script = Script::begun("newreno", 10);
    // A chunk fills the window with 504 bytes.
    assert_eq!(script.ack_with(100, 2, &[], |ack| ack.window = 594), [10, 11]);
    let out = script.repeat_ack(101, 2, 9);
    // 75 000 bytes are written, and the last 496 wait ...
    assert_eq!(out.last(), Some(&73));
    // ... until the 504 are acknowledged.
    assert_eq!(script.ack(300, 11, &[]), [11]);
    assert_eq!(script.ack(400, 12, &[])[..2], [12, 74]);
}

/// The Linux stack on a mobile that retransmits segments requested by an agent at the edge.
fn obeying() -> Script {
    let options = json!({ "kind": "sack", "stack": "linux", "timestamps": "off", "nacks": "on" });
    Script::of(&options, 10, Supply::Endless)
}

#[test]
fn what_an_agent_asks_for_is_repaired_at_once_and_without_a_reduction() {
    let mut script = obeying();
    // The agent has 0 to 2, 4, 5 and 7, and the server has acknowledged nothing; 8 and 9 may be in transit.
    let request = [(0, 3), (4, 6), (7, 8)];
    assert_eq!(script.ack(50, 0, &request), [3, 6]);
    // Later transmissions may be in transit too.
    assert_eq!(script.ack(60, 0, &request), NOTHING);
    // The server reports the same gaps, one round trip of the wired path later.
    script.ack(100, 3, &[]);
    for blocks in [&[(4, 5)][..], &[(4, 6)], &[(7, 8), (4, 6)], &[(7, 10), (4, 6)]] {
        script.ack(101, 3, blocks);
    }
    script.ack(151, 10, &[]);
    let stats = script.sender.stats();
    assert_eq!((stats.retransmits, stats.fast_retransmits, stats.timeouts), (2, 0, 0));
    assert_eq!(script.sender.ssthresh(), Some(500_000));
}

#[test]
fn a_repair_that_something_sent_later_overtook_is_asked_for_again() {
    let mut script = obeying();
    assert_eq!(script.ack(50, 0, &[(0, 3), (4, 8)]), [3]);
    let fresh = script.ack(100, 3, &[]);
    assert!(fresh.contains(&10), "{fresh:?}");
    assert_eq!(script.ack(110, 3, &[(3, 3), (4, 10)]), NOTHING);
    assert_eq!(script.ack(150, 3, &[(3, 3), (4, 11)]), [3]);
}

#[test]
fn a_request_is_no_more_than_a_duplicate_to_who_does_not_obey_any() {
    let mut script = Script::begun("sack", 10);
    // New data in response (RFC 3042), and no retransmission.
    assert_eq!(script.ack(50, 0, &[(0, 3), (4, 5)]), [10]);
    for (kind, stack) in [("sack", "rfc"), ("reno", "linux")] {
        let options = json!({ "kind": kind, "stack": stack, "nacks": "on" });
        let error = SENDERS.resolve(&options).map(drop).unwrap_err();
        assert_eq!(error.path, "nacks", "{error}");
    }
}
