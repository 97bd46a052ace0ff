"""The systemd unit and the Debian package of `ackclock box`."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGING = Path(__file__).parents[2] / "packaging"


def need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing")


def test_systemd_finds_no_fault_in_the_unit(tmp_path):
    need("systemd-analyze")
    # The unit names the command where a package installs it.
    unit = tmp_path / "ackclock-box.service"
    text = (PACKAGING / "ackclock-box.service").read_text(encoding="utf-8")
    unit.write_text(text.replace("/usr/bin/ackclock", "/usr/bin/true"), encoding="utf-8")
    # `verify` asks systemd for nothing.
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"]},
    )
    assert (verified.returncode, [line for line in verified.stderr.splitlines() if "ackclock-box" in line]) == (0, [])
    assert "Type=notify\n" in text


def everything(root: Path) -> set:
    """Files below a folder, without the package manager's own."""
    names = {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}
    return {name for name in names if not name.startswith("var/lib/dpkg/")}


def test_a_package_installs_and_purges_to_nothing(tmp_path):
    need("dpkg-deb", "dpkg")
    if os.geteuid() != 0:
        pytest.skip("only root installs packages")
    made = subprocess.run(
        [PACKAGING / "deb.sh", shutil.which("ackclock"), tmp_path / "made"],
        capture_output=True,
        text=True,
        env=os.environ | {"DEB_COMPRESSION": "none"},
    )
    assert made.returncode == 0, made.stderr
    (package,) = (tmp_path / "made").iterdir()
    root = tmp_path / "root"
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates"]:
        (root / folder).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()

    def dpkg(*words: str) -> None:
        command = ["dpkg", f"--root={root}", "--force-script-chrootless", "--force-not-root", *words]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    dpkg("--install", str(package))
    assert everything(root) == {
        "etc/ackclock/box.toml",
        "usr/bin/ackclock",
        "usr/lib/systemd/system/ackclock-box.service",
        "usr/share/doc/ackclock/copyright",
    }
    version = subprocess.run([root / "usr/bin/ackclock", "--version"], capture_output=True, text=True)
    assert version.stdout.startswith("ackclock ")
    # The configuration that is installed is right, but for the interface, which is not there.
    told = subprocess.run(
        [root / "usr/bin/ackclock", "box", root / "etc/ackclock/box.toml"], capture_output=True, text=True
    )
    assert (told.returncode, "there is no interface `wwan0`" in told.stderr) == (2, True), told.stderr
    (root / "etc/ackclock/subscribers.csv").touch()
    dpkg("--purge", "ackclock")
    assert everything(root) == set()
    assert not (root / "etc/ackclock").exists()
