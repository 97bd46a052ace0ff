//! Queued packets of a cell: a queue per flow, and for each user the order in which its flows are served.
//!
//! The queues may have any discipline. Every packet gets a ticket number when it enters a queue. The flow whose oldest
//! packet has the lowest ticket number is served first.

use std::collections::{BTreeSet, VecDeque};

use ackclock_core::{FlowId, Segment, Time};
use ackclock_link::queue::{AnyQueue, Place, Queue};
use ackclock_link::short_flows::Class;
use ackclock_link::short_flows::{Account, CountsAt, ShortFlows};
use ackclock_link::{Capacity, Cause, Load, QueuePlan};

use super::config::{BufferPer, CellConfig, IntraUser, Overflow};
use super::rank::Rank;

/// Queued packets of all users of a cell.
pub(super) struct Backlog {
    rules: Rules,
    /// Queues, indexed by flow number.
    flows: Vec<Option<FlowQueue>>,
    /// User of each flow; user 0 by default.
    user_of: Vec<u32>,
    users: Vec<UserQueue>,
    next_ticket: u64,
    dropped: VecDeque<(Segment, Cause)>,
    /// Times at which the queues of flows expire, with an age limit.
    expiries: BTreeSet<(Time, u32)>,
    /// First time in `expiries`; [`Time::NEVER`] if there is none.
    expires: Time,
}

/// Rules for the storage and the order of packets in a cell.
pub(super) struct Rules {
    pub(super) plan: QueuePlan,
    pub(super) order: IntraUser,
    pub(super) buffer: BufferPer,
    pub(super) overflow: Overflow,
    pub(super) short: ShortFlows,
    /// Ranks of the classes of service; a flow has the class with its number modulo the number of classes.
    pub(super) ranks: Vec<Rank>,
}

impl Rules {
    /// Returns the rules of a cell whose queues follow `plan`.
    pub(super) fn new(config: &CellConfig, plan: QueuePlan) -> Self {
        Self {
            plan,
            order: config.order,
            buffer: config.buffer_per,
            overflow: config.overflow,
            short: config.short_flow.clone(),
            ranks: config.ranks.clone(),
        }
    }
}

struct FlowQueue {
    user: u32,
    queue: AnyQueue,
    tickets: VecDeque<u64>,
    account: Account,
    /// Whether `expiries` lists the queue.
    expires: bool,
    /// Set when the flow has ended; the queue of an ended flow is removed once the queue is empty.
    ended: bool,
}

#[derive(Clone, Default)]
struct UserQueue {
    /// Flows of the user with queued packets; long flows are served round-robin from the front.
    active: Vec<u32>,
    load: Load,
}

impl FlowQueue {
    fn put(
        &mut self,
        now: Time,
        segment: &Segment,
        unqueued: Load,
        place: Place,
        ticket: u64,
    ) -> Result<(), Cause> {
        self.queue.put(now, segment, unqueued, place)?;
        match place {
            Place::Back => self.tickets.push_back(ticket),
            // A packet at the front gets the lowest ticket, so that the flow keeps its turn.
            Place::Front => self.tickets.push_front(self.tickets.front().copied().unwrap_or(ticket)),
        }
        Ok(())
    }
}

impl Backlog {
    pub(super) fn new(users: usize, rules: Rules) -> Self {
        Self {
            rules,
            flows: Vec::new(),
            user_of: Vec::new(),
            users: vec![UserQueue::default(); users],
            next_ticket: 0,
            dropped: VecDeque::new(),
            expiries: BTreeSet::new(),
            expires: Time::NEVER,
        }
    }

    /// Accepts a segment; the load `unqueued` counts against the capacity but is not in the queue.
    pub(super) fn enqueue(
        &mut self,
        now: Time,
        segment: &Segment,
        unqueued: Load,
        place: Place,
    ) -> Result<(), Cause> {
        let id = segment.flow;
        self.open(id);
        let (ticket, rules) = (self.next_ticket, &self.rules);
        let Some(flow) = &mut self.flows[id.index()] else { return Ok(()) };
        flow.account.on_arrival(now, &rules.short);
        if rules.buffer == BufferPer::User && rules.overflow == Overflow::Arriving {
            let load = self.users[flow.user as usize].load + Load::of(segment) + unqueued;
            if !rules.plan.capacity().holds(load) {
                return Err(Cause::Full);
            }
        }
        flow.put(now, segment, unqueued, place, ticket)?;
        flow.account.count(CountsAt::Enqueued, segment.wire_bytes(), &rules.short);
        flow.ended = false;
        self.next_ticket += 1;
        let user = &mut self.users[flow.user as usize];
        user.load += Load::of(segment);
        if !user.active.contains(&id.0) {
            user.active.push(id.0);
        }
        let number = flow.user;
        self.note_expiry(id.0);
        self.collect_drops(id.0);
        if self.rules.buffer == BufferPer::User {
            self.drop_surplus(now, number, unqueued);
        }
        Ok(())
    }

