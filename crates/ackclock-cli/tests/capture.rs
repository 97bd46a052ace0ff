//! `ackclock import` of packet captures: rates of a link, compared with the recording that the link played.

use crate::common::Folder;
use serde_json::Value;

/// Recordings in mahimahi's format: EV-DO in a car, steps, and a rate like LTE that changes each 100 ms.
fn recordings(folder: &Folder) {
    let scenarios = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let evdo = std::fs::read(format!("{scenarios}/recordings/synthetic-evdo-driving.down")).unwrap();
    folder.write("evdo.down", evdo);
    let steps = format!("{scenarios}/steps.csv");
    assert_eq!(
        folder.run(&["trace", "convert", &steps, "--to", "mahimahi", "--out", "steps.down"]).status,
        0
    );
    let (mut state, mut lines, mut bytes) = (1_u64, String::new(), 0);
    for millisecond in 0..60_000_u64 {
        if millisecond % 100 == 0 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        }
        // 1.6 to 21.6 Mbit/s, and an outage of 200 ms each 20 s.
        let outage = millisecond % 20_000 >= 19_800;
        bytes += if outage { 0 } else { 200 + (state >> 33) % 2500 };
        for _ in 0..bytes / 1500 {
            lines += &format!("{}\n", millisecond + 1);
        }
        bytes %= 1500;
    }
    folder.write("lte.down", lines);
}

