"""`ackclock import` of captures of the kernel's TCP, against what a router of known rate says it sent."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

WORLD = Path(__file__).with_name("capture_world.py")
ETHERNET = 14
CASES = [("cubic", "ipv4"), ("reno", "ipv6")]
FORMS = [
    "ethernet.pcap", "ethernet.pcapng", "ethernet-cut.pcapng", "raw.pcap", "raw.pcapng", "raw-cut.pcap", "sll.pcap",
    "sll2.pcapng", "sll2-cut.pcap",
]  # fmt: skip


@pytest.fixture(scope="module", params=CASES, ids=["-".join(case) for case in CASES])
def captured(request, tmp_path_factory) -> tuple[Path, int]:
    """Folder of the captures of a download, and the IP bytes that the router sent."""
    if os.geteuid() != 0:
        pytest.skip("only root captures packets")
    for program in ("unshare", "nsenter", "ip", "tc", "ackclock"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing")
    bucket = "tc qdisc add dev lo root tbf rate 1mbit burst 5kb latency 1s"
    trial = subprocess.run(["unshare", "--net", *bucket.split()], capture_output=True, text=True)
    if trial.returncode != 0:
        pytest.skip(f"no namespace with a token bucket here: {trial.stderr.strip()}")
    folder = tmp_path_factory.mktemp("captures")
    command = ["unshare", "--net", "timeout", "300", sys.executable, str(WORLD), str(folder), *request.param]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    sent, packets = map(int, ended.stdout.split())
    return folder, sent - ETHERNET * packets


def imported(capture: Path) -> dict:
    command = ["ackclock", "import", str(capture), "--bin", "10ms", "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("form", FORMS)
def test_a_real_capture_has_the_bytes_of_its_link_and_finds_it_busy(captured, form):
    folder, sent = captured
    found = imported(folder / form)
    # The last interval of 10 ms is left out, and the first packets open the connection.
    assert found["mean_kbps"] * found["length_s"] / 8 * 1e3 == pytest.approx(sent, rel=0.01)
    assert found["certainty"]["grade"] in ("capacity", "mixed")
    assert found["capacity_s"] != []


def test_super_packets_were_captured(captured):
    folder, _ = captured
    assert " 0 packets above 1500 bytes" not in imported(folder / "raw.pcap")["notes"][1]


def test_a_real_capture_at_the_sender_is_refused(captured):
    folder, _ = captured
    ended = subprocess.run(["ackclock", "import", str(folder / "sender.pcap")], capture_output=True, text=True)
    assert ended.returncode == 2
    assert "captured near their sender" in ended.stderr
