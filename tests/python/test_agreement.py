"""What is said of how well the worlds agree."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "benches" / "agreement.py"))
Outcome, Pair, summary = SCRIPT["Outcome"], SCRIPT["Pair"], SCRIPT["summary"]


def pair(sender: str, kernel: list[float], ours: list[float]) -> list[str]:
    """A row with goodput in kbit/s over a link that can carry 1000."""
    runs = [[Outcome(rate * 1e3, 10, 20, 1) for rate in world] for world in (kernel, ours)]
    return Pair(("constant", "1bdp", "none"), sender, *runs, 1e6).words()


def test_the_summary_says_bias_range_and_what_is_left_where_links_are_full():
    rows = [
        # Full in both worlds, since 950 of 1000 are; 1 % more, above 950-960.
        pair("sack", [950, 960], [964.55]),
        # Not full; 2 % less, below 790-810.
        pair("cubic", [790, 810, 800], [784, 784]),
        # Full in the kernel's world alone; 4 % less than 960, and below it.
        pair("bbr", [960], [921.6]),
        # Not full and equal.
        pair("reno", [500], [500]),
    ]
    lines = summary(rows).splitlines()
    # The middle of 0, 1, 2 and 4 is 1.5, of the three that are not full 2.
    assert lines[0] == (
        "- kbit/s: median 1.5 %, worst 4.0 % (constant 1bdp none bbr); ours is more in 1 of 4 and less in 2"
    )
    assert "in the 3 of 4 where the link is not full in both worlds (95 %): median 2.0 %, worst 4.0 %" in lines[4]
    # 964.55 is above 960, 784 below 790, 921.6 below 960.
    assert lines[5] == "- goodput outside the range of the kernel's own runs in 3 of 4, above it in 1"


def test_the_page_says_of_its_table_what_the_script_says():
    page = (ROOT / "docs" / "discussion" / "agreement.md").read_text()
    rows = list(SCRIPT["rows_of"](page))
    assert len(rows) == 48
    assert summary(rows) in page


def test_a_table_is_read_from_a_page_as_it_was_written():
    row = pair("sack", [950, 960], [964.55])
    assert list(SCRIPT["rows_of"](f"| {' | '.join(SCRIPT['HEADINGS'])} |\n| --- |\n| {' | '.join(row)} |\n")) == [row]
