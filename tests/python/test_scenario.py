"""Scenarios given as path, text or mapping."""

import os
import tomllib
from pathlib import Path

import numpy as np
import pytest

from ackclock import scenario

TEXT = 'version = 1\n[edge]\nbuffer = "10p"\n[[flow]]\nsender = "reno"\n[[flow]]\nsender = "sack"\n'


def test_text_stays_as_it_is():
    assert scenario.source(TEXT) == scenario.Source(TEXT, "<python>", None)


def test_a_path_names_the_file_and_its_folder(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(TEXT)
    assert scenario.source(path) == scenario.Source(TEXT, str(path), str(tmp_path))
    assert scenario.source(str(path)).text == TEXT


def test_a_mapping_becomes_toml():
    table = tomllib.loads(TEXT)
    assert tomllib.loads(scenario.source(table).text) == table


def test_a_missing_file_is_an_error():
    with pytest.raises(FileNotFoundError, match=r"nowhere\.toml"):
        scenario.source("nowhere.toml")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [(b"\xff.toml", b"version = 1", "a file name that is not UTF-8"), (b"a.toml", b"\xff", r"a\.toml: not UTF-8")],
)
def test_a_name_or_text_that_is_not_utf_8_is_named(tmp_path, name, text, message):
    path = tmp_path / os.fsdecode(name)
    path.write_bytes(text)
    with pytest.raises(ValueError, match=message):
        scenario.source(path)


def test_a_flow_key_means_every_flow_and_the_original_stays():
    table = tomllib.loads(TEXT)
    changed = scenario.with_keys(table, {"flow.sender": "bbr", "edge.down.rate": "1mbit", "seed": 3})
    assert [flow["sender"] for flow in changed["flow"]] == ["bbr", "bbr"]
    assert changed["edge"] == {"buffer": "10p", "down": {"rate": "1mbit"}}
    assert changed["seed"] == 3
    assert table == tomllib.loads(TEXT)


def test_a_number_means_one_flow():
    changed = scenario.with_keys(tomllib.loads(TEXT), {"flow.1.rto.initial": "3s"})
    assert ["rto" in flow for flow in changed["flow"]] == [False, True]


def test_overrides_are_spelled_as_the_command_takes_them():
    assert scenario.overrides({"edge.buffer": "4p", "seed": 7, "path.loss": 0.5, "x": True}) == [
        "edge.buffer=4p",
        "seed=7",
        "path.loss=0.5",
        "x=true",
    ]


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int64(7), 7),
        (np.uint8(7), 7),
        (np.float64(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.longdouble(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("4p"), "4p"),
        (np.array(7), 7),
        (Path("recordings") / "a.down", "recordings/a.down"),
    ],
)
def test_numpy_and_paths_are_what_python_has(value, plain):
    table = {"seed": value, "edge": {"x": [value, {"y": value}]}, "flow": ({"z": value},)}
    expected = {"seed": plain, "edge": {"x": [plain, {"y": plain}]}, "flow": [{"z": plain}]}
    found = tomllib.loads(scenario.source(table).text)
    assert found == expected
    assert type(found["seed"]) is type(plain)
    assert scenario.overrides({"seed": value}) == scenario.overrides({"seed": plain})


def test_an_array_is_a_list():
    table = {"sweep": {"edge.regulator.alpha": np.array([1, 2]), "edge.buffer": np.array(["4p", "10p"])}}
    text = scenario.source(table).text
    assert tomllib.loads(text)["sweep"] == {"edge.regulator.alpha": [1, 2], "edge.buffer": ["4p", "10p"]}


@pytest.mark.parametrize("value", [None, {1}, np.complex128(1j)])
def test_a_value_that_no_scenario_has_is_named(value):
    with pytest.raises(TypeError, match=r"^edge\.buffer: .* cannot be used in a scenario"):
        scenario.source({"edge": {"buffer": value}})
    with pytest.raises(TypeError, match=r"^edge\.buffer: .* cannot be used in a scenario"):
        scenario.overrides({"edge.buffer": value})
