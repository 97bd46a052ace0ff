//! Preset of LTE while driving, compared with the recording that it is fitted to.

use ackclock_core::{Rate, Span};
use ackclock_import::{Recording, Statistics};
use ackclock_radio::cell::Synthetic;

use crate::trace::shared;

/// Mean and percentiles of the rates per second in kbit/s, share of empty seconds in percent, longest gap in s.
type Figures = [f64; 6];

/// Figures of the LTE recording that the preset is fitted to. Only its figures are part of the project.
const LTE: Figures = [4560.3, 588.0, 3744.0, 11076.0, 0.0, 1.123];
/// Length of the LTE recording.
const LTE_LENGTH: Span = Span::from_secs(120);

fn figures(statistics: &Statistics) -> Figures {
    let kbps = |rate: Rate| rate.as_bps() as f64 / 1e3;
    let [p5, p50, p95] = [0.05, 0.5, 0.95].map(|q| kbps(statistics.percentile(q).unwrap()));
    let empty = 100.0 * statistics.share_at_zero();
    [kbps(statistics.mean), p5, p50, p95, empty, statistics.longest_gap.as_secs_f64()]
}

#[test]
fn every_figure_of_the_lte_recording_is_in_the_range_of_twenty_seeds() {
    let of_seed = |seed| {
        let text = Synthetic::lte_driving().to_mahimahi(LTE_LENGTH, seed).unwrap();
        figures(&Recording::parse(text.as_bytes()).unwrap().statistics())
    };
    let made: Vec<Figures> = (1..=20).map(of_seed).collect();
    for (index, figure) in LTE.iter().enumerate() {
        let least = made.iter().map(|one| one[index]).fold(f64::INFINITY, f64::min);
        let most = made.iter().map(|one| one[index]).fold(0.0, f64::max);
        assert!((least..=most).contains(figure), "figure {index}: {figure} in {least} to {most}");
    }
}

#[test]
fn the_figures_are_those_of_the_lte_recording() {
    let Some(path) = shared("mahimahi-3g-lte/ATT-LTE-driving-2016.down") else { return };
    let recording = Recording::parse(&std::fs::read(path).unwrap()).unwrap();
    for (ours, theirs) in figures(&recording.statistics()).into_iter().zip(LTE) {
        assert!((ours - theirs).abs() <= 0.001 * theirs.max(1.0), "{ours} and {theirs}");
    }
}
