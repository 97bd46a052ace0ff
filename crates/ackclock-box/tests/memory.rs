//! Memory of a running box: a scan takes next to none, and many connections take little.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{env, fs, process, thread};

use ackclock_box::clip::{Clip, Pins};
use ackclock_box::config::STALE;
use ackclock_box::daemon::{Daemon, Options};
use ackclock_box::maps::Counts;
use ackclock_link::Side;
use ackclock_testkit::cases;
use aya::programs::{TestRun, TestRunOptions};

use crate::frames::{ACK, BARE_ACK, SYN, Tcp, run};
use crate::inside::{inside, maps, resident};
use crate::subscribers::policy;

/// A box with its process's loop in a thread, on the loopback device, and the programs that see the frames of the
/// tests.
fn with_daemon(then: impl FnOnce(&mut Clip)) {
    let folder = env::temp_dir().join(format!("ackclock-memory-{}", process::id()));
    fs::create_dir(&folder).unwrap();
    let options = Options {
        interface: "lo".to_owned(),
        file: None,
        act: true,
        stale: STALE,
        act_for: None,
        folder: folder.clone(),
    };
    let mut daemon = Daemon::start(options, policy("")).unwrap();
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            daemon.run(|| ends.load(Ordering::Relaxed), |_| Err(String::new()), |_| {}).unwrap();
            daemon.remove().unwrap();
        });
        let (mut clip, taken_over) = Clip::attach(&Pins::of("lo").unwrap(), Side::Mobile, true).unwrap();
        assert!(taken_over);
        let _ends = EndsOnDrop(&ends);
        then(&mut clip);
    });
    fs::remove_dir_all(folder).unwrap();
}

/// Ends the box, whether the test passes or not.
struct EndsOnDrop<'a>(&'a AtomicBool);

impl Drop for EndsOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[allow(clippy::disallowed_methods, reason = "the box reads its records in real time")]
fn wait(milliseconds: u64) {
    thread::sleep(Duration::from_millis(milliseconds));
}

/// The same packet of other connections.
struct Many {
    from_mobile: bool,
    frame: Vec<u8>,
}

impl Many {
    fn new(packet: Tcp) -> Self {
        Self { from_mobile: packet.from_mobile, frame: packet.frame() }
    }

    /// Passes the packet of connection `port` of the mobile 10.0.`host`.
    fn pass(&mut self, clip: &mut Clip, host: u16, port: u16) {
        let (address, ports) = if self.from_mobile { (28, 34) } else { (32, 36) };
        self.frame[address..address + 2].copy_from_slice(&host.to_be_bytes());
        self.frame[ports..ports + 2].copy_from_slice(&port.to_be_bytes());
        let program = clip.program(if self.from_mobile { "clip_acks" } else { "clip_data" }).unwrap();
        program.test_run(TestRunOptions { data_in: Some(&self.frame), ..TestRunOptions::new() }).unwrap();
    }
}

const ASKS: Tcp = Tcp { flags: SYN, ack: 0, seq: 0, scale: Some(7), ..BARE_ACK };
const ANSWERS: Tcp = Tcp { from_mobile: false, flags: SYN | ACK, ack: 1, ..ASKS };
const DATA: Tcp = Tcp { from_mobile: false, payload: 1000, ..BARE_ACK };

/// Connections that either side asks for; those of the mobiles are answered, and none has data. A million each under
/// `make properties`.
#[test]
fn a_scan_takes_no_memory_and_nothing_of_others() {
    if !inside("memory::a_scan_takes_no_memory_and_nothing_of_others") {
        return;
    }
    with_daemon(|clip| {
        let ports = 1..=10;
        for mobile_port in ports.clone() {
            let of = |packet| Tcp { mobile_port, ..packet };
            for packet in [ASKS, ANSWERS, BARE_ACK, DATA, BARE_ACK].map(of) {
                run(clip, packet.from_mobile, &packet.frame());
            }
        }
        let mut frames = [ASKS, ANSWERS, BARE_ACK, Tcp { from_mobile: false, ..ASKS }].map(Many::new);
        // The box has reported once, and each of its tables was in use.
        wait(1500);
        let before = (resident(), maps());
        let scanned = cases(250_000).min(1_000_000);
        for number in 0..scanned {
            let (host, port) = ((number >> 8) as u16, 1024 + (number & 255) as u16);
            frames[..3].iter_mut().for_each(|frame| frame.pass(clip, host, port));
            frames[3].pass(clip, host, port + 256);
        }
        wait(1500);
        let after = (resident(), maps());
        println!("resident: {} kB more of {} kB", after.0.saturating_sub(before.0) >> 10, before.0 >> 10);
        assert_eq!(before.1, after.1, "memory of the maps");
        assert!(after.0 <= before.0 + (1 << 20), "{before:?} {after:?}");
        let Counts { opened, .. } = clip.counts().unwrap();
        assert_eq!(opened, u64::from(scanned) + 10, "all were seen");
        for mobile_port in ports {
            let of = Tcp { mobile_port, ..BARE_ACK };
            let flow = clip.flow(of.tuple()).unwrap().unwrap();
            assert_eq!((flow.scale, flow.arrived, flow.passed), (7, 1001, 1000));
            let ack = Tcp { ack: 1001, ..of };
            let window = run(clip, true, &ack.frame());
            assert_ne!(window, ack.frame(), "connection {mobile_port} is still regulated");
        }
    });
}

#[test]
fn a_hundred_thousand_connections_take_less_than_a_hundred_megabytes() {
    if !inside("memory::a_hundred_thousand_connections_take_less_than_a_hundred_megabytes") {
        return;
    }
    with_daemon(|clip| {
        let mut frames = [ASKS, ANSWERS, DATA, BARE_ACK].map(Many::new);
        for host in 0..400 {
            for port in 0..250 {
                frames.iter_mut().for_each(|frame| frame.pass(clip, host, 1024 + port));
            }
            // The box keeps up.
            wait(10);
        }
        let counts = clip.counts().unwrap();
        println!(
            "{} kB resident, {} kB of maps, {} records lost",
            resident() >> 10,
            maps() >> 10,
            counts.lost_records
        );
        assert_eq!(counts.in_regulated_bytes, 100_000 * 1000);
        assert!(resident() <= 100_000_000);
    });
}
