"""The window saw-tooth of one long TCP flow over a constant link.

## Source
Lakshman and Madhow, as restated in CR02 section 4, equations 1-4.

## What it does
A window that grows by one packet per round trip from `w0` to the loss window passes two epochs: A, while
the pipe is not yet full (one window per minimum round trip), and B, while the queue grows (limited by the link).

## Differences from the source
CR02 prints the loss window as mu*tau + B + 1. The window at which its own simulations lose is
mu*T + B + 1 with T = tau + 1/mu, because the packet in transmission is in flight too; that is used here.

## Validation
Table 1, item 1 of CR02: loss window 22.00 packets, goodput within 0.2 % of the printed 199.8 kbit/s.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from ackclock.models import allowed, answer
from ackclock.models.answer import Answer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = ("25 0.44 10",)


@dataclass(frozen=True)
class Epoch:
    """Part of a window cycle: `duration` in seconds, `packets` sent in it."""

    duration: float
    packets: float


NOTHING = Epoch(0.0, 0.0)


def growth_below_pipe(w0: float, mu: float, T: float) -> Epoch:
    """Epoch A: the window grows from `w0` packets to the pipe's size mu*T.

    Args:
        w0: Window at the start, packets.
        mu: Service rate, packets per second.
        T: Minimum round trip time, seconds.

    Returns:
        Equations 1 and 2; zero if the window already exceeds the pipe.

    Raises:
        ValueError: if `w0` is below 0, or `mu` or `T` is not above 0.
    """
    allowed.zero_or_more({"w0": w0})
    allowed.above_zero({"mu": mu, "T (minimum RTT)": T})
    return _below_pipe(w0, mu, T)


def growth_above_pipe(w_loss: float, mu: float, T: float) -> Epoch:
    """Epoch B: the window grows from mu*T to `w_loss` packets while the queue fills (equations 3 and 4).

    Raises:
        ValueError: if `w_loss` is below 0, or `mu` or `T` is not above 0.
    """
    allowed.zero_or_more({"w_loss": w_loss})
    allowed.above_zero({"mu": mu, "T (minimum RTT)": T})
    return _above_pipe(w_loss, mu, T)


def loss_window(mu: float, T: float, B: float) -> float:
    """Window in packets at which a buffer of `B` packets overflows; arguments and errors as for `throughput`."""
    allowed.above_zero({"mu": mu, "T (minimum RTT)": T})
    allowed.zero_or_more({"B (buffer)": B})
    return mu * T + B + 1


def throughput(mu: float, T: float, B: float) -> float:
    """Throughput in packets per second.

    Args:
        mu: Service rate, packets per second.
        T: Minimum round trip time with the transmission of one packet, seconds.
        B: Maximum of queued packets, besides the one in transmission.

    Raises:
        ValueError: if `mu` or `T` is not above 0, or `B` is below 0.
    """
    w_loss = loss_window(mu, T, B)
    a = _below_pipe(w_loss / 2, mu, T)
    b = _above_pipe(w_loss, mu, T)
    return (a.packets + b.packets) / (a.duration + b.duration)


def model(
    mu: Annotated[float, "Service rate, packets per second."],
    rtt: Annotated[float, "Minimum round trip time with the transmission of one packet, seconds."],
    buffer: Annotated[float, "Packets that may wait beside the one in transmission."],
) -> Answer:
    """The answer of `ackclock model saw-tooth`."""

    def draw() -> "Figure":
        packets = [most * i / 100 for i in range(101)]
        return answer.curve(
            packets, lambda b: throughput(mu, rtt, b), buffer, "buffer (packets)", "throughput (packets/s)"
        )

    most = max(2 * buffer, mu * rtt, 1.0)
    return answer.throughput(throughput(mu, rtt, buffer), draw)


def _below_pipe(w0: float, mu: float, T: float) -> Epoch:
    t = T * (mu * T - w0)
    if t < 0:
        return NOTHING
    return Epoch(t, (w0 * t + t * t / (2 * T)) / T)


def _above_pipe(w_loss: float, mu: float, T: float) -> Epoch:
    t = (w_loss**2 - (mu * T) ** 2) / (2 * mu)
    if t < 0:
        return NOTHING
    return Epoch(t, mu * t)
