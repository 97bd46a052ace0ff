"""The compiled module: conversions around the Rust crates, and nothing else.

Times are seconds, sizes bytes, rates bit/s. Wrong input raises `ValueError` with the message that the command
prints (file, line, key, what is allowed), a failed run `RuntimeError`, an unreadable file `OSError`.
"""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Jobs",
    "RunOutcome",
    "Segment",
    "Sender",
    "__version__",
    "list_components",
    "run",
    "run_many",
    "sweep",
    "trace",
    "write_whole",
]

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

        `time` in seconds, then for each flow `cwnd/0`, `ssthresh/0`, `advertised/0` (packets), `rate/0` (payload in
        order since the sample before, bit/s), `rtt/0` (mean since the sample before), `srtt/0`, `rto/0` (seconds) with
        the flow's id behind the slash; of the edge `queue` (packets that wait), `link_rate` (bit/s) and `held_acks`,
        with the flow's id where each flow has a channel of its own. What does not exist at an instant is NaN.
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
    threads: int | None = None,
) -> list[str]:
    """Run every point of `[sweep]` x every run on all cores and return JSON lines in that order.

    Each line has the key `point` besides those of `run`: `{"edge.buffer": "4p", ...}`. `progress` is called with (jobs
    done, jobs in all). `threads` is the most cores to use. The interpreter's lock is released otherwise, and Ctrl-C
    raises `KeyboardInterrupt` within a fraction of a second.
    """

def run_many(
    scenarios: Sequence[str],
    *,
    base_dir: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    threads: int | None = None,
    out: str | PathLike[str] | None = None,
    overwrite: bool = False,
) -> list[list[str]]:
    """Run many scenario texts in one parallel batch: for each text the JSON lines of its runs.

    `out` and `overwrite` as in `Jobs.of_sweep`.
    """

@final
class Jobs:
    """The runs of every point of a sweep, and their JSON lines. A file keeps each line as soon as it is there."""

    @staticmethod
    def of_sweep(
        scenario: str,
        *,
        name: str = "<python>",
        base_dir: str | None = None,
        set: Sequence[str] = (),
        out: str | PathLike[str] | None = None,
        overwrite: bool = False,
    ) -> Jobs:
        """Read a sweep. Lines of it that `out` or `OUT.partial` has already are taken from there.

        `out` with lines of other runs, another build or changed inputs raises `ValueError`; with `overwrite` they are
        replaced.
        """

    @property
    def found(self) -> int:
        """How many lines were taken from the file."""

    @property
    def missing(self) -> list[int]:
        """The numbers of the jobs whose lines are missing."""

    def __len__(self) -> int: ...
    def run(
        self,
        only: Sequence[int] | None = None,
        *,
        progress: Callable[[int, int], None] | None = None,
        threads: int | None = None,
    ) -> list[str]:
        """Run these jobs, or all that are missing, and return their lines."""

    def put(self, job: int, line: str) -> None:
        """Take the line of a job that another process ran."""

    def finish(self) -> list[str]:
        """Return all lines in the order of the jobs; their file takes its name."""

def trace(path: str, *, interval: float = 1.0) -> dict[str, NDArray[np.float64]]:
    """A recording as the link model reads it: `time` (start of each interval, seconds) and `rate` (its mean, bit/s)."""

def write_whole(path: str | PathLike[str], content: bytes) -> None:
    """Write a file that is complete or absent; missing folders are created.

    Nothing that another user planted on the path is followed or filled: a link, a pipe, a folder.
    """

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

    @property
    def timestamp_echo(self) -> int | None:
        """The timestamp that it echoes, where timestamps are on."""

    @property
    def flags(self) -> str:
        """Control bits as letters: `S` SYN, `F` FIN, `.` ACK, `E` ECE, `W` CWR."""

    @property
    def ack(self) -> int | None:
        """The next number expected of the peer; None in a SYN that opens the connection."""

    @property
    def mss(self) -> int | None:
        """Of a SYN: the largest segment that it offers, bytes."""

    @property
    def window_scale(self) -> int | None:
        """Of a SYN: the shift of windows that it offers."""

    @property
    def sack_permitted(self) -> bool:
        """Of a SYN: whether it permits SACK."""

@final
class Sender:
    """A TCP sender driven by hand: it has no clock, every call brings the time along."""

    def __new__(
        cls,
        sender: str | Mapping[str, Any],
        *,
        mss: int | None = None,
        max_window: int | None = None,
        initial_window: int | None = None,
        initial_seq: int = 0,
        preset: str | None = None,
        **options: Any,
    ) -> Self:
        """A sender: with endless data on a connection that exists, or as a `preset` says, with what is written.

        With a handshake, which the preset `linux` has and `handshake="on"` asks for, the connection begins with the
        peer's SYN (`on_syn`) or with one of its own (`connect`).

        Args:
            sender: A row of the sender table (`"reno"`) or a table as in a scenario file (`{"kind": "reno", ...}`).
            mss: Payload bytes of a segment. Only a preset says it otherwise.
            max_window: Largest window, bytes; the preset's, or 500 segments, unless given.
            initial_window: First congestion window, bytes; the preset's, or one segment, unless given.
            initial_seq: Sequence number of the first byte; a SYN has the one before.
            preset: Preset of scenarios whose flows and senders set what is not given here.
            **options: Further keys of the sender's table, such as `rto={"min": "200ms"}`.

        Raises:
            ValueError: naming the argument, its value and what is allowed, if it is out of range.
            TypeError: naming the argument, if it is of another kind.
        """

    def connect(self, now: float) -> None:
        """Open the connection with a SYN; does nothing without a handshake, or once the connection has begun."""

    def on_syn(
        self,
        now: float,
        window: int,
        *,
        seq: int = 0,
        ack: int | None = None,
        mss: int | None = None,
        window_scale: int | None = None,
        sack_permitted: bool = False,
        ts: int | None = None,
        ecn: bool = False,
    ) -> None:
        """Take the peer's SYN, or with `ack` its answer to ours.

        `window` is in bytes and never scaled; `ts` is the echoed timestamp, 0 where it answers none, and None where the
        peer offers no timestamps; `ecn` whether it offers, or agrees to, explicit congestion notification.
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

    def on_fin(self, now: float, ack: int, window: int, *, ts: int | None = None) -> None:
        """Take an ACK with which the peer closes its own direction."""

    def write(self, bytes: int) -> None:
        """Give the sender `bytes` more to send; endless data ends with the first call.

        Raises:
            ValueError: after `close`.
        """

    def close(self) -> None:
        """Nothing more is written: the FIN goes with the last byte, or after it."""

    def poll(self, now: float) -> list[Segment]:
        """The segments to send at `now`; an expired timer is served first."""

    def timeout(self) -> float | None:
        """When `poll` must be called again if nothing arrives."""

    def info(self) -> dict[str, int]:
        """What Linux would tell of the socket under TCP_INFO: `tcpi_snd_cwnd`, `tcpi_ca_state`, ...

        Windows are in segments and times in microseconds, as there; `ackclock exchange --names` lists all names.
        """

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
