"""The compiled module: conversions around the Rust crates, and nothing else.

Times are seconds, sizes bytes, rates bit/s. Wrong input raises `ValueError` with the message that the command
prints (file, line, key, what is allowed), a failed run `RuntimeError`, an unreadable file `OSError`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["RunOutcome", "Segment", "Sender", "__version__", "list_components", "run", "run_many", "sweep", "trace"]

__version__: str

@final
class RunOutcome:
    """One finished run."""

    @property
    def json(self) -> str:
        """The object of one line of `ackclock run --json`."""

    @property
    def series(self) -> dict[str, NDArray[np.float64]]:
        """Time series, empty unless an interval was asked for; the arrays own the memory that Rust filled.

        `time` in seconds, then for each flow `cwnd/0`, `ssthresh/0` (packets), `rate/0` (payload in order since the
        sample before, bit/s), `rtt/0` (mean since the sample before), `srtt/0`, `rto/0` (seconds) with the flow's id
        behind the slash; of the edge `queue` (packets that wait), `link_rate` (bit/s) and `held_acks`, with the flow's
        id where each flow has a channel of its own. What does not exist at an instant is NaN.
        """

def run(
    scenario: str,
    *,
    name: str = "<python>",
    base_dir: str | None = None,
    set: Sequence[str] = (),
    series_interval: float | None = None,
) -> list[RunOutcome]:
    """Run a scenario text, once for each of its `runs`; `name` stands in messages, `base_dir` resolves its files."""

def sweep(
    scenario: str,
    *,
    name: str = "<python>",
    base_dir: str | None = None,
    set: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
    part: tuple[int, int] = (0, 1),
    threads: int | None = None,
) -> list[str]:
    """Run every point of `[sweep]` x every run on all cores and return JSON lines in that order.

    Each line has the key `point` besides those of `run`: `{"edge.buffer": "4p", ...}`. `part = (i, n)` takes only
    the jobs i, i + n, i + 2n, ... of the same order. `progress` is called with (jobs done, jobs in all); the
    interpreter's lock is released otherwise, and Ctrl-C raises `KeyboardInterrupt` after the jobs in work.
    """

def run_many(
    scenarios: Sequence[str],
    *,
    base_dir: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    threads: int | None = None,
) -> list[list[str]]:
    """Run many scenario texts in one parallel batch: for each text the JSON lines of its runs."""

def trace(path: str, *, interval: float = 1.0) -> dict[str, NDArray[np.float64]]:
    """A recording as the link model reads it: `time` (start of each interval, seconds) and `rate` (its mean, bit/s)."""

def list_components() -> str:
    """The catalogue of links, queues, regulators, senders, ... as a JSON object of lists."""

@final
class Segment:
    """One segment that a sender wants on the wire."""

    @property
    def seq(self) -> int:
        """Sequence number of the first byte, modulo 2**32."""

    @property
    def len(self) -> int:
        """Payload bytes."""

    @property
    def retransmission(self) -> bool:
        """Whether these bytes were sent before."""

    @property
    def timestamp(self) -> int | None:
        """The timestamp option's value, where timestamps are on."""

@final
class Sender:
    """A TCP sender driven by hand: it has no clock, every call brings the time along."""

    def __new__(
        cls,
        sender: str | Mapping[str, Any],
        *,
        mss: int,
        max_window: int | None = None,
        initial_window: int | None = None,
        initial_seq: int = 0,
        **options: Any,
    ) -> Self:
        """A sender with endless data.

        Args:
            sender: A row of the sender table (`"reno"`) or a table as in a scenario file (`{"kind": "reno", ...}`).
            mss: Payload bytes of a segment.
            max_window: Largest window, bytes; 500 segments unless given.
            initial_window: First congestion window, bytes; one segment unless given.
            initial_seq: Sequence number of the first byte.
            **options: Further keys of the sender's table, such as `rto={"min": "200ms"}`.

        Raises:
            ValueError: naming the argument, its value and what is allowed, if it is out of range.
            TypeError: naming the argument, if it is of another kind.
        """

    def on_ack(
        self,
        now: float,
        ack: int,
        window: int,
        *,
        sack: Sequence[tuple[int, int]] = (),
        ts: int | None = None,
        ecn_echo: bool = False,
    ) -> None:
        """Take an ACK: `window` in bytes, `sack` as (left, right) edges, `ts` the echoed timestamp.

        A window beyond 65535 bytes is rounded up to what its header field with the smallest scale can say. Errors are
        those of the constructor.
        """

    def poll(self, now: float) -> list[Segment]:
        """The segments to send at `now`; an expired timer is served first."""

    def timeout(self) -> float | None:
        """When `poll` must be called again if nothing arrives."""

    @property
    def cwnd(self) -> float:
        """Congestion window, bytes."""

    @property
    def ssthresh(self) -> float:
        """Slow-start threshold, bytes; infinite where the congestion control has none."""

    @property
    def flight(self) -> int:
        """Bytes sent and not cumulatively acknowledged."""

    @property
    def rto(self) -> float:
        """Present time-out, seconds."""

    @property
    def srtt(self) -> float | None:
        """Smoothed round trip time, seconds; None before the first sample."""
