//! PDUs of a user that wait at the base station: a queue for each channel, and the order in which the channels are
//! served.

use std::collections::VecDeque;

use ackclock_core::Time;

use super::filling::OfChannel;
use super::iub::Sent;
use crate::cell::Rank;

/// PDUs of a user that have arrived over the Iub and were not sent.
pub(super) struct Waiting {
    /// Rank of each channel's class.
    ranks: Vec<Rank>,
    /// Maximum number of PDUs of a channel.
    most: u64,
    queues: Vec<PduQueue>,
    /// Channels with PDUs. Channels of equal priority take turns from the front.
    active: Vec<u8>,
}

/// Runs of PDUs of a channel, each with its arrival time.
#[derive(Clone, Default)]
struct PduQueue {
    runs: VecDeque<(Time, Sent)>,
    /// Number of PDUs in all runs.
    count: u64,
}

impl Waiting {
    /// Creates empty queues of at most `most` PDUs each, for channels with these ranks.
    pub(super) fn new(ranks: Vec<Rank>, most: u64) -> Self {
        Self { most, queues: vec![PduQueue::default(); ranks.len()], active: Vec::new(), ranks }
    }

    /// Number of PDUs of a channel.
    pub(super) fn count(&self, channel: usize) -> u64 {
        self.queues[channel].count
    }

    /// Number of PDUs of all channels.
    pub(super) fn all(&self) -> u64 {
        self.queues.iter().map(|queue| queue.count).sum()
    }

    /// Adds a run of PDUs that arrives at `now`. Returns the PDUs that do not fit.
    pub(super) fn put(&mut self, now: Time, channel: u8, sent: Sent) -> Option<Sent> {
        let (queue, count) = (&mut self.queues[usize::from(channel)], sent.pdu.count());
        let fits = (self.most - queue.count).min(count.into()) as u16;
        if fits > 0 {
            queue.runs.push_back((now, sent.part(0, fits)));
            queue.count += u64::from(fits);
            if !self.active.contains(&channel) {
                self.active.push(channel);
            }
        }
        (fits < count).then(|| sent.part(fits, count - fits))
    }

    /// Removes the PDUs that are sent next, at most `most`, and returns them with their arrival time.
    pub(super) fn take(&mut self, most: u16) -> Option<(Time, OfChannel)> {
        let channel = self.next()?;
        // Channels of equal priority take turns with each PDU.
        let most = if self.active.len() > 1 { 1 } else { most };
        let queue = &mut self.queues[usize::from(channel)];
        let (arrived, run) = queue.runs.front_mut()?;
        let (arrived, sent, count) = (*arrived, *run, run.pdu.count());
        let taken = most.min(count);
        if taken < count {
            *run = sent.part(taken, count - taken);
        } else {
            queue.runs.pop_front();
        }
        queue.count -= u64::from(taken);
        self.active.retain(|&other| other != channel);
        if queue.count > 0 {
            self.active.push(channel);
        }
        Some((arrived, (channel, sent.part(0, taken))))
    }

    /// Removes all PDUs, in the order in which they would be sent.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = OfChannel> + '_ {
        std::iter::from_fn(|| self.take(u16::MAX)).map(|(_, sent)| sent)
    }

    /// Weight of the class of the PDU that is sent next; `None` if no PDU waits.
    pub(super) fn next_weight(&self) -> Option<u16> {
        self.next().map(|channel| self.ranks[usize::from(channel)].weight)
    }

    /// Channel that is served next.
    fn next(&self) -> Option<u8> {
        self.active.iter().copied().min_by_key(|&channel| self.ranks[usize::from(channel)].priority)
    }
}

#[cfg(test)]
mod tests {
    use ackclock_link::Fate;

    use super::*;
    use crate::umts_rlc_am::{Data, Pdu};

    fn run(count: u16) -> Sent {
        let pdu = Pdu::Data(Data { count, ..Data::default() });
        Sent { pdu, first: true, setup: 0, fate: Fate::Arrives }
    }

    fn waiting(priorities: &[u16], most: u64) -> Waiting {
        let rank = |&priority| Rank { priority, weight: priority };
        Waiting::new(priorities.iter().map(rank).collect(), most)
    }

    /// Channel and number of PDUs of each run, when at most `most` PDUs are taken at a time.
    fn taken(waiting: &mut Waiting, most: u16) -> Vec<(u8, u16)> {
        std::iter::from_fn(|| waiting.take(most))
            .map(|(_, (channel, sent))| (channel, sent.pdu.count()))
            .collect()
    }

    #[test]
    fn a_run_is_cut_where_a_block_or_the_queue_ends() {
        let mut waiting = waiting(&[1], 12);
        assert!(waiting.put(Time::ZERO, 0, run(7)).is_none());
        // Two of the seven PDUs do not fit beside the first seven: those after the first five.
        let Pdu::Data(refused) = waiting.put(Time::ZERO, 0, run(7)).unwrap().pdu else { panic!("data") };
        assert_eq!((refused.count, refused.sn), (2, Data::default().sn.plus(5)));
        assert_eq!(taken(&mut waiting, 4), [(0, 4), (0, 3), (0, 4), (0, 1)]);
        assert_eq!((waiting.count(0), waiting.next_weight()), (0, None));
    }

    #[test]
    fn channels_of_equal_priority_take_turns_after_those_before_them() {
        let mut waiting = waiting(&[2, 1, 2], 12);
        for channel in [0, 1, 2] {
            assert!(waiting.put(Time::ZERO, channel, run(2)).is_none());
        }
        assert_eq!(waiting.next_weight(), Some(1));
        assert_eq!(taken(&mut waiting, 9), [(1, 1), (1, 1), (0, 1), (2, 1), (0, 1), (2, 1)]);
    }
}
