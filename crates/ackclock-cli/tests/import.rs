//! `ackclock import`, and what is said of a recording wherever it is played.

use crate::common::Folder;
use serde_json::{Value, json};

/// A log of a phone: 20 seconds at 1000 kbit/s down and 100 up.
fn phone() -> String {
    let row = |n: u32| format!("2020.01.01_00.00.{n:02},D,1000,100\n");
    format!("Timestamp,State,DL_bitrate,UL_bitrate\n{}", (0..20).map(row).collect::<String>())
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("phone.csv", phone());
    folder
}

fn objects(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Standard output, and standard error, of a command that ends well.
fn both(folder: &Folder, arguments: &[&str]) -> (String, String) {
    let ended = folder.run(arguments);
    assert_eq!(ended.status, 0, "{}", ended.err);
    (ended.out, ended.err)
}

#[test]
fn each_direction_goes_into_its_own_file() {
    let folder = folder();
    let (table, said) = both(&folder, &["import", "phone.csv", "--direction", "both", "-o", "drive.csv"]);
    assert!(table.contains("phone.down.csv") && table.contains("lower-bound"), "{table}");
    assert!(
        said.contains("phone.up.csv: taken for ucc; its rates are lower-bound: a bulk transfer to a phone"),
        "{said}"
    );
    assert!(said.contains("times count from its first row, at 1577836800 s since 1970"), "{said}");
    let head = "# form: ucc\n# certainty: lower-bound: a bulk transfer to a phone\ntime_s,rate_kbps\n0,";
    assert!(folder.read("drive.down.csv").starts_with(&format!("{head}1000\n")));
    assert!(folder.read("drive.up.csv").starts_with(&format!("{head}100\n")));
}

#[test]
fn a_recording_of_one_direction_is_not_written_as_both() {
    let folder = folder();
    folder.write("own.csv", "time_s,rate_kbps\n0,1000\n1,2000\n2,\n");
    folder.write("log.down", "1\n2\n5\n9\n");
    for file in ["own.csv", "log.down"] {
        let ended = folder.run(&["import", file, "--direction", "both", "-o", "drive.csv"]);
        let told =
            format!("{file}: --direction both: it is a recording of one direction: leave out --direction");
        assert!(ended.status == 2 && ended.err.contains(&told), "{}", ended.err);
        assert!(!folder.path("drive.down.csv").exists());
    }
}

#[test]
fn both_directions_of_a_table_have_separate_columns() {
    let folder = folder();
    let rows: String = (0..12).map(|n| format!("{n},2\n")).collect();
    folder.write("log.csv", format!("time,throughput_mbps\n{rows}"));
    let ended = folder.run(&["import", "log.csv", "--direction", "both", "-o", "drive.csv"]);
    assert!(ended.status == 2 && ended.err.contains("--rate-column"), "{}", ended.err);
    both(&folder, &["import", "log.csv", "--direction", "up", "-o", "up.csv"]);
}

#[test]
fn an_object_says_what_was_made_of_the_file() {
    let folder = folder();
    let (out, _) = both(&folder, &["import", "phone.csv", "--json"]);
    let mut object = objects(&out).remove(0);
    object.as_object_mut().unwrap().remove("notes");
    let expected = json!({
        "recording": "phone.csv", "form": "ucc", "rows": 20, "length_s": 20.0, "mean_kbps": 1000.0, "p5": 1000.0, "p50": 1000.0,
        "p95": 1000.0, "outages": 0, "missing": {"rows": 0, "treatment": "refuse"}, "clock": "even",
        "certainty": {"grade": "lower-bound", "why": "a bulk transfer to a phone"},
    });
    assert_eq!(object, expected);
}

#[test]
fn a_recording_keeps_its_grade_in_every_form_and_result() {
    let folder = folder();
    both(&folder, &["import", "phone.csv", "-o", "drive.csv"]);
    let (info, _) = both(&folder, &["trace", "info", "drive.csv", "--json"]);
    assert_eq!(objects(&info)[0]["certainty"]["grade"], "lower-bound");
    let scenario = |file: &str| {
        format!(
            "version = 1\nduration = \"5s\"\n[edge]\ndown = {{ kind = \"trace\", file = \"{file}\" }}\n[[flow]]\n"
        )
    };
    for file in ["drive.csv", "phone.csv"] {
        folder.write("played.toml", scenario(file));
        let (run, said) = both(&folder, &["run", "played.toml", "--json"]);
        let recordings = &objects(&run)[0]["provenance"]["recordings"];
        assert_eq!(recordings[file], "lower-bound: a bulk transfer to a phone");
        assert_eq!(said.contains("phone.csv: taken for ucc"), file == "phone.csv", "{said}");
    }
}

#[test]
fn other_tables_are_read_by_their_columns() {
    let folder = Folder::new();
    let rows: String = (0..12).map(|n| format!("{n};1,5;40\n")).collect();
    folder.write("log.csv", format!("second;rate;wait\n{rows}"));
    let columns =
        ["--time-column", "second", "--rate-column", "2", "--decimal", ",", "--delay-column", "wait"];
    let (out, _) =
        both(&folder, &[&["import", "log.csv", "--unit", "MB/s", "--json"], &columns[..]].concat());
    assert_eq!(objects(&out)[0]["mean_kbps"], 12000.0);
    for (arguments, message) in [
        (
            &["import", "log.csv", "--time-column", "second"][..],
            "log.csv:1: is `rate` in kbit/s or Mbit/s? `ackclock import FILE --unit Mbit/s`",
        ),
        (&["import", "log.csv", "--unit", "knots"], "--unit knots: it is one of bit/s, kbit/s"),
        (&["import", "log.csv", "--as", "iperf2"], "--as iperf2: it is one of mahimahi"),
        (
            &["import", "log.csv", "--time-column", "when"],
            "log.csv:1: there is no column `when`: second, rate, wait",
        ),
        (&["import", "case.toml"], "case.toml: no known form begins with"),
        (&["import", "nowhere.csv"], "nowhere.csv: cannot be read"),
    ] {
        let ended = folder.run(arguments);
        let said = ended.err;
        assert_eq!(ended.status, 2, "{said}");
        assert!(said.contains(message), "{said}");
    }
}
