//! `ackclock link --gateway`: two devices and a server in namespaces of their own, and the router between them.

#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::common::Folder;
use crate::common::real::{comes_true, folder_with, last_object, server};

/// Returns datagrams to their senders.
const ECHO: &str = r#"
import os, socket
server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
server.bind(("::", 5002))
os.close(1)
while True:
    data, sender = server.recvfrom(2000)
    server.sendto(data, sender)
"#;

/// Exchanges ten datagrams of 1200 bytes with a server, of which none is lost.
const DATAGRAMS: &str = r#"
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
client = socket.socket(family, socket.SOCK_DGRAM)
client.settimeout(60)
for number in range(10):
    client.sendto(bytes([number]) * 1200, (sys.argv[1], 5002))
    assert client.recv(2000) == bytes([number]) * 1200
"#;

const SERVER: &str = "10.79.0.2";
const SERVER6: &str = "fd79::2";
const DEVICES: [&str; 2] = ["10.77.0.11", "10.77.0.12"];

/// A router with a bridge `lan` of two devices and an interface `wan` to a server. The router translates addresses of
/// IPv4, filters paths strictly and forwards only what comes from the bridge, or answers it.
struct Network {
    names: [String; 4],
    children: Vec<Child>,
}

impl Network {
    fn new(folder: &Folder) -> Option<Self> {
        // Tests run side by side in one process.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("ackclock-gateway-{}-{number}", std::process::id());
        let names = ["router", "server", "one", "two"].map(|name| format!("{prefix}-{name}"));
        let [router, server_name, one, two] = &names;
        let device = |number: u32, name: &str| {
            format!(
                "ip -n {router} link add port{number} type veth peer name eth0 netns {name}
                 ip -n {router} link set port{number} master lan up
                 ip -n {name} addr add 10.77.0.1{number}/24 dev eth0
                 ip -n {name} addr add fd77::1{number}/64 dev eth0 nodad
                 ip -n {name} link set eth0 up
                 ip -n {name} route add default via 10.77.0.1
                 ip -n {name} route add default via fd77::1
                 "
            )
        };
        let steps = format!(
            "set -e
             for name in {router} {server_name} {one} {two}; do ip netns add $name; ip -n $name link set lo up; done
             ip -n {router} link add lan type bridge
             ip -n {router} addr add 10.77.0.1/24 dev lan
             ip -n {router} addr add fd77::1/64 dev lan nodad
             ip -n {router} link set lan up
             {}{}
             ip -n {router} link add wan type veth peer name eth0 netns {server_name}
             ip -n {router} addr add 10.79.0.1/24 dev wan
             ip -n {router} addr add fd79::1/64 dev wan nodad
             ip -n {router} link set wan up
             ip -n {server_name} addr add {SERVER}/24 dev eth0
             ip -n {server_name} addr add {SERVER6}/64 dev eth0 nodad
             ip -n {server_name} link set eth0 up
             ip -n {server_name} route add fd77::/64 via fd79::1
             ip netns exec {router} sh -ec 'echo 1 > /proc/sys/net/ipv4/ip_forward
                 echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
                 echo 1 > /proc/sys/net/ipv4/conf/all/rp_filter
                 nft add table inet t
                 nft add chain inet t f {{ type filter hook forward priority 0 \\; policy drop \\; }}
                 nft add rule inet t f iifname lan oifname wan accept
                 nft add rule inet t f iifname wan ct state established accept
                 nft add chain inet t p {{ type nat hook postrouting priority 100 \\; }}
                 nft add rule inet t p ip saddr 10.77.0.0/24 oifname wan masquerade'",
            device(1, one),
            device(2, two),
        );
        let mut network = Self { names: names.clone(), children: Vec::new() };
        let made = Command::new("sh").args(["-c", &steps]).output().unwrap();
        if !made.status.success() {
            eprintln!("skipped: {}", String::from_utf8_lossy(&made.stderr).trim());
            return None;
        }
        for script in [server("reno", 300_000), "exec python3 echo.py".to_owned()] {
            let mut child = network.command(1, &script, folder).stdout(Stdio::piped()).spawn().unwrap();
            let mut listening = child.stdout.take().unwrap();
            network.children.push(child);
            listening.read_to_end(&mut Vec::new()).unwrap();
        }
        // Ports of a bridge forward after the kernel has seen both ends up.
        let reached =
            |device: usize| network.run(device, "ping -c 1 -W 1 10.79.0.2 && ping -c 1 -W 1 fd79::2", folder);
        assert!(comes_true(|| reached(2).0 && reached(3).0));
        // The kernel looks for other owners of an address for a second; routes change when that ends.
        assert!(comes_true(|| network.run(0, "! ip addr | grep -q tentative", folder).0));
        Some(network)
    }

