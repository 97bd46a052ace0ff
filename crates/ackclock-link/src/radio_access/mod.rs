//! # Radio access
//!
//! ## Source
//! The radio network of CR02, AC06, L02 and M05, from the radio network controller to the terminals, with the RLC of
//! 3GPP TS 25.322 (`umts_rlc_am`); see `radio-access.md`.
//!
//! ## What it does
//! Every user has a queue and a pair of RLC ends in each direction (`channel`), which know nothing of a clock. The air asks them for
//! PDUs: a dedicated channel once in a TTI (`dedicated`). A packet departs when its last octet is first sent.
//!
//! Errors are drawn from the streams `down/errors` and `up/errors` for the first user and `down/errors/N` and
//! `up/errors/N` for the others, so adding a user does not change the draws of others.
//!
//! ## Differences from the source
//! See the RLC.
//!
//! ## Validation
//! The laws of every bearer with one and with three users; a user alone and among others has the same events
//! (`tests/radio_access.rs`). The bearer `umts-rlc-am` is this bearer with a dedicated channel each way, and is
//! compared with AC06 and closed forms.

mod air;
mod channel;
mod config;
mod dedicated;

use std::borrow::Cow;

use ackclock_core::{ConfigError, FlowId, Histogram, Segment, Span, Time};

pub use self::air::{AIRS, AirConfig, AirKind};
use self::channel::Channel;
pub use self::config::{Airs, RadioAccessConfig};
pub use self::dedicated::{DedicatedConfig, ErrorsBy};
use crate::bearer::{Bearer, BearerContext, Direction};
use crate::queue::Queue;
use crate::umts_rlc_am::{Pdu, RlcConfig, Sdus};
use crate::{Cause, Departures, LinkEvent, LinkView, Load};

/// All users between the radio network controller and their terminals.
pub(crate) struct RadioAccess {
    users: Vec<Channel>,
    /// Instant of each user's next event.
    changes: Vec<Time>,
    /// Whose flow it is, by its number; user 0 where nothing was said.
    user_of: Vec<u32>,
    /// The user whose event is next, in each direction.
    next: [usize; 2],
    /// Room in a PDU, octets.
    octets: u32,
    /// The PDUs that are sent together; kept to reuse the memory.
    filling: Vec<Pdu>,
}

impl RadioAccess {
    /// So many users with the same airs.
    ///
    /// # Errors
    /// With its direction: a file that a table names is unreadable or malformed.
    pub(crate) fn new(
        rlc: &RlcConfig,
        airs: [&DedicatedConfig; 2],
        users: u32,
        context: BearerContext<'_>,
    ) -> Result<Self, (Direction, ConfigError)> {
        let users = (0..users).map(|number| Channel::new(rlc, airs, number, context));
        let users: Vec<_> = users.collect::<Result<_, _>>()?;
        Ok(Self {
            changes: vec![Time::NEVER; users.len()],
            users,
            user_of: Vec::new(),
            next: [0; 2],
            octets: rlc.pdu_octets(),
            filling: Vec::new(),
        })
    }

    fn user(&self, flow: FlowId) -> usize {
        self.user_of.get(flow.index()).map_or(0, |&user| user as usize)
    }

    /// Lets everything happen that is due up to `now`. Users have channels of their own, so that each goes on by itself.
    fn advance(&mut self, now: Time) {
        for (user, change) in self.users.iter_mut().zip(&mut self.changes) {
            while *change <= now && *change != Time::NEVER {
                user.step(*change, &mut self.filling);
                *change = user.next_change();
            }
        }
    }

    fn put(
        &mut self,
        now: Time,
        direction: Direction,
        flow: FlowId,
        enqueue: impl FnOnce(&mut Sdus) -> Result<(), Cause>,
    ) -> Result<(), Cause> {
        self.advance(now);
        let user = self.user(flow);
        let taken = self.users[user].put(now, direction, enqueue);
        self.changes[user] = self.users[user].next_change();
        taken
    }

