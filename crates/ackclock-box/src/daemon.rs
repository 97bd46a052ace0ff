//! User-space process of a box: it learns from the kernel's records, writes allowances, and publishes reports.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ackclock_core::{Span, Time, name_of};
use ackclock_link::Side;
use rustix::time::{ClockId, clock_gettime};

use crate::clip::{Clip, Pins};
use crate::config::Policy;
use crate::devices::DeviceEvents;
use crate::error::{BoxError, ClipError};
use crate::files::{Files, pause};
use crate::maps::{Counts, Knobs, Record};
use crate::recent::{RecentDelays, RecentSums};
use crate::report::Report;
use crate::shares::Shares;
use crate::subscribers::Subscribers;
use crate::summary::Day;
use crate::{interface, machine};

/// Settings with which a box is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Network interface on the radio's side.
    pub interface: String,
    /// Configuration file of the box, if the box was started with a file.
    pub file: Option<PathBuf>,
    /// Whether the box lowers windows; a box that does not lower windows only measures.
    pub act: bool,
    /// Maximum age of an allowance that is still applied.
    pub stale: Span,
    /// Time after which the box stops lowering windows and only measures, unless `keep` is called before.
    pub act_for: Option<Duration>,
    /// Private run-time folder with the box's lock and reports.
    pub folder: PathBuf,
}

/// Settings of a running box that a changed configuration file may change.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Subscribers and their rules.
    pub policy: Policy,
    /// Whether the box lowers windows.
    pub act: bool,
    /// Maximum age of an allowance that is still applied.
    pub stale: Span,
}

