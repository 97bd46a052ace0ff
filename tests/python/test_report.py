"""Reports: one file that needs nothing else."""

import re

from ackclock import report
from ackclock.paper import Outcome, Runs, load
from ackclock.papers.cr02 import grid
from ackclock.results import Results
from conftest import run_object, swept_objects


def needs_nothing_else(html: str) -> bool:
    """No script, picture, style sheet or font comes from outside; namespace names and links inside do not count."""
    return not re.findall(r"<(?:script|link|img|iframe)\b|@import|url\((?!#)", html)


def test_a_report_of_a_sweep_has_tables_and_pictures():
    html = report.of_runs(Results(swept_objects()), "A & B")
    assert "<title>A &amp; B</title>" in html
    assert html.count("<figure>") == 3  # goodput against delay, goodput and RTT over the buffer
    assert "± " in html
    assert needs_nothing_else(html)


def test_a_number_that_does_not_exist_is_shown_as_such():
    html = report.of_runs(Results([run_object()]))
    row = re.search(r"<tr><td>0</td><td>reno</td>(.*)</tr>", html)
    assert row is not None
    assert '<td class="n">-</td>' in row[1]  # spurious time-outs are null in this run


def test_series_are_drawn(series):
    assert report.of_runs(Results([run_object()], [series])).count("<figure>") == 1


def test_a_papers_report_shows_misses_first_and_all_rows():
    cr02 = load("cr02")
    runs = Runs({at: [run_object(seed=seed) for seed in (1, 2)] for at in grid.points()})
    html = report.of_paper(Outcome(cr02, runs, cr02.judge(cr02.claims(runs, cr02.expected))), [])
    assert html.index("Not reproduced") < html.index("All rows")
    assert html.count("CR02-T1-1-mu") == 1
    assert html.count("CR02-T1-1-p1") == 2
    assert needs_nothing_else(html)
