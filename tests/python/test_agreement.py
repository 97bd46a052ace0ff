"""What is said of how well the worlds agree."""

import json
from pathlib import Path

import pytest
from agreement import (
    BEGIN,
    END,
    HEADINGS,
    Outcome,
    Pair,
    first_measured,
    judgement,
    line,
    markdown,
    put,
    rows_of,
    sign_test,
)

ROOT = Path(__file__).parents[2]


def pair(
    sender: str, kernel: list[float], ours: list[float], *, kind: str = "bulk", sends: str = "bulk", again: float = 1
) -> Pair:
    """Goodput in kbit/s over a link that can carry 1000; `again` is how often ours sends again, the kernel once."""
    worlds = [
        [Outcome(rate * 1e3, 10, 20, retransmits) for rate in world]
        for world, retransmits in ((kernel, 1), (ours, again))
    ]
    return Pair((kind, "constant", "1bdp", "none", sends, sender), *worlds, 1e6)


# Full in both worlds, since 950 of 1000 are; 1 % more, above 950-960.
FULL = pair("sack", [950, 960], [964.55])
# Not full; 2 % less, below 790-810.
LESS = pair("cubic", [790, 810, 800], [784, 784])
# Full in the kernel's world alone; 4 % less than 960, and below it.
HALF = pair("bbr", [960], [921.6], kind="drawn", again=1.5)
# Not full and equal.
EQUAL = pair("reno", [500], [500])


def said(*pairs: Pair) -> list[str]:
    return judgement([one.words() for one in pairs]).splitlines()


def test_goals_are_judged_over_all_cells_and_over_the_drawn_ones():
    lines = said(FULL, LESS, HALF, EQUAL)
    assert lines[0] == "| goal | all 4 | reached | the 1 drawn | reached |"
    # The middle of 0, 1, 2 and 4 is 1.5; of the drawn one alone 4.
    assert lines[2] == "| goodput apart in the median by at most 1 % | 1.5 % | no | 4.0 % | no |"
    cell = "drawn constant 1bdp none bulk bbr"
    assert lines[3] == f"| goodput apart at worst by at most 5 % | 4.0 % ({cell}) | yes | 4.0 % ({cell}) | yes |"
    # Retransmissions: three times 0 and once 50 % more.
    assert lines[5] == "| retransmissions apart in the median by at most 20 % | 0.0 % | yes | 50.0 % | no |"
    # One more and two less of three that differ: as uneven or more so is every outcome.
    assert "| 100.0 % (more in 1, less in 2 of 4) | yes | 100.0 % (more in 0, less in 1 of 1) | yes |" in lines[6]


def test_each_kind_of_cells_has_its_medians():
    lines = said(FULL, LESS, HALF, EQUAL)
    # Of the 1, 2 and 0 of bulk.
    worst = "2.0 % (bulk constant 1bdp none bulk cubic)"
    assert f"| bulk | 3 | 1.0 % | {worst} | 0.0 % | 0.0 % | 1 | 1 |" in lines
    assert "| drawn | 1 | 4.0 % | 4.0 % (drawn constant 1bdp none bulk bbr) | 0.0 % | 50.0 % | 0 | 1 |" in lines


def test_range_and_what_is_left_where_links_are_full_are_said():
    *_, links, _, ranges = said(FULL, LESS, HALF, EQUAL)
    # Of 2, 4 and 0 in the three that are not full.
    assert "in the 3 of 4 where the link is not full in both worlds (95 %): median 2.0 %, worst 4.0 %" in links
    # 964.55 is above 960, 784 below 790, 921.6 below 960.
    assert ranges == "- goodput outside the range of the kernel's own runs in 3 of 4, above it in 1"


