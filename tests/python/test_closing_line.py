"""The closing line of `make test` and `.ci/run`."""

import runpy
from pathlib import Path

closing_line = runpy.run_path(str(Path(__file__).parents[1] / "closing_line.py"))["closing_line"]


def test_a_skipped_test_of_cargo_is_no_passed_one_and_pytest_counts_its_own():
    log = """\
skipped: tshark is not installed
skipped: ACKCLOCK_SHARED is not set
test result: ok. 10 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.90s
skipped: tshark is not installed
test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
SKIPPED [2] tests/python/test_order.py:8: no recordings
=========== 4 passed, 1 error, 2 skipped, 5 deselected in 12.34s (0:00:12) ===========
skipped: ns-2 is not installed
"""
    # 10 + 3 - 3 of cargo and 4 of pytest; a failure and an error; 3 and 2 skipped, and what is no test at all.
    assert closing_line(log.splitlines()).splitlines() == [
        "14 passed, 2 failed, 6 skipped",
        "  2 skipped: tshark is not installed",
        "  2 skipped: no recordings",
        "  1 skipped: ACKCLOCK_SHARED is not set",
        "  1 skipped: ns-2 is not installed",
    ]


def test_headings_of_pytest_are_no_results():
    assert closing_line(["=== 3 test files in 1.0 ===", "=== FAILURES ==="]) == "0 passed, 0 failed, 0 skipped"
