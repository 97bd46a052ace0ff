"""The systemd unit and the Debian package of `ackclock box`."""

import os
import shutil
import subprocess
import time
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


def test_a_package_for_another_machine_names_its_architecture(tmp_path):
    need("dpkg-deb")
    command = [PACKAGING / "deb.sh", shutil.which("true"), tmp_path, "arm64"]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | {"DEB_COMPRESSION": "none"})
    (package,) = tmp_path.iterdir()
    shown = subprocess.run(["dpkg-deb", "--info", package], check=True, capture_output=True, text=True).stdout
    assert "Architecture: arm64" in shown
    version = subprocess.run([PACKAGING / "version.sh"], check=True, capture_output=True, text=True).stdout.strip()
    assert f"Version: {version}\n" in shown
    ours = subprocess.run(["ackclock", "--version"], check=True, capture_output=True, text=True).stdout
    assert version in ours.split()
    assert f"PKG_VERSION:={version}\n" in (PACKAGING / "openwrt" / "Makefile").read_text(encoding="utf-8")


def release(folder: Path, architecture: str) -> None:
    """A release whose command only says its name."""
    name = f"ackclock-9.9.9-{architecture}-linux"
    (folder / name).mkdir(parents=True)
    command = folder / name / "ackclock"
    command.write_text("#!/bin/sh\necho ackclock 9.9.9\n", encoding="utf-8")
    command.chmod(0o755)
    pack = f"tar -czf {name}.tar.gz {name} && rm -r {name} && sha256sum -- *.tar.gz > SHA256SUMS"
    subprocess.run(["sh", "-c", pack], cwd=folder, check=True)


