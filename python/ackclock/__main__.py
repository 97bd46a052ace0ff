"""Commands implemented in Python: `python -m ackclock paper | model | list models | trace plot | report | sweep`.

The binary `ackclock` runs this module for them, with the same options and exit statuses.
"""

import json
import os
import re
import sys
import warnings
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
listing = typer.Typer(no_args_is_help=True, help="Names that a scenario or command can use.")
app.add_typer(trace, name="trace")
app.add_typer(listing, name="list")

Seeds = Annotated[int | None, typer.Option(min=1, help="Runs per point, overriding the scenario's.")]


class Engine(StrEnum):
    """Machines that run a sweep."""

    LOCAL = "local"
    DASK = "dask"
    RAY = "ray"


@app.command()
def paper(
    key: Annotated[str, typer.Argument(help="A paper's key, or `all`.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per paper and line.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for report, figures and rows.")] = None,
    seeds: Seeds = None,
    update_claims: Annotated[bool, typer.Option(help="Rewrite the paper's claims.md.")] = False,
) -> None:
    """Repeat the experiments of a published document and check each of its numbers."""
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
    out: Annotated[Path, typer.Option(help="HTML file to write.")],
    title: Annotated[str | None, typer.Option(help="Heading of the report.")] = None,
    scenario: Annotated[Path | None, typer.Option(help="Scenario, to describe link, path and senders.")] = None,
    series: Annotated[list[Path] | None, typer.Option(help="Time series of a run (from `run --series`).")] = None,
    of: Annotated[list[str] | None, typer.Option(help="Name of each --series' run.")] = None,
    confidence: Annotated[float, typer.Option(min=0.01, max=0.9999, help="Confidence level of intervals.")] = 0.95,
    command: Annotated[str, typer.Option(help="Command line that repeats the runs.")] = "",
) -> None:
    """Write an HTML report of finished runs."""
    from ackclock import report as reports
    from ackclock.results import Results, read_series
    from ackclock.scenario import tables as tables_of

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        results = Results.read(runs)
    for one in told:
        _say(f"{runs}: {one.message}")
    results.confidence = confidence
    results.series = [read_series(one) for one in series or []]
    results.series_of = of or []
    if of and len(of) != len(results.series):
        raise ValueError(f"--of: {len(of)} names for {len(results.series)} --series; give one each")
    tables = None if scenario is None else tables_of(read_text(scenario), str(scenario))
    try:
        text = reports.of_runs(results, title, tables, command)
    except ValueError as error:
        raise ValueError(f"{runs}: {error}") from None
    write_text(out, text)


@app.command()
def sweep(
    scenario: Annotated[Path, typer.Argument(help="A scenario file with a [sweep].")],
    engine: Annotated[Engine, typer.Option(help="Where to run.")] = Engine.LOCAL,
    address: Annotated[str | None, typer.Option(help="Address of the cluster.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, overriding the file's.")] = None,
    out: Annotated[Path | None, typer.Option(help="File for the lines, instead of standard output.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace lines of other runs in that file.")] = False,
) -> None:
    """Run a sweep and print one JSON object per run and line."""
    from ackclock import simulate
    from ackclock.scenario import source

    def found(rows: int, runs: int) -> None:
        _say(f"{out}: {rows} of {runs} runs are finished already")

    text, keys = source(scenario), set_ or []
    lines = simulate.sweep_lines(text, keys, engine.value, out, address=address, overwrite=overwrite, found=found)
    if out is None:
        _print("".join(f"{line}\n" for line in lines), end="")


@trace.command("plot")
def trace_plot(
    file: Annotated[Path, typer.Argument(help="A mahimahi recording or a CSV of rates.")],
    out: Annotated[Path | None, typer.Option(help="Image to write; its extension selects the format.")] = None,
    interval: Annotated[float, typer.Option(min=0.001, help="Seconds over which the rate is averaged.")] = 1.0,
) -> None:
    """Plot the rate of a recording over time and its distribution."""
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
    name: Annotated[str | None, typer.Argument(help="Describe this model and its arguments.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List the models of `ackclock model`, or describe one of them."""
    model_command.listing(_print, name, as_json)


_STDOUT = "standard output"


def _print(text: str, end: str = "\n") -> None:
    with naming(_STDOUT):
        print(printable(text), end=end)


app.add_typer(
    typer.Typer(
        cls=model_command.group(_print), no_args_is_help=True, help="Throughput, delay and stability from formulas."
    ),
    name="model",
)


# Errors of the operating system that mean a wrong path; others, such as a full disk, are failures.
_NO_SUCH_PLACE = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)


@contextmanager
def _status() -> Iterator[None]:
    """Print errors in one line and return an exit status: 2 for wrong input, 1 if a run or writing a result failed."""
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
    """Print an error on standard error."""
    _say(_said(error))


def _say(message: str) -> None:
    """Print a message on standard error, with further lines indented."""
    indented = printable(message).replace("\n", "\n  ")
    print(f"ackclock: {indented}", file=sys.stderr)


# Typer exports one kind of it.
_UsageError: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "UsageError")


def _taught(error: Any) -> str:
    """One-line error for a wrong command line, with the command's usage; its help if nothing was typed."""
    if error.ctx is None:
        return f"ackclock: {error.format_message()}"
    if type(error).__name__ == "NoArgsIsHelpError":
        return str(error.ctx.get_help())
    command = error.ctx.command_path.removeprefix("ackclock").strip()
    usage = " ".join(error.ctx.get_usage().removeprefix("Usage:").split())
    usage = re.sub(r"\{(\w+)\}", lambda name: name[1].upper(), usage)
    message = " ".join(error.format_message().split()).rstrip(".")
    extra = re.fullmatch(r"Got unexpected extra argument(?:\(s\))? \((\S+)\)", message)
    if extra and any(parameter.name == "out" for parameter in error.ctx.command.params):
        message = f"`{extra[1]}` is one argument too many; write --out {extra[1]}"
    return f"ackclock: {command + ': ' if command else ''}{message}; it is {usage}"


def _said(error: Exception) -> str:
    """Message of an error; errors of the operating system begin with the file name, like all others."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


@contextmanager
def _output() -> Iterator[None]:
    """Exit with status 0 if the reader of standard output has closed it, as `head` does."""
    try:
        yield
    except SystemExit as ended:
        # Typer would exit with status 1.
        if isinstance(ended.__context__, BrokenPipeError):
            raise SystemExit(0) from None
        _flush()
        raise


def _flush() -> None:
    """Flush standard output."""
    try:
        with naming(_STDOUT):
            sys.stdout.flush()
    except OSError as error:
        # Buffered text would fail again when the interpreter exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise SystemExit(0) from None
        raise


def main() -> None:
    """Run the command."""
    with _status(), _output():
        # Typer's own error messages have boxes around them.
        raise SystemExit(app(prog_name="ackclock", standalone_mode=False) or 0)


if __name__ == "__main__":
    main()
