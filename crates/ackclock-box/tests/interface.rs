//! An interface that is removed and created again while a box runs.

use std::net::UdpSocket;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, fs, process, thread};

use ackclock_box::clip::Pins;
use ackclock_box::config::STALE;
use ackclock_box::daemon::{Daemon, Options};

use crate::inside::inside;
use crate::subscribers::policy;

fn ip(arguments: &str) {
    let ended = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(ended.status.success(), "ip {arguments}: {ended:?}");
}

fn create() {
    ip("link add radio0 type veth peer name other0");
}

fn remove() {
    ip("link delete radio0");
}

/// Sends datagrams out of the interface.
fn send() {
    ["link set radio0 up", "link set other0 up", "address add 10.78.0.1/24 dev radio0"]
        .into_iter()
        .for_each(ip);
    let socket = UdpSocket::bind("10.78.0.1:0").unwrap();
    socket.set_broadcast(true).unwrap();
    (0..100).for_each(|_| assert_eq!(socket.send_to(&[0; 1400], "10.78.0.255:9").unwrap(), 1400));
}

/// Bytes that left through the interface since the program was attached.
fn sent() -> u64 {
    Pins::of("radio0").unwrap().counts().unwrap().out_bytes
}

/// Runs a box that acts on `radio0`; `ends` is called at each poll.
fn run(ends: impl FnMut() -> bool) {
    let folder = env::temp_dir().join(format!("ackclock-interface-{}", process::id()));
    fs::create_dir(&folder).unwrap();
    let options = Options {
        interface: "radio0".to_owned(),
        file: None,
        act: true,
        stale: STALE,
        act_for: None,
        folder: folder.clone(),
    };
    create();
    let mut daemon = Daemon::start(options, policy("")).unwrap();
    daemon.run(ends, |_| Err(String::new()), |_| {}).unwrap();
    assert_eq!(Pins::of("radio0").unwrap().knobs().unwrap().act, 1);
    daemon.remove().unwrap();
    fs::remove_dir_all(folder).unwrap();
}

/// The kernel reports the new interface, so that the box need not look for it: the very next poll attaches the program.
#[test]
fn a_recreated_interface_has_the_program_after_one_poll() {
    if !inside("interface::a_recreated_interface_has_the_program_after_one_poll") {
        return;
    }
    let mut poll = 0;
    run(|| {
        poll += 1;
        match poll {
            1 => send(),
            2 => {
                assert!(sent() > 140_000);
                remove();
            }
            3 => create(),
            4 => {
                assert_eq!(sent(), 0, "the program is attached with new maps");
                send();
                assert!(sent() > 140_000);
            }
            _ => return true,
        }
        false
    });
}

/// An interface may vanish at any moment, also while the program is being attached.
#[test]
fn a_box_outlives_an_interface_that_comes_and_goes() {
    if !inside("interface::a_box_outlives_an_interface_that_comes_and_goes") {
        return;
    }
    let still = AtomicBool::new(false);
    let flaps = || {
        for _ in 0..50 {
            remove();
            create();
        }
        still.store(true, Ordering::Relaxed);
    };
    thread::scope(|scope| {
        let (mut begun, mut polls) = (false, 0);
        run(|| {
            if !std::mem::replace(&mut begun, true) {
                scope.spawn(flaps);
            }
            polls += u32::from(still.load(Ordering::Relaxed));
            if polls < 2 {
                return false;
            }
            send();
            assert!(sent() > 140_000, "the program is attached");
            true
        });
    });
}

fn pins(interface: &str) -> Result<Pins, String> {
    Pins::of(interface).map_err(|error| error.to_string())
}

fn is_attached(interface: &str) -> bool {
    pins(interface).unwrap().is_attached().unwrap()
}

/// A box belongs to an interface, whatever the interface is called.
#[test]
fn a_renamed_interface_keeps_its_box_and_its_old_name_has_none() {
    if !inside("interface::a_renamed_interface_keeps_its_box_and_its_old_name_has_none") {
        return;
    }
    let mut poll = 0;
    run(|| {
        poll += 1;
        match poll {
            1 => {
                send();
                ip("link set radio0 name wan0");
            }
            2 => {
                assert!(is_attached("wan0") && pins("wan0").unwrap().counts().unwrap().out_bytes > 140_000);
                assert_eq!(pins("radio0").unwrap_err(), "no box runs on `radio0`");
                ip("link add radio0 type veth peer name other1");
            }
            3 => {
                assert!(is_attached("wan0") && !is_attached("radio0"));
                assert!(pins("radio0").unwrap().counts().is_err());
                // The box goes on with the interface of its first name.
                ip("link delete wan0");
            }
            4 => assert!(is_attached("radio0") && pins("wan0").is_err()),
            _ => return true,
        }
        false
    });
}

/// The index of a removed interface may be that of the next one.
#[test]
fn an_interface_recreated_with_its_name_and_index_has_the_program_again() {
    if !inside("interface::an_interface_recreated_with_its_name_and_index_has_the_program_again") {
        return;
    }
    let mut poll = 0;
    run(|| {
        poll += 1;
        if poll == 1 {
            let index = nix::net::if_::if_nametoindex("radio0").unwrap();
            remove();
            ip(&format!("link add radio0 index {index} type veth peer name other0"));
            assert!(!is_attached("radio0"), "the kernel has detached the program");
            return false;
        }
        assert!(is_attached("radio0"));
        send();
        assert!(sent() > 140_000);
        true
    });
}

/// In the other namespace the interface may belong to another box.
#[test]
fn an_interface_that_moves_to_another_namespace_loses_the_program() {
    if !inside("interface::an_interface_that_moves_to_another_namespace_loses_the_program") {
        return;
    }
    let mut other = Command::new("unshare").args(["--net", "sleep", "60"]).spawn().unwrap();
    let pid = other.id();
    let is_elsewhere = || {
        let link = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/net")).unwrap();
        link(&pid.to_string()) != link("self")
    };
    while !is_elsewhere() {
        thread::yield_now();
    }
    let mut poll = 0;
    run(|| {
        poll += 1;
        match poll {
            1 => ip(&format!("link set radio0 netns {pid}")),
            2 => {
                let waiting = pins("radio0").unwrap();
                assert!(!waiting.is_attached().unwrap() && waiting.knobs().unwrap().act == 1);
                let folder = format!("/sys/fs/bpf/ackclock/{}:6", waiting.name());
                assert!(
                    !fs::exists(format!("{folder}/acks-out")).unwrap(),
                    "the pinned link held the program"
                );
                ip("link delete other0");
                create();
            }
            3 => {
                send();
                assert!(is_attached("radio0") && sent() > 140_000);
            }
            _ => return true,
        }
        false
    });
    other.kill().unwrap();
    other.wait().unwrap();
}