    /// Time at which a queue next has to drop aged packets; [`Time::NEVER`] without an age limit.
    pub(super) const fn expires(&self) -> Time {
        self.expires
    }

    /// Drops the packets of the next queue that have reached the age limit at `now`. Returns the user of the queue.
    pub(super) fn expire(&mut self, now: Time) -> Option<u32> {
        let (_, id) = self.expiries.pop_first()?;
        self.expires = self.expiries.first().map_or(Time::NEVER, |&(at, _)| at);
        let flow = self.flows[id as usize].as_mut()?;
        flow.expires = false;
        flow.queue.expire(now);
        let user = flow.user;
        self.note_expiry(id);
        self.collect_drops(id);
        Some(user)
    }

    /// Lists the time at which the queue of a flow next has to drop aged packets.
    fn note_expiry(&mut self, id: u32) {
        let Some(flow) = &mut self.flows[id as usize] else { return };
        let at = flow.queue.expires();
        if at != Time::NEVER && !flow.expires {
            flow.expires = self.expiries.insert((at, id));
            self.expires = self.expires.min(at);
        }
    }

    /// Removes the packet that the user sends next, and returns it with its arrival time.
    pub(super) fn take(&mut self, now: Time, user: u32) -> Option<(Time, Segment)> {
        loop {
            let id = self.head(now, user)?;
            let Some(flow) = &mut self.flows[id as usize] else { return None };
            let next = flow.queue.dequeue(now);
            if let Some((_, segment)) = &next {
                flow.tickets.pop_front();
                flow.account.count(CountsAt::Dequeued, segment.wire_bytes(), &self.rules.short);
                let user = &mut self.users[user as usize];
                user.load -= Load::of(segment);
                // The flow moves to the end of the round-robin order.
                if user.active.len() > 1 {
                    user.active.retain(|&other| other != id);
                    user.active.push(id);
                }
            }
            self.collect_drops(id);
            if next.is_some() {
                return next;
            }
        }
    }

    /// Class of the packet that the user sends next. If the user has sent a part of a packet of the flow `begun`,
    /// returns the class of `begun`.
    pub(super) fn class(&self, now: Time, user: u32, begun: Option<FlowId>) -> Class {
        let id = begun.map(|flow| flow.0).or_else(|| self.head(now, user));
        id.map_or(Class::Short, |id| self.class_of(now, id))
    }

    /// Weight of the class of the packet that the user sends next.
    pub(super) fn weight(&self, now: Time, user: u32) -> u16 {
        match self.rules.ranks.as_slice() {
            [only] => only.weight,
            _ => self.head(now, user).map_or(1, |id| self.rank(id).weight),
        }
    }

    fn rank(&self, id: u32) -> Rank {
        self.rules.ranks[id as usize % self.rules.ranks.len()]
    }

    /// Whether the user has no queued packets.
    pub(super) fn is_empty(&self, user: u32) -> bool {
        self.users[user as usize].active.is_empty()
    }

    /// Returns the next segment that was dropped after it had been accepted, with the cause.
    pub(super) fn poll_dropped(&mut self) -> Option<(Segment, Cause)> {
        self.dropped.pop_front()
    }

    /// Queued load that counts against the capacity of `flow`.
    pub(super) fn waiting(&self, flow: FlowId) -> Load {
        match (self.rules.buffer, self.flows.get(flow.index()).and_then(Option::as_ref)) {
            (BufferPer::User, _) => self.users[self.user(flow) as usize].load,
            (BufferPer::Flow, Some(of)) => of.queue.waiting(flow),
            (BufferPer::Flow, None) => Load::NONE,
        }
    }

    /// Queued packets and bytes of a user.
    pub(super) fn of_user(&self, user: u32) -> Load {
        self.users[user as usize].load
    }

    /// Queued packets and bytes of all users.
    pub(super) fn load(&self) -> Load {
        self.users.iter().fold(Load::NONE, |sum, user| sum + user.load)
    }

    pub(super) fn capacity(&self) -> Capacity {
        self.rules.plan.capacity()
    }

    /// Whether packets of the two flows count against the same capacity.
    pub(super) fn together(&self, a: FlowId, b: FlowId) -> bool {
        match self.rules.buffer {
            BufferPer::Flow => a == b,
            BufferPer::User => self.user(a) == self.user(b),
        }
    }

