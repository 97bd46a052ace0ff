//! What goes wrong: wrong input, full disks, readers that have gone, interruptions, a missing Python.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use crate::common::{Ended, Folder, SCENARIO, UNSWEPT};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

#[test]
fn wrong_input_is_one_error_that_names_place_and_remedy() {
    let folder = Folder::new();
    let wrong = |from: &str, to: &str, expected: &[&str]| {
        folder.write("wrong.toml", SCENARIO.replace(from, to));
        let said = folder.complains(2, &["run", "wrong.toml"]);
        assert!(expected.iter().all(|part| said.contains(part)), "{said}\n{expected:?}");
    };
    wrong("buffer = \"10p\"", "bufer = \"10p\"", &["wrong.toml:6", "bufer", "did you mean `buffer`"]);
    wrong("200kbit/s", "200kbits", &["wrong.toml:9", "edge.down.rate", "200kbits", "kbit/s"]);
    wrong("64kbit/s", "-64kbit/s", &["wrong.toml:13", "edge.up.rate", "negative"]);
    wrong("\"reno\"\n", "\"quic\"\n", &["wrong.toml:17", "unknown sender `quic`", "reno"]);
    wrong("sender = \"reno\"\n", "max_window = \"0p\"\n", &["wrong.toml:17", "flow", "max_window"]);
    wrong("\"cr02\"", "\"cr99\"", &["wrong.toml:2", "unknown preset `cr99`", "cr02"]);
    wrong("version = 1", "version = [", &["wrong.toml", "not TOML"]);
    wrong("[\"4p\", \"10p\"]", "\"4p\"", &["wrong.toml:20", "sweep", "list"]);
}

#[test]
fn a_wrong_point_of_a_sweep_is_found_before_anything_runs() {
    let folder = Folder::new();
    folder.write("wrong.toml", SCENARIO.replace("\"4p\", \"10p\"", "\"4p\", \"10\""));
    let said = folder.complains(2, &["sweep", "wrong.toml", "--out", "out.jsonl"]);
    assert!(said.contains("wrong.toml:20") && said.contains("edge.buffer"), "{said}");
    assert_eq!(folder.names(), ["case.toml", "wrong.toml"]);
}

#[test]
fn unreadable_files_are_named() {
    let folder = Folder::new();
    assert!(
        folder.complains(2, &["run", "none.toml"]).starts_with("none.toml: cannot be read: No such file")
    );
    assert!(folder.complains(2, &["check", "."]).contains("Is a directory"));
    folder.write("binary.toml", [b'a', 0xff, 0xfe]);
    assert!(folder.complains(2, &["run", "binary.toml"]).contains("byte 1 is not UTF-8"));
    assert!(folder.complains(2, &["run", "/dev/zero"]).contains("not a scenario"));
    folder.write("empty.down", "");
    folder.write("backward.down", "5\n4\n");
    folder.write("binary.down", [b'1', b'\n', 0xff]);
    for file in ["empty.down", "backward.down", "binary.down"] {
        let said = folder.complains(2, &["trace", "info", file]);
        assert!(said.starts_with(file), "{said}");
        let set = format!("edge.down={{kind=\"trace\", file=\"{file}\"}}");
        let said = folder.complains(2, &["run", "case.toml", "--set", &set]);
        assert!(said.contains("edge.down") && said.contains(file), "{said}");
    }
}

#[test]
fn wrong_options_end_with_status_2() {
    let folder = Folder::new();
    for arguments in [
        &["run", "case.toml", "--set", "edge.buffer"][..],
        &["run", "case.toml", "--set", "edge.bufer=4p"],
        &["compare", "case.toml", "--senders", "reno,,sack"],
        &["compare", "case.toml", "--senders", "quic"],
        &["list", "nothing"],
        &["list", "links", "nothing"],
    ] {
        folder.complains(2, arguments);
    }
    for arguments in
        [&["run"][..], &["simulate"], &["run", "case.toml", "--every", "0s"], &["run", "x", "--runs", "0"]]
    {
        assert_eq!(folder.run(arguments).status, 2, "{arguments:?}");
    }
    assert_eq!(folder.run(&["--help"]).status, 0);
}

