"""CPU seconds and peak memory of a command, with its start-up taken off."""

import json
import os
import subprocess
from collections.abc import Callable, Sequence
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
        return json.loads(self.output.splitlines()[-1])


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
    """Simulate `seconds` and, to know the start-up, next to nothing.

    The best of several is taken, since others may share the machine.
    """
    start_up = min(usage(command(INSTANT)).cpu_s for _ in range(best_of))
    whole = min((usage(command(seconds)) for _ in range(best_of)), key=lambda one: one.cpu_s)
    # The clock of a process is coarser than a short run is long: never claim less than it can tell.
    return Cost(max(whole.cpu_s - start_up, CLOCK_STEP), whole)


INSTANT = 0.001
CLOCK_STEP = 0.0005
