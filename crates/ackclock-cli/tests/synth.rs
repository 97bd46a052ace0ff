//! Recordings that are made: those that are shipped, and what the command says of them.

use std::path::Path;

use crate::common::Folder;

#[test]
fn the_shipped_recordings_are_what_their_commands_make() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/recordings");
    let readme = std::fs::read_to_string(shipped.join("README.md")).unwrap();
    let commands = readme.lines().filter_map(|line| line.strip_prefix("$ ackclock "));
    let folder = Folder::new();
    let mut made = Vec::new();
    for command in commands {
        let words: Vec<&str> = command.split_whitespace().collect();
        folder.prints(&words);
        let file = *words.last().unwrap();
        assert!(file.starts_with("synthetic-"), "{file} says what it is");
        assert!(
            std::fs::read(folder.path(file)).unwrap() == std::fs::read(shipped.join(file)).unwrap(),
            "`ackclock {command}` makes another {file}"
        );
        made.push(file.to_owned());
    }
    let mut there: Vec<String> = std::fs::read_dir(shipped)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name != "README.md")
        .collect();
    there.sort();
    made.sort();
    assert_eq!(there, made, "every file has its command");
}

#[test]
fn a_recording_is_made_described_and_set_beside_another() {
    let folder = Folder::new();
    folder.write("other.down", (1..=200).map(|n| format!("{}\n", 10 * n)).collect::<String>());
    let told =
        folder.prints(&["trace", "synth", "--duration", "5s", "--out", "a.down", "--beside", "other.down"]);
    assert!(told.contains("a.down") && told.contains("other.down"), "{told}");
    assert_eq!(told, folder.prints(&["trace", "info", "a.down", "other.down"]));
    assert_eq!(folder.prints(&["trace", "synth", "--duration", "5s"]), folder.read("a.down"));
    let csv = folder.prints(&["trace", "synth", "--duration", "5s", "--format", "csv", "--bin", "1s"]);
    // A comment, the header, five seconds, the end.
    assert_eq!(csv.lines().count(), 8, "{csv}");
}

#[test]
fn a_built_in_recording_is_what_its_preset_makes() {
    let folder = Folder::new();
    for (preset, seed) in [("evdo-driving", "14"), ("lte-driving", "26"), ("starlink", "1")] {
        let built_in = format!("synthetic:{preset}");
        folder.prints(&["trace", "synth", "--preset", preset, "--seed", seed, "--out", "made"]);
        let figures = |name: &str| {
            let line = folder.prints(&["trace", "info", "--json", name]);
            line.split_once("\"length_s\"").unwrap().1.to_owned()
        };
        assert_eq!(figures(&built_in), figures("made"), "{preset}");
    }
}

#[test]
fn what_cannot_be_made_is_refused() {
    let folder = Folder::new();
    for (arguments, part) in [
        (["--mean-snr", "-99dB"].as_slice(), "-99 dB the user never has a rate"),
        (&["--doppler", "fast"], "such as 2.3Hz"),
        (&["--scheduler", "fair"], "scheduler"),
        (&["--duration", "1us"], "duration"),
        (&["--preset", "starlink", "--users", "4"], "--users: the preset starlink is no cell"),
        (&["--preset", "starlink", "--format", "mahimahi"], "--format mahimahi"),
        (&["--duration", "100000s"], "at most"),
        (&["--beside", "case.toml"], "--out"),
    ] {
        let ended = folder.run(&[["trace", "synth"].as_slice(), arguments].concat());
        assert_eq!(ended.status, 2, "{arguments:?}: {}", ended.err);
        assert!(ended.err.contains(part), "{arguments:?}: {}", ended.err);
    }
}
