"""The cells that `make agree` draws from the name of a commit, and how they are kept."""

import json
import re
import subprocess
from pathlib import Path

import agree
import cells
import drawn
import links
import pytest
from drawn import EDGES, LINKS, RECORDINGS, WORKS, Draw

COMMITS = ["62a93670", "8fc6c885", "05f8e776"]


@pytest.fixture(autouse=True)
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of recordings that are as short as can be."""
    for recording, *_ in RECORDINGS:
        for file in filter(None, (recording.down, recording.up)):
            path = tmp_path / "traces" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            one = {"duration_ms": 1000, "bandwidth_kbps": 500, "latency_ms": 100}
            path.write_text(json.dumps([one] * 2000) if file.endswith("json") else "5\n2000000\n")
    monkeypatch.setenv("ACKCLOCK_SHARED", str(tmp_path))
    return tmp_path


def test_a_commit_draws_the_same_cells_whenever_it_is_asked():
    assert drawn.cells(COMMITS[0], 24) == drawn.cells(COMMITS[0], 24)
    # More cells change none of those before them.
    assert drawn.cells(COMMITS[0], 24)[:7] == drawn.cells(COMMITS[0], 7)
    # Kept lines name cells by commit and number: this one must not become another.
    first = ["drawn", "1392 kbit/s, 21 ms, wire 18 ms", "41p", "codel", "468 kB, 393 ms", "sack"]
    assert drawn.cells("0" * 40, 1)[0].words() == first


def test_another_commit_draws_other_cells():
    one, other = (drawn.cells(commit, 24) for commit in COMMITS[:2])
    assert not {tuple(cell.words()) for cell in one} & {tuple(cell.words()) for cell in other}


@pytest.mark.parametrize("commit", COMMITS)
def test_few_cells_cover_every_kind(commit: str):
    few = drawn.cells(commit, 14)
    assert {cell.sender for cell in few} == set(cells.SENDERS)
    assert {cell.edge for cell in few} == set(EDGES)
    assert {"bulk" if cell.files is None else cell.files.kind for cell in few} == set(WORKS)
    assert {cell.ecn for cell in few} == {"on", "off"}
    assert {cell.link.recording is None for cell in few} == {True, False}
    assert {cell.buffer.endswith("bdp") for cell in few} == {True, False}
    kinds = {re.sub(r"[\d.]+", "", cell.link.name) for cell in few if cell.link.recording is None}
    assert len(kinds) == len(set(LINKS)) - 1


def test_cards_are_dealt_once_each_in_every_round():
    dealt = [Draw("a commit", number).dealt("card", "abcde") for number in range(15)]
    rounds = [dealt[start : start + 5] for start in (0, 5, 10)]
    assert all(sorted(one) == list("abcde") for one in rounds)
    assert len({tuple(one) for one in rounds}) > 1


def test_numbers_lie_between_their_bounds_and_double_as_often_low_as_high():
    values = [Draw("a commit", number).between("rate", 100, 1600) for number in range(400)]
    assert all(100 <= value <= 1600 for value in values)
    # Half of them below 400, the middle of four doublings; the deviation is sqrt(400)/2 = 10, five of them 50.
    assert abs(sum(value < 400 for value in values) - 200) < 50


@pytest.mark.parametrize("commit", COMMITS)
def test_every_drawn_cell_is_a_scenario(commit: str, tmp_path: Path):
    check(drawn.cells(commit, 24), tmp_path)


def test_every_fixed_cell_is_a_scenario_of_its_own(tmp_path: Path):
    check(cells.CELLS, tmp_path)
    assert len(list(tmp_path.glob("*.toml"))) == len(cells.CELLS)


def check(some: list[cells.Cell], folder: Path) -> None:
    """`ackclock check` has nothing against them."""
    for cell in some:
        file = folder / f"{cell.name(folder / 'recordings')}.toml"
        file.write_text(cell.scenario(folder / "recordings"))
        checked = subprocess.run(["ackclock", "check", str(file)], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr


def test_a_recording_begins_later():
    # Chances to send at 5, 1000 and 1001 ms, twice at the last; the second second begins after 1000.
    assert links.later("5\n1000\n1001\n1001\n1500\n", 1000) == "1\n1\n500\n"
    entries = [{"duration_ms": 700, "bandwidth_kbps": 1}, {"duration_ms": 700, "bandwidth_kbps": 2}]
    assert json.loads(links.later(json.dumps(entries), 1000)) == [{"duration_ms": 400, "bandwidth_kbps": 2}]


def test_missing_recordings_are_told(shared: Path, monkeypatch: pytest.MonkeyPatch):
    link = links.plays(links.METRO)
    assert link.missing() is None
    (shared / "traces" / links.METRO.down).unlink()
    assert link.missing() == f"{shared / 'traces' / links.METRO.down} is missing"
    monkeypatch.delenv("ACKCLOCK_SHARED")
    assert link.missing() == "ACKCLOCK_SHARED, the folder of public recordings, is not set"
    assert links.CONSTANT.missing() is None


def test_our_runs_begin_around_the_kernels_and_anywhere_in_a_tick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    worlds = agree.Worlds(tmp_path, [])
    begins: list[float] = []
    monkeypatch.setattr(worlds, "simulate", lambda _job, start, _sets: begins.append(start))
    worlds.simulated(agree.Job(cells.CELLS[0], 1), {"begins_s": 2.0}, starts=20)
    assert max(abs(begin - 2.0) for begin in begins) <= agree.AROUND_S + agree.TICK_S
    assert sum(begins) / 20 == pytest.approx(2.0, abs=agree.TICK_S)
    # Each quarter of a tick has its share.
    quarters = [int(4 * (begin / agree.TICK_S % 1)) for begin in begins]
    assert all(3 <= quarters.count(quarter) <= 7 for quarter in range(4))


def test_a_cell_measured_again_by_the_same_build_takes_its_place(tmp_path: Path):
    path = tmp_path / "drawn.jsonl"
    line = {"drawn_from": "a", "number": 0, "built_from": "a", "changed_since": False, "kernel": 1}
    drawn.keep([line, {**line, "number": 1}], path)
    drawn.keep([{**line, "kernel": 2}, {**line, "built_from": "b"}], path)
    kept = [(one["number"], one["built_from"], one["kernel"]) for one in drawn.read(path)]
    assert kept == [(0, "a", 2), (1, "a", 1), (0, "b", 1)]


def test_the_part_that_is_asked_for_is_run_or_refused():
    command = ["python", str(drawn.HERE / "agree.py"), "--kinds", "web,bluk"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "bluk: allowed are bulk, web, " in refused.stderr
