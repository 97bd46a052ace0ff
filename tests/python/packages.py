"""Packages that were built before the tests: the one for this machine, in a folder that a variable names."""

import os
import platform
from pathlib import Path

import pytest

# Debian's names of machines.
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}


def wheel() -> Path:
    """The wheel for this machine in the folder ACKCLOCK_WHEELS."""
    return _newest("ACKCLOCK_WHEELS", f"ackclock-*_{platform.machine()}.whl")


def debian_package() -> Path:
    """The Debian package for this machine in the folder ACKCLOCK_DEBS."""
    return _newest("ACKCLOCK_DEBS", f"ackclock_*_{DEBIAN.get(platform.machine())}.deb")


def _newest(variable: str, pattern: str) -> Path:
    """The newest match: a release has packages for several machines in one folder."""
    folder = os.environ.get(variable)
    if folder is None:
        pytest.skip(f"{variable} names no folder; `make nightly` does")
    found = sorted(Path(folder).glob(pattern), key=lambda path: path.stat().st_mtime)
    assert found, f"{variable}={folder}: there is no {pattern}"
    return found[-1]
