"""A link fed by orders that take a round trip: a fluid model in slots of 1 ms, many controllers at once.

## Source
The order-up-to policy of inventory control with lost sales and a lead time (for example Zipkin, Operations Research
2008). Opportunities to send are the demand, the queue is the stock, the base RTT is the lead time.

## What it does
After each slot t a controller orders packets up to S(t) beyond what has left, so that the last packet ordered has the
number E(t) = max over u <= t of D(u) + S(u), where D counts departures. An order cannot be taken back. What is ordered
at t can leave from slot t + lead on, and each opportunity sends one packet if there is one:

    D(t) = min(D(t-1) + opportunities(t), E(t - lead))

A packet's queueing delay is the time from the slot of its arrival to the slot of its departure.

A *download* starts like a TCP source, whatever is ordered: it is requested in the first slot, its first ten packets
(RFC 6928) arrive two leads later, and then it sends at most two for each packet known to have left.

## Differences from the source
S may depend on everything that the controller knows. Unmet demand is lost without further cost, and the stock is
unlimited.

## Validation
The same controllers played packet by packet, a constant link and links of independent slots against closed forms
(tests/python/test_bound.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]

# Numbers of an array over opportunities and controllers that are played at once: 128 MB in four of them.
AT_ONCE = 8_000_000
# One in this many packets is sampled for its queueing delay.
EVERY = 4
# Packets of a download that arrive before any has left, and packets that arrive for each departure.
FIRST_WINDOW, SLOW_START = 10, 2


class Link:
    """Packets that a link can send in each slot, and their sums."""

    def __init__(self, slots: Ints) -> None:
        self.slots = slots
        self.passed: Ints = np.cumsum(slots, dtype=np.int32)
        # Slots with at least one opportunity.
        self.times: Ints = np.flatnonzero(slots).astype(np.int32)

    def ahead(self, slots: int) -> Ints:
        """Packets that can be sent in the `slots` after each slot; fewer where the recording ends."""
        later = np.minimum(np.arange(len(self.slots)) + slots, len(self.slots) - 1)
        return self.passed[later] - self.passed

    def behind(self, slots: int) -> Ints:
        """Packets that could be sent in the last `slots`, each slot included; fewer where the recording begins."""
        before = self.passed.copy()
        before[slots:] -= self.passed[:-slots]
        return before


@dataclass(frozen=True)
class Played:
    """A controller over a part of a recording: packets sent, capacity in packets, sampled queueing delays in slots."""

    sent: int
    possible: int
    waits: Ints

    def __add__(self, other: Played) -> Played:
        """Both parts together."""
        waits = np.concatenate((self.waits, other.waits))
        return Played(self.sent + other.sent, self.possible + other.possible, waits)


# The slots after which S may change, all with an opportunity among them, and S after each.
Orders = tuple[Ints, Ints]
# Controllers that change at the same slots give the same array, and are played faster one after another.
Controller = Callable[[Link], Orders]


def play(link: Link, lead: int, controllers: Sequence[Controller], *, download: bool = False) -> Iterator[Played]:
    """Performance of each controller on `link`, where orders take `lead` slots.

    Nothing is counted before the first order can arrive; the link is assumed full until then. For a download the
    complete capacity of the link counts.
    """
    game = _Download(link, lead) if download else _Game(link, lead)
    at_once = max(1, AT_ONCE // max(1, len(link.times)))
    for start in range(0, len(controllers), at_once):
        some = controllers[start : start + at_once]
        left = game.departures(some)
        for column, controller in enumerate(some):
            yield game.played(left[:, column], *controller(link))


class _Game:
    """State common to all controllers on a link."""

    def __init__(self, link: Link, lead: int) -> None:
        self.link, self.lead = link, lead
        # The last opportunity at or before the slot whose orders have come by each opportunity, where there is one.
        known = np.searchsorted(link.times, link.times - lead, side="right") - 1
        self.ordering = int(np.searchsorted(known, 0))
        self.known = np.maximum(known, 0)
        # The first opportunity that is played, and what has left before it.
        self.begin = self.ordering
        self.before: Ints = link.passed[link.times[: self.begin], np.newaxis]

    def departures(self, controllers: Sequence[Controller]) -> Ints:
        """Packets that have left after each opportunity, one column per controller."""
        times, begin = self.link.times, self.begin
        passed = self.link.passed[times][:, np.newaxis]
        come, between = self.orders(controllers)
        left, ordered = np.empty_like(come), np.zeros_like(come)
        left[:begin] = self.before
        ordered[1:begin] = np.maximum.accumulate(left[: begin - 1] + between[1:begin])
        # What is ordered now comes a lead later, so the opportunities of a lead are played at once.
        ends = np.searchsorted(times, times + self.lead)
        at = begin
        while at < len(times):
            now, before = slice(at, int(ends[at])), slice(at - 1, int(ends[at]) - 1)
            known = self.known[now]
            # What left of itself at the beginning has left, even where less had been ordered by then.
            edge = np.maximum(np.maximum(ordered[known], left[known] + come[now]), left[begin - 1])
            edge = self.sent(edge, left[known])
            lost = np.minimum.accumulate(np.vstack((left[at - 1] - passed[at - 1], edge - passed[now])))[1:]
            left[now] = passed[now] + lost
            ordered[now] = np.maximum.accumulate(left[before] + between[now])
            np.maximum(ordered[now], ordered[at - 1], out=ordered[now])
            at = int(ends[at])
        return left

    def orders(self, controllers: Sequence[Controller]) -> tuple[Ints, Ints]:
        """The most ordered between the opportunity `known` and what has come, and between two opportunities."""
        times, first = self.link.times, max(self.ordering, self.begin)
        come, between = (np.zeros((len(times), len(controllers)), np.int32) for _ in range(2))
        last: Ints | None = None
        for column, controller in enumerate(controllers):
            changes, upto = controller(self.link)
            if changes is not last:
                last, at_times = changes, np.searchsorted(changes, times)
                until = np.searchsorted(changes, times[first:] - self.lead, side="right")
                spans = np.stack((at_times[self.known[first:]], until), axis=1).ravel()
            come[first:, column] = np.maximum.reduceat(upto, spans)[::2]
            between[1:, column] = np.maximum.reduceat(upto, at_times)[:-1]
        return come, between

    def sent(self, edge: Ints, left: Ints) -> Ints:
        """How far a source has sent, given its right edge `edge` and the departures it knows of."""
        return edge

    def played(self, left: Ints, changes: Ints, upto: Ints) -> Played:
        """Results of one controller."""
        times, first = self.link.times, self.begin - 1
        edge = np.maximum.accumulate(left[np.searchsorted(times, changes, side="right") - 1] + upto)
        numbers = np.arange(left[first] + 1, left[-1] + 1, EVERY)
        went = times[np.searchsorted(left, numbers)]
        possible = int(self.link.slots[self.counted :].sum())
        return Played(int(left[-1] - left[first]), possible, went - self.came(numbers, edge, changes, left))

    @property
    def counted(self) -> int:
        """The first slot that counts."""
        return int(self.link.times[self.begin - 1]) + 1

    def came(self, numbers: Ints, edge: Ints, changes: Ints, left: Ints) -> Ints:
        """Arrival slots of packets, if the order level was `edge` after each of `changes`."""
        return np.asarray(changes[np.searchsorted(edge, numbers)] + self.lead, np.int32)


class _Download(_Game):
    """A link over which one download starts."""

    def __init__(self, link: Link, lead: int) -> None:
        super().__init__(link, lead)
        # An opportunity that comes before all others is never used, so that one is before those that are played.
        self.begin = max(1, int(np.searchsorted(link.times, 2 * lead)))
        self.before = np.zeros((self.begin, 1), np.int32)

    def sent(self, edge: Ints, left: Ints) -> Ints:
        return np.clip(edge, FIRST_WINDOW, FIRST_WINDOW + SLOW_START * left)

    @property
    def counted(self) -> int:
        return 0

    def came(self, numbers: Ints, edge: Ints, changes: Ints, left: Ints) -> Ints:
        told = changes[np.minimum(np.searchsorted(edge, numbers), len(changes) - 1)]
        heard = np.maximum(-(-(numbers - FIRST_WINDOW) // SLOW_START), 0)
        opened = self.link.times[np.searchsorted(left, heard)]
        came = np.where(numbers <= FIRST_WINDOW, 0, np.maximum(told, opened)) + self.lead
        return np.asarray(np.maximum(came, 2 * self.lead), np.int32)
