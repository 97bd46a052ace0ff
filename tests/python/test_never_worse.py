"""The random scenarios that regulators are judged on."""

import tomllib
from collections import Counter

import chance
import pytest

import ackclock

NUMBERS = range(120)


def drawn() -> list[dict]:
    return [tomllib.loads(chance.scenario(chance.DESIGN, number)) for number in NUMBERS]


def test_a_scenario_is_decided_by_its_set_and_number():
    assert chance.scenario(chance.DESIGN, 3) == chance.scenario(chance.DESIGN, 3)
    names = {chance.scenario(name, number) for name in chance.SETS.values() for number in NUMBERS}
    assert len(names) == len(chance.SETS) * len(NUMBERS)


def test_the_scenarios_cover_every_sender_link_and_loss():
    scenarios = drawn()
    senders = Counter(flow["sender"] for one in scenarios for flow in one["flow"])
    assert set(senders) == set(chance.SENDERS)
    kinds = Counter(one["edge"]["down"]["kind"] for one in scenarios)
    assert set(kinds) == {"constant", "variable", "trace"}
    flows = [sum(flow["count"] for flow in one["flow"]) for one in scenarios]
    assert min(flows) == 1
    assert 40 <= max(flows) <= 50
    assert {type(one["edge"]["down"].get("loss")) for one in scenarios} == {type(None), float, dict}
    assert {one["path"]["loss"] > 0 for one in scenarios} == {True, False}


@pytest.mark.parametrize("number", range(0, 40, 4))
def test_every_scenario_is_one_that_runs(number):
    run = ackclock.run(chance.scenario(chance.DESIGN, number), set={"duration": "1s"})
    assert run.objects
