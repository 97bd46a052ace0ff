//! A serial link, which transmits one packet at a time: a queue, a transmitter and the packets in flight.
//!
//! Constant, variable and trace-driven links differ only in transmission times and propagation delays, which the
//! [`Medium`] provides; this module implements everything else.
//!
//! **Buffer.** A buffer of B packets holds B *queued* packets; one more packet may be in transmission
//! ([`BufferMeaning::Waiting`], following `links.md` section 1 and CR02 Table 1). Optionally, the packet in
//! transmission counts as one of the B packets.
//!
//! A recording of opportunities is a medium with fixed transmission instants. With such a medium, the head packet stays
//! in the queue until the next instant, and so counts against the buffer whether or not B includes the packet in
//! transmission.
//!
//! **Order.** The arrival time is `max(previous arrival of the flow, departure + delay)`: packets of one flow stay in
//! order, and different flows do not delay each other (`links.md` section 3).
//!
//! **Two implementations.** A link runs [step by step](stepwise) from one transmission to the next. If no later event
//! can change a packet's times, the link [plans](planned) the times on the packet's arrival, which is faster. The link
//! chooses its implementation; the events are identical.

pub(crate) mod flight;
pub(crate) mod packets;
mod planned;
mod rate_reports;
mod stepwise;

use std::borrow::Cow;

use ackclock_core::{FlowId, Histogram, RadioReport, Segment, Time};
use delegate::delegate;

pub(crate) use flight::Flight;
pub(crate) use packets::{Packets, Parted, Whole};
pub(crate) use planned::Planned;

use crate::queue::{AnyQueue, Queue};
use crate::{BufferMeaning, Cause, CellChange, Departures, Link, LinkEvent, LinkView, Load, Medium};
use stepwise::Stepwise;

/// Link with a queue, a transmitter and the packets in flight.
pub struct SerialLink {
    mode: Mode,
}

// A link holds exactly one mode at a time, so the different sizes of the modes cost no memory.
#[allow(clippy::large_enum_variant)]
enum Mode {
    /// The link calculates all times of a packet on its arrival.
    Planned(Planned),
    /// The link starts and ends transmissions one by one.
    Stepwise(Stepwise),
}

impl SerialLink {
    /// Creates an idle serial link.
    pub fn new(medium: impl Medium + 'static, queue: AnyQueue, meaning: BufferMeaning) -> Self {
        let medium = medium.any();
        let mode = match queue {
            AnyQueue::DropTail(queue) if medium.foreseeable() => {
                Mode::Planned(Planned::new(medium, queue.capacity(FlowId(0)), meaning))
            }
            queue => Mode::Stepwise(Stepwise::new(medium, queue, meaning)),
        };
        Self { mode }
    }

    /// Returns the link's planned mode if the link calculates packet times on arrival; all events of a planned link are
    /// deliveries.
    #[inline(always)]
    pub(crate) fn planned(&mut self) -> Option<&mut Planned> {
        match &mut self.mode {
            Mode::Planned(planned) => Some(planned),
            Mode::Stepwise(_) => None,
        }
    }

    /// Time of the link's next event, as in [`poll_timeout`](Link::poll_timeout); [`Time::NEVER`] if no event is
    /// pending.
    #[inline(always)]
    pub(crate) fn due(&self) -> Time {
        match &self.mode {
            Mode::Planned(planned) => planned.due(),
            Mode::Stepwise(link) => link.poll_timeout().unwrap_or(Time::NEVER),
        }
    }

    /// Performs an action that planning does not support; afterwards the link runs step by step.
    fn step<T>(&mut self, act: impl FnOnce(&mut Stepwise) -> T) -> T {
        match &mut self.mode {
            Mode::Planned(planned) => {
                let mut stepwise = planned.hand_over();
                let done = act(&mut stepwise);
                self.mode = Mode::Stepwise(stepwise);
                done
            }
            Mode::Stepwise(stepwise) => act(stepwise),
        }
    }
}

impl Link for SerialLink {
    fn enqueue_front(&mut self, now: Time, segment: &Segment) -> Result<(), Cause> {
        self.step(|link| link.enqueue_front(now, segment))
    }

    fn want_departures(&mut self, departures: Departures) {
        // A link that plans packet times never has watched departures.
        if matches!((&self.mode, departures), (Mode::Planned(_), Departures::Unwatched | Departures::Freed)) {
            return;
        }
        self.step(|link| link.want_departures(departures));
    }

    fn replace_medium(&mut self, now: Time, medium: Box<dyn Medium>) {
        self.step(|link| link.replace_medium(now, medium));
    }

    // All users share the queue, or the queue tells flows apart and not users.
    fn waiting_of(&mut self, now: Time, _: u32) -> Load {
        self.waiting(now)
    }

    fn change_cell(&mut self, _: Time, _: CellChange) {}

    fn want_reports(&mut self) {
        self.step(Stepwise::want_reports);
    }

    fn poll_report(&mut self, now: Time) -> Option<RadioReport> {
        match &mut self.mode {
            // A link for which reports are requested runs step by step.
            Mode::Planned(_) => None,
            Mode::Stepwise(link) => link.poll_report(now),
        }
    }

    delegate! {
        to match &mut self.mode {
            Mode::Planned(link) => link,
            Mode::Stepwise(link) => link,
        } {
            #[inline(always)]
            fn enqueue(&mut self, now: Time, segment: &Segment) -> Result<(), Cause>;
            #[inline(always)]
            fn peek_event(&mut self, now: Time) -> Option<(Time, LinkEvent)>;
            #[inline(always)]
            fn take_segment(&mut self) -> Segment;
            fn view(&mut self, now: Time, flow: FlowId) -> LinkView;
            fn waiting(&mut self, now: Time) -> Load;
            fn capacity_bps(&mut self, until: Time) -> Option<f64>;
            fn start_capacity(&mut self, now: Time);
            fn assign(&mut self, flow: FlowId, user: u32);
            fn forget(&mut self, flow: FlowId);
            fn let_go(&mut self);
        }
        to match &self.mode {
            Mode::Planned(link) => link,
            Mode::Stepwise(link) => link,
        } {
            #[inline(always)]
            fn poll_timeout(&self) -> Option<Time>;
            fn waits(&self) -> Cow<'_, Histogram>;
        }
    }
}
