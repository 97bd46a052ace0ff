"""QUIC through a link: a connection of aioquic, whose round-trip time the link reads from the spin bit."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("aioquic", reason="aioquic is not installed")

# Both ends of a download; either is run as `python ends.py server|client`.
ENDS = """
import asyncio, datetime, os, sys
from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import StreamDataReceived
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

class Server(QuicConnectionProtocol):
    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived):
            self._quic.send_stream_data(event.stream_id, bytes(2_000_000), end_stream=True)
            self.transmit()

def certified():
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "server")])
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now - day).not_valid_after(now + day)
    return builder.sign(key, hashes.SHA256()), key

async def server():
    configuration = QuicConfiguration(is_client=False)
    configuration.certificate, configuration.private_key = certified()
    await serve("0.0.0.0", 4433, configuration=configuration, create_protocol=Server)
    os.close(1)
    await asyncio.Event().wait()

async def client():
    configuration = QuicConfiguration(is_client=True, verify_mode=0)
    async with connect(os.environ["ACKCLOCK_BASE"], 4433, configuration=configuration) as connection:
        reader, writer = await connection.create_stream()
        writer.write(b"please")
        print(len(await reader.read()))

asyncio.run({"server": server, "client": client}[sys.argv[1]]())
"""


def test_a_connection_of_aioquic_is_recognised_with_its_round_trip_time(tmp_path: Path):
    checked = subprocess.run(["ackclock", "link", "--check"], capture_output=True, text=True)
    if checked.returncode != 0:
        pytest.skip(f"no links here: {checked.stdout.splitlines()[-1]}")
    (tmp_path / "ends.py").write_text(ENDS)
    python = f"{sys.executable} ends.py"
    link = ["ackclock", "link", "2mbit", "8mbit", "--delay", "40ms", "--buffer", "50p", "--json"]
    done = subprocess.run(
        [*link, "--server", f"exec {python} server", "--", "sh", "-c", f"{python} client"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    delivered, results = done.stdout.splitlines()
    assert delivered == "2000000"
    (flow,) = [flow for flow in json.loads(results)["flows"] if flow["protocol"] == "quic"]
    assert flow["from"].endswith(":4433")
    assert flow["delivered_bytes"] > 2_000_000
    # 80 ms of delay, and at most 50 packets of 1500 bytes queued at 8 Mbit/s: 75 ms.
    assert 80 <= flow["rtt_ms"]["p50"] < 200
    assert 80 <= flow["edge_rtt_ms"] < 200
