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
    """Write a figure whole; the ending (`.svg`, `.png`, `.pdf`) chooses the format.

    Raises:
        OSError: naming the file, if it cannot be written.
        ValueError: if the path has no ending of a picture; nothing is written then.
    """
    target = Path(path)
    check_ending(target)
    drawn = io.BytesIO()
    form = target.suffix[1:].lower()
    with _reproducible(target.stem):
        figure.savefig(drawn, format=form, dpi=150, metadata={"Date": None} if form == "svg" else None)
    _core.write_whole(target, drawn.getvalue())


def check_ending(path: Path) -> None:
    """Let a path pass whose ending is that of a picture.

    Raises:
        ValueError: naming the endings, if it is not.
    """
    # matplotlib would write `path.png` where there is no ending.
    endings = [f".{name}" for name in FigureCanvasBase.get_supported_filetypes()]
    if path.suffix.lower() not in endings:
        raise ValueError(f"{path}: is no picture; its name must end in one of {', '.join(sorted(endings))}")


def svg(figure: Figure, name: str) -> str:
    """A figure as an `<svg>` element; `name` keeps its ids apart from those of other figures on a page."""
    text = io.StringIO()
    with _reproducible(name):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


@contextmanager
def _reproducible(name: str) -> Iterator[None]:
    """Equal figures give equal bytes."""
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none", "font.family": ["DejaVu Sans", "sans-serif"]}):
        yield
