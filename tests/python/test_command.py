"""The Python half of the command, as a user types it."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackclock import __main__, cluster
from conftest import run_object, swept_objects


def command(monkeypatch, *args: str) -> int:
    """Run `python -m ackclock ARGS` in this process and return its exit status."""
    monkeypatch.setattr(sys, "argv", ["ackclock", *args])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    code = ended.value.code
    return code if isinstance(code, int) else int(bool(code))


def test_a_model_prints_its_throughput(monkeypatch, capsys):
    assert command(monkeypatch, "model", "saw-tooth", "25", "0.44", "10") == 0
    assert capsys.readouterr().out == "25 packets/s, 200 kbit/s at 1000 bytes a packet\n"


def test_capacity_is_in_the_unit_given(monkeypatch, capsys):
    assert command(monkeypatch, "model", "capacity", "200", "50") == 0
    assert capsys.readouterr().out == "186.8\n"


@pytest.mark.parametrize(
    "args",
    [
        ("paper", "nope"),
        ("model", "capacity", "100", "80"),
        ("report", "nowhere.jsonl", "--out", "r.html"),
        ("model", "capacity", "many", "80"),
        ("--nonsense",),
    ],
)
def test_wrong_input_is_exit_status_2(monkeypatch, capsys, args):
    assert command(monkeypatch, *args) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_report_is_written_whole(monkeypatch, tmp_path):
    runs, out = tmp_path / "runs.jsonl", tmp_path / "new" / "report.html"
    runs.write_text("\n".join(json.dumps(run) for run in swept_objects()))
    assert command(monkeypatch, "report", str(runs), "--out", str(out)) == 0
    assert out.read_text().rstrip().endswith("</html>")
    assert [path.name for path in out.parent.iterdir()] == ["report.html"]


SERIES = """\
t_s,flow3.cwnd_bytes,flow3.ssthresh_bytes,flow3.rtt_ms,flow3.delivered_bytes,flow3.mss_bytes,edge.queue_packets
0,960,9600,,0,960,0
0.5,1920,9600,400,1000,960,1
1,3840,9600,500,4000,960,2
"""


def test_a_report_draws_the_series_that_the_command_wrote(monkeypatch, tmp_path):
    runs, series, out = tmp_path / "runs.jsonl", tmp_path / "run.csv", tmp_path / "report.html"
    runs.write_text(json.dumps(run_object()))
    series.write_text(SERIES)
    assert command(monkeypatch, "report", str(runs), "--out", str(out), "--series", str(series)) == 0
    assert "Run 1, flow 3." in out.read_text()
    series.write_text("a,b\n1,2\n")
    assert command(monkeypatch, "report", str(runs), "--out", str(out), "--series", str(series)) == 2


def test_a_disk_without_room_is_a_run_that_failed(monkeypatch, tmp_path, capsys):
    runs = tmp_path / "runs.jsonl"
    runs.write_text(json.dumps(run_object()))
    assert command(monkeypatch, "report", str(runs), "--out", "/dev/full") == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert "No space left" in error
    assert command(monkeypatch, "report", str(runs), "--out", str(runs / "report.html")) == 2  # in a file


def test_a_bad_line_leaves_no_report(monkeypatch, tmp_path, capsys):
    runs, out = tmp_path / "runs.jsonl", tmp_path / "report.html"
    runs.write_text(json.dumps(run_object()) + "\n{}")
    assert command(monkeypatch, "report", str(runs), "--out", str(out)) == 2
    assert "runs.jsonl:2" in capsys.readouterr().err
    assert not out.exists()


@given(st.integers(0, 60), st.integers(1, 20))
def test_the_parts_of_a_clusters_sweep_come_back_in_order(jobs, parts):
    lines = [str(k) for k in range(jobs)]
    assert cluster.interleaved([lines[i::parts] for i in range(parts)]) == lines
