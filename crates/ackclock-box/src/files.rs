//! Run-time files of a box: its lock, its last report, and requests to the running process.
//!
//! A full file system costs reports, not the box: the lock is an empty file, and the kernel tells who holds it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::{Flock, FlockType, fcntl_getlk};

use crate::error::BoxError;
use crate::report::Report;

/// Age of a report whose figures are no longer those of the box; a box writes a report every second.
const OUTDATED: Duration = Duration::from_secs(5);

/// Time between two looks at the files and at the kernel's records.
const POLL: Duration = Duration::from_millis(5);

/// Paths of a box's files in the run-time folder.
#[derive(Clone, Debug)]
pub struct Files {
    lock: PathBuf,
    report: PathBuf,
    keep: PathBuf,
    reload: PathBuf,
}

impl Files {
    /// Returns the paths of the files that belong to the box called `name` ([`Pins::name`](crate::clip::Pins::name)).
    pub fn of(folder: &Path, name: &str) -> Self {
        let file = |end: &str| folder.join(format!("box-{name}.{end}"));
        Self { lock: file("lock"), report: file("json"), keep: file("keep"), reload: file("reload") }
    }

    /// Returns the ID of the process that runs the box, or `None` if no process runs it.
    pub fn running(&self) -> Option<i32> {
        let file = File::open(&self.lock).ok()?;
        let holder = fcntl_getlk(&file, &Flock::from(FlockType::ReadLock)).ok()??;
        Some(holder.pid?.as_raw_nonzero().get())
    }

    /// Locks the box's run-time files, so that no other process can run the box on `interface`. The lock ends with this
    /// process, or when the file is closed.
    pub(crate) fn take(&self, interface: &str) -> Result<File, BoxError> {
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
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(file),
            Err(_) => Err(BoxError::Taken(self.running().unwrap_or(0), interface.to_owned())),
        }
    }

    /// Returns the last report; `None` if there is no report of the last five seconds.
    pub fn last_report(&self) -> Option<Report> {
        let age = fs::metadata(&self.report).ok()?.modified().ok()?.elapsed().unwrap_or_default();
        let text = fs::read_to_string(&self.report).ok().filter(|_| age < OUTDATED)?;
        serde_json::from_str(&text).ok()
    }

    /// Replaces the last report.
    pub(crate) fn write(&self, report: &str) -> Result<(), BoxError> {
        let new = self.report.with_extension("new");
        let written = fs::write(&new, report).and_then(|()| fs::rename(&new, &self.report));
        written.map_err(|error| {
            let _ = fs::remove_file(&new);
            BoxError::File(self.report.clone(), error)
        })
    }

    /// Asks the box to keep lowering windows after the time given with `--act TIME`.
    ///
    /// # Errors
    /// Fails if the request file cannot be written.
    pub fn keep(&self) -> io::Result<()> {
        fs::write(&self.keep, "")
    }

    /// Whether the box was asked to keep lowering windows since the last call.
    pub(crate) fn is_kept(&self) -> bool {
        fs::remove_file(&self.keep).is_ok()
    }

    /// Asks the box to load the configuration file `file`.
    ///
    /// # Errors
    /// Fails if the request file cannot be written.
    pub fn reload(&self, file: &Path) -> io::Result<()> {
        let new = self.reload.with_extension("reload-new");
        fs::write(&new, file.as_os_str().as_bytes())?;
        fs::rename(new, &self.reload)
    }

    /// Whether the box has not yet answered a request to load a file.
    pub fn is_reloading(&self) -> bool {
        self.reload.exists()
    }

    /// Configuration file that the box is asked to load.
    pub(crate) fn reload_request(&self) -> Option<PathBuf> {
        fs::read(&self.reload).ok().map(|path| OsString::from_vec(path).into())
    }

    /// Notes that the request to load a file was answered.
    pub(crate) fn end_reload(&self) {
        let _ = fs::remove_file(&self.reload);
    }

    /// Removes the box's files from the run-time folder.
    pub fn remove(&self) {
        for file in [&self.report, &self.keep, &self.reload, &self.lock] {
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

/// Waits for [`POLL`].
#[allow(clippy::disallowed_methods, reason = "real packets are waited for in real time")]
pub(crate) fn pause() {
    std::thread::sleep(POLL);
}
