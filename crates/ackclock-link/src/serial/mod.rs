//! A link that transmits one packet after the other: a queue, a transmitter and the packets in flight.
//!
//! What differs between constant, variable and trace-driven links is only how long a transmission takes and how long
//! the packet then travels. That is the [`Medium`]; everything else is here, once.
//!
//! **The buffer.** "B packets" are B *waiting*; one more may be in transmission ([`BufferMeaning::Waiting`], settled in
//! `links.md` section 1 against CR02 Table 1). Counting the packet in transmission inside B is the other reading.
//!
//! A medium that serves at instants of its own (a recording of opportunities) leaves the packet at the head in the queue
//! until such an instant comes: it waits, and so counts against the buffer under either reading.
//!
//! **No overtaking.** The arrival is `max(arrival of the flow's packet before, departure + delay)`: packets of one flow
//! never overtake each other, and flows do not hold each other up (`links.md` section 3).
//!
//! **Two ways of doing the same.** A link goes [step by step](stepwise) from one transmission to the next. Where nothing that
//! comes later can change what becomes of a packet, its whole way is [planned](planned) when it comes, which is faster. The
//! link chooses; whoever holds it sees the same events.

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
use crate::{BufferMeaning, Cause, Departures, Link, LinkEvent, LinkView, Load, Medium};
use stepwise::Stepwise;

/// A queue, a transmitter and the packets in flight.
pub struct SerialLink {
    mode: Mode,
}

// A link has one mode at a time, so it does not matter that one is larger than the other.
#[allow(clippy::large_enum_variant)]
enum Mode {
    /// What becomes of a packet is worked out when it comes.
    Planned(Planned),
    /// Transmissions end and begin one by one.
    Stepwise(Stepwise),
}

impl SerialLink {
    /// An idle link.
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

    /// The link where it plans: all that it tells is deliveries.
    #[inline(always)]
    pub(crate) fn planned(&mut self) -> Option<&mut Planned> {
        match &mut self.mode {
            Mode::Planned(planned) => Some(planned),
            Mode::Stepwise(_) => None,
        }
    }

    /// As [`poll_timeout`](Link::poll_timeout); [`Time::NEVER`] where there is none.
    #[inline(always)]
    pub(crate) fn due(&self) -> Time {
        match &self.mode {
            Mode::Planned(planned) => planned.due(),
            Mode::Stepwise(link) => link.poll_timeout().unwrap_or(Time::NEVER),
        }
    }

    /// Does with the link what no plan allows for: from here on it goes step by step.
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
        // Nobody watches the departures of a link that plans.
        if matches!((&self.mode, departures), (Mode::Planned(_), Departures::Unwatched)) {
            return;
        }
        self.step(|link| link.want_departures(departures));
    }

    fn replace_medium(&mut self, now: Time, medium: Box<dyn Medium>) {
        self.step(|link| link.replace_medium(now, medium));
    }

    fn want_reports(&mut self) {
        self.step(Stepwise::want_reports);
    }

    fn poll_report(&mut self, now: Time) -> Option<RadioReport> {
        match &mut self.mode {
            // It goes step by step from the moment on in which somebody listens.
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
