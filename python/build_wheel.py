"""Builds the wheel: maturin's, with the command `ackclock` beside the compiled module.

maturin packs one crate, and the command is another one. It is built here and added to the scripts of maturin's wheel,
so that `pip install .` and `pip install -e .` bring both.
"""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import maturin
from maturin import (
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)
from wheel.wheelfile import WheelFile

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).resolve().parent.parent


class UnsupportedOperation(Exception):  # noqa: N818
    """PEP 517's way to say that something is not offered."""


def build_wheel(wheel_directory: str, *arguments: Any) -> str:
    """PEP 517's hook."""
    _leave_out_folders()
    with tempfile.TemporaryDirectory() as folder:
        return _with_command(Path(folder) / maturin.build_wheel(folder, *arguments), Path(wheel_directory))


def build_editable(wheel_directory: str, *arguments: Any) -> str:
    """PEP 660's hook."""
    _leave_out_folders()
    with tempfile.TemporaryDirectory() as folder:
        return _with_command(Path(folder) / maturin.build_editable(folder, *arguments), Path(wheel_directory))


def build_sdist(*_: Any) -> str:
    """PEP 517's hook; maturin would leave out the crates on which the compiled module does not depend."""
    raise UnsupportedOperation("there is no source distribution: build from a checkout")


def _leave_out_folders() -> None:
    """Keep the folders of this machine out of the names of source files in messages, as `make build` does."""
    cargo = os.environ.get("CARGO_HOME") or Path.home() / ".cargo"
    given = os.environ.get("RUSTFLAGS", "")
    os.environ["RUSTFLAGS"] = f"{given} --remap-path-prefix={cargo}=cargo --remap-path-prefix={ROOT}=ackclock"


def _with_command(built: Path, folder: Path) -> str:
    """Copy a wheel into `folder` with the command among its scripts; `WheelFile` writes its record anew.

    maturin's list of dependencies (SBOM) names crates by the folder of the checkout, which is nobody's business.
    """
    command = _command()
    with WheelFile(built) as source, WheelFile(folder / built.name, "w") as target:
        for entry in source.infolist():
            if entry.filename != source.record_path:
                content = source.read(entry)
                if entry.filename.endswith(".cyclonedx.json"):
                    content = content.replace(ROOT.as_uri().encode(), b"file:///ackclock")
                target.writestr(entry, content)
        distribution = source.parsed_filename.group("namever")
        target.write(str(command), f"{distribution}.data/scripts/{command.name}")
    return built.name


def _command() -> Path:
    """The command at ACKCLOCK_COMMAND, which a release builds for another machine; else that of this machine."""
    if given := os.environ.get("ACKCLOCK_COMMAND"):
        return Path(given)
    build = ["cargo", "build", "--release", "--locked", "--package", "ackclock-cli", "--target-dir", "target"]
    build += ["--features", "jemalloc"]
    subprocess.run(build, cwd=ROOT, check=True)
    return ROOT / "target" / "release" / "ackclock"