/// Captures 60 s of a flow over a recording, and returns what the import prints as JSON with the rates of its bins.
fn imported(folder: &Folder, recording: &str, flow: &str) -> (Value, Vec<f64>) {
    let edge = format!(
        "[edge]\nbuffer = \"300p\"\ndown = {{ kind = \"trace\", file = \"{recording}.down\", delay = \"30ms\" }}\nup = {{ kind = \"constant\", rate = \"1Mbit/s\", delay = \"30ms\" }}\n"
    );
    folder.write(
        "flow.toml",
        format!("version = 1\npreset = \"linux\"\nduration = \"60s\"\n{edge}[[flow]]\n{flow}"),
    );
    let ran = folder.run(&["run", "flow.toml", "--pcap", "flow.pcapng"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    // Interface 0 is the server's, interface 1 the mobile's.
    let import = [
        "import",
        "flow.pcapng",
        "--interface",
        "1",
        "--direction",
        "down",
        "--force",
        "--json",
        "-o",
        "flow.csv",
    ];
    let ended = folder.run(&import);
    assert_eq!(ended.status, 0, "{}", ended.err);
    let csv = folder.read("flow.csv");
    let rows = csv.lines().skip_while(|line| !line.starts_with("time_s")).skip(1);
    let rate =
        |row: &str| row.split(',').nth(1).filter(|rate| !rate.is_empty()).map(|rate| rate.parse().unwrap());
    (serde_json::from_str(&ended.out).unwrap(), rows.map_while(rate).collect())
}

/// Capacity of a recording until each millisecond, in kbit; the recording is played in a loop.
fn capacity(folder: &Folder, recording: &str) -> Vec<f64> {
    let times: Vec<usize> =
        folder.read(&format!("{recording}.down")).lines().map(|line| line.parse().unwrap()).collect();
    let length = *times.last().unwrap();
    let mut each = vec![0.0; length + 1];
    times.iter().for_each(|time| each[*time] += 12.0);
    let played = std::iter::once(0.0).chain((1..62_000).map(|at| each[(at - 1) % length + 1]));
    played
        .scan(0.0, |sum, kbit| {
            *sum += kbit;
            Some(*sum)
        })
        .collect()
}

/// Rates of the seconds that are entirely busy: measured, and of the recording. The time between the recording's start
/// and the first packet is the one for which they agree best.
fn busy_seconds(object: &Value, bins: &[f64], capacity: &[f64]) -> Vec<(f64, f64)> {
    let busy: Vec<(f64, f64)> = serde_json::from_value(object["capacity_s"].clone()).unwrap();
    let is_busy = |second: f64| busy.iter().any(|(begin, end)| *begin <= second && second + 1.0 <= *end);
    let seconds: Vec<usize> = (0..bins.len() / 10).filter(|second| is_busy(*second as f64)).collect();
    let at = |offset: usize| {
        seconds
            .iter()
            .map(|second| {
                let measured = bins[second * 10..][..10].iter().sum::<f64>() / 10.0;
                let from = offset + second * 1000;
                (measured, capacity[from + 1000] - capacity[from])
            })
            .collect::<Vec<_>>()
    };
    let wrong = |pairs: &[(f64, f64)]| pairs.iter().map(|(one, two)| (one - two).abs()).sum::<f64>();
    (0..500).map(at).min_by(|one, two| wrong(one).total_cmp(&wrong(two))).unwrap()
}

#[test]
fn busy_seconds_of_bulk_flows_show_the_capacity() {
    let folder = Folder::new();
    recordings(&folder);
    for recording in ["evdo", "steps", "lte"] {
        let capacity = capacity(&folder, recording);
        for sender in ["cubic", "bbr"] {
            let (object, bins) = imported(&folder, recording, &format!("sender = \"{sender}\"\n"));
            let seconds = busy_seconds(&object, &bins, &capacity);
            assert!(seconds.len() >= 15, "{recording} {sender}: {} seconds", seconds.len());
            for (measured, real) in &seconds {
                // A packet may be counted in the next second.
                let close = (measured - real).abs() <= f64::max(0.05 * real, 13.0);
                assert!(close, "{recording} {sender}: {measured} instead of {real} kbit/s");
            }
            let sum = |of: fn(&(f64, f64)) -> f64| seconds.iter().map(of).sum::<f64>();
            let ratio = sum(|second| second.0) / sum(|second| second.1);
            assert!((ratio - 1.0).abs() <= 0.02, "{recording} {sender}: ratio {ratio}");
            if sender == "cubic" {
                assert_eq!(object["certainty"]["grade"], "capacity", "{recording}: {}", object["certainty"]);
            }
        }
    }
}

#[test]
fn a_stream_at_half_the_rate_is_never_graded_as_capacity() {
    let folder = Folder::new();
    recordings(&folder);
    for (recording, size) in [("evdo", 3170), ("steps", 15_800), ("lte", 72_500)] {
        let stream = format!(
            "sender = \"cubic\"\nworkload = {{ kind = \"ftp\", interval = \"100ms\", size = \"{size}B\", connection_per = \"client\" }}\n"
        );
        let (object, _) = imported(&folder, recording, &stream);
        assert_ne!(object["certainty"]["grade"], "capacity", "{recording}: {}", object["certainty"]);
    }
}

#[test]
fn application_traffic_is_written_only_by_force() {
    let folder = Folder::new();
    recordings(&folder);
    let stream =
        "workload = { kind = \"ftp\", interval = \"1s\", size = \"5kB\", connection_per = \"client\" }\n";
    let (object, _) = imported(&folder, "lte", stream);
    assert_eq!(object["certainty"]["grade"], "application");
    let refused = folder.run(&["import", "flow.pcapng", "-o", "again.csv"]);
    assert_eq!(refused.status, 2);
    assert!(refused.err.contains("--force writes them nevertheless"), "{}", refused.err);
    assert!(!folder.names().contains(&"again.csv".to_owned()));
    let info = folder.run(&["trace", "info", "flow.csv"]);
    assert!(info.out.trim_end().ends_with("application"), "{}", info.out);
}

#[test]
fn options_for_captures_are_refused_for_other_files() {
    let folder = Folder::new();
    folder.write("link.csv", "time_s,rate_kbps\n0,1000\n9,\n");
    for option in [&["--fill"][..], &["--interface", "1"], &["--bin", "1s"], &["--host", "10.0.0.1"]] {
        let ended = folder.run(&[&["import", "link.csv"][..], option].concat());
        assert_eq!(ended.status, 2);
        assert!(
            ended.err.contains("--host, --interface, --bin and --fill are for packet captures"),
            "{}",
            ended.err
        );
    }
}
