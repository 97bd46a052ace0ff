//! What a link needs, in surroundings that lack it: everything that is missing is told together, and what is told gives it.

#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use std::process::Command;

use crate::common::real::{is_installed, last_object};
use crate::common::{Ended, Folder};

/// Runs a script as root of a user namespace in which no other can be made, as seccomp and sysctls arrange it in containers.
/// `$LINK` makes a link, `without CAPABILITIES COMMAND` drops them before.
fn contained(script: &str, folder: &Folder) -> Option<Ended> {
    for program in ["unshare", "capsh", "mount", "mknod", "python3"] {
        if !is_installed(program) {
            eprintln!("skipped: {program} is not installed");
            return None;
        }
    }
    folder.write("filter.py", FILTER);
    let binary = env!("CARGO_BIN_EXE_ackclock");
    let prelude = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces || exit 99; export container=test
         LINK='{binary} link 1mbit 1mbit --closed -- echo made'
         without() {{ capsh --drop=$1 -- -c \"$2\"; }}\n"
    );
    let flags = ["--user", "--map-root-user", "--mount", "--net", "sh", "-c"];
    let mut command = Command::new("unshare");
    command.args(flags).arg(prelude + script).current_dir(folder.path("."));
    let ended = Ended::from(command.output().unwrap());
    if ended.status == 99 || ended.err.starts_with("unshare: ") {
        eprintln!("skipped: {}", ended.err.trim());
        return None;
    }
    Some(ended)
}

/// Refuses system calls with an error and becomes a command: mounts, as AppArmor (13) or a filter of system calls (1) does;
/// mounts of a /proc, as a kernel does where parts of /proc are hidden (16); the firewall, as a kernel without it does (93).
const FILTER: &str = r#"
import ctypes, os, platform, struct, sys
MOUNT, SOCKET = {"x86_64": (165, 41), "aarch64": (40, 198)}[platform.machine()]
end = [(0x06, 0, 0, 0x00050000 | int(sys.argv[1])), (0x06, 0, 0, 0x7FFF0000)]
def calls(number, argument, value):
    return [(0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 16 + 8 * argument), (0x15, 0, 1, value)]
# The flags of the mount are those of /proc; the protocol of the socket is NETLINK_NETFILTER.
every_mount = [(0x20, 0, 0, 0), (0x15, 0, 1, MOUNT)]
steps = {"16": calls(MOUNT, 3, 14), "93": calls(SOCKET, 2, 12)}.get(sys.argv[1], every_mount) + end
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
os.execvp(sys.argv[2], sys.argv[2:])
"#;

const NO_DEVICE: &str = "mount -t tmpfs none /dev/net";

#[test]
fn everything_that_is_missing_is_told_together() {
    let folder = Folder::new();
    let script = format!("{NO_DEVICE}; without cap_sys_admin,cap_net_admin \"$LINK\"");
    let Some(ended) = contained(&script, &folder) else { return };
    assert_eq!(ended.status, 1, "{}", ended.err);
    let expected = "ackclock: a link needs 3 things that are missing here:\n  \
        creating namespaces: No space left on device; start the container with --cap-add SYS_ADMIN\n  \
        creating a network device: Operation not permitted; start the container with --cap-add NET_ADMIN\n  \
        opening /dev/net/tun: No such file or directory; start the container with --device /dev/net/tun; it needs the driver on \
        the host: sudo modprobe tun\n";
    assert_eq!(ended.err, expected);
}

#[test]
fn what_is_told_gives_what_is_missing() {
    let folder = Folder::new();
    for (lacking, told, given) in [
        ("without cap_sys_admin \"$LINK\"", "--cap-add SYS_ADMIN", "without cap_net_raw \"$LINK\""),
        ("without cap_net_admin \"$LINK\"", "--cap-add NET_ADMIN", "without cap_net_raw \"$LINK\""),
        // A device file cannot be made in a user namespace, but shown again.
        (
            "mount --bind /dev/net/tun tun; mount -t tmpfs none /dev/net; $LINK",
            "--device /dev/net/tun",
            "mount --bind /dev/net/tun tun; mount -t tmpfs none /dev/net; touch /dev/net/tun; mount --bind tun /dev/net/tun; $LINK",
        ),
        ("exec python3 filter.py 13 $LINK", "--security-opt apparmor=unconfined", "exec $LINK"),
        ("exec python3 filter.py 1 $LINK", "--security-opt seccomp=unconfined", "exec $LINK"),
    ] {
        folder.write("tun", "");
        let Some(without) = contained(lacking, &folder) else { return };
        assert_eq!(without.status, 1, "{lacking}: {}", without.err);
        assert!(
            without.err.contains(&format!("; start the container with {told}")),
            "{lacking}: {}",
            without.err
        );
        assert_eq!(without.err.lines().count(), 1, "{lacking}: {}", without.err);
        let with = contained(given, &folder).unwrap();
        assert_eq!((with.status, with.out.as_str()), (0, "made\n"), "{given}: {}", with.err);
    }
}

#[test]
fn a_check_tells_each_need_and_runs_nothing() {
    let folder = Folder::new();
    let check = format!("{} link --check", env!("CARGO_BIN_EXE_ackclock"));
    let Some(ended) = contained(&check, &folder) else { return };
    let ok: String = NEEDS.iter().map(|need| format!("{need}: ok\n")).collect();
    assert_eq!((ended.status, ended.out), (0, ok), "{}", ended.err);
    let Some(ended) = contained(&format!("without cap_net_admin '{check}'"), &folder) else { return };
    assert_eq!((ended.status, ended.err.as_str()), (1, ""));
    assert!(ended.out.contains("--cap-add NET_ADMIN\n"), "{}", ended.out);
}

const NEEDS: [&str; 6] = [
    "creating namespaces",
    "creating a network device",
    "opening /dev/net/tun",
    "keeping mounts to the link",
    "translating addresses by nftables",
    "writing to /proc/sys/net",
];

/// A read-only /proc/sys as in containers, where no other /proc may be mounted.
const READ_ONLY: &str =
    "mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; exec python3 filter.py 16";

#[test]
fn each_missing_need_has_its_own_remedy_and_the_others_are_met() {
    let folder = Folder::new();
    let check = format!("{} link --check --json", env!("CARGO_BIN_EXE_ackclock"));
    for (script, need, remedy) in [
        (format!("without cap_sys_admin '{check}'"), 0, "start the container with --cap-add SYS_ADMIN"),
        (format!("without cap_net_admin '{check}'"), 1, "start the container with --cap-add NET_ADMIN"),
        (format!("{NO_DEVICE}; {check}"), 2, "start the container with --device /dev/net/tun; it needs"),
        (format!("exec python3 filter.py 1 {check}"), 3, "start the container with --security-opt seccomp="),
        (
            format!("exec python3 filter.py 93 {check}"),
            4,
            "on the host, a kernel from 5.12 on with nf_tables",
        ),
        (format!("{READ_ONLY} {check}"), 5, "start the container with --security-opt systempaths="),
    ] {
        let Some(ended) = contained(&script, &folder) else { return };
        let answer = last_object(&ended.out);
        assert_eq!((ended.status, &answer["ok"]), (1, &false.into()), "{script}: {}", ended.out);
        for (number, name) in NEEDS.iter().enumerate() {
            let told = &answer["needs"][number];
            assert_eq!(told["need"], *name);
            if number == need {
                assert!(
                    told["remedy"].as_str().is_some_and(|text| text.starts_with(remedy)),
                    "{script}: {told}"
                );
                assert!(told["why"].is_string(), "{told}");
            } else {
                assert_eq!(told["ok"], true, "{script}: {told}");
            }
        }
    }
}

#[test]
fn a_user_is_told_what_the_machine_gives_to_users() {
    if !["setpriv", "unshare"].iter().all(|program| is_installed(program)) {
        return eprintln!("skipped: setpriv or unshare is not installed");
    }
    let user = format!(
        "setpriv --reuid 65534 --regid 65534 --clear-groups {} link --check",
        env!("CARGO_BIN_EXE_ackclock")
    );
    let run = |script: &str| Ended::from(Command::new("sh").args(["-c", script]).output().unwrap());
    let check = run(&user);
    if check.out.is_empty() {
        return eprintln!("skipped: {}", check.err.trim());
    }
    let link = run(&user.replace("--check", "1mbit 1mbit --closed -- true"));
    assert_eq!(check.status == 0, link.status == 0, "{}{}", check.out, link.err);
    assert_eq!(check.out.lines().count(), NEEDS.len(), "{}", check.out);
}

#[test]
fn a_check_runs_no_link() {
    let folder = Folder::new();
    for words in
        [&["--check", "1mbit", "1mbit"][..], &["--check", "--delay", "5ms"], &["--profile", "3g", "--check"]]
    {
        let message = folder.complains(2, &[&["link"][..], words].concat());
        assert!(message.contains("link --check runs no link; leave `"), "{message}");
    }
}
