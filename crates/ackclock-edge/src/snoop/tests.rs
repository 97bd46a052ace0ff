use super::*;
use ackclock_core::Rate;
use ackclock_link::{Capacity, Load};

const PAYLOAD: u32 = 1000;

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

fn view() -> LinkView {
    LinkView {
        waiting: Load::NONE,
        in_transmission: Load::NONE,
        unacknowledged: Load::NONE,
        occupied: Load::NONE,
        capacity: Capacity::Unlimited,
        rate: Rate::from_bps(1_000_000),
    }
}

/// Packet `number` of the source.
fn data(number: u32) -> Segment {
    Segment::data(FlowId(0), Seq(number * PAYLOAD), PAYLOAD as u16, 40)
}

/// What comes out, numbers in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Did {
    Forwarded(u32),
    /// An ACK was made.
    Acknowledged(u32),
    Resent(u32),
    Discarded(u32),
    Released(u32),
}

use Did::{Acknowledged, Discarded, Forwarded, Released, Resent};

/// An agent whose packets leave the queue at once.
struct Bench {
    agent: Snoop,
    now: Time,
}

impl Bench {
    fn new(config: Config) -> Self {
        Self { agent: Snoop::new(config), now: Time::ZERO }
    }

    /// Packets 0 to 5 have come and departed, and the first is acknowledged after 20 ms.
    fn started() -> Self {
        let mut bench = Self::new(Config::default());
        (0..6).for_each(|number| assert_eq!(bench.data(number), Verdict::ForwardKeep));
        bench.now = at(20);
        assert_eq!(bench.ack(1), [Released(0), Forwarded(1)]);
        bench
    }

    fn data(&mut self, number: u32) -> Verdict {
        let verdict = self.agent.on_data(self.now, &data(number), view());
        if verdict != Verdict::Drop {
            self.agent.on_departed(self.now, &data(number), view());
        }
        verdict
    }

    /// An ACK for the first `packets` packets.
    fn ack(&mut self, packets: u32) -> Vec<Did> {
        self.agent.handle_ack(self.now, Segment::pure_ack(FlowId(0), Seq(packets * PAYLOAD), 40), view());
        self.did()
    }

    /// The deadline has come.
    fn expire(&mut self) -> Vec<Did> {
        self.now = self.agent.poll_timeout().unwrap();
        self.agent.handle_timeout(self.now, view());
        self.did()
    }

    fn did(&mut self) -> Vec<Did> {
        let mut did = Vec::new();
        while let Some(output) = self.agent.poll_output(self.now) {
            did.push(match output {
                Output::ToSender(ack) if ack.is_made() => Acknowledged(ack.ack.0 / PAYLOAD),
                Output::ToSender(ack) => Forwarded(ack.ack.0 / PAYLOAD),
                Output::Discard(ack) => Discarded(ack.ack.0 / PAYLOAD),
                Output::Release(copy) => Released(copy.seq.0 / PAYLOAD),
                Output::ToReceiver { segment, place } => {
                    assert_eq!(place, Place::Front);
                    self.agent.on_departed(self.now, &segment, view());
                    Resent(segment.seq.0 / PAYLOAD)
                }
            });
        }
        did
    }
}

#[test]
fn data_rule_1_a_new_packet_is_cached_and_forwarded() {
    let mut bench = Bench::new(Config::default());
    assert_eq!(bench.data(0), Verdict::ForwardKeep);
    // One that leaves a gap is new as well.
    assert_eq!(bench.data(2), Verdict::ForwardKeep);
    assert_eq!(bench.agent.kept(FlowId(0)), 2);
}

#[test]
fn data_rule_2_a_repetition_of_what_is_outstanding_is_the_sources_business() {
    let mut bench = Bench::started();
    assert_eq!(bench.data(1), Verdict::Forward);
    assert_eq!(bench.did(), [Released(1)]);
    // Its duplicates reach the source.
    assert_eq!(bench.ack(1), [Forwarded(1)]);
}

