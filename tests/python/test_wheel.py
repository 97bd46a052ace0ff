"""The wheel of `make wheel` in an environment that has nothing else of ackclock."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import packages

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The wheel for this machine."""
    return packages.wheel()


def test_a_wheel_is_for_every_later_python_and_has_the_command(wheel):
    assert "-cp311-abi3-" in wheel.name
    assert any(name.endswith(".data/scripts/ackclock") for name in zipfile.ZipFile(wheel).namelist())


def test_no_file_of_a_wheel_names_the_folder_that_it_was_built_in(wheel):
    files = zipfile.ZipFile(wheel)
    folder = str(ROOT).encode()
    assert [name for name in files.namelist() if folder in files.read(name)] == []


def test_a_wheel_in_an_empty_environment_runs_a_scenario(wheel, tmp_path):
    plain = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    binaries = tmp_path / "venv" / "bin"

    def runs(*command: str | Path) -> str:
        return subprocess.run(command, env=plain, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    runs(sys.executable, "-m", "venv", tmp_path / "venv")
    runs(binaries / "python", "-m", "pip", "install", "--no-deps", wheel)
    scenario = ROOT / "scenarios" / "first.toml"
    assert "ack-regulator" in runs(binaries / "ackclock", "run", scenario, "--set", "duration=5s")
    # The module is of this wheel; importing the package would need numpy, which `--no-deps` leaves out.
    listed = "import importlib.metadata as m; print([f.locate() for f in m.files('ackclock') if f.match('_core.*')])"
    assert str(binaries.parent) in runs(binaries / "python", "-c", listed)
