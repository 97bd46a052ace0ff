"""The Python half of the command, as a user types it."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ackclock import __main__
from ackclock.files import write_text
from conftest import run_object, swept_objects

SWEEP = """
version = 1
preset = "cr02"
duration = "1s"
[[flow]]
sender = "reno"
[sweep]
"edge.buffer" = ["4p"]
"""


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


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("paper", "paper: Missing argument 'KEY'; it is ackclock paper [OPTIONS] KEY"),
        (
            "model saw-tooth 25",
            "model saw-tooth: Missing argument 'RTT'; it is ackclock model saw-tooth [OPTIONS] MU RTT",
        ),
        ("model capacity many 80", "model capacity: Invalid value for 'MEAN': "),
        ("paper cr02 --sedes 3", "paper: No such option: --sedes "),
        ("report runs.jsonl", "report: Missing option '--out'"),
        ("trace plot x.down x.png", "trace plot: `x.png` is one argument too many; write --out x.png"),
        ("sweep s.toml --engine spark", "sweep: Invalid value for '--engine': "),
    ],
)
def test_a_slip_is_told_in_one_line_by_the_name_that_was_typed(monkeypatch, capsys, args, message):
    assert command(monkeypatch, *args.split()) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.lower().startswith(f"ackclock: {message}".lower())
    assert "python -m" not in error


def test_help_is_plain_text_by_the_name_that_was_typed(monkeypatch, capsys):
    assert command(monkeypatch, "paper", "--help") == 0
    assert capsys.readouterr().out.startswith("Usage: ackclock paper [OPTIONS]")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("pftk 0 0.6 1.5", "p: 0.0 is not above 0 and below 1"),
        ("pftk 0.01 0.6 1.5 --b 0", "b: 0 is not 1 or above"),
        ("pftk 0.01 0.6 1.5 --w-max -5", "w_max: -5.0 is not 1 or above"),
        ("saw-tooth 25 0 10", "T (minimum RTT): 0.0 is not above 0"),
        ("saw-tooth -- -1 1 1", "mu: -1.0 is not above 0"),
        ("cycles 25 0.4 10 20 1 0.7 0.7", "p1 + p2: 1.4 is not from 0 to 1"),
        ("poisson-sde 0 0 1", "td_rate + to_rate: 0.0 is not above 0"),
        ("capacity nan 1", "mean: nan is not above 0"),
    ],
)
def test_a_model_names_the_argument_that_is_wrong(monkeypatch, capsys, args, message):
    assert command(monkeypatch, "model", *args.split()) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith(f"ackclock: {message}")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_gone_is_no_failure(unbuffered):
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [sys.executable, "-m", "ackclock", "model", "saw-tooth", "25", "0.44", "10"],
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered}, stdout=writer, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_standard_output_without_room_is_a_run_that_failed(unbuffered):
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "ackclock", "model", "saw-tooth", "25", "0.44", "10"],
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered}, stdout=full, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
    assert ended.returncode == 1
    (error,) = ended.stderr.splitlines()
    assert error == b"ackclock: standard output: No space left on device"


def test_control_characters_of_names_are_escaped(monkeypatch, tmp_path, capsys):
    evil = tmp_path / "no\x1b[2J\x9b\nackclock: all is well.csv"
    assert command(monkeypatch, "trace", "plot", str(evil), "--out", str(tmp_path / "x.svg")) == 2
    first, *further = capsys.readouterr().err.splitlines()
    assert first.endswith("no\\u001b[2J\\u009b")
    assert all(line.startswith("  ") for line in further)


@pytest.mark.parametrize("out", ["noending", "wrong.part", "/dev/null"])
def test_a_picture_without_a_pictures_ending_is_exit_status_2(monkeypatch, tmp_path, capsys, out):
    monkeypatch.chdir(tmp_path)
    recording = tmp_path / "rates.csv"
    recording.write_text("time_s,rate_kbps\n0,100\n5,\n")
    assert command(monkeypatch, "trace", "plot", str(recording), "--out", out) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith(f"ackclock: {out}: is no picture; its name must end in one of ")
    assert list(tmp_path.iterdir()) == [recording]


def test_a_recording_whose_name_is_not_utf_8_is_exit_status_2(monkeypatch, tmp_path, capsys):
    recording = tmp_path / os.fsdecode(b"\xff.csv")
    recording.write_text("time_s,rate_kbps\n0,100\n5,\n")
    assert command(monkeypatch, "trace", "plot", str(recording), "--out", str(tmp_path / "a.svg")) == 2
    assert "a file name that is not UTF-8" in capsys.readouterr().err


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
    assert '<figure id="over-time">' in out.read_text()
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


RATES = "time_s,rate_kbps\n0,100\n5,\n"


@pytest.mark.parametrize(
    ("recording", "out", "status", "message"),
    [
        ("nope.csv", "a.svg", 2, "nope.csv: No such file or directory"),
        ("folder.svg", "a.svg", 2, "folder.svg: Is a directory"),
        ("bad.csv", "a.svg", 2, "bad.csv: line 1: it is not text in UTF-8"),
        ("rates.csv", "full.svg", 1, "full.svg: No space left on device"),
        ("rates.csv", "folder.svg", 2, "folder.svg: Is a directory"),
        ("rates.csv", "/proc/a.svg", 2, "/proc/a.svg: No such file or directory"),
        ("rates.csv", "bad.csv/a.svg", 2, "bad.csv/a.svg: Not a directory"),
        ("rates.csv", "bad.csv/b/a.svg", 2, "bad.csv/b/a.svg: Not a directory"),
    ],
)
def test_a_file_that_cannot_be_read_or_written_is_named(monkeypatch, tmp_path, capsys, recording, out, status, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rates.csv").write_text(RATES)
    (tmp_path / "bad.csv").write_bytes(b"\xff")
    (tmp_path / "full.svg").symlink_to("/dev/full")
    (tmp_path / "folder.svg").mkdir()
    assert command(monkeypatch, "trace", "plot", recording, "--out", out) == status
    assert capsys.readouterr().err == f"ackclock: {message}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "folder.svg", "full.svg", "rates.csv"]


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        ("report nope.jsonl --out a.html", 2, "nope.jsonl: No such file or directory"),
        ("report /proc/self/mem --out a.html", 1, "/proc/self/mem: Input/output error"),
        ("report runs.jsonl --out a.html --series nope.csv", 2, "nope.csv: No such file or directory"),
        ("report odd.jsonl --out a.html", 2, "odd.jsonl:1: not the object of a run (no list `flows`)"),
        ("report text.jsonl --out a.html", 2, "text.jsonl: could not convert string to float: 'x'"),
        ("report runs.jsonl --out /dev/full", 1, "/dev/full: No space left on device"),
        ("sweep nope.toml", 2, "nope.toml: No such file or directory"),
        ("sweep sweep.toml --out /dev/full", 1, "/dev/full: No space left on device"),
    ],
)
def test_a_file_of_a_report_or_sweep_is_named(monkeypatch, tmp_path, capsys, args, status, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs.jsonl").write_text(json.dumps(run_object()))
    (tmp_path / "odd.jsonl").write_text('{"flows": 5}')
    (tmp_path / "text.jsonl").write_text(json.dumps(run_object(point={"a": 1})).replace("144000.0", '"x"'))
    (tmp_path / "sweep.toml").write_text(SWEEP)
    assert command(monkeypatch, *args.split()) == status
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith(f"ackclock: {message}")


def test_a_full_disk_names_the_file():
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'") as error:
        write_text(Path("/dev/full"), "half")
    assert (error.value.errno, error.value.filename) == (errno.ENOSPC, "/dev/full")


def test_a_file_comes_with_its_folders_and_nothing_else(tmp_path):
    write_text(tmp_path / "a" / "b" / "c.html", "whole")
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "b", "c.html"]
    assert (tmp_path / "a" / "b" / "c.html").read_text() == "whole"
    with pytest.raises(NotADirectoryError):
        write_text(tmp_path / "a" / "b" / "c.html" / "d", "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
def test_a_folder_that_another_user_planted_is_not_written_through(tmp_path):
    tmp_path.chmod(0o1777)
    (tmp_path / "precious").write_text("as it was")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.html").symlink_to(tmp_path / "precious")
    for name in ("out", "out/a.html"):
        os.chown(tmp_path / name, 65534, -1, follow_symlinks=False)
    for name in ("out/a.html", "out/b.html", "out/below/c.html"):
        with pytest.raises(PermissionError, match="out belongs to another user"):
            write_text(tmp_path / name, "ours")
    assert (tmp_path / "precious").read_text() == "as it was"
    assert len(list((tmp_path / "out").iterdir())) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")
def test_a_pipe_of_another_user_is_not_filled(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        os.chown(tmp_path / name, 65534, -1, follow_symlinks=False)
        with pytest.raises(PermissionError, match="it belongs to another user"):
            write_text(tmp_path / name, "ours")
