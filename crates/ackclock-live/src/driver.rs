//! Driver that runs the data plane in real time. A loop waits for the next wake or packet, processes due events, writes
//! departing packets and reads the answers they trigger, then reads other packets with their arrival times.
//!
//! The same loop runs with real and with simulated clocks and ports.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use ackclock_core::{PacketId, Span, Time};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::port::{Came, Went};
use crate::{Clock, Plane, Port, Punctuality, Side};

/// Maximum number of packets read from one port before the opposite port is served; a super-packet counts as one
/// packet.
const TRAIN: usize = 32;

/// Maximum time by which a packet's assumed arrival time may precede the time at which the packet is read.
const LATE: Span = Span::from_millis(1);

/// Function that the driver calls with the plane, after the plane has advanced to the given time.
pub type Call = Box<dyn FnOnce(&mut Plane, Time) + Send>;

/// Task for the driver's thread.
pub enum Order {
    /// Calls a function that inspects or changes the plane, between packets.
    Call(Call),
    /// Stops the driver; packets inside the link are lost.
    Stop,
}

/// Sends orders to a driver from another thread.
#[derive(Clone)]
pub struct Remote {
    orders: Sender<Order>,
    bell: Arc<EventFd>,
}

impl Remote {
    /// Sends an order to the driver; ignored if the driver has ended.
    pub fn give(&self, order: Order) {
        // Sending and signalling fail only if the driver has ended.
        let _ = self.orders.send(order);
        let _ = self.bell.write(1);
    }

    /// Stops the driver.
    pub fn stop(&self) {
        self.give(Order::Stop);
    }

    /// Calls `with` on the driver's thread and returns its result; `None` if the driver has ended.
    pub fn ask<T: Send + 'static>(
        &self,
        with: impl FnOnce(&mut Plane, Time) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = mpsc::channel();
        self.give(Order::Call(Box::new(move |plane, now| {
            // The caller may have stopped waiting for the result.
            let _ = answer.send(with(plane, now));
        })));
        answered.recv().ok()
    }
}

/// Receiver of a driver's orders. Create the receiver before the clock, which wakes for orders.
pub struct Orders {
    orders: Receiver<Order>,
    bell: Arc<EventFd>,
}

impl Orders {
    /// Creates the receiver of orders and its remote.
    ///
    /// # Errors
    /// Fails if the kernel cannot create an event file.
    pub fn new() -> io::Result<(Self, Remote)> {
        let bell = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        let ((sender, orders), bell) = (mpsc::channel(), Arc::new(bell));
        Ok((Self { orders, bell: bell.clone() }, Remote { orders: sender, bell }))
    }

    /// Event file that is readable while an order is pending.
    pub fn bell(&self) -> Arc<EventFd> {
        self.bell.clone()
    }
}

impl AsFd for Orders {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// Driver of a data plane, with a clock and two ports.
pub struct Driver<C, P> {
    plane: Plane,
    clock: C,
    ports: [P; 2],
    punctuality: Punctuality,
    /// Packets just read; the vector is kept to reuse its memory.
    came: Vec<PacketId>,
}

impl<C: Clock, P: Port> Driver<C, P> {
    /// Creates a driver between two ports, given by [`Side`].
    pub fn new(plane: Plane, clock: C, ports: [P; 2]) -> Self {
        Self { plane, clock, ports, punctuality: Punctuality::default(), came: Vec::new() }
    }

    /// Runs until ordered to stop, or until `end`.
    ///
    /// # Errors
    /// Fails if a device has disappeared.
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
            // Orders are processed last, so that an order takes effect after all packets that arrived before the order,
            // such as a program's final acknowledgements.
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

    /// Data plane of the driver.
    pub fn plane(&self) -> &Plane {
        &self.plane
    }

    /// Data plane of the driver, mutable while the driver does not run.
    pub fn plane_mut(&mut self) -> &mut Plane {
        &mut self.plane
    }

    /// Clock of the driver.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// Statistics of how late packets departed.
    pub fn punctuality(&self) -> &Punctuality {
        &self.punctuality
    }

    fn obey(&mut self, orders: &Orders) -> Then {
        // The event file is reset before orders are read, so that no order is missed.
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

    /// Reads the packets of a port, and writes packets that become due between two reads.
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

    /// Processes all events due up to `until`, one departure after another, and reads the answers that each departure
    /// triggers.
    ///
    /// The kernel's TCP usually answers while a packet is written to its device. The kernel's answer counts as arriving
    /// when the packet was due, so that delays of this thread do not affect the endpoints.
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

    /// Reads the answers from a port after packets due at `due` were written to it.
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

    /// Reads the next packet of a port; returns false if none is available.
    fn read(&mut self, side: Side, at: Time) -> io::Result<bool> {
        let came = self.ports[side as usize].read(self.plane.pool_mut(), &mut self.came)?;
        let Came::Packets { lost } = came else { return Ok(false) };
        self.plane.count_unread(side, lost);
        for packet in self.came.drain(..) {
            self.plane.arrive(at, side, packet);
        }
        Ok(true)
    }

    /// Writes departing packets; returns the sides to which packets were written.
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

/// Next action after an order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    GoOn,
    Stop,
}