    fn sdus(&self, direction: Direction) -> impl Iterator<Item = &Sdus> {
        self.users.iter().map(move |user| &user.sdus[direction as usize])
    }

    fn sdus_mut(&mut self) -> impl Iterator<Item = &mut Sdus> {
        self.users.iter_mut().flat_map(|user| &mut user.sdus)
    }
}

impl Bearer for RadioAccess {
    fn enqueue(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause> {
        self.put(now, direction, segment.flow, |sdus| sdus.enqueue(now, segment))
    }

    fn enqueue_front(&mut self, now: Time, direction: Direction, segment: &Segment) -> Result<(), Cause> {
        self.put(now, direction, segment.flow, |sdus| sdus.enqueue_front(now, segment))
    }

    fn peek_event(&mut self, now: Time, direction: Direction) -> Option<(Time, LinkEvent)> {
        self.advance(now);
        let due = self.sdus(direction).map(|sdus| sdus.outcomes.due()).enumerate();
        let (first, _) = due.min_by_key(|&(_, due)| due)?;
        self.next[direction as usize] = first;
        self.users[first].sdus[direction as usize].outcomes.next(now)
    }

    fn take_segment(&mut self, direction: Direction) -> Segment {
        let first = self.next[direction as usize];
        self.users[first].sdus[direction as usize].outcomes.take()
    }

    fn due(&self, direction: Direction) -> Time {
        let events = self.sdus(direction).map(|sdus| sdus.outcomes.due());
        events.chain(self.changes.iter().copied()).min().unwrap_or(Time::NEVER)
    }

    fn want_departures(&mut self, direction: Direction, departures: Departures) {
        self.users.iter_mut().for_each(|user| user.sdus[direction as usize].departures = departures);
    }

    fn view(&mut self, now: Time, direction: Direction, flow: FlowId) -> LinkView {
        self.advance(now);
        self.users[self.user(flow)].view(direction, flow)
    }

    fn waiting(&mut self, now: Time, direction: Direction) -> Load {
        self.advance(now);
        self.sdus(direction).fold(Load::NONE, |sum, sdus| sum + sdus.queue().load())
    }

    fn waits(&self, direction: Direction) -> Cow<'_, Histogram> {
        match self.users.as_slice() {
            [user] => Cow::Borrowed(&user.sdus[direction as usize].waits),
            _ => {
                let mut all = Histogram::default();
                self.sdus(direction).for_each(|sdus| all.merge(&sdus.waits));
                Cow::Owned(all)
            }
        }
    }

    /// Sums over all users.
    fn gauges(&self, direction: Direction) -> Vec<f64> {
        let mut sums = Vec::new();
        for user in &self.users {
            for (place, value) in user.gauges(direction).enumerate() {
                match sums.get_mut(place) {
                    Some(sum) => *sum += value,
                    None => sums.push(value),
                }
            }
        }
        sums
    }

    /// What arrived of PDUs that were sent, and what would have in the mean of those that were not.
    fn capacity_bps(&mut self, until: Time, direction: Direction) -> Option<f64> {
        self.advance(until);
        let all = until.since(Time::ZERO);
        let carried: f64 = self.users.iter().map(|user| user.airs[direction as usize].carried(all)).sum();
        (all > Span::ZERO).then(|| carried * f64::from(self.octets) * 8.0 / all.as_secs_f64())
    }

    fn assign(&mut self, flow: FlowId, user: u32) {
        if self.user_of.len() <= flow.index() {
            self.user_of.resize(flow.index() + 1, 0);
        }
        self.user_of[flow.index()] = user.min(self.users.len() as u32 - 1);
        self.sdus_mut().for_each(|sdus| sdus.queue_mut().assign(flow, user));
    }

    fn forget(&mut self, flow: FlowId) {
        self.sdus_mut().for_each(|sdus| sdus.queue_mut().forget(flow));
    }

    fn let_go(&mut self) {
        self.sdus_mut().for_each(Sdus::let_go);
    }
}
