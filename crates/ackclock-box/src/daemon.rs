//! The process beside the program: it learns from records, writes allowances, and reports.

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

/// What a box is to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// The interface towards the radio.
    pub interface: String,
    /// Name of its regulator.
    pub regulator: String,
    /// Whether windows are lowered; otherwise it only measures.
    pub act: bool,
    /// After so long it only measures again, unless it is told to keep on.
    pub act_for: Option<Duration>,
    /// The private run-time folder.
    pub folder: PathBuf,
}

/// An allowance that is older is not used: an open window does no harm, and does not close until it was used.
pub const STALE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(5);
const REPORT_EVERY: Span = Span::from_secs(1);

/// What a box has seen.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// Process of the box.
    pub pid: i32,
    /// The interface.
    pub interface: String,
    /// Name of its regulator.
    pub regulator: String,
    /// Whether windows are lowered.
    pub acting: bool,
    /// Seconds since it began.
    pub running_s: f64,
    /// Bytes from the servers in the last second, bit/s.
    pub rate_bps: f64,
    /// Connections with data in the last ten seconds.
    pub connections: usize,
    /// Estimated wait of a new packet in the queue that is not ours, median since the start, ms.
    pub wait_p50_ms: Option<f64>,
    /// 95th percentile.
    pub wait_p95_ms: Option<f64>,
    /// Share of the bytes from the servers whose windows can be clipped, 0 to 1.
    pub regulated_share: Option<f64>,
    /// Share of QUIC in the bytes from the servers, 0 to 1.
    pub quic_share: Option<f64>,
    /// Share of other UDP, 0 to 1.
    pub udp_share: Option<f64>,
    /// Share of IPsec (ESP), 0 to 1.
    pub esp_share: Option<f64>,
    /// Share of the ACKs for which the law asks for a lower window, 0 to 1.
    pub lower_share: Option<f64>,
}

/// Why a box does not run.
#[derive(Debug, thiserror::Error)]
pub enum BoxError {
    /// Something of the program.
    #[error(transparent)]
    Clip(#[from] ClipError),
    /// The interface.
    #[error("{0}")]
    Interface(String),
    /// Another process has it.
    #[error("process {0} is the box of `{1}` already; `ackclock box stop {1}` ends it")]
    Taken(i32, String),
    /// A file of the run-time folder.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
}

/// Files of a box in the run-time folder.
#[derive(Clone, Debug)]
pub struct Files {
    lock: PathBuf,
    report: PathBuf,
    keep: PathBuf,
}

impl Files {
    /// Those of the box of `interface`.
    pub fn of(folder: &Path, interface: &str) -> Self {
        let file = |end: &str| folder.join(format!("box-{interface}.{end}"));
        Self { lock: file("lock"), report: file("json"), keep: file("keep") }
    }

    /// The process that runs the box, if one does.
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

    /// Takes the box for this process.
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

    /// The last report, if there is one.
    pub fn report(&self) -> Option<String> {
        fs::read_to_string(&self.report).ok()
    }

    fn write(&self, report: &str) -> io::Result<()> {
        let new = self.report.with_extension("new");
        fs::write(&new, report)?;
        fs::rename(new, &self.report)
    }

    /// Lets `--act TIME` go on.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn keep(&self) -> io::Result<()> {
        fs::write(&self.keep, "")
    }

    fn is_kept(&self) -> bool {
        fs::remove_file(&self.keep).is_ok()
    }

    /// Removes them.
    pub fn remove(&self) {
        for file in [&self.report, &self.keep, &self.lock] {
            let _ = fs::remove_file(file);
        }
    }

    /// Ends the process of the box, if one runs; returns it.
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

/// A running box.
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
    /// Attaches the program, or takes over the one that is attached.
    ///
    /// # Errors
    /// If the interface is none, another process has the box, or the kernel refuses the program.
    pub fn start(options: Options, observer: Observer) -> Result<Self, BoxError> {
        let interface = machine::interface(&options.interface).map_err(BoxError::Interface)?;
        let (files, pins) = (Files::of(&options.folder, &options.interface), Pins::of(&options.interface)?);
        let lock = files.take(&options.interface)?;
        let (mut clip, taken_over) = Clip::attach(&pins)?;
        let (begun, act) = (now(), options.act);
        // A bypass outlasts a restart.
        let bypass = pins.knobs()?.bypass;
        let (stale_ns, header) = (STALE.as_nanos() as u64, interface.header);
        let knobs = Knobs { stale_ns, act: act.into(), header, bypass, unused: 0 };
        clip.set(knobs)?;
        let records = clip.records()?;
        let until = options.act_for.map(|time| begun + Span::from_nanos(time.as_nanos() as u64));
        let (counts, allowance) = (clip.counts()?, clip.allowance()?);
        // What an earlier process allowed stays in force until more is known, unless the program has given it up.
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

    /// Whether a program was attached already, by a process that has ended.
    pub const fn has_taken_over(&self) -> bool {
        self.taken_over
    }

    /// Runs until `ends`, and gives each report to `tell`, one a second.
    ///
    /// # Errors
    /// If the kernel refuses an allowance, or a file cannot be written.
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
                // A report of numbers and strings always serialises.
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

    /// An interface that went and came again has no program.
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

    /// Ends the box and leaves nothing: programs, maps and files go.
    ///
    /// # Errors
    /// Names what cannot be removed.
    pub fn remove(self) -> Result<(), BoxError> {
        self.pins.remove()?;
        self.files.remove();
        Ok(())
    }
}
