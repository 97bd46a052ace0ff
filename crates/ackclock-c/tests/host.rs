//! The reference host in C decides exactly as an edge does: equal decisions on equal events.

use std::io::Write;
use std::path::{Path as FilePath, PathBuf};
use std::process::{Command, Stdio};

use ackclock_core::Span;

use crate::path::{BUFFER_PACKETS, Path, RATE_BPS};

/// Path of a file of this crate.
pub(crate) fn file(name: &str) -> PathBuf {
    FilePath::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Runs the C compiler with our header. Returns `false`, with a message, on a machine without a C compiler.
pub(crate) fn compile(arguments: impl FnOnce(&mut Command) -> &mut Command) -> bool {
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"]).arg("-I").arg(file("include"));
    match arguments(&mut compiler).output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            true
        }
        Err(error) => {
            eprintln!("skipped: no C compiler `cc`: {error}");
            false
        }
    }
}

/// Compiles the reference host against the static library, which cargo puts beside this test.
fn host(folder: &FilePath) -> Option<PathBuf> {
    let library = std::env::current_exe().unwrap().with_file_name("libackclock_c.a");
    let program = folder.join("host");
    compile(|cc| {
        cc.arg(file("examples/host.c")).arg(library).arg("-o").arg(&program).args([
            "-lpthread",
            "-ldl",
            "-lm",
        ])
    })
    .then_some(program)
}

/// Runs the host, and returns its standard output.
fn decisions(host: &FilePath, arguments: [&str; 3], log: &str) -> String {
    let mut child =
        Command::new(host).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let log = log.to_owned();
    let writer = std::thread::spawn(move || input.write_all(log.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_host_in_c_decides_as_an_edge_does() {
    let folder = tempfile::tempdir().unwrap();
    let Some(host) = host(folder.path()) else { return };
    let (span, rate, buffer) = (Span::from_secs(20), RATE_BPS.to_string(), BUFFER_PACKETS.to_string());
    let unregulated = Path::run("kind = \"none\"", span).decisions;
    let names = ["none", "ack-regulator", "ack-rate-control", "snoop", "wrs", "wrd", "wrb", "forecast"];
    let tables = names.map(|name| (name, format!("kind = \"{name}\"")));
    let shared = ("forecast of a queue", "kind = \"forecast\"\nscope = \"queue\"".to_owned());
    for (name, table) in tables.into_iter().chain([shared]) {
        let path = Path::run(&table, span);
        let decided = decisions(&host, [&table, &rate, &buffer], &path.log);
        let different = path.decisions.lines().zip(decided.lines()).position(|(edge, host)| edge != host);
        if let Some(line) = different {
            let of =
                |text: &str| text.lines().skip(line.saturating_sub(3)).take(6).collect::<Vec<_>>().join("\n");
            panic!("{name}, line {line}\nedge:\n{}\nhost:\n{}", of(&path.decisions), of(&decided));
        }
        assert_eq!(path.decisions.lines().count(), decided.lines().count(), "{name}");
        assert!(decided.lines().count() > 2000, "{name}: {} decisions", decided.lines().count());
        assert!(name == "none" || decided != unregulated, "{name} changes nothing");
    }
}

#[test]
fn the_host_names_what_is_wrong_with_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let Some(host) = host(folder.path()) else { return };
    let output = Command::new(host).args(["kind = \"snop\"", "1000000", "10"]).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(message.contains("regulator") && message.contains("`snop`"), "{message}");
}

#[test]
fn the_page_shows_what_the_host_prints() {
    let folder = tempfile::tempdir().unwrap();
    let Some(host) = host(folder.path()) else { return };
    let page = std::fs::read_to_string(file("../../docs/how-to/c-interface.md")).unwrap();
    let events = page.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    let shown = page
        .split("$ ./host 'kind = \"wrs\"' 1000000 2 < events\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    assert_eq!(decisions(&host, ["kind = \"wrs\"", "1000000", "2"], events), shown);
}
