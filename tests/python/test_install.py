"""Walks without a toolchain: an operator with a Debian package, a student with a wheel. Part of `make nightly`."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import packages

ROOT = Path(__file__).parents[2]
# What a walk should take after the download, seconds: printed beside what it took, and never a failure.
AIM = 60


def walk(*command: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the steps of a walk, which must succeed, and print how long they took."""
    begun = time.monotonic()
    walked = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    print(f"the walk took {time.monotonic() - begun:.0f} s; the aim is {AIM} s")
    assert walked.returncode == 0, walked.stderr
    return walked


def test_an_operator_installs_the_package_on_a_bare_debian_and_sees_his_line(tmp_path):
    package = packages.debian_package()
    debootstrap = shutil.which("debootstrap")
    if debootstrap is None or os.geteuid() != 0:
        pytest.skip("debootstrap is not installed, or this is not root")
    root = tmp_path / "root"
    made = subprocess.run(
        [debootstrap, "--variant=minbase", "stable", root], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        pytest.skip(f"debootstrap makes no root here: {made.stdout.splitlines()[-1:]}")
    shutil.copy(package, root / "tmp" / "ackclock.deb")
    shutil.copy(ROOT / "scenarios" / "first.toml", root / "tmp")
    script = """
        set -eu
        dpkg --install /tmp/ackclock.deb
        cd /tmp
        ackclock trace synth --preset lte-driving --duration 60s --out line.down
        ackclock trace info line.down
        ackclock advise line.down --runs 1
        ackclock run first.toml --set duration=5s
        ackclock box check lo --for 1s || true
        dpkg --purge ackclock
        test ! -e /usr/bin/ackclock
        test ! -e /etc/ackclock
    """
    walked = walk("chroot", root, "/bin/sh", "-c", script)
    assert "recommended: " in walked.stdout
    assert "ack-regulator" in walked.stdout


def test_a_student_installs_the_wheel_in_an_empty_environment_and_sees_a_picture(tmp_path):
    wheel = packages.wheel()
    plain = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    downloaded = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--dest", tmp_path / "wheels", wheel],
        capture_output=True,
        text=True,
        check=False,
    )
    if downloaded.returncode != 0:
        pytest.skip(f"the packages that the wheel needs cannot be downloaded: {downloaded.stderr[-200:]}")
    shutil.copy(ROOT / "scenarios" / "first.toml", tmp_path)
    script = f"""
        set -eu
        {sys.executable} -m venv venv
        venv/bin/pip install --quiet --no-index --find-links wheels ackclock
        venv/bin/ackclock compare first.toml --set duration=20s --senders reno,cubic --report first.html
    """
    walk("sh", "-c", script, cwd=tmp_path, env=plain)
    page = (tmp_path / "first.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 2
