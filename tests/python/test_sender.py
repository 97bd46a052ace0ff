"""A sender driven by hand, segment by segment: what goes in is written beside what must come out.

Segments have 1000 bytes; sequence numbers are counted in segments, so that 3 is the fourth one.
"""

import math

import numpy as np
import pytest

from ackclock import Sender

MSS = 1000
WINDOW = 64 * MSS


class Connection:
    """A sender and what it has put on the wire."""

    def __init__(self, sender: str, initial_window: int = 1, **options) -> None:
        self.tcp = Sender(sender, mss=MSS, initial_window=initial_window * MSS, max_window=WINDOW, **options)
        self.now = 0.0

    def sent(self) -> list[int]:
        """Numbers of the segments that go out now; a retransmission is written as its bitwise complement."""
        segments = self.tcp.poll(self.now)
        assert {segment.len for segment in segments} <= {MSS}
        return [~(s.seq // MSS) if s.retransmission else s.seq // MSS for s in segments]

    def ack(self, at: float, number: int, *sack: tuple[int, int], window: int = WINDOW) -> list[int]:
        """Take an ACK for everything before segment `number` and give what it calls forth."""
        self.now = at
        blocks = [(left * MSS, right * MSS) for left, right in sack]
        self.tcp.on_ack(at, number * MSS, window, sack=blocks)
        return self.sent()

    def expire(self) -> list[int]:
        """Wait for the timer and give what it calls forth."""
        deadline = self.tcp.timeout()
        assert deadline is not None
        assert deadline > self.now
        self.now = deadline
        return self.sent()

    @property
    def window(self) -> float:
        return self.tcp.cwnd / MSS


def test_slow_start_doubles_every_round_trip():
    tcp = Connection("reno")
    assert tcp.sent() == [0]
    assert tcp.sent() == []
    assert tcp.ack(0.1, 1) == [1, 2]
    assert tcp.tcp.srtt == pytest.approx(0.1)
    assert tcp.ack(0.2, 2) == [3, 4]
    assert tcp.ack(0.2, 3) == [5, 6]
    assert tcp.window == 4
    assert tcp.tcp.flight == 4 * MSS


def test_the_receivers_window_holds_the_sender():
    tcp = Connection("reno", initial_window=8)
    assert tcp.sent() == list(range(8))
    # Acknowledged 4, room for 4: exactly what is in flight.
    assert tcp.ack(0.1, 4, window=4 * MSS) == []
    assert tcp.ack(0.1, 4, window=6 * MSS) == [8, 9]


def test_the_third_duplicate_calls_forth_the_segment_and_halves_the_window():
    tcp = Connection("reno", initial_window=8)
    assert tcp.sent() == list(range(8))
    assert tcp.ack(0.10, 0) == []
    assert tcp.ack(0.11, 0) == []
    assert tcp.ack(0.12, 0) == [~0]
    assert tcp.tcp.ssthresh == 4 * MSS
    # RFC 5681 3.2: half of 8, told without its inflation by the 3 duplicates; each further one inflates by a segment,
    # and the ninth segment goes out at 4 + 5.
    assert tcp.window == 4
    assert tcp.ack(0.13, 0) == []
    assert tcp.ack(0.14, 0) == [8]
    # Deflated to 4, and a quarter for the ACK itself; segment 8 is in flight.
    assert tcp.ack(0.2, 8) == [9, 10, 11]
    assert tcp.window == 4.25


def test_reno_leaves_recovery_at_a_partial_ack():
    tcp = Connection("reno", initial_window=8)
    tcp.sent()
    for i in range(3):
        tcp.ack(0.10 + i / 100, 0)
    # 0 and 2 were lost: the ACK moves to 2 only, the window is 4 + 1/4 and 6 are in flight; nothing is retransmitted.
    assert tcp.ack(0.2, 2) == []
    assert tcp.window == 4.25
    # The duplicates begin anew and halve it once more: two losses, two halvings (CR02 figure 5a).
    assert [tcp.ack(0.3 + i / 100, 2) for i in range(3)] == [[], [], [~2]]
    assert tcp.tcp.ssthresh == 2 * MSS


def test_newreno_retransmits_the_next_hole_at_a_partial_ack():
    tcp = Connection("newreno", initial_window=8)
    tcp.sent()
    for i in range(3):
        last = tcp.ack(0.10 + i / 100, 0)
    assert last == [~0]
    assert ~2 in tcp.ack(0.2, 2)
    assert tcp.tcp.ssthresh == 4 * MSS  # halved once for both
    # RFC 6582 3.2 step 3 (1): min(ssthresh, max(in flight, 1) + 1); nothing is in flight any more.
    assert tcp.ack(0.3, 8) == [8, 9]
    assert tcp.window == 2


def test_sack_retransmits_the_holes_and_nothing_else():
    tcp = Connection("sack", initial_window=8)
    assert tcp.sent() == list(range(8))
    wire = tcp.ack(0.10, 0, (1, 2)) + tcp.ack(0.11, 0, (3, 4), (1, 2)) + tcp.ack(0.12, 0, (3, 5), (1, 2))
    wire += tcp.ack(0.13, 0, (3, 6), (1, 2)) + tcp.ack(0.14, 0, (3, 7), (1, 2)) + tcp.ack(0.15, 0, (3, 8), (1, 2))
    assert [number for number in wire if number < 0] == [~0, ~2]


def test_the_timer_backs_off_and_a_new_sample_ends_it():
    tcp = Connection("reno", initial_window=2)
    assert tcp.sent() == [0, 1]
    # RFC 6298 (2.1): 1 s before the first sample; (5.5): doubled at each expiry.
    waits = []
    for _ in range(4):
        before = tcp.now
        assert tcp.expire() == [~0]
        waits.append(tcp.now - before)
        assert tcp.window == 1
    assert waits == pytest.approx([1, 2, 4, 8])
    assert tcp.tcp.ssthresh == 2 * MSS
    # Karn: the ACK of a retransmitted segment is no sample, and the backoff stays.
    assert tcp.tcp.srtt is None
    tcp.ack(tcp.now + 0.1, 2)
    assert tcp.tcp.srtt is None
    assert tcp.tcp.rto == pytest.approx(16)
    tcp.ack(tcp.now + 0.1, 3)
    # (2.2): srtt R, rttvar R/2, so rto = R + 4 R/2 = 0.3 s, rounded up to the least, 1 s.
    assert tcp.tcp.srtt == pytest.approx(0.1)
    assert tcp.tcp.rto == pytest.approx(1)


def test_what_was_lost_is_sent_again_after_a_timeout():
    tcp = Connection("reno", initial_window=4)
    assert tcp.sent() == [0, 1, 2, 3]
    assert tcp.expire() == [~0]
    assert tcp.ack(tcp.now + 0.1, 1) == [~1, ~2]
    assert tcp.ack(tcp.now + 0.1, 4)[0] == 4


def test_an_idle_sender_without_data_in_flight_has_no_timer():
    assert Connection("reno").tcp.timeout() in (None, 0.0)


def test_sequence_numbers_wrap():
    sender = Sender("reno", mss=MSS, initial_window=4 * MSS, max_window=WINDOW, initial_seq=2**32 - 1500)
    assert [s.seq for s in sender.poll(0.0)] == [2**32 - 1500, 2**32 - 500, 500, 1500]
    sender.on_ack(0.1, 500, WINDOW)
    assert sender.flight == 2 * MSS


def test_an_unknown_sender_is_a_value_error_that_names_the_known():
    with pytest.raises(ValueError, match="newreno"):
        Sender("rhino", mss=MSS)


HUGE = 10**400


@pytest.mark.parametrize("value", [-1, 2**40, HUGE])
@pytest.mark.parametrize(
    ("argument", "least", "most"),
    [
        ("mss", 1, 65535 - 40),  # headers without options beside it in the largest packet
        ("max_window", 1, 2**30),
        ("initial_window", 1, 2**30),
        ("initial_seq", 0, 2**32 - 1),
    ],
)
def test_an_argument_out_of_range_is_named(argument, least, most, value):
    with pytest.raises(ValueError, match=f"^{argument}: {value} is not a whole number from {least} to {most}$"):
        Sender("reno", **{"mss": MSS, argument: value})


@pytest.mark.parametrize("argument", ["max_window", "initial_window"])
def test_the_largest_window_that_is_allowed_is_taken(argument):
    assert Sender("reno", mss=65535 - 40, **{argument: 2**30}).flight == 0


@pytest.mark.parametrize("value", [1.5, "a"])
def test_an_argument_that_is_no_whole_number_is_named(value):
    with pytest.raises(TypeError, match=f"^mss: {value} is not a whole number from 1 to "):
        Sender("reno", mss=value)
    with pytest.raises(TypeError, match=r"^sender: 5 is neither a name nor a mapping"):
        Sender(5, mss=MSS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"now": -1.0}, "^now: -1.0 is not between 0 and 9e6 seconds"),
        ({"now": HUGE}, "^now: 1000.* is not between 0 and 9e6 seconds"),
        ({"ack": -1}, "^ack: -1 is not a whole number from 0 to 4294967295"),
        ({"ack": 2**32}, "^ack: 4294967296 is not a whole number"),
        ({"window": -1}, "^window: -1 is not a whole number"),
        ({"ts": 2**32}, "^ts: 4294967296 is not a whole number"),
        ({"sack": [(0, 1), (-1, 0)]}, "^sack: -1 is not a whole number"),
        ({"sack": [(0, 1, 2)]}, r"^sack: \(0, 1, 2\) is not a pair of edges \(left, right\)"),
        ({"sack": [(0, 1)] * 9}, "^sack: 9 blocks are more than "),
    ],
)
def test_an_ack_out_of_range_is_named_and_changes_nothing(arguments, message):
    sender = Sender("reno", mss=MSS, max_window=WINDOW)
    assert len(sender.poll(0.0)) == 1
    with pytest.raises(ValueError, match=message):
        sender.on_ack(**{"now": 0.1, "ack": MSS, "window": WINDOW, **arguments})
    assert sender.flight == MSS


