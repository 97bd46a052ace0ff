//! Hold times from the delays that a link itself has shown: M05 section 6.2, and `radio-access.md` section 6.

use ackclock_core::{Config, ConfigError, Span, Time};
use ackclock_link::loss::Loss;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::optimum::{self, MOST_HELD};

/// Learning of the table of hold times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LearnTable {
    /// Weighted number of delivered packets at which all weights are halved, so that the link's latest packets count most.
    pub over: u32,
    /// Minimum time between two calculations of the table.
    pub every: Span,
    /// Share of packets that may exceed the sender's timer, the mean plus 4 standard deviations of the delay. The first
    /// table is calculated after 5 / epsilon packets.
    pub epsilon: Loss,
    /// Margin between the largest delay that does not exceed the timer and the timer.
    pub rho: Span,
}

impl Default for LearnTable {
    fn default() -> Self {
        Self {
            over: 20_000,
            every: Span::from_secs(10),
            epsilon: Loss::of(0.001),
            rho: Span::from_millis(10),
        }
    }
}

/// Maximum number of different delays that are counted.
const MOST_COUNTED: usize = 64;
/// Minimum count of a delay: a delay of one packet is forgotten after five halvings.
const LEAST_COUNT: f64 = 1.0 / 32.0;
/// Number of expected packets beyond the timer before the first calculation.
const LEAST_EXPECTED: f64 = 5.0;
/// Minimum of `every`: a calculation takes up to 1 ms.
const LEAST_EVERY: Span = Span::from_millis(100);
impl Config for LearnTable {
    fn check(&self) -> Result<(), ConfigError> {
        if self.every < LEAST_EVERY {
            return Err(ConfigError::new("every", format!("{} is below {LEAST_EVERY}", self.every)));
        }
        if self.epsilon.is_none() {
            return Err(ConfigError::new("epsilon", "0 is not above 0"));
        }
        if f64::from(self.over) < 2.0 * self.least() {
            let message = format!(
                "{} is below {}, twice the 5 / epsilon packets of a calculation",
                self.over,
                libm::ceil(2.0 * self.least())
            );
            return Err(ConfigError::new("over", message));
        }
        Ok(())
    }
}

impl LearnTable {
    /// Minimum number of counted packets for a calculation.
    fn least(&self) -> f64 {
        LEAST_EXPECTED / self.epsilon.probability()
    }
}

/// Counts of the delays of a link, and the time of the next calculation.
pub(super) struct Learned {
    settings: LearnTable,
    /// Different delays in increasing order, each with the sum of its packets' weights.
    counts: Vec<(Span, f64)>,
    /// Sum of all packets' weights.
    total: f64,
    /// Sum of the squares of all packets' weights.
    squares: f64,
    /// Delays in ms with their shares, of the latest calculation: kept so that a calculation allocates no memory.
    law: Vec<(f64, f64)>,
    next: Time,
}

impl Learned {
    pub(super) fn new(settings: LearnTable) -> Self {
        let next = Time::ZERO + settings.every;
        Self {
            settings,
            counts: Vec::with_capacity(MOST_COUNTED),
            total: 0.0,
            squares: 0.0,
            law: Vec::with_capacity(MOST_COUNTED),
            next,
        }
    }

    /// Counts the delay of a packet. If no further delay can be counted separately, the packet counts at the next larger
    /// delay; a delay above all others raises the largest one.
    pub(super) fn observe(&mut self, delay: Span) {
        match self.counts.binary_search_by_key(&delay, |&(counted, _)| counted) {
            Ok(found) => self.counts[found].1 += 1.0,
            Err(place) if self.counts.len() < MOST_COUNTED => self.counts.insert(place, (delay, 1.0)),
            Err(place) => {
                let larger = &mut self.counts[place.min(MOST_COUNTED - 1)];
                *larger = (larger.0.max(delay), larger.1 + 1.0);
            }
        }
        self.total += 1.0;
        self.squares += 1.0;
        if self.total >= f64::from(self.settings.over) {
            self.counts.iter_mut().for_each(|(_, count)| *count /= 2.0);
            self.counts.retain(|&(_, count)| count >= LEAST_COUNT);
            self.total = self.counts.iter().map(|&(_, count)| count).sum();
            self.squares /= 4.0;
        }
    }

    /// Calculates `table` again if a calculation is due at `now`.
    pub(super) fn update(&mut self, now: Time, table: &mut Vec<[Span; 2]>) {
        if now < self.next {
            return;
        }
        self.next = now + self.settings.every;
        if self.total >= self.settings.least() {
            table.clear();
            self.calculate(table);
        }
    }

    /// Adds hold times for the counted delays to an empty table; none if no hold is necessary, or if more than
    /// [`MOST_HELD`] delays would be held.
    fn calculate(&mut self, table: &mut Vec<[Span; 2]>) {
        self.law.clear();
        let shares = self.counts.iter().map(|&(delay, count)| (delay, count / self.total));
        self.law.extend(shares.map(|(delay, share)| (delay.as_millis_f64(), share)));
        let law = &self.law;
        let timer = optimum::timer(law.iter().copied());
        if self.rare(law.partition_point(|&(delay, _)| delay <= timer)) {
            return;
        }
        let held = (0..law.len()).find(|held| self.rare(held + 1)).unwrap_or(law.len() - 1);
        let timer = law[held].0 + self.settings.rho.as_millis_f64();
        let reaches_next = law.get(held + 1).is_some_and(|next| next.0 <= timer);
        if held > MOST_HELD || reaches_next {
            return;
        }
        if let Some(levels) = optimum::levels(law, held, timer) {
            let raised = levels[..held].iter().zip(law).map(|(level, (delay, _))| level - delay).chain([0.0]);
            let held = raised.map(|raised| Span::from_secs_f64(raised / 1e3));
            table.extend(self.counts.iter().zip(held).map(|(&(delay, _), held)| [delay, held]));
        }
    }

