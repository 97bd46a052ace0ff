"""Each line of the pages for people who come from other tools is one that ackclock takes."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "docs" / "how-to" / "from").glob("*.md"))
BASE = """
version = 1
duration = "1s"
[edge]
[[flow]]
"""


def lines(page: Path) -> list[str]:
    """The right column of the page's table."""
    rows = re.findall(r"^\| .* \| `([^|]+)` \|$", page.read_text(), re.M)
    return [row for row in rows if row != "---"]


CASES = [pytest.param(line, id=f"{page.stem}: {line}") for page in PAGES for line in lines(page)]


@pytest.fixture
def folder(tmp_path):
    for name in ["up.trace", "down.trace"]:
        (tmp_path / name).write_text("".join(f"{at}\n" for at in range(1, 2000, 3)))
    return tmp_path


def test_every_page_is_read_and_short():
    assert [page.stem for page in PAGES] == ["mahimahi", "netem", "ns-2", "ns-3", "toxiproxy"]
    assert all(len(lines(page)) >= 5 for page in PAGES)
    assert all(len(page.read_text().split()) <= 420 for page in PAGES)


@pytest.mark.parametrize("line", CASES)
def test_the_line_is_taken(line, folder):
    if line.startswith("ackclock link set "):
        # A link that runs on this machine is nobody's to change: the key and its value are those of a scenario.
        (folder / "case.toml").write_text(BASE)
        change = line.removeprefix("ackclock link set ")
        said = run(folder, ["ackclock", "check", "case.toml", "--set", f"edge.{change}"])
        assert said.returncode == 0, said.stderr
    elif line.startswith("ackclock link"):
        live_only = {"--once", "--downlink-log=log"}
        words = [word for word in shlex.split(line) if word not in live_only]
        if "--forward" in words:
            at = words.index("--forward")
            del words[at : at + 2]
        said = run(folder, [*words, "--generate"])
        assert said.returncode == 0, said.stderr
        assert "[edge.down]" in said.stdout
        (folder / "case.toml").write_text(said.stdout)
        assert run(folder, ["ackclock", "check", "case.toml"]).returncode == 0
    else:
        key = line if line.startswith("edge.") else f"flow.0.{line}"
        (folder / "case.toml").write_text(BASE)
        key, _, value = key.partition(" = ")
        said = run(folder, ["ackclock", "check", "case.toml", "--set", f"{key}={value}"])
        assert said.returncode == 0, said.stderr


def run(folder: Path, words: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