def test_a_poll_at_no_instant_is_named():
    with pytest.raises(ValueError, match=r"^now: nan is not between 0 and 9e6 seconds"):
        Sender("reno", mss=MSS).poll(math.nan)


def test_numbers_and_arrays_of_numpy_are_taken():
    sender = Sender("reno", mss=np.int64(MSS), max_window=np.uint32(WINDOW), initial_window=np.int32(4 * MSS))
    assert len(sender.poll(np.float64(0))) == 4
    sender.on_ack(np.float32(0.5), np.uint32(0), np.int64(WINDOW), sack=np.array([[MSS, 2 * MSS]]), ts=None)
    assert sender.flight == 4 * MSS


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rto": {"min": 2**70}}, ValueError, r"^rto\.min: 1180591620717411303424 is not a whole number from "),
        ({"rto": {"min": math.nan}}, ValueError, r"^rto\.min: nan is not a finite number"),
        ({"rto": {"min": {1}}}, TypeError, r"^rto\.min: \{1\} cannot be used in a scenario"),
        ({"rto": {"min": np.longdouble(1)}}, TypeError, r"^rto\.min: 1\.0 cannot be used in a scenario"),
        ({"rto": {3: 1}}, TypeError, r"^rto\.3: a key must be text"),
        ({"initial_ssthresh": np.int64(-5)}, ValueError, "-5"),
    ],
)
def test_an_option_that_no_sender_has_is_named(options, error, message):
    with pytest.raises(error, match=message):
        Sender("reno", mss=MSS, **options)


