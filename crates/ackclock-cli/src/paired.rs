//! Compares sweep points run by run. Runs of equal seed and number draw the same random numbers, so paired differences
//! are more precise than differences of means.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use ackclock_core::name_of;
use ackclock_core::results::RunResult;
use serde_json::Value;

use crate::statistics::{self, Confidence, Estimate};

/// Point of a sweep or comparison, with its finished runs.
pub(crate) struct PointRuns<'a> {
    /// Varied keys with their values at this point.
    pub(crate) labels: &'a [(String, Value)],
    /// Finished runs of this point.
    pub(crate) runs: Vec<&'a RunResult>,
}

/// Function that extracts a number from a run; `None` if the run lacks this number.
pub(crate) type Number = fn(&RunResult) -> Option<f64>;

/// Baseline with which each sweep point is compared.
pub(crate) struct Baseline {
    /// Value shared by all baseline points, as written after `--set`.
    pub(crate) value: Value,
    /// Index of the baseline of each point; `None` for points that are baselines themselves.
    of: Vec<Option<usize>>,
}

impl Baseline {
    /// Chooses the baseline: the points with the regulator "none", if regulators vary and "none" is among them. Without
    /// points of the regulator "none", the baseline is the points with the first value of the first varied key. Returns
    /// `None` if no key varies.
    pub(crate) fn of(points: &[PointRuns<'_>]) -> Option<Self> {
        let labels = points.first().map(|point| point.labels).filter(|labels| !labels.is_empty())?;
        let values = |at: usize| points.iter().map(move |point| &point.labels[at].1);
        let varies = |at: &usize| values(*at).any(|value| *value != labels[*at].1);
        let varied = || (0..labels.len()).filter(varies);
        let regulator = varied().find(|&at| labels[at].0 == "edge.regulator");
        let none = regulator.and_then(|at| Some((at, values(at).find(|value| name_of(value) == "none")?)));
        let (at, value) = none.or_else(|| varied().next().map(|at| (at, &labels[at].1)))?;
        let others = |point: &PointRuns<'_>| {
            let others = point.labels.iter().enumerate().filter(|(place, _)| *place != at);
            others.map(|(_, (_, value))| value.to_string()).collect::<Vec<_>>()
        };
        let is_base = |point: &PointRuns<'_>| point.labels[at].1 == *value;
        let bases = points.iter().enumerate().filter(|(_, point)| is_base(point));
        let bases: BTreeMap<_, _> = bases.map(|(index, point)| (others(point), index)).collect();
        let base = |point| if is_base(point) { None } else { bases.get(&others(point)).copied() };
        Some(Self { value: value.clone(), of: points.iter().map(base).collect() })
    }

    /// Computes the difference of a number from the baseline for each point, in percent of the baseline's mean. Returns
    /// `None` for baseline points, and for points that share no run with their baseline.
    pub(crate) fn changes(
        &self,
        points: &[PointRuns<'_>],
        number: Number,
        confidence: Confidence,
    ) -> Vec<Option<Estimate>> {
        let change = |(point, base): (&PointRuns<'_>, &Option<usize>)| {
            let base = &points[(*base)?];
            let mean = statistics::mean(&base.runs.iter().filter_map(|run| number(run)).collect::<Vec<_>>());
            let percent = 100.0 / mean.filter(|&mean| mean > 0.0)?;
            let scaled: Vec<_> = differences(point, base, number).iter().map(|by| by * percent).collect();
            Estimate::of(&scaled, confidence)
        };
        points.iter().zip(&self.of).map(change).collect()
    }
}

/// Returns the difference of a number between `one` and `other`, for each run number that both points have.
fn differences(one: &PointRuns<'_>, other: &PointRuns<'_>, number: Number) -> Vec<f64> {
    let of = |point: &PointRuns<'_>| -> BTreeMap<_, _> {
        point.runs.iter().filter_map(|run| Some(((run.seed, run.run), number(run)?))).collect()
    };
    let others = of(other);
    of(one).iter().filter_map(|(run, value)| Some(value - others.get(run)?)).collect()
}

/// Estimates the difference of a number between `one` and `other` over the runs that both points have; `None` without
/// such runs.
pub(crate) fn difference(
    one: &PointRuns<'_>,
    other: &PointRuns<'_>,
    number: Number,
    confidence: Confidence,
) -> Option<Estimate> {
    Estimate::of(&differences(one, other, number), confidence)
}