/// What a running box tells its caller.
#[derive(Clone, Copy, Debug)]
pub enum Said<'a> {
    /// Report of the last second, and the counters since the box was attached.
    Report(&'a Report, &'a Counts),
    /// Nearly all TCP data came from the mobiles, as seen from this side of the radio, for the first time.
    DataFromMobiles(Side),
    /// Summary of the last day.
    Day(&'a str),
    /// A changed configuration file was loaded, or was refused for this reason.
    Loaded(Result<(), &'a str>),
    /// Reports can be written again, or cannot be written for this reason.
    Reporting(Result<(), &'a BoxError>),
}

const REPORT_EVERY: Span = Span::from_secs(1);
/// Number of reports over which the direction of the data is observed.
const LATELY: usize = 4;
/// Number of subscribers in a report.
const SHOWN: usize = 100;

fn now() -> Time {
    let now = clock_gettime(ClockId::Monotonic);
    Time::from_nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// Keeps the recent allowances of an earlier process in force until this process computes allowances. Removes the other
/// subscribers from the kernel.
fn inherit(clip: &mut Clip, subscribers: &mut Subscribers, now: Time, stale: Span) -> Result<(), ClipError> {
    for (key, allowance) in clip.allowances()? {
        let is_fresh = now.since(Time::from_nanos(allowance.at_ns)) < stale;
        if !is_fresh || !subscribers.inherit(now, key, allowance) {
            clip.dismiss(key)?;
        }
    }
    for (key, _) in clip.totals()? {
        if !subscribers.lists(key) {
            clip.dismiss(key)?;
        }
    }
    Ok(())
}

/// Pins, run-time files and lock of the box that `options` start: those of the box that is attached to the interface, or
/// else new ones.
fn own(options: &Options) -> Result<(Pins, Files, File), BoxError> {
    let of = |pins: &Pins| Files::of(&options.folder, &pins.name());
    let mut pins = Pins::of(&options.interface)?;
    if !pins.is_attached()? {
        // A process that waits for the interface to be recreated keeps its box.
        if let Some(pid) = of(&pins).running() {
            return Err(BoxError::Taken(pid, options.interface.clone()));
        }
        of(&pins).remove();
        pins = Pins::new(&options.interface)?;
    }
    let files = of(&pins);
    let lock = files.take(&options.interface)?;
    Ok((pins, files, lock))
}

/// A running box: its options, files, pins and BPF program.
pub struct Daemon {
    options: Options,
    files: Files,
    pins: Pins,
    clip: Clip,
    records: aya::maps::RingBuf<aya::maps::MapData>,
    subscribers: Subscribers,
    waits: RecentDelays,
    sums: RecentSums<Counts>,
    day: Day,
    told_day: Option<String>,
    refused_file: Option<String>,
    devices: DeviceEvents,
    /// Whether the BPF program is attached to the interface; `false` while the interface does not exist.
    attached: bool,
    /// Whether the last report could be written.
    reporting: bool,
    begun: Time,
    until: Option<Time>,
    knobs: Knobs,
    reported: Time,
    /// Counters of the last reports, the newest last.
    lately: VecDeque<Counts>,
    /// Whether [`Said::DataFromMobiles`] was told.
    told_direction: bool,
    taken_over: bool,
    lock: File,
}

impl Daemon {
    /// Attaches the BPF program, or takes over the program that an earlier process attached.
    ///
    /// # Errors
    /// Fails if the interface does not exist, another process owns the box, or the kernel refuses the program.
    pub fn start(options: Options, policy: Policy) -> Result<Self, BoxError> {
        let devices = DeviceEvents::open().map_err(BoxError::Unwatched)?;
        let interface = machine::interface(&options.interface)?;
        let (pins, files, lock) = own(&options)?;
        let (mut clip, taken_over) = Clip::attach(&pins, policy.side(), policy.has_networks())?;
        clip.cover(&policy.prefixes())?;
        let (begun, act) = (now(), options.act);
        // The bypass setting of an earlier process stays in force.
        let (stale_ns, header, bypass) = (options.stale.as_nanos(), interface.header, pins.knobs()?.bypass);
        let knobs = Knobs { stale_ns, act: act.into(), header, bypass, unused: 0 };
        clip.set(knobs)?;
        let until = options.act_for.map(|time| begun + Span::from_nanos(time.as_nanos() as u64));
        let (counts, mut subscribers) = (clip.counts()?, Subscribers::new(policy));
        inherit(&mut clip, &mut subscribers, begun, options.stale)?;
        Ok(Self {
            subscribers,
            devices,
            attached: true,
            reporting: true,
            waits: RecentDelays::default(),
            sums: RecentSums::new(begun, counts),
            day: Day::new(begun, counts),
            told_day: None,
            refused_file: None,
            knobs,
            reported: begun,
            lately: VecDeque::from([counts]),
            told_direction: false,
            options,
            files,
            pins,
            records: clip.records()?,
            clip,
            begun,
            until,
            taken_over,
            lock,
        })
    }

    /// Returns whether this process took over a BPF program that an earlier process had attached.
    pub const fn has_taken_over(&self) -> bool {
        self.taken_over
    }

    /// Runs the box until `ends` returns true, and passes one report per second to `tell`. The function `load` reads a
    /// changed configuration file; a file that `load` refuses changes nothing.
    ///
    /// # Errors
    /// Fails if the kernel refuses an allowance, or a file cannot be written.
    pub fn run(
        &mut self,
        mut ends: impl FnMut() -> bool,
        load: impl Fn(&Path) -> Result<Settings, String>,
        mut tell: impl FnMut(Said<'_>),
    ) -> Result<(), BoxError> {
        while !ends() {
            pause();
            self.look_after_interface()?;
            self.learn()?;
            let now = now();
            self.allow(now)?;
            if now.since(self.reported) >= REPORT_EVERY {
                self.look_after_time(now)?;
                self.look_after_file(&load, &mut tell)?;
                self.look_after_subscribers(now)?;
                let counts = self.clip.counts()?;
                if let Some(day) = self.day.turn(now, counts, self.knobs.acts()) {
                    tell(Said::Day(self.told_day.insert(day)));
                }
                let report = self.report(now, counts);
                // Serialising a report cannot fail, because a report contains only numbers and strings.
                let text = serde_json::to_string(&report).unwrap_or_default();
                let written = self.files.write(&text);
                if written.is_ok() != std::mem::replace(&mut self.reporting, written.is_ok()) {
                    tell(Said::Reporting(written.as_ref().copied()));
                }
                tell(Said::Report(&report, &counts));
                if report.data_from_mobiles && !std::mem::replace(&mut self.told_direction, true) {
                    tell(Said::DataFromMobiles(self.subscribers.policy().side()));
                }
            }
        }
        Ok(())
    }

    /// Reads the records of the kernel.
    fn learn(&mut self) -> Result<(), BoxError> {
        while let Some(bytes) = self.records.next() {
            let newcomer = Record::read(&bytes).and_then(|record| self.subscribers.learn(&record));
            drop(bytes);
            if let Some(newcomer) = newcomer {
                self.clip.admit(newcomer)?;
            }
        }
        Ok(())
    }

    fn allow(&mut self, now: Time) -> Result<(), BoxError> {
        let (clip, refresh) = (&mut self.clip, Span::from_nanos(self.knobs.stale_ns / 4));
        Ok(self.subscribers.update(now, refresh, |key, allowance| clip.allow(key, allowance))?)
    }

    /// Forgets quiet subscribers, and reads how much traffic the others had.
    fn look_after_subscribers(&mut self, now: Time) -> Result<(), BoxError> {
        for key in self.subscribers.sweep(now) {
            self.clip.dismiss(key)?;
        }
        for key in self.subscribers.note_unlisted(now, &self.clip.unlisted()?) {
            self.clip.admit(key)?;
        }
        self.subscribers.note_totals(now, &self.clip.totals()?);
        let waits = self.subscribers.take_waits();
        self.waits.turn(&waits);
        self.day.waits.merge(&waits);
        Ok(())
    }

    /// Loads a changed configuration file if this is requested.
    fn look_after_file(
        &mut self,
        load: impl Fn(&Path) -> Result<Settings, String>,
        mut tell: impl FnMut(Said<'_>),
    ) -> Result<(), BoxError> {
        let Some(file) = self.files.reload_request() else { return Ok(()) };
        let loaded = load(&file).map(|settings| (file, settings));
        self.refused_file = match loaded {
            Ok((file, settings)) => {
                self.options.file = Some(file);
                self.apply(settings)?
            }
            Err(error) => Some(error),
        };
        self.files.end_reload();
        tell(Said::Loaded(self.refused_file.as_deref().map_or(Ok(()), Err)));
        Ok(())
    }

    /// Applies changed settings. Returns the reason why the settings cannot be applied to a running box.
    fn apply(&mut self, Settings { policy, act, stale }: Settings) -> Result<Option<String>, BoxError> {
        if policy.side() != self.subscribers.policy().side() {
            return Ok(Some("box.side: a running box cannot change its side".to_owned()));
        }
        let networks = policy.prefixes();
        match self.subscribers.reload(policy) {
            Ok(gone) => gone.into_iter().try_for_each(|key| self.clip.dismiss(key))?,
            Err(error) => return Ok(Some(error.to_string())),
        }
        self.clip.cover(&networks)?;
        (self.options.act, self.options.stale) = (act, stale);
        self.pins.turn(|knobs| (knobs.act, knobs.stale_ns) = (act.into(), stale.as_nanos()))?;
        self.knobs = self.pins.knobs()?;
        Ok(None)
    }

    /// Attaches the BPF program again if the interface was removed and recreated. The kernel reports each such change. An
    /// interface that gets another name keeps its box.
    fn look_after_interface(&mut self) -> Result<(), BoxError> {
        if !self.devices.any() || self.pins.is_attached()? {
            return Ok(());
        }
        let index = interface::index(&self.options.interface);
        // An interface that moved to another namespace keeps the program until the program is detached.
        self.pins.detach()?;
        self.attached = false;
        let attached = if index.is_some() { self.attach_again() } else { Ok(()) };
        if attached.is_err() && interface::index(&self.options.interface) != index {
            // The interface was removed meanwhile. The maps may be new; the settings stay in force.
            let knobs = self.knobs;
            return Ok(self.pins.turn(|new| *new = knobs)?);
        }
        attached
    }

    fn attach_again(&mut self) -> Result<(), BoxError> {
        let interface = machine::interface(&self.options.interface)?;
        let policy = self.subscribers.policy().clone();
        let pins = Pins::new(&self.options.interface)?;
        let files = Files::of(&self.options.folder, &pins.name());
        if pins.name() != self.pins.name() {
            let lock = files.take(&self.options.interface)?;
            self.files.remove();
            (self.files, self.lock) = (files, lock);
        }
        self.pins = pins;
        (self.clip, _) = Clip::attach(&self.pins, policy.side(), policy.has_networks())?;
        self.clip.cover(&policy.prefixes())?;
        // The kernel has forgotten all connections, so the subscribers are listed anew.
        self.subscribers = Subscribers::new(policy);
        self.knobs.header = interface.header;
        self.clip.set(self.knobs)?;
        self.records = self.clip.records()?;
        self.sums = RecentSums::new(self.reported, Counts::default());
        self.attached = true;
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

    fn report(&mut self, now: Time, counts: Counts) -> Report {
        self.reported = now;
        let (begin, before) = self.sums.turn(now, counts);
        if self.lately.len() > LATELY {
            self.lately.pop_front();
        }
        let lately = self.lately.front().map_or(Counts::default(), |before| counts.since(before));
        self.lately.push_back(counts);
        let (window_s, counts) = (now.since(begin).as_secs_f64(), counts.since(&before));
        let waits = self.waits.all();
        let quantile = |q| waits.quantile(q).map(|wait| wait.as_millis_f64());
        Report {
            pid: std::process::id() as i32,
            interface: interface::name(self.pins.index()).unwrap_or_else(|| self.options.interface.clone()),
            regulator: name_of(self.subscribers.policy().regulator()),
            acting: self.attached && self.knobs.acts(),
            running_s: now.since(self.begun).as_secs_f64(),
            window_s,
            rate_bps: counts.in_bytes as f64 * 8.0 / window_s,
            side: Some(self.subscribers.policy().side()),
            data_from_mobiles: lately.has_data_from_mobiles(),
            connections: self.subscribers.connections(),
            unobserved: self.subscribers.unobserved(),
            wait_p50_ms: quantile(0.5),
            wait_p95_ms: quantile(0.95),
            shares: Shares::of(&counts),
            lower_share: (counts.acks > 0).then(|| counts.lower as f64 / counts.acks as f64),
            file: self.options.file.clone(),
            subscribers: self.subscribers.len(),
            refused: self.subscribers.refused(),
            worst: self.subscribers.worst(SHOWN),
            day: self.told_day.clone(),
            refused_file: self.refused_file.clone(),
        }
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
