"""The compiled module: only conversions for the Rust crates.

Times are seconds, sizes bytes, rates bit/s. Wrong input raises `ValueError` with the message that the command
prints (file, line, key, what is allowed), a failed run `RuntimeError`, an unreadable file `OSError`.
"""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

__all__ = [
    "AckSample",
    "CongestionControl",
    "CongestionEvent",
    "Jobs",
    "Packet",
    "Queue",
    "Regulator",
    "RunOutcome",
    "Segment",
    "Sender",
    "__version__",
    "add_congestion_control",
    "add_regulator",
    "list_components",
    "read_recording",
    "run",
    "run_many",
    "sweep",
    "trace",
    "write_whole",
]

__version__: str

@final
class RunOutcome:
    """A finished run."""

    @property
    def json(self) -> str:
        """JSON object, as in a line of `ackclock run --json`."""

    @property
    def series(self) -> dict[str, NDArray[np.float64]]:
        """Time series, empty unless an interval was given; the arrays own the run's memory.

        `time` in seconds, then for each flow `cwnd/0`, `ssthresh/0`, `advertised/0` (packets), `rate/0` (payload in
        order since the previous sample, bit/s), `rtt/0` (mean since then), `srtt/0`, `rto/0` (seconds) with
        the flow's id after the slash; for the edge `queue` (queued packets), `link_rate` (bit/s) and `held_acks`,
        with the flow's id if each flow has its own channel. Missing values are NaN.
        """

def run(
    scenario: str,
    *,
    name: str = "<python>",
    base_dir: str | None = None,
    set: Sequence[str] = (),
    series_interval: float | None = None,
    extra_wakes: bool = False,
) -> list[RunOutcome]:
    """Run a scenario text, once for each of its `runs`; `name` is used in messages, `base_dir` resolves its files.

    With `extra_wakes`, regulators in Python are woken more often than they ask for; results must not change.
    """

def add_regulator(registration: tuple[str, type, str, str, str], scope: str) -> None:
    """Register a class as a regulator.

    `registration` is its name, the class, a JSON object of its keys with their defaults, its description, and the
    SHA-256 of its source.

    Raises:
        ValueError: if a built-in regulator has this name, or the scope is unknown.
    """

def add_congestion_control(registration: tuple[str, type, str, str, str]) -> None:
    """Register a class as a sender with SACK recovery and its congestion control; `registration` as above.

    Raises:
        ValueError: if a built-in sender has this name, or a key is an option of all senders.
    """

@disjoint_base
class CongestionControl:
    """Base class of congestion controls in Python; a subclass overrides the methods that it needs.

    Sizes are bytes of payload. A window below one segment counts as one segment. An exception ends the run.
    """

    counts_marks: ClassVar[bool] = False
    """Whether the class reacts to `sample.marked`; otherwise marks reduce the window as losses do."""

    @property
    def window(self) -> float:
        """Congestion window, bytes."""

    @window.setter
    def window(self, bytes: float) -> None: ...
    @property
    def ssthresh(self) -> float:
        """Slow-start threshold, bytes."""

    @ssthresh.setter
    def ssthresh(self, bytes: float) -> None: ...
    @property
    def pacing_rate(self) -> float | None:
        """Pacing rate, bit/s; None sends without pacing."""

    @pacing_rate.setter
    def pacing_rate(self, rate: float | None) -> None: ...
    @property
    def mss(self) -> int:
        """Maximum segment size, bytes of payload."""

    def start(self, initial_window: int) -> None:
        """The connection starts; `window` is the initial window already."""

    def on_ack(self, sample: AckSample) -> None:
        """An ACK delivered data."""

    def on_congestion(self, event: CongestionEvent) -> None:
        """A loss, timeout or congestion mark requires a smaller window."""

    def on_spurious(self) -> None:
        """The latest reduction was spurious: the base class restores the window and the threshold."""

@final
class AckSample:
    """An ACK that delivered data."""

    @property
    def now(self) -> float:
        """Arrival time, seconds."""

    @property
    def acked(self) -> int:
        """Bytes newly acknowledged in order."""

    @property
    def delivered(self) -> int:
        """Bytes newly delivered, in order or by SACK."""

    @property
    def in_flight(self) -> int:
        """Bytes in flight after the ACK."""

    @property
    def rtt(self) -> float | None:
        """Round-trip time of this ACK, seconds; None without a sample."""

    @property
    def srtt(self) -> float | None:
        """Smoothed round-trip time, seconds."""

    @property
    def min_rtt(self) -> float | None:
        """Minimum round-trip time of the connection, seconds."""

    @property
    def rate(self) -> int | None:
        """Delivery rate, bit/s; None without a sample."""

    @property
    def app_limited(self) -> bool:
        """Whether the application limited the sending during the sample of the delivery rate."""

    @property
    def window_limited(self) -> bool:
        """Whether the window limited the sender."""

    @property
    def phase(self) -> str:
        """Phase of loss recovery: "open", "fast-recovery" (the window must not grow) or "timeout-recovery"."""

    @property
    def lost(self) -> int:
        """Segments newly found lost."""

    @property
    def marked(self) -> int:
        """Bytes newly reported as marked; 0 unless the sender has ecn="accurate" or ecn="dctcp"."""

