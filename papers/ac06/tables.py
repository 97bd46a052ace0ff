"""Table 2 compared with the source, with other interpretations and with RED."""

from collections.abc import Iterator

import numpy as np

from ackclock.paper import Runs, Table
from ackclock.paper.claims_page import held
from ackclock.paper.expected import Expected
from ackclock.paper.measure import drops
from ackclock.paper.runs import PerSeed
from ackclock.papers.ac06 import claims, grid
from ackclock.papers.ac06.measures import delay, goodput
from ackclock.results import half_interval

CONFIDENCE = 0.9  # as the source has it


def tables(runs: Runs, expected: Expected) -> Iterator[Table]:
    """All tables."""
    yield beside(runs, expected)
    yield readings(runs, expected)
    yield red(runs)


def beside(runs: Runs, expected: Expected) -> Table:
    """Table 2 with intervals."""
    lines = []
    for flows, control, at in grid.table_2():
        row = f"AC06-T2-{flows}-a{control.alpha:g}" if control else f"AC06-T2-{flows}-anone"
        printed = [expected[f"{row}-{what}"] for what in ("goodput", "delay")]
        said = [f"{one.value} ± {one.note.rsplit(' ', 1)[1]}" for one in printed]
        ours = [interval(runs(at, goodput), 1), interval(runs(at, delay), 2)]
        name = control.name if control else "conventional"
        lines.append([str(flows), name, said[0], ours[0], said[1], ours[1], f"{np.mean(runs(at, drops)):.1f}"])
    columns = ["flows", "controller", "goodput, printed", "ours, kbit/s", "delay, printed", "ours, s", "drops"]
    return Table(f"Table 2 with intervals of {CONFIDENCE:.0%} over 20 runs", columns, lines, 2)


def readings(runs: Runs, expected: Expected) -> Table:
    """Numbers of table 2 that hold with each interpretation."""
    claimed = {reading: dict(claims.table_2(runs, reading)) for reading in grid.READINGS}
    names = list(claimed[grid.AS_JUDGED])
    lines = [[name, *(held(expected[name], of[name]) for of in claimed.values())] for name in names]
    return Table("Table 2 with other readings, one thing at a time", ["row", *claimed], lines)


def red(runs: Runs) -> Table:
    """RED instead of drop-tail, an alternative that the source mentions."""
    lines = []
    for flows in grid.FLOWS:
        for name, at in (
            ("conventional", grid.download(flows)),
            ("RED", grid.with_red(flows)),
            (grid.CONFIGURATIONS[1].name, grid.download(flows, grid.CONFIGURATIONS[1])),
        ):
            lines.append([str(flows), name, interval(runs(at, goodput), 1), interval(runs(at, delay), 2)])
    title = f"Random early detection beside the controller, intervals of {CONFIDENCE:.0%}"
    return Table(title, ["flows", "buffer", "goodput, kbit/s", "delay, s"], lines, 2)


def interval(values: PerSeed, decimals: int) -> str:
    """Mean and half the width of its confidence interval (Student's t)."""
    mean = float(np.mean(values))
    if values.size < 2:
        return f"{mean:.{decimals}f}"
    half = half_interval(values, CONFIDENCE)
    return f"{mean:.{decimals}f} ± {half:.{decimals}f}"
