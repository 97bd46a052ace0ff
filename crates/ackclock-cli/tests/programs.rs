//! Programs that people use, behind `ackclock link`: what they fetch from the other end arrives whole, and no faster than the
//! link. Each is skipped, with the reason, where it is not installed.

#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::real::{ROUND_TRIP, download, folder_with, is_installed, last_object};
use crate::common::{Ended, Folder};
use serde_json::Value;

/// A folder, where also the congestion control of a namespace is ours to choose.
fn ready(programs: &[&str]) -> Option<Folder> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root chooses the congestion control of a network namespace");
        return None;
    }
    folder_with(programs)
}

/// Runs a script, and lets the link count all of it, behind a link of 8 Mbit/s down and 4 Mbit/s up with a server at the other
/// end that sends by Reno, whatever is usual on this machine.
fn behind_a_link(folder: &Folder, server: &str, script: &str) -> Ended {
    let server = format!("echo reno > /proc/sys/net/ipv4/tcp_congestion_control && {server}");
    let link = ["link", "4mbit", "8mbit", "--delay", "10ms", "--json"];
    let script = format!("{script} && {ROUND_TRIP}");
    folder.run(&[&link[..], &["--server", &server, "--", "sh", "-c", &script]].concat())
}

/// Serves the folder of the test by HTTP, port 8000.
const WEB: &str = "exec python3 -m http.server 8000 >/dev/null 2>&1";

/// Bytes that are not alike, so that one out of place shows.
fn content(length: u32) -> Vec<u8> {
    (0..length).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect()
}

#[test]
fn curl_fetches_a_file_whole() {
    let Some(folder) = ready(&["curl", "python3"]) else { return };
    let file = content(600_000);
    folder.write("file", &file);
    let ended = behind_a_link(&folder, WEB, "curl -sS --noproxy '*' -o copy http://$ACKCLOCK_BASE:8000/file");
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
    assert!(fs::read(folder.path("copy")).unwrap() == file, "the bytes differ");
    let results = last_object(&ended.out);
    let flow = download(&results);
    // The end of curl's connection acknowledges all of it.
    assert!(flow["delivered_bytes"].as_u64().unwrap() > 600_000, "{flow}");
    // 1448 of 1500 bytes are payload, with timestamps.
    assert!(flow["goodput_bps"].as_f64().unwrap() < 8e6 * 1448.0 / 1500.0 * 1.01, "{flow}");
}

#[test]
fn iperf3_measures_the_rates_of_the_link() {
    let Some(folder) = ready(&["iperf3", "python3"]) else { return };
    for (direction, rate) in [("", 4e6), ("-R", 8e6)] {
        let script = format!("iperf3 -c $ACKCLOCK_BASE -C reno -t 2 -J {direction} > iperf.json");
        let ended = behind_a_link(&folder, "exec iperf3 -s >/dev/null 2>&1", &script);
        let report: Value = serde_json::from_str(&folder.read("iperf.json")).unwrap();
        assert_eq!((ended.status, ended.err.as_str()), (0, ""), "{report}");
        assert_eq!(report["end"]["sender_tcp_congestion"], "reno");
        let measured = report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
        // On a machine that is busy iperf3 starts and ends its two seconds late; the link has its own clock, by which nothing
        // goes faster than 1448 of 1500 bytes are payload, with timestamps.
        assert!(measured > rate * 0.1 && measured < rate * 1.25, "{direction}: {measured}");
        let results = last_object(&ended.out);
        let flow = download(&results);
        assert!(flow["goodput_bps"].as_f64().unwrap() < rate * 1448.0 / 1500.0 * 1.01, "{flow}");
        // All but two segments are acknowledged at once; the last two may be read and have their acknowledgement put off.
        let delivered = flow["delivered_bytes"].as_f64().unwrap() + 2.0 * 1448.0;
        let received = report["end"]["sum_received"]["bytes"].as_f64().unwrap();
        assert!(delivered >= received, "iperf3 received {received}, {flow}");
    }
}

/// Where sshd is: it starts itself again and so wants its whole path.
fn sshd() -> Option<String> {
    let paths = std::env::var("PATH").unwrap();
    let folders = paths.split(':').chain(["/usr/sbin", "/sbin"]);
    let mut places = folders.map(|folder| format!("{folder}/sshd"));
    places.find(|place| Path::new(place).is_file())
}

