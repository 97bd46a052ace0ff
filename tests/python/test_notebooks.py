"""The example notebooks run from their first cell to their last, and every figure and table can be shown."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def run_cell(text: str, names: dict[str, Any]) -> Any:
    """What a notebook shows below a cell: the value of its last line, if that is an expression."""
    tree = ast.parse(text)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if last is not None else None


def shown(value: Any) -> str:
    """The markup that a notebook takes of a value."""
    for name in ("_repr_svg_", "_repr_html_"):
        if hasattr(value, name):
            return getattr(value, name)()
    raise AssertionError(f"a notebook shows {value!r} as plain text")


def test_there_are_two_notebooks():
    assert len(NOTEBOOKS) == 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_each_cell_ends_with(path, monkeypatch):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    monkeypatch.chdir(path.parent)
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert shown(run_cell("".join(cell["source"]), names)).startswith(("<svg", "<div", "<p"))
