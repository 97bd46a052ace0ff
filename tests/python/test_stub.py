"""The stub names what the binary has; `make check` compares the types too."""

import ast
import inspect
from pathlib import Path

import ackclock
from ackclock import _core

STUB = ast.parse(Path(ackclock.__file__).with_name("_core.pyi").read_text(encoding="utf-8"))


def parameters(function: ast.FunctionDef) -> list[str]:
    names = function.args
    every = [*names.posonlyargs, *names.args, names.vararg, *names.kwonlyargs, names.kwarg]
    return [argument.arg for argument in every if argument is not None]


def test_every_name_is_in_the_stub_and_no_other():
    named = {node.name for node in STUB.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert named | {"__version__"} == set(_core.__all__)


def test_functions_take_what_the_stub_says():
    for node in STUB.body:
        if isinstance(node, ast.FunctionDef):
            assert parameters(node) == list(inspect.signature(getattr(_core, node.name)).parameters), node.name


def test_classes_have_what_the_stub_says():
    for node in STUB.body:
        if isinstance(node, ast.ClassDef):
            binary = getattr(_core, node.name)
            members = {member.name: member for member in node.body if isinstance(member, ast.FunctionDef)}
            constants = {
                one.target.id
                for one in node.body
                if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
            }
            public = {name for name in vars(binary) if not name.startswith("_")}
            assert public == {name for name in members.keys() | constants if not name.startswith("_")}, node.name
            for name, member in members.items():
                if name in public and callable(getattr(binary, name)):
                    assert parameters(member) == list(inspect.signature(getattr(binary, name)).parameters), name
