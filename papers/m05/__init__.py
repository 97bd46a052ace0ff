"""M05: automatic control of TCP over cellular radio, a thesis of 2005.

Rows of formulas are in `claims`. Simulated rows are in three modules: `proxy` for chapter 3, `channel` for
chapters 4 to 6, and `hsdpa` for a channel that users share. Each has points, claims, figures and tables, and the
attempts for its deviations.
"""

from collections.abc import Iterable, Iterator

from ackclock.paper import Claim, Figure, NullModel, Paper, Runs, Table
from ackclock.paper.expected import Expected
from ackclock.papers.m05 import channel, claims, figures, hsdpa, notes, proxy, tables

SIMULATED = (proxy, channel, hsdpa)


def _points() -> Iterable[str]:
    return (at for part in SIMULATED for at in part.points())


def _claims(runs: Runs, expected: Expected) -> dict[str, Claim]:
    found = claims.claims(expected)
    for part in SIMULATED:
        found |= part.claims(runs, expected)
    return found


def _null_model(runs: Runs, expected: Expected) -> dict[str, Claim]:
    return {**proxy.null_model(runs, expected), **hsdpa.null_model(runs, expected)}


def _figures(runs: Runs) -> Iterator[Figure]:
    for part in SIMULATED:
        yield from part.figures(runs)
    yield from figures.figures()


def _tables(runs: Runs, expected: Expected) -> Iterator[Table]:
    yield from tables.tables(expected)
    for part in SIMULATED:
        yield from part.tables(runs, expected)


PAPER = Paper(
    key="m05",
    title="Automatic control of TCP over cellular radio links, thesis, 2005",
    points=_points,
    claims=_claims,
    figures=_figures,
    tried={**notes.TRIED, **proxy.TRIED, **channel.TRIED, **hsdpa.TRIED},
    caveats={**notes.CAVEATS, **proxy.CAVEATS, **channel.CAVEATS, **hsdpa.CAVEATS},
    conditions=" ".join(filter(None, (notes.CONDITIONS, proxy.CONDITIONS, channel.CONDITIONS, hsdpa.CONDITIONS))),
    tables=_tables,
    null=NullModel("a proxy that does nothing", _null_model),
    restated=notes.RESTATED,
)
