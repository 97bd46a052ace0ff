"""`ackclock box` on real packets, in namespaces that the test makes: whatever happens to the box, it hurts nobody."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

WORLD = Path(__file__).with_name("box_world.py")
DEVICE_WORLD = Path(__file__).with_name("box_device_world.py")
WITHOUT_TCX = f"{sys.executable} {Path(__file__).with_name('without_tcx.py')}"
# Files of its own below /sys/fs/bpf and /run/ackclock.
INSIDE = """
mount -t sysfs sysfs /sys && mount -t bpf -o mode=1777 bpf /sys/fs/bpf || exit 99
mkdir -p /run/ackclock && mount -t tmpfs -o mode=700 tmpfs /run/ackclock || exit 99
ip link set lo up
"""


def inside(script: str, *args: str) -> subprocess.CompletedProcess:
    """Runs a script as root of a network and a mount namespace."""
    if os.geteuid() != 0:
        pytest.skip("only root loads BPF programs")
    for program in ["unshare", "ip", "tc"]:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing")
    ackclock = shutil.which("ackclock")
    command = ["unshare", "--net", "--mount", "bash", "-c", INSIDE + script, ackclock, *args]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if ended.returncode == 99:
        pytest.skip(f"namespaces are not allowed here: {ended.stderr.strip()}")
    return ended


@pytest.fixture(scope="module", autouse=True)
def needs() -> None:
    checked = inside('"$0" box check lo --for 0s --json')
    missing = [need for need in json.loads(checked.stdout)["needs"] if not need["met"]]
    if missing:
        pytest.skip(f"{missing[0]['what']}: {missing[0]['found']}")


@pytest.mark.parametrize(("hook", "regulator"), [("tcx", "forecast"), ("clsact", "wrd")])
def test_nothing_breaks_while_a_box_is_killed_stopped_and_started(hook, regulator):
    """`test_box_crowd.py` does this with many connections and `wrs`."""
    kernel = WITHOUT_TCX if hook == "clsact" else ""
    ended = inside(f'{kernel} {sys.executable} {WORLD} main "$0" {regulator} {hook}')
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout)
    # The laws: nothing lost, nothing out of order, no right edge moved left, no connection broken, nothing left behind.
    assert seen["left"] == 0
    assert seen["acks"] > 1000
    assert (seen["downloaded"], seen["broken"]) == (True, 0)
    assert seen["connections"] > 20
    assert (seen["datagrams_lost"], seen["datagrams_out_of_order"]) == (0, 0)
    assert (seen["left_behind"], seen["hook"]) == ([], f"{hook}, free")
    assert ("clsact" in seen["qdiscs"]) == (hook == "clsact")
    # It did something meanwhile, and what was pinned went on without a process.
    assert seen["second_start"] == 1
    assert seen["killed"] is None
    assert seen["restarted"]
    assert seen["clipped_without_a_process"] > 0
    assert seen["stale"] > 0
    assert seen["counts"]["clipped"] > 100
    assert seen["counts"]["refused"] == 0
    assert seen["ended"] == 0


@pytest.mark.parametrize(
    "ends", ['kill -9 $box && wait $box; "$0" box cleanup lo', '"$0" box stop lo'], ids=["kill", "stop"]
)
@pytest.mark.parametrize("earlier", ["nothing", "qdisc", "filter", "filter meanwhile"])
def test_without_tcx_a_box_removes_its_filters_and_only_a_qdisc_of_its_own(earlier, ends):
    """A clsact that was there before the box stays, as does one that somebody else uses meanwhile."""
    before, meanwhile = {"nothing": ("", ""), "filter meanwhile": ("", "filter")}.get(earlier, (earlier, ""))
    ended = inside(f"""
qdisc() {{ tc qdisc add dev lo clsact; }}
filter() {{
    tc qdisc show dev lo | grep -q clsact || qdisc
    tc filter add dev lo ingress bpf bytecode '1,6 0 0 4294967295'
}}
filters() {{ tc -json filter show dev lo $1; }}
show() {{ echo "[$(tc -json qdisc show dev lo), $(filters ingress), $(filters egress)]"; }}
{before}
{WITHOUT_TCX} "$0" box lo --json > /run/ackclock/out & box=$!
for _ in $(seq 600); do grep -q . /run/ackclock/out && break; sleep 0.1; done
show
{meanwhile}
{ends} > /run/ackclock/ended
show
find /sys/fs/bpf -name ackclock
""")
    assert ended.returncode == 0, ended.stderr
    running, after = [
        (
            sum(one["kind"] == "clsact" for one in qdiscs),
            *[sum("options" in one for one in filters) for filters in hooks],
        )
        for qdiscs, *hooks in map(json.loads, ended.stdout.splitlines())
    ]
    assert running == (1, 1 + (before == "filter"), 1)
    assert after == (int(earlier != "nothing"), int("filter" in earlier), 0)


@pytest.mark.parametrize("kernel", ["", WITHOUT_TCX], ids=["tcx", "clsact"])
def test_an_interface_that_comes_again_has_its_program_again(kernel):
    ended = inside(
        f"kernel={kernel!r}"
        + """
