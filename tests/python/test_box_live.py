"""A short run of `make box-live`: the box regulates a download of the kernel's TCP through `ackclock link`."""

import os
import shutil
import subprocess

import box_live
import pytest


@pytest.fixture(autouse=True)
def needs(tmp_path, monkeypatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root loads BPF programs")
    link = subprocess.run(["ackclock", "link", "--check"], capture_output=True, text=True)
    mounts = 'mount -t bpf -o mode=0700 bpf /sys/fs/bpf && exec "$0" box check lo --for 0s'
    box = subprocess.run(["unshare", "--mount", "sh", "-c", mounts, shutil.which("ackclock")], capture_output=True)
    if link.returncode or box.returncode:
        pytest.skip(f"no link or no box here: {link.stdout}{box.stdout.decode()}")
    monkeypatch.setattr(box_live, "OUT", tmp_path)
    monkeypatch.setattr(box_live, "SECONDS", 4)


@pytest.mark.parametrize("box", ["wrs", "forecast, network side"])
def test_a_box_lowers_windows_of_a_download(box):
    row = box_live.measured(box_live.Case(radio="walking", box=box))
    assert row["taken_bytes"] > 0
    assert row["lower_share"] > 0


def test_an_idle_connection_takes_nothing_from_a_download():
    alone, beside = (
        box_live.measured(box_live.Case(radio="walking", box="forecast, network side", load=load))
        for load in ("1 flow", "1 flow, 6 idle")
    )
    assert beside["taken_bytes"] > 0.75 * alone["taken_bytes"]


def test_a_box_acts_on_one_of_two_subscribers_beside_another_link(monkeypatch):
    # On a busy machine the box learns for seconds before it acts.
    monkeypatch.setattr(box_live, "SECONDS", 8)
    other = ["ackclock", "link", "1mbit", "1mbit", "--", "sh", "-c", "echo up; cat"]
    with subprocess.Popen(other, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as beside:
        assert beside.stdout.readline() == b"up\n"
        rows = box_live.two_subscribers()
    assert rows["acted on"]["lower_share"] > 0
    assert all(rows[each]["used"] > 0 for each in ("acted on", "held back"))