#[test]
fn data_rule_2_a_repetition_of_what_is_acknowledged_is_answered_and_dropped() {
    let mut bench = Bench::started();
    assert_eq!(bench.data(0), Verdict::Drop);
    assert_eq!(bench.did(), [Acknowledged(1)]);
}

#[test]
fn data_rule_3_duplicates_for_what_the_wired_part_lost_reach_the_source() {
    let mut bench = Bench::new(Config::default());
    [0, 2, 3].into_iter().for_each(|number| assert_eq!(bench.data(number), Verdict::ForwardKeep));
    assert_eq!(bench.ack(1), [Released(0), Forwarded(1)]);
    assert_eq!(bench.ack(1), [Forwarded(1)]);
    assert_eq!(bench.data(1), Verdict::Forward);
    assert_eq!(
        (bench.ack(1), bench.ack(4)),
        (vec![Forwarded(1)], vec![Released(2), Released(3), Forwarded(4)])
    );
}

#[test]
fn a_full_cache_lets_packets_pass_without_a_copy() {
    let mut bench = Bench::new(Config { cache: 2, ..Config::default() });
    let verdicts = [0, 1, 2].map(|number| bench.data(number));
    assert_eq!(verdicts, [Verdict::ForwardKeep, Verdict::ForwardKeep, Verdict::Forward]);
    assert_eq!(
        (bench.ack(2), bench.data(3)),
        (vec![Released(0), Released(1), Forwarded(2)], Verdict::ForwardKeep)
    );
}

#[test]
fn ack_rule_1_a_new_ack_empties_the_cache_and_measures_the_hop() {
    let bench = Bench::started();
    assert_eq!((bench.agent.kept(FlowId(0)), bench.agent.hop.mean()), (5, Some(Span::from_millis(20))));
}

#[test]
fn ack_rule_2_an_old_ack_is_discarded() {
    let mut bench = Bench::started();
    assert_eq!(bench.ack(0), [Discarded(0)]);
}

#[test]
fn ack_rule_3_the_first_duplicate_calls_forth_the_missing_packet_and_the_expected_ones_nothing() {
    let mut bench = Bench::started();
    // Packet 1 is missing: 2, 3, 4 and 5 call forth a duplicate each.
    assert_eq!(bench.ack(1), [Resent(1), Discarded(1)]);
    for _ in 0..3 {
        assert_eq!(bench.ack(1), [Discarded(1)]);
    }
    assert_eq!(bench.ack(1), [Forwarded(1)], "one that was not expected");
    assert_eq!(bench.ack(6).last(), Some(&Forwarded(6)));
    assert_eq!((bench.agent.kept(FlowId(0)), bench.agent.hop.mean()), (0, Some(Span::from_millis(20))));
}

/// Karn's algorithm: the ACK may answer either transmission.
#[test]
fn an_ack_of_a_retransmitted_packet_is_no_round_trip_sample() {
    let mut bench = Bench::started();
    assert_eq!(bench.ack(1), [Resent(1), Discarded(1)]);
    bench.agent.on_departed(at(25), &data(1), view());
    bench.now = at(125);
    assert_eq!(bench.ack(2), [Released(1), Forwarded(2)]);
    assert_eq!(bench.agent.hop.mean(), Some(Span::from_millis(20)));
}

#[test]
fn packets_that_come_while_one_is_repaired_add_to_the_duplicates_that_are_expected() {
    let mut bench = Bench::started();
    assert_eq!(bench.ack(1), [Resent(1), Discarded(1)]);
    bench.data(6);
    for _ in 0..4 {
        assert_eq!(bench.ack(1), [Discarded(1)]);
    }
    assert_eq!(bench.ack(1), [Forwarded(1)]);
}

#[test]
fn a_packet_that_the_queue_dropped_is_lost_by_congestion() {
    let mut bench = Bench::started();
    for cause in [Cause::Full, Cause::Policy] {
        bench.agent.on_dropped(bench.now, &data(1), cause, view());
    }
    assert_eq!((bench.did(), bench.ack(1)), (vec![Released(1)], vec![Forwarded(1)]));
}

