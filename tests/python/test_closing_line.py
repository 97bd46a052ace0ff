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


def test_failed_tests_are_named():
    log = """\
failures:

---- law::holds stdout ----
    a line of its output
thread 'law::holds' panicked at crates/ackclock-box/tests/law.rs:3:5:

failures:
    law::holds
    src/lib.rs - Link (line 12)

test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
    indented words of a later program
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
FAILED tests/python/test_box.py::test_stop - AssertionError: assert 1 == 2
ERROR tests/python/test_link.py::test_start
=========== 1 failed, 4 passed, 1 error in 12.34s ===========
"""
    assert closing_line(log.splitlines()).splitlines() == [
        "8 passed, 4 failed, 0 skipped",
        "  failed: law::holds",
        "  failed: src/lib.rs - Link (line 12)",
        "  failed: tests/python/test_box.py::test_stop",
        "  failed: tests/python/test_link.py::test_start",
    ]


def test_headings_of_pytest_are_no_results():
    assert closing_line(["=== 3 test files in 1.0 ===", "=== FAILURES ==="]) == "0 passed, 0 failed, 0 skipped"