/// Returns whether a number of `one` is significantly above or below the same number of `other`. The difference is
/// significant if the confidence interval of the paired differences excludes zero. For a single run, or if all runs are
/// equal, the two numbers are compared directly.
pub(crate) fn beyond_chance(
    one: &PointRuns<'_>,
    other: &PointRuns<'_>,
    number: Number,
    confidence: Confidence,
) -> Ordering {
    let Some(Estimate { mean, half_interval }) = difference(one, other, number, confidence) else {
        return Ordering::Equal;
    };
    match half_interval {
        Some(half) if mean.abs() <= half => Ordering::Equal,
        _ => mean.total_cmp(&0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::results::{FairnessResult, LinkCounts};
    use serde_json::json;

    /// Creates runs with these numbers as durations.
    fn runs(numbers: &[f64]) -> Vec<RunResult> {
        let run = |(run, &duration_s): (usize, &f64)| {
            RunResult {
            scenario: String::new(),
            seed: 1,
            run: run as u32,
            duration_s,
            flows: Vec::new(),
            users: Vec::new(),
            transfers: Vec::new(),
            fairness: FairnessResult::default(),
            bottleneck: LinkCounts::default().result(1.0),
            uplink: LinkCounts::default().result(1.0),
            faults: Vec::new(),
            engine: serde_json::from_value(json!({"events": 0, "packets": 0})).unwrap(),
            provenance: serde_json::from_value(json!({
                "version": "", "commit": null, "dirty": null, "scenario_sha256": "", "configuration_sha256": "", "inputs": {}, "set": []
            }))
            .unwrap(),
        }
        };
        numbers.iter().enumerate().map(run).collect()
    }

    const NUMBER: Number = |run| Some(run.duration_s);

    fn point<'a>(labels: &'a [(String, Value)], runs: &'a [RunResult]) -> PointRuns<'a> {
        PointRuns { labels, runs: runs.iter().collect() }
    }

    #[test]
    fn what_runs_share_cancels_in_their_differences() {
        // The unpaired means are 200 and 202, each ±248. The paired difference is 2 ± 4.303 / sqrt 3.
        let (base, more) = (runs(&[100.0, 200.0, 300.0]), runs(&[101.0, 202.0, 303.0]));
        let labels = ["none", "wrd"].map(|name| vec![("edge.regulator".to_owned(), json!(name))]);
        let points = [point(&labels[0], &base), point(&labels[1], &more)];
        let baseline = Baseline::of(&points).unwrap();
        let changes = baseline.changes(&points, NUMBER, Confidence::default());
        assert_eq!(changes[0], None);
        let Estimate { mean, half_interval } = changes[1].unwrap();
        assert!(
            (mean - 1.0).abs() < 1e-12 && (half_interval.unwrap() - 4.3027 / 3f64.sqrt() / 2.0).abs() < 1e-3
        );
        let compared = |one: &_, other: &_| beyond_chance(one, other, NUMBER, Confidence::default());
        assert_eq!(compared(&points[1], &points[0]), Ordering::Equal, "2 ± 2.48 holds zero");
        let surely = runs(&[103.0, 204.0, 303.0]);
        assert_eq!(compared(&point(&labels[1], &surely), &points[0]), Ordering::Greater);
        assert_eq!(compared(&points[0], &point(&labels[1], &surely)), Ordering::Less);
    }

    #[test]
    fn a_single_run_is_compared_as_it_is() {
        let (one, other) = (runs(&[1.0]), runs(&[2.0]));
        let compared = beyond_chance(&point(&[], &one), &point(&[], &other), NUMBER, Confidence::default());
        assert_eq!(compared, Ordering::Less);
    }

    #[test]
    fn each_point_is_compared_with_the_one_that_differs_in_the_key_of_the_baseline_alone() {
        let label = |buffer: &str, regulator: &str| {
            vec![("edge.buffer".to_owned(), json!(buffer)), ("edge.regulator".to_owned(), json!(regulator))]
        };
        let labels = [label("4p", "wrd"), label("4p", "none"), label("8p", "wrd"), label("8p", "none")];
        let points: Vec<_> = labels.iter().map(|labels| point(labels, &[])).collect();
        assert_eq!(Baseline::of(&points).unwrap().of, [Some(1), None, Some(3), None]);
        let [small, unregulated, large, _] = &labels;
        let buffers: Vec<_> = [small, large].map(|labels| point(&labels[..1], &[])).into();
        assert_eq!(Baseline::of(&buffers).unwrap().value, json!("4p"));
        let same: Vec<_> = [small, unregulated].map(|labels| point(&labels[..1], &[])).into();
        assert!(Baseline::of(&same).is_none(), "nothing varies");
        assert!(Baseline::of(&[point(&[], &[])]).is_none());
    }
}
