"""Regulators in Python: a class of some 30 lines that a scenario uses by name, for simulated edges.

A class gives the methods that it needs: `on_ack` holds ACKs or limits their window, `on_data` drops or marks data,
`on_queued`, `on_dropped`, `on_departed` and `on_idle` observe the queue, and `on_timer` runs at the time `wake`. Times
are seconds, sizes bytes, rates bit/s.
"""

import hashlib
import inspect
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from ackclock import _core
from ackclock._core import Regulator
from ackclock.scenario import toml

Scope = Literal["flow", "user", "queue"]
Class = TypeVar("Class", bound=type[Regulator])


@dataclass(frozen=True)
class Registered:
    """A registered class.

    Attributes:
        made: The class.
        scope: Which flows share an object of it.
        source_sha256: SHA-256 of its source, which tells results of different versions apart.
    """

    made: type[Regulator]
    scope: Scope
    source_sha256: str


CLASSES: dict[str, Registered] = {}
"""The registered classes by name."""


def regulator(name: str, *, scope: Scope = "flow") -> Callable[[Class], Class]:
    """Register a class as the regulator `name`, to be used in scenarios like a built-in one.

    Annotated attributes with a default (`str`, `int`, `float` or `bool`) are the keys of its table, except for those
    annotated as `ClassVar`.

    Args:
        name: Name in scenarios: `edge.regulator = "NAME"`, or a table with `kind = "NAME"`.
        scope: Which flows share an object of the class: each has its own (`flow`), those of a `user`, or all (`queue`).

    Raises:
        TypeError: if the class does not derive from `Regulator`, or the default of a key has another type.
        ValueError: if a built-in regulator or another class has this name.

    Example:
        >>> @regulator("half-window")
        ... class HalfWindow(Regulator):
        ...     "Offers half of the receiver's window."
        ...     def on_ack(self, now, ack, queue):
        ...         ack.advertise((ack.window or 0) // 2)
        ...         return ack
    """

    def register(made: Class) -> Class:
        if not (isinstance(made, type) and issubclass(made, Regulator)):
            raise TypeError(f"{name}: {made!r} is not a class that derives from ackclock.Regulator")
        if name in CLASSES and _path(CLASSES[name].made) != _path(made):
            raise ValueError(f"{name}: is the name of {_path(CLASSES[name].made)} already")
        _add(name, Registered(made, scope, _source_sha256(made)))
        return made

    return register


def ensure(classes: dict[str, Registered]) -> None:
    """Register the classes of another process, unless they are known."""
    for name, registered in classes.items():
        if name not in CLASSES or CLASSES[name].source_sha256 != registered.source_sha256:
            _add(name, registered)


def check(made: type[Regulator], *, scenarios: int = 50, seed: int = 1) -> None:
    """Run a registered class in random scenarios and check the laws of regulators.

    A run gives the same result when it is repeated, and when the class is woken at other times too; no ACK is lost, and
    no exception is raised. (The engine itself never moves the right edge of a window to the left, and releases held
    ACKs when their flow ends.)

    Args:
        made: The class.
        scenarios: Number of random scenarios, of 5 s each.
        seed: Seed of the random scenarios.

    Raises:
        AssertionError: with the scenario, if a law does not hold.
        ValueError: if the class is not registered.
    """
    names = [name for name, known in CLASSES.items() if known.made is made]
    if not names:
        raise ValueError(f"{_path(made)}: is not registered; use @ackclock.regulator(NAME)")
    draw = random.Random(seed)
    for _ in range(scenarios):
        scenario = toml(_random_scenario(draw, names[0]))
        once, again, woken = (_result(scenario, extra_wakes=extra) for extra in (False, False, True))
        assert once == again, f"{made.__qualname__}: two runs of this scenario differ:\n{scenario}"
        assert once == woken, f"{made.__qualname__}: being woken at other times changes this scenario:\n{scenario}"


def _result(scenario: str, *, extra_wakes: bool) -> Any:
    """Result of the first run, without the counters of the engine."""
    return json.loads(_core.run(scenario, extra_wakes=extra_wakes)[0].json) | {"engine": None}


def _random_scenario(draw: random.Random, name: str) -> dict[str, Any]:
    loss = {"loss": draw.choice(["0.1%", "1%"])} if draw.random() < 0.3 else {}
    rate = f"{draw.choice([64, 384, 2000, 10_000])}kbit/s"
    down = {"kind": "constant", "rate": rate, "delay": f"{draw.randint(1, 200)}ms", **loss}
    return {
        "version": 1,
        "preset": "linux",
        "seed": draw.randint(1, 10**6),
        "duration": "5s",
        "path": {"delay": f"{draw.randint(1, 100)}ms"},
        "edge": {"buffer": f"{draw.choice([3, 10, 100])}p", "regulator": name, "down": down},
        "flow": [{"sender": draw.choice(["cubic", "reno", "bbr"]), "count": draw.randint(1, 3)}],
    }


def _keys(name: str, made: type[Regulator]) -> dict[str, str | int | float | bool]:
    annotations = {key: str(kind) for base in made.__mro__ for key, kind in inspect.get_annotations(base).items()}
    annotated = {key for key, kind in annotations.items() if "ClassVar" not in kind}
    keys = {}
    for key in sorted(annotated):
        default = getattr(made, key, None)
        if not isinstance(default, str | int | float):
            raise TypeError(f"{name}: {key} = {default!r}: a key needs a default of type str, int, float or bool")
        keys[key] = default
    return keys


def _add(name: str, registered: Registered) -> None:
    made = registered.made
    description = inspect.getdoc(made) or f"{_path(made)}, a class in Python."
    keys = json.dumps(_keys(name, made))
    _core.add_regulator(name, made, registered.scope, keys, description, registered.source_sha256)
    CLASSES[name] = registered


def _path(made: type[Regulator]) -> str:
    return f"{made.__module__}.{made.__qualname__}"


def _source_sha256(made: type[Regulator]) -> str:
    try:
        source = inspect.getsource(made)
    except (OSError, TypeError):  # typed into an interpreter
        source = _path(made)
    return hashlib.sha256(source.encode()).hexdigest()
