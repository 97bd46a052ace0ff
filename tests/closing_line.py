"""Says on one line how many tests passed, failed and were skipped, then which failed and why some were skipped.

    closing_line.py LOG...

Logs are what `cargo test -- --show-output` and `pytest -ra` print. To cargo a test that was skipped is one that passed;
it says so by a line `skipped: REASON`.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

CARGO = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
PYTEST = re.compile(r"^=+ (?=.*\bin [\d.]+s)(.*) =+$")
CARGO_FAILED = re.compile(r"^    (\S+(?: - .*)?)$")
PYTEST_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)")
CARGO_SKIPPED = re.compile(r"^skipped: (.*)$")
PYTEST_SKIPPED = re.compile(r"^SKIPPED \[(\d+)\] [^ ]+: (.*)$")


def main() -> int:
    """Read the logs that are there."""
    lines = [line for log in sys.argv[1:] if Path(log).exists() for line in Path(log).read_text().splitlines()]
    print(closing_line(lines))
    return 0


def closing_line(lines: Iterable[str]) -> str:
    """The line, and below it one for each failed test and each reason."""
    lines = list(lines)
    passed = failed = 0
    pending = 0  # skipped tests of the program of tests whose result comes next
    reasons: Counter[str] = Counter()
    for line in lines:
        if found := CARGO.match(line):
            passed += int(found[1]) - pending
            failed += int(found[2])
            pending = 0
        elif found := PYTEST.match(line):
            counts = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", found[1])}
            passed += counts.get("passed", 0)
            failed += counts.get("failed", 0) + counts.get("error", 0) + counts.get("errors", 0)
        elif found := CARGO_SKIPPED.match(line):
            reasons[found[1]] += 1
            pending += 1
        elif found := PYTEST_SKIPPED.match(line):
            reasons[found[2]] += int(found[1])
    named = "".join(f"\n  failed: {name}" for name in failed_tests(lines))
    told = "".join(f"\n  {number} skipped: {reason}" for reason, number in reasons.most_common())
    return f"{passed} passed, {failed} failed, {reasons.total()} skipped{named}{told}"


def failed_tests(lines: list[str]) -> list[str]:
    """Names of the failed tests."""
    names: list[str] = []
    listed: list[str] = []  # below the last heading `failures:` of cargo; only its last list has names alone
    for line in lines:
        if found := CARGO.match(line):
            names += listed[: int(found[2])]
            listed = []
        elif line == "failures:":
            listed = []
        elif found := CARGO_FAILED.match(line):
            listed.append(found[1])
        elif found := PYTEST_FAILED.match(line):
            names.append(found[1])
    return names


if __name__ == "__main__":
    sys.exit(main())