ip link add radio0 type veth peer name other0 && ip link set radio0 up
$kernel "$0" box radio0 --json > /run/ackclock/out & box=$!
ip link set other0 up && ip address add 10.78.0.1/24 dev radio0
sleep 1.5
python3 - << END
import socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
for _ in range(100):
    sender.sendto(bytes(1400), ("10.78.0.255", 9))
END
sleep 1.5
first=$("$0" box status radio0 --json)
ip link delete radio0
sleep 1.5
ip link add radio0 type veth peer name other0 && ip link set radio0 up && ip link set other0 up
sleep 2.5
before=$("$0" box status radio0 --json)
ip address add 10.78.0.1/24 dev radio0
python3 -c "import socket; socket.socket(2, 2).sendto(bytes(100), ('10.78.0.2', 9))"
sleep 0.5
after=$("$0" box status radio0 --json)
"$0" box stop radio0 > /run/ackclock/stopped
wait $box
echo "[$first, $before, $after, $?]"
ls /sys/fs/bpf
"""
    )
    assert ended.returncode == 0, ended.stderr
    (first, before, after, status), listed = json.loads(ended.stdout.splitlines()[0]), ended.stdout.splitlines()[1:]
    # What passed while no program was there is unknown, so all of before is forgotten.
    assert first["counts"]["out_bytes"] > 140_000 > before["counts"]["out_bytes"]
    assert before["running"] is not None
    assert after["counts"]["out_bytes"] > before["counts"]["out_bytes"], "it sees what leaves"
    assert status == 0
    assert "ackclock" not in listed


def clips(ended: subprocess.CompletedProcess) -> bool:
    """Whether a world of `box_device_world.py` was clipped and lost nothing."""
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout.splitlines()[-1])
    assert (seen["downloaded"], seen["ended"], seen["counts"]["refused"]) == (True, 0, 0)
    return seen["counts"]["clipped"] > 0


@pytest.mark.parametrize("device", ["lo", "radio0"])
def test_a_device_without_ethernet_headers_is_clipped(device):
    """A TUN device has no link header, the loopback device one of Ethernet; `box_world.py` has an Ethernet device."""
    if not Path("/dev/net/tun").exists():
        pytest.skip("/dev/net/tun is missing")
    assert clips(inside(f'{sys.executable} {DEVICE_WORLD} {device} "$0" box'))


def as_nobody(*capabilities: str) -> str:
    """Command that runs another one as nobody with these capabilities only."""
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is missing")
    only = ",".join(f"+{capability}" for capability in capabilities)
    some = f"--bounding-set=-all,{only} --inh-caps={only} --ambient-caps={only}"
    return f"setpriv --reuid=65534 --regid=65534 --clear-groups {some} --no-new-privs"


# As systemd mounts it: only root may look into it. The folder of the pins belongs to the user.
PINS = """
chmod 700 /sys/fs/bpf
setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$0" || { echo "the command belongs to root" >&2; exit 99; }
"""
OWN = "chmod 711 /sys/fs/bpf && mkdir /sys/fs/bpf/ackclock && chown 65534 /sys/fs/bpf/ackclock\n"


@pytest.mark.parametrize("kernel", ["", WITHOUT_TCX], ids=["tcx", "clsact"])
def test_nobody_runs_a_box_with_three_capabilities(kernel):
    nobody = as_nobody("net_admin", "bpf", "perfmon")
    ended = inside(
        f'{PINS}{OWN}{nobody} {kernel} "$0" box check lo --for 0s && '
        f'{sys.executable} {DEVICE_WORLD} lo {nobody} {kernel} "$0" box && ls /sys/fs/bpf/ackclock >&2'
    )
    assert clips(ended)
    assert ended.stderr == ""


@pytest.mark.parametrize(
    ("prepare", "capabilities", "said"),
    [
        (OWN, ["net_admin", "perfmon"], "capabilities: missing: this process lacks CAP_BPF\n"),
        (OWN, ["setuid"], "capabilities: missing: this process lacks CAP_NET_ADMIN and CAP_BPF and CAP_PERFMON\n"),
        ("", ["net_admin", "bpf", "perfmon"], "BPF file system: missing: user 65534 cannot write"),
    ],
)
def test_a_check_names_what_a_user_lacks(prepare, capabilities, said):
    ended = inside(f'{PINS}{prepare}{as_nobody(*capabilities)} "$0" box check lo --for 0s')
    assert (ended.returncode, said in ended.stdout) == (1, True), ended.stdout


TRAFFIC = """
import socket, threading, time
def datagrams(port):
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.bind(("127.0.0.1", port))
    while True:
        sender.sendto(bytes(1000), ("127.0.0.1", 9))
        time.sleep(0.01)
