"""Comparisons judged by their effect, and rows that hold whatever happens."""

import numpy as np
import pytest

from ackclock.paper import Claim, Verdict, judge_row
from ackclock.paper.document import number
from ackclock.paper.expected import Row


def row(value: str, tolerance: str = "ordering", neutral: str = "0") -> Row:
    return Row("X-1", "X", "any", "gain", value, "%", tolerance, "sim", "", neutral)


def verdict(value: str, ours: object, tolerance: str = "ordering", neutral: str = "0", **claim: object) -> Verdict:
    made = Claim(ours if isinstance(ours, tuple) else (ours,), **claim)  # type: ignore[arg-type]
    return judge_row(row(value, tolerance, neutral), made).verdict


@pytest.mark.parametrize(
    ("ours", "held"),
    [
        # Printed 40: half is 20, twice 80, a quarter 10.
        (20.0, Verdict.REPRODUCED),
        (80.0, Verdict.REPRODUCED),
        (80.1, Verdict.ORDERING_HOLDS),
        (19.9, Verdict.ORDERING_HOLDS),
        (10.0, Verdict.ORDERING_HOLDS),
        (9.9, Verdict.SIGN_ONLY),
        (-1.0, Verdict.NOT_REPRODUCED),
        (0.0, Verdict.NOT_REPRODUCED),
    ],
)
def test_the_size_of_an_effect_decides(ours, held):
    assert verdict("40", ours) is held


def test_a_ratio_counts_from_one_in_its_own_direction():
    # Printed 0.7 to 0.8: effects of -0.3 and -0.2.
    assert verdict("0.70-0.80", 0.9, neutral="1") is Verdict.REPRODUCED
    assert verdict("0.70-0.80", 0.94, neutral="1") is Verdict.ORDERING_HOLDS
    assert verdict("0.70-0.80", 1.1, neutral="1") is Verdict.NOT_REPRODUCED
    assert verdict(">=3x", 2.0, neutral="1") is Verdict.ORDERING_HOLDS  # the bound itself is missed
    assert judge_row(row("0.70-0.80", neutral="1"), number(0.75)).shares == [1.0]


def test_the_stated_tolerance_still_binds():
    assert verdict("48", 28.8, "+-12") is Verdict.ORDERING_HOLDS
    assert verdict("17.4", 9.0, "+-5 / ordering", ordering=True) is Verdict.ORDERING_HOLDS
    # What the row asks for in words does not hold, whatever the size.
    assert verdict("40", 40.0, ordering=False) is Verdict.NOT_REPRODUCED


def test_the_sign_must_exceed_its_own_interval():
    around_nothing = np.array([30.0, -20.0, 25.0, -18.0])
    assert abs(around_nothing.mean()) < 10
    assert verdict("40", around_nothing) is Verdict.NOT_REPRODUCED
    assert verdict("40", np.array([4.0, 4.1, 3.9])) is Verdict.SIGN_ONLY


def test_each_number_of_a_row_is_judged():
    assert verdict("22 / 10", (26.0, 9.0), "+-8") is Verdict.REPRODUCED
    assert verdict("22 / 10", (26.0, 2.4), "+-8") is Verdict.SIGN_ONLY
    # The first number compares nothing.
    judged = judge_row(row("51 / 10", "qualitative", "- / 0"), Claim((55.0, 6.7)))
    assert judged.verdict is Verdict.ORDERING_HOLDS
    assert judged.shares == [None, pytest.approx(0.67)]


@pytest.mark.parametrize(
    ("value", "tolerance", "neutral", "ours", "weak"),
    [
        ("8", "+-30% or +-10", "", 0.6, "admits nothing"),
        ("114", "+-30% or +-10", "", 95.0, ""),
        ("0.0", "+-0.08", "", 0.001, "admits nothing"),
        ("0", "exact", "", 0.0, ""),
        ("0", "+-3", "0", 0.2, "admits nothing"),
        (">5", ">=3", "0", 6.0, ""),
        ("1", ">=0.98", "1", 0.99, "admits nothing"),
        ("0 / 26", "+-0.5", "", (0.0, 26.0), ""),
        # 95 % of a mean of four with a deviation of 10: +- 15.9.
        ("40", "+-10", "0", np.array([30.0, 50.0, 30.0, 50.0]), "scatter"),
        ("40", "+-30", "0", np.array([38.0, 42.0, 38.0, 42.0]), ""),
    ],
)
def test_a_row_that_holds_whatever_happens_is_weak(value, tolerance, neutral, ours, weak):
    judged = judge_row(row(value, tolerance, neutral), Claim(ours if isinstance(ours, tuple) else (ours,)))
    assert judged.holds
    assert judged.weak == weak


def test_a_miss_is_never_weak():
    assert judge_row(row("8", "+-10", ""), number(30.0)).weak == ""


def test_a_magnitude_is_from_half_to_twice():
    assert verdict("1.76", 0.9, "qualitative", "") is Verdict.ORDERING_HOLDS
    assert verdict("1.76", 0.8, "qualitative", "") is Verdict.NOT_REPRODUCED