def test_cells_whose_link_is_not_full_are_told_apart_by_what_limits_the_sender():
    program = pair("cubic", [800], [796], kind="web", sends="30 kB, 100 ms")
    lines = said(FULL, LESS, HALF, program)
    assert "- goodput in the 2 of these that send without end: median 3.0 %, beyond 1 % in 2" in lines
    assert "- goodput in the 1 of these that a program limits: median 0.5 %, beyond 1 % in 0" in lines


def test_a_drawn_set_counts_as_it_was_first_measured():
    def measured(drawn: str, built: str, *sizes: float) -> list[str]:
        cells = ({"drawn_from": drawn, "built_from": built, "difference_percent": {"goodput_bps": s}} for s in sizes)
        return [json.dumps(cell) for cell in cells]

    lines = measured("a", "a", 1, -5.1) + measured("b", "a", 4, -4.9) + measured("b", "c", 20)
    assert first_measured(lines) == "- a cell beyond 5 % when first measured: 1 of the 2 drawn sets\n"


def test_the_page_says_how_many_drawn_sets_missed_at_first():
    page = (ROOT / "docs" / "lab" / "2026-11-agreement.md").read_text()
    lines = (ROOT / "benches" / "drawn.jsonl").read_text().splitlines()
    assert first_measured(lines).strip("- \n") in page


def test_where_the_kernel_has_several_outcomes_it_is_said_how_often_ours_is_one_of_them():
    # 60 of 830 are more than 5 %, 20 of 800 are not.
    wide, beyond = pair("sack", [800, 860], [810]), pair("cubic", [800, 860], [870])
    *_, several = said(wide, beyond, LESS)
    assert several == "- goodput within that range in 1 of the 2 where it is wider than 5 % of the mean"


@pytest.mark.parametrize(
    ("more", "less", "expected"),
    [
        (0, 0, 1.0),
        (4, 4, 1.0),
        # 2 x 1/2^5.
        (5, 0, 0.0625),
        (0, 6, 0.03125),
        # 2 x (1 + 10 + 45)/2^10.
        (8, 2, 0.109375),
        # 2 x (1 + 15 + 105 + 455)/2^15.
        (3, 12, 0.03515625),
    ],
)
def test_the_sign_test_has_the_values_of_the_binomial_law(more: int, less: int, expected: float):
    assert sign_test(more, less) == expected


def test_a_bias_that_chance_makes_seldom_is_a_goal_missed():
    one_sided = [pair("sack", [800], [800 + 8 * size]) for size in range(1, 7)]
    # Six of six: 2/2^6 = 3.1 %.
    assert said(*one_sided)[6].endswith("| 3.1 % (more in 6, less in 0 of 6) | no |")


def test_retransmissions_where_the_kernel_has_none_count_as_endlessly_many():
    kernel, ours = Outcome(1e6, 1, 1, 0), Outcome(1e6, 1, 1, 0.5)
    some = Pair(("web", "LTE", "1bdp", "none", "8 kB, 30 ms", "bbr"), [kernel], [ours], 2e6)
    assert some.words()[-1] == "+inf"
    assert said(some)[5].endswith("| inf % | no |")
    # JSON has no such number.
    assert line(some)["difference_percent"]["retransmits_per_s"] is None


def test_the_page_says_of_its_table_what_the_script_says():
    page = (ROOT / "docs" / "lab" / "2026-11-agreement.md").read_text()
    rows = list(rows_of(page))
    assert len(rows) >= 48
    assert judgement(rows) in page


def test_a_table_is_read_from_a_page_as_it_was_written():
    row = FULL.words()
    assert len(row) == len(HEADINGS)
    assert list(rows_of(markdown([FULL]))) == [row]


def test_a_page_takes_what_was_measured_and_keeps_the_rest():
    page = f"# Title\n\n{BEGIN}old\n{END}\nMore.\n"
    assert put(page, "new\n") == f"# Title\n\n{BEGIN}\nnew\n\n{END}\nMore.\n"
    assert put(put(page, "new\n"), "new\n") == put(page, "new\n")
