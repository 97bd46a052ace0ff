//! Rules by which the proxy accepts a report.
//!
//! A report is accepted if a known key signed it, if it is newer than every accepted report of the key, if its time
//! differs from the proxy's clock by at most five seconds, and if the key covers its user. The time bounds what an
//! attacker can replay after a restart of the proxy, so that radio and proxy need synchronised clocks.

use crate::reports::keys::Key;
use crate::reports::wire::{self, Report};

/// Maximum difference between the time of a report and the proxy's clock, nanoseconds.
pub const FRESH: u64 = 5_000_000_000;

/// Reason for which a datagram is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not a report: wrong length or magic.
    Malformed,
    /// Unknown key, or a signature by a different secret.
    Forged,
    /// Not newer than the last accepted report of the key.
    Replayed,
    /// Time of the report too far from the proxy's clock.
    Stale,
    /// User whom the key does not cover.
    User,
}

impl Refusal {
    /// All reasons.
    pub const ALL: [Self; 5] = [Self::Malformed, Self::Forged, Self::Replayed, Self::Stale, Self::User];

    /// Name of the reason in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Forged => "forged",
            Self::Replayed => "replayed",
            Self::Stale => "stale",
            Self::User => "user",
        }
    }
}

/// Numbers of refused datagrams, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedReports([u64; Refusal::ALL.len()]);

impl RefusedReports {
    /// Counts one refused datagram.
    pub const fn count(&mut self, reason: Refusal) {
        self.0[reason as usize] += 1;
    }

    /// Number of datagrams refused for a reason.
    pub const fn of(&self, reason: Refusal) -> u64 {
        self.0[reason as usize]
    }

    /// Number of refused datagrams.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Keys, and the last accepted report of each key.
pub struct Gate {
    keys: Vec<(Key, Option<(u64, u64)>)>,
}

impl Gate {
    /// Creates a gate that has accepted no report yet.
    pub fn new(keys: Vec<Key>) -> Self {
        Self { keys: keys.into_iter().map(|key| (key, None)).collect() }
    }

    /// Checks a datagram; `now` is the proxy's clock, nanoseconds since 1970.
    ///
    /// # Errors
    /// Fails with the first rule that the datagram violates; the state of the gate is then unchanged.
    pub fn admit(&mut self, datagram: &[u8], now: u64) -> Result<Report, Refusal> {
        let number = wire::key_of(datagram).ok_or(Refusal::Malformed)?;
        let (key, last) =
            self.keys.iter_mut().find(|(key, _)| key.number == number).ok_or(Refusal::Forged)?;
        let report = wire::decode(datagram, &key.secret).ok_or(Refusal::Forged)?;
        if last.is_some_and(|last| (report.epoch, report.sequence) <= last) {
            return Err(Refusal::Replayed);
        }
        if now.abs_diff(report.taken) > FRESH || report.epoch > report.taken {
            return Err(Refusal::Stale);
        }
        if !key.users.iter().any(|users| users.contains(report.user)) {
            return Err(Refusal::User);
        }
        *last = Some((report.epoch, report.sequence));
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::reports::wire::{Secret, encode};

    const SECRET: Secret = [7; 32];
    const NOW: u64 = 1_000_000_000_000;

    fn gate() -> Gate {
        Gate::new(vec![Key { number: 3, secret: SECRET, users: vec!["10.0.0.0/24".parse().unwrap()] }])
    }

    fn report() -> Report {
        Report {
            key: 3,
            change: true,
            epoch: NOW - 50,
            sequence: 5,
            taken: NOW,
            user: "10.0.0.9".parse().unwrap(),
            rate: 384_000,
            packets: 6,
            bytes: 9000,
        }
    }

    #[test]
    fn a_signed_report_passes_once_and_unchanged() {
        let (mut gate, datagram) = (gate(), encode(&report(), &SECRET));
        assert_eq!(gate.admit(&datagram, NOW), Ok(report()));
        assert_eq!(gate.admit(&datagram, NOW), Err(Refusal::Replayed));
    }

    #[test]
    fn each_changed_bit_and_each_other_length_is_refused() {
        let (mut gate, datagram) = (gate(), encode(&report(), &SECRET));
        for bit in 0..8 * datagram.len() {
            let mut changed = datagram;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(gate.admit(&changed, NOW), Err(Refusal::Forged | Refusal::Malformed)), "{bit}");
        }
        for length in 0..datagram.len() {
            assert_eq!(gate.admit(&datagram[..length], NOW), Err(Refusal::Malformed));
        }
        assert_eq!(gate.admit(&encode(&report(), &[8; 32]), NOW), Err(Refusal::Forged));
        assert!(gate.admit(&datagram, NOW).is_ok(), "a refused datagram left a trace");
    }

    #[test]
    fn order_is_epoch_then_sequence_number() {
        let mut gate = gate();
        let mut try_one = |epoch, sequence| {
            gate.admit(&encode(&Report { epoch, sequence, ..report() }, &SECRET), NOW).is_ok()
        };
        assert!(try_one(NOW - 20, 5));
        assert!(!try_one(NOW - 20, 4));
        assert!(!try_one(NOW - 21, 6), "older epoch");
        assert!(try_one(NOW - 19, 0), "sender restarted");
        assert!(!try_one(NOW - 20, 7));
    }

    #[test]
    fn a_recorded_report_is_stale_after_a_restart_of_the_proxy() {
        let datagram = encode(&report(), &SECRET);
        assert!(gate().admit(&datagram, NOW + FRESH).is_ok());
        assert_eq!(gate().admit(&datagram, NOW + FRESH + 1), Err(Refusal::Stale));
        assert_eq!(gate().admit(&datagram, NOW - FRESH - 1), Err(Refusal::Stale));
        // An epoch in the future would lock out all later starts of the sender.
        let ahead = Report { epoch: u64::MAX, ..report() };
        assert_eq!(gate().admit(&encode(&ahead, &SECRET), NOW), Err(Refusal::Stale));
    }

    #[test]
    fn a_key_covers_its_own_users_only() {
        let other = Report { user: "10.0.1.9".parse().unwrap(), ..report() };
        assert_eq!(gate().admit(&encode(&other, &SECRET), NOW), Err(Refusal::User));
        let mapped = Report { user: "::ffff:10.0.0.9".parse().unwrap(), ..report() };
        assert_eq!(gate().admit(&encode(&mapped, &SECRET), NOW), Ok(report()));
    }

    proptest! {
        #[test]
        fn no_datagram_panics(mut datagram in prop::collection::vec(any::<u8>(), 0..120), now: u64, known: bool) {
            if known && datagram.len() > 6 {
                datagram[..6].copy_from_slice(b"RNF1\0\x03");
            }
            prop_assert!(gate().admit(&datagram, now).is_err());
        }

        #[test]
        fn a_report_survives_encoding(
            key: u16, change: bool, epoch: u64, sequence: u64, taken: u64, user: u128, rate: u64, packets: u32, bytes: u32,
        ) {
            let user = std::net::IpAddr::from(std::net::Ipv6Addr::from(user)).to_canonical();
            let report = Report { key, change, epoch, sequence, taken, user, rate, packets, bytes };
            prop_assert_eq!(wire::decode(&encode(&report, &SECRET), &SECRET), Some(report));
        }
    }
}
