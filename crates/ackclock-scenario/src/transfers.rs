//! Statistics of transfers by size class: count, latency and rate.

use std::collections::BTreeMap;

use ackclock_core::results::{Distribution, TransferResult};
use ackclock_core::{Histogram, Span};

use crate::Measure;
use crate::link_share::LinkShare;

/// Largest transfer size of each class except the last, bytes. CR04 reports pages of 5, 15, 50 and 200 packets of 1 KB,
/// and files of 1 MB. CR04's schedulers treat flows up to 15 KB as short.
const LARGEST: [u64; 5] = [5_000, 15_000, 50_000, 200_000, 1_000_000];

/// Transfers of each user, grouped by size class.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transfers {
    of_user: BTreeMap<u32, [Class; LARGEST.len() + 1]>,
}

/// Statistics of the transfers in one size class.
#[derive(Clone, Debug, Default)]
struct Class {
    latency: Histogram,
    unfinished: u64,
    /// Sum of the rates of all transfers, bit/s.
    rates: f64,
    /// Link share of the transfers whose link capacity is known.
    share: LinkShare,
}

impl Transfers {
    /// Counts a transfer that completed after `latency`, with its link share if known.
    pub(crate) fn finished(&mut self, user: u32, bytes: u64, latency: Span, share: Option<LinkShare>) {
        let class = self.class(user, bytes);
        share.iter().for_each(|share| class.share.add(share));
        class.latency.record(latency);
        // The latency is at least the clock's resolution, to avoid a division by zero.
        class.rates += bytes as f64 * 8.0 / latency.max(Span::from_nanos(1)).as_secs_f64();
    }

    /// Counts a transfer that did not complete.
    pub(crate) fn unfinished(&mut self, user: u32, bytes: u64) {
        self.class(user, bytes).unfinished += 1;
    }

    /// Adds the transfers of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (&user, classes) in &other.of_user {
            let own = self.of_user.entry(user).or_default();
            own.iter_mut().zip(classes).for_each(|(own, class)| own.merge(class));
        }
    }

    /// Result rows of the non-empty classes: first for all users together, then for each user if there are several.
    pub(crate) fn rows(&self, measures: &[Measure]) -> Vec<TransferResult> {
        let mut all: [Class; LARGEST.len() + 1] = Default::default();
        for classes in self.of_user.values() {
            all.iter_mut().zip(classes).for_each(|(all, class)| all.merge(class));
        }
        let mut rows = rows_of(None, &all, measures);
        if self.of_user.len() > 1 {
            rows.extend(
                self.of_user.iter().flat_map(|(&user, classes)| rows_of(Some(user), classes, measures)),
            );
        }
        rows
    }

    fn class(&mut self, user: u32, bytes: u64) -> &mut Class {
        let place = LARGEST.partition_point(|&largest| largest < bytes);
        &mut self.of_user.entry(user).or_default()[place]
    }
}

fn rows_of(user: Option<u32>, classes: &[Class], measures: &[Measure]) -> Vec<TransferResult> {
    let there = classes.iter().enumerate().filter(|(_, class)| class.latency.count() + class.unfinished > 0);
    there
        .map(|(place, class)| TransferResult {
            user,
            from_bytes: place.checked_sub(1).map_or(1, |below| LARGEST[below] + 1),
            to_bytes: LARGEST.get(place).copied(),
            count: class.latency.count(),
            unfinished: class.unfinished,
            latency_ms: Distribution::from(&class.latency),
            goodput_bps: class.goodput(),
            link: measures.contains(&Measure::Utilisation).then(|| class.share.result()),
        })
        .collect()
}

impl Class {
    fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.unfinished += other.unfinished;
        self.rates += other.rates;
        self.share.add(&other.share);
    }

    fn goodput(&self) -> Option<f64> {
        let count = self.latency.count();
        (count > 0).then(|| self.rates / count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_at_a_bound_belongs_to_the_class_that_it_ends() {
        let mut transfers = Transfers::default();
        for bytes in [1, 5_000, 5_001, 15_000, 1_000_000, 1_000_001] {
            transfers.finished(0, bytes, Span::from_millis(100), None);
        }
        let rows = transfers.rows(&[]);
        let classes: Vec<_> = rows.iter().map(|row| (row.from_bytes, row.to_bytes, row.count)).collect();
        let expected = [
            (1, Some(5_000), 2),
            (5_001, Some(15_000), 2),
            (200_001, Some(1_000_000), 1),
            (1_000_001, None, 1),
        ];
        assert_eq!(classes, expected);
    }

    #[test]
    fn rates_are_means_of_transfers_and_what_did_not_end_has_none() {
        let mut transfers = Transfers::default();
        transfers.finished(1, 1000, Span::from_millis(100), None);
        transfers.finished(1, 2000, Span::from_millis(50), None);
        transfers.unfinished(2, 3000);
        let rows = transfers.rows(&[]);
        assert_eq!(rows.iter().map(|row| row.user).collect::<Vec<_>>(), [None, Some(1), Some(2)]);
        // (8000/0.1 + 16000/0.05) / 2 = (80 + 320)/2 kbit/s
        assert_eq!(rows[0].goodput_bps, Some(200_000.0));
        assert_eq!((rows[0].count, rows[0].unfinished), (2, 1));
        assert_eq!((rows[2].count, rows[2].goodput_bps, rows[2].latency_ms.mean), (0, None, None));
    }
}
