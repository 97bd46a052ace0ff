//! Configuration and key files of the proxy: mistakes end it before it listens.

use std::fs;
use std::io::Write;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::common::Folder;
use crate::common::real::ready;

const FILE: &str = r#"
[proxy]
listen = ["127.0.0.1:0"]

[proxy.reports]
listen = "127.0.0.1:0"
keys = "radio.keys"

[relay]
steering = "rnf"
"#;

#[test]
fn a_mistake_in_a_file_is_one_line_with_file_key_and_allowed_values() {
    let folder = Folder::new();
    let secret = "0f".repeat(32);
    folder.write("proxy.toml", FILE);
    let fails = |expected: &str| {
        let ended = folder.run(&["proxy", "proxy.toml"]);
        assert_eq!(ended.status, 2, "{}", ended.err);
        assert!(ended.err.contains(expected), "{}", ended.err);
        assert!(!ended.err.contains(&secret), "the error shows the secret");
    };
    fails("radio.keys");
    folder.write("radio.keys", format!("1 {secret} 10.0.0.0/24\n"));
    let mode =
        |mode| fs::set_permissions(folder.path("radio.keys"), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o640);
    fails("radio.keys: other users can access the keys (mode 640): chmod 600");
    mode(0o600);
    folder.write("radio.keys", format!("1 {secret}0 10.0.0.0/24\n"));
    fails("radio.keys: line 1: the secret is not 64 hexadecimal digits");
    folder.write("proxy.toml", FILE.replace("\"rnf\"", "{ kind = \"rnf\", gain = 2.5 }"));
    fails("proxy.toml: relay.steering.gain: 2.5 is not from 0 to below 2");
    folder.write("proxy.toml", FILE.replace("[\"127.0.0.1:0\"]", "[\"0.0.0.0:0\"]"));
    folder.write("radio.keys", format!("1 {secret} 10.0.0.0/24\n"));
    fails("proxy.toml: proxy.listen: 0.0.0.0:0 can be reached from other machines");
}

#[test]
fn reports_are_sent_from_options_and_from_standard_input() {
    let folder = Folder::new();
    folder.write("radio.keys", format!("7 {} 10.0.0.0/24\n", "0f".repeat(32)));
    fs::set_permissions(folder.path("radio.keys"), fs::Permissions::from_mode(0o600)).unwrap();
    let proxy = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = proxy.local_addr().unwrap().to_string();
    let words = |user| vec!["radio-report", to.as_str(), "--report-key", "radio.keys", "--user", user];
    // Bytes 0-6 are magic, key and reason; then rate, packets and bytes of the queue.
    let hears = |reason: u8, rate: u64, packets: u32, bytes: u32| {
        let mut report = [0; 200];
        assert_eq!(proxy.recv(&mut report).unwrap(), 80);
        assert_eq!(report[..7], [b'R', b'N', b'F', b'1', 0, 7, reason]);
        assert_eq!(report[48..56], rate.to_be_bytes());
        assert_eq!(
            (report[56..60].to_vec(), report[60..64].to_vec()),
            (packets.to_be_bytes().to_vec(), bytes.to_be_bytes().to_vec())
        );
    };
    let options = ["--rate", "384kbit/s", "--packets", "6", "--bytes", "9000"];
    assert_eq!(folder.run(&[words("10.0.0.9"), options.to_vec()].concat()).status, 0);
    hears(1, 384_000, 6, 9000);

    let mut reading = folder.command(&words("10.0.0.9"));
    let mut reading = reading.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = b"128kbit/s 5 7500\n128kbit/s 4 6000\n0bit/s 4 6000\n128kbit/s x 1\n";
    reading.stdin.take().unwrap().write_all(lines).unwrap();
    let ended = reading.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let error = String::from_utf8(ended.stderr).unwrap();
    assert!(error.contains("standard input, line 4: PACKETS `x` is not a whole number"), "{error}");
    hears(1, 128_000, 5, 7500);
    hears(0, 128_000, 4, 6000);
    hears(1, 0, 4, 6000);

    let ended = folder.run(&[words("10.0.1.9"), options.to_vec()].concat());
    assert_eq!(ended.status, 2);
    assert!(ended.err.contains("--user: 10.0.1.9 is not a user of key 7"), "{}", ended.err);
}

#[test]
fn a_link_reports_its_rate() {
    let Some(folder) = ready(&[]) else { return };
    folder.write("radio.keys", format!("7 {} 10.0.0.0/24\n", "0f".repeat(32)));
    fs::set_permissions(folder.path("radio.keys"), fs::Permissions::from_mode(0o600)).unwrap();
    let proxy = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = proxy.local_addr().unwrap().to_string();
    let reports = ["--radio-reports", &to, "--report-key", "radio.keys", "--report-user", "10.0.0.9"];
    let words = [&["link", "1mbit", "384kbit", "--closed", "--report-every", "50ms"][..], &reports];
    let ended = folder.run(&[words.concat(), vec!["--", "sleep", "0.3"]].concat());
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
    let mut report = [0; 200];
    for reason in [1, 0] {
        assert_eq!(proxy.recv(&mut report).unwrap(), 80);
        assert_eq!((report[6], &report[48..56]), (reason, &384_000_u64.to_be_bytes()[..]));
    }
}
