//! What tests with real programs share: what must be there before, and what is read afterwards.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::Folder;

/// Sends SIZE bytes to whoever connects, under a congestion control of Linux. It closes its output when it listens.
pub(crate) const SERVER: &str = r#"
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
/// after [`ROUND_TRIP`].
pub(crate) const CLIENT: &str = r#"
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

pub(crate) const DOWNLOAD: &str = "python3 client.py $ACKCLOCK_BASE";

/// A folder with a server and a client, where links can be made and the programs are there; else nothing, and the reason is
/// printed.
pub(crate) fn ready(programs: &[&str]) -> Option<Folder> {
    let folder = folder_with(programs)?;
    folder.write("server.py", SERVER);
    folder.write("client.py", CLIENT);
    Some(folder)
}

pub(crate) fn server(congestion_control: &str, bytes: u64) -> String {
    format!("exec python3 server.py {congestion_control} {bytes}")
}

/// A folder, where links can be made and the programs are there; else nothing, and the reason is printed.
#[allow(clippy::print_stderr, reason = "a skipped test says why")]
pub(crate) fn folder_with(programs: &[&str]) -> Option<Folder> {
    let folder = Folder::new();
    let trial = folder.run(&["link", "1mbit", "1mbit", "--closed", "--", "true"]);
    let missing = programs.iter().find(|program| !is_installed(program));
    let reason = match (trial.status, missing) {
        (0, None) => return Some(folder),
        (0, Some(program)) => format!("{program} is not installed"),
        _ => trial.err,
    };
    eprintln!("skipped: {}", reason.trim());
    None
}

pub(crate) fn is_installed(program: &str) -> bool {
    Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap().status.success()
}

/// For the end of a script after which flows are looked at. A byte counts when its acknowledgement comes in to the link; the
/// last ones may lie before it still when the program that caused them ends. They keep their order, so where a connection is
/// refused at the other end, everything that was sent before has come in.
pub(crate) const ROUND_TRIP: &str =
    "python3 -c 'import os, socket; socket.socket().connect_ex((os.environ[\"ACKCLOCK_BASE\"], 9))'";

/// The object in the last line of what was printed.
pub(crate) fn last_object(text: &str) -> Value {
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The flow that delivered most.
pub(crate) fn download(results: &Value) -> &Value {
    results["flows"].as_array().unwrap().iter().max_by_key(|flow| flow["delivered_bytes"].as_u64()).unwrap()
}

/// Reads what a child prints until a line says `word`; everything up to there.
pub(crate) fn until_line(child: &mut Child, word: &str) -> String {
    let out = child.stdout.as_mut().unwrap();
    let (mut seen, mut byte) = (String::new(), [0]);
    while seen.lines().last() != Some(word) || !seen.ends_with('\n') {
        assert_eq!(out.read(&mut byte).unwrap(), 1, "it ended before it said `{word}`: {seen}");
        seen.push(char::from(byte[0]));
    }
    seen
}

/// Whether something is true or becomes so within half a minute; what does not is an error whenever it is given up.
#[allow(clippy::disallowed_methods, reason = "the real world is waited for")]
pub(crate) fn comes_true(mut what: impl FnMut() -> bool) -> bool {
    (0..600).any(|_| {
        what() || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            false
        }
    })
}

/// A machine of its own: a network namespace with a way out to a server in another.
pub(crate) struct Machine {
    names: [String; 2],
    server: Option<Child>,
}

impl Machine {
    /// The addresses of the server, which is no neighbour.
    pub(crate) const SERVER: &str = "10.77.0.1";
    pub(crate) const SERVER6: &str = "fd77::1";

    #[allow(clippy::print_stderr, reason = "a skipped test says why")]
    pub(crate) fn new(purpose: &str, folder: &Folder) -> Option<Self> {
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
             ip -n {host} route add default via 10.78.0.2 && ip -n {host} route add default via fd78::2 &&
             ip netns exec {host} sh -c 'echo 0 > /proc/sys/net/ipv4/ip_forward'",
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
    pub(crate) fn command(&self, script: &str, folder: &Folder) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[0], "sh", "-c", script]).current_dir(folder.path("."));
        command
    }

    /// A server on the machine, which sends so many bytes to whoever connects.
    pub(crate) fn serve(&self, bytes: u64, folder: &Folder) -> Child {
        let mut server = self.command(&server("reno", bytes), folder).stdout(Stdio::piped()).spawn().unwrap();
        server.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
        server
    }

    /// All that a link could have left behind: interfaces, routes, firewall, forwarding, sockets.
    pub(crate) fn state(&self, folder: &Folder) -> String {
        let script = "ip -o addr; ip route show table all; nft list ruleset 2>/dev/null; \
                      grep -r . /proc/sys/net/ipv4/conf/*/forwarding /proc/sys/net/ipv6/conf/*/forwarding; \
                      grep ackclock /proc/net/unix";
        let output = self.command(script, folder).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Checks that nothing is left behind: all is as it was.
    pub(crate) fn returns_to(&self, before: &str, folder: &Folder) {
        let mut now = String::new();
        let same = comes_true(|| {
            now = self.state(folder);
            now == before
        });
        assert!(same, "it was\n{before}\nand is\n{now}");
    }

    /// Whether a process is left that runs on the machine.
    pub(crate) fn is_busy(&self) -> bool {
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

/// A link through the machine, up to its command.
pub(crate) const LINK: &str = concat!(env!("CARGO_BIN_EXE_ackclock"), " link 10mbit 10mbit --delay 5ms --");

/// Shell function `at_origin COMMAND`, which starts a server as on another machine: in a network namespace of its own. The
/// server's address is 10.9.0.1, that of the caller 10.9.0.2, and its process `$origin`.
pub(crate) const AT_ORIGIN: &str = r#"
at_origin() {
    unshare -n sh -euc 'ip link add core0 type veth peer name core0 netns $PPID
        ip addr add 10.9.0.1/24 dev core0
        ip link set core0 up
        exec "$@"' sh "$@" & origin=$!
    until ip addr add 10.9.0.2/24 dev core0 2> /dev/null; do kill -0 $origin; sleep 0.1; done
    ip link set core0 up
}
"#;
