"""Chapters 4 to 6, simulated: TCP over the power-controlled channel, beside its analysis."""

from collections.abc import Iterable, Iterator

from ackclock.paper import Claim, Figure, Runs, Table
from ackclock.paper.expected import Expected

TRIED: dict[str, str] = {}
CAVEATS: dict[str, str] = {}
CONDITIONS = ""
# Start of an id -> why such rows are not checked.
ELSEWHERE: dict[str, str] = dict.fromkeys(("M05-S45-4", "M05-O4"), "not simulated yet")


def points() -> Iterable[str]:
    """The scenario texts to run."""
    return ()


def claims(runs: Runs, expected: Expected) -> dict[str, Claim]:
    """Our value of every row that is simulated."""
    return {}


def figures(runs: Runs) -> Iterator[Figure]:
    """The figures that are drawn from runs."""
    return iter(())


def tables(runs: Runs, expected: Expected) -> Iterable[Table]:
    """Tables of what no row asks for."""
    return ()
