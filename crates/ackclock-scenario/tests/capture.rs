//! tshark, an independent program, reads captures without errors.

#![allow(clippy::print_stdout, reason = "a skipped test says why, a table is there to be read")]

use std::io::{self, Write};
use std::process::{Command, Stdio};

use ackclock_scenario::{NoFiles, RunError, RunOptions, RunResult, Scenario, run};
use ackclock_testkit::Written;

/// A writer that fails after 10 kB, like a full disk.
struct FullDisk(usize);

impl Write for FullDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        if self.0 > 10_000 { Err(io::Error::other("no space left on device")) } else { Ok(bytes.len()) }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const MODERN: &str = r#"
preset = "linux"
duration = "30s"
[edge]
buffer = "20p"
regulator = "ack-regulator"
[edge.down]
kind = "variable"
rate = "u(1Mbit/s, 300kbit/s)"
delay = "50ms + e(20ms)"
loss = 0.01
[edge.up]
kind = "variable"
rate = "1Mbit/s"
delay = "50ms"
[[flow]]
sender = { kind = "sack", ecn = "on" }
workload = { kind = "file", size = "400kB" }
[[flow]]
count = 2
sender = "cubic"
start = "1s"
workload = { kind = "file", size = "300kB" }
"#;

fn capture(sets: &[&str]) -> (Vec<u8>, RunResult) {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load("modern.toml", MODERN, &sets).unwrap_or_else(|error| panic!("{error}"));
    let file = Written::default();
    let options = RunOptions { capture: Some(Box::new(file.clone())), ..RunOptions::default() };
    let result = run(&scenario, 0, &NoFiles, options).unwrap().result;
    (file.bytes(), result)
}

/// Output of tshark for a capture, one line per packet; `None` if it is not installed.
fn tshark(capture: &[u8], arguments: &[&str]) -> Option<String> {
    let mut child = Command::new("tshark")
        .args(["-r", "-", "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take().unwrap();
    let bytes = capture.to_vec();
    let feeder = std::thread::spawn(move || stdin.write_all(&bytes));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn tshark_finds_nothing_wrong() {
    let (capture, _) = capture(&[]);
    let fields = [
        "-T",
        "fields",
        "-e",
        "frame.interface_name",
        "-e",
        "tcp.stream",
        "-e",
        "_ws.expert.severity",
        "-e",
        "_ws.expert.message",
    ];
    let Some(lines) = tshark(&capture, &fields) else {
        println!("skipped: tshark is not installed");
        return;
    };
    // Three connections, each seen at both ends.
    assert!(lines.lines().count() > 2_000, "{}", lines.lines().count());
    const WARNING: u64 = 0x0060_0000;
    for line in lines.lines() {
        let severities =
            line.split('\t').nth(2).unwrap_or_default().split(',').filter_map(|text| text.parse().ok());
        let worst: u64 = severities.max().unwrap_or(0);
        // tshark reports losses and retransmissions as warnings and notes. Errors are malformed packets.
        assert!(worst <= WARNING, "{line}");
    }
    let bad =
        tshark(&capture, &["-Y", "_ws.malformed || tcp.checksum.status == 0 || ip.checksum.status == 0"]);
    assert_eq!(bad.as_deref(), Some(""));
    let zero = tshark(&capture, &["-Y", "tcp.analysis.zero_window || tcp.analysis.ack_lost_segment"]);
    assert_eq!(zero.as_deref(), Some(""));
}

#[test]
fn a_connection_is_whole_and_its_times_are_ordered() {
    let (capture, _) = capture(&["edge.channel=dedicated"]);
    let fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "tcp.flags.str", "-e", "tcp.stream"];
    let Some(lines) = tshark(&capture, &fields) else {
        println!("skipped: tshark is not installed");
        return;
    };
    let rows: Vec<Vec<&str>> = lines.lines().map(|line| line.split('\t').collect()).collect();
    let times: Vec<f64> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
    assert!(times.is_sorted());
    // Three connections, each seen at both ends.
    for stream in ["0", "1", "2", "3", "4", "5"] {
        let flags: String = rows.iter().filter(|row| row[2] == stream).map(|row| row[1]).collect();
        assert!(flags.contains('S') && flags.contains('F'), "connection {stream}");
    }
}

#[test]
fn what_tshark_takes_for_repetitions_is_what_we_count() {
    let (capture, result) = capture(&[]);
    let repeated =
        "ip.src == 192.0.2.1 && tcp.len > 0 && (tcp.analysis.retransmission || tcp.analysis.out_of_order)";
    let Some(lines) = tshark(&capture, &["-Y", repeated]) else {
        println!("skipped: tshark is not installed");
        return;
    };
    let ours: u64 = result.flows.iter().map(|flow| flow.retransmits.unwrap()).sum();
    assert!(ours > 10, "{ours}");
    assert_eq!(lines.lines().count() as u64, ours);
}

#[test]
fn data_of_an_upload_leaves_the_mobile_which_opened_its_connection() {
    let (capture, result) = capture(&["flow.1.towards=server"]);
    let fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "tcp.len"];
    let upwards = "ip.dst == 192.0.2.1 && tcp.len > 0";
    let Some(lines) = tshark(&capture, &[&["-Y", upwards][..], &fields].concat()) else {
        println!("skipped: tshark is not installed");
        return;
    };
    // The server interface captures arriving packets: both files, and duplicates.
    let arrived: u64 =
        lines.lines().filter_map(|line| line.strip_prefix("server\t")?.parse::<u64>().ok()).sum();
    assert_eq!(result.flows[1].delivered_bytes + result.flows[2].delivered_bytes, 600_000);
    assert!((600_000..700_000).contains(&arrived), "{arrived}");
    let syns = "ip.dst == 192.0.2.1 && tcp.flags.syn == 1 && frame.interface_name == \"server\"";
    let opened = tshark(&capture, &["-Y", syns]).unwrap_or_default();
    assert_eq!(opened.lines().count(), 3, "all three connections are the mobile's: {opened}");
    let bad = tshark(&capture, &["-Y", "_ws.malformed || tcp.checksum.status == 0"]);
    assert_eq!(bad.as_deref(), Some(""));
}

#[test]
fn a_disk_without_room_fails_the_run() {
    let scenario = Scenario::load("modern.toml", MODERN, &[]).unwrap();
    let options = RunOptions { capture: Some(Box::new(FullDisk(0))), ..RunOptions::default() };
    let error = run(&scenario, 0, &NoFiles, options).unwrap_err();
    assert_eq!(error, RunError::Capture("no space left on device".to_owned()));
    assert_eq!(error.to_string(), "the capture could not be written: no space left on device");
}
