"""The rule for rows that print a comparison: a gain, or a ratio to another row.

The column `neutral` of an expected.csv is the value of such a row where nothing happens: 0 for gains in percent, 1 for
ratios. The distance from it is the *effect*, and the share is our effect divided by the printed one.

* Within tolerance: the share is from a half to two, and the stated tolerance holds.
* By order: our effect has the printed sign in a one-sided test over the seeds, and at least a quarter of the size.
* By sign only: our effect has the printed sign, and is smaller than a quarter.

The distance from a printed range is counted from its nearer end; a bound (`>5`) has no largest effect.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite

from ackclock.paper.order import above, below
from ackclock.paper.runs import PerSeed
from ackclock.paper.tolerance import Held, Span, expected_span, parts, spread

LEAST, MOST = 0.5, 2.0  # shares within tolerance
SMALL = 0.25  # share below which the sign alone holds


@dataclass(frozen=True)
class Effect:
    """The printed effect of one number of a row.

    Attributes:
        neutral: Value where nothing happens.
        span: Printed values, on one side of `neutral`.
    """

    neutral: float
    span: Span

    @property
    def sign(self) -> int:
        """1 if the printed values lie above `neutral`, -1 below."""
        return 1 if self.span.low >= self.neutral else -1

    @property
    def sizes(self) -> tuple[float, float]:
        """Smallest and largest printed effect."""
        ends = sorted(self.sign * (end - self.neutral) for end in (self.span.low, self.span.high))
        return ends[0], ends[1]

    def share(self, value: float) -> float:
        """Our effect divided by the printed one; 1 inside a printed range."""
        ours, (least, most) = self.sign * (value - self.neutral), self.sizes
        return ours / least if ours < least else ours / most if ours > most else 1.0

    def has_sign(self, values: PerSeed) -> bool:
        """Whether our values have the printed sign in a test over the seeds."""
        return above(values, values * 0 + self.neutral) if self.sign > 0 else below(values, values * 0 + self.neutral)

    def accepted(self) -> Span:
        """Values with a share from a half to two."""
        least, most = self.sizes
        ends = sorted(self.neutral + self.sign * size for size in (LEAST * least, MOST * most))
        return Span(ends[0], ends[1])


def effects(neutral: str, expected: str, n: int) -> list[Effect | None]:
    """The printed effect of each of `n` numbers; None for numbers that compare nothing or print no effect.

    Args:
        neutral: The column `neutral`: one entry, or one per number with `-` for numbers that compare nothing.
        expected: The column `value`.
        n: How many numbers we have.
    """
    neutrals = [None if part in ("", "-") else float(part) for part in parts(neutral)]
    found: list[Effect | None] = []
    for zero, text in zip(spread(neutrals, n), spread(parts(expected), n), strict=True):
        span = expected_span(text) if zero is not None and any(map(str.isdigit, text)) else None
        is_effect = zero is not None and span is not None and not span.low <= zero <= span.high
        found.append(Effect(zero, span) if is_effect and zero is not None and span is not None else None)
    return found


def judge(printed: Sequence[Effect | None], values: Sequence[PerSeed], stated: Held, tolerance: str) -> Held:
    """The verdict on a row with at least one effect.

    Args:
        printed: The printed effects.
        values: Our values.
        stated: What the stated tolerance says.
        tolerance: The stated tolerance. If it allows no deviation in numbers, the share alone decides what is within.
    """
    pairs = [(of, ours) for of, ours in zip(printed, values, strict=True) if of is not None]
    shares = [of.share(float(ours.mean())) for of, ours in pairs]
    if not all(map(isfinite, shares)):
        return Held.NO
    has_number = "+-" in tolerance or tolerance == "qualitative"
    within = stated is Held.NUMBER or (stated is Held.ORDERING and not has_number)
    if within and all(LEAST <= share <= MOST for share in shares):
        return Held.NUMBER
    if not all(of.has_sign(ours) for of, ours in pairs):
        return Held.NO
    return Held.ORDERING if min(shares, default=inf) >= SMALL else Held.SIGN
