"""`ackclock model NAME ...` and `ackclock list models`: the registry of models as commands."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from ackclock.models import registry
from ackclock.models.answer import Answer, known_numbers
from ackclock.models.registry import Argument, Model
from ackclock.text import printable

Print = Callable[[str], None]
_JSON = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
_PLOT = Annotated[Path | None, typer.Option(metavar="FILE", help="Image to write; its extension selects the format.")]


def group(show: Print) -> type[TyperGroup]:
    """The group of commands; models are imported when used, because SciPy is slow to import."""

    class Models(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            return registry.names()

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            return _command(registry.load(cmd_name), show)

    return Models


def listing(show: Print, name: str | None, as_json: bool) -> None:
    """Print all models, or describe one."""
    if name is not None:
        model = registry.load(name)
        show(json.dumps(model.as_json()) if as_json else _described(model))
    elif as_json:
        show(json.dumps({"models": [model.as_json() for model in registry.load_all()]}))
    else:
        width = max(map(len, registry.names()))
        lines = (f"  {model.name:{width}}  {model.summary}" for model in registry.load_all())
        show("\n".join(["models", *lines]))


def _described(model: Model) -> str:
    arguments = "\n".join(f"  {_signature(one)}\n      {one.meaning}" for one in model.arguments)
    examples = "\n".join(f"  {line}" for line in model.examples)
    return f"model {model.name}\n\n{model.documentation}\n\nArguments:\n{arguments}\n\nExamples:\n{examples}"


def _signature(argument: Argument) -> str:
    if argument.required:
        return argument.name.upper()
    return f"--{registry.dashed(argument.name)}" + ("" if argument.type is bool else f" (default {argument.default})")


def _command(model: Model, show: Print) -> Any:
    """A model as a command: its arguments, `--json` and `--plot`."""

    def perform(as_json: bool, plot: Path | None, **arguments: Any) -> None:
        answer = model.answer(**arguments)
        if plot is not None:
            _draw(model, answer, plot)
        if as_json:
            said = {"model": model.name, "arguments": _told(arguments), "result": answer.as_json()}
            show(json.dumps(said))
        else:
            show(answer.text())

    parameters = [_parameter(one) for one in model.arguments]
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters += [
        inspect.Parameter("as_json", keyword, default=False, annotation=_JSON),
        inspect.Parameter("plot", keyword, default=None, annotation=_PLOT),
    ]
    perform.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    perform.__annotations__ = {one.name: one.annotation for one in parameters}
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    examples = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in model.examples)
    app.command(model.name, help=model.summary, epilog=examples)(perform)
    return get_command(app)


def _parameter(argument: Argument) -> inspect.Parameter:
    if argument.required:
        kind: Any = typer.Argument(help=argument.meaning)
    else:
        kind = typer.Option(f"--{registry.dashed(argument.name)}", help=argument.meaning)
    return inspect.Parameter(
        argument.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=argument.default,
        annotation=Annotated[argument.type, kind],
    )


def _draw(model: Model, answer: Answer, path: Path) -> None:
    from ackclock import picture

    if answer.draw is None:
        raise ValueError(f"model {model.name} has no picture: leave out --plot")
    picture.check_ending(path)
    drawing = answer.draw()
    picture.save(drawing, path)


def _told(arguments: dict[str, Any]) -> Any:
    plain = {name: str(value) if isinstance(value, Path) else value for name, value in arguments.items()}
    return json.loads(printable(json.dumps(known_numbers(plain))))
