"""Regulators and congestion controls written in Python, in simulations."""

import json
from typing import ClassVar

import pytest

import ackclock
from ackclock import _core, classes

SCENARIO = {
    "version": 1,
    "preset": "linux",
    "duration": "10s",
    "path": {"delay": "20ms"},
    "edge": {"buffer": "30p", "down": {"kind": "constant", "rate": "2Mbit/s", "delay": "30ms"}},
    "flow": [{"sender": "cubic"}],
}


@ackclock.regulator("test-pass")
class Pass(ackclock.Regulator):
    """Passes every ACK."""

    def on_ack(self, now, ack, queue):
        return ack


@ackclock.regulator("test-window")
class Window(ackclock.Regulator):
    """Offers a constant window."""

    packets: int = 4
    scaled: float = 1.0

    def on_ack(self, now, ack, queue):
        ack.advertise(int(1448 * self.packets * self.scaled))
        return ack


@ackclock.regulator("test-pacer")
class Pacer(ackclock.Regulator):
    """Sends one held ACK every 10 ms."""

    def start(self, flow, user):
        self.acks = []

    def on_ack(self, now, ack, queue):
        self.acks.append(ack)
        self.wake = self.wake or now + 0.01

    def on_timer(self, now, queue):
        self.send(self.acks.pop(0))
        self.wake = now + 0.01 if self.acks else None


@ackclock.regulator("test-drop", scope="queue")
class Drop(ackclock.Regulator):
    """Keeps the queue short by dropping data, and counts what it sees."""

    seen: ClassVar[dict[str, int]] = {}

    def on_data(self, now, packet, queue):
        self.count("data")
        return "drop" if queue.waiting_packets >= 5 else None

    def on_queued(self, now, packet, queue):
        self.count("queued")

    def on_departed(self, now, packet, queue):
        self.count("departed")

    def on_idle(self, now, queue):
        self.count("idle")

    def count(self, what):
        self.seen[what] = self.seen.get(what, 0) + 1


def run(regulator, **more):
    return ackclock.run(SCENARIO, set={"edge.regulator": regulator, **more})


def result(regulator):
    """Result without the names of the regulator and the counters of the engine."""
    found = run(regulator).objects[0]
    for flow in found["flows"]:
        del flow["regulator"]
    return {key: value for key, value in found.items() if key not in ["engine", "provenance"]}


def test_a_class_that_passes_acks_changes_nothing():
    assert result("test-pass") == result("none")


def test_a_class_that_overrides_nothing_changes_nothing():
    @ackclock.regulator("test-nothing")
    class Nothing(ackclock.Regulator):
        pass

    assert result("test-nothing") == result("none")


def test_an_advertised_window_limits_the_queue_and_its_keys_are_set_in_the_scenario():
    # A packet takes 6 ms.
    queues = [
        run(regulator).runs["bottleneck.queue_ms.p95"][0] / 6
        for regulator in ["none", "test-window", {"kind": "test-window", "packets": 12, "scaled": 2}]
    ]
    assert queues[0] > 24
    assert queues[1] <= 4
    assert 4 < queues[2] <= 24


def test_held_acks_are_paced_and_all_come_out():
    found = run("test-pacer").runs
    assert found["bottleneck.utilisation"][0] > 0.5
    assert result("test-pacer")["flows"] != result("none")["flows"]


def test_data_is_dropped_and_the_queue_is_observed():
    Drop.seen.clear()
    found = run("test-drop").runs
    assert found["bottleneck.queue_ms.p95"][0] < 6 * 6
    assert Drop.seen["data"] > Drop.seen["queued"] >= Drop.seen["departed"] > 0
    assert Drop.seen["idle"] > 0


@pytest.mark.parametrize("made", [Pass, Window, Pacer, Drop])
def test_the_laws_hold(made):
    ackclock.check(made, scenarios=10)


def test_a_class_that_acts_on_extra_wakes_or_draws_by_itself_is_found():
    drawn = iter(range(1, 10**9))

    @ackclock.regulator("test-drifts")
    class Drifts(ackclock.Regulator):
        def on_ack(self, now, ack, queue):
            ack.advertise(1448 * (2 + next(drawn) % 977 % 7))
            return ack

    with pytest.raises(AssertionError, match="two runs of this scenario differ"):
        ackclock.check(Drifts, scenarios=20)


