"""The stub says what the binary is."""

import importlib.util
import subprocess
import sys

import pytest

from ackclock import _core

if not hasattr(_core, "run"):
    pytest.skip("the compiled module is not built; `maturin develop` builds it", allow_module_level=True)


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_the_stub_agrees_with_the_binary(tmp_path):
    checked = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "ackclock._core", "--concise"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
