//! The committed BPF objects are what the C says.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Compiler whose objects are committed, as in `build.sh`.
const COMPILER: &str = "clang version 14.0.6";

#[test]
fn the_committed_objects_are_compiled_from_the_committed_source() {
    let version = |program: &str| Command::new(program).arg("--version").output().ok();
    let compiler =
        version("clang-14").filter(|said| String::from_utf8_lossy(&said.stdout).contains(COMPILER));
    if compiler.is_none() || version("llvm-strip-14").is_none() {
        println!("skipped: there is no {COMPILER} with llvm-strip-14");
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
    let made = env::temp_dir().join(format!("ackclock-objects-{}", std::process::id()));
    fs::create_dir(&made).unwrap();
    let status = Command::new("sh").arg(folder.join("build.sh")).arg(&made).status().unwrap();
    assert!(status.success());
    for object in ["clip.bpfel.o", "clip.bpfeb.o"] {
        let (new, committed) = (fs::read(made.join(object)).unwrap(), fs::read(folder.join(object)).unwrap());
        assert!(new == committed, "{object} is not what build.sh makes of clip.bpf.c");
    }
    fs::remove_dir_all(made).unwrap();
}
