//! User-space process of a box: it learns from the kernel's records, writes allowances, and publishes reports.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ackclock_core::{Histogram, Span, Time};
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::clip::{Clip, ClipError, Pins};
use crate::machine;
use crate::maps::{Allowance, Counts, Knobs, Record};
use crate::observers::Observer;

/// Settings with which a box is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Network interface on the radio's side.
    pub interface: String,
    /// Name of the box's regulator.
    pub regulator: String,
    /// Whether the box lowers windows; a box that does not lower windows only measures.
    pub act: bool,
    /// Time after which the box stops lowering windows and only measures, unless `keep` is called before.
    pub act_for: Option<Duration>,
    /// Private run-time folder with the box's lock and reports.
    pub folder: PathBuf,
}

/// Maximum age of an allowance that is still applied. An old allowance may apply for seconds without data, because an
/// unused window does no harm.
pub const STALE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(5);
const REPORT_EVERY: Span = Span::from_secs(1);

/// State and measurements of a box.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// Process ID of the box.
    pub pid: i32,
    /// Name of the box's network interface.
    pub interface: String,
    /// Name of the box's regulator.
    pub regulator: String,
    /// Whether the box lowers windows.
    pub acting: bool,
    /// Time since the box started, s.
    pub running_s: f64,
    /// Throughput from the servers over the last second, bit/s.
    pub rate_bps: f64,
    /// Number of connections that carried data in the last ten seconds.
    pub connections: usize,
    /// Median estimated queueing delay of a new packet in the radio's queue, since the start, ms.
    pub wait_p50_ms: Option<f64>,
    /// 95th percentile of the estimated queueing delay in the radio's queue, since the start, ms.
    pub wait_p95_ms: Option<f64>,
    /// Share of the bytes from the servers that belong to connections whose windows can be clipped, 0 to 1.
    pub regulated_share: Option<f64>,
    /// Share of QUIC in the bytes from the servers, 0 to 1.
    pub quic_share: Option<f64>,
    /// Share of UDP other than QUIC in the bytes from the servers, 0 to 1.
    pub udp_share: Option<f64>,
    /// Share of IPsec (ESP) in the bytes from the servers, 0 to 1.
    pub esp_share: Option<f64>,
    /// Share of ACKs for which the window law asks for a lower window, 0 to 1.
    pub lower_share: Option<f64>,
}

/// Error that prevents a box from running.
#[derive(Debug, thiserror::Error)]
pub enum BoxError {
    /// The kernel's BPF program failed.
    #[error(transparent)]
    Clip(#[from] ClipError),
    /// The network interface is missing or unsuitable.
    #[error("{0}")]
    Interface(String),
    /// Another process already runs a box on this interface.
    #[error("process {0} is the box of `{1}` already; `ackclock box stop {1}` ends it")]
    Taken(i32, String),
    /// A file of the run-time folder could not be read or written.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
}

/// Paths of a box's files in the run-time folder.
#[derive(Clone, Debug)]
pub struct Files {
    lock: PathBuf,
    report: PathBuf,
    keep: PathBuf,
}

impl Files {
    /// Returns the paths of the files that belong to the box on `interface`.
    pub fn of(folder: &Path, interface: &str) -> Self {
        let file = |end: &str| folder.join(format!("box-{interface}.{end}"));
        Self { lock: file("lock"), report: file("json"), keep: file("keep") }
    }

    /// Returns the ID of the process that runs the box, or `None` if no process runs it.
    pub fn running(&self) -> Option<i32> {
        let file = File::open(&self.lock).ok()?;
        match Flock::lock(file, FlockArg::LockSharedNonblock) {
            Ok(_) => None,
            Err((mut file, _)) => {
                let mut text = String::new();
                file.read_to_string(&mut text).ok()?;
                text.trim().parse().ok()
            }
        }
    }

    /// Locks the box's run-time files, so that no other process can run a box on `interface`.
    fn take(&self, interface: &str) -> Result<Flock<File>, BoxError> {
        let at = |error| BoxError::File(self.lock.clone(), error);
        let mut open = OpenOptions::new();
        let file = open
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&self.lock)
            .map_err(at)?;
        let Ok(mut locked) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else {
            return Err(BoxError::Taken(self.running().unwrap_or(0), interface.to_owned()));
        };
        locked.set_len(0).map_err(at)?;
        write!(locked, "{}", std::process::id()).map_err(at)?;
        Ok(locked)
    }

