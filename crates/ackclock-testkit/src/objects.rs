//! Comparison of committed BPF objects with their source.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Compiler whose objects are committed, as in the scripts `build.sh`.
const COMPILER: &str = "clang version 14.0.6";

/// Checks that the objects in the folder `bpf` of a crate are those that its `build.sh` makes of the C source `NAME.bpf.c`.
/// Without the compiler, the check is skipped and says so.
///
/// # Panics
/// Panics if an object differs, or if the script fails.
#[allow(clippy::print_stdout, clippy::unwrap_used, reason = "only tests call this")]
pub fn objects_are_current(crate_folder: &str, name: &str) {
    let version = |program: &str| Command::new(program).arg("--version").output().ok();
    let compiler =
        version("clang-14").filter(|said| String::from_utf8_lossy(&said.stdout).contains(COMPILER));
    if compiler.is_none() || version("llvm-strip-14").is_none() {
        println!("skipped: there is no {COMPILER} with llvm-strip-14");
        return;
    }
    let folder = Path::new(crate_folder).join("bpf");
    let made = env::temp_dir().join(format!("ackclock-{name}-{}", std::process::id()));
    fs::create_dir(&made).unwrap();
    let status = Command::new("sh").arg(folder.join("build.sh")).arg(&made).status().unwrap();
    assert!(status.success());
    for object in ["el", "eb"].map(|order| format!("{name}.bpf{order}.o")) {
        let (new, committed) =
            (fs::read(made.join(&object)).unwrap(), fs::read(folder.join(&object)).unwrap());
        assert!(new == committed, "{object} is not what build.sh makes of {name}.bpf.c");
    }
    fs::remove_dir_all(made).unwrap();
}
