"""Recordings of any form, read from Python."""

import json

import pytest

import ackclock


def table(path, header="when;down", row=lambda n: f"{n};1,5"):
    path.write_text("\n".join([header, *(row(n) for n in range(12))]) + "\n")
    return path


def test_a_table_is_read_by_its_columns_and_saved_as_ours(tmp_path):
    log = table(tmp_path / "log.csv")
    read = ackclock.recording(log, time="when", rate="down", unit="Mbit/s", decimal=",")
    assert (read.form, read.certainty) == ("columns", "lower-bound")
    assert read.times.tolist() == list(range(12))
    assert read.rates.tolist() == [1.5e6] * 12
    assert repr(read).endswith("log.csv: columns, 1500 kbit/s on average, lower-bound>")
    read.save(tmp_path / "ours.csv")
    again = ackclock.recording(tmp_path / "ours.csv")
    assert (again.form, again.certainty, again.why) == ("rates", "lower-bound", read.why)
    assert again.rates.tolist() == read.rates.tolist()


def test_a_known_form_needs_no_columns(tmp_path):
    sums = [{"start": n, "end": n + 1, "bits_per_second": 1e6 * n} for n in range(12)]
    test = {"start": {"test_start": {"reverse": 1}}, "intervals": [{"sum": one} for one in sums]}
    path = tmp_path / "iperf3.json"
    path.write_text(json.dumps(test))
    read = ackclock.recording(path)
    assert (read.form, read.certainty) == ("iperf3", "lower-bound")
    assert len(read.plot().axes) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time": "wen", "rate": "down", "unit": "Mbit/s"}, r"log\.csv: line 1: there is no column `wen`: when, down"),
        ({"time": "when", "rate": "down"}, "is `down` in kbit/s or Mbit/s"),
        ({"time": "when", "rate": "down", "unit": "mbits"}, "^unit: `mbits`: it is one of bit/s"),
        ({"form": "iperf"}, "^form: `iperf`: it is one of mahimahi"),
        ({"direction": "sideways"}, "^direction: `sideways`: it is one of down, up"),
        ({"skip": -1}, "^skip: `-1`: it is a whole number"),
        ({}, "no known form begins with"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        ackclock.recording(table(tmp_path / "log.csv"), **options)


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv"):
        ackclock.recording("nowhere.csv")


def test_a_built_in_recording_is_read_like_a_file():
    assert ackclock.recording("synthetic:lte-driving").rates.mean() == pytest.approx(4.72e6, rel=0.01)
    with pytest.raises(ValueError, match=r"synthetic:lte: no such recording is built in; there are evdo-driving"):
        ackclock.recording("synthetic:lte")