#[test]
fn a_full_disk_is_one_error_and_leaves_nothing_behind() {
    let folder = Folder::new();
    // No room is a run that failed; a place that does not exist is wrong input.
    for (arguments, status) in [
        (&["sweep", "case.toml", "--out", "/dev/full", "--json"][..], 1),
        (&["run", "case.toml", "--pcap", "/dev/full"], 1),
        (&["run", "case.toml", "--series", "/dev/full"], 1),
        (&["run", "case.toml", "--series", "no/such/folder.csv"], 2),
    ] {
        let mut ended = folder.run(arguments);
        ended.err = ended.err.lines().filter(|line| !line.contains(UNSWEPT)).collect();
        assert_eq!(ended.status, status, "{arguments:?}: {}", ended.err);
        assert_eq!(ended.err.matches("ackclock: ").count(), 1, "{}", ended.err);
        assert!(ended.err.contains("be written") && ended.err.contains(arguments[3]), "{}", ended.err);
    }
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let printed = folder.command(&["sweep", "case.toml", "--json"]).stdout(full).output().unwrap();
    assert_eq!(printed.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&printed.stderr).starts_with("ackclock: standard output: cannot be written")
    );
    assert_eq!(folder.names(), ["case.toml"]);
}

#[test]
fn no_two_results_take_one_file_and_none_that_of_the_scenario() {
    let folder = Folder::new();
    let scenario = folder.read("case.toml");
    let twice = ["run", "case.toml", "--pcap", "a.out", "--series", "a.out"];
    assert!(folder.complains(2, &twice).contains("--series: a.out is also --pcap"));
    for over in
        [["run", "case.toml", "--series", "case.toml"], ["sweep", "case.toml", "--out", "./case.toml"]]
    {
        assert!(folder.complains(2, &over).contains("is also the scenario"));
    }
    assert_eq!((folder.names(), folder.read("case.toml")), (vec!["case.toml".to_owned()], scenario));
}

