"""All models; each is one file and one line here.

A file holds the formulas as functions, and one function `model` whose arguments are those of `ackclock model NAME`:
those without a default are positional, the others options. Each is `Annotated` with its meaning. `EXAMPLES`
are command lines for the help. Nothing is declared twice: name, arguments and documentation of
the command, of `ackclock list models` and of the reference come from the file.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any, get_args, get_type_hints

from ackclock.models.answer import Answer

MODELS = (
    "saw_tooth",
    "cycles",
    "pftk",
    "poisson_sde",
    "capacity",
    "effective_delay",
    "bounded_pareto",
    "rayleigh",
    "frame_errors",
    "power_control",
    "packet_delay",
    "degradation",
    "friendliness",
    "optimal_delays",
    "retransmission",
    "feedforward_loop",
    "feedback_loop",
    "bound",
)


@dataclass(frozen=True)
class Argument:
    """An argument of a model.

    Attributes:
        name: Name in Python.
        type: Type to which it is converted.
        meaning: Description with unit.
        default: Default value; `inspect.Parameter.empty` if it is required.
    """

    name: str
    type: Any
    meaning: str
    default: Any

    @property
    def required(self) -> bool:
        """Whether it is required."""
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True)
class Model:
    """A model of the command.

    Attributes:
        name: Name in the command.
        module: Its file.
    """

    name: str
    module: ModuleType

    @property
    def answer(self) -> Callable[..., Answer]:
        """Computes the result."""
        function: Callable[..., Answer] = self.module.model
        return function

    @cached_property
    def documentation(self) -> str:
        """Its file's documentation: source, equations, differences from the source, validation."""
        return inspect.cleandoc(self.module.__doc__ or "")

    @property
    def summary(self) -> str:
        """Its first sentence."""
        return " ".join(self.documentation.split("\n\n")[0].split())

    @property
    def examples(self) -> list[str]:
        """Command lines."""
        return [f"ackclock model {self.name} {arguments}".rstrip() for arguments in self.module.EXAMPLES]

    @cached_property
    def arguments(self) -> list[Argument]:
        """Its arguments in order."""
        hints = get_type_hints(self.answer, include_extras=True)
        found = []
        for name, parameter in inspect.signature(self.answer).parameters.items():
            kind, meaning = get_args(hints[name])
            found.append(Argument(name, kind, meaning, parameter.default))
        return found

    def as_json(self) -> dict[str, Any]:
        """The object of `ackclock list models --json`."""
        return {
            "name": self.name,
            "description": self.summary,
            "documentation": self.documentation,
            "arguments": [
                {
                    "name": one.name if one.required else f"--{dashed(one.name)}",
                    "description": one.meaning,
                    "required": one.required,
                    "default": None if one.required else str(one.default),
                }
                for one in self.arguments
            ],
            "examples": self.examples,
        }


def dashed(name: str) -> str:
    """A Python name in the command's spelling."""
    return name.replace("_", "-")


def names() -> list[str]:
    """Names of all models in the command's spelling."""
    return [dashed(name) for name in MODELS]


def load(name: str) -> Model:
    """A model by its name in the command.

    Raises:
        ValueError: naming the known models.
    """
    if name not in names():
        raise ValueError(f"no model {name!r}; there are: {', '.join(names())}")
    return Model(name, import_module(f"ackclock.models.{name.replace('-', '_')}"))


def load_all() -> Iterator[Model]:
    """All models."""
    return map(load, names())
