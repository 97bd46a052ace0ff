"""What README and docs show, as steps that can be taken: files to write, commands to run, the output shown."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Languages of blocks that show something else than a command: output, data, code of the project itself.
SILENT = {"text", "json", "toml", "rust", "yaml", "{toctree}", "{literalinclude}", "{image}", "{figure}", "{eval-rst}"}


@dataclass(frozen=True)
class WriteFile:
    """A block of TOML or Python that begins with its file name in a comment."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """A line behind `$ ` and what the page shows below it."""

    line: str
    shown: str
    at: int


@dataclass(frozen=True)
class Python:
    """A block of Python to run."""

    text: str
    at: int


Step = WriteFile | Command | Python


def pages() -> list[Path]:
    """Every page that shows commands to a reader; the lab notebook is history."""
    papers = sorted(ROOT.glob("papers/**/README.md"))
    docs = sorted(path for path in ROOT.glob("docs/**/*.md") if not {"_build", "lab"} & set(path.parts))
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *docs, *papers]


def steps(text: str, page: str) -> Iterator[Step]:
    """The steps of a page in order; `page` is what errors call it."""
    for at, language, block in blocks(text):
        named = re.match(r"(?:#|//) (\S+\.(?:toml|py|pkt|csv))\n", block)
        if language in {"toml", "python", "text", "csv"} and named:
            yield WriteFile(named[1], block)
        elif language == "console":
            yield from commands(block, at, page)
        elif language == "python":
            yield Python(block, at)
        elif language not in SILENT or re.search(r"^\$ ", block, re.MULTILINE):
            raise AssertionError(f"{page}:{at}: a block of `{language}`; commands are ```console with `$ `")


def blocks(text: str) -> Iterator[tuple[int, str, str]]:
    """Fenced blocks: the line after the fence, the language, the text without its indentation."""
    inside: tuple[int, str, str] | None = None
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        fence = re.match(r"(\s*)```(\S*)", line)
        if inside is None and fence:
            inside, lines = (number + 1, fence[2] or "text", fence[1]), []
        elif inside is not None and fence and not fence[2]:
            yield inside[0], inside[1], "".join(f"{one}\n" for one in lines)
            inside = None
        elif inside is not None:
            lines.append(line.removeprefix(inside[2]))


def commands(text: str, at: int, page: str) -> Iterator[Command]:
    """The commands of a console block, each with the output below it."""
    found: list[tuple[str, list[str], int]] = []
    for number, line in enumerate(text.splitlines(), start=at):
        if line.startswith("$ "):
            found.append((line[2:], [], number))
        elif found:
            found[-1][1].append(line)
        else:
            raise AssertionError(f"{page}:{number}: output without a command above it")
    if not found:
        raise AssertionError(f"{page}:{at}: a console block without a command")
    for line, output, number in found:
        yield Command(line, "".join(f"{one}\n" for one in output), number)


def matches(shown: str, printed: str) -> bool:
    """Whether the page shows what was printed; a line `...` stands for any lines, and no output for any output."""
    if not shown.strip():
        return True
    parts = [re.escape("".join(part)) for part in _split_at_dots(shown)]
    return re.fullmatch("(?s:.*?)".join(parts), _tidy(printed)) is not None


def _tidy(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.strip("\n").splitlines())


def _split_at_dots(shown: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for line in _tidy(shown).splitlines(keepends=True):
        if line.strip() == "...":
            parts.append([])
        else:
            parts[-1].append(line)
    return parts
