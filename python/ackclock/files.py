"""Files that are written completely or not at all, and errors that name them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ackclock import _core


@contextmanager
def naming(name: str | os.PathLike[str]) -> Iterator[None]:
    """Add a file name to operating system errors without one.

    Args:
        name: A file, or a name such as `standard output`.

    Raises:
        OSError: of the same kind, with the name as its `filename`.
    """
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        if error.errno is None:
            raise OSError(f"{name}: {error}") from None
        raise OSError(error.errno, error.strerror, os.fspath(name)) from None


def read_text(path: Path) -> str:
    """The text of a file in UTF-8.

    Raises:
        OSError: naming the file, if it cannot be read.
        ValueError: naming the file, if it is not UTF-8.
    """
    try:
        with naming(path):
            return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8: {error}") from None


def in_unicode(path: Path) -> str:
    """The path as text for the engine.

    Raises:
        ValueError: if its bytes are not UTF-8.
    """
    name = str(path)
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name!a}: a file name that is not UTF-8; rename the file or its folder") from None
    return name


def write_text(path: Path, text: str) -> None:
    """Write a complete text file, and create missing folders.

    Raises:
        OSError: naming the file, if it cannot be written.
    """
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a complete file, and create missing folders; errors as for `write_text`."""
    _core.write_whole(path, content)
