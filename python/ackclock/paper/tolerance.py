"""The language of the `tolerance` and `value` columns of an expected.csv.

A tolerance is one of

* `+-3`, `+-3%`: at most this far from the expected value (absolute, or in percent of it);
* `>=0.97`, `<= 25`, `>0.9`, `<2`, `0..5`: a bound or a closed interval for our value;
* `exact`, `exact (85.8)`, `half a unit of the last digit`: equal when rounded to the digits that are printed;
* `ordering`: a direction or ranking, which the claim decides (or the expected value, where it is a bound);
* `qualitative`: from half to twice the expected value, which counts as an ordering;
* `info`, `ignore`: shown, not judged.

`A or B` and `A / ordering` hold if one side does, `A; B` if both do, `+-0.5 / +-0.01` has one
tolerance for each of several values. Words around a bound (`>= 0.95 of best`, `+-30 ms on crossover`,
`ratio to nominal +-0.1`) describe what the claim compares.

An expected value is a number, also `about` one, a bound (`>160`), a range (`0.70-0.80`, `4..25`), several of these
(`22 / 10`) or a word (`true`). Rows that print a comparison are judged by their effect too (see `effect`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from math import inf, isfinite
from typing import TypeVar

T = TypeVar("T")

_NUMBER = r"-?\d+(?:\.\d+)?"
_BOUND = re.compile(rf"(?P<sign>[<>]=?)\s*(?P<number>{_NUMBER})")
_RANGE = re.compile(rf"(?P<low>{_NUMBER})\s*(?:-|\.\.)\s*(?P<high>{_NUMBER})")
_WITHIN = re.compile(rf"\+-\s*(?P<number>{_NUMBER})(?P<percent>\s*%)?")
_EXACT = re.compile(rf"exact(?:\s*\((?P<number>{_NUMBER})\))?|half a unit of the last digit")


class Held(Enum):
    """How a value meets a tolerance."""

    NUMBER = "number"
    ORDERING = "ordering"
    SIGN = "sign"
    NO = "no"
    UNJUDGED = "unjudged"


@dataclass(frozen=True)
class Span:
    """A closed or open interval of accepted values; `slack` is what a tolerance added on each side."""

    low: float = -inf
    high: float = inf
    open: bool = False
    slack: float = 0.0

    def __contains__(self, value: float) -> bool:
        if self.open:
            return self.low < value < self.high
        return self.low <= value <= self.high

    def widened(self, by: float, percent: bool) -> "Span":
        """The span with `by` (or that many percent of each end) added on both sides."""
        low_slack, high_slack = (abs(end) * by / 100 if percent else by for end in (self.low, self.high))
        # A tolerance of 3 % includes its bounds, despite rounding errors.
        slack = max(low_slack, high_slack)
        return Span(self.low - low_slack * (1 + 1e-9), self.high + high_slack * (1 + 1e-9), slack=slack)

    def common(self, other: "Span") -> "Span":
        """The part of the span that lies in another one."""
        return Span(max(self.low, other.low), min(self.high, other.high), slack=self.slack)


def judge(tolerance: str, expected: str, values: Sequence[float], ordering: bool | None = None) -> Held:
    """Judge `values` against the texts of the two columns.

    Args:
        tolerance: The tolerance column.
        expected: The value column.
        values: Our value, or one per expected value; several values for one expectation must all hold.
        ordering: Whether the direction or ranking holds, if the row states one.

    Raises:
        ValueError: if a text is invalid, or a needed number is missing.
    """
    text = tolerance.strip()
    if text in ("info", "ignore"):
        return Held.UNJUDGED
    if text == "qualitative":
        return Held.ORDERING if _number(text, expected, values) is Held.NUMBER else Held.NO
    if ";" in text:
        # A part without a number (`sign at all B`) describes the ordering in words.
        conditions = [part if re.search(r"\d", part) else "ordering" for part in text.split(";")]
        return _all([judge(part, expected, values, ordering) for part in conditions])
    alternatives = _alternatives(text)
    if len(alternatives) > 1:
        return _any([judge(part, expected, values, ordering) for part in alternatives])
    if text.startswith("ordering"):
        return _ordering(expected, values, ordering)
    return _number(text, expected, values)


def accepted(tolerance: str, expected: str, n: int) -> list[list[Span]]:
    """The spans that each alternative of a tolerance states for `n` numbers; none for one without a number."""
    found = []
    for text in _alternatives(tolerance.strip()):
        stated = [part for part in text.split(";") if re.search(r"\d|^exact$|^qualitative$|^half a unit", part.strip())]
        rows = [[_span(part, want) for part, want in _pairs(one.strip(), expected, n)] for one in stated]
        if rows:
            found.append([_common(spans) for spans in zip(*rows, strict=True)])
    return found


def states_bound(expected: str) -> bool:
    """Whether an expected value is a bound."""
    return _BOUND.search(expected) is not None


def parts(text: str) -> list[str]:
    """The entries of a column for several numbers: `22 / 10`."""
    return [part.strip() for part in re.split(r"\s+/\s+", text)]


def _alternatives(text: str) -> list[str]:
    return re.split(r"\s+or\s+|\s*/\s*(?=ordering)", text)


def _common(spans: Sequence[Span]) -> Span:
    result = spans[0]
    for span in spans[1:]:
        result = result.common(span)
    return result


def _all(verdicts: list[Held]) -> Held:
    if Held.NO in verdicts:
        return Held.NO
    return Held.ORDERING if Held.ORDERING in verdicts else Held.NUMBER


def _any(verdicts: list[Held]) -> Held:
    for held in (Held.NUMBER, Held.ORDERING):
        if held in verdicts:
            return held
    return Held.NO


def _ordering(expected: str, values: Sequence[float], ordering: bool | None) -> Held:
    if ordering is None:
        # `>0.90` states a direction: the numbers decide.
        if not states_bound(expected):
            raise ValueError(f"an ordering on {expected!r} must be decided by the claim")
        ordering = _number(expected, expected, values) is Held.NUMBER
    return Held.ORDERING if ordering else Held.NO


def _number(tolerance: str, expected: str, values: Sequence[float]) -> Held:
    if not values:
        raise ValueError(f"tolerance {tolerance!r} needs a number")
    n = max(len(parts(tolerance)), len(parts(expected)), len(values))
    rows = zip(_pairs(tolerance, expected, n), spread(list(values), n), strict=True)
    held = all(isfinite(value) and value in _span(part, want) for (part, want), value in rows)
    return Held.NUMBER if held else Held.NO


def _pairs(tolerance: str, expected: str, n: int) -> list[tuple[str, str]]:
    """Tolerance and expected value of each of `n` numbers."""
    return list(zip(spread(parts(tolerance), n), spread(parts(expected), n), strict=True))


def spread(items: list[T], n: int) -> list[T]:
    """A single item applies to all `n`."""
    if len(items) not in (1, n):
        raise ValueError(f"{len(items)} entries where {n} are compared: {items}")
    return items * n if len(items) == 1 else items


def _span(tolerance: str, expected: str) -> Span:
    """The values that a tolerance accepts for an expected value."""
    if match := _EXACT.fullmatch(tolerance):
        printed = match["number"] or expected
        exponent = Decimal(printed).as_tuple().exponent
        assert isinstance(exponent, int), "the pattern of a number admits no infinity"
        return replace(Span(float(printed), float(printed)).widened(0.5 * 10.0**exponent, percent=False), slack=0.0)
    if tolerance == "qualitative":
        span = expected_span(expected)
        return Span(span.low / 2, 2 * span.high)
    if match := _WITHIN.search(tolerance):
        return expected_span(expected).widened(float(match["number"]), percent=bool(match["percent"]))
    if match := _BOUND.search(tolerance):
        return _bound_span(match)
    if match := _RANGE.fullmatch(tolerance):
        return Span(float(match["low"]), float(match["high"]))
    raise ValueError(f"unknown tolerance {tolerance!r}")


def expected_span(expected: str) -> Span:
    """The values that an entry of the column `value` states.

    Raises:
        ValueError: if it is not a number, a range or a bound.
    """
    if match := _RANGE.fullmatch(expected):
        return Span(float(match["low"]), float(match["high"]))
    if match := _BOUND.fullmatch(expected.removesuffix("x")):
        return _bound_span(match)
    try:
        number = float(expected.removeprefix("about "))
        return Span(number, number)
    except ValueError:
        raise ValueError(f"expected value {expected!r} is not a number") from None


def _bound_span(match: re.Match[str]) -> Span:
    number = float(match["number"])
    is_open = not match["sign"].endswith("=")
    return Span(number, inf, is_open) if match["sign"].startswith(">") else Span(-inf, number, is_open)