def released(folder: Path) -> dict[str, bytes]:
    """Files of a release that packaging/release.sh makes with compilers that only name themselves."""
    stubs = folder / "stubs"
    stubs.mkdir(parents=True)
    build = "to=target/x86_64-unknown-linux-musl/release; mkdir -p $to && echo it >$to/ackclock"
    for name, text in {"rustup": "", "cargo": build, "python3": "", "podman": "exit 1"}.items():
        (stubs / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (stubs / name).chmod(0o755)
    tree = folder / "tree"
    shutil.copytree(PACKAGING, tree / "packaging")
    for name in ("Cargo.toml", "LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.txt", "README.md"):
        shutil.copyfile(PACKAGING.parent / name, tree / name)
    environment = {
        name: value for name, value in os.environ.items() if name not in ("CARGO_TARGET_DIR", "SOURCE_DATE_EPOCH")
    }
    made = subprocess.run(
        [tree / "packaging" / "release.sh", folder / "out", "x86_64"],
        capture_output=True,
        text=True,
        env=environment | {"PATH": f"{stubs}:{os.environ['PATH']}", "DEB_COMPRESSION": "none"},
    )
    assert made.returncode == 0, made.stderr
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


def test_equal_sources_give_equal_files_of_a_release(tmp_path):
    need("dpkg-deb", "sha256sum")
    version = subprocess.run([PACKAGING / "version.sh"], capture_output=True, text=True, check=True).stdout.strip()
    first = released(tmp_path / "first")
    time.sleep(1.1)  # files of the second one have other times, in whole seconds
    assert sorted(first) == [
        "SHA256SUMS", f"ackclock-{version}-x86_64-linux.tar.gz", f"ackclock_{version}_amd64.deb"
    ]  # fmt: skip
    assert released(tmp_path / "second") == first


def install(releases: Path, version: str, into: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [PACKAGING / "install.sh", version, into],
        capture_output=True,
        text=True,
        env=os.environ | {"ACKCLOCK_RELEASES": releases.as_uri()},
    )


def test_the_action_installs_the_command_of_a_release_if_its_checksum_is_right(tmp_path):
    need("curl", "sha256sum")
    machine = os.uname().machine
    release(tmp_path / "download" / "v9.9.9", machine)
    (tmp_path / "latest").mkdir()
    (tmp_path / "latest" / "download").symlink_to(tmp_path / "download" / "v9.9.9")
    for version in ("v9.9.9", "latest"):
        installed = install(tmp_path, version, tmp_path / version)
        assert (installed.returncode, installed.stdout) == (0, "ackclock 9.9.9\n"), installed.stderr
        assert os.access(tmp_path / version / "ackclock", os.X_OK)
    assert install(tmp_path, "v1.0.0", tmp_path / "none").returncode != 0
    sums = tmp_path / "download" / "v9.9.9" / "SHA256SUMS"
    sums.write_text("0" * 64 + sums.read_text(encoding="utf-8")[64:], encoding="utf-8")
    assert install(tmp_path, "v9.9.9", tmp_path / "wrong").returncode != 0
    assert not (tmp_path / "wrong").exists()


def test_recipes_install_ackclock_before_they_use_it():
    pages = [path.read_text(encoding="utf-8") for path in (PACKAGING.parent / "docs" / "how-to").rglob("*.md")]
    recipes = [part.split("```")[0] for page in pages for part in page.split("```yaml\n")[1:]]
    jobs = [recipe for recipe in recipes if "runs-on:" in recipe]
    assert len(jobs) == 3
    for job in jobs:
        installs = max(job.find("uses: ackclock/ackclock@"), job.find("image: ghcr.io/ackclock/ackclock:"))
        assert 0 < installs < job.index("run: ackclock link"), job
    assert not any("IMAGE" in page for page in pages)


@pytest.mark.parametrize(
    ("manager", "line"),
    [
        ("apt-get", "sudo apt install build-essential python3 python3-venv"),
        ("dnf", "sudo dnf install gcc python3"),
        ("pacman", "sudo pacman -S base-devel python"),
        ("zypper", "sudo zypper install gcc python3"),
        ("apk", "sudo apk add build-base python3"),
        ("brew", "brew install python@3.13"),
    ],
)
def test_all_missing_tools_are_told_at_once_in_the_words_of_the_system(tmp_path, manager, line):
    for program in ("sort", "head", "cut", "uname"):
        (tmp_path / program).symlink_to(shutil.which(program))
    (tmp_path / manager).symlink_to(shutil.which("true"))
    told = subprocess.run(
        ["/bin/sh", PACKAGING.parent / ".ci" / "tools", "1.95", "3.11", "python3"],
        capture_output=True,
        text=True,
        env={"PATH": str(tmp_path)},
    )
    assert told.returncode == 1
    missing, remedies = told.stdout.split("Install with:\n")
    assert [word in missing for word in ("a C compiler", "Python 3.11", "Rust 1.95")] == [True] * 3
    assert remedies.splitlines()[0].strip() == line
    assert "https://sh.rustup.rs" in remedies
    assert "A wheel, a .deb and binaries of each release" in remedies


def test_tools_that_are_too_old_are_told_with_their_version(tmp_path):
    for program in ("sort", "head", "cut", "uname", "true"):
        (tmp_path / program).symlink_to(shutil.which(program))
    for name, says in {"cargo": "", "cc": "", "rustc": "rustc 1.80.1 (abc 2024-01-01)", "python3": "3.9"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{says}'\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    told = subprocess.run(
        ["/bin/sh", PACKAGING.parent / ".ci" / "tools", "1.95", "3.11", "python3"],
        capture_output=True,
        text=True,
        env={"PATH": str(tmp_path)},
    )
    assert "Python 3.11 or later (this is 3.9" in told.stdout
    assert "Rust 1.95 or later (this is 1.80.1)" in told.stdout
    assert "rustup update" in told.stdout


def test_the_service_of_openwrt_is_a_shell_script():
    need("sh")
    script = PACKAGING / "openwrt" / "files" / "ackclock-box.init"
    subprocess.run(["sh", "-n", script], check=True)
