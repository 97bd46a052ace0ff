//! Tests that need a network of their own run in a process of their own, in namespaces.

use std::env;
use std::fs;
use std::process::Command;

use ackclock_box::clip::Clip;

const WITHIN: &str = "ACKCLOCK_INSIDE";
const SCRIPT: &str =
    "mount -t sysfs sysfs /sys && mount -t bpf -o mode=1777 bpf /sys/fs/bpf && ip link set lo up || exit 99
exec timeout 300 \"$0\" --exact \"$1\" --nocapture";

/// Whether this is the process inside. If it is not, runs the test of this name there, or says why it is skipped.
pub(crate) fn inside(name: &str) -> bool {
    if env::var_os(WITHIN).is_some() {
        return true;
    }
    if let Err(error) = Clip::load() {
        println!("skipped: no BPF program can be loaded here: {error}");
        return false;
    }
    let own = env::current_exe().unwrap();
    let command = ["--net", "--mount", "sh", "-c", SCRIPT];
    let ended = Command::new("unshare").args(command).arg(own).arg(name).env(WITHIN, "yes").output();
    let output = match ended {
        Ok(output) if output.status.code() == Some(99) => {
            println!("skipped: namespaces are not allowed here: {}", String::from_utf8_lossy(&output.stderr));
            return false;
        }
        Ok(output) => output,
        Err(error) => {
            println!("skipped: unshare: {error}");
            return false;
        }
    };
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    print!("{said}");
    false
}

/// Memory of this process that is in RAM, bytes.
pub(crate) fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    1024 * line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
}

/// Memory of the kernel's maps that this process has open, each once, bytes.
pub(crate) fn maps() -> u64 {
    let mut known = std::collections::BTreeMap::new();
    for file in fs::read_dir("/proc/self/fdinfo").unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap_or_default();
        let value = |key: &str| {
            let line = text.lines().find(|line| line.starts_with(key))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        };
        if let (Some(map), Some(bytes)) = (value("map_id:"), value("memlock:")) {
            known.insert(map, bytes);
        }
    }
    known.values().sum()
}