@final
class CongestionEvent:
    """A congestion event."""

    @property
    def now(self) -> float:
        """Time of detection, seconds."""

    @property
    def cause(self) -> str:
        """Cause: "fast-retransmit", "timeout" or "ecn"."""

    @property
    def flight(self) -> int:
        """Bytes in flight before any retransmission."""

    @property
    def window(self) -> int:
        """Window in use, bytes: the smaller of the congestion window and the advertised window."""

    @property
    def repeated_timeout(self) -> bool:
        """Whether the same segment had timed out before."""

@final
class Packet:
    """A TCP packet that crosses the edge; numbers are modulo 2**32."""

    @property
    def flow(self) -> int:
        """Number of the flow."""

    @property
    def seq(self) -> int:
        """Sequence number of the first byte."""

    @property
    def ack(self) -> int:
        """Acknowledgement number: the next byte expected."""

    @property
    def payload(self) -> int:
        """Bytes of payload."""

    @property
    def size(self) -> int:
        """Size with headers, bytes."""

    @property
    def window(self) -> int | None:
        """Advertised window, bytes; None if its scale is unknown."""

    @property
    def is_syn(self) -> bool:
        """Whether it opens a connection: SYN."""

    @property
    def is_pure_ack(self) -> bool:
        """Whether it has no data, SYN, FIN or RST."""

    @property
    def sack(self) -> list[tuple[int, int]]:
        """SACK blocks: first byte and byte after the last of each."""

    def advertise(self, bytes: int) -> None:
        """Limit the advertised window of this ACK, bytes.

        The receiver's window is not exceeded, and the right edge does not move left of one advertised before.
        """

@final
class Queue:
    """Queue of a flow's data at an instant."""

    @property
    def waiting_packets(self) -> int:
        """Packets that wait for transmission."""

    @property
    def waiting_bytes(self) -> int:
        """Bytes that wait for transmission, headers included."""

    @property
    def in_transmission(self) -> int:
        """Packets in transmission."""

    @property
    def rate(self) -> int:
        """Rate of the link at this instant, bit/s."""

    def room(self, size: int = 1500) -> int | None:
        """Packets of `size` bytes that still fit into the buffer; None if the buffer is unlimited."""

@disjoint_base
class Regulator:
    """Base class of regulators in Python; a subclass overrides the methods that it needs.

    Times are seconds. A method that is not overridden costs nothing. An exception ends the run.
    """

    @property
    def wake(self) -> float | None:
        """Time of the next `on_timer`; None: none."""

    @wake.setter
    def wake(self, time: float | None) -> None: ...
    def send(self, ack: Packet) -> None:
        """Send a held ACK to the sender."""

    def start(self, flow: int, user: int) -> None:
        """The first flow of this regulator starts."""

    def on_data(self, now: float, packet: Packet, queue: Queue) -> str | None:
        """A data packet arrives from the network: return None to queue it, "drop" or "mark" (ECN)."""

    def on_queued(self, now: float, packet: Packet, queue: Queue) -> None:
        """A packet entered the queue."""

    def on_dropped(self, now: float, packet: Packet, cause: str, queue: Queue) -> None:
        """The queue refused or dropped a packet.

        `cause` is "full", "policy", "medium", "outage", "handover" or "aged".
        """

    def on_departed(self, now: float, packet: Packet, queue: Queue) -> None:
        """The last byte of a packet left the queue."""

    def on_idle(self, now: float, queue: Queue) -> None:
        """The queue is empty, and nothing is in transmission."""

    def on_ack(self, now: float, ack: Packet, queue: Queue) -> Packet | None:
        """An ACK arrives from the mobile: return it to pass it on, or None to hold it until `send`."""

    def on_timer(self, now: float, queue: Queue) -> None:
        """The time `wake` has come; `wake` is None again."""

