"""Throughput lost by spurious timeouts and fast retransmits, for a TCP limited by its window.

## Source
M05 section 4.5, table 4.3; table 5.2.

## What it does
The window is w packets, the round trip T; undisturbed TCP achieves w/T. After a spurious fast retransmit the
window grows by one packet per round trip from floor(w/2); after a timeout it doubles from one packet to floor(w/2) and
then grows by one. In these j round trips l packets are sent, d = j w - l fewer than in full windows. If an event
has probability P per packet, throughput falls by the share d P / (1 + d P).

## Differences from the source
None. Events are independent and rare, and the timer is ideal, as there. T contains the mean retransmission delay, which
the printed 34.8 KiB/s needs: 0.21 s gives 34.9.

## Validation
The deficits that the source works out for windows of 5 and 8 packets, all of table 4.3 but for one entry, and a
simulation of cycles round trip by round trip (tests).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from ackclock.models import allowed
from ackclock.models.answer import Answer
from ackclock.models.packet_delay import Frames, packet_delay, spurious_fast_retransmit
from ackclock.models.power_control import Chain, Step

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = ("5 2", "8 1 --step 0.2 --packet 960")
MOST_WINDOW = 100_000


def after_fast_retransmit(window: int) -> list[int]:
    """Packets sent in each round trip from a fast retransmit until the window is full again."""
    _check(window)
    return list(range(max(1, window // 2), window))


def after_timeout(window: int) -> list[int]:
    """Packets sent in each round trip from a timeout until the window is full again."""
    _check(window)
    threshold, sent, current = max(1, window // 2), [], 1
    while current < window:
        sent.append(current)
        current = min(2 * current, threshold) if current < threshold else current + 1
    return sent


def deficit(sent: list[int], window: int) -> int:
    """d: packets missing compared with full windows."""
    return len(sent) * window - sum(sent)


def degradation(missing: float, p: float) -> float:
    """Share of throughput lost by events that cost `missing` packets each, with probability `p` per packet.

    Raises:
        ValueError: if `missing` is below 0, or `p` not from 0 to 1.
    """
    allowed.zero_or_more({"missing": missing})
    allowed.share({"p": p})
    return missing * p / (1 + missing * p)


@dataclass(frozen=True)
class Path:
    """A path with a window below its bandwidth-delay product.

    Attributes:
        window: Largest window, packets.
        packet: Bytes of a packet.
        rest: Round trip without the retransmission delay of the link, seconds.

    Raises:
        ValueError: if a number is not above 0, or `window` not from 1 to 100 000.
    """

    window: int
    packet: float = 1500.0
    rest: float = 0.2

    def __post_init__(self) -> None:
        _check(self.window)
        allowed.above_zero({"packet": self.packet, "rest": self.rest})

    def ideal(self, delay: float) -> float:
        """A full window every round trip, KiB/s, with a mean retransmission delay of `delay` seconds."""
        return self.window * self.packet / (self.rest + delay) / 1024

    def after_timeouts(self, delay: float, p_timeout: float) -> float:
        """Throughput with timeouts, KiB/s."""
        return self.ideal(delay) * (1 - degradation(deficit(after_timeout(self.window), self.window), p_timeout))


def model(
    window: Annotated[int, "Largest window, packets."],
    frames: Frames,
    step: Step = 0.06,
    packet: Annotated[float, "Bytes of a packet."] = 1500.0,
    rest: Annotated[float, "Round trip without the retransmission delay of the link, seconds."] = 0.2,
    tti: Annotated[float, "Length of a slot of the link, ms."] = 20.0,
) -> Answer:
    """The answer of `ackclock model degradation`."""
    path, chain = Path(window, packet, rest), Chain(step)
    allowed.above_zero({"tti": tti})
    law = packet_delay(chain, frames).law
    events = (
        ("fast retransmit", after_fast_retransmit(window), spurious_fast_retransmit(chain, frames)),
        ("time-out", after_timeout(window), law.p_timeout),
    )
    rows = [
        {
            "event": name,
            "probability": p,
            "packets_fewer": deficit(sent, window),
            "degradation": degradation(deficit(sent, window), p),
        }
        for name, sent, p in events
    ]
    ideal = path.ideal(law.mean * tti / 1e3)
    return Answer({"ideal_kib_per_s": ideal, "events": rows}, draw=lambda: picture(window))


def picture(window: int) -> "Figure":
    """Packets sent in each round trip after either event."""
    from ackclock import plot

    with plot.panel("round trips after the event", "packets sent") as (figure, axes):
        for i, (name, sent) in enumerate(
            (("fast retransmit", after_fast_retransmit(window)), ("time-out", after_timeout(window)))
        ):
            full = [*sent, window, window]
            axes.step(range(len(full)), full, where="post", color=plot.COLOURS[i], label=f"after a {name}")
        axes.axhline(window, color="#777777", linestyle="--", linewidth=1.2, label="full window")
        axes.set_ylim(0, 1.1 * window)
        axes.legend(loc="lower right")
    return figure


def _check(window: int) -> None:
    allowed.at_most({"window": window}, MOST_WINDOW)
