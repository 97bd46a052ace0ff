"""The Python half of the command: `python -m ackclock paper | model | list models | trace plot | report | sweep`.

The binary `ackclock` runs this module for the parts that are Python's, with the same options and exit statuses.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ackclock import model_command
from ackclock.files import in_unicode, naming, read_text, write_text
from ackclock.text import printable

# Plain text, as the binary prints its help and errors.
app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)
trace = typer.Typer(no_args_is_help=True, help="Recordings of a link.")
listing = typer.Typer(no_args_is_help=True, help="What there is.")
app.add_typer(trace, name="trace")
app.add_typer(listing, name="list")

Seeds = Annotated[int | None, typer.Option(min=1, help="Runs a point instead of the scenario's own number.")]


class Engine(StrEnum):
    """Where a sweep runs."""

    LOCAL = "local"
    DASK = "dask"
    RAY = "ray"


@app.command()
def paper(
    key: Annotated[str, typer.Argument(help="A paper's key, or `all`.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one object a paper, a line each.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for report, figures and rows.")] = None,
    seeds: Seeds = None,
    update_claims: Annotated[bool, typer.Option(help="Write the paper's claims.md again.")] = False,
) -> None:
    """Rerun a source document and judge every row of it."""
    from ackclock import paper as papers
    from ackclock.paper import claims_page, output

    for one in [papers.load(k) for k in (papers.keys() if key == "all" else [key])]:
        outcome = one.reproduce(seeds, out and out / one.key / "runs.jsonl")
        if out is not None:
            output.write(outcome, out / one.key)
        if update_claims:
            claims_page.write(one.folder, outcome)
        if as_json:
            _print(json.dumps(outcome.as_json()))
        else:
            with naming(_STDOUT):
                output.show(outcome)


@app.command()
def report(
    runs: Annotated[Path, typer.Argument(help="Lines of `--json`.")],
    out: Annotated[Path, typer.Option(help="The HTML file to write.")],
    title: Annotated[str | None, typer.Option(help="Heading of the report.")] = None,
    scenario: Annotated[Path | None, typer.Option(help="The scenario, to describe link, path and senders.")] = None,
    series: Annotated[list[Path] | None, typer.Option(help="Time series of a run (of `run --series`).")] = None,
    of: Annotated[list[str] | None, typer.Option(help="Name of the run of each --series.")] = None,
    confidence: Annotated[float, typer.Option(min=0.01, max=0.9999, help="Probability of the intervals.")] = 0.95,
) -> None:
    """Write a report of finished runs."""
    from ackclock import report as reports
    from ackclock.results import Results, read_series
    from ackclock.scenario import tables as tables_of

    results = Results.read(runs)
    results.confidence = confidence
    results.series = [read_series(one) for one in series or []]
    results.series_of = of or []
    if of and len(of) != len(results.series):
        raise ValueError(f"--of: {len(of)} names for {len(results.series)} --series; give one each")
    tables = None if scenario is None else tables_of(read_text(scenario), str(scenario))
    try:
        text = reports.of_runs(results, title, tables)
    except ValueError as error:
        raise ValueError(f"{runs}: {error}") from None
    write_text(out, text)


@app.command()
def sweep(
    scenario: Annotated[Path, typer.Argument(help="A scenario file with a [sweep].")],
    engine: Annotated[Engine, typer.Option(help="Where to run.")] = Engine.LOCAL,
    set_: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, instead of the file's.")] = None,
    out: Annotated[Path | None, typer.Option(help="File to write the lines into instead of printing them.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace lines of other runs in that file.")] = False,
) -> None:
    """Run a sweep and print one JSON object a run, a line each."""
    from ackclock import simulate
    from ackclock.scenario import source

    def found(rows: int, runs: int) -> None:
        _say(f"{out}: {rows} of {runs} runs are finished already")

    lines = simulate.sweep_lines(source(scenario), set_ or [], engine.value, out, overwrite=overwrite, found=found)
    if out is None:
        _print("".join(f"{line}\n" for line in lines), end="")


@trace.command("plot")
def trace_plot(
    file: Annotated[Path, typer.Argument(help="A mahimahi recording or a CSV of rates.")],
    out: Annotated[Path | None, typer.Option(help="Picture to write; its ending chooses the format.")] = None,
    interval: Annotated[float, typer.Option(min=0.001, help="Seconds over which the rate is averaged.")] = 1.0,
) -> None:
    """Draw the rate of a recording over time and its distribution."""
    from ackclock import _core, picture, plot

    target = out or Path(f"{file.name}.svg")
    picture.check_ending(target)
    recorded = _core.trace(in_unicode(file), interval=interval)
    drawing = plot.trace(recorded["time"], recorded["rate"], file.name)
    plot.save(drawing, target)
    _print(str(target))
    if out is None:
        print(f"ackclock: trace plot: {target} is written into this folder; --out names another file", file=sys.stderr)


@listing.command("models")
def list_models(
    name: Annotated[str | None, typer.Argument(help="One of them, with its arguments and its documentation.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object.")] = False,
) -> None:
    """List the analyses of `ackclock model`, or say what one computes."""
    model_command.listing(_print, name, as_json)


_STDOUT = "standard output"


def _print(text: str, end: str = "\n") -> None:
    with naming(_STDOUT):
        print(printable(text), end=end)


app.add_typer(
    typer.Typer(
        cls=model_command.group(_print), no_args_is_help=True, help="Analyses: throughput, delay, stability by formula."
    ),
    name="model",
)


# What the system says of a slip in a path; what else it says, as of a full disk, is a failure.
_NO_SUCH_PLACE = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)


@contextmanager
def _status() -> Iterator[None]:
    """Errors become one line and an exit status: 2 the input was wrong, 1 the run failed or a result found no room."""
    try:
        yield
    except _UsageError as error:
        print(printable(_taught(error)), file=sys.stderr)
        raise SystemExit(2) from None
    except typer.Abort:
        raise SystemExit(130) from None
    except (ValueError, *_NO_SUCH_PLACE) as error:
        _tell(error)
        raise SystemExit(2) from None
    except (RuntimeError, OSError, ImportError) as error:
        _tell(error)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _tell(error: Exception) -> None:
    """Say on standard error what went wrong."""
    _say(_said(error))


def _say(message: str) -> None:
    """Say something on standard error, further lines of it indented."""
    indented = printable(message).replace("\n", "\n  ")
    print(f"ackclock: {indented}", file=sys.stderr)


# Typer exports one kind of it.
_UsageError: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "UsageError")


def _taught(error: Any) -> str:
    """A slip in the command line in one line, with what the command takes; its help where nothing was typed."""
    if error.ctx is None:
        return f"ackclock: {error.format_message()}"
    if type(error).__name__ == "NoArgsIsHelpError":
        return str(error.ctx.get_help())
    command = error.ctx.command_path.removeprefix("ackclock").strip()
    usage = " ".join(error.ctx.get_usage().removeprefix("Usage:").split())
    usage = re.sub(r"\{(\w+)\}", lambda name: name[1].upper(), usage)
    message = " ".join(error.format_message().split()).rstrip(".")
    return f"ackclock: {command + ': ' if command else ''}{message}; it is {usage}"


def _said(error: Exception) -> str:
    """The message of an error; one of the system begins with the name of its file, as all others do."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


@contextmanager
def _output() -> Iterator[None]:
    """A reader of standard output that has gone, as `head` does, is no failure: exit status 0."""
    try:
        yield
    except SystemExit as ended:
        # Such a reader is exit status 1 to Typer.
        if isinstance(ended.__context__, BrokenPipeError):
            raise SystemExit(0) from None
        _flush()
        raise


def _flush() -> None:
    """Write what was kept for standard output."""
    try:
        with naming(_STDOUT):
            sys.stdout.flush()
    except OSError as error:
        # What is kept would fail again when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise SystemExit(0) from None
        raise


def main() -> None:
    """Run the command."""
    with _status(), _output():
        # Without Typer's own way of telling errors, which draws boxes around them.
        raise SystemExit(app(prog_name="ackclock", standalone_mode=False) or 0)


if __name__ == "__main__":
    main()
