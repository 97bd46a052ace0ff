//! The driver: the data plane in real time. Wait for the next wake or a packet; do what has fallen due, write what departs
//! and take in what that calls forth; take in what else has come, with the instant at which it was taken.
//!
//! It is the same for real and for made-up clocks and ports, and so there is one loop to trust.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use ackclock_core::{PacketId, Span, Time};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::port::{Came, Went};
use crate::{Clock, Plane, Port, Punctuality, Side};

/// Packets taken in from one port before the other's turn comes. A super-packet counts as one.
const TRAIN: usize = 32;

/// Nothing counts as having come earlier than it was read by more than this.
const LATE: Span = Span::from_millis(1);

/// What is called with the plane, brought up to the instant.
pub type Call = Box<dyn FnOnce(&mut Plane, Time) + Send>;

/// Something to be done by the thread of the driver.
pub enum Order {
    /// To look at the plane or change it, at an instant between packets.
    Call(Call),
    /// To stop; what is inside is lost.
    Stop,
}

/// Gives orders to a driver from another thread, or from a signal handler's.
#[derive(Clone)]
pub struct Remote {
    orders: Sender<Order>,
    bell: Arc<EventFd>,
}

impl Remote {
    /// Gives an order; it is lost where the driver has ended.
    pub fn give(&self, order: Order) {
        // Both fail only where nobody listens any more.
        let _ = self.orders.send(order);
        let _ = self.bell.write(1);
    }

    /// Stops the driver.
    pub fn stop(&self) {
        self.give(Order::Stop);
    }

    /// Lets the driver call `with` and gives its answer; `None` where the driver has ended.
    pub fn ask<T: Send + 'static>(
        &self,
        with: impl FnOnce(&mut Plane, Time) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = mpsc::channel();
        self.give(Order::Call(Box::new(move |plane, now| {
            // Who asked may have gone.
            let _ = answer.send(with(plane, now));
        })));
        answered.recv().ok()
    }
}

/// Where the driver hears orders. Made before the clock, which wakes for it.
pub struct Orders {
    orders: Receiver<Order>,
    bell: Arc<EventFd>,
}

impl Orders {
    /// Orders, and the remote that gives them.
    ///
    /// # Errors
    /// Where the kernel has no event file to give.
    pub fn new() -> io::Result<(Self, Remote)> {
        let bell = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        let ((sender, orders), bell) = (mpsc::channel(), Arc::new(bell));
        Ok((Self { orders, bell: bell.clone() }, Remote { orders: sender, bell }))
    }

    /// The file that is readable when there is an order.
    pub fn bell(&self) -> Arc<EventFd> {
        self.bell.clone()
    }
}

impl AsFd for Orders {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// A data plane, a clock and two ports.
pub struct Driver<C, P> {
    plane: Plane,
    clock: C,
    ports: [P; 2],
    punctuality: Punctuality,
    /// Packets just read; kept for its memory.
    came: Vec<PacketId>,
}

impl<C: Clock, P: Port> Driver<C, P> {
    /// A driver between these ports, by [`Side`].
    pub fn new(plane: Plane, clock: C, ports: [P; 2]) -> Self {
        Self { plane, clock, ports, punctuality: Punctuality::default(), came: Vec::new() }
    }

    /// Runs until it is ordered to stop, or until `end`.
    ///
    /// # Errors
    /// Where a device is gone.
    pub fn run(&mut self, orders: &Orders, end: Option<Time>) -> io::Result<()> {
        let end = end.unwrap_or(Time::NEVER);
        loop {
            let until = self.plane.next_wake().unwrap_or(Time::NEVER).min(end);
            let ready = self.clock.wait(Some(until).filter(|&until| until != Time::NEVER))?;
            for side in Side::BOTH {
                if ready.ports[side as usize] {
                    self.take_in(side, end)?;
                }
            }
            // Afterwards, so that an order finds counted what came before it: a program's last acknowledgements, when the
            // program has ended.
            if ready.order && self.obey(orders) == Then::Stop {
                return Ok(());
            }
            let now = self.clock.now();
            self.keep_up(now.min(end))?;
            if now >= end {
                return Ok(());
            }
        }
    }

    /// The plane.
    pub fn plane(&self) -> &Plane {
        &self.plane
    }

    /// The plane, for changing it while the driver does not run.
    pub fn plane_mut(&mut self) -> &mut Plane {
        &mut self.plane
    }

    /// The clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// How well departures kept to their schedule.
    pub fn punctuality(&self) -> &Punctuality {
        &self.punctuality
    }

    fn obey(&mut self, orders: &Orders) -> Then {
        // The bell is silenced before the orders are heard, so that none is left behind.
        let _ = orders.bell.read();
        while let Ok(order) = orders.orders.try_recv() {
            match order {
                Order::Call(call) => {
                    let now = self.clock.now();
                    self.plane.advance(now);
                    call(&mut self.plane, now);
                }
                Order::Stop => return Then::Stop,
            }
        }
        Then::GoOn
    }

    /// Takes in what has come to a port. What falls due meanwhile departs between two packets.
    fn take_in(&mut self, side: Side, end: Time) -> io::Result<()> {
        for _ in 0..TRAIN {
            let now = self.clock.now();
            self.keep_up(now.min(end))?;
            if !self.read(side, now)? {
                break;
            }
            self.send_out()?;
        }
        Ok(())
    }

    /// Does what is due up to an instant, one departure after the other, and takes in what each calls forth.
    ///
    /// The kernel's TCP mostly answers while a packet is written to its device. Such an answer counts as having come when the
    /// packet was due: that this thread is late, and later after a silence, is not of the ends' doing.
    fn keep_up(&mut self, until: Time) -> io::Result<()> {
        while let Some(due) = self.plane.next_wake().filter(|&due| due <= until) {
            self.plane.advance(due);
            let written = self.send_out()?;
            for side in Side::BOTH {
                if written[side as usize] {
                    self.take_answers(side, due)?;
                }
            }
        }
        self.plane.advance(until);
        Ok(())
    }

    /// Takes in what has come to a port to which something was written that had been due at an instant.
    fn take_answers(&mut self, side: Side, due: Time) -> io::Result<()> {
        for _ in 0..TRAIN {
            let at = due.max(self.clock.now() - LATE);
            if !self.read(side, at)? {
                break;
            }
            self.send_out()?;
        }
        Ok(())
    }

    /// Takes in what came next to a port, if anything did.
    fn read(&mut self, side: Side, at: Time) -> io::Result<bool> {
        let came = self.ports[side as usize].read(self.plane.pool_mut(), &mut self.came)?;
        let Came::Packets { lost } = came else { return Ok(false) };
        self.plane.count_unread(side, lost);
        for packet in self.came.drain(..) {
            self.plane.arrive(at, side, packet);
        }
        Ok(true)
    }

    /// Writes what departs; tells to which sides anything was.
    fn send_out(&mut self) -> io::Result<[bool; 2]> {
        let mut written = [false; 2];
        while let Some(departure) = self.plane.poll_departure() {
            let late = self.clock.now().since(departure.at);
            self.punctuality.error.record(late);
            let went = self.ports[departure.side as usize].write(self.plane.bytes(departure.packet))?;
            written[departure.side as usize] = true;
            match went {
                Went::Out => self.plane.release(departure.packet),
                Went::Lost => self.plane.refused(departure),
            }
        }
        Ok(written)
    }
}

/// What follows an order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    GoOn,
    Stop,
}