#[test]
fn nothing_heard_for_the_local_timeout_calls_forth_the_oldest_again_until_the_limit() {
    let mut bench = Bench::new(Config { retransmissions: 3, ..Config::default() });
    (0..3).for_each(|number| assert_eq!(bench.data(number), Verdict::ForwardKeep));
    bench.now = at(20);
    bench.ack(1);
    // 20 + 4 x 10 ms after packet 1 departed at 0 ms; then twice and four times as long, and no packet is left to wait for.
    let mut expired = Vec::new();
    while bench.agent.poll_timeout().is_some() {
        let did = bench.expire();
        expired.push((bench.now.as_nanos() / 1_000_000, did));
    }
    let instants: Vec<_> = expired.iter().map(|(at, _)| *at).collect();
    assert_eq!(instants, [60, 180, 420, 900]);
    assert!(expired[..3].iter().all(|(_, did)| did == &[Resent(1)]), "{expired:?}");
    assert_eq!(expired[3].1, [Released(1), Released(2)], "the source is let hear of it");
    assert_eq!(bench.ack(1), [Forwarded(1)]);
}

#[test]
fn a_duplicate_does_not_call_forth_what_the_timeout_has_called_forth() {
    let mut bench = Bench::started();
    assert_eq!(bench.expire(), [Resent(1)]);
    // 2, 3, 4 and 5 call forth a duplicate each.
    for _ in 0..4 {
        assert_eq!(bench.ack(1), [Discarded(1)]);
    }
    assert_eq!(bench.ack(1), [Forwarded(1)], "one that was not expected");
}

#[test]
fn the_local_timeout_is_no_less_than_its_least() {
    let mut hop = Hop::default();
    assert_eq!(hop.timeout(Span::from_millis(40), 0), LONGEST_TIMEOUT);
    for _ in 0..100 {
        hop.sample(Span::from_millis(5));
    }
    assert_eq!(hop.timeout(Span::from_millis(40), 0), Span::from_millis(40));
    assert_eq!(hop.timeout(Span::from_millis(40), 20), LONGEST_TIMEOUT);
}

#[test]
fn where_packets_overtake_each_other_a_round_trip_of_the_hop_is_waited_for_first() {
    let mut bench = Bench::started();
    bench.agent.config.reordering = true;
    assert_eq!((bench.ack(1), bench.ack(1)), (vec![Discarded(1)], vec![Discarded(1)]));
    assert_eq!(bench.agent.poll_timeout(), Some(at(40)));
    assert_eq!(bench.expire(), [Resent(1)]);
    // Had it only been late, nothing would have been sent again.
    let mut bench = Bench::started();
    bench.agent.config.reordering = true;
    assert_eq!(bench.ack(1), [Discarded(1)]);
    let did = bench.ack(6);
    assert!(!did.iter().any(|did| matches!(did, Resent(_))), "{did:?}");
}

#[test]
fn window_updates_and_data_of_the_mobile_are_no_duplicates() {
    let mut bench = Bench::started();
    let mut update = Segment::pure_ack(FlowId(0), Seq(PAYLOAD), 40);
    update.window = 77;
    bench.agent.handle_ack(bench.now, update, view());
    update.payload = 10;
    bench.agent.handle_ack(bench.now, update, view());
    assert_eq!(bench.did(), [Forwarded(1), Forwarded(1)]);
}

#[test]
fn a_syn_and_the_end_of_the_flow_give_everything_back() {
    let mut bench = Bench::started();
    let mut syn = data(0);
    syn.flags |= Flags::SYN;
    assert_eq!(bench.agent.on_data(bench.now, &syn, view()), Verdict::Forward);
    assert_eq!(bench.did(), [1, 2, 3, 4, 5].map(Released));
    assert_eq!(bench.data(0), Verdict::ForwardKeep);
    bench.agent.close(bench.now, FlowId(0));
    assert_eq!((bench.did(), bench.agent.kept(FlowId(0))), (vec![Released(0)], 0));
}