    /// Returns the text of the last report, or `None` if no report was written.
    pub fn report(&self) -> Option<String> {
        fs::read_to_string(&self.report).ok()
    }

    fn write(&self, report: &str) -> io::Result<()> {
        let new = self.report.with_extension("new");
        fs::write(&new, report)?;
        fs::rename(new, &self.report)
    }

    /// Asks the box to keep lowering windows after the time given with `--act TIME`.
    ///
    /// # Errors
    /// Fails if the request file cannot be written.
    pub fn keep(&self) -> io::Result<()> {
        fs::write(&self.keep, "")
    }

    fn is_kept(&self) -> bool {
        fs::remove_file(&self.keep).is_ok()
    }

    /// Removes the box's files from the run-time folder.
    pub fn remove(&self) {
        for file in [&self.report, &self.keep, &self.lock] {
            let _ = fs::remove_file(file);
        }
    }

    /// Stops the process that runs the box, and returns its process ID.
    pub fn end(&self) -> Option<i32> {
        let pid = self.running()?;
        kill(Pid::from_raw(pid), Signal::SIGTERM).ok()?;
        for _ in 0..200 {
            if self.running().is_none() {
                return Some(pid);
            }
            pause();
        }
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        Some(pid)
    }
}

#[allow(clippy::disallowed_methods, reason = "real packets are waited for in real time")]
fn pause() {
    std::thread::sleep(POLL);
}

