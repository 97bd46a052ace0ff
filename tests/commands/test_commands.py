"""Every command, file and line of Python that README and docs show is run here, page by page, and prints what they say.

A page whose output is out of date is rewritten by `ACKCLOCK_UPDATE_PAGES=1 pytest tests/commands`.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT, Command, Python, Step, WriteFile, matches, pages, steps

UPDATE = os.environ.get("ACKCLOCK_UPDATE_PAGES") == "1"
# Nothing on a page takes long, but a machine may be busy; what takes longer than this hangs.
PATIENCE_S = 600
# Where the command lies: first on the path, else beside the interpreter.
ACKCLOCK = Path(shutil.which("ackclock") or Path(sys.executable).with_name("ackclock"))


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_shows_what_happens(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if "$ ackclock link " in text and (reason := why_no_link()):
        pytest.skip(reason)
    folder = tmp_path / "ackclock"
    folder.mkdir()
    shutil.copytree(ROOT / "scenarios", folder / "scenarios")
    for step in steps(text, str(page.relative_to(ROOT))):
        take(step, folder, page)


def why_no_link() -> str:
    """Why this machine makes no links, or lacks what the page uses; nothing where it does."""
    if missing := [program for program in ("curl", "python3") if shutil.which(program) is None]:
        return f"{missing[0]} is not installed"
    trial = [ACKCLOCK, "link", "1mbit", "1mbit", "--closed", "--", "true"]
    done = subprocess.run(trial, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr.strip()


def take(step: Step, folder: Path, page: Path) -> None:
    match step:
        case WriteFile(name, text):
            (folder / name).write_text(text, encoding="utf-8")
        case Command(line, _, _) if elsewhere(line):
            pass
        case Command(line, shown, at):
            printed = run(["bash", "-euo", "pipefail", "-c", line], folder, f"{page.name}:{at}: {line}")
            if not matches(shown, printed):
                assert UPDATE, f"{page}:{at}: `{line}` prints\n{printed}\nand the page shows\n{shown}"
                rewrite(page, line, shown, printed)
        case Python(text, at):
            run([sys.executable, "-W", "error", "-c", text], folder, f"{page.name}:{at}")


def elsewhere(line: str) -> bool:
    """Whether another test runs this line; then only its words are checked here."""
    words = shlex.split(line, comments=True)
    for begin, check in ELSEWHERE.items():
        if words[: len(begin.split())] == begin.split():
            check(words)
            return True
    return False


def run(command: list[str], folder: Path, what: str) -> str:
    environment = os.environ | {"COLUMNS": "120", "MPLBACKEND": "Agg"}
    environment["PATH"] = f"{ACKCLOCK.parent}:{Path(sys.executable).parent}:{environment['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"{what}\n{done.stdout}{done.stderr}"
    return done.stdout


def rewrite(page: Path, line: str, shown: str, printed: str) -> None:
    text = page.read_text(encoding="utf-8")
    old = f"$ {line}\n{shown}"
    assert text.count(old) == 1, f"{page}: `{line}` does not stand there once; mend the page by hand"
    page.write_text(text.replace(old, f"$ {line}\n{printed.strip(chr(10))}\n"), encoding="utf-8")


def a_target_exists(words: list[str]) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for word in words[1:]:
        variable, given, path = word.partition("=")
        if given:
            assert f"$({variable})" in makefile, f"the Makefile knows no {variable}"
            assert (ROOT / path).exists(), path
        else:
            assert re.search(rf"^{re.escape(word)}:", makefile, re.MULTILINE), f"the Makefile has no target {word}"


def cargo_knows_it(words: list[str]) -> None:
    if words[1] == "xtask":
        # `make skeletons` runs `xtask new` with each kind; here only that the words are right. The help is read from
        # the source, since asking cargo for it would wait for whatever else it builds.
        sources = ROOT / "xtask" / "src"
        assert f"cargo xtask {words[2]}" in (sources / "main.rs").read_text(encoding="utf-8"), words
        kinds = (sources / "skeleton.rs").read_text(encoding="utf-8")
        assert words[2] != "new" or f'name: "{words[3]}"' in kinds, words
    else:
        assert words[1] in {"build", "test", "clippy"}, words
        package = words[words.index("-p") + 1]
        assert (ROOT / "crates" / package).is_dir(), words


def make_tutorial_runs_it(words: list[str]) -> None:
    source = (ROOT / "xtask" / "src" / "skeleton_check.rs").read_text(encoding="utf-8")
    assert ", ".join(f'"{word}"' for word in words[1:5]) in source, words


def the_sources_exist(words: list[str]) -> None:
    for word in words:
        assert not word.startswith("crates/") or (ROOT / word).exists(), word


def the_options_exist(words: list[str]) -> None:
    help_text = run([*words[:2], "--help"], ROOT, "help")
    for option in (word for word in words if word.startswith("--")):
        assert option in help_text, f"`{words[0]} {words[1]}` has no option {option}"


# What a page may show although this test does not run it: `make` would run this very test, `make skeletons` and
# `make tutorial` run the steps of the tutorial that build, and tests/python/test_paper.py reruns papers.
ELSEWHERE = {
    # On an interface of its own, by tests/python/test_box.py.
    "ackclock box": the_options_exist,
    "mountpoint -q /sys/fs/bpf": lambda _: None,
    "make": a_target_exists,
    "cargo": cargo_knows_it,
    # By crates/ackclock-c/tests/host.rs, which compares the output.
    "cc": the_sources_exist,
    "./host": lambda _: None,
    # Needs ns-3; the page says how its numbers compare with ours.
    "out/ns3/regulated-lte": lambda _: None,
    "ackclock paper": the_options_exist,
    "ackclock compare scenarios/demo.toml --regulators none,ack-pacer": make_tutorial_runs_it,
}


def test_output_is_compared_but_for_dots() -> None:
    assert matches("a\n...\nd\n", "a\nb\nc\nd\n")
    assert matches("", "anything")
    assert not matches("a\n", "b\n")
    assert not matches("a\n...\nd\n", "a\nb\n")


def test_a_block_in_another_shell_cannot_hide() -> None:
    with pytest.raises(AssertionError, match="console"):
        list(steps("```sh\nrm x\n```\n", "page"))
    with pytest.raises(AssertionError, match="console"):
        list(steps("```text\n$ rm x\n```\n", "page"))
    with pytest.raises(AssertionError, match="without a command"):
        list(steps("```console\n```\n", "page"))
    with pytest.raises(AssertionError, match="without a command"):
        list(steps("```console\noutput\n$ command\n```\n", "page"))
    assert list(steps("```console\n$ x\ny\n```\n", "page")) == [Command("x", "y\n", 2)]