def esp():
    sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, 50)
    while True:
        sender.sendto(bytes(1000), ("127.0.0.1", 0))
        time.sleep(0.01)
def serve(listener):
    while True:
        connection = listener.accept()[0]
        connection.sendall(bytes(300000))
        connection.close()
listener = socket.create_server(("127.0.0.1", 8001))
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
for run, given in [(datagrams, [443]), (datagrams, [7]), (esp, []), (serve, [listener])]:
    threading.Thread(target=run, args=given, daemon=True).start()
while True:
    with socket.create_connection(("127.0.0.1", 8001)) as connection:
        while connection.recv(65536):
            pass
    time.sleep(0.01)
"""


@pytest.mark.parametrize("kernel", ["", WITHOUT_TCX], ids=["tcx", "clsact"])
def test_a_check_watches_the_traffic_and_leaves_nothing(kernel):
    ended = inside(f"""
{sys.executable} -c '{TRAFFIC}' & traffic=$!
left() {{ find /sys/fs/bpf -name ackclock; tc qdisc show dev lo | grep -o clsact; }}
# The check that runs has seen downloads: on a busy machine its first reports have none.
regulated() {{
    for _ in $(seq 600); do grep -qs '"regulated_share":0.[1-9]' /run/ackclock/box-lo:*.json && break; sleep 0.1; done
}}
{kernel} "$0" box check lo --for 2s --json; left
{kernel} "$0" box check lo --for 2s; left
{kernel} "$0" box check lo --for 500s > /run/ackclock/interrupted & check=$!
regulated
kill -INT $check; wait $check || echo failed; left
grep -c "a box can regulate" /run/ackclock/interrupted
{kernel} "$0" box check lo --for 500s > /run/ackclock/killed & check=$!
regulated
kill -9 $check; wait $check; "$0" box cleanup lo; left
kill $traffic
""")
    assert ended.returncode in (0, 143), ended.stderr
    first, *lines = ended.stdout.splitlines()
    traffic = json.loads(first)["traffic"]
    seen = traffic["seen"]
    assert traffic["seconds"] >= 2
    shares = [seen[f"{name}_share"] for name in ["regulated", "tcp", "quic", "udp", "esp", "other"]]
    assert all(share > 0 for share in shares[:5]), shares
    assert abs(sum(shares[1:]) - 1) < 1e-9
    counts = seen["counts"]
    assert counts["opened"] > 0
    assert counts["clipped"] == 0
    assert seen["device_packets"] > 0
    # Segments that the loopback device passes as one packet.
    assert counts["in_segments"] > counts["in_packets"] > 0
    verdict = "a box can regulate"
    assert any(line.startswith(verdict) and line.endswith("`ackclock box lo`") for line in lines)
    # Needs, then what was seen; nothing is left after each of them.
    assert lines[-2:] == ["1", "lo: removed what was left"]
    assert "failed" not in lines
    assert not {"clsact", "/sys/fs/bpf/ackclock"} & set(lines)


def test_a_check_reads_the_counters_of_a_box_that_runs():
    ended = inside("""