def test_a_sweep_runs_in_several_processes_with_the_same_results(tmp_path):
    sets = {"edge.regulator": ["test-window", {"kind": "test-window", "packets": 8}]}
    out = tmp_path / "rows.jsonl"
    found = ackclock.sweep(SCENARIO, set=sets, runs=2, out=out)
    assert len(found.runs) == 4
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    alone = run("test-window", runs=2).objects
    assert [line["flows"] for line in lines[:2]] == [each["flows"] for each in alone]
    # Repeated: all lines are there already.
    assert ackclock.sweep(SCENARIO, set=sets, runs=2, out=out).objects == found.objects


def test_lines_of_another_version_of_a_class_are_not_reused(tmp_path):
    out = tmp_path / "rows.jsonl"
    classes.ensure({"test-versions": classes.Registered(Pass, "flow", "1")})
    ackclock.sweep(SCENARIO, set={"edge.regulator": "test-versions"}, runs=2, out=out)
    classes.ensure({"test-versions": classes.Registered(Pass, "flow", "2")})
    with pytest.raises(ValueError, match=r"rows\.jsonl"):
        ackclock.sweep(SCENARIO, set={"edge.regulator": "test-versions"}, runs=2, out=out)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kind": "test-window", "packet": 1}, "edge.regulator.packet: unknown field `packet`"),
        ({"kind": "test-window", "packets": "4"}, '"4" is not of the type integer'),
        ({"kind": "test-pass", "x": 1}, "edge.regulator.x: unknown field `x`, expected no keys"),
        ("test-unknown", "unknown regulator `test-unknown`; known are none, "),
    ],
)
def test_wrong_keys_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        run(wrong)


def test_names_and_classes_are_checked():
    with pytest.raises(ValueError, match="`wrd` is the name of a built-in regulator"):
        ackclock.regulator("wrd")(Pass)
    with pytest.raises(ValueError, match=r"test-pass: is the name of test_classes\.Pass already"):
        ackclock.regulator("test-pass")(Pacer)
    with pytest.raises(TypeError, match="is not a class that derives from"):
        ackclock.regulator("test-int")(int)
    with pytest.raises(ValueError, match='scope: "edge" is none of flow, user, queue'):
        ackclock.regulator("test-scope", scope="edge")(Pass)

    class Keys(ackclock.Regulator):
        wrong: tuple = ()

    with pytest.raises(TypeError, match="a key needs a default of type"):
        ackclock.regulator("test-keys")(Keys)
    with pytest.raises(ValueError, match="is not registered"):
        ackclock.check(Keys)


def test_a_comparison_of_nothing_leaves_classes_out():
    found = ackclock.compare(SCENARIO, duration=0.1)
    assert {"none", "wrd"} <= set(found.runs["edge.regulator"])
    assert not {"test-pass", "test-window"} & set(found.runs["edge.regulator"])


def test_registered_classes_are_listed_with_their_keys():
    listed = {one["name"]: one for one in json.loads(_core.list_components())["regulators"]}
    assert listed["test-window"]["description"] == "Offers a constant window."
    assert listed["test-window"]["schema"]["properties"]["packets"]["type"] == "integer"


class Returns(ackclock.Regulator):
    """Misbehaves as `what` says."""

    what: str = ""

    def on_ack(self, now, ack, queue):
        if now < 2:
            return ack
        match self.what:
            case "raises":
                raise KeyError("lost")
            case "number":
                return 7
            case "twice":
                self.send(ack)
                return ack
            case "wake":
                self.wake = float("nan")
        self.wake = now
        return ack

    def on_timer(self, now, queue):
        self.wake = now


ackclock.regulator("test-returns")(Returns)


@pytest.mark.parametrize(
    ("what", "kind", "message"),
    [
        ("raises", KeyError, "lost"),
        ("number", TypeError, "on_ack returned 7, not None or an ACK"),
        ("twice", ValueError, "is not held: it was sent before"),
        ("wake", ValueError, "wake: NaN is not None or a time"),
        ("stands still", ValueError, "so time would stand still"),
    ],
)
def test_an_exception_ends_the_run_and_says_where(what, kind, message):
    with pytest.raises(kind, match=message) as raised:
        run({"kind": "test-returns", "what": what})
    method = "on_timer" if what == "stands still" else "on_ack"
    where, which = raised.value.__notes__
    assert where.startswith(f"in test-returns.{method} at 2.")
    assert which == "in run 0 of <python>"


def test_a_key_of_the_base_class_cannot_be_set_to_nonsense():
    with pytest.raises(ValueError, match="wake: -1 is not None"):
        ackclock.Regulator().wake = -1.0


@ackclock.congestion_control("test-aimd")
class Aimd(ackclock.CongestionControl):
    """Reno's additive increase and multiplicative decrease."""

    factor: float = 0.5

    def on_ack(self, sample):
        if sample.phase != "fast-recovery" and sample.window_limited:
            slow = self.window < self.ssthresh
            self.window += min(sample.acked, self.mss) if slow else self.mss * sample.acked / self.window

    def on_congestion(self, event):
        self.ssthresh = max(event.flight * self.factor, 2 * self.mss)
        self.window = self.mss if event.cause == "timeout" else self.ssthresh


