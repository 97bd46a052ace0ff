//! Window updates: copies of the last ACK (RFC 9293 section 3.8.6) that advertise a new right edge while no ACKs
//! arrive.

/// Minimum share of its budget that a sender must lack to get a window update, while ACKs are held or many copies are
/// allowed. With fewer copies allowed, the required share approaches the complete budget, which saves copies for times
/// without ACKs.
pub(super) const SHORT: f64 = 0.25;
/// Maximum number of window updates in a row.
const MOST: f64 = 20.0;

/// Limits the bytes of window updates to a share of the bytes of the ACKs.
#[derive(Debug, Default)]
pub(super) struct Updates {
    /// Bytes of window updates that may still be sent.
    credit: f64,
}

impl Updates {
    /// Handles an ACK of the mobile with `bytes` bytes that passes to the sender; window updates may add the fraction
    /// `share` of these bytes.
    pub(super) fn on_passed(&mut self, bytes: u32, share: f64) {
        let bytes = f64::from(bytes);
        self.credit = (self.credit + share * bytes).min(MOST * bytes);
    }

    /// Whether to send a window update of `bytes` bytes to a sender that lacks `short` bytes of its `budget`.
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