    fn command(&self, at: usize, script: &str, folder: &Folder) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[at], "sh", "-c", script]).current_dir(folder.path("."));
        command
    }

    /// Runs a script; whether it succeeded, and what it printed.
    fn run(&self, at: usize, script: &str, folder: &Folder) -> (bool, String) {
        let output = self.command(at, script, folder).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// Starts a gateway at the router, and waits until it diverts packets.
    fn gateway(&self, options: &str, folder: &Folder) -> Child {
        let script =
            format!("exec {} link 20mbit 20mbit --gateway lan {options}", env!("CARGO_BIN_EXE_ackclock"));
        let mut command = self.command(0, &script, folder);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ackclock: the devices behind lan are behind the link until Ctrl-C\n");
        child
    }

    /// All that a gateway could have left behind at the router.
    fn state(&self, folder: &Folder) -> String {
        let script = "ip -o addr | sed 's/ valid_lft.*//'; ip route show table all; ip rule; nft list ruleset; tc filter show dev lan ingress;
                      tc qdisc; grep ackclock /proc/net/unix; true";
        self.run(0, script, folder).1
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

/// Ends a gateway, by the signal that a program started in the background also obeys; returns its results.
fn end(mut gateway: Child) -> Value {
    let interrupted = Command::new("kill").args(["-TERM", &gateway.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    let mut text = String::new();
    gateway.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(gateway.wait().unwrap().success());
    last_object(&text)
}

fn network() -> Option<(Folder, Network)> {
    let folder = folder_with(&["python3", "ip", "nft", "ping", "tc"])?;
    folder.write("server.py", crate::common::real::SERVER);
    folder.write("client.py", crate::common::real::CLIENT);
    folder.write("echo.py", ECHO);
    folder.write("datagrams.py", DATAGRAMS);
    let network = Network::new(&folder)?;
    Some((folder, network))
}

fn exchange(server: &str) -> String {
    format!("set -e; python3 client.py {server}; python3 datagrams.py {server}; ping -q -c 2 -i 0.2 {server}")
}

#[test]
fn devices_cross_the_link_by_tcp_udp_and_ping_and_nothing_is_left() {
    let Some((folder, network)) = network() else { return };
    let before = network.state(&folder);
    let gateway = network.gateway("--delay 10ms --json", &folder);
    for device in [2, 3] {
        for server in [SERVER, SERVER6] {
            let (ok, text) = network.run(device, &exchange(server), &folder);
            assert!(ok && text.starts_with("300000\n"), "{device} {server}: {text}");
            // The link delays by 10 ms in each direction; no path is faster.
            let rtt = text.rsplit("= ").next().unwrap().split('/').next().unwrap().parse::<f64>().unwrap();
            assert!(rtt >= 20.0, "{text}");
        }
    }
    let results = end(gateway);
    let flows = results["flows"].as_array().unwrap();
    for address in DEVICES.into_iter().chain(["fd77::11", "fd77::12"]) {
        let of_device = |flow: &&Value| flow.to_string().contains(address);
        let bytes: u64 =
            flows.iter().filter(of_device).filter_map(|flow| flow["delivered_bytes"].as_u64()).sum();
        assert!(bytes >= 300_000, "{address}: {results}");
    }
    assert!(comes_true(|| network.state(&folder) == before), "{before}\n{}", network.state(&folder));
}

#[test]
fn one_device_is_selected_by_its_address_and_conditions_change() {
    let Some((folder, network)) = network() else { return };
    let gateway = network.gateway("--only 10.77.0.11 --except [fd79::]/64 --loss 100% --json", &folder);
    let reaches =
        |device: usize, server: &str| network.run(device, &format!("ping -c 1 -W 2 {server}"), &folder).0;
    assert!(!reaches(2, SERVER));
    assert!(reaches(2, SERVER6) && reaches(3, SERVER));
    let id = gateway.id();
    let set = format!("{} link set --pid {id} up.loss=0 down.loss=0", env!("CARGO_BIN_EXE_ackclock"));
    let (ok, text) = network.run(0, &set, &folder);
    assert!(ok, "{text}");
    assert!(reaches(2, SERVER), "the link lets everything pass");
    let results = end(gateway);
    assert!(results["uplink"]["bypassed"].as_u64().unwrap() > 0, "{results}");
}

#[test]
fn a_killed_gateway_leaves_the_devices_to_the_router() {
    let Some((folder, network)) = network() else { return };
    let before = network.state(&folder);
    let mut gateway = network.gateway("--loss 100%", &folder);
    let reached = || network.run(2, "ping -c 1 -W 1 10.79.0.2", &folder).0;
    assert!(!reached());
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    assert!(comes_true(reached));
    assert!(comes_true(|| network.state(&folder) == before), "{before}\n{}", network.state(&folder));
}

#[test]
fn an_interface_that_cannot_have_a_gateway_is_named_with_what_to_type() {
    let folder = Folder::new();
    for (words, told) in [
        (
            "--gateway nowhere",
            "--gateway: `nowhere` is not a network interface of this machine; `ip link` lists them",
        ),
        ("--gateway lo", "--gateway: lo: no device is behind the loopback interface"),
        ("--gateway lo -- true", "runs until Ctrl-C; leave the command out"),
        ("--gateway lo --mtu 1400", "ip link set INTERFACE mtu BYTES"),
        ("--gateway lo --publish 80", "--publish"),
    ] {
        let words: Vec<&str> =
            ["link", "1mbit", "1mbit"].into_iter().chain(words.split_whitespace()).collect();
        let message = folder.complains(2, &words);
        assert!(message.contains(told), "{message}");
    }
    let Some((folder, network)) = network() else { return };
    let command = format!("{} link 1mbit 1mbit --gateway", env!("CARGO_BIN_EXE_ackclock"));
    let (ok, text) = network.run(0, &format!("{command} port1"), &folder);
    assert!(!ok && text.contains("port1: it is part of a bridge; name the bridge, `lan`"), "{text}");
    let mut gateway = network.gateway("", &folder);
    let (ok, text) = network.run(0, &format!("{command} lan"), &folder);
    assert!(!ok && text.contains("lan: a gateway runs there already"), "{text}");
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    let (ok, text) = network.run(
        0,
        &format!("ip link set lan mtu 9000; {command} lan; ip link set lan mtu 1500"),
        &folder,
    );
    assert!(ok && text.contains("ip link set lan mtu 1500"), "{text}");
}