def established(**options) -> Sender:
    """A sender of the preset `linux` whose peer, with segments of 1000 bytes and SACK, has opened the connection."""
    sender = Sender("cubic", preset="linux", initial_seq=1, **options)
    assert sender.timeout() is None
    assert sender.poll(0.0) == []
    sender.on_syn(0.0, 65535, mss=1000, window_scale=7, sack_permitted=True)
    (answer,) = sender.poll(0.0)
    assert (answer.seq, answer.flags, answer.ack, answer.len) == (0, "S.", 1, 0)
    # 1500 bytes less 40 of headers (RFC 6691)
    assert (answer.mss, answer.sack_permitted, answer.window_scale, answer.timestamp) == (1460, True, 0, None)
    sender.on_ack(0.1, 1, 65408)
    return sender


def test_a_preset_waits_for_its_peer_and_sends_what_is_written():
    sender = established()
    assert sender.poll(0.1) == []
    sender.write(25_000)
    assert [s.seq for s in sender.poll(0.1)] == [1 + 1000 * i for i in range(10)]
    info = sender.info()
    assert (info["tcpi_snd_cwnd"], info["tcpi_unacked"], info["tcpi_snd_mss"]) == (10, 10, 1000)
    assert (info["tcpi_rtt"], info["tcpi_notsent_bytes"]) == (100_000, 15_000)
    sender.on_ack(0.2, 10_001, 65408)
    assert len(sender.poll(0.2)) == 15
    assert sender.info()["tcpi_bytes_acked"] == 10_000


