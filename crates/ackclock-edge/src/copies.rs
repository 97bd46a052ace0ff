//! Limits the number of segment copies that regulators keep, fairly between users and flows.

use ackclock_core::FlowId;

/// Counts of kept segment copies. A flow may keep one more copy while the copies of the flow, of its user and of all
/// users add up to less than `most`. With this rule, no user can take all room from other users, and no flow can take
/// all room from other flows of its user.
#[derive(Debug)]
pub(crate) struct Copies {
    most: usize,
    all: usize,
    of_flows: Vec<usize>,
    of_users: Vec<usize>,
}

impl Copies {
    /// Creates the counts without copies, with the limit `most`.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, all: 0, of_flows: Vec::new(), of_users: Vec::new() }
    }

    /// Number of copies kept for all flows together.
    pub(crate) fn all(&self) -> usize {
        self.all
    }

    /// Counts one more copy for a flow if there is room for the copy. Returns whether there was room for the copy.
    pub(crate) fn take(&mut self, flow: FlowId, user: u32) -> bool {
        let of_flow = counter(&mut self.of_flows, flow.index());
        let of_user = counter(&mut self.of_users, user as usize);
        let room = self.all + *of_flow + *of_user < self.most;
        if room {
            self.all += 1;
            *of_flow += 1;
            *of_user += 1;
        }
        room
    }

    /// Subtracts a copy that is no longer kept.
    pub(crate) fn release(&mut self, flow: FlowId, user: u32) {
        self.all -= 1;
        *counter(&mut self.of_flows, flow.index()) -= 1;
        *counter(&mut self.of_users, user as usize) -= 1;
    }
}

fn counter(counters: &mut Vec<usize>, index: usize) -> &mut usize {
    if counters.len() <= index {
        counters.resize(index + 1, 0);
    }
    &mut counters[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many copies a flow gets if it requests copies until one is refused.
    fn fill(copies: &mut Copies, flow: u32, user: u32) -> usize {
        (0..).take_while(|_| copies.take(FlowId(flow), user)).count()
    }

    #[test]
    fn a_flow_alone_gets_a_third_and_whoever_comes_after_a_crowd_still_something() {
        // A single flow gets n copies with n + n + n < 3000, because flow, user and total counts are equal.
        assert_eq!(fill(&mut Copies::new(3000), 1, 0), 1000);
        let mut copies = Copies::new(3000);
        let crowd: usize = (0..1000).map(|flow| fill(&mut copies, flow, 0)).sum();
        // With few copies per flow, 2 n approaches 3000: half of the room stays free for other users.
        assert!((1400..=1500).contains(&crowd), "{crowd}");
        // A flow of a second user gets n copies with n + n + (n + crowd) < 3000.
        assert_eq!(fill(&mut copies, 2000, 1), (3000 - crowd).div_ceil(3));
    }

    #[test]
    fn what_is_released_is_room_again() {
        let mut copies = Copies::new(30);
        assert_eq!(fill(&mut copies, 1, 0), 10);
        copies.release(FlowId(1), 0);
        assert_eq!((fill(&mut copies, 1, 0), copies.all()), (1, 10));
    }
}
