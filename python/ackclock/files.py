"""Files that are written whole or not at all, and errors that name them."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def naming(name: str | os.PathLike[str], part: Path | None = None) -> Iterator[None]:
    """Give errors of the system a name where they have none, or that of an unfinished part.

    Args:
        name: A file or what stands for one, such as `standard output`.
        part: What the file is called until it is complete.

    Raises:
        OSError: of the same kind, with the name as its `filename`.
    """
    try:
        yield
    except OSError as error:
        if error.filename is not None and error.filename != os.fspath(part or ""):
            raise
        if error.errno is None:
            raise OSError(f"{name}: {error}") from None
        raise OSError(error.errno, error.strerror, os.fspath(name)) from None


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside `path` and move it there when it is complete.

    A device or pipe is written directly.

    Raises:
        OSError: naming the file, or the folder that cannot be made, if it cannot be written.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        with naming(path):
            write(path)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path.parent)) from None
    part = path.with_name(f".{path.stem}.part{path.suffix}")
    with naming(path, part):
        try:
            write(part)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


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
    """The path as the engine takes it.

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
    """Write a text file whole."""
    write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))
