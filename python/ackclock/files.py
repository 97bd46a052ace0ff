"""Files that are written whole or not at all."""

from collections.abc import Callable
from pathlib import Path


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside `path` and move it there when it is complete.

    A device or pipe is written directly.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        write(path)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.stem}.part{path.suffix}")
    try:
        write(part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read_text(path: Path) -> str:
    """The text of a file in UTF-8.

    Raises:
        OSError: if the file cannot be read.
        ValueError: naming the file, if it is not UTF-8.
    """
    try:
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