@ackclock.congestion_control("test-paced")
class Paced(ackclock.CongestionControl):
    """Paces at a constant rate, bit/s, whatever happens."""

    bps: int = 1_000_000

    def start(self, initial_window):
        self.window = 1000 * self.mss
        self.pacing_rate = self.bps


def sent(sender, **more):
    scenario = {**SCENARIO, "flow": [{"sender": sender}]}
    return ackclock.run(scenario, set=more).flows


def test_a_congestion_control_in_python_fills_the_link_like_reno():
    ours, reno = (sent(sender, duration="30s") for sender in ["test-aimd", "sack"])
    assert ours["goodput_bps"][0] == pytest.approx(reno["goodput_bps"][0], rel=0.02)
    assert ours["timeouts"][0] == reno["timeouts"][0] == 0
    assert ours["fast_retransmits"][0] > 0


def test_a_pacing_rate_and_a_key_are_followed():
    assert sent("test-paced")["goodput_bps"][0] == pytest.approx(1e6 * 1448 / 1500, rel=0.06)
    assert sent({"kind": "test-paced", "bps": 500_000})["goodput_bps"][0] == pytest.approx(5e5 * 1448 / 1500, rel=0.06)


class CountsMarks(Aimd):
    """Notes what it hears of marks; as many marks do not reduce the window twice."""

    counts_marks = True
    heard: ClassVar[dict[str, int]] = {"marked": 0, "ecn": 0}

    def on_ack(self, sample):
        self.heard["marked"] += sample.marked
        self.window = max(self.window - sample.marked / 2, 2 * self.mss)
        super().on_ack(sample)

    def on_congestion(self, event):
        self.heard["ecn"] += event.cause == "ecn"
        super().on_congestion(event)


class HearsReductions(CountsMarks):
    counts_marks = False
    heard: ClassVar[dict[str, int]] = {"marked": 0, "ecn": 0}


def test_a_class_that_counts_marks_is_not_told_to_reduce_for_them():
    codel = {"edge.queue": {"kind": "codel", "ecn": True}, "duration": "20s"}
    for made in [CountsMarks, HearsReductions]:
        ackclock.congestion_control(f"test-{made.__name__.lower()}")(made)
        sent({"kind": f"test-{made.__name__.lower()}", "ecn": "accurate"}, **codel)
    assert CountsMarks.heard["marked"] > 0
    assert CountsMarks.heard["ecn"] == 0
    assert HearsReductions.heard["ecn"] > 0


def test_the_options_of_senders_are_keys_too():
    few, many = (sent({"kind": "test-aimd", "timestamps": stamps})["segments_sent"][0] for stamps in ["on", "off"])
    assert few != many
    with pytest.raises(ValueError, match=r"flow.0.sender.facter: unknown field .*the class has `factor`"):
        sent({"kind": "test-aimd", "facter": 0.7})
    with pytest.raises(ValueError, match="`bbr` is the name of a built-in sender"):
        ackclock.congestion_control("bbr")(Aimd)

    class Option(ackclock.CongestionControl):
        dup_thresh: int = 3

    with pytest.raises(ValueError, match="dup_thresh is an option of all senders"):
        ackclock.congestion_control("test-option")(Option)


@pytest.mark.parametrize("made", [Aimd, Paced])
def test_the_laws_hold_for_congestion_controls(made):
    ackclock.check(made, scenarios=10)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"window": float("nan")}, "window: NaN is not a number of bytes"),
        ({"ssthresh": -1.0}, "ssthresh: -1 is not a number of bytes"),
        ({"pacing_rate": 0.0}, "pacing_rate: 0 is not None or above 0"),
    ],
)
def test_nonsense_in_a_window_ends_the_run(wrong, message):
    @ackclock.congestion_control("test-nonsense")
    class Nonsense(ackclock.CongestionControl):
        def on_ack(self, sample):
            for key, value in wrong.items():
                setattr(self, key, value)

    with pytest.raises(ValueError, match=message) as raised:
        sent("test-nonsense")
    assert raised.value.__notes__[0].startswith("in test-nonsense.on_ack at ")


def test_a_window_of_zero_counts_as_one_segment():
    @ackclock.congestion_control("test-zero")
    class Zero(ackclock.CongestionControl):
        def start(self, initial_window):
            self.window = 0

    assert sent("test-zero")["goodput_bps"][0] > 0
