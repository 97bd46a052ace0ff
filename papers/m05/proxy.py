"""Chapter 3, simulated: the proxy that radio network feedback steers, beside end-to-end TCP."""

from collections.abc import Iterable, Iterator

from ackclock.paper import Claim, Figure, Runs, Table
from ackclock.paper.expected import Expected

TRIED: dict[str, str] = {}
CAVEATS: dict[str, str] = {}
CONDITIONS = ""
# Start of an id -> why such rows are not checked.
ELSEWHERE: dict[str, str] = dict.fromkeys(
    ("M05-T31-", "M05-F35-", "M05-F36", "M05-F37", "M05-F38", "M05-F39-"), "not simulated yet"
)


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
