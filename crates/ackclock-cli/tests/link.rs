//! `ackclock link` with real programs. What is sent stays in namespaces that the tests make, and everything that needs what
//! this machine forbids or lacks is skipped with the reason.

#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use crate::common::real::{self, download, last_object};
use crate::common::{Ended, Folder};

/// Sends SIZE bytes to whoever connects, under a congestion control of Linux. It closes its output when it listens.
const SERVER: &str = r#"
import os, socket, sys
both = socket.has_dualstack_ipv6()
family = socket.AF_INET6 if both else socket.AF_INET
listener = socket.create_server(("", 5001), family=family, dualstack_ipv6=both)
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
os.close(1)
while True:
    peer, _ = listener.accept()
    peer.sendall(bytes(int(sys.argv[2])))
    peer.close()
"#;

/// Takes what a server sends, and says how much that was. Its last acknowledgement has come in to the link when it ends, as
/// after [`real::ROUND_TRIP`].
const CLIENT: &str = r#"
import contextlib, socket, sys
peer = socket.create_connection((sys.argv[1], 5001), timeout=20)
total = 0
while data := peer.recv(65536):
    total += len(data)
print(total)
peer.close()
with contextlib.suppress(ConnectionRefusedError):
    socket.create_connection((sys.argv[1], 9), timeout=20)
"#;

const DOWNLOAD: &str = "python3 client.py $ACKCLOCK_BASE";

/// A folder with a server and a client, where links can be made and the programs are there; else nothing, and the reason is
/// printed.
fn ready(programs: &[&str]) -> Option<Folder> {
    let folder = real::folder_with(programs)?;
    folder.write("server.py", SERVER);
    folder.write("client.py", CLIENT);
    Some(folder)
}

fn server(congestion_control: &str, bytes: u64) -> String {
    format!("exec python3 server.py {congestion_control} {bytes}")
}

#[test]
fn the_exit_status_is_that_of_the_command() {
    let Some(folder) = ready(&[]) else { return };
    for (script, status) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143)] {
        let ended = folder.run(&["link", "1mbit", "1mbit", "--closed", "--", "sh", "-c", script]);
        assert_eq!((ended.status, ended.err.as_str()), (status, ""), "{script}");
    }
    let missing = folder.run(&["link", "1mbit", "1mbit", "--closed", "--", "no-such-program"]);
    assert_eq!(missing.status, 127);
    assert!(missing.err.contains("no-such-program: cannot be started"), "{}", missing.err);
}

