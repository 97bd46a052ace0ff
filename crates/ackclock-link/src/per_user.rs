//! Independent links, one for each user, such as the uplinks of a cell.

use std::borrow::Cow;

use ackclock_core::{FlowId, Histogram, RadioReport, Segment, Time, Wakes};

use crate::{AnyLink, Cause, CellChange, Departures, Link, LinkEvent, LinkView, Load, Medium};

/// One link for each user; the flow of a segment determines its user.
pub struct PerUser {
    links: Vec<AnyLink>,
    /// Time of each link's next event.
    due: Wakes,
    /// User of each flow; user 0 by default.
    user_of: Vec<u32>,
    /// User whose link returned the last event; the segment of this event is not taken yet.
    telling: usize,
}

impl PerUser {
    /// Creates one link for each user, in order of user number; at least one link.
    pub fn new(links: Vec<AnyLink>) -> Self {
        let mut due = Wakes::default();
        for _ in &links {
            due.add();
        }
        Self { links, due, user_of: Vec::new(), telling: 0 }
    }

    fn user(&self, flow: FlowId) -> usize {
        self.user_of.get(flow.index()).map_or(0, |&user| user as usize)
    }

    fn note_due(&mut self, user: usize) {
        self.due.set(user, self.links[user].poll_timeout());
    }
}

impl From<PerUser> for AnyLink {
    fn from(links: PerUser) -> Self {
        Self::Other(Box::new(links))
    }
}

impl Link for PerUser {
    fn enqueue(&mut self, now: Time, segment: &Segment) -> Result<(), Cause> {
        let user = self.user(segment.flow);
        let taken = self.links[user].enqueue(now, segment);
        self.note_due(user);
        taken
    }

    fn enqueue_front(&mut self, now: Time, segment: &Segment) -> Result<(), Cause> {
        let user = self.user(segment.flow);
        let taken = self.links[user].enqueue_front(now, segment);
        self.note_due(user);
        taken
    }

    fn peek_event(&mut self, now: Time) -> Option<(Time, LinkEvent)> {
        // Each link is polled at its own deadline, so that events of all links come in order of time.
        while let Some((deadline, user)) = self.due.first().filter(|&(deadline, _)| deadline <= now) {
            let event = self.links[user].peek_event(deadline);
            if event.is_some() {
                self.telling = user;
                return event;
            }
            self.note_due(user);
        }
        None
    }

    fn take_segment(&mut self) -> Segment {
        let segment = self.links[self.telling].take_segment();
        self.note_due(self.telling);
        segment
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.due.first().map(|(deadline, _)| deadline)
    }

    fn want_departures(&mut self, departures: Departures) {
        for user in 0..self.links.len() {
            self.links[user].want_departures(departures);
            self.note_due(user);
        }
    }

    fn want_reports(&mut self) {
        for user in 0..self.links.len() {
            self.links[user].want_reports();
            self.note_due(user);
        }
    }

    fn poll_report(&mut self, now: Time) -> Option<RadioReport> {
        self.links.iter_mut().find_map(|link| link.poll_report(now))
    }

    fn view(&mut self, now: Time, flow: FlowId) -> LinkView {
        let user = self.user(flow);
        self.links[user].view(now, flow)
    }

    fn waiting(&mut self, now: Time) -> Load {
        self.links.iter_mut().fold(Load::NONE, |sum, link| sum + link.waiting(now))
    }

    fn waiting_of(&mut self, now: Time, user: u32) -> Load {
        self.links.get_mut(user as usize).map_or(Load::NONE, |link| link.waiting(now))
    }

    fn waits(&self) -> Cow<'_, Histogram> {
        let mut all = Histogram::default();
        self.links.iter().for_each(|link| all.merge(&link.waits()));
        Cow::Owned(all)
    }

    fn start_capacity(&mut self, now: Time) {
        self.links.iter_mut().for_each(|link| link.start_capacity(now));
    }

    /// Sum of the capacities of all users' links, without links of unknown capacity.
    fn capacity_bps(&mut self, until: Time) -> Option<f64> {
        self.links.iter_mut().filter_map(|link| link.capacity_bps(until)).reduce(|sum, one| sum + one)
    }

    // The call has no effect, because each user has a separate medium that no scenario table can replace.
    fn replace_medium(&mut self, _: Time, _: Box<dyn Medium>) {}

    fn change_cell(&mut self, _: Time, _: CellChange) {}

    fn assign(&mut self, flow: FlowId, user: u32) {
        if self.user_of.len() <= flow.index() {
            self.user_of.resize(flow.index() + 1, 0);
        }
        self.user_of[flow.index()] = user.min(self.links.len() as u32 - 1);
    }

    fn forget(&mut self, flow: FlowId) {
        let user = self.user(flow);
        self.links[user].forget(flow);
    }

    fn let_go(&mut self) {
        self.links.iter_mut().for_each(Link::let_go);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{DropTail, Queue};
    use crate::{BufferMeaning, Capacity, Constant, SerialLink};
    use ackclock_core::{Rate, Seq, Span};

    fn circuit(kbps: u64) -> AnyLink {
        let medium = Constant::new(Rate::from_bps(kbps * 1000), Span::from_millis(1));
        let queue = DropTail::new(Capacity::Unlimited);
        AnyLink::from(SerialLink::new(medium, queue.any(), BufferMeaning::Waiting))
    }

    #[test]
    fn what_is_counted_is_that_of_all_users() {
        let mut links = PerUser::new(vec![circuit(64), circuit(32)]);
        links.assign(FlowId(1), 1);
        for (number, flow) in [0, 1, 1, 1].into_iter().enumerate() {
            links.enqueue(Time::ZERO, &Segment::pure_ack(FlowId(flow), Seq(number as u32), 40)).unwrap();
        }
        let waiting = [0, 1, 2].map(|user| links.waiting_of(Time::ZERO, user).packets);
        assert_eq!(
            waiting,
            [0, 2, 0],
            "of three packets of user 1 one is in transmission; there is no user 2"
        );
        let end = Time::from_nanos(1_000_000_000);
        while links.poll_event(end).is_some() {}
        // 40 B at 32 kbit/s take 10 ms: the second user's packets are queued for 0, 10 and 20.
        assert_eq!((links.waits().count(), links.waits().sum()), (4, 30_000_000));
        assert_eq!(links.capacity_bps(end), Some(96_000.0));
    }

    #[test]
    fn users_do_not_wait_for_each_other() {
        let mut links = PerUser::new(vec![circuit(64), circuit(64)]);
        links.assign(FlowId(2), 1);
        for (number, flow) in [0, 1, 2].into_iter().enumerate() {
            links.enqueue(Time::ZERO, &Segment::pure_ack(FlowId(flow), Seq(number as u32), 40)).unwrap();
        }
        let mut seen = Vec::new();
        while let Some((at, LinkEvent::DELIVERED, segment)) =
            links.poll_event(Time::from_nanos(1_000_000_000))
        {
            seen.push((at.as_nanos() / 1_000_000, segment.flow.0));
        }
        // 40 B at 64 kbit/s take 5 ms: flows 0 and 1 of user 0 share a link, flow 2 has another one.
        assert_eq!(seen, [(6, 0), (6, 2), (11, 1)]);
    }
}