"$0" box lo --json > /run/ackclock/out & box=$!
for _ in $(seq 600); do grep -q . /run/ackclock/out && break; sleep 0.1; done
"$0" box check lo --for 1s --json
"$0" box status lo --json
"$0" box stop lo > /run/ackclock/stopped
""")
    assert ended.returncode == 0, ended.stderr
    checked, status = map(json.loads, ended.stdout.splitlines())
    assert checked["traffic"]["seen"]["of_a_box"]
    assert status["running"] is not None


# Attaches another program to the interface `lo`.
ANOTHER = f"""
trap 'kill $(jobs -p)' EXIT
another() {{
    {sys.executable} {Path(__file__).with_name("other_program.py")} lo "$1" > /run/ackclock/other & other=$!
    for _ in $(seq 600); do grep -q attached /run/ackclock/other && break; sleep 0.1; done
}}
"""
# Sends datagrams to a closed port for some seconds.
SENDS = f"""
sends() {{
    exec {sys.executable} -c 'import socket, sys, time
for _ in range(100 * int(sys.argv[1])):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(bytes(100), ("127.0.0.1", 9))
    time.sleep(0.01)' "$1"
}}
"""


def test_no_program_that_was_there_before_hides_packets_from_a_box():
    ended = inside(
        ANOTHER
        + SENDS
        + """
another last
"$0" box lo --json > /run/ackclock/out 2> /run/ackclock/said & box=$!
for _ in $(seq 600); do grep -q . /run/ackclock/out && break; sleep 0.1; done
another last
(sends 1)
"$0" box status lo --json
cat /run/ackclock/said
"$0" box stop lo > /run/ackclock/stopped
"""
    )
    assert ended.returncode == 0, ended.stderr
    status, *said = ended.stdout.splitlines()
    seen = json.loads(status)
    assert (seen["before"], said) == ([], [])
    assert min(seen["counts"]["in_packets"], seen["counts"]["out_packets"]) >= 40


def test_an_xdp_program_runs_before_a_box():
    ended = inside(
        ANOTHER
        + """
another xdp
"$0" box lo --json > /run/ackclock/out 2> /run/ackclock/said & box=$!
for _ in $(seq 600); do grep -q . /run/ackclock/out && break; sleep 0.1; done
cat /run/ackclock/said
"$0" box stop lo > /run/ackclock/stopped
"""
    )
    named = r"ackclock: lo: runs before the box, and may keep packets from it: program \d+ `` at xdp\n"
    assert re.fullmatch(named, ended.stdout), ended.stdout + ended.stderr


def test_a_program_that_hides_packets_from_a_box_is_named():
    ended = inside(
        ANOTHER
        + SENDS
        + """
"$0" box lo --json > /run/ackclock/out & box=$!
for _ in $(seq 600); do grep -q . /run/ackclock/out && break; sleep 0.1; done
another first
sends 30 & sends=$!
"$0" box check lo --for 1s | tail -1
kill $sends
"$0" box status lo | tail -1
"$0" box stop lo > /run/ackclock/stopped
"""
    )
    assert ended.returncode == 0, ended.stderr
    verdict, status = ended.stdout.splitlines()
    named = r"program \d+ `` at ingress, program \d+ `` at egress"
    assert re.match(f"a box sees too little: {named} runs first and keeps packets from it; ", verdict), verdict
    assert re.fullmatch(f"runs before the box, and may keep packets from it: {named}", status), status


# Downloads of 300 kB, one after the other, that leave through `radio0`: this namespace has the server.
LEAVES = f"""
unshare --net sleep 300 & mobile=$!
for _ in $(seq 600); do test /proc/$mobile/ns/net -ef /proc/self/ns/net || break; sleep 0.1; done
there() {{ nsenter --net=/proc/$mobile/ns/net "$@"; }}
ip link add radio0 type veth peer name other0 netns $mobile
ip address add 10.77.0.1/24 dev radio0 && ip link set radio0 up
there ip address add 10.77.0.2/24 dev other0 && there ip link set other0 up
{sys.executable} -c '
import socket
with socket.create_server(("10.77.0.1", 8001)) as listener:
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    while True:
        with listener.accept()[0] as connection:
            connection.sendall(bytes(300_000))' & server=$!
nsenter --net=/proc/$mobile/ns/net {sys.executable} -c '
import socket, time
while True:
    try:
        with socket.create_connection(("10.77.0.1", 8001)) as connection:
            while connection.recv(65536):
                pass
    except OSError:
        pass
    time.sleep(0.05)' & client=$!
trap 'kill $(jobs -p)' EXIT
for _ in $(seq 600); do
    test "$(cat /sys/class/net/radio0/statistics/tx_packets)" -gt 100 && break
    sleep 0.1