#[test]
fn wrong_input_is_named_before_anything_is_made() {
    let folder = Folder::new();
    for (arguments, expected) in [
        (&["link", "1mbit", "nothing.trace", "true"][..], "DOWN: `nothing.trace` is neither a recording"),
        (&["link", "1mbit", "1mbit", "--regulator", "magic", "true"], "unknown regulator `magic`"),
        (&["link", "1mbit", "1mbit", "--buffer", "many", "true"], "edge.buffer"),
        (
            &["link", "1mbit", "1mbit", "--downlink-queue=fifo", "true"],
            "--downlink-queue: `fifo` is not a queue",
        ),
        (&["link", "set", "rate"], "`rate` is not KEY=VALUE"),
    ] {
        let message = folder.complains(2, arguments);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn the_command_sees_its_base_and_nothing_else() {
    let Some(folder) = ready(&["python3"]) else { return };
    let script = "test $ACKCLOCK_BASE = $MAHIMAHI_BASE && python3 client.py 192.0.2.77; python3 client.py $ACKCLOCK_BASE";
    let ended = folder.run(&["link", "1mbit", "1mbit", "--closed", "--", "sh", "-c", script]);
    // The other end answers itself that there is no way on, and that nobody listens: no program waits for a time-out.
    assert!(
        ended.err.contains("Network is unreachable") && ended.err.contains("Connection refused"),
        "{}",
        ended.err
    );
}

#[test]
fn real_senders_fill_the_link_and_no_more_under_every_regulator() {
    let Some(folder) = ready(&["python3"]) else { return };
    for (congestion_control, regulator) in [("reno", "none"), ("cubic", "none"), ("reno", "ack-regulator")] {
        let ended = folder.run(&[
            "link",
            "2mbit",
            "8mbit",
            "--delay",
            "10ms",
            "--buffer",
            "40p",
            "--regulator",
            regulator,
            "--json",
            "--server",
            &server(congestion_control, 2_000_000),
            "--",
            "sh",
            "-c",
            DOWNLOAD,
        ]);
        assert_eq!(ended.status, 0, "{}", ended.err);
        assert_eq!(ended.out.lines().next(), Some("2000000"));
        let results = last_object(&ended.out);
        let flow = download(&results);
        assert_eq!((&flow["delivered_bytes"], &flow["regulator"]), (&2_000_000.into(), &regulator.into()));
        // 1448 of 1500 bytes are payload, with timestamps. A busy machine takes its part; a tenth would be a stall.
        let (goodput, most) = (flow["goodput_bps"].as_f64().unwrap(), 8e6 * 1448.0 / 1500.0);
        assert!(
            goodput < most * 1.01 && goodput > most * 0.1,
            "{congestion_control}, {regulator}: {goodput}"
        );
        let rtt = flow["edge_rtt_ms"].as_f64().unwrap();
        assert!(rtt > 20.0, "twice the delay is 20 ms: {rtt}");
    }
}

#[test]
fn scripts_for_mm_link_go_on_working() {
    let Some(folder) = ready(&["python3"]) else { return };
    // An opportunity a millisecond: 12 Mbit/s.
    folder.write("trace", "1\n");
    let ended = folder.run(&[
        "link",
        "trace",
        "trace",
        "--uplink-queue=infinite",
        "--downlink-queue=droptail",
        "--downlink-queue-args=packets=50",
        "--uplink-log=up.log",
        "--downlink-log=down.log",
        "--meter-all",
        "--server",
        &server("cubic", 500_000),
        "sh",
        "-c",
        "python3 client.py $MAHIMAHI_BASE",
    ]);
    assert_eq!((ended.status, ended.out.as_str()), (0, "500000\n"), "{}", ended.err);
    assert_eq!(
        ended.err.trim(),
        "ackclock: --meter-all: there are no meters; the link shows its status, and --metrics"
    );
    let log = folder.read("down.log");
    assert!(log.contains("# queue: droptail [packets=50]") && log.contains("[trace] > down.log"), "{log}");
    // 1500 bytes and the 4 of mm-link's TUN header
    assert!(log.lines().filter(|line| line.contains(" - 1504 ")).count() > 300, "{log}");
    assert!(folder.read("up.log").lines().any(|line| line.contains(" + ")));
    folder.write("short", "1\n400\n");
    let once = folder.run(&["link", "short", "short", "--once", "--closed", "sleep", "1000"]);
    assert_eq!((once.status, once.err.as_str()), (0, ""));
    let rates = folder.prints(&["link", "500K", "12M", "--cbr", "--generate"]);
    assert!(rates.contains("rate = \"500kbit/s\"") && rates.contains("rate = \"12Mbit/s\""), "{rates}");
}

#[test]
fn a_generated_scenario_is_checked_run_and_generated_again() {
    let folder = Folder::new();
    let text = folder.prints(&[
        "link",
        "1mbit",
        "8mbit",
        "--delay",
        "40ms",
        "--loss",
        "0.01",
        "--buffer",
        "20p",
        "--regulator",
        "ack-regulator",
        "--uplink-queue=codel",
        "--uplink-queue-args=packets=9,target=5",
        "--generate",
    ]);
    folder.write("link.toml", &text);
    assert_eq!(folder.prints(&["check", "link.toml"]), "link.toml: ok\n");
    assert_eq!(folder.prints(&["link", "--scenario", "link.toml", "--generate"]), text);
    let run = last_object(&folder.prints(&["run", "link.toml", "--set", "duration=5s", "--json"]));
    assert_eq!(run["bottleneck"]["capacity_bps"], 8e6);
    assert_eq!(run["flows"][0]["regulator"], "ack-regulator");
}

#[test]
fn a_scenario_is_emulated_with_its_steps_and_says_what_it_does_not_look_at() {
    let Some(folder) = ready(&["python3"]) else { return };
    let at = "[[edge.at]]\ntime = \"0s\"\nset = { down.rate = \"4Mbit/s\", down.delay = \"5ms\" }\n";
    folder.write("steps.toml", format!("{}{at}", crate::common::SCENARIO.replace("200kbit/s", "20kbit/s")));
    let ended = folder.run(&[
        "link",
        "--scenario",
        "steps.toml",
        "--json",
        "--server",
        &server("reno", 200_000),
        "--",
        "sh",
        "-c",
        DOWNLOAD,
    ]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert!(ended.err.contains("it does not look at duration, [flow], [sweep]"), "{}", ended.err);
    // 1.6 Mbit would take 80 s at the 20 kbit/s that the link has without the step.
    let goodput = download(&last_object(&ended.out))["goodput_bps"].as_f64().unwrap();
    assert!(goodput > 20e3, "{goodput}");
}

#[test]
fn a_running_link_is_changed_and_looked_at_from_inside_and_outside() {
    let Some(folder) = ready(&[]) else { return };
    let script = "\"$0\" link set down.rate=1mbit edge.up.delay=30ms && \"$0\" link show && \"$0\" link set buffer=2p; \
                  \"$0\" link set down.rate=fast; echo ready; read -r word";
    let ackclock = env!("CARGO_BIN_EXE_ackclock");
    let mut child = folder
        .command(&["link", "8mbit", "8mbit", "--closed", "--", "sh", "-c", script, ackclock])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let seen = until_line(&mut child, "ready");
    assert_eq!(last_object(seen.trim_end().strip_suffix("ready").unwrap().trim_end())["seed"], 1);
    let process = child.id().to_string();
    assert_eq!(folder.prints(&["link", "set", "down.rate=0kbit", "--pid", &process]), "");
    assert_eq!(last_object(&folder.prints(&["link", "show", "--pid", &process]))["run"], 0);
    let message = folder.complains(1, &["link", "show", "--pid", "1"]);
    assert_eq!(message, "process 1 runs no link");
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert!(ended.err.contains("only keys of `down` and `up` change"), "{}", ended.err);
    assert!(ended.err.contains("down.rate"), "{}", ended.err);
}

#[test]
fn links_nest_and_the_narrow_one_decides() {
    let Some(folder) = ready(&["python3"]) else { return };
    let inner = format!("{} link 10mbit 4mbit --json --", env!("CARGO_BIN_EXE_ackclock"));
    let ended = folder.run(&[
        "link", "10mbit", "20mbit", "--delay", "5ms", "--server", &server("cubic", 500_000), "--", "sh", "-c",
        &format!("outer=$ACKCLOCK_BASE {inner} sh -c 'test $outer != $ACKCLOCK_BASE; exec python3 client.py $outer'"),
    ]);
    let inner_closed = ended.err.contains("the inside reaches only");
    if inner_closed {
        eprintln!("skipped: {}", ended.err.trim());
        return;
    }
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert_eq!(ended.out.lines().next(), Some("500000"), "{}", ended.err);
    let results = last_object(&ended.out);
    let goodput = download(&results)["goodput_bps"].as_f64().unwrap();
    assert!(goodput < 4e6 && goodput > 0.4e6, "{goodput}");
}

#[test]
fn metrics_and_a_capture_are_there_when_asked_for() {
    let Some(folder) = ready(&["python3"]) else { return };
    // A port that was free a moment ago, of an address that nobody connects from in the meantime.
    let address = TcpListener::bind("127.77.0.1:0").unwrap().local_addr().unwrap();
    let script = format!("{DOWNLOAD}; echo ready; read -r word");
    let mut child = folder
        .command(&[
            "link",
            "8mbit",
            "8mbit",
            "--server",
            &server("reno", 100_000),
            "--metrics",
            &address.to_string(),
            "--pcap",
            "link.pcapng",
            "--",
            "sh",
            "-c",
            &script,
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until_line(&mut child, "ready");
    let mut page = String::new();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.contains("ackclock_rate_bps 8000000\n"), "{page}");
    assert!(page.contains("ackclock_flow_delivered_bytes{flow=\"0\",regulator=\"none\"} 100000\n"), "{page}");
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert!(child.wait().unwrap().success());
    // Every packet at both ends: 70 of data at least, twice.
    let capture = fs::metadata(folder.path("link.pcapng")).unwrap().len();
    assert!(capture > 2 * 100_000, "{capture} bytes");
}

/// A machine of its own: a network namespace with a way out to a server in another.
struct Machine {
    names: [String; 2],
    server: Option<Child>,
}

impl Machine {
    /// The addresses of the server, which is no neighbour.
    const SERVER: &str = "10.77.0.1";
    const SERVER6: &str = "fd77::1";

    fn new(purpose: &str, folder: &Folder) -> Option<Self> {
        let names =
            ["machine", "server"].map(|host| format!("ackclock-{purpose}-{}-{host}", std::process::id()));
        let mut machine = Self { names, server: None };
        let [host, server] = machine.names.clone();
        let steps = format!(
            "ip netns add {host} && ip netns add {server} && ip -n {host} link set lo up && ip -n {server} link set lo up &&
             ip -n {host} link add wan type veth peer name lan netns {server} &&
             ip -n {host} addr add 10.78.0.1/24 dev wan && ip -n {server} addr add 10.78.0.2/24 dev lan &&
             ip -n {server} addr add {}/32 dev lo && ip -n {host} link set wan addrgenmode none &&
             ip -n {host} addr add fd78::1/64 dev wan nodad && ip -n {server} addr add fd78::2/64 dev lan nodad &&
             ip -n {server} addr add {}/128 dev lo &&
             ip -n {host} link set wan up && ip -n {server} link set lan up &&
             ip -n {host} route add default via 10.78.0.2 && ip -n {host} route add default via fd78::2",
            Self::SERVER,
            Self::SERVER6
        );
        let made = Command::new("sh").args(["-c", &steps]).output().unwrap();
        if !made.status.success() {
            eprintln!("skipped: {}", String::from_utf8_lossy(&made.stderr).trim());
            return None;
        }
        let script = format!("python3 {} reno 300000", folder.path("server.py").display());
        let mut server = Command::new("ip")
            .args(["netns", "exec", &server, "sh", "-c", &format!("exec {script}")])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let listening = server.stdout.take().unwrap().read_to_end(&mut Vec::new());
        machine.server = Some(server);
        listening.unwrap();
        // Routes change once more when the kernel has seen that both ends of the wire are up.
        let wire = || machine.command("ip -o link show wan", folder).output().unwrap().stdout;
        assert!(comes_true(|| String::from_utf8_lossy(&wire()).contains(" state UP ")));
        Some(machine)
    }

    /// A command that runs on the machine.
    fn command(&self, script: &str, folder: &Folder) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[0], "sh", "-c", script]).current_dir(folder.path("."));
        command
    }

    /// All that a link could have left behind: interfaces, routes, firewall, forwarding, sockets.
    fn state(&self, folder: &Folder) -> String {
        let script = "ip -o addr; ip route show table all; nft list ruleset 2>/dev/null; \
                      grep -r . /proc/sys/net/ipv4/conf/*/forwarding /proc/sys/net/ipv6/conf/*/forwarding; \
                      grep ackclock /proc/net/unix";
        let output = self.command(script, folder).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Checks that nothing is left behind: all is as it was.
    fn returns_to(&self, before: &str, folder: &Folder) {
        let mut now = String::new();
        let same = comes_true(|| {
            now = self.state(folder);
            now == before
        });
        assert!(same, "it was\n{before}\nand is\n{now}");
    }

    /// Whether a process is left that runs on the machine.
    fn is_busy(&self) -> bool {
        let listed = Command::new("ip").args(["netns", "pids", &self.names[0]]).output().unwrap();
        !listed.stdout.is_empty()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

#[test]
fn the_inside_reaches_what_the_machine_reaches_and_nothing_is_left_behind() {
    let Some(folder) = ready(&["python3", "ip"]) else { return };
    let Some(machine) = Machine::new("reach", &folder) else { return };
    let before = machine.state(&folder);
    assert!(before.contains("wan/forwarding:0"), "the machine does not forward: {before}");
    let link = format!("{} link 10mbit 10mbit --delay 5ms --", env!("CARGO_BIN_EXE_ackclock"));
    let download = format!("python3 client.py {}", Machine::SERVER);
    let ended =
        Ended::from(machine.command(&format!("{link} sh -c '{download}'"), &folder).output().unwrap());
    assert_eq!(ended.out, "300000\n", "{}", ended.err);
    machine.returns_to(&before, &folder);
}

#[test]
fn ipv6_leads_out_whether_the_machine_forwards_it_or_not() {
    let Some(folder) = ready(&["python3", "ip"]) else { return };
    let Some(machine) = Machine::new("six", &folder) else { return };
    let link = format!("{} link 10mbit 10mbit --delay 5ms --", env!("CARGO_BIN_EXE_ackclock"));
    let script = format!("python3 client.py {}", Machine::SERVER6);
    for forwarding in ["0", "1"] {
        let set = format!("echo {forwarding} > /proc/sys/net/ipv6/conf/all/forwarding");
        assert!(machine.command(&set, &folder).status().unwrap().success());
        if forwarding == "0" && !fs::exists("/proc/sys/net/ipv6/conf/all/force_forwarding").unwrap() {
            eprintln!("skipped: before Linux 6.17 a machine forwards IPv6 from every interface or from none");
            continue;
        }
        let before = machine.state(&folder);
        let ended =
            Ended::from(machine.command(&format!("{link} sh -c '{script}'"), &folder).output().unwrap());
        assert_eq!(ended.out, "300000\n", "forwarding {forwarding}: {}", ended.err);
        machine.returns_to(&before, &folder);
    }
}

#[test]
fn nothing_is_left_behind_after_kill_9() {
    let Some(folder) = ready(&["ip"]) else { return };
    let Some(machine) = Machine::new("kill", &folder) else { return };
    let before = machine.state(&folder);
    let mark = format!("98{}", std::process::id());
    let link = format!("exec {} link 10mbit 10mbit -- sh -c", env!("CARGO_BIN_EXE_ackclock"));
    let script = format!("{link} 'setsid sleep {mark} & echo ready; sleep {mark}'");
    let mut child = machine.command(&script, &folder).stdout(Stdio::piped()).spawn().unwrap();
    until_line(&mut child, "ready");
    assert_ne!(machine.state(&folder), before, "while it runs it is seen");
    // Neither may have begun yet.
    assert!(comes_true(|| processes_with(&mark) == 2), "{} processes", processes_with(&mark));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(comes_true(|| processes_with(&mark) == 0), "{} processes", processes_with(&mark));
    machine.returns_to(&before, &folder);
}

#[test]
fn an_interrupt_for_the_link_is_one_for_the_command() {
    if ready(&[]).is_none() {
        return;
    }
    for (signal, status) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        // Where a shell runs the tests in the background, they and all that they start ignore an interrupt.
        let mut child = Command::new("env")
            .args(["--default-signal", env!("CARGO_BIN_EXE_ackclock"), "link", "1mbit", "1mbit", "--closed"])
            .args(["--", "sh", "-c", "echo ready; exec sleep 1000"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        until_line(&mut child, "ready");
        let kill = format!("kill -{signal} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(status), "{signal}");
    }
}

#[test]
fn a_user_needs_no_root() {
    let Some(folder) = ready(&["python3", "ip", "setpriv", "pasta"]) else { return };
    let Some(machine) = Machine::new("user", &folder) else { return };
    let _device = WideDevice::open();
    // Neither the folder of the build nor that of the test need be open to another user.
    fs::set_permissions(folder.path("."), fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_ackclock"), folder.path("ackclock")).unwrap();
    let user = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    let own = format!("{user} ./ackclock link 10mbit 8mbit --json --server '{}'", server("reno", 300_000));
    let ended =
        Ended::from(machine.command(&format!("{own} sh -c '{DOWNLOAD}; id -u'"), &folder).output().unwrap());
    if ended.err.contains("user namespace") {
        eprintln!("skipped: {}", ended.err.trim());
        return;
    }
    assert_eq!(ended.out.lines().take(2).collect::<Vec<_>>(), ["300000", "65534"], "{}", ended.err);
    let before = machine.state(&folder);
    let away = format!("{user} ./ackclock link 10mbit 8mbit -- python3 client.py {}", Machine::SERVER);
    let ended = Ended::from(machine.command(&away, &folder).output().unwrap());
    assert_eq!(ended.out, "300000\n", "through pasta: {}", ended.err);
    machine.returns_to(&before, &folder);
    assert!(comes_true(|| !machine.is_busy()), "pasta ends with the link");
}

/// `/dev/net/tun` open to everyone, as ordinary distributions have it, until this is dropped.
struct WideDevice(Option<u32>);

impl WideDevice {
    const PATH: &str = "/dev/net/tun";

    fn open() -> Self {
        let mode = fs::metadata(Self::PATH).unwrap().permissions().mode();
        let wide = mode & 0o666 == 0o666;
        let widened = !wide && fs::set_permissions(Self::PATH, fs::Permissions::from_mode(0o666)).is_ok();
        Self(widened.then_some(mode))
    }
}

impl Drop for WideDevice {
    fn drop(&mut self) {
        if let Some(mode) = self.0 {
            fs::set_permissions(Self::PATH, fs::Permissions::from_mode(mode)).unwrap();
        }
    }
}

/// Reads what a child prints until a line says `word`; everything up to there.
fn until_line(child: &mut Child, word: &str) -> String {
    let out = child.stdout.as_mut().unwrap();
    let (mut seen, mut byte) = (String::new(), [0]);
    while seen.lines().last() != Some(word) || !seen.ends_with('\n') {
        assert_eq!(out.read(&mut byte).unwrap(), 1, "it ended before it said `{word}`: {seen}");
        seen.push(char::from(byte[0]));
    }
    seen
}

/// Processes other than our own with a word in their command line; those that have ended do not count.
fn processes_with(word: &str) -> usize {
    let own = std::process::id().to_string();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter(|entry| entry.file_name() != own.as_str()).filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).split('\0').any(|part| part == word))
    });
    lines.filter(|found| *found).count()
}

/// Whether something is true or becomes so within half a minute; what does not is an error whenever it is given up.
#[allow(clippy::disallowed_methods, reason = "the real world is waited for")]
fn comes_true(mut what: impl FnMut() -> bool) -> bool {
    (0..600).any(|_| {
        what() || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            false
        }
    })
}
