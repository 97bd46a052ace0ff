//! Chooses among candidates, such as regulators with buffers, by paired differences of goodput and queueing delay.

use std::cmp::Ordering;

use ackclock_core::results::RunResult;

use crate::paired::{self, Number, PointRuns};
use crate::statistics::{Confidence, Estimate};
use crate::summary::goodput;

/// Largest loss of goodput that a shorter queue may cost, as a fraction of the best goodput.
pub(crate) const TOLERATED: f64 = 0.02;

/// Largest relative difference of two queueing delays that count as equal if it is not beyond chance.
const TIE: f64 = 0.1;

/// What matters more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Prefer {
    /// The shortest queue whose goodput is within 2 % of the best goodput.
    #[default]
    Delay,
    /// The best goodput; the shortest queue among candidates of equal goodput.
    Goodput,
}

/// Goodput and queueing delay of one candidate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Goodput, bit/s.
    pub(crate) goodput: Estimate,
    /// Paired difference from the best goodput, as a fraction of the best goodput.
    pub(crate) below_best: Estimate,
    /// 95th percentile of the queueing delay, ms.
    pub(crate) queue_ms: Estimate,
}

/// Result of the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// This candidate is recommended.
    Candidate(usize),
    /// Too few runs: a candidate with a shorter queue may have enough goodput.
    Unsure,
}

/// 95th percentile of the downlink's queueing delay in a run, ms.
pub(crate) fn queue_ms(run: &RunResult) -> Option<f64> {
    run.bottleneck.queue_ms.p95
}

/// Costs of each candidate; `None` if one of them has no finished run.
pub(crate) fn costs(points: &[PointRuns<'_>], confidence: Confidence) -> Option<Vec<Cost>> {
    let estimate = |point: &PointRuns<'_>, of: Number| {
        Estimate::of(&point.runs.iter().filter_map(|run| of(run)).collect::<Vec<_>>(), confidence)
    };
    let means: Vec<Estimate> = points.iter().map(|point| estimate(point, goodput)).collect::<Option<_>>()?;
    let (best, most) =
        means.iter().enumerate().max_by(|(_, one), (_, other)| one.mean.total_cmp(&other.mean))?;
    let cost = |(point, goodput_mean): (&PointRuns<'_>, &Estimate)| {
        let difference = paired::difference(point, &points[best], goodput, confidence)?;
        let relative = |bps: f64| bps / most.mean.max(f64::MIN_POSITIVE);
        Some(Cost {
            goodput: *goodput_mean,
            below_best: Estimate {
                mean: relative(difference.mean),
                half_interval: difference.half_interval.map(relative),
            },
            queue_ms: estimate(point, queue_ms)?,
        })
    };
    points.iter().zip(&means).map(cost).collect()
}

