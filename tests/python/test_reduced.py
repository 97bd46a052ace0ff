"""The claims on figures from few seeds, beside the claim tables that all seeds made (`make claims`).

Numbers may lie as far from those of the table as the spread over seeds, which stands there, makes it likely; of an
order the sign of the means decides, where the table has a paired test over more seeds. A change of the model that moves
a claim fails here until `make papers` has judged it and the table is written again.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from math import sqrt

import numpy as np
import pytest

from ackclock.paper import Claim, Runs, judge_row, load, order, simulate
from ackclock.paper.document import number
from ackclock.paper.expected import Row
from ackclock.paper.measure import drops
from ackclock.paper.runs import PerSeed
from ackclock.papers.ac06 import claims as ac06
from ackclock.papers.chain import claims as chain_claims
from ackclock.papers.cr02 import claims as cr02
from ackclock.papers.cr04 import claims as cr04
from ackclock.papers.cr04 import grid as cell
from ackclock.papers.l02 import claims as l02

pytestmark = pytest.mark.reduced

SEEDS = 2
# Where the runs of a figure take as long as those of many others.
LONG_SEEDS = 1
# Sizes of web objects have heavy tails, and their runs are short.
PAGES_SEEDS = 8
# Of the rows of the claim tables.
FEWEST = 5
# How many standard deviations of the difference of two means are allowed: of some fifty numbers, one in a thousand
# such checks would fail by chance.
LIKELY = 4.0

Claims = Callable[[Runs], Iterator[tuple[str, Claim]]]


def judged_cell(figure: str, *arguments: object) -> Claims:
    """A figure of CR04 over the cell that is judged."""
    return lambda runs: getattr(cr04.At(runs, cell.JUDGED), figure)(*arguments)


def short_flows(runs: Runs) -> Iterator[tuple[str, Claim]]:
    """Figures 14 and 15 of CR04; rows that name no load under both loads."""
    loads = {load: cr04.At(runs, channel) for load, channel in cell.LOADS.items()}
    of_figures = [claim for claim in loads[cell.MEDIUM].figures_14_and_15() if claim[0] < "CR04-21"]
    yield from (*of_figures, *cr04.general(loads))


def overflow(runs: Runs) -> Iterator[tuple[str, Claim]]:
    """What the Window Regulators drop at the points of figure 7."""
    curves = (cell.JUDGED.by_buffer()[name] for name in ("WRS", "WRD", "WRB"))
    yield "CR04-inv", number(max(runs(at, drops).max() for curve in curves for at in curve.values()))


# Figure 8 with its four and eight users takes as long as all others together: figure 15 of CR02 stands for it.
FIGURES: Mapping[str, tuple[str, Claims, int]] = {
    "CR02 figure 11": ("cr02", cr02.figure_11, SEEDS),
    "CR02 figure 12": ("cr02", cr02.figure_12, SEEDS),
    "CR02 figure 13": ("cr02", cr02.figure_13, SEEDS),
    "CR02 figure 14": ("cr02", lambda runs: chain(cr02.figure_14(runs), cr02.figure_14b(runs)), SEEDS),
    "CR02 figure 15": ("cr02", cr02.figure_15, LONG_SEEDS),
    "CR02 section 6": ("cr02", cr02.section_6, SEEDS),
    "CR04 figure 7": ("cr04", lambda runs: chain(judged_cell("figure_7")(runs), overflow(runs)), LONG_SEEDS),
    "CR04 figure 9": ("cr04", judged_cell("figure_9", cr04.ROUND_TRIP), SEEDS),
    "CR04 figure 10": ("cr04", judged_cell("figure_10"), LONG_SEEDS),
    "chain drops": ("chain", lambda runs: chain_claims.overflow(runs, buffers=(40,)), LONG_SEEDS),
    "L02 large files": ("l02", l02.large_files, SEEDS),
    "AC06 table 2": ("ac06", ac06.table_2, LONG_SEEDS),
    "CR04 figures 14 and 15": ("cr04", short_flows, PAGES_SEEDS),
}


class Asked(Runs):
    """Notes which points a claim reads."""

    def __init__(self) -> None:
        super().__init__({})
        self.points: dict[str, None] = {}

    def __call__(self, at: str, measure: object) -> PerSeed:
        self.points[at] = None
        return np.array([1.0, 2.0])


@dataclass(frozen=True)
class Told:
    """What the claim table says of a row: our numbers with their spreads, and the verdict."""

    numbers: list[tuple[float, float | None]]
    verdict: str


def claim_table(key: str) -> dict[str, Told]:
    """The rows of a document's claim table."""
    paper = load(key)
    text = (paper.folder / "claims.md").read_text()
    lines = [[cell.strip() for cell in line.strip("| \n").split(" | ")] for line in text.splitlines()]
    head = next(cells for cells in lines if cells[0] == "id" and "ours" in cells)
    ours, verdict = head.index("ours"), head.index("verdict")
    rows = [cells for cells in lines if cells[0] in paper.expected and len(cells) > verdict]
    # The tables below it, over other channels, have rows of these names too.
    return {cells[0]: Told(numbers(cells[ours]), cells[verdict]) for cells in reversed(rows)}


