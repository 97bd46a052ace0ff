//! STATUS PDUs in transit. A PDU holds only the number of its STATUS, because PDUs are copied often and few of them have
//! one.

use std::collections::VecDeque;

use super::status::Status;

/// STATUS in a PDU of its own, or in place of a PDU's padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StatusRef {
    /// Number among all STATUS of its sender.
    number: u32,
    /// Size, octets.
    pub(super) octets: u16,
}

/// STATUS that an end has sent and that have not arrived, the oldest first.
#[derive(Default)]
pub(super) struct Statuses {
    /// Number of the oldest STATUS.
    first: u32,
    contents: VecDeque<Status>,
    /// Total number of STATUS sent.
    pub(super) sent: u64,
}

impl Statuses {
    /// Keeps a STATUS that is sent now.
    pub(super) fn send(&mut self, status: Status) -> StatusRef {
        let number = self.first.wrapping_add(self.contents.len() as u32);
        self.contents.push_back(status);
        self.sent += 1;
        // A STATUS fits into a PDU of at most 1000 octets.
        StatusRef { number, octets: status.octets() as u16 }
    }

    /// Returns a STATUS that arrives now. The STATUS before it are lost, or of no use if they arrive later.
    pub(super) fn take(&mut self, status: StatusRef) -> Option<Status> {
        if status.number.wrapping_sub(self.first) as usize >= self.contents.len() {
            return None;
        }
        while self.first != status.number && self.contents.pop_front().is_some() {
            self.first = self.first.wrapping_add(1);
        }
        let taken = self.contents.pop_front()?;
        self.first = self.first.wrapping_add(1);
        Some(taken)
    }

    /// Returns a STATUS in transit.
    #[cfg(test)]
    pub(super) fn content(&self, status: StatusRef) -> &Status {
        &self.contents[status.number.wrapping_sub(self.first) as usize]
    }

    /// Loses all STATUS in transit.
    pub(super) fn clear(&mut self) {
        self.first = self.first.wrapping_add(self.contents.len() as u32);
        self.contents.clear();
    }
}