done
begins() {{ "$0" box radio0 --json $1 > /run/ackclock/out 2> /run/ackclock/said; }}
"""


def test_a_box_on_the_wrong_side_says_so():
    ended = inside(
        LEAVES
        + """
"$0" box check radio0 --for 1s | tail -1
begins &
for _ in $(seq 600); do grep -q . /run/ackclock/said && break; sleep 0.1; done
grep -c . /run/ackclock/out
cat /run/ackclock/said
"$0" box status radio0 | tail -1
"$0" box stop radio0 > /run/ackclock/stopped
begins "--side network" &
for _ in $(seq 600); do grep -q '"connections":[1-9]' /run/ackclock/out && break; sleep 0.1; done
tail -1 /run/ackclock/out
"$0" box stop radio0 > /run/ackclock/stopped
cat /run/ackclock/said
"""
    )
    checked, reports, said, status, report, *later = ended.stdout.splitlines()
    assert checked.endswith("the box is on the network side: `ackclock box check radio0 --side network`"), checked
    assert int(reports) <= 5
    assert said == f"ackclock: radio0: {status}"
    assert "TCP data leaves through this interface and almost none arrives" in status
    seen = json.loads(report)
    assert (seen["side"], seen["data_from_mobiles"], later) == ("network", False, [])
    assert seen["connections"] > 0


def test_a_box_acts_for_a_time_and_goes_on_where_it_is_told_to():
    ended = inside("""
acting() { "$0" box status lo --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["acting"])'; }
"$0" box lo --act 2s > /run/ackclock/out & sleep 1; acting; sleep 3; acting; "$0" box stop lo
"$0" box lo --act 2s > /run/ackclock/out & sleep 1; "$0" box keep lo; sleep 3; acting
"$0" box bypass lo on; acting; "$0" box bypass lo off; acting; "$0" box stop lo
"$0" box lo > /run/ackclock/out & sleep 1; "$0" box bypass lo on; "$0" box bypass lo off; acting; "$0" box stop lo
""")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split("\n")[:-1] == [
        "True",
        "False",
        "lo: stopped, nothing is left",
        "lo: goes on",
        "True",
        "lo: everything passes unchanged",
        "False",
        "lo: windows are lowered",
        "True",
        "lo: stopped, nothing is left",
        # One that only measures goes on measuring.
        "lo: everything passes unchanged",
        "lo: measures; nothing is written",
        "False",
        "lo: stopped, nothing is left",
    ]


STATUS = """
export SHOWN='import json, sys; said = json.load(sys.stdin); print(said["acting"], said["report"] is not None)'
status() { "$0" box status $1 --json | python3 -c "$SHOWN"; }
started() { for _ in $(seq 600); do grep -qs . $1 && break; sleep 0.1; done; }
"""


def test_a_killed_box_is_not_the_one_of_another_namespace():
    """Two interfaces called lo, of two namespaces with the same /run and /sys/fs/bpf."""
    ended = inside(
        STATUS
        + """
"$0" box lo --act > /run/ackclock/first & box=$!; started /run/ackclock/first
kill -9 $box; wait $box
export -f status started
unshare --net bash -c 'ip link set lo up
"$0" box status lo 2> /run/ackclock/none || echo none
"$0" box lo --act > /run/ackclock/second & box=$!; started /run/ackclock/second
status lo; touch /run/ackclock/ready
for _ in $(seq 600); do test -e /run/ackclock/end && break; sleep 0.1; done
"$0" box stop lo' "$0" &
for _ in $(seq 600); do test -e /run/ackclock/ready && break; sleep 0.1; done
status lo
"$0" box status lo | head -n 1
"$0" box cleanup lo
ls /sys/fs/bpf/ackclock | wc -l
touch /run/ackclock/end; wait
"""
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == [
        "none",
        "True True",
        "False False",
        "lo: no process: windows pass as receivers say; `ackclock box` takes over, `cleanup` removes",
        "lo: removed what was left",
        "1",
        "lo: stopped, nothing is left",
    ]


def test_a_box_goes_on_while_its_files_cannot_be_written():
    ended = inside(
        STATUS
        + """
