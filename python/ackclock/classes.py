"""Regulators and congestion controls in Python: classes of some 30 lines that scenarios use by name, in simulations.

A class overrides the methods that it needs, and its annotated attributes are keys of its table. Times are seconds,
sizes bytes, rates bit/s.
"""

import hashlib
import inspect
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from ackclock import _core
from ackclock._core import CongestionControl, Regulator
from ackclock.scenario import toml

Scope = Literal["flow", "user", "queue"]
Kind = type[Regulator] | type[CongestionControl]
R = TypeVar("R", bound=type[Regulator])
C = TypeVar("C", bound=type[CongestionControl])


@dataclass(frozen=True)
class Registered:
    """A registered class.

    Attributes:
        made: The class.
        scope: Which flows share an object of a regulator; None for a congestion control.
        source_sha256: SHA-256 of its source, which tells results of different versions apart.
    """

    made: Kind
    scope: Scope | None
    source_sha256: str


CLASSES: dict[str, Registered] = {}
"""The registered classes by name."""


def regulator(name: str, *, scope: Scope = "flow") -> Callable[[R], R]:
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
        ...
        ...     def on_ack(self, now, ack, queue):
        ...         ack.advertise((ack.window or 0) // 2)
        ...         return ack
    """

    def register(made: R) -> R:
        _register(name, made, Regulator, scope)
        return made

    return register


def congestion_control(name: str) -> Callable[[C], C]:
    """Register a class as the sender `name`: SACK recovery with the congestion control of the class.

    Keys are as for `regulator`; the options of the sender `sack` are keys too.

    Raises:
        TypeError: if the class does not derive from `CongestionControl`, or the default of a key has another type.
        ValueError: if a built-in sender or another class has this name, or a key is an option of all senders.

    Example:
        >>> @congestion_control("constant-window")
        ... class ConstantWindow(CongestionControl):
        ...     "Keeps a window of `packets`."
        ...     packets: int = 20
        ...
        ...     def start(self, initial_window):
        ...         self.window = self.packets * self.mss
    """

    def register(made: C) -> C:
        _register(name, made, CongestionControl, None)
        return made

    return register


def _register(name: str, made: Kind, base: type, scope: Scope | None) -> None:
    if not (isinstance(made, type) and issubclass(made, base)):
        raise TypeError(f"{name}: {made!r} is not a class that derives from ackclock.{base.__name__}")
    if name in CLASSES and _path(CLASSES[name].made) != _path(made):
        raise ValueError(f"{name}: is the name of {_path(CLASSES[name].made)} already")
    _add(name, Registered(made, scope, _source_sha256(made)))


def ensure(classes: dict[str, Registered]) -> None:
    """Register the classes of another process, unless they are known."""
    for name, registered in classes.items():
        if name not in CLASSES or CLASSES[name].source_sha256 != registered.source_sha256:
            _add(name, registered)


def check(made: Kind, *, scenarios: int = 50, seed: int = 1) -> None:
    """Run a registered class in random scenarios and check its laws.

    A run gives the same result when it is repeated, and when a regulator is woken at other times too; no exception is
    raised. (The engine itself never moves the right edge of a window to the left, releases held ACKs when their flow
    ends, and keeps a congestion window of at least one segment.)

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
        raise ValueError(f"{_path(made)}: is not registered; use @ackclock.regulator or @ackclock.congestion_control")
    draw = random.Random(seed)
    for _ in range(scenarios):
        scenario = toml(_random_scenario(draw, names[0], issubclass(made, Regulator)))
        once, again, woken = (_result(scenario, extra_wakes=extra) for extra in (False, False, True))
        assert once == again, f"{made.__qualname__}: two runs of this scenario differ:\n{scenario}"
        assert once == woken, f"{made.__qualname__}: being woken at other times changes this scenario:\n{scenario}"


def _result(scenario: str, *, extra_wakes: bool) -> Any:
    """Result of the first run, without the counters of the engine."""
    return json.loads(_core.run(scenario, extra_wakes=extra_wakes)[0].json) | {"engine": None}


def _random_scenario(draw: random.Random, name: str, regulates: bool) -> dict[str, Any]:
    loss = {"loss": draw.choice(["0.1%", "1%"])} if draw.random() < 0.3 else {}
    rate = f"{draw.choice([64, 384, 2000, 10_000])}kbit/s"
    down = {"kind": "constant", "rate": rate, "delay": f"{draw.randint(1, 200)}ms", **loss}
    regulator = name if regulates else draw.choice(["none", "wrd"])
    sender = draw.choice(["cubic", "reno", "bbr"]) if regulates else name
    return {
        "version": 1,
        "preset": "linux",
        "seed": draw.randint(1, 10**6),
        "duration": "5s",
        "path": {"delay": f"{draw.randint(1, 100)}ms"},
        "edge": {"buffer": f"{draw.choice([3, 10, 100])}p", "regulator": regulator, "down": down},
        "flow": [{"sender": sender, "count": draw.randint(1, 3)}],
    }


def _keys(name: str, made: Kind) -> dict[str, str | int | float | bool]:
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
    # The description of a class without one would be that of its base.
    description = inspect.cleandoc(made.__doc__ or f"{_path(made)}, a class in Python.")
    registration = name, made, json.dumps(_keys(name, made)), description, registered.source_sha256
    if registered.scope is None:
        _core.add_congestion_control(registration)
    else:
        _core.add_regulator(registration, registered.scope)
    CLASSES[name] = registered


def _path(made: Kind) -> str:
    return f"{made.__module__}.{made.__qualname__}"


def _source_sha256(made: Kind) -> str:
    try:
        source = inspect.getsource(made)
    except (OSError, TypeError):  # typed into an interpreter
        source = _path(made)
    return hashlib.sha256(source.encode()).hexdigest()