    pub(super) fn user(&self, flow: FlowId) -> u32 {
        self.user_of.get(flow.index()).copied().unwrap_or(0)
    }

    /// Sets the user of a flow, before its first segment.
    pub(super) fn assign(&mut self, flow: FlowId, user: u32) {
        if self.user_of.len() <= flow.index() {
            self.user_of.resize(flow.index() + 1, 0);
        }
        self.user_of[flow.index()] = user.min(self.users.len() as u32 - 1);
    }

    /// Marks a flow as ended: its queued packets are still sent.
    pub(super) fn forget(&mut self, flow: FlowId) {
        if let Some(slot) = self.flows.get_mut(flow.index()) {
            match slot {
                Some(of) if !of.tickets.is_empty() => of.ended = true,
                _ => *slot = None,
            }
        }
    }

    /// Creates the queue of a flow, if it has none.
    fn open(&mut self, id: FlowId) {
        if self.flows.len() <= id.index() {
            self.flows.resize_with(id.index() + 1, || None);
        }
        let (user, plan) = (self.user(id), &self.rules.plan);
        self.flows[id.index()].get_or_insert_with(|| FlowQueue {
            user,
            queue: match self.rules.buffer {
                BufferPer::Flow => plan.build_for(plan.capacity(), id),
                BufferPer::User => plan.build_for(Capacity::Unlimited, id),
            },
            tickets: VecDeque::new(),
            account: Account::default(),
            expires: false,
            ended: false,
        });
    }

    /// Number of the flow that is served next for this user.
    fn head(&self, now: Time, user: u32) -> Option<u32> {
        let active = &self.users[user as usize].active;
        let oldest = |flows: &mut dyn Iterator<Item = u32>| flows.min_by_key(|&id| self.ticket(id));
        match (active.as_slice(), self.rules.order) {
            ([] | [_], _) => active.first().copied(),
            // A flow that was served moves to the end, so that flows with equal priorities take turns.
            _ if self.rules.ranks.len() > 1 => {
                active.iter().copied().min_by_key(|&id| self.rank(id).priority)
            }
            (_, IntraUser::Fifo) => oldest(&mut active.iter().copied()),
            (_, IntraUser::Sfp) => {
                let mut short = active.iter().copied().filter(|&id| self.class_of(now, id) == Class::Short);
                oldest(&mut short).or_else(|| active.first().copied())
            }
        }
    }

    fn ticket(&self, id: u32) -> u64 {
        let flow = self.flows[id as usize].as_ref();
        flow.and_then(|flow| flow.tickets.front().copied()).unwrap_or(u64::MAX)
    }

    fn class_of(&self, now: Time, id: u32) -> Class {
        let flow = self.flows[id as usize].as_ref();
        flow.map_or(Class::Short, |flow| flow.account.class(now, &self.rules.short))
    }

    /// Collects packets that the queue of a flow dropped, and removes an ended flow with an empty queue.
    fn collect_drops(&mut self, id: u32) {
        let Some(flow) = &mut self.flows[id as usize] else { return };
        let user = &mut self.users[flow.user as usize];
        while let Some(dropped) = flow.queue.poll_dropped() {
            flow.tickets.pop_front();
            user.load -= Load::of(&dropped.0);
            self.dropped.push_back(dropped);
        }
        if flow.queue.is_empty() {
            user.active.retain(|&other| other != id);
            if flow.ended {
                self.flows[id as usize] = None;
            }
        }
    }

    /// Drops packets from the head of a user's longest queue until the remaining packets fit. If two queues are equally
    /// long, the lower flow number loses packets.
    fn drop_surplus(&mut self, now: Time, user: u32, unqueued: Load) {
        while !self.rules.plan.capacity().holds(self.users[user as usize].load + unqueued) {
            let active = &self.users[user as usize].active;
            let bytes =
                |id: u32| self.flows[id as usize].as_ref().map_or(0, |of| of.queue.waiting(FlowId(id)).bytes);
            let longest = active.iter().copied().max_by_key(|&id| (bytes(id), std::cmp::Reverse(id)));
            let Some(id) = longest else { return };
            if let Some(flow) = &mut self.flows[id as usize]
                && let Some((_, segment)) = flow.queue.dequeue(now)
            {
                flow.tickets.pop_front();
                self.users[user as usize].load -= Load::of(&segment);
                self.dropped.push_back((segment, Cause::Full));
            }
            self.collect_drops(id);
        }
    }
}