    /// Whether the delays from number `first` on, counted from 0, are at most the allowed share of all packets, with a
    /// confidence of 90 %. Weighted counts deviate as the counts of `total`^2 / `squares` equal packets do (Kish, Survey
    /// Sampling, 1965): with counts halved again and again, 1.5 times `over`.
    fn rare(&self, first: usize) -> bool {
        let counted: f64 = self.counts[first..].iter().map(|&(_, count)| count).sum();
        let scale = self.total / self.squares;
        upper_bound(counted * scale) <= self.settings.epsilon.probability() * self.total * scale
    }
}

/// Upper bound of the mean of a Poisson law of which `counted` events were seen, with a confidence of 90 %: half the
/// chi-square quantile of 2 (`counted` + 1) degrees of freedom, by the approximation of Wilson and Hilferty (within
/// 1 %; 2.28 for no event, exactly 2.30).
fn upper_bound(counted: f64) -> f64 {
    const QUANTILE_90: f64 = 1.281_55;
    let half = counted + 1.0;
    let root = 1.0 - 1.0 / (9.0 * half) + QUANTILE_90 / (3.0 * half.sqrt());
    half * root * root * root
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delays in ms with shares in units of 1 / 10 000: M05's example, and another law.
    const EXAMPLE: [(u64, u32); 7] =
        [(0, 8064), (40, 880), (60, 930), (100, 60), (120, 60), (160, 3), (180, 3)];
    const OTHER: [(u64, u32); 6] = [(0, 7800), (40, 1100), (60, 1000), (100, 60), (120, 37), (180, 3)];

    /// Counts `packets` packets of a law, spread as evenly as their shares allow, one per 40 ms from `start` on.
    fn deliver(learned: &mut Learned, law: &[(u64, u32)], start: u64, packets: u64) -> Vec<[Span; 2]> {
        let mut table = Vec::new();
        for packet in 0..packets {
            let mut place = (packet * 3_819 % 10_000) as u32;
            let (delay, _) = law
                .iter()
                .find(|(_, share)| {
                    let found = place < *share;
                    place = place.wrapping_sub(*share);
                    found
                })
                .unwrap();
            learned.update(Time::from_nanos((start + packet) * 40_000_000), &mut table);
            learned.observe(Span::from_millis(*delay));
        }
        table
    }

    fn ms(table: &[[Span; 2]]) -> Vec<[f64; 2]> {
        table.iter().map(|row| row.map(Span::as_millis_f64)).collect()
    }

    #[test]
    fn the_table_is_that_of_the_model_for_the_counted_shares() {
        let mut learned = Learned::new(LearnTable { over: 30_000, ..LearnTable::default() });
        let table = deliver(&mut learned, &EXAMPLE, 0, 20_001);
        let rows = ms(&table);
        assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), [0.0, 40.0, 60.0, 100.0, 120.0]);
        // `ackclock model optimal-delays` adds 26.43 ms to 60 ms and 20 ms to 100 ms.
        assert_eq!((rows[0][1], rows[1][1], rows[4][1]), (0.0, 0.0, 0.0));
        assert!((rows[2][1] - 26.43).abs() < 0.1 && (rows[3][1] - 20.0).abs() < 1e-6, "{rows:?}");
    }

    #[test]
    fn after_a_change_of_the_law_the_table_is_that_of_the_new_law() {
        let settings = LearnTable { over: 20_000, ..LearnTable::default() };
        let mut changed = Learned::new(settings.clone());
        let mut only = Learned::new(settings);
        deliver(&mut changed, &EXAMPLE, 0, 40_000);
        let table = ms(&deliver(&mut changed, &OTHER, 40_000, 40_001));
        let wanted = ms(&deliver(&mut only, &OTHER, 0, 80_001));
        assert!(!wanted.is_empty());
        for row in &wanted {
            let same = table.iter().find(|one| one[0] == row[0]).unwrap();
            assert!((same[1] - row[1]).abs() < 1.0, "{table:?} {wanted:?}");
        }
    }

    #[test]
    fn nothing_is_held_before_enough_packets_or_without_repetitions() {
        let mut learned = Learned::new(LearnTable::default());
        assert!(deliver(&mut learned, &EXAMPLE, 0, 4_900).is_empty());
        let mut learned = Learned::new(LearnTable::default());
        assert!(deliver(&mut learned, &[(0, 10_000)], 0, 30_000).is_empty());
    }

    #[test]
    fn more_delays_than_are_counted_count_at_larger_ones() {
        let mut learned = Learned::new(LearnTable::default());
        for delay in (0..1000).rev() {
            learned.observe(Span::from_millis(delay));
        }
        assert_eq!(learned.counts.len(), MOST_COUNTED);
        assert_eq!(learned.counts.iter().map(|&(_, count)| count).sum::<f64>(), 1000.0);
        learned.observe(Span::from_secs(5));
        assert_eq!(learned.counts.last(), Some(&(Span::from_secs(5), 2.0)));
    }

    #[test]
    fn settings_that_cannot_be_are_refused_with_their_key() {
        let refused = |learn| LearnTable::check(&learn).unwrap_err().to_string();
        let default = LearnTable::default;
        assert!(refused(LearnTable { every: Span::ZERO, ..default() }).starts_with("every: "));
        assert!(refused(LearnTable { epsilon: Loss::NONE, ..default() }).starts_with("epsilon: "));
        assert!(refused(LearnTable { over: 9_999, ..default() }).starts_with("over: 9999 is below 10000"));
    }
}
