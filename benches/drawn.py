"""Random cells, seeded with a commit's hash, so that each commit has new ones to which nothing was fitted.

Results are stored in drawn.jsonl next to this file, one line per cell.
"""

import hashlib
import json
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from cells import BBR, CUBIC, NEWRENO, SACK, Cell, Files, files, paced, web
from links import BUS, EV_DO, FERRY, LTE, METRO, TRAM, UP, Link, Recording, plays

HERE = Path(__file__).resolve().parent
KEPT = HERE / "drawn.jsonl"
T = TypeVar("T")


@dataclass(frozen=True)
class Draw:
    """Random numbers of one cell: one per name, so that a new name changes none of the others."""

    commit: str
    number: int

    def unit(self, name: str) -> float:
        """A number from 0 to 1."""
        digest = hashlib.sha256(f"{self.commit} {self.number} {name}".encode()).digest()
        return int.from_bytes(digest[:8]) / 2**64

    def between(self, name: str, least: float, most: float) -> float:
        """A number between two, each doubling as likely as the next."""
        return float(least * (most / least) ** self.unit(name))

    def dealt(self, name: str, options: Sequence[T]) -> T:
        """One of several, dealt like cards: as many cells as options have different ones."""
        turn, place = divmod(self.number, len(options))
        order = sorted(range(len(options)), key=lambda card: Draw(self.commit, turn).unit(f"{name} card {card}"))
        return options[order[place]]


WORKS = ("bulk", "web", "files", "paced")
LINKS = ("constant", "variable delay", "variable rate", "recording", "recording")
EDGES = ("none", "none", "codel, ecn", "none", "ack-regulator", "codel", "wrb")
# With the mean rate, in kbit/s, and how far into it a cell may begin, in seconds.
RECORDINGS = (
    (EV_DO, 520, 900),
    (LTE, 4560, 50),
    (METRO, 570, 700),
    (TRAM, 715, 1000),
    (BUS, 2580, 400),
    (FERRY, 1420, 900),
)


def cells(commit: str, count: int) -> list[Cell]:
    """The first `count` cells of a commit."""
    return [cell(Draw(commit, number)) for number in range(count)]


def cell(draw: Draw) -> Cell:
    """The cell of one draw."""
    link, kbps = link_of(draw)
    deep = f"{draw.between('bdp', 0.5, 4):.1f}bdp"
    few = f"{draw.between('packets', 8, 60):.0f}p"
    return Cell(
        "drawn",
        link,
        deep if draw.unit("buffer") < 0.5 else few,
        draw.dealt("sender", (SACK, NEWRENO, CUBIC, BBR, CUBIC)),
        draw.dealt("edge", EDGES),
        files_of(draw, kbps),
        round(draw.between("wire", 5, 80)),
    )


def link_of(draw: Draw) -> tuple[Link, float]:
    """A link, and its approximate rate in kbit/s."""
    kind = draw.dealt("link", LINKS)
    if kind == "recording":
        recording, kbps, most = draw.dealt("recording", RECORDINGS)
        later: Recording = replace(recording, skip_s=int(most * draw.unit("skip")))
        return plays(later), kbps
    rate, delay = round(draw.between("rate", 300, 8000)), round(draw.between("delay", 10, 60))
    if kind == "constant":
        table = f'kind = "constant"\nrate = "{rate}kbit/s"\ndelay = "{delay}ms"'
        return Link(f"{rate} kbit/s, {delay} ms", table, UP), rate
    if kind == "variable delay":
        mean = round(draw.between("mean delay", 5, 40))
        table = f'kind = "variable"\nrate = "{rate}kbit/s"\ndelay = "{delay}ms + e({mean}ms)"\nredraw = "packet"'
        return Link(f"{rate} kbit/s, {delay} ms + e({mean} ms)", table, UP), rate
    sd, every = round(rate * draw.between("sd", 0.1, 0.5)), round(draw.between("redraw", 20, 500))
    table = (
        f'kind = "variable"\nrate = "u({rate}kbit/s, {sd}kbit/s)"\ndelay = "{delay}ms"\nredraw = "interval({every}ms)"'
    )
    return Link(f"u({rate}, {sd}) kbit/s each {every} ms, {delay} ms", table, UP), rate


def files_of(draw: Draw, kbps: float) -> Files | None:
    """Traffic for a link of this rate."""
    match draw.dealt("work", WORKS):
        case "web":
            return web(round(draw.between("object", 8, 150)), round(draw.between("object thinks", 30, 1000)))
        case "files":
            # Of half a second to three, were the link its own.
            seconds = draw.between("file", 0.5, 3)
            return files(max(1, round(seconds * kbps / 8)), round(draw.between("file thinks", 300, 3000)))
        case "paced":
            return paced(round(kbps * draw.between("share", 0.3, 1.1)), round(draw.between("every", 10, 200)))
        case _:
            return None


def head() -> str:
    """The current commit."""
    return git("rev-parse", "HEAD")


def changed() -> bool:
    """Whether the program's sources differ from that commit."""
    return bool(git("status", "--porcelain", "--", "crates"))


def git(*words: str) -> str:
    """Output of a git command in this repository."""
    return subprocess.run(["git", *words], cwd=HERE, capture_output=True, text=True, check=True).stdout.strip()


def keep(lines: Iterable[dict[str, Any]], path: Path = KEPT) -> None:
    """Store measured cells; a cell measured again by the same build replaces its line."""
    kept = {named(line): line for line in read(path)} | {named(line): line for line in lines}
    path.write_text("".join(json.dumps(line) + "\n" for line in kept.values()))


def read(path: Path = KEPT) -> list[dict[str, Any]]:
    """The cells that were kept."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def named(line: dict[str, Any]) -> tuple[Any, ...]:
    """Identity of a stored cell: its draw, and the build that ran it."""
    return line["drawn_from"], line["number"], line["built_from"], line["changed_since"]
