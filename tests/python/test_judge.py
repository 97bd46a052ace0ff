"""The judgement of `forecast`: its cases, what it keeps, and how it compares with another build."""

import argparse
import json
import sys
import tomllib
from pathlib import Path

import chance
import judge
import never_worse
import pytest

GIVEN = argparse.Namespace(random=judge.RANDOM, final=False)


def row(case: str, regulator: str, goodput: list[float], p95: float, capacity: float | None = None) -> judge.Row:
    most = None if capacity is None else [capacity] * len(goodput)
    return judge.Row("a part", case, regulator, goodput, [p95] * len(goodput), most)


def keyed(*rows: judge.Row) -> judge.Rows:
    return {(one.part, one.case, one.regulator): one for one in rows}


def test_cases_have_names_of_their_own_and_runs_of_their_own():
    cases = list(judge.cases(GIVEN))
    assert len({(one.part, one.name) for one in cases}) == len(cases)
    for part in {one.part for one in cases}:
        first = next(one for one in cases if one.part == part)
        runs = [tomllib.loads(first.scenario(run)) for run in range(first.runs)]
        assert len({json.dumps(run) for run in runs}) == first.runs


def test_every_case_that_needs_no_public_recording_was_judged_before(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ACKCLOCK_SHARED", raising=False)
    before = judge.read(judge.BEFORE)
    for case in judge.cases(GIVEN):
        for regulator in (never_worse.NONE, judge.REGULATOR):
            kept = before[case.part, case.name, regulator]
            assert len(kept.goodput_bps) == len(kept.p95_ms) == case.runs


def test_a_recording_is_full_at_its_capacity():
    # 90 of 100 packets of 1448 bytes in 2 s, of which the flow had the second half.
    full = 100 * 1448 * 8 / 2
    assert judge.share([row("one", "none", [0.9 * full], 1.0, full)]) == "90.00"
    assert judge.share([row("one", "none", [5.0], 1.0)]) == "-"


def test_a_part_says_how_often_the_regulator_is_worse_than_none_and_than_before():
    before = keyed(row("one", "forecast", [100.0, 102.0], 20.0), row("two", "forecast", [100.0, 102.0], 20.0))
    now = keyed(
        row("one", "none", [100.0, 101.0], 80.0),
        row("one", "forecast", [90.0, 91.0], 10.0),
        row("two", "none", [100.0, 101.0], 80.0),
        row("two", "forecast", [103.0, 104.0], 10.0),
    )
    cases = [judge.Case("a part", name, str) for name in ("one", "two")]
    cells = judge.table(cases, now, "forecast", before).splitlines()[2].split(" | ")
    # -9.95 and +2.99 % against none; -10.4 and +2.5 % against before (the second not for certain), at half of its p95.
    assert cells[5:10] == ["10", "1", "1", "-3.5", "-10.0"]
    assert cells[11:] == ["1", "0", "0.50 x |"]


def test_what_was_judged_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.setattr(judge, "OUT", tmp_path)
    monkeypatch.setattr(judge, "TOGETHER_S", 1)
    monkeypatch.setattr(
        sys, "argv", ["judge.py", "--part", "together", "--regulator", '{ kind = "forecast", idle = 0.05 }']
    )
    assert judge.main() == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[2].startswith("| start together, 600 ms | 12 | - | - |")
    monkeypatch.setattr(judge, "run", None)
    assert judge.main() == 0
    assert capsys.readouterr().out == printed
    (kept,) = tmp_path.glob("*.jsonl")
    assert len(judge.read(kept)) == 24


def test_the_last_judgement_has_scenarios_of_its_own():
    final = argparse.Namespace(random=3, final=True)
    parts = {one.part for one in judge.cases(final)}
    assert f"random, {chance.FINAL}" in parts
    assert f"random, {chance.DESIGN}" not in parts
