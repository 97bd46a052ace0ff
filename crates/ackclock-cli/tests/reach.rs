//! How far the inside of `ackclock link` reaches, and that nothing of it is left behind. The machine is a network namespace of
//! the test's own.

#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Stdio};

use crate::common::real::{DOWNLOAD, LINK, Machine, comes_true, is_installed, ready, server, until_line};
use crate::common::{Ended, Folder};

#[test]
fn the_inside_reaches_what_the_machine_reaches_and_nothing_is_left_behind() {
    let Some(folder) = ready(&["python3", "ip"]) else { return };
    let Some(machine) = Machine::new("reach", &folder) else { return };
    let before = machine.state(&folder);
    assert!(before.contains("wan/forwarding:0"), "the machine does not forward: {before}");
    // A link in a link goes through two pairs.
    for links in [LINK.to_owned(), format!("{LINK} {LINK}")] {
        let download = format!("{links} python3 client.py {}", Machine::SERVER);
        let ended = Ended::from(machine.command(&download, &folder).output().unwrap());
        assert_eq!(ended.out, "300000\n", "{}", ended.err);
    }
    machine.returns_to(&before, &folder);
}

#[test]
fn three_nested_links_have_three_addresses_and_the_innermost_reaches_the_outermost() {
    let Some(folder) = ready(&["python3", "ip"]) else { return };
    let Some(machine) = Machine::new("nested", &folder) else { return };
    let mut server =
        machine.command(&server("reno", 200_000), &folder).stdout(Stdio::piped()).spawn().unwrap();
    server.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
    folder.write(
        "nest",
        format!(
            "export bases=\"$bases $ACKCLOCK_BASE\"\n\
             test $1 = 0 || exec {LINK} sh nest $(($1 - 1))\n\
             echo $bases; set $bases; exec python3 client.py $1\n"
        ),
    );
    let ended = machine.command("exec sh nest 3", &folder).output().map(Ended::from);
    server.kill().unwrap();
    server.wait().unwrap();
    let ended = ended.unwrap();
    // Networks of four, one after the other.
    assert_eq!(ended.out, "100.64.0.1 100.64.0.5 100.64.0.9\n200000\n", "{}", ended.err);
}

#[test]
fn links_that_begin_at_once_have_addresses_of_their_own() {
    let Some(folder) = ready(&["ip"]) else { return };
    let Some(machine) = Machine::new("atonce", &folder) else { return };
    let before = machine.state(&folder);
    let script = format!("exec {LINK} sh -c 'echo $ACKCLOCK_BASE; echo ready; read -r word'");
    let begin =
        || machine.command(&script, &folder).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut links: Vec<Child> = (0..4).map(|_| begin()).collect();
    let mut bases: Vec<String> = links.iter_mut().map(|link| until_line(link, "ready")).collect();
    for mut link in links {
        drop(link.stdin.take());
        link.wait().unwrap();
    }
    bases.sort();
    bases.dedup();
    assert_eq!(bases.len(), 4, "{bases:?}");
    machine.returns_to(&before, &folder);
}