def test_a_connection_is_closed_both_ways():
    sender = established()
    sender.write(1000)
    sender.close()
    (last,) = sender.poll(0.1)
    assert (last.seq, last.len, last.flags) == (1, 1000, "FP.")
    with pytest.raises(ValueError, match=r"^the connection was closed"):
        sender.write(1)
    sender.on_fin(0.2, 1002, 65408)
    (answer,) = sender.poll(0.2)
    assert (answer.seq, answer.len, answer.ack) == (1002, 0, 2)
    assert sender.info()["tcpi_state"] == 7  # TCP_CLOSE
    assert sender.timeout() is None


def test_a_sender_opens_the_connection_itself():
    sender = Sender("newreno", mss=MSS, initial_window=2 * MSS, handshake="on", timestamps="on", initial_seq=1)
    sender.connect(0.5)
    (syn,) = sender.poll(0.5)
    assert (syn.seq, syn.flags, syn.ack, syn.retransmission) == (0, "S", None, False)
    assert (syn.timestamp, syn.timestamp_echo) == (500, 0)
    # RFC 6298 (2.1): nothing came back within a second.
    assert sender.timeout() == pytest.approx(1.5)
    (again,) = sender.poll(1.5)
    assert (again.flags, again.retransmission) == ("S", True)
    sender.on_syn(1.6, 60_000, seq=7, ack=1, mss=500, ts=1500)
    first, data = sender.poll(1.6)
    assert (first.flags, first.seq, first.ack, first.len) == (".", 1, 8, 0)
    # RFC 5681 3.1: one segment after a lost SYN, of the 500 bytes that the peer takes; without `write` data is endless.
    assert (data.seq, data.len) == (1, 500)


def test_the_first_write_ends_endless_data():
    sender = Sender("reno", mss=MSS, initial_window=8 * MSS)
    sender.write(2500)
    assert [s.len for s in sender.poll(0.0)] == [1000, 1000, 500]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Sender("reno"), TypeError, "^mss: is missing, and no preset says it"),
        (lambda: Sender("reno", preset="windows"), ValueError, "unknown preset `windows`; known are cr02"),
        (lambda: Sender("reno", mss=MSS).write(-1), ValueError, "^bytes: -1 is not a whole number from 0"),
        (
            lambda: Sender("reno", mss=MSS).on_syn(0.0, 65536),
            ValueError,
            "^window: 65536 is not a whole number from 0 to 65535",
        ),
        (
            lambda: Sender("reno", mss=MSS).on_syn(0.0, 1, window_scale=15),
            ValueError,
            "^window_scale: 15 is not a whole number",
        ),
        (lambda: Sender("reno", mss=MSS).on_fin(0.0, -1, 1), ValueError, "^ack: -1 is not a whole number"),
    ],
)
def test_what_a_connection_cannot_take_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
