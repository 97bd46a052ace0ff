"""CPU seconds and peak memory of a command, with its start-up taken off."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Command = Sequence[str]


@dataclass(frozen=True)
class Usage:
    """What one process took. The peak includes what this interpreter had when it started it: compare large ones."""

    cpu_s: float
    peak_bytes: int
    output: str

    def result(self) -> dict[str, Any]:
        """The last line that it printed, as JSON."""
        found: dict[str, Any] = json.loads(self.output.splitlines()[-1])
        return found


def usage(command: Command) -> Usage:
    """Run a command to its end; an error of it is ours."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    output = process.stdout.read()
    process.stdout.close()
    _, status, resources = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit status {process.returncode}")
    # Linux counts the peak in KiB.
    return Usage(resources.ru_utime + resources.ru_stime, resources.ru_maxrss * 1024, output)


@dataclass(frozen=True)
class Cost:
    """CPU seconds of a simulation without its start-up, and the run that they were read from."""

    cpu_s: float
    whole: Usage


def cost(command: Callable[[float], Command], seconds: float, best_of: int = 3) -> Cost:
    """Simulate `seconds` and, to know the start-up, next to nothing."""
    return in_turns({"": (command, seconds)}, best_of)[""]


def in_turns(commands: Mapping[str, tuple[Callable[[float], Command], float]], rounds: int) -> dict[str, Cost]:
    """Simulate so many seconds with each command, one after the other, for several rounds.

    The best of each is taken, since others may share the machine. They take turns because the clock of a processor
    wanders: measured one after the other, one may have had all of its runs in a slow minute.
    """
    start_ups: dict[str, float] = {}
    wholes: dict[str, Usage] = {}
    for _ in range(rounds):
        for name, (command, seconds) in commands.items():
            instant, whole = usage(command(INSTANT)), usage(command(seconds))
            start_ups[name] = min(start_ups.get(name, instant.cpu_s), instant.cpu_s)
            wholes[name] = min(wholes.get(name, whole), whole, key=lambda one: one.cpu_s)
    # The clock of a process is coarser than a short run is long: never claim less than it can tell.
    return {name: Cost(max(whole.cpu_s - start_ups[name], CLOCK_STEP), whole) for name, whole in wholes.items()}


INSTANT = 0.001
CLOCK_STEP = 0.0005