/// Any user of the machine may have such names; they once stood for the addresses of links.
#[test]
fn no_name_that_another_user_can_take_stands_in_the_way_of_a_link() {
    let Some(folder) = ready(&["python3", "ip"]) else { return };
    let Some(machine) = Machine::new("taken", &folder) else { return };
    folder.write(
        "take.py",
        "import socket, sys\n\
         held = []\n\
         for number in range(64):\n    held.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))\n    \
         held[-1].bind(f'\\0ackclock/100.64.0.{1 + 4 * number}')\n\
         print('ready', flush=True)\n\
         input()\n",
    );
    let mut taker = machine
        .command("exec python3 take.py", &folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    until_line(&mut taker, "ready");
    let ended = machine.command(&format!("{LINK} sh -c 'echo $ACKCLOCK_BASE'"), &folder).output();
    taker.kill().unwrap();
    taker.wait().unwrap();
    assert_eq!(Ended::from(ended.unwrap()).out, "100.64.0.1\n");
}

#[test]
fn the_way_out_is_a_veth_pair_that_alone_forwards_until_kill_9() {
    let Some(folder) = ready(&["ip"]) else { return };
    let Some(machine) = Machine::new("veth", &folder) else { return };
    let before = machine.state(&folder);
    let script = format!("exec {LINK} sh -c 'echo ready; read -r word'");
    let mut command = machine.command(&script, &folder);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    until_line(&mut child, "ready");
    let prints =
        |script: &str| String::from_utf8(machine.command(script, &folder).output().unwrap().stdout).unwrap();
    let (pairs, tuns) = (prints("ip -o link show type veth"), prints("ip -o link show type tun"));
    assert!(pairs.contains(": ackclock0@") && tuns.is_empty(), "{pairs}{tuns}");
    let forwarding = prints("cd /proc/sys/net/ipv4/conf && grep . */forwarding");
    let on: Vec<&str> = forwarding.lines().filter(|line| line.ends_with(":1")).collect();
    assert_eq!(on, ["ackclock0/forwarding:1"], "{forwarding}");
    child.kill().unwrap();
    child.wait().unwrap();
    machine.returns_to(&before, &folder);
}

#[test]
fn a_server_on_the_machine_is_found_at_the_base_and_at_its_own_address() {
    let Some(folder) = ready(&["python3", "ip"]) else { return };
    let Some(machine) = Machine::new("base", &folder) else { return };
    let mut server =
        machine.command(&server("reno", 200_000), &folder).stdout(Stdio::piped()).spawn().unwrap();
    // It closes its output when it listens.
    server.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
    folder.write(
        "fetch",
        "base6=$(ip -o -6 addr show | sed -n 's/.* peer \\([^/]*\\).*/\\1/p')\n\
         for address in $ACKCLOCK_BASE 10.78.0.1 $base6; do python3 client.py $address; done\n",
    );
    let ended = machine.command(&format!("{LINK} sh fetch"), &folder).output().map(Ended::from);
    server.kill().unwrap();
    server.wait().unwrap();
    let ended = ended.unwrap();
    assert_eq!(ended.out, "200000\n".repeat(3), "{}", ended.err);
}

#[test]
fn ipv6_leads_out_whether_the_machine_forwards_it_or_not() {
    let Some(folder) = ready(&["python3", "ip"]) else { return };
    let Some(machine) = Machine::new("six", &folder) else { return };
    let script = format!("{LINK} python3 client.py {}", Machine::SERVER6);
    for forwarding in ["0", "1"] {
        let set = format!("echo {forwarding} > /proc/sys/net/ipv6/conf/all/forwarding");
        assert!(machine.command(&set, &folder).status().unwrap().success());
        if forwarding == "0" && !fs::exists("/proc/sys/net/ipv6/conf/all/force_forwarding").unwrap() {
            eprintln!("skipped: before Linux 6.17 a machine forwards IPv6 from every interface or from none");
            continue;
        }
        let before = machine.state(&folder);
        let ended = Ended::from(machine.command(&script, &folder).output().unwrap());
        assert_eq!(ended.out, "300000\n", "forwarding {forwarding}: {}", ended.err);
        machine.returns_to(&before, &folder);
    }
}

/// A name server at an address of a machine, which answers those who ask for `echo` and nobody else.
const NAME_SERVER: &str = r#"
import os, socket, sys, threading
family, _, _, _, at = socket.getaddrinfo(sys.argv[1], 53)[0]
queries = socket.socket(family, socket.SOCK_DGRAM)
queries.bind(at)
streams = socket.create_server(at, family=family)
def echo(peer):
    peer.sendall(peer.recv(512))
def serve():
    while True:
        threading.Thread(target=echo, args=streams.accept()[:1], daemon=True).start()
threading.Thread(target=serve, daemon=True).start()
os.close(1)
while True:
    query, peer = queries.recvfrom(512)
    if query == b"echo":
        queries.sendto(query, peer)
"#;

/// Asks the configured server until it answers, as resolvers do, by datagram and over a connection.
const ASK: &str = r#"
import socket
at = (next(line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver")), 53)
query = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
query.settimeout(1)
for _ in range(30):
    query.sendto(b"echo", at)
    try:
        print(query.recv(512).decode())
        break
    except TimeoutError:
        pass
stream = socket.create_connection(at, timeout=30)
stream.sendall(b"stream")
print(stream.recv(512).decode())
"#;

/// A machine whose name server is on its loopback address, and that server.
fn with_name_server(machine: &Machine, folder: &Folder) -> Child {
    folder.write("resolv.conf", "nameserver 127.0.0.53\nsearch test\n");
    name_server("127.0.0.53", machine, folder)
}

/// A name server at this address.
fn name_server(address: &str, machine: &Machine, folder: &Folder) -> Child {
    folder.write("names.py", NAME_SERVER);
    folder.write("ask.py", ASK);
    let script = format!("exec python3 names.py {address}");
    let mut server = machine.command(&script, folder).stdout(Stdio::piped()).spawn().unwrap();
    server.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
    server
}

/// In the mounts that `ip netns exec` makes for the command.
const RESOLVED: &str = "mount --bind resolv.conf /etc/resolv.conf && exec";

#[test]
fn the_inside_asks_the_resolver_of_the_machine_and_no_file_of_others_is_touched() {
    let Some(folder) = ready(&["python3", "ip", "mount"]) else { return };
    let Some(machine) = Machine::new("names", &folder) else { return };
    let mut server = with_name_server(&machine, &folder);
    // Names that were once known in advance: links to a file that is to stay, and a folder that nothing could be put over.
    folder.write("precious", "as it was");
    fs::create_dir(folder.path("tmp")).unwrap();
    for process in 1..10 {
        let name = format!("tmp/ackclock-resolv-{process}-100.64.0.1");
        match process % 2 {
            0 => symlink(folder.path("precious"), folder.path(&name)).unwrap(),
            _ => fs::create_dir(folder.path(&name)).unwrap(),
        }
    }
    let script = "cat /etc/resolv.conf; grep -c tmpfs /proc/mounts; python3 ask.py";
    let before =
        String::from_utf8(machine.command("grep -c tmpfs /proc/mounts", &folder).output().unwrap().stdout);
    let link = format!("{RESOLVED} env TMPDIR=$PWD/tmp {LINK} sh -c '{script}'");
    let ended = machine.command(&link, &folder).output().map(Ended::from);
    server.kill().unwrap();
    server.wait().unwrap();
    let ended = ended.unwrap();
    let tmpfs = before.unwrap().trim().parse::<u32>().unwrap();
    let expected = format!("search test\nnameserver 100.64.0.1\n{}\necho\nstream\n", tmpfs + 1);
    assert_eq!((ended.out, ended.err), (expected, String::new()));
    assert_eq!(folder.read("precious"), "as it was");
    assert_eq!(fs::read_dir(folder.path("tmp")).unwrap().count(), 9);
}

/// The first two are of no use: nobody listens at one, and the other is no address.
const SERVERS: &str = "nameserver 127.0.0.99\nnameserver nobody\nnameserver fe80::53%wan\nnameserver ::1\n";

#[test]
fn all_name_servers_of_the_machine_are_asked_in_their_order_by_root_and_by_a_user() {
    let Some(folder) = ready(&["python3", "ip", "mount"]) else { return };
    let Some(machine) = Machine::new("servers", &folder) else { return };
    let address = "ip addr add fe80::53/64 dev wan nodad";
    assert!(machine.command(address, &folder).status().unwrap().success());
    let mut server = name_server("fe80::53%wan", &machine, &folder);
    folder.write("resolv.conf", SERVERS);
    let asked = |script: &str| machine.command(script, &folder).output().map(Ended::from);
    let root = asked(&format!("{RESOLVED} {LINK} python3 ask.py"));
    let _device = WideDevice::open();
    let link = "./ackclock link 10mbit 10mbit --delay 5ms --";
    let user = asked(&format!("{RESOLVED} {} {link} python3 ask.py", as_user(&folder)));
    server.kill().unwrap();
    server.wait().unwrap();
    let (root, user) = (root.unwrap(), user.unwrap());
    assert_eq!(root.out, "echo\nstream\n", "{}", root.err);
    if user.err.contains("creating namespaces") || !is_installed("pasta") || !is_installed("setpriv") {
        eprintln!("skipped: a user reaches nothing here: {}", user.err.trim());
        return;
    }
    assert_eq!(user.out, "echo\nstream\n", "{}", user.err);
}

#[test]
fn a_flood_of_queries_takes_neither_processes_nor_the_names_of_the_link() {
    let Some(folder) = ready(&["python3", "ip", "mount"]) else { return };
    let Some(machine) = Machine::new("flood", &folder) else { return };
    let mut server = with_name_server(&machine, &folder);
    folder.write(
        "flood.py",
        "import os, socket, time\n\
         at = (os.environ['ACKCLOCK_BASE'], 53)\n\
         sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(100)]\n\
         for number in range(10_000):\n    sockets[number % 100].sendto(b'silence', at)\n\
         streams = [socket.create_connection(at, timeout=30) for _ in range(200)]\n\
         print('ready', flush=True)\n\
         input()\n\
         exec(open('ask.py').read())\n",
    );
    let link = format!("{RESOLVED} {LINK} python3 flood.py");
    let mut child =
        machine.command(&link, &folder).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    until_line(&mut child, "ready");
    let (mut threads, mut files) = (0, 0);
    for process in descendants(child.id()) {
        let count = |what: &str| fs::read_dir(format!("/proc/{process}/{what}")).map_or(0, Iterator::count);
        threads += count("task");
        files = files.max(count("fd"));
    }
    writeln!(child.stdin.take().unwrap()).unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap());
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(ended.out, "echo\nstream\n");
    // Of the link, its processes and the program inside: a thread a query would be thousands.
    assert!(threads < 30, "{threads} threads");
    // The program inside has 300 itself; the relay may have 128 for queries and 64 for connections.
    assert!(files < 330, "{files} files");
}

/// All processes that descend from one, and itself.
fn descendants(process: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let below = children.split_whitespace().filter_map(|child| child.parse().ok()).flat_map(descendants);
    std::iter::once(process).chain(below).collect()
}

#[test]
fn nothing_is_left_behind_after_kill_9() {
    let Some(folder) = ready(&["ip"]) else { return };
    let Some(machine) = Machine::new("kill", &folder) else { return };
    let before = machine.state(&folder);
    let mark = format!("98{}", std::process::id());
    let script = format!("exec {LINK} sh -c 'setsid sleep {mark} & echo ready; sleep {mark}'");
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

/// The first process of the namespaces must hear of a death that comes before it has asked to be told.
#[test]
fn nothing_is_left_behind_by_a_link_that_is_killed_while_it_begins() {
    let Some(folder) = ready(&[]) else { return };
    let mark = format!("97{}", std::process::id());
    for _ in 0..40 {
        let asked = ["link", "1mbit", "1mbit", "--closed", "--", "sleep", &mark];
        let mut child = folder.command(&asked).stderr(Stdio::null()).spawn().unwrap();
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        while child.try_wait().unwrap().is_none() && fs::read_to_string(&children).unwrap().trim().is_empty()
        {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(comes_true(|| processes_with(&mark) == 0), "{} processes", processes_with(&mark));
}

#[test]
fn a_user_needs_no_root() {
    let Some(folder) = ready(&["python3", "ip", "setpriv", "pasta"]) else { return };
    let Some(machine) = Machine::new("user", &folder) else { return };
    let _device = WideDevice::open();
    let user = as_user(&folder);
    let own = format!("{user} ./ackclock link 10mbit 8mbit --json --server '{}'", server("reno", 300_000));
    let ended =
        Ended::from(machine.command(&format!("{own} sh -c '{DOWNLOAD}; id -u'"), &folder).output().unwrap());
    if ended.err.contains("creating namespaces") {
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

#[test]
fn a_user_without_pasta_is_told_that_the_inside_is_closed() {
    let Some(folder) = ready(&["python3", "ip", "setpriv", "env"]) else { return };
    let Some(machine) = Machine::new("closed", &folder) else { return };
    let _device = WideDevice::open();
    let user = as_user(&folder);
    // The only program that is found, so that pasta is not.
    let python = Path::new("/usr/bin/python3");
    if !python.exists() {
        eprintln!("skipped: {} is not there, and others may be closed to a user", python.display());
        return;
    }
    fs::create_dir(folder.path("bin")).unwrap();
    symlink(python, folder.path("bin/python3")).unwrap();
    let before = machine.state(&folder);
    let script =
        format!("{user} env PATH=bin ./ackclock link 10mbit 8mbit -- python3 client.py {}", Machine::SERVER);
    let ended = Ended::from(machine.command(&script, &folder).output().unwrap());
    if ended.err.contains("creating namespaces") {
        eprintln!("skipped: {}", ended.err.trim());
        return;
    }
    assert!(
        ended.err.contains("the inside reaches only 100.64.") && ended.err.contains("passt"),
        "{}",
        ended.err
    );
    assert!(ended.err.contains("unreachable") && ended.out.is_empty(), "{ended:?}");
    machine.returns_to(&before, &folder);
}

/// Someone else's tables have the names of ours, which is the one way to be without nftables on a machine that has them.
#[test]
fn where_masquerading_fails_root_is_told_that_the_inside_is_closed() {
    let Some(folder) = ready(&["python3", "ip", "nft"]) else { return };
    let Some(machine) = Machine::new("tables", &folder) else { return };
    let take = "for number in $(seq 64); do nft add table ip ackclock$number || exit; done; echo taken";
    let taken = Ended::from(machine.command(take, &folder).output().unwrap());
    assert_eq!(taken.out, "taken\n", "{}", taken.err);
    let before = machine.state(&folder);
    let script = format!("{LINK} python3 client.py {}", Machine::SERVER);
    let ended = Ended::from(machine.command(&script, &folder).output().unwrap());
    assert!(
        ended.err.contains("the inside reaches only 100.64.")
            && ended.err.contains("masquerading by nftables"),
        "{}",
        ended.err
    );
    assert!(ended.err.contains("unreachable") && ended.out.is_empty(), "{ended:?}");
    machine.returns_to(&before, &folder);
}

/// The command of a user who is nobody, in front of `./ackclock`: neither the folder of the build nor that of the test need be
/// open to another user.
fn as_user(folder: &Folder) -> &'static str {
    fs::set_permissions(folder.path("."), fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_ackclock"), folder.path("ackclock")).unwrap();
    "setpriv --reuid 65534 --regid 65534 --clear-groups"
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
