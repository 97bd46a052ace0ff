"""The generated pages of the reference are what the program says now."""

import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT

REFERENCE = ROOT / "docs" / "reference"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference")
    subprocess.run([sys.executable, REFERENCE / "generate.py", folder], check=True)
    return folder


@pytest.mark.parametrize("page", ["scenario.md", "components.md", "json.md", "command.md", "models.md"])
def test_a_generated_page_is_not_stale(generated: Path, page: str) -> None:
    now, there = (generated / page).read_text(), (REFERENCE / page).read_text()
    assert now == there, f"docs/reference/{page} is stale: make pages"
