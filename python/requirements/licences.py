"""Asserts the licences of the installed packages that ackclock depends on: those that deny.toml allows.

`run.txt` names them; its hashes pin where they come from. What a package names in an older way, by a classifier or a
free text, is read as the SPDX identifier that it stands for.
"""

import re
import sys
import tomllib
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent.parent
CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF-2.0",
}


def main() -> int:
    """Print what is not allowed; the exit status says whether there is anything."""
    allowed = set(tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"])
    names = required((ROOT / "python" / "requirements" / "run.txt").read_text())
    problems = [problem for name in names if (problem := refused(name, allowed))]
    print("\n".join(problems) or f"licences of {len(names)} Python packages: ok")
    return 1 if problems else 0


def required(lock: str) -> list[str]:
    """The packages of a pinned list that this Python on this platform needs."""
    pins = [Requirement(line.rstrip("\\ ")) for line in lock.splitlines() if line and not line.startswith((" ", "#"))]
    return sorted(pin.name for pin in pins if pin.marker is None or pin.marker.evaluate())


def refused(name: str, allowed: set[str]) -> str | None:
    """Why the licence of a package is not allowed."""
    try:
        licence = stated(metadata(name))
    except PackageNotFoundError:
        return f"{name} is not installed"
    # Stricter than the law: of a choice, all must be allowed.
    named = [word for word in re.split(r" AND | OR |[()]", licence) if word.strip()]
    if named and all(word.strip() in allowed for word in named):
        return None
    return f"{name} has the licence {licence or 'of nobody'}, which deny.toml does not allow"


def stated(package: PackageMetadata) -> str:
    """The licence of a package: its SPDX expression, or what its classifiers or its free text say."""
    fields = package.json
    if expression := fields.get("license_expression"):
        return str(expression)
    named = [line.rsplit(" :: ", 1)[-1] for line in fields.get("classifier", []) if line.startswith("License ::")]
    return " AND ".join(CLASSIFIERS.get(name, name) for name in named) or str(fields.get("license", "")).split("\n")[0]


if __name__ == "__main__":
    sys.exit(main())
