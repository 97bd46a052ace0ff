//! Implementation of [`Link`] for the cell.

use std::borrow::Cow;

use ackclock_core::{FlowId, Histogram, RadioReport, Segment, Time};
use ackclock_link::queue::Place;
use ackclock_link::{AnyLink, Cause, CellChange, Departures, Link, LinkEvent, LinkView, Load, Medium};

use super::{Cell, FULL_PACKET};

impl From<Cell> for AnyLink {
    fn from(cell: Cell) -> Self {
        Self::Other(Box::new(cell))
    }
}

impl Link for Cell {
    fn enqueue(&mut self, now: Time, segment: &Segment) -> Result<(), Cause> {
        self.put(now, segment, Place::Back)
    }

    fn enqueue_front(&mut self, now: Time, segment: &Segment) -> Result<(), Cause> {
        self.put(now, segment, Place::Front)
    }

    fn peek_event(&mut self, now: Time) -> Option<(Time, LinkEvent)> {
        self.advance(now);
        self.outcomes.next(now)
    }

    fn take_segment(&mut self) -> Segment {
        self.outcomes.take()
    }

    fn poll_timeout(&self) -> Option<Time> {
        let watched = self.departures == Departures::Watched || self.reports.wanted();
        let next = if watched { self.next_change() } else { self.next_departure() + self.least_delay() };
        let next = next.min(self.backlog.expires());
        Some(next.min(self.outcomes.due())).filter(|&time| time != Time::NEVER)
    }

    fn want_departures(&mut self, departures: Departures) {
        self.departures = departures;
    }

    fn want_reports(&mut self) {
        self.reports.want_reports(self.members.iter().map(|member| member.mean_bps));
    }

    fn poll_report(&mut self, now: Time) -> Option<RadioReport> {
        self.reports.poll(now)
    }

    fn view(&mut self, now: Time, flow: FlowId) -> LinkView {
        self.advance(now);
        let waiting = self.backlog.waiting(flow);
        let user = self.backlog.user(flow);
        let (member, slot) = (&self.members[user as usize], self.slots.at(now));
        let state = match member.state {
            (known, state) if known == slot => state,
            _ => member.channel.peek(slot.saturating_sub(self.drc_delay)),
        };
        LinkView {
            waiting,
            in_transmission: self.in_transmission(flow),
            unacknowledged: self.unacknowledged(flow),
            occupied: waiting + self.unqueued(flow),
            capacity: self.backlog.capacity(),
            rate: self.share(now, user).unwrap_or(self.grants[state].rate),
        }
    }

    fn waiting(&mut self, now: Time) -> Load {
        self.advance(now);
        self.backlog.load()
    }

    fn waiting_of(&mut self, now: Time, user: u32) -> Load {
        self.advance(now);
        self.backlog.of_user(user)
    }

    fn waits(&self) -> Cow<'_, Histogram> {
        Cow::Borrowed(&self.waits)
    }

    /// Mean rate that the scheduler would have served if all users with flows had always had packets of this run's mean
    /// size, with the retransmissions per slot that occurred. If the delivered rate is higher than this capacity, for
    /// example because only users with good channels had data, returns the delivered rate.
    fn capacity_bps(&mut self, until: Time) -> Option<f64> {
        self.advance(until);
        let packet_bytes = self.bytes.checked_div(self.waits.count()).unwrap_or(FULL_PACKET);
        let all = self.reference.mean_bps_before(self.slots.at(until), packet_bytes)?;
        let slots = until.since(Time::ZERO).as_secs_f64() * self.slots.per_second() as f64;
        let [new, again] = self.used.map(|slots| slots as f64);
        let transmissions = if new > 0.0 { (new + again) / new } else { self.transmissions };
        (slots > 0.0).then(|| (all / transmissions).max(self.sent as f64 / slots))
    }

    // Has no effect: a cell is not a queue followed by a medium.
    fn replace_medium(&mut self, _: Time, _: Box<dyn Medium>) {}

    // The capacity is known without traffic.
    fn start_capacity(&mut self, _: Time) {}

    fn change_cell(&mut self, now: Time, change: CellChange) {
        self.change(now, change);
    }

    fn assign(&mut self, flow: FlowId, user: u32) {
        self.backlog.assign(flow, user);
        self.reference.join(self.backlog.user(flow));
    }

    fn forget(&mut self, flow: FlowId) {
        self.backlog.forget(flow);
    }

    // The users' queues stay, because they still have to count the queueing delay of their packets.
    fn let_go(&mut self) {
        self.outcomes.let_go();
    }
}
