"""Figures as files and as text: equal figures give equal bytes."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure

from ackclock import _core


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a complete figure; the extension (`.svg`, `.png`, `.pdf`) selects the format.

    Raises:
        OSError: naming the file, if it cannot be written.
        ValueError: if the extension is not that of an image format; nothing is written then.
    """
    target = Path(path)
    check_ending(target)
    drawn = io.BytesIO()
    form = target.suffix[1:].lower()
    with _reproducible(target.stem):
        figure.savefig(drawn, format=form, dpi=150, metadata={"Date": None} if form == "svg" else None)
    _core.write_whole(target, drawn.getvalue())


def check_ending(path: Path) -> None:
    """Check that a path has the extension of an image format.

    Raises:
        ValueError: naming the known extensions, if it has not.
    """
    # Without an extension, matplotlib would write `path.png`.
    endings = [f".{name}" for name in FigureCanvasBase.get_supported_filetypes()]
    if path.suffix.lower() not in endings:
        raise ValueError(f"{path}: is no picture; its name must end in one of {', '.join(sorted(endings))}")


def svg(figure: Figure, name: str) -> str:
    """A figure as an `<svg>` element; `name` makes its ids unique on a page with several figures."""
    text = io.StringIO()
    with _reproducible(name):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


@contextmanager
def _reproducible(name: str) -> Iterator[None]:
    """Settings that make equal figures give equal bytes."""
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none", "font.family": ["DejaVu Sans", "sans-serif"]}):
        yield
