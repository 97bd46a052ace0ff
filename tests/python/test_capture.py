"""Round trip times of captures, against the simulator that wrote them and against packets made by hand."""

import json
import shutil
import struct
import subprocess
from statistics import fmean

import pytest

from ackclock import capture

SCENARIO = """
version = 1
preset = "cr02"
duration = "60s"
[edge]
buffer = "10p"
"""


def segment(source: int, seq: int, ack: int, length: int) -> bytes:
    """An IPv4 packet of TCP without options, from host 1 or 2."""
    total = 40 + length
    ip = struct.pack(">BBHHHBBH4B4B", 0x45, 0, total, 0, 0, 64, 6, 0, *(10, 0, 0, source), *(10, 0, 0, 3 - source))
    tcp = struct.pack(">HHIIBBHHH", 1000 + source, 1003 - source, seq, ack, 5 << 4, 0x10, 0, 0, 0)
    return ip + tcp


def pcap(packets: list[tuple[float, bytes]], link: int = 101) -> bytes:
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)
    before = b"" if link == 101 else bytes(12) + b"\x08\x00"
    body = b""
    for time, packet in packets:
        data = before + packet
        body += struct.pack("<4I", int(time), round(1e6 * (time % 1)), len(data), len(data)) + data
    return head + body


# Host 1 sends 100 bytes three times; the second is sent again before its acknowledgement.
EXCHANGE = [
    (1.0, segment(1, 0xFFFFFFC0, 1, 100)),
    (1.05, segment(2, 1, 36, 0)),
    (2.0, segment(1, 36, 1, 100)),
    (2.5, segment(1, 36, 1, 100)),
    (2.6, segment(2, 1, 136, 0)),
    (3.0, segment(1, 136, 1, 100)),
    (3.2, segment(2, 1, 236, 0)),
]


@pytest.mark.parametrize("link", [101, 1])
def test_a_segment_is_timed_to_its_acknowledgement_unless_it_was_sent_again(tmp_path, link):
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(EXCHANGE, link))
    assert capture.round_trips(path) == pytest.approx([50, 200])


def test_a_simulated_run_has_the_round_trips_that_its_results_tell(tmp_path):
    ackclock = shutil.which("ackclock")
    if ackclock is None:
        pytest.skip("the command ackclock is not on the path")
    (tmp_path / "run.toml").write_text(SCENARIO)
    words = [ackclock, "run", "run.toml", "--pcap", "run.pcapng", "--json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)["flows"][0]["rtt_ms"]
    seen = capture.round_trips(tmp_path / "run.pcapng")
    # The sender times what an acknowledgement covers by the last segment, the capture leaves out what was sent again.
    assert fmean(seen) == pytest.approx(told["mean"], rel=0.02)
    assert sorted(seen)[len(seen) // 2] == pytest.approx(told["p50"], rel=0.02)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pcap(EXCHANGE)[:-10], "the capture ends in the middle of a packet"),
        (pcap(EXCHANGE[:1]), "no data segment of TCP is acknowledged in it"),
        (pcap(EXCHANGE, 105), "frames of link type 105"),
        (b"\x0a\x0d\x0d\x0a\x08\0\0\0\x4d\x3c\x2b\x1a", "the capture ends in the middle of a packet"),
    ],
)
def test_a_capture_that_is_none_says_so(tmp_path, data, message):
    path = tmp_path / "a.pcap"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message):
        capture.round_trips(path)