/// Chooses the candidate with the shortest queue among those with enough goodput. If queues are equally short, the first
/// of them is chosen, so callers order the candidates from simple to complex.
pub(crate) fn choose(
    points: &[PointRuns<'_>],
    costs: &[Cost],
    prefer: Prefer,
    confidence: Confidence,
) -> Choice {
    let allowed = if prefer == Prefer::Delay { TOLERATED } else { 0.0 };
    let most_likely = |index: &usize| costs[*index].below_best.mean >= -allowed;
    let surely = |index: &usize| match (prefer, costs[*index].below_best) {
        (Prefer::Delay, Estimate { mean, half_interval }) => mean - half_interval.unwrap_or(0.0) > -allowed,
        // The best goodput itself has no difference; the others are as good if chance explains theirs.
        (Prefer::Goodput, Estimate { mean, half_interval }) => mean + half_interval.unwrap_or(0.0) >= 0.0,
    };
    let queue = |index: &usize| costs[*index].queue_ms.mean;
    let shorter = |one: usize, other: usize| {
        paired::beyond_chance(&points[one], &points[other], queue_ms, confidence) == Ordering::Less
    };
    let ties = |one: usize, other: usize| queue(&other) <= (1.0 + TIE) * queue(&one) && !shorter(one, other);
    let enough: Vec<usize> = (0..points.len()).filter(surely).collect();
    let Some(&shortest) = enough.iter().min_by(|one, other| queue(one).total_cmp(&queue(other))) else {
        return Choice::Unsure;
    };
    let chosen = enough.iter().copied().find(|&index| ties(shortest, index)).unwrap_or(shortest);
    let mut doubtful = (0..points.len()).filter(most_likely).filter(|index| !surely(index));
    if doubtful.any(|index| shorter(index, chosen)) { Choice::Unsure } else { Choice::Candidate(chosen) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::results::{FairnessResult, LinkCounts};
    use serde_json::json;

    /// Runs with these 95th percentiles of the queueing delay, ms.
    fn runs(delays: &[f64]) -> Vec<RunResult> {
        let run = |(run, delay): (usize, &f64)| {
            let mut bottleneck = LinkCounts::default().result(1.0);
            bottleneck.queue_ms.p95 = Some(*delay);
            RunResult {
                scenario: String::new(),
                seed: 1,
                run: run as u32,
                duration_s: 1.0,
                flows: Vec::new(),
                users: Vec::new(),
                transfers: Vec::new(),
                fairness: FairnessResult::default(),
                uplink: LinkCounts::default().result(1.0),
                bottleneck,
                faults: Vec::new(),
                engine: serde_json::from_value(json!({"events": 0, "packets": 0})).unwrap(),
                provenance: serde_json::from_value(json!({
                    "version": "", "commit": null, "dirty": null, "scenario_sha256": "", "configuration_sha256": "", "inputs": {}, "set": []
                }))
                .unwrap(),
            }
        };
        delays.iter().enumerate().map(run).collect()
    }

    /// Choice among candidates, each with its queueing delays and its goodput below the best in percent, with interval.
    fn choice(candidates: &[(&[f64], f64, f64)], prefer: Prefer) -> Choice {
        let runs: Vec<Vec<RunResult>> = candidates.iter().map(|(delays, ..)| runs(delays)).collect();
        let points: Vec<PointRuns<'_>> =
            runs.iter().map(|runs| PointRuns { labels: &[], runs: runs.iter().collect() }).collect();
        let exactly = |mean| Estimate { mean, half_interval: None };
        let cost = |(delays, percent, half): &(&[f64], f64, f64)| Cost {
            goodput: exactly(1e6),
            below_best: Estimate { mean: percent / 100.0, half_interval: Some(half / 100.0) },
            queue_ms: exactly(delays.iter().sum::<f64>() / delays.len() as f64),
        };
        let costs: Vec<Cost> = candidates.iter().map(cost).collect();
        choose(&points, &costs, prefer, Confidence::default())
    }

    #[test]
    fn the_shortest_queue_with_enough_goodput_is_chosen() {
        let (long, short) = (&[500.0, 510.0, 490.0][..], &[50.0, 51.0, 49.0][..]);
        let chosen = |candidates: &[_]| choice(candidates, Prefer::Delay);
        assert_eq!(chosen(&[(long, 0.0, 0.0), (short, -1.0, 0.5)]), Choice::Candidate(1));
        assert_eq!(chosen(&[(long, 0.0, 0.0), (short, -5.0, 0.5)]), Choice::Candidate(0));
        assert_eq!(chosen(&[(long, 0.0, 0.0), (short, -1.0, 1.5)]), Choice::Unsure, "-2.5 % is possible");
        assert_eq!(
            chosen(&[(short, 0.0, 0.0), (long, -1.0, 1.5)]),
            Choice::Candidate(0),
            "doubts of no interest"
        );
        let like_short = &[50.5, 50.0, 49.0][..];
        assert_eq!(
            chosen(&[(like_short, 0.0, 0.0), (short, 0.0, 0.0)]),
            Choice::Candidate(0),
            "the simpler one"
        );
    }

    #[test]
    fn goodput_comes_first_if_it_is_preferred() {
        let (long, short) = (&[500.0, 510.0, 490.0][..], &[50.0, 51.0, 49.0][..]);
        let chosen = |candidates: &[_]| choice(candidates, Prefer::Goodput);
        assert_eq!(chosen(&[(long, 0.0, 0.0), (short, -1.0, 0.5)]), Choice::Candidate(0));
        assert_eq!(chosen(&[(long, 0.0, 0.0), (short, -0.2, 0.5)]), Choice::Candidate(1), "equal by chance");
    }
}