mount -t tmpfs -o mode=700,size=64k tmpfs /run/ackclock
full() { cat /dev/zero > /run/ackclock/zeros 2> /dev/null; }
full
"$0" box lo --act > /tmp/ackclock-out 2> /tmp/ackclock-said & box=$!; started /tmp/ackclock-out
status lo; "$0" box status lo | grep -c "no report of the box can be read"
rm /run/ackclock/zeros; sleep 2; status lo
full; sleep 7; status lo
"$0" box stop lo; wait $box; echo $?
cat /tmp/ackclock-said; rm /tmp/ackclock-out /tmp/ackclock-said
"""
    )
    assert ended.returncode == 0, ended.stderr
    *shown, unwritten, again, once_more = ended.stdout.splitlines()
    assert shown == ["True False", "1", "True True", "True False", "lo: stopped, nothing is left", "0"]
    assert unwritten.endswith("; the box goes on without reports, so `box status` has no figures")
    assert again.endswith("lo: reports are written again")
    assert once_more == unwritten


@pytest.mark.parametrize("command", ["box lo", "box stop lo", "box check lo --for 0s", "box status lo"])
def test_a_planted_folder_is_refused(command):
    ended = inside(f"""
mkdir -p /tmp/ackclock-precious && touch /tmp/ackclock-precious/kept
ln -s /tmp/ackclock-precious /sys/fs/bpf/ackclock
"$0" {command} 2>&1; echo $?
rm /sys/fs/bpf/ackclock; mkdir -m 700 /sys/fs/bpf/ackclock
ln -s /tmp/ackclock-precious "/sys/fs/bpf/ackclock/lo:$(stat -L -c %i /proc/self/ns/net):1:6"
chown 65534 /sys/fs/bpf/ackclock
"$0" {command} 2>&1; echo $?
ls /tmp/ackclock-precious; rm -r /tmp/ackclock-precious
""")
    lines = ended.stdout.splitlines()
    assert lines[-1] == "kept"
    assert lines.count("1") == 2, lines
    assert any(line.endswith("/sys/fs/bpf/ackclock: it is no folder") for line in lines), lines
    assert any("/sys/fs/bpf/ackclock: it belongs to user 65534, not to user 0" in line for line in lines), lines


@pytest.mark.parametrize("page", ["radio-queue", "radio-box", "radio-subscribers"])
def test_the_commands_of_a_page_do_what_it_says(page, tmp_path):
    """All of them in order; a box that runs is ended by `box stop`."""
    text = (Path(__file__).parents[2] / "docs" / "how-to" / f"{page}.md").read_text(encoding="utf-8")
    lines = [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
    assert len(lines) > 4
    begins = ("ackclock box wwan0", "ackclock box box.toml")
    lines = [line.replace("box check wwan0", "box check wwan0 --for 1s") for line in lines]
    lines = [f"{line} > /run/ackclock/out & sleep 2" if line.startswith(begins) else line for line in lines]
    for name, content in re.findall(r"```(?:toml|csv)\n# (\S+)\n(.*?)```", text, re.DOTALL):
        (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "scenarios").symlink_to(Path(__file__).parents[2] / "scenarios")
    ended = inside(
        'ackclock() { "$0" "$@"; }\nset -e\nip link add wwan0 type veth peer name other0 && ip link set wwan0 up\n'
        f"cd {tmp_path}\n" + "\n".join(lines)
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("box nosuch0", 2, "there is no interface `nosuch0`; there are lo"),
        ("box lo --regulator wrb", 2, "--regulator: `wrb`: it holds ACKs"),
        ("box lo --regulator snoop", 2, "--regulator: `snoop`: it acts on the queue itself"),
        ("box lo --regulator nosuch", 2, "--regulator: unknown regulator `nosuch`; known are"),
        ("box lo --buffer 500ms", 2, "--buffer: 500ms: a box that only observes takes packets"),
        ("box lo --side radio", 2, "--side radio: it is neither `mobile` nor `network`"),
        ("box check lo --side radio", 2, "--side radio: it is neither `mobile` nor `network`"),
        ("box lo --act 0s", 2, "box: --act 0s: must be above 0"),
        ("box stop lo", 1, "no box runs on `lo`"),
        ("box status lo", 1, "no box runs on `lo`"),
        ("box keep lo", 1, "no box runs on `lo`"),
        ("box stop a:b", 2, "`a:b` is not the name of a network interface"),
        ("box check nosuch0 --for 2", 2, "--for 2"),
        ("box lo --act 10m", 2, "min"),
        ("box status a:b", 2, "`a:b` is not the name of a network interface"),
        ("box status ../etc", 2, "../etc: cannot be read"),
    ],
)
def test_mistakes_are_told(words, status, said):
    ended = inside(f'"$0" {words}')
    assert (ended.returncode, said in ended.stderr) == (status, True), ended.stderr
