"""ackclock: TCP over links whose rate and delay vary.

`run`, `sweep` and `compare` simulate scenarios and return `Results` (pandas tables, NumPy series), `plot` draws them,
`regulator` and `congestion_control` register classes written in Python, `Sender` is a TCP sender driven step by step,
`models` has analytical models, and `paper` repeats published results.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ackclock._core import (
    AckSample,
    CongestionControl,
    CongestionEvent,
    Packet,
    Queue,
    Regulator,
    Segment,
    Sender,
    __version__,
)
from ackclock.classes import check, congestion_control, regulator
from ackclock.recordings import Recording, recording
from ackclock.results import Results
from ackclock.simulate import compare, run, sweep

if TYPE_CHECKING:
    from ackclock import models as models
    from ackclock import paper as paper
    from ackclock import plot as plot

__all__ = [
    "AckSample",
    "CongestionControl",
    "CongestionEvent",
    "Packet",
    "Queue",
    "Recording",
    "Regulator",
    "Results",
    "Segment",
    "Sender",
    "__version__",
    "check",
    "compare",
    "congestion_control",
    "models",
    "paper",
    "plot",
    "recording",
    "regulator",
    "run",
    "sweep",
]

# SciPy and matplotlib take seconds to import, so they are imported only when needed.
_LAZY = ("models", "paper", "plot")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"ackclock.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
