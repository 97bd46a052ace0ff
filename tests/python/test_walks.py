"""Whole walks of four kinds of user, as scripts: what they do one after the other, and what they see."""

import fnmatch
import os
import shutil
import subprocess
from pathlib import Path

import pytest

WALKS = Path(__file__).parent.parent / "walks"
SCENARIOS = WALKS.parent.parent / "scenarios"


def agrees(expected: list[str], seen: list[str]) -> bool:
    """Whether the lines agree; a line `...` stands for any lines, and `...` in a line for any text."""
    if not expected:
        return not seen
    if expected[0] == "...":
        return any(agrees(expected[1:], seen[skipped:]) for skipped in range(len(seen) + 1))
    pattern = expected[0].replace("[", "[[]").replace("*", "[*]").replace("?", "[?]").replace("...", "*")
    return bool(seen) and fnmatch.fnmatchcase(seen[0], pattern) and agrees(expected[1:], seen[1:])


def test_lines_agree_only_with_their_pattern():
    assert agrees(["a ... z", "...", "[x]*"], ["a b z", "1", "2", "[x]*"])
    assert not agrees(["a"], ["a", "b"])
    assert not agrees(["a", "...", "c"], ["a", "b"])
    assert not agrees(["[x]"], ["x"])


@pytest.mark.parametrize("walk", ["student", "researcher", "operator", "engineer"])
def test_a_walk_shows_what_it_promises(walk, tmp_path):
    if walk == "engineer":
        if shutil.which("curl") is None:
            pytest.skip("curl is not installed")
        checked = subprocess.run(["ackclock", "link", "--check"], capture_output=True, text=True)
        if checked.returncode != 0:
            pytest.skip(f"no links here: {checked.stdout.splitlines()[-1]}")
    walked = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", str(WALKS / f"{walk}.sh")],
        cwd=tmp_path,
        env={**os.environ, "SCENARIOS": str(SCENARIOS)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert walked.returncode == 0, walked.stderr
    expected = (WALKS / f"{walk}.expected").read_text().splitlines()
    assert agrees(expected, walked.stdout.splitlines()), walked.stdout
