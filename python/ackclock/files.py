"""Files that are written whole or not at all, and errors that name them."""

import errno
import os
import shutil
import stat
import tempfile
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
    """Let `write` fill a file and move it to `path` when it is complete.

    Until then it lies beside `path`, in a folder that nobody else can know in advance or look into. A device or pipe is
    written directly, unless somebody else who may write to the folder put it there.

    Raises:
        OSError: naming the file, or the folder that cannot be made, if it cannot be written.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        with naming(path):
            _check_owner(path)
            write(path)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path.parent)) from None
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"{path.name}.", suffix=".partial", dir=path.parent))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    part = folder / path.name
    try:
        with naming(path, part):
            write(part)
            part.replace(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_owner(path: Path) -> None:
    """Refuse a pipe, or a link to one, of a user who merely may write to the folder: it would hand the result over."""
    found = path.lstat()
    if stat.S_ISCHR(found.st_mode) or found.st_uid in (os.geteuid(), 0, path.parent.stat().st_uid):
        return
    raise PermissionError(errno.EACCES, "it belongs to another user", str(path))


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
