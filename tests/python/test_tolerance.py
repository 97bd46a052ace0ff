"""The language of the tolerance column."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackclock.paper.document import keys, load
from ackclock.paper.tolerance import Held, judge

INSIDE = [
    ("+-3%", "100", [103]),
    ("+-3", "100", [97]),
    ("+-0.5 / +-0.01", "103 / 0.68", [102.6, 0.685]),
    ("+-30% or +-10", "1", [11]),
    ("+-30% or +-10", "114", [140]),
    (">=0.97", "1.0", [0.97]),
    (">= 0.95 of best", "true", [0.96]),
    ("0..5", "1.63", [5]),
    ("exact", "5.1", [5.076]),
    ("exact (85.8)", "86", [85.81]),
    ("half a unit of the last digit", "8.8", [8.84]),
    ("+-0.05", "0.70-0.80", [0.66]),
    ("+-4", "5-10", [1.5, 13.9]),
    ("+-3", "8", [6, 10.9]),
    ("+-8", "22 / 10", [29, 3]),
    ("+-12", "31 / 29", [40, 20]),
    ("ratio to nominal +-0.1", "0.83", [0.9]),
    ("+-5%", ">1000", [2000]),
]
OUTSIDE = [
    ("+-3%", "100", [103.1]),
    ("+-3", "100", [96.9]),
    ("+-0.5 / +-0.01", "103 / 0.68", [102.6, 0.7]),
    ("+-30% or +-10", "114", [160]),
    (">=0.97", "1.0", [0.969]),
    ("0..5", "1.63", [-0.1]),
    ("exact", "5.1", [5.16]),
    ("exact (85.8)", "86", [86]),
    ("+-0.05", "0.70-0.80", [0.64]),
    ("+-4", "5-10", [0.5, 9]),
    ("+-8", "22 / 10", [29, 1]),
    ("+-3%", "100", [float("nan")]),
]


@pytest.mark.parametrize(("tolerance", "expected", "values"), INSIDE)
def test_a_value_inside_holds(tolerance, expected, values):
    assert judge(tolerance, expected, values) is Held.NUMBER


@pytest.mark.parametrize(("tolerance", "expected", "values"), OUTSIDE)
def test_a_value_outside_does_not(tolerance, expected, values):
    assert judge(tolerance, expected, values) is Held.NO


def test_an_ordering_is_decided_by_the_claim():
    assert judge("ordering", "true", [], ordering=True) is Held.ORDERING
    assert judge("ordering; sign at all B", "4..25", [], ordering=True) is Held.ORDERING
    assert judge("ordering; sign at all B", "4..25", [], ordering=False) is Held.NO


def test_an_ordering_on_a_bound_is_decided_by_the_numbers():
    assert judge("ordering", ">0.90", [0.93]) is Held.ORDERING
    assert judge("ordering", ">0.90", [0.90]) is Held.NO


def test_a_number_or_an_ordering_prefers_the_number():
    assert judge("+-20 or ordering", "40", [30], ordering=True) is Held.NUMBER
    assert judge("+-20 or ordering", "40", [10], ordering=True) is Held.ORDERING
    assert judge("+-4 / ordering", "40", [10], ordering=False) is Held.NO


def test_an_ordering_with_a_bound_needs_both():
    assert judge("ordering; >=25", "34-49", [30], ordering=True) is Held.ORDERING
    assert judge("ordering; >=25", "34-49", [20], ordering=True) is Held.NO


@pytest.mark.parametrize("word", ["info", "ignore"])
def test_some_rows_are_shown_and_not_judged(word):
    assert judge(word, "1.76", []) is Held.UNJUDGED


@pytest.mark.parametrize(
    ("tolerance", "expected", "values"),
    [("about", "3", [3]), ("+-3", "see", [3]), ("+-3", "3", []), ("+-3", "1 / 2", [1, 2, 3]), ("ordering", "3", [3])],
)
def test_what_cannot_be_judged_is_an_error(tolerance, expected, values):
    with pytest.raises(ValueError, match=r"tolerance|number|entries|ordering"):
        judge(tolerance, expected, values)


def test_every_row_that_is_checked_can_be_judged():
    for paper in map(load, keys()):
        for row in paper.expected.values():
            if not row.id.startswith(tuple(paper.unchecked) or ("-",)):
                values = [1.0] * (row.value.count(" / ") + 1)
                assert judge(row.tolerance, row.value, values, ordering=True) in Held, row.id


WORDS = st.lists(
    st.sampled_from(["+-", "3", "%", " or ", " / ", "; ", ">=", "..", "-", "ordering", "exact (", ")", "x"])
)


@given(WORDS.map("".join), WORDS.map("".join), st.lists(st.floats(), max_size=3), st.booleans() | st.none())
def test_any_text_is_judged_or_refused(tolerance, expected, values, ordering):
    with contextlib.suppress(ValueError):
        assert judge(tolerance, expected, values, ordering) in Held


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9))
def test_a_printed_tolerance_includes_its_edge(expected, slack):
    printed, by = f"{expected:.3f}", f"{slack:.3f}"
    assert judge(f"+-{by}", printed, [float(printed), float(printed) + float(by)]) is Held.NUMBER
