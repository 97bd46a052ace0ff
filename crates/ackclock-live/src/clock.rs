//! Clocks for real time, with functions to wait.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use ackclock_core::{Span, Time};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::port::Side;

/// Clock that a driver can read and wait for; real, or simulated in tests.
pub trait Clock {
    /// Returns the time since the start of the run.
    fn now(&mut self) -> Time;

    /// Waits for the time `until`, a readable port, or an order for the driver, whichever comes first. Returns at once
    /// if `until` has passed, and reports ready ports and orders even in this case.
    ///
    /// # Errors
    /// Fails if the system call for waiting fails.
    fn wait(&mut self, until: Option<Time>) -> io::Result<Ready>;

    /// Total times spent sleeping and busy-waiting.
    fn waits(&self) -> Waits {
        Waits::default()
    }
}

/// Ports and orders that are ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Whether each port has data to read, by [`Side`].
    pub ports: [bool; 2],
    /// Whether an order for the driver is pending.
    pub order: bool,
}

impl Ready {
    fn any(self) -> bool {
        self.ports[0] || self.ports[1] || self.order
    }
}

/// Total times spent sleeping and busy-waiting.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waits {
    /// Total time spent sleeping.
    pub slept: Span,
    /// Total time spent busy-waiting for a close deadline.
    pub spun: Span,
}

/// Clock that reads the machine's monotonic time.
///
/// A sleep ends some tens of microseconds late. The clock ends sleeps early by the spin time, and busy-waits for the
/// rest while polling the ports.
pub struct RealClock {
    start: Instant,
    spin: Span,
    /// Files of the two ports, then the file for orders.
    files: [OwnedFd; 3],
    /// Time of the last poll of the files.
    looked: Time,
    waits: Waits,
}

impl RealClock {
    /// Starts a clock that wakes for the files of the two ports, by side, and of the driver's orders.
    ///
    /// # Errors
    /// Fails if the thread's timer slack cannot be set, or too many files are open.
    #[allow(clippy::disallowed_methods, reason = "the live driver is where time comes from")]
    pub fn new(ports: [BorrowedFd<'_>; 2], orders: BorrowedFd<'_>, spin: Span) -> io::Result<Self> {
        // Without a small timer slack, sleeps of this thread may end 50 us late, because the kernel wakes several
        // threads together.
        nix::sys::prctl::set_timerslack(1)?;
        let [wired, radio] = ports;
        let files = [wired.try_clone_to_owned()?, radio.try_clone_to_owned()?, orders.try_clone_to_owned()?];
        Ok(Self { start: Instant::now(), spin, files, looked: Time::ZERO, waits: Waits::default() })
    }

    /// Busy-waits until `until`; returns the current time.
    fn spin(&mut self, from: Time, until: Time) -> Time {
        let mut now = from;
        while now < until {
            std::hint::spin_loop();
            now = self.now();
        }
        self.waits.spun += now.since(from);
        now
    }

    fn poll(&self, timeout: Option<Span>) -> io::Result<Ready> {
        let mut files = self.files.each_ref().map(|file| PollFd::new(file.as_fd(), PollFlags::POLLIN));
        let timeout =
            timeout.map(|span| TimeSpec::from_duration(std::time::Duration::from_nanos(span.as_nanos())));
        match ppoll(&mut files, timeout, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        // A port with an error or hang-up counts as ready: the next read of the port reports the error.
        let ready = |index: usize| files[index].revents().is_some_and(|events| !events.is_empty());
        Ok(Ready { ports: Side::BOTH.map(|side| ready(side as usize)), order: ready(2) })
    }
}

/// Interval of polling the ports while busy-waiting, similar to interrupt coalescing of network cards. A poll costs
/// about as much as forwarding a packet.
const LOOK: Span = Span::from_micros(10);

impl Clock for RealClock {
    fn now(&mut self) -> Time {
        // The number of nanoseconds overflows after 584 years.
        Time::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn wait(&mut self, until: Option<Time>) -> io::Result<Ready> {
        let began = self.now();
        let until = until.unwrap_or(Time::NEVER);
        if until.since(began) < LOOK && began.since(self.looked) < LOOK {
            self.spin(began, until);
            return Ok(Ready::default());
        }
        let timeout =
            if until == Time::NEVER { None } else { Some(until.since(began).saturating_sub(self.spin)) };
        let mut ready = self.poll(timeout)?;
        let awake = self.now();
        if timeout != Some(Span::ZERO) {
            self.waits.slept += awake.since(began);
        }
        self.looked = awake;
        while self.looked < until && !ready.any() {
            let from = self.looked;
            self.looked = self.spin(from, until.min(from + LOOK));
            ready = self.poll(Some(Span::ZERO))?;
        }
        Ok(ready)
    }

    fn waits(&self) -> Waits {
        self.waits
    }
}
