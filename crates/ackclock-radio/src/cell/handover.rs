//! Hand-over of a user: nothing is sent to the user until the hand-over ends.

use ackclock_core::{Segment, Time};

use super::Cell;
use super::air::Carries;
use super::interruption::{Interruption, InterruptionKind};

impl Cell {
    /// Stops serving a user until `until`. Returns all packets of the user that were neither delivered nor given up, in
    /// order of transmission; packets that propagate at `now` still arrive.
    pub(crate) fn hand_over(&mut self, now: Time, user: u32, until: Time) -> Vec<Segment> {
        self.advance(now);
        let member = &mut self.members[user as usize];
        member.interruption = Some(Interruption { from: now, until, kind: InterruptionKind::Handover });
        let mut packets: Vec<_> = member.harq.iter_mut().flat_map(|harq| harq.withdraw()).collect();
        if self.air.user == user && self.air.ends != Time::NEVER {
            packets.append(&mut self.air.last);
            self.air.carries = Carries::Nothing;
        }
        packets.extend(member.begun.take().map(|fragment| fragment.segment));
        while let Some((_, packet)) = self.backlog.take(now, user) {
            packets.push(packet);
        }
        self.tell_drops(now);
        self.set_more(user, 0);
        self.busy.retain(|&other| other != user);
        self.returns.retain(|&(_, other)| other != user);
        packets
    }

    /// Serves a user with data again at `due`: at the end of its hand-over, or for a retransmission.
    pub(super) fn await_return(&mut self, due: Time, user: u32) {
        if !self.returns.contains(&(due, user)) {
            let place = self.returns.partition_point(|&(other, _)| other <= due);
            self.returns.insert(place, (due, user));
        }
    }
}
