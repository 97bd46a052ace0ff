"""Controllers that order packets for a link by its known probabilities; `bound` chooses among them.

Each observes the link's capacity in one, two or three past windows, in bins, and orders up to the largest number
that is worth its price (see `bound` for the rule).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ackclock.models.order_up_to import Ints, Link, Orders

# Windows of the past, in slots: each alone, each with those that are four times as long or longer, and three together;
# and the bins of a window by how many are taken together.
WINDOWS = (20, 50, 100, 200, 500, 1000, 2000)
PAIRS = tuple((one, other) for one, other in combinations(WINDOWS, 2) if other >= 4 * one)
TRIPLES = ((20, 100, 500), (20, 200, 2000))
SEEN: tuple[tuple[int, ...], ...] = (*((one,) for one in WINDOWS), *PAIRS, *TRIPLES)
BINS = {1: 40, 2: 16, 3: 11}
# Queueing delays beyond which a packet is late, in slots, and a late packet's cost relative to an idle opportunity.
LATE = (25, 100, 400, 1600)
PRICES = (0.1, 0.25, 0.5, 1.0, 2.0)
# A state counts as if the law of all states together had been seen in it for so many slots.
PRIOR = 100
# Constants to try.
CONSTANTS = 80
CONTROLLERS = len(SEEN) * len(LATE) * len(PRICES)


@dataclass(frozen=True, eq=False)
class States:
    """States of a controller: past windows, and the bin boundaries of each."""

    windows: tuple[int, ...]
    edges: tuple[Ints, ...]

    @classmethod
    def of(cls, link: Link, windows: tuple[int, ...]) -> States:
        """States with bins about equally frequent on `link`."""
        shares = np.linspace(0, 1, BINS[len(windows)] + 1)[1:-1]
        cuts = (np.quantile(link.behind(window), shares, method="lower") for window in windows)
        return cls(windows, tuple(np.unique(cut).astype(np.int32) for cut in cuts))

    @property
    def number(self) -> int:
        """Number of states."""
        return int(np.prod([len(edges) + 1 for edges in self.edges]))


def after_each_slot(states: States, link: Link) -> Ints:
    """The number of the state after each slot of a link."""
    return _state(states, link, np.arange(len(link.slots), dtype=np.int32))


# Controllers with the same states follow each other.
@lru_cache(maxsize=2)
def changes(states: States, link: Link) -> tuple[Ints, Ints]:
    """The slots after which the state may change, and the states."""
    moved = np.unique(np.concatenate([link.times, *(link.times + window for window in states.windows)]))
    slots = moved[moved < len(link.slots)]
    return slots, _state(states, link, slots)


def _state(states: States, link: Link, slots: Ints) -> Ints:
    state = np.zeros(len(slots), dtype=np.int32)
    for window, edges in zip(states.windows, states.edges, strict=True):
        state *= len(edges) + 1
        state += np.searchsorted(edges, link.behind(window)[slots]).astype(np.int32)
    return state


@dataclass(frozen=True)
class ByState:
    """A controller that orders up to `upto[state]`."""

    states: States
    upto: Ints

    def __call__(self, link: Link) -> Orders:
        """Order levels, and the slots from which they apply."""
        slots, state = changes(self.states, link)
        return slots, self.upto[state]


def constants(link: Link, lead: int) -> list[ByState]:
    """Controllers that always order up to the same number."""
    most = 4 * int(link.ahead(lead).max()) + 4
    numbers = np.unique(np.geomspace(1, most, CONSTANTS).astype(np.int32))
    return [ByState(States((), ()), numbers[i : i + 1]) for i in range(len(numbers))]


def learnt(link: Link, lead: int) -> Iterator[ByState]:
    """Controllers for all states, delays and prices with the probabilities of `link`."""
    passed = {late: link.ahead(lead + late) for late in (0, *LATE)}
    most = int(passed[0].max()) + 2
    for windows in SEEN:
        states = States.of(link, windows)
        state = after_each_slot(states, link)
        useful, *late = (law(state, states.number, np.minimum(passed[one], most - 1), most) for one in passed)
        for one in late:
            for price in PRICES:
                yield ByState(states, order(useful, one, price))


def law(state: Ints, states: int, passed: Ints, most: int) -> NDArray[np.float64]:
    """P(N = k | state) for k below `most`, one row per state, where `passed` is N after each slot."""
    table: NDArray[np.float64] = (
        np.bincount(state * most + passed, minlength=states * most).reshape(states, most).astype(float)
    )
    table += PRIOR * table.sum(axis=0) / len(state)
    table /= table.sum(axis=1, keepdims=True)
    return table


def order(useful: NDArray[np.float64], late: NDArray[np.float64], price: float) -> Ints:
    """In each state the largest k with P(N(lead) >= k) >= price x P(N(lead + d) < k), of k that may be useful."""
    at_least = useful[:, ::-1].cumsum(axis=1)[:, ::-1]
    below = late.cumsum(axis=1) - late
    worth = (at_least > 0) & (at_least >= price * below)
    return np.asarray(np.argmin(worth, axis=1) - 1, dtype=np.int32)
