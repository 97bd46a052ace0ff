"""Recordings of links, in any form that `ackclock import` reads."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ackclock import _core
from ackclock.files import in_unicode, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Recording:
    """A recording as the link model plays it.

    Attributes:
        name: The path of its file.
        form: The form that it was read as.
        times: Start of each interval, seconds.
        rates: Mean rate in each interval, bit/s.
        certainty: What the rates are to the capacity of the link: `capacity`, `lower-bound`, `sender-limited` or
            `application`; None where nothing is known.
        why: Why it is this one.
        notes: What was left out or assumed.
        text: The recording as the text that `save` writes.
    """

    name: str
    form: str
    times: NDArray[np.float64]
    rates: NDArray[np.float64]
    certainty: str | None
    why: str
    notes: tuple[str, ...]
    text: str

    def __repr__(self) -> str:
        mean = self.rates.mean() / 1e3
        return f"<Recording {self.name}: {self.form}, {mean:.4g} kbit/s on average, {self.certainty or 'not graded'}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it in a form that scenarios play: CSV, or mahimahi's form where it has opportunities.

        Raises:
            OSError: naming the file, if it cannot be written.
        """
        write_text(Path(path), self.text)

    def plot(self) -> Figure:
        """Its rate over time, and the share of time below each rate."""
        from ackclock import plot

        return plot.trace(self.times, self.rates, self.name)


def recording(
    path: str | os.PathLike[str],
    *,
    form: str = "auto",
    direction: Literal["down", "up"] | None = None,
    time: str | int | None = None,
    time_unit: str | None = None,
    rate: str | int | None = None,
    unit: str | None = None,
    delay: str | int | None = None,
    delay_unit: str | None = None,
    loss: str | int | None = None,
    percent: bool = False,
    separator: str | None = None,
    decimal: Literal[".", ","] = ".",
    skip: int | None = None,
    missing: Literal["refuse", "hold", "zero"] | None = None,
    sort: bool = False,
    run: int | None = None,
    probe_rate: str | None = None,
    interval: float = 1.0,
) -> Recording:
    """Read a recording of any form.

    Args:
        path: The file, or a built-in recording such as `synthetic:lte-driving`.
        form: One of those of `ackclock import --as`; by the content of the file unless given.
        direction: Direction to read, seen from the mobile, where the file has both.
        time: Column of times of a table that is none of the known forms, by name or number from 1.
        time_unit: Unit of the times: `s`, `ms`, `us`, `ns`, `iso`.
        rate: Column of rates.
        unit: Unit of the rates, such as `"Mbit/s"`; `B` are bytes since the row before.
        delay: Column of delays of one direction.
        delay_unit: Unit of the delays; by default that in the header, or ms.
        loss: Column of losses.
        percent: Whether losses are in percent.
        separator: What stands between fields: `,`, `;`, `tab`, `space`.
        decimal: Sign before the decimals of a number.
        skip: Lines before the header.
        missing: What becomes of rows without a rate; they are refused unless given.
        sort: Whether rows are put in order of time.
        run: Run to read of a file with several.
        probe_rate: Rate of the link of probes (irtt, ping), which measure none, such as `"5Mbit/s"`.
        interval: Seconds of each interval of `times` and `rates`.

    Raises:
        OSError: naming the file, if it cannot be read.
        ValueError: naming file, line and column, if the file is not such a recording.
    """
    texts = {
        "form": None if form == "auto" else form,
        "direction": direction,
        "time": time,
        "time_unit": time_unit,
        "rate": rate,
        "unit": unit,
        "delay": delay,
        "delay_unit": delay_unit,
        "loss": loss,
        "percent": "true" if percent else None,
        "separator": separator,
        "decimal": None if decimal == "." else decimal,
        "skip": skip,
        "missing": missing,
        "sort": "true" if sort else None,
        "run": run,
        "probe_rate": probe_rate,
    }
    name = in_unicode(Path(path))
    options = {key: str(value) for key, value in texts.items() if value is not None}
    arrays, about, text = _core.read_recording(name, options, interval=interval)
    known = json.loads(about)
    certainty = known["certainty"] or {"grade": None, "why": ""}
    return Recording(
        name=name,
        form=known["form"],
        times=arrays["time"],
        rates=arrays["rate"],
        certainty=certainty["grade"],
        why=certainty["why"],
        notes=tuple(known["notes"]),
        text=text,
    )