#[test]
fn what_makes_no_sense_is_named() {
    use ackclock_core::Config as _;
    for (config, path) in [
        (Config { cache: 0, ..Config::default() }, "cache"),
        (Config { retransmissions: 0, ..Config::default() }, "retransmissions"),
        (Config { min_timeout: Span::ZERO, ..Config::default() }, "min_timeout"),
    ] {
        assert_eq!(config.check().unwrap_err().path, path);
    }
}

/// Packet `number` of the mobile comes; what is asked for then.
fn upload(bench: &mut Bench, number: u32) -> Vec<[u32; 2]> {
    bench.agent.handle_ack(bench.now, data(number), view());
    requests(bench)
}

/// The ranges that the agent tells the mobile to have come, in packets.
fn requests(bench: &mut Bench) -> Vec<[u32; 2]> {
    let mut ranges = Vec::new();
    while let Some(output) = bench.agent.poll_output(bench.now) {
        if let Output::ToReceiver { segment, .. } = output {
            assert!(segment.is_made() && segment.is_pure_ack());
            ranges
                .extend(segment.sack().iter().map(|block| [block.left.0 / PAYLOAD, block.right.0 / PAYLOAD]));
        }
    }
    ranges
}

/// An agent that asks mobiles; three packets of one have come, of which the server has acknowledged one.
fn asking() -> Bench {
    let mut bench = Bench::new(Config { nacks: true, retransmissions: 2, ..Config::default() });
    (0..3).for_each(|number| assert!(upload(&mut bench, number).is_empty()));
    bench.agent.on_data(bench.now, &Segment::pure_ack(FlowId(0), Seq(PAYLOAD), 40), view());
    bench
}

#[test]
fn a_gap_in_the_data_of_a_mobile_is_asked_for_at_once_and_again_while_it_is_open() {
    let mut bench = asking();
    // 3 is missing: what the server has ends at 1, what the agent has at 3, and 4 has come.
    assert_eq!(upload(&mut bench, 4), [[1, 3], [4, 5]]);
    assert!(upload(&mut bench, 5).is_empty(), "no new gap");
    // 6 is missing too.
    assert_eq!(upload(&mut bench, 7), [[1, 3], [4, 6], [7, 8]]);
    // No hop was measured: a second, doubled; two requests for each gap, so one is left.
    assert!(bench.agent.poll_timeout().is_none(), "asked twice");
    assert!(upload(&mut bench, 3).is_empty(), "6 was asked for already");
    bench.now = bench.agent.poll_timeout().unwrap();
    bench.agent.handle_timeout(bench.now, view());
    assert_eq!(requests(&mut bench), [[1, 6], [7, 8]]);
    assert!(upload(&mut bench, 6).is_empty());
    assert_eq!(bench.agent.poll_timeout(), None, "everything has come");
}

#[test]
fn what_the_server_acknowledges_is_asked_for_no_more() {
    let mut bench = asking();
    assert_eq!(upload(&mut bench, 4), [[1, 3], [4, 5]]);
    bench.agent.on_data(bench.now, &Segment::pure_ack(FlowId(0), Seq(5 * PAYLOAD), 40), view());
    assert_eq!(bench.agent.poll_timeout(), None);
    assert_eq!(upload(&mut bench, 6), [[5, 5], [6, 7]]);
}

#[test]
fn nobody_is_asked_where_that_is_not_said() {
    let mut bench = Bench::new(Config::default());
    bench.agent.on_data(bench.now, &Segment::pure_ack(FlowId(0), Seq(0), 40), view());
    assert!(upload(&mut bench, 0).is_empty() && upload(&mut bench, 2).is_empty());
    assert_eq!(bench.agent.poll_timeout(), None);
}
