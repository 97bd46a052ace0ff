"""`ackclock box FILE` on real packets: subscribers, a hold-back group, reload, metrics, both sides of the radio."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from test_box import inside, needs  # noqa: F401 the fixture skips where no BPF program can be loaded

WORLD = Path(__file__).with_name("box_many_world.py")


@pytest.mark.parametrize("side", ["mobile", "network"])
def test_each_subscriber_is_measured_and_only_those_acted_on_are_clipped(side):
    ended = inside(f'{sys.executable} {WORLD} main "$0" {side}')
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout)
    phases = [seen[name] for name in ["measured", "measured2", "stranger", "acted_on", "held_back"]]
    assert all(phase["complete"] for phase in phases)
    # A box that measures writes nothing; who is in no network is no business of the box.
    assert all(phase["clipped"] == 0 for phase in phases[:3])
    assert all(phase["lower"] > 0 for phase in phases[:2])
    assert (seen["stranger"]["acks"], seen["stranger"]["opened"]) == (0, 0)
    assert seen["acted_on"]["clipped"] > 100
    assert (seen["held_back"]["clipped"], seen["held_back"]["lower"] > 0) == (0, True)
    assert all(phase["refused"] == 0 for phase in phases)
    # The list of subscribers, worst first.
    top = seen["top"]
    assert sorted(one["key"] for one in top) == ["10.78.0.2", "10.78.0.3"]
    assert top == sorted(top, key=lambda one: -one["wait_p95_ms"])
    kitchen = next(one for one in top if one["key"] == "10.78.0.3")
    assert (kitchen["name"], kitchen["regulator"], kitchen["acted_on"]) == ("kitchen", "wrd", False)
    assert all(one["bytes"] > 1_400_000 and one["wait_p95_ms"] > 50 for one in top)
    assert "\nackclock_box_subscribers 2\n" in seen["metrics"]
    assert 'box_subscriber_queue_wait_seconds{subscriber="10.78.0.3",name="kitchen",quantile="0.95"}' in seen["metrics"]
    # A wrong file changes nothing; a good one is in force at once.
    assert seen["unknown_key"][0] == 2
    assert "box.toml: box" in seen["unknown_key"][1]
    assert "unknown field `acton`" in seen["unknown_key"][1]
    assert seen["reload"] == "here0: the changed file is in force\n"
    assert "lowers windows by wrs" in seen["status"]
    assert "2 subscribers" in seen["status"]
    assert seen["other_interface"] == [1, "ackclock: no box runs on `lo`\n"]
    assert (seen["ended"], seen["left_behind"]) == (0, [])
    assert seen["said"] == "ackclock: here0: the changed file is in force\n"


@pytest.mark.parametrize(
    ("options", "keys", "said"),
    [
        ("--act", "", "--act: set `box.act` in"),
        ("--regulator wrs", "", "--regulator: set `edge.regulator` in"),
        ("", 'metrics = "0.0.0.0:9100"', "box.metrics: 0.0.0.0:9100 is not a loopback address"),
        ("", 'file = "none.csv"\nsubscribers = ["10.0.0.0/24"]', "none.csv: cannot be read"),
        ("", '[edge]\nregulator = "snoop"', "edge.regulator: `snoop`: it acts on the queue itself"),
        (
            "",
            '[edge]\nregulator = "wrd"\nbuffer = "500ms"',
            "edge.buffer: 500ms: a box that only observes takes packets",
        ),
        ("", '[edge]\nregulater = "wrd"', "regulater"),
        ("", '[edge]\nregulator = "wrd"\nbearer = { kind = "autorate" }', "bearer of kind `autorate`"),
    ],
)
def test_mistakes_in_a_file_are_told(tmp_path, options, keys, said):
    file = tmp_path / "box.toml"
    edge = "" if "[edge]" in keys else '\n[edge]\nregulator = "wrd"\nbuffer = "20p"\n'
    file.write_text(f'[box]\ninterface = "lo"\n{keys}{edge}', encoding="utf-8")
    ended = inside(f'"$0" box {file} {options}')
    assert (ended.returncode, said in ended.stderr) == (2, True), ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_scenario_may_have_the_table_of_a_box(tmp_path):
    """The file of a box can be simulated, and `check` reads its table."""
    file = tmp_path / "box.toml"
    edge = '[edge]\nregulator = "wrd"\nbuffer = "20p"\n'
    ackclock = shutil.which("ackclock")
    for keys, status, said in [
        ("", 0, f"{file}: ok\n"),
        ("prefix6 = 0\n", 2, "box.prefix6: 0 is not from 1 to 128\n"),
        ('file = "list.csv"\nsubscribers = ["10.0.0.0/8"]\n', 2, "list.csv: cannot be read"),
    ]:
        file.write_text(f'duration = "1s"\n[box]\ninterface = "lo"\n{keys}{edge}', encoding="utf-8")
        ended = subprocess.run([ackclock, "check", file], capture_output=True, text=True)
        assert (ended.returncode, said in ended.stdout + ended.stderr) == (status, True), ended
    assert subprocess.run([ackclock, "run", file], capture_output=True).returncode == 0


def test_systemd_hears_when_the_box_is_attached(tmp_path):
    file = tmp_path / "box.toml"
    file.write_text('[box]\ninterface = "lo"\n[edge]\nregulator = "wrd"\nbuffer = "20p"\n', encoding="utf-8")
    ended = inside(f"""
{sys.executable} -c '
import socket, subprocess, sys
heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
heard.bind("{tmp_path}/notify")
heard.settimeout(20)
environment = {{"NOTIFY_SOCKET": "{tmp_path}/notify"}}
box = subprocess.Popen([sys.argv[1], "box", "{file}"], env=environment, stdout=subprocess.DEVNULL)
print(heard.recv(100).decode())
subprocess.run([sys.argv[1], "box", "stop", "{file}"], check=True)
box.wait(10)
' "$0"
""")
    assert ended.stdout == "READY=1\nlo: stopped, nothing is left\n", ended.stderr