def numbers(ours: str) -> list[tuple[float, float | None]]:
    """Means and spreads of the column `ours`; none where it says that an order holds."""
    parts = re.findall(r"(-?[\d.]+)(?: ± ([\d.]+))?", ours)
    return [(float(mean), float(spread) if spread else None) for mean, spread in parts]


def departures(figure: str, change: Callable[[str], str] = str) -> list[str]:
    """What few seeds say otherwise than the claim table; `change` is made to every scenario."""
    key, claims, seeds = FIGURES[figure]
    asked = Asked()
    dict(claims(asked))
    made = simulate([change(at) for at in asked.points], seeds=seeds).objects
    runs = Runs({at: made[change(at)] for at in asked.points})
    paper, table = load(key), claim_table(key)
    return [
        words for name, claim in claims(runs) for words in departs(paper.expected[name], claim, table.get(name), seeds)
    ]


def departs(row: Row, claim: Claim, told: Told | None, seeds: int) -> Iterator[str]:
    """In what a claim differs from the row of the table by more than the spread over seeds makes likely."""
    if told is None:
        yield f"{row.id} is not in the claim table"
        return
    for ours, (mean, spread) in zip(claim.means, told.numbers, strict=True):
        far = spread is not None and abs(ours - mean) > LIKELY * spread * sqrt(1 / seeds + 1 / FEWEST)
        if far:
            yield f"{row.id}: {ours:.4g} of {seeds} seeds, {mean:g} +- {spread:g} in the claim table"
    # Where a spread stands the verdict may turn at the edge of a tolerance; elsewhere it is all there is.
    verdict = judge_row(row, claim).verdict.value
    if verdict != told.verdict and not any(spread for _, spread in told.numbers):
        yield f"{row.id}: {verdict}, {told.verdict} in the claim table"


@pytest.fixture(autouse=True)
def signs_decide(monkeypatch):
    """Of two seeds no test tells anything: the order of the means is compared."""
    monkeypatch.setattr(order, "LEVEL", 0.5)


@pytest.mark.parametrize("figure", FIGURES)
def test_few_seeds_say_what_the_claim_table_says(figure):
    assert departures(figure) == []


def alpha_three(at: str) -> str:
    """The Ack Regulator lets the window grow to three times the buffer, not two."""
    return at.replace('regulator = "ack-regulator"', 'regulator = { kind = "ack-regulator", alpha = 3 }')


def window_less_one(at: str) -> str:
    """A Window Regulator tells windows of a packet less than the law says."""
    if not re.search('regulator = "wr[sdb]"', at):
        return at
    return re.sub(r'buffer = "(\d+)p"', lambda found: f'buffer = "{int(found[1]) - 1}p"', at)


@pytest.mark.parametrize(
    ("figure", "mistake"),
    [("CR02 figure 11", alpha_three), ("CR04 figure 9", window_less_one)],
)
def test_a_regulator_with_a_mistake_departs_from_the_claim_table(figure, mistake):
    assert departures(figure, mistake)
