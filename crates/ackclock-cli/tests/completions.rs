//! Completion scripts of shells.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::common::Folder;

#[test]
fn each_shell_completes_commands_and_their_options() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = Folder::new().prints(&["completions", shell]);
        for word in ["compare", "regulators", "sweep"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn bash_completes_the_name_of_a_command() {
    let script = Folder::new().prints(&["completions", "bash"]);
    let asks = "\nCOMP_WORDS=(ackclock comp) COMP_CWORD=1\n_ackclock ackclock comp ackclock\necho \"${COMPREPLY[@]}\"\n";
    let mut bash = Command::new("bash").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all((script + asks).as_bytes()).unwrap();
    let output = bash.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "compare completions\n");
}