/// Whether root's password is one that sshd takes for a closed account.
fn root_is_locked() -> bool {
    let accounts = fs::read_to_string("/etc/shadow").unwrap_or_default();
    accounts.lines().any(|line| line.starts_with("root:!"))
}

fn make_key(folder: &Folder, name: &str) -> String {
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(folder.path(name));
    assert!(command.status().unwrap().success());
    folder.read(&format!("{name}.pub"))
}

#[test]
fn ssh_carries_a_file_to_the_server_and_back() {
    let Some(folder) = ready(&["ssh", "ssh-keygen", "python3"]) else { return };
    let Some(sshd) = sshd().filter(|_| !root_is_locked()) else {
        eprintln!("skipped: sshd is not installed, or root's account is locked");
        return;
    };
    let host = make_key(&folder, "host_key");
    folder.write("authorized_keys", make_key(&folder, "user_key"));
    let file = content(200_000);
    folder.write("file", &file);
    // sshd wants a folder of its own; where it is missing it is made in mounts that nobody else sees.
    let place = "test -d /run/sshd || { mount -t tmpfs tmpfs /run && mkdir /run/sshd; }";
    let options = "HostKey=$PWD/host_key AuthorizedKeysFile=$PWD/authorized_keys StrictModes=no UsePAM=no \
                   PasswordAuthentication=no PermitRootLogin=prohibit-password PidFile=none";
    let options: String = options.split_whitespace().map(|option| format!(" -o {option}")).collect();
    let server = format!("{{ {place}; }} && exec {sshd} -D -f /dev/null -p 2222 -E sshd.log{options}");
    let script = format!(
        "echo \"[$ACKCLOCK_BASE]:2222 {}\" > known_hosts; ssh -F none -p 2222 -i user_key -o BatchMode=yes \
         -o IdentitiesOnly=yes -o UserKnownHostsFile=known_hosts -o StrictHostKeyChecking=yes $ACKCLOCK_BASE cat < file > copy",
        host.trim()
    );
    let ended = behind_a_link(&folder, &server, &script);
    let log = fs::read_to_string(folder.path("sshd.log")).unwrap_or_default();
    assert_eq!((ended.status, ended.err.as_str()), (0, ""), "{log}");
    assert!(fs::read(folder.path("copy")).unwrap() == file, "the bytes differ");
    let results = last_object(&ended.out);
    assert!(download(&results)["delivered_bytes"].as_u64().unwrap() > 200_000, "{results}");
}

/// A picture of Windows: 14 + 40 bytes of headers and three bytes a pixel, in rows of a multiple of four bytes.
fn picture(width: u32, height: u32) -> Vec<u8> {
    let bytes = width * 3 * height;
    let fields = [54 + bytes, 0, 54, 40, width, height, 1 | 24 << 16, 0, bytes, 0, 0, 0, 0];
    let headers = fields.iter().flat_map(|field| field.to_le_bytes());
    b"BM".iter().copied().chain(headers).chain(content(bytes)).collect()
}

#[test]
fn chromium_shows_a_page_with_a_picture_and_a_script() {
    let Some(folder) = ready(&["python3", "timeout"]) else { return };
    let Some(browser) =
        ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| is_installed(name))
    else {
        eprintln!("skipped: chromium is not installed");
        return;
    };
    folder.write("picture.bmp", picture(300, 200));
    folder.write(
        "script.js",
        "onload = () => { let p = document.images[0]; said.textContent = `drawn ${p.naturalWidth} x ${p.naturalHeight}`; }",
    );
    let page = "<!doctype html><title>page</title><img src=picture.bmp><p id=said></p><script src=script.js></script>";
    folder.write("index.html", page);
    let options = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-background-networking \
                   --no-first-run --no-proxy-server --user-data-dir=profile --virtual-time-budget=20000";
    let script = format!(
        "HOME=$PWD timeout 100 {browser} {options} --dump-dom http://$ACKCLOCK_BASE:8000/ > dom 2> chromium.log"
    );
    let ended = behind_a_link(&folder, WEB, &script);
    assert_eq!((ended.status, ended.err.as_str()), (0, ""), "{}", folder.read("chromium.log"));
    let dom = folder.read("dom");
    assert!(dom.contains("drawn 300 x 200"), "{dom}\n{}", folder.read("chromium.log"));
    let results = last_object(&ended.out);
    // The picture came whole, and over this link; the acknowledgement of its last two segments may have been put off.
    assert!(download(&results)["delivered_bytes"].as_u64().unwrap() > 180_000 - 2 * 1448, "{results}");
}
