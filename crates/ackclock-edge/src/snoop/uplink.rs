//! Uplink data received from a mobile, gaps in this data, and requests for the missing data.

use ackclock_core::{SackBlock, Segment, Seq, Span, Time};

use super::Hop;

/// Uplink data of one flow, as it arrives from the radio.
#[derive(Debug, Default)]
pub(super) struct Uplink {
    /// Sequence number up to which all data has arrived.
    next: Option<Seq>,
    /// Ranges of data received beyond a gap, in order.
    islands: Vec<SackBlock>,
    /// Last ACK of the server, which is the template of a request.
    acknowledged: Option<Segment>,
    /// Time of the last request to fill the gap that is still open, and number of requests for this gap.
    asked: Option<(Time, u32)>,
    hop: Hop,
}

/// Maximum number of stored ranges beyond a gap. Loss that needs more ranges is left to the server.
const MOST_ISLANDS: usize = 64;

impl Uplink {
    /// Resets the state at the start of a connection.
    pub(super) fn begin(&mut self, syn: &Segment) {
        *self = Self { next: Some(syn.end()), ..Self::default() };
    }

    /// Processes data from the mobile. Returns a request if the data leaves a new gap.
    pub(super) fn on_data(&mut self, now: Time, data: &Segment) -> Option<Segment> {
        let next = *self.next.get_or_insert(data.seq);
        if data.seq.after(next) {
            return if self.add(data) { self.ask(now) } else { None };
        }
        if !data.end().after(next) {
            return None;
        }
        if let Some((asked, 1)) = self.asked {
            self.hop.sample(now.since(asked));
        }
        self.go_on_from(data.end());
        self.asked = self.asked.filter(|_| !self.islands.is_empty()).map(|_| (now, 0));
        None
    }

    /// Processes an ACK of the server. Acknowledged data that the agent has not seen took another path.
    pub(super) fn on_ack(&mut self, ack: &Segment) {
        if !ack.is_pure_ack() {
            return;
        }
        self.acknowledged = Some(*ack);
        if self.next.is_some_and(|next| ack.ack.after(next)) {
            self.go_on_from(ack.ack);
        }
        if self.islands.is_empty() {
            self.asked = None;
        }
    }

    /// Time at which the open gap is requested again; `None` after `most` requests.
    pub(super) fn due(&self, least: Span, most: u32) -> Option<Time> {
        let (asked, times) = self.asked.filter(|&(_, times)| times < most)?;
        Some(asked + self.hop.timeout(least, times))
    }

    /// Creates a request for missing uplink data. A request contains the server's ACK number, the range received after
    /// this number, and the ranges beyond the gaps. No receiver SACKs data that begins at its own ACK number, so a
    /// request cannot be mistaken for an ACK of the server.
    pub(super) fn ask(&mut self, now: Time) -> Option<Segment> {
        let (next, last) = (self.next?, self.acknowledged?);
        let mut request = Segment::pure_ack(last.flow, last.ack, last.header).made();
        (request.seq, request.window) = (last.seq, last.window);
        request.set_scale(last.scale());
        if let Some(timestamps) = last.timestamps() {
            request.set_timestamps(timestamps);
        }
        request.push_sack(SackBlock { left: last.ack, right: next });
        self.islands.iter().for_each(|&island| request.push_sack(island));
        self.asked = Some((now, self.asked.map_or(0, |(_, times)| times) + 1));
        Some(request)
    }

    /// Stores data received beyond a gap. Returns whether the data leaves a new gap.
    fn add(&mut self, data: &Segment) -> bool {
        let (left, right) = (data.seq, data.end());
        let first = self.islands.partition_point(|island| island.right.before(left));
        let touched = self.islands[first..].iter().take_while(|island| !island.left.after(right)).count();
        if touched == 0 {
            let room = self.islands.len() < MOST_ISLANDS;
            if room {
                self.islands.insert(first, SackBlock { left, right });
            }
            return room && first + 1 == self.islands.len();
        }
        let last = first + touched - 1;
        let left = if self.islands[first].left.before(left) { self.islands[first].left } else { left };
        let right = right.max(self.islands[last].right);
        self.islands.drain(first..last);
        self.islands[first] = SackBlock { left, right };
        false
    }

    /// Sets the end of the in-order data to `next`, or to the end of the stored ranges that `next` reaches. Stored
    /// ranges that `next` reaches are removed.
    fn go_on_from(&mut self, mut next: Seq) {
        let reached = self.islands.iter().take_while(|island| {
            let touches = !island.left.after(next);
            if touches {
                next = next.max(island.right);
            }
            touches
        });
        let reached = reached.count();
        self.islands.drain(..reached);
        self.next = Some(next);
    }
}