fn now() -> Time {
    let now = clock_gettime(ClockId::Monotonic);
    Time::from_nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// A running box: its options, files, pins and BPF program.
pub struct Daemon {
    options: Options,
    files: Files,
    pins: Pins,
    clip: Clip,
    records: aya::maps::RingBuf<aya::maps::MapData>,
    observer: Observer,
    allowance: Option<Allowance>,
    waits: Histogram,
    index: Option<u32>,
    begun: Time,
    until: Option<Time>,
    knobs: Knobs,
    reported: (Time, Counts),
    taken_over: bool,
    _lock: Flock<File>,
}

impl Daemon {
    /// Attaches the BPF program, or takes over the program that an earlier process attached.
    ///
    /// # Errors
    /// Fails if the interface does not exist, another process owns the box, or the kernel refuses the program.
    pub fn start(options: Options, observer: Observer) -> Result<Self, BoxError> {
        let interface = machine::interface(&options.interface).map_err(BoxError::Interface)?;
        let (files, pins) = (Files::of(&options.folder, &options.interface), Pins::of(&options.interface)?);
        let lock = files.take(&options.interface)?;
        let (mut clip, taken_over) = Clip::attach(&pins)?;
        let (begun, act) = (now(), options.act);
        // The bypass setting of an earlier process stays in force.
        let bypass = pins.knobs()?.bypass;
        let (stale_ns, header) = (STALE.as_nanos() as u64, interface.header);
        let knobs = Knobs { stale_ns, act: act.into(), header, bypass, unused: 0 };
        clip.set(knobs)?;
        let records = clip.records()?;
        let until = options.act_for.map(|time| begun + Span::from_nanos(time.as_nanos() as u64));
        let (counts, allowance) = (clip.counts()?, clip.allowance()?);
        // A recent allowance of an earlier process stays in force until this process computes an allowance.
        let is_fresh = allowance.at_ns > 0 && begun.as_nanos() - allowance.at_ns < stale_ns;
        Ok(Self {
            observer,
            allowance: is_fresh.then_some(allowance),
            index: machine::index(&options.interface),
            waits: Histogram::default(),
            knobs,
            reported: (begun, counts),
            options,
            files,
            pins,
            clip,
            records,
            begun,
            until,
            taken_over,
            _lock: lock,
        })
    }

    /// Returns whether this process took over a BPF program that an earlier process had attached.
    pub const fn has_taken_over(&self) -> bool {
        self.taken_over
    }

    /// Runs the box until `ends` returns true, and passes one report per second to `tell`.
    ///
    /// # Errors
    /// Fails if the kernel refuses an allowance, or a file cannot be written.
    pub fn run(
        &mut self,
        mut ends: impl FnMut() -> bool,
        mut tell: impl FnMut(&Report),
    ) -> Result<(), BoxError> {
        while !ends() {
            pause();
            let counts = self.clip.counts()?;
            self.observer.note_others(counts.in_bytes.saturating_sub(counts.in_flow_bytes));
            while let Some(bytes) = self.records.next() {
                if let Some(record) = Record::read(&bytes) {
                    self.observer.learn(&record);
                }
            }
            let now = now();
            self.allow(now)?;
            if now.since(self.reported.0) >= REPORT_EVERY {
                self.look_after_interface()?;
                self.look_after_time(now)?;
                let report = self.report(now)?;
                // Serialising a report cannot fail, because a report contains only numbers and strings.
                let text = serde_json::to_string(&report).unwrap_or_default();
                self.files.write(&text).map_err(|error| BoxError::File(self.files.report.clone(), error))?;
                tell(&report);
            }
        }
        Ok(())
    }

    fn allow(&mut self, now: Time) -> Result<(), BoxError> {
        if let Some(wait) = self.observer.wait(now) {
            self.waits.record(wait);
        }
        self.allowance = self.observer.allowed(now).or(self.allowance);
        if let Some(allowance) = self.allowance {
            self.clip.allow(Allowance { at_ns: now.as_nanos(), ..allowance })?;
        }
        Ok(())
    }

    /// Attaches the BPF program again if the interface was removed and recreated.
    fn look_after_interface(&mut self) -> Result<(), BoxError> {
        let index = machine::index(&self.options.interface);
        if index != self.index {
            self.index = index;
            if index.is_some() {
                let interface = machine::interface(&self.options.interface).map_err(BoxError::Interface)?;
                (self.clip, _) = Clip::attach(&self.pins)?;
                self.knobs.header = interface.header;
                self.clip.set(self.knobs)?;
                self.records = self.clip.records()?;
            }
        }
        Ok(())
    }

    fn look_after_time(&mut self, now: Time) -> Result<(), BoxError> {
        if self.files.is_kept() {
            self.until = None;
        }
        if self.until.is_some_and(|until| now >= until) {
            self.until = None;
            self.pins.turn(|knobs| knobs.act = 0)?;
        }
        self.knobs = self.pins.knobs()?;
        Ok(())
    }

    fn report(&mut self, now: Time) -> Result<Report, BoxError> {
        let counts = self.clip.counts()?;
        let (last, before) = std::mem::replace(&mut self.reported, (now, counts));
        let bytes = counts.in_bytes.saturating_sub(before.in_bytes);
        let share = |part: u64, all: u64| (all > 0).then(|| part as f64 / all as f64);
        let quantile = |q| self.waits.quantile(q).map(|wait| wait.as_millis_f64());
        Ok(Report {
            pid: std::process::id() as i32,
            interface: self.options.interface.clone(),
            regulator: self.options.regulator.clone(),
            acting: self.knobs.acts(),
            running_s: now.since(self.begun).as_secs_f64(),
            rate_bps: bytes as f64 * 8.0 / now.since(last).as_secs_f64(),
            connections: self.observer.connections(),
            wait_p50_ms: quantile(0.5),
            wait_p95_ms: quantile(0.95),
            regulated_share: share(counts.in_flow_bytes, counts.in_bytes),
            quic_share: share(counts.in_quic_bytes, counts.in_bytes),
            udp_share: share(counts.in_udp_bytes, counts.in_bytes),
            esp_share: share(counts.in_esp_bytes, counts.in_bytes),
            lower_share: share(counts.lower, counts.acks),
        })
    }

    /// Stops the box and removes its programs, maps and files.
    ///
    /// # Errors
    /// Fails with the name of the file that cannot be removed.
    pub fn remove(self) -> Result<(), BoxError> {
        self.pins.remove()?;
        self.files.remove();
        Ok(())
    }
}