#[test]
fn what_asks_for_too_much_is_refused() {
    let folder = Folder::new();
    let many = folder.complains(2, &["run", "case.toml", "--runs", "4294967295"]);
    assert!(many.contains("runs: 4294967295 is not between 1 and 1000000"), "{many}");
    let often = folder.complains(2, &["run", "case.toml", "--series", "s.csv", "--every", "1ns"]);
    assert!(often.contains("rows and 19 columns, a row each 1ns, would take some"), "{often}");
    let alone = folder.run(&["run", "case.toml", "--every", "1s"]);
    assert!(alone.status == 2 && alone.err.contains("--series"), "{}", alone.err);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::new();
    let mut command = folder.command(&["sweep", "case.toml", "--runs", "20", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
}

#[test]
fn results_that_cannot_be_printed_because_nothing_is_open_are_an_error() {
    let folder = Folder::new();
    let closed = |script: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_ackclock")]).current_dir(folder.path("."));
        Ended::from(command.output().unwrap())
    };
    for script in ["\"$0\" run case.toml >&-", "\"$0\" run case.toml --json >&-", "\"$0\" list links >&-"] {
        let ended = closed(script);
        assert_eq!(ended.status, 1, "{script}");
        assert!(ended.err.contains("ackclock: standard output: cannot be written"), "{}", ended.err);
    }
    // What prints nothing loses nothing, and a standard input that is closed is no matter.
    assert_eq!(closed("\"$0\" run case.toml <&- >/dev/null").status, 0);
    assert_eq!(closed("\"$0\" sweep case.toml --out out.jsonl >/dev/null 2>&-").status, 0);
}

#[test]
fn a_pipe_is_read_to_its_end_and_one_that_nobody_writes_is_told_of() {
    let folder = Folder::new();
    let expected = folder.prints(&["run", "case.toml", "--json"]);
    let made = std::process::Command::new("mkfifo").arg(folder.path("pipe")).status().unwrap();
    assert!(made.success());
    let mut child = folder
        .command(&["run", "pipe", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "ackclock: pipe: no ordinary file; waiting until all of it is written\n");
    folder.write("pipe", crate::common::SCENARIO);
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(
        (ended.status, ended.out.replace("\"pipe\"", "\"case.toml\"")),
        (0, expected),
        "{}",
        ended.err
    );

    folder.write("down.trace", "1\n2\n3\n");
    let written = std::process::Command::new("sh")
        .args(["-c", "cat down.trace > pipe & \"$0\" trace info pipe", env!("CARGO_BIN_EXE_ackclock")])
        .current_dir(folder.path("."))
        .output()
        .map(Ended::from)
        .unwrap();
    assert_eq!((written.status, written.err.as_str()), (0, ""));
    assert!(written.out.contains("mahimahi"), "{}", written.out);
}

/// A sweep that takes hours unless it is stopped.
fn endless(folder: &Folder, more: &[&str]) -> Child {
    let asked = ["sweep", "case.toml", "--runs", "100000", "--set", "duration=1s"];
    let mut command = folder.command(&[&asked[..], more].concat());
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn interrupt(child: Child) -> Ended {
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    Ended::from(child.wait_with_output().unwrap())
}

#[test]
fn an_interrupted_sweep_leaves_whole_lines_under_an_unfinished_name() {
    let folder = Folder::new();
    let child = endless(&folder, &["--out", "out.jsonl"]);
    while fs::metadata(folder.path("out.jsonl.partial")).map_or(0, |data| data.len()) == 0 {
        std::thread::yield_now();
    }
    let ended = interrupt(child);
    assert_eq!(ended.status, 130);
    assert!(ended.err.starts_with("ackclock: interrupted: "), "{}", ended.err);
    assert!(ended.err.trim_end().ends_with("out.jsonl.partial"), "{}", ended.err);
    assert_eq!(folder.names(), ["case.toml", "out.jsonl.partial"]);
    let lines = folder.read("out.jsonl.partial");
    assert!(lines.ends_with('\n'));
    for line in lines.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
}

#[test]
fn an_interrupted_run_leaves_no_capture_and_no_series() {
    let folder = Folder::new();
    let asked = ["--pcap", "packets.pcapng", "--series", "series.csv", "--every", "1000s"];
    let mut command = folder.command(&["run", "case.toml", "--set", "duration=1000000000s"]);
    let child = command.args(asked).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // The names of both files cannot be foreseen; the run is under way when the capture has packets.
    let has_packets = |name: &String| {
        name.starts_with("packets") && fs::metadata(folder.path(name)).is_ok_and(|data| data.len() > 0)
    };
    while !folder.names().iter().any(has_packets) {
        std::thread::yield_now();
    }
    assert_eq!(interrupt(child).status, 130);
    assert_eq!(folder.names(), ["case.toml"]);
}

/// Starts a command in a terminal of its own; interrupts it when the terminal shows the first argument, and prints how it ended.
const WATCHED: &str = r#"
import os, pty, signal, sys
child, master = pty.fork()
if child == 0:
    os.execv(sys.argv[2], sys.argv[2:])
seen = b""
def read():
    try:
        return os.read(master, 4096)
    except OSError:
        return b""
while sys.argv[1].encode() not in seen:
    more = read()
    if not more:
        sys.exit(seen.decode())
    seen += more
os.kill(child, signal.SIGINT)
while more := read():
    seen += more
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(seen.decode().splitlines()[-1])
"#;

#[test]
fn a_single_long_run_shows_how_far_it_is_and_says_that_it_was_interrupted() {
    let folder = Folder::new();
    folder.write("watched.py", WATCHED);
    let mut command = std::process::Command::new("python3");
    command.arg(folder.path("watched.py")).args(["are simulated", env!("CARGO_BIN_EXE_ackclock")]);
    // A terminal that can show a line anew.
    command.env("TERM", "xterm");
    let ended =
        command.args(["run", "case.toml", "--set", "duration=1000000000s"]).current_dir(folder.path("."));
    let ended = Ended::from(ended.output().unwrap());
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert!(ended.out.starts_with("130\n"), "{}", ended.out);
    assert!(
        ended.out.trim_end().ends_with("ackclock: interrupted: the run is not finished"),
        "{}",
        ended.out
    );
}

#[test]
fn python_is_called_with_the_arguments_as_they_stand_and_its_status_is_passed_on() {
    let folder = Folder::new();
    folder.write("python", "#!/bin/sh\ncase \"$*\" in *importlib*) exit 0;; esac\necho \"$@\"\nexit 3\n");
    fs::set_permissions(folder.path("python"), fs::Permissions::from_mode(0o755)).unwrap();
    let called = |arguments: &[&str]| {
        let mut command = folder.command(arguments);
        Ended::from(command.env("ACKCLOCK_PYTHON", folder.path("python")).output().unwrap())
    };
    for (arguments, expected) in [
        (&["paper", "cr02", "--json", "--out", "x"][..], "-P -m ackclock paper cr02 --json --out x\n"),
        (&["paper", "--help"], "-P -m ackclock paper --help\n"),
        (&["model", "pftk", "0.01", "0.2", "1"], "-P -m ackclock model pftk 0.01 0.2 1\n"),
        (&["list", "models"], "-P -m ackclock list models\n"),
        (&["list", "model", "pftk", "--json"], "-P -m ackclock list models pftk --json\n"),
        (&["trace", "plot", "a.down"], "-P -m ackclock trace plot a.down\n"),
        (
            &["sweep", "case.toml", "--engine", "dask", "--runs", "2"],
            "-P -m ackclock sweep case.toml --engine dask --set runs=2\n",
        ),
    ] {
        let ended = called(arguments);
        assert_eq!((ended.status, ended.out.as_str()), (3, expected), "{}", ended.err);
    }
    let report = called(&["run", "case.toml", "--report", "out.html", "--series", "out.csv"]);
    assert_eq!(report.status, 1);
    let command = " --command ackclock run case.toml --report out.html --series out.csv --confidence 0.95 ";
    assert!(report.out.contains(command), "{}", report.out);
    assert!(
        report.out.trim_end().ends_with(".csv --of run 0 --out out.html"),
        "the report records a series of its own: {}",
        report.out
    );
    assert!(folder.names().contains(&"out.csv".to_owned()), "{:?}", folder.names());
    assert!(report.out.contains("-m ackclock report "), "{}", report.out);
    assert!(report.err.contains("-m ackclock report` failed"), "{}", report.err);
}

#[test]
fn without_the_python_package_it_says_how_to_get_it() {
    let folder = Folder::new();
    let mut command = folder.command(&["paper", "cr02"]);
    let ended = Ended::from(command.env("ACKCLOCK_PYTHON", "/bin/false").output().unwrap());
    assert_eq!(ended.status, 1);
    assert!(ended.err.contains("/bin/false") && ended.err.contains("pip install ."), "{}", ended.err);
    let wheel = concat!("/releases/expanded_assets/v", env!("CARGO_PKG_VERSION"), " ");
    assert!(
        ended.err.contains("pip install ackclock --find-links ") && ended.err.contains(wheel),
        "{}",
        ended.err
    );
}

#[test]
fn what_keeps_a_python_from_its_package_is_named() {
    let folder = Folder::new();
    let said = |set: &[(&str, &str)]| {
        let mut command = folder.command(&["paper", "cr02"]);
        command.env_remove("PYTHONHOME").env_remove("PYTHONPATH");
        let ended = Ended::from(command.envs(set.iter().copied()).output().unwrap());
        assert_eq!(ended.status, 1, "{}", ended.err);
        ended.err
    };
    let python = |script: &str| {
        folder.write("python3", format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(folder.path("python3"), fs::Permissions::from_mode(0o755)).unwrap();
    };
    let alone = folder.path(".").display().to_string();
    python("exit 1");
    let err = said(&[("PATH", &alone), ("PYTHONHOME", "/elsewhere"), ("PYTHONPATH", "/other")]);
    assert!(err.contains("; PYTHONHOME is /elsewhere; PYTHONPATH is /other. Get it"), "{err}");
    python("echo /closed/folder; exit 1");
    let err = said(&[("PATH", &alone)]);
    assert!(err.contains("; python3 may not read /closed/folder. Get it"), "{err}");
    fs::set_permissions(folder.path("python3"), fs::Permissions::from_mode(0o644)).unwrap();
    let named = folder.path("python3").display().to_string();
    let err = said(&[("ACKCLOCK_PYTHON", &named)]);
    assert!(err.contains("cannot be started: Permission denied"), "{err}");
}

/// The command as the last words of another one.
fn behind(folder: &Folder, words: &[&str], arguments: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(env!("CARGO_BIN_EXE_ackclock")).args(arguments);
    command.current_dir(folder.path("")).stdin(Stdio::null());
    command
}

#[test]
fn a_limit_of_the_shell_that_is_too_low_is_named_with_what_is_needed() {
    let folder = Folder::new();
    for (limit, expected) in
        [("-v 60000", "60000 KiB of address space"), ("-n 12", "12 open files, and ackclock needs 32")]
    {
        let script = format!("ulimit {limit} && exec \"$0\" \"$@\"");
        let ended =
            Ended::from(behind(&folder, &["sh", "-c", &script], &["run", "case.toml"]).output().unwrap());
        assert_eq!((ended.status, ended.err.lines().count()), (1, 1), "{}", ended.err);
        assert!(ended.err.contains(expected) && ended.err.contains("ulimit -H"), "{}", ended.err);
    }
}

#[test]
#[allow(clippy::print_stderr, reason = "a skipped test says why")]
fn a_run_is_the_same_under_valgrind_so_that_instructions_can_be_counted() {
    let folder = Folder::new();
    let run = ["run", "case.toml", "--set", "duration=500ms", "--json"];
    let Ok(output) = behind(&folder, &["valgrind", "--tool=none", "--quiet"], &run).output() else {
        eprintln!("skipped: valgrind is missing");
        return;
    };
    let counted = Ended::from(output);
    assert_eq!((counted.status, counted.out), (0, folder.prints(&run)), "{}", counted.err);
}
