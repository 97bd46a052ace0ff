"""Instructions of six short simulations, compared with those that are kept: a change that costs speed is refused.

    python benches/instructions.py [--renew]

Counted by valgrind's callgrind on the command that tests run on, so that they do not depend on what else the machine
does. They do depend on the compiler: with another version than that of `instructions.json` nothing is judged.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = Path(__file__).with_suffix(".json")
MOST_RISE = 0.02
ONE_FLOW = ("benches/scenarios/one-flow.toml", "duration=900s")
RUNS = {
    "one flow": ONE_FLOW,
    "CUBIC": (*ONE_FLOW, "flow.sender=cubic"),
    "wrd": (*ONE_FLOW, "flow.sender=cubic", "edge.regulator=wrd", "edge.buffer=20p"),
    "forecast": (*ONE_FLOW, "flow.sender=cubic", "edge.regulator=forecast", "edge.buffer=20p"),
    "cell": ("benches/scenarios/cell.toml", "duration=5s"),
    "radio chain": ("scenarios/chain.toml", "duration=4s", "edge.at=[]"),
}


def main() -> int:
    """Count, compare, and with `--renew` keep."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--renew", action="store_true", help="keep the figures of now")
    renew = options.parse_args().renew
    if shutil.which("valgrind") is None:
        print("skipped: instructions: valgrind is not installed")
        return 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        now = dict(zip(RUNS, pool.map(lambda name: instructions(*RUNS[name]), RUNS), strict=True))
    compiler = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if renew:
        KEPT.write_text(json.dumps({"compiler": compiler, "instructions": now}, indent=2) + "\n")
    kept = json.loads(KEPT.read_text())
    if kept["compiler"] != compiler:
        print(f"skipped: instructions: those that are kept are of {kept['compiler']}, this is {compiler}")
        return 0
    rises = {name: now[name] / before - 1 for name, before in kept["instructions"].items()}
    for name, rise in rises.items():
        print(f"{name:12} {now[name] / 1e6:8.1f} million instructions {100 * rise:+6.2f} %")
    slower = [name for name, rise in rises.items() if rise > MOST_RISE]
    if slower:
        print(f"more than {MOST_RISE:.0%} above `{KEPT.relative_to(ROOT)}`: {', '.join(slower)}.")
        print("Find what costs them; `make instructions-renew` keeps the new figures, with the reason in the commit.")
    return bool(slower)


def instructions(scenario: str, *sets: str) -> int:
    """Instructions of one run."""
    command = ["ackclock", "run", str(ROOT / scenario), "--json", "--seed", "1"]
    command += [word for pair in sets for word in ("--set", pair)]
    # One thread, and no file that callgrind would leave in the folder.
    with tempfile.TemporaryDirectory() as folder:
        counted = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", *command]
        done = subprocess.run(
            counted, capture_output=True, text=True, env=os.environ | {"RAYON_NUM_THREADS": "1"}, check=False
        )
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return int(found[1])


if __name__ == "__main__":
    sys.exit(main())
