"""Rows that hold whatever happens. They are counted apart, as formulas are that restate their input.

* `admits nothing`: the tolerance accepts a value where nothing happens: the neutral value of a comparison, or zero for
  another number whose slack is as large as the number. An exact zero is not weak: one event refutes it.
* `scatter`: the 95 % confidence interval of our mean is wider than the tolerance.
"""

from collections.abc import Sequence
from math import isfinite, sqrt

from ackclock.paper import tolerance
from ackclock.paper.effect import Effect
from ackclock.paper.runs import PerSeed
from ackclock.paper.tolerance import Span

NOTHING, SCATTER = "admits nothing", "scatter"
CONFIDENCE = 0.95


def weakness(
    stated: str, expected: str, neutral: str, printed: Sequence[Effect | None], values: Sequence[PerSeed]
) -> str:
    """Why a row that holds is weak; empty if it is not.

    Args:
        stated: The column `tolerance`.
        expected: The column `value`.
        neutral: The column `neutral`.
        printed: The printed effects, one per value.
        values: Our values.
    """
    n = len(values)
    neutrals = tolerance.spread(tolerance.parts(neutral), n) if n else []
    spans = tolerance.accepted(stated, expected, n)
    found = [
        _of(of, zero, [each[i] for each in spans], values[i])
        for i, (of, zero) in enumerate(zip(printed, neutrals, strict=True))
    ]
    if found and all(one == NOTHING for one in found):
        return NOTHING
    return SCATTER if SCATTER in found else ""


def _of(effect: Effect | None, neutral: str, spans: Sequence[Span], values: PerSeed) -> str:
    if effect is not None:
        spans = [span.common(effect.accepted()) for span in spans] or [effect.accepted()]
    elif neutral not in ("", "-"):
        if any(float(neutral) in span for span in spans):
            return NOTHING
    elif any(span.slack > 0 and 0.0 in span for span in spans):
        return NOTHING
    widths = [span.high - span.low for span in spans]
    is_wide = bool(widths) and isfinite(max(widths)) and _interval(values) > max(widths)
    return SCATTER if is_wide else ""


def _interval(values: PerSeed) -> float:
    """Width of the confidence interval of the mean; 0 for one value."""
    from scipy.stats import t

    n = values.size
    if n < 2:
        return 0.0
    return float(2 * t.ppf((1 + CONFIDENCE) / 2, n - 1) * values.std(ddof=1) / sqrt(n))
