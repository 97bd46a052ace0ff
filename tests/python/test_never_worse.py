"""The random scenarios that regulators are judged on."""

import json
import sys
import tomllib
from collections import Counter

import chance
import never_worse
import pytest

import ackclock

NUMBERS = range(120)


def drawn() -> list[dict]:
    return [tomllib.loads(chance.scenario(chance.DESIGN, number, 0)) for number in NUMBERS]


def test_a_scenario_is_decided_by_its_set_and_number():
    assert chance.scenario(chance.DESIGN, 3, 1) == chance.scenario(chance.DESIGN, 3, 1)
    names = {chance.scenario(name, number, 0) for name in chance.SETS.values() for number in NUMBERS}
    assert len(names) == len(chance.SETS) * len(NUMBERS)


def test_runs_of_a_scenario_differ_in_when_they_begin_and_in_nothing_else():
    one, other = (tomllib.loads(chance.scenario(chance.DESIGN, 3, run)) for run in range(2))
    starts = [[flow.pop("start") for flow in run["flow"]] for run in (one, other)]
    assert starts[0] != starts[1]
    assert one == other


def test_the_scenarios_cover_every_sender_link_and_loss():
    scenarios = drawn()
    senders = Counter(flow["sender"] for one in scenarios for flow in one["flow"])
    assert set(senders) == set(chance.SENDERS)
    kinds = Counter(one["edge"]["down"]["kind"] for one in scenarios)
    assert set(kinds) == {"constant", "variable", "trace", "cell"}
    flows = [sum(flow["count"] for flow in one["flow"]) for one in scenarios]
    assert min(flows) == 1
    assert 40 <= max(flows) <= 50
    assert {type(one["edge"]["down"].get("loss")) for one in scenarios} == {type(None), float, dict}
    assert {one["path"]["loss"] > 0 for one in scenarios} == {True, False}


def test_the_scenarios_cover_the_domain_that_the_module_names():
    scenarios = drawn()
    queues = Counter(one["edge"]["queue"] for one in scenarios)
    assert set(queues) == {"drop-tail", *chance.QUEUES}
    assert 40 < queues["drop-tail"] < 80
    sizes = [int(one["flow"][0]["packet"].removesuffix("B")) for one in scenarios]
    assert 300 <= min(sizes) < 400
    assert 7000 < max(sizes) <= 9000
    assert 40 < sizes.count(1500) < 80
    constant = [one["edge"]["down"] for one in scenarios if one["edge"]["down"]["kind"] == "constant"]
    rates = [float(one["rate"].removesuffix("bit/s")) for one in constant]
    assert 16e3 <= min(rates) < 50e3
    assert max(rates) > 10e6
    # A stagger of 0 starts all flows at once, and such runs end early unless the link is slow.
    together = [one for one in scenarios if one["flow"][0].get("stagger") == "0ms"]
    assert 20 < len(together) < 60
    assert "10s" in {one["duration"] for one in together}
    trips = [2 * (ms(one["path"]["delay"]) + ms(one["edge"]["up"]["delay"])) for one in together]
    assert max(trips) > 400
    losses = [one["path"]["loss"] for one in scenarios if "bbr" in {flow["sender"] for flow in one["flow"]}]
    assert 0.01 < max(losses) <= 0.05


def ms(delay: str) -> float:
    return float(delay.removesuffix("ms"))


@pytest.mark.parametrize("number", range(0, 40, 4))
def test_every_scenario_is_one_that_runs(number):
    run = ackclock.run(chance.scenario(chance.DESIGN, number, 0), set={"duration": "1s"})
    assert run.objects


@pytest.mark.parametrize("number", range(0, 40, 8))
def test_every_scenario_with_a_box_is_one_that_runs(number):
    boxed = chance.scenario(chance.DESIGN, number, 0, boxed=True)
    behind, plain = (tomllib.loads(text)["edge"] for text in (boxed, chance.scenario(chance.DESIGN, number, 0)))
    assert behind["behind"] == plain
    if chance.has_box(chance.DESIGN, number):
        assert ackclock.run(boxed, set={"duration": "1s", "edge.regulator": never_worse.BOX_DEFAULT}).objects


def test_worse_is_an_interval_wholly_below_one_per_cent():
    none = [100.0] * 4
    # Differences of -2, -2, -2, -2 %: no spread, so all of the interval is at -2 %.
    assert never_worse.change([98.0] * 4, none) == pytest.approx((-0.02, -0.02, -0.02))
    # -1.5 % with a standard deviation of 1 % over 4 runs: t(3) = 3.182, half = 1.59 %, which reaches beyond -1 %.
    spread = [100 - 1.5 + one for one in (-1.1619, -0.3873, 0.3873, 1.1619)]
    mean, low, high = never_worse.change(spread, none)
    assert mean == pytest.approx(-0.015)
    assert high - mean == pytest.approx(0.0159, abs=1e-4)
    judged = never_worse.Judged(0, {}, {"wrs": (mean, low, high), "wrd": (-0.02, -0.02, -0.02)}, {})
    assert [judged.is_worse(label) for label in ("wrs", "wrd")] == [False, True]


def test_a_scenario_that_carries_nothing_is_not_worse():
    assert never_worse.change([0.0, 0.0], [0.0, 0.0]) == (0.0, 0.0, 0.0)


def test_a_variant_is_written_as_a_table_of_toml():
    assert tomllib.loads(f"a = {never_worse.json_as_toml({'kind': 'wrs', 'floor': True})}")["a"]["floor"] is True


def test_what_was_measured_is_not_measured_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(never_worse, "OUT", tmp_path)
    monkeypatch.setattr(never_worse, "RUNS", 2)
    monkeypatch.setattr(chance, "SECONDS", 1)
    monkeypatch.setattr(sys, "argv", ["never_worse.py", "--scenarios", "3", "--only", "wrs,wrd"])
    assert never_worse.main() == 0
    table = capsys.readouterr().out
    monkeypatch.setattr(never_worse, "runs", None)
    assert never_worse.main() == 0
    assert capsys.readouterr().out == table
    (kept,) = tmp_path.glob("wide-design/*/never-worse.json")
    assert [one["scenario"] for one in json.loads(kept.read_text())] == [0, 1, 2]
    assert {label.split(",")[0] for one in json.loads(kept.read_text()) for label in one["regulators"]} == {
        "none",
        "wrs",
        "wrd",
    }
