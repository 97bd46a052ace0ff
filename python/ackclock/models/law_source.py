"""Sources of a delay distribution: a text, the power-controlled channel, or a file.

As text it is a comma-separated list of `DELAY:PROBABILITY`, with delays in ms. The word `channel` is the packet delay
over the power-controlled channel of M05 with a step and a packet size. Otherwise it is a file:

* CSV with the columns `delay_ms` and `probability`;
* JSON of a model, such as `ackclock model packet-delay 2 --json`;
* any other CSV, such as a series of `ackclock run --series` or a recording with delays: the samples of one column;
* a capture (pcapng or pcap): the round-trip times of its first interface;
* a mahimahi recording: the time between opportunities, which is the delay of a full packet on a saturated link.
"""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import ceil, isfinite
from pathlib import Path
from typing import Annotated, Any

from ackclock import capture
from ackclock.files import naming, read_text
from ackclock.models import allowed
from ackclock.models.delay_law import DelayLaw
from ackclock.models.packet_delay import packet_delay
from ackclock.models.power_control import Chain

CHANNEL_TTI = 20.0  # ms

Law = Annotated[
    str, "Law of the delay: D:P,D:P,.. in ms, the word `channel`, or a file (CSV, JSON of a model, capture, recording)."
]
StepOption = Annotated[float, "Step of the power control, dB, where LAW is `channel`."]
FramesOption = Annotated[int, "Frames of a packet, where LAW is `channel`."]
Column = Annotated[str, "Column of a CSV whose samples are meant, in ms."]


def law_of(source: str, step: float, frames: int, column: str, grid: float) -> DelayLaw:
    """The distribution given by a command's arguments, in ms; with a grid, delays are rounded up to its multiples.

    Raises:
        OSError: naming the file, if it cannot be read.
        ValueError: naming the file or argument, and what is allowed.
    """
    allowed.zero_or_more({"bin": grid})
    law = _law_of(source, step, frames, column)
    return law if grid == 0 else _weighted([grid * ceil(d / grid - 1e-9) for d in law.delays], law.probabilities)


def _law_of(source: str, step: float, frames: int, column: str) -> DelayLaw:
    if source == "channel":
        return packet_delay(Chain(step), frames).law.scaled(CHANNEL_TTI)
    if ":" in source and not Path(source).exists():
        return _written(source)
    path = Path(source)
    try:
        return _read(path, column)
    except ValueError as error:
        raise ValueError(f"{path}: {error}" if not str(error).startswith(str(path)) else str(error)) from None


def _written(text: str) -> DelayLaw:
    pairs = []
    for part in text.split(","):
        delay, colon, p = part.partition(":")
        try:
            pairs.append((float(delay), float(p)))
        except ValueError:
            raise ValueError(f"law: {part.strip()!r} is not DELAY:PROBABILITY, such as 40:0.09") from None
        assert colon
    return DelayLaw([delay for delay, _ in pairs], [p for _, p in pairs])


def _read(path: Path, column: str) -> DelayLaw:
    with naming(path), open(path, "rb") as file:
        head = file.read(4)
    if capture.is_capture(head):
        return empirical(capture.round_trips(path))
    text = read_text(path)
    if text.lstrip().startswith("{"):
        return _of_model(json.loads(text.split("\n", 1)[0]))
    if "," in text.split("\n", 1)[0]:
        return _of_table(list(csv.DictReader(io.StringIO(text))), column)
    return empirical(_gaps(text))


def _of_model(printed: dict[str, Any]) -> DelayLaw:
    if "flows" in printed:
        raise ValueError("results of a run hold no samples: take its --series or its --pcap")
    rows = printed.get("result", {}).get("law") or printed.get("result", {}).get("delays")
    if not rows:
        raise ValueError("no law in it: it is not the JSON of a model with a law")
    return DelayLaw([row.get("delay_after_ms", row["delay_ms"]) for row in rows], [row["probability"] for row in rows])


def _of_table(rows: list[dict[str, str]], column: str) -> DelayLaw:
    columns = list(rows[0]) if rows else []
    if not column and {"delay_ms", "probability"} <= set(columns):
        return DelayLaw([_number(row["delay_ms"]) for row in rows], [_number(row["probability"]) for row in rows])
    found = [column] if column else [one for one in columns if one.endswith((".rtt_ms", "delay_ms"))]
    if len(found) != 1 or found[0] not in columns:
        raise ValueError(f"--column must name one of its columns: {', '.join(columns)}")
    return empirical(_number(row[found[0]]) for row in rows if row[found[0]])


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def _gaps(text: str) -> list[float]:
    """Milliseconds between the opportunities of a mahimahi recording."""
    times = [_number(line) for line in text.split()]
    return [after - before for before, after in pairwise(times)]


def empirical(samples: Iterable[float]) -> DelayLaw:
    """The distribution of equally likely samples.

    Raises:
        ValueError: if there are none, or one is not 0 or above.
    """
    values = list(samples)
    if not values:
        raise ValueError("no samples in it")
    for value in values:
        if not isfinite(value) or value < 0:
            raise ValueError(f"the sample {value:g} is not 0 ms or above")
    return _weighted(values, [1 / len(values)] * len(values))


def _weighted(delays: Sequence[float], weights: Sequence[float]) -> DelayLaw:
    found: dict[float, float] = {}
    for delay, weight in zip(delays, weights, strict=True):
        found[delay] = found.get(delay, 0.0) + weight
    total = sum(found.values())
    return DelayLaw(sorted(found), [found[delay] / total for delay in sorted(found)])
