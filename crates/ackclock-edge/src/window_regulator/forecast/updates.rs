//! Window updates: copies of the last ACK (RFC 9293 section 3.8.6) that tell an edge where no ACK does.

/// The share of its budget of which a source is short when it is told at once, while ACKs are kept or many copies may be
/// made; the fewer may, the nearer to all of it, so that some are left for when no ACK comes.
pub(super) const SHORT: f64 = 0.25;
/// Most copies in a row.
const MOST: f64 = 20.0;

/// How many copies may be made: they are a share of the bytes of the ACKs.
#[derive(Debug, Default)]
pub(super) struct Updates {
    /// Bytes of copies that may be made.
    credit: f64,
}

impl Updates {
    /// An ACK of the mobile passes, of so many bytes, of which copies may have a `share`.
    pub(super) fn on_passed(&mut self, bytes: u32, share: f64) {
        let bytes = f64::from(bytes);
        self.credit = (self.credit + share * bytes).min(MOST * bytes);
    }

    /// Whether a copy of so many bytes is to be made for a source that is short of so much of its budget.
    pub(super) fn makes(&mut self, bytes: u32, short: u32, budget: f64) -> bool {
        let bytes = f64::from(bytes);
        let share = 1.0 - (1.0 - SHORT) * self.credit / (MOST * bytes);
        let makes = self.credit >= bytes && f64::from(short) >= share * budget;
        if makes {
            self.credit -= bytes;
        }
        makes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_a_share_of_the_acks_and_tell_the_more_the_fewer_are_left() {
        let mut updates = Updates::default();
        (0..20).for_each(|_| updates.on_passed(40, 0.05));
        assert!(!updates.makes(40, 950, 1000.0), "one of twenty: more than 96 % of the budget");
        assert!(updates.makes(40, 1000, 1000.0));
        assert!(!updates.makes(40, 1000, 1000.0), "none is left");
        (0..1000).for_each(|_| updates.on_passed(40, 1.0));
        assert!(!updates.makes(40, 240, 1000.0));
        assert!(updates.makes(40, 250, 1000.0));
        let more = (0..100).filter(|_| updates.makes(40, 1000, 1000.0)).count();
        assert_eq!(more, 19, "twenty in a row");
    }
}
