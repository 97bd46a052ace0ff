"""A progress bar on a terminal, nothing in a pipe."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ackclock.text import printable

Progress = Callable[[int, int], None]


@contextmanager
def bar(title: str) -> Iterator[Progress | None]:
    """Yield a function of (jobs done, total jobs), or None if standard error is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(escape(printable(title)), total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
