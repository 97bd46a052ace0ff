"""`ackclock model` and `ackclock list models`, as a user types them."""

import json
import shlex
from pathlib import Path

import pytest

from ackclock.models import registry
from test_command import command

MODELS = registry.names()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_says_source_and_validation_and_what_its_arguments_mean(name):
    model = registry.load(name)
    for heading in ("## Source", "## What it does", "## Differences from the source", "## Validation"):
        assert heading in model.documentation, heading
    assert model.summary.endswith(".")
    assert all(one.meaning.endswith(".") for one in model.arguments)


@pytest.mark.parametrize(("name", "line"), [(name, line) for name in MODELS for line in registry.load(name).examples])
def test_every_example_of_a_models_help_runs_draws_and_prints_json(monkeypatch, capsys, tmp_path, name, line):
    # Some read a recording of the project.
    (tmp_path / "scenarios").symlink_to(Path(__file__).parents[2] / "scenarios")
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line)[1:]
    assert command(monkeypatch, *words, "--plot", "picture.svg") == 0
    text = capsys.readouterr().out
    assert text.strip()
    assert "</svg>" in (tmp_path / "picture.svg").read_text()
    assert command(monkeypatch, *words, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["model"] == name
    assert printed["result"]
    assert list(printed["arguments"]) == [one.name for one in registry.load(name).arguments]


def test_the_list_names_every_model_with_its_first_sentence(monkeypatch, capsys):
    assert command(monkeypatch, "list", "models") == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head == "models"
    assert [line.split()[0] for line in lines] == MODELS
    assert command(monkeypatch, "list", "models", "--json") == 0
    listed = json.loads(capsys.readouterr().out)["models"]
    assert [one["name"] for one in listed] == MODELS
    assert all(one["examples"] for one in listed)


def test_the_list_says_all_of_one_model(monkeypatch, capsys):
    assert command(monkeypatch, "list", "models", "pftk") == 0
    said = capsys.readouterr().out
    assert "## Source" in said
    assert "--w-max (default inf)" in said
    assert "ackclock model pftk 0.01 0.2 1" in said


@pytest.mark.parametrize("words", ["model nope", "list models nope"])
def test_an_unknown_model_names_those_there_are(monkeypatch, capsys, words):
    assert command(monkeypatch, *words.split()) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith("ackclock: no model 'nope'; there are: saw-tooth, ")


def test_a_picture_is_written_in_the_format_of_its_ending(monkeypatch, capsys, tmp_path):
    assert command(monkeypatch, "model", "frame-errors", "--plot", str(tmp_path / "f.svg")) == 0
    assert (tmp_path / "f.svg").read_text().startswith("<?xml")
    assert command(monkeypatch, "model", "frame-errors", "--plot", str(tmp_path / "f.txt")) == 2
    assert "is no picture" in capsys.readouterr().err


def test_numbers_that_do_not_exist_are_null(monkeypatch, capsys):
    assert command(monkeypatch, "model", "pftk", "0.01", "0.2", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["arguments"]["w_max"] is None