def sweep(
    scenario: str,
    *,
    name: str = "<python>",
    base_dir: str | None = None,
    set: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
    threads: int | None = None,
) -> list[str]:
    """Simulate all runs of every point of `[sweep]` on all cores and return their JSON lines in order.

    Each line has the key `point` besides those of `run`: `{"edge.buffer": "4p", ...}`. `progress` is called with (jobs
    done, total jobs). `threads` is the maximum number of cores. The interpreter lock is otherwise released, and
    Ctrl-C raises `KeyboardInterrupt` within a fraction of a second.
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
    """Simulate several scenario texts in one parallel batch and return the JSON lines of each text's runs.

    `out` and `overwrite` as in `Jobs.of_sweep`.
    """

@final
class Jobs:
    """All runs of a sweep with their JSON lines. With a file, each line is stored at once."""

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
        """Read a sweep. Lines that `out` or `OUT.partial` already contains are reused.

        `out` with lines of other runs, another build or changed inputs raises `ValueError`; with `overwrite` they are
        replaced.
        """

    @property
    def found(self) -> int:
        """Number of lines reused from the file."""

    @property
    def missing(self) -> list[int]:
        """Numbers of the jobs without lines."""

    @property
    def uses_python(self) -> bool:
        """Whether a scenario names a regulator in Python."""

    def __len__(self) -> int: ...
    def run(
        self,
        only: Sequence[int] | None = None,
        *,
        progress: Callable[[int, int], None] | None = None,
        threads: int | None = None,
    ) -> list[str]:
        """Run these jobs, or all missing ones, and return their lines."""

    def put(self, job: int, line: str) -> None:
        """Store the line of a job that another process ran."""

    def finish(self) -> list[str]:
        """Return all lines in job order, and give the file its final name."""

def trace(path: str, *, interval: float = 1.0) -> dict[str, NDArray[np.float64]]:
    """A recording as the link model reads it: `time` (start of each interval, seconds) and `rate` (its mean, bit/s)."""

def read_recording(
    path: str | PathLike[str], options: Mapping[str, str], *, interval: float = 1.0
) -> tuple[dict[str, NDArray[np.float64]], str, str]:
    """A recording of any form: arrays as of `trace`; form, certainty and notes as JSON; the text of it as ours.

    `options` are those of `ackclock.recording`, as text.
    """

def write_whole(path: str | PathLike[str], content: bytes) -> None:
    """Write a file that is complete or absent; missing folders are created.

    Links, pipes and folders that another user has planted on the path are refused.
    """

def list_components() -> str:
    """All links, queues, regulators, senders, ... as a JSON object of lists."""

@final
class Segment:
    """A segment sent by a sender."""

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
        """Value of the timestamp option; None without timestamps."""

    @property
    def timestamp_echo(self) -> int | None:
        """Echoed timestamp; None without timestamps."""

    @property
    def flags(self) -> str:
        """Control bits as letters: `S` SYN, `F` FIN, `.` ACK, `E` ECE, `W` CWR."""

    @property
    def ack(self) -> int | None:
        """Acknowledgement number; None in an opening SYN."""

    @property
    def mss(self) -> int | None:
        """MSS offered in a SYN, bytes."""

    @property
    def window_scale(self) -> int | None:
        """Window scale offered in a SYN."""

    @property
    def sack_permitted(self) -> bool:
        """Whether a SYN permits SACK."""

@final
class Sender:
    """A TCP sender driven step by step. It has no clock: every call takes the time as an argument."""

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
        """A sender with endless data on an existing connection; with a `preset`, as the preset says.

        With a handshake (in the preset `linux`, or with `handshake="on"`), the connection begins with the
        peer's SYN (`on_syn`) or with the sender's (`connect`).

        Args:
            sender: A name (`"reno"`) or a table as in a scenario file (`{"kind": "reno", ...}`).
            mss: Payload of a full segment, bytes. Required without a preset.
            max_window: Maximum window, bytes. Default: the preset's, or 500 segments.
            initial_window: Initial congestion window, bytes. Default: the preset's, or one segment.
            initial_seq: Sequence number of the first byte; a SYN has the one before.
            preset: Scenario preset with defaults for flow and sender.
            **options: Further keys of the sender's table, such as `rto={"min": "200ms"}`.

        Raises:
            ValueError: if an argument is out of range; names its value and what is allowed.
            TypeError: if an argument has the wrong type.
        """

    def connect(self, now: float) -> None:
        """Open the connection with a SYN; no effect without a handshake, or after the connection has begun."""

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
        """Handle the peer's SYN or, with `ack`, its SYN-ACK.

        `window` is in bytes and never scaled. `ts` is the echoed timestamp: 0 in a first SYN, and None if the
        peer offers no timestamps. `ecn`: whether it requests or accepts ECN.
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
        """Handle an ACK: `window` in bytes, `sack` as (left, right) edges, `ts` the echoed timestamp.

        A window above 65535 bytes is rounded up to a multiple of the smallest sufficient window scale. Errors are
        those of the constructor.
        """

    def on_fin(self, now: float, ack: int, window: int, *, ts: int | None = None) -> None:
        """Handle an ACK with FIN, which closes the peer's direction."""

    def write(self, bytes: int) -> None:
        """Give the sender `bytes` more to send; endless data ends with the first call.

        Raises:
            ValueError: after `close`.
        """

    def close(self) -> None:
        """End the data. The FIN is sent with the last byte, or after it."""

    def poll(self, now: float) -> list[Segment]:
        """Segments to send at `now`, after handling expired timers."""

    def timeout(self) -> float | None:
        """Time of the next `poll` if nothing arrives."""

    def info(self) -> dict[str, int]:
        """TCP_INFO of the sender, as in Linux: `tcpi_snd_cwnd`, `tcpi_ca_state`, ...

        Windows are in segments and times in microseconds; `ackclock exchange --names` lists all names.
        """

    @property
    def cwnd(self) -> float:
        """Congestion window, bytes."""

    @property
    def ssthresh(self) -> float:
        """Slow-start threshold, bytes; infinite if there is none."""

    @property
    def flight(self) -> int:
        """Bytes sent and not cumulatively acknowledged."""

    @property
    def rto(self) -> float:
        """Current retransmission timeout, seconds."""

    @property
    def srtt(self) -> float | None:
        """Smoothed round-trip time, seconds; None before the first sample."""
