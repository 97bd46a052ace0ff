//! Laws of every error process: the long-run loss share is the configured one, equal seeds give equal losses, and
//! polling changes nothing; and losses compared with closed forms.

use crate::common::{MadeUp, Polling, What, drive, segment, unlimited};
use ackclock_core::{Span, Streams, Time};
use ackclock_link::errors::{AnyErrorProcess, ERRORS, ErrorContext, ErrorProcess};
use ackclock_link::{Departures, Fate};
use serde_json::{Value, json};

const BLOCK: Span = Span::from_millis(2);

/// Tables of every error process of the registry, each with the correlation of losses between consecutive blocks; a
/// process without tables here is tested with its defaults, as independent.
fn every_process() -> Vec<(Value, f64)> {
    let tables = |name: &str| match name {
        "independent" => vec![(json!({"share": 0.1}), 0.0)],
        // links.md section 8: r + q = 0.0731 + 0.0081 at fD T = 0.01, and 0.5368 + 0.0596 at 0.08.
        "rayleigh" => vec![(json!({}), 0.9188), (json!({"fer": "10%", "doppler": 0.08}), 0.4036)],
        "gilbert-elliott" => vec![
            (json!({"p": 0.02, "r": 0.1}), 0.88),
            // Losses within a state are drawn independently, which lowers their correlation.
            (json!({"p": 0.02, "r": 0.1, "good": 0.01, "bad": 0.4}), 0.88),
        ],
        // Losses are spread out: less variance than independent ones.
        "power-control" => vec![
            (json!({}), 0.0),
            (json!({"step": 0.2, "rise": 4}), 0.0),
            (json!({"rise": 4, "inner_loop": {}}), 0.0),
        ],
        // Played in a loop, its share is exact after each pass.
        "recording" => vec![(json!({"file": "errors"}), 0.0)],
        _ => vec![(json!({}), 0.0)],
    };
    let with_kind = |name: &'static str| {
        tables(name).into_iter().map(move |(mut table, correlation)| {
            table["kind"] = name.into();
            (table, correlation)
        })
    };
    ERRORS.entries.iter().flat_map(|entry| with_kind(entry.name)).collect()
}

fn build(table: &Value, seed: u64) -> AnyErrorProcess {
    let streams = Streams::new(seed, 0);
    let context = ErrorContext { streams: &streams, name: "down/loss", files: &MadeUp, block: BLOCK };
    ERRORS.resolve(table).unwrap().build(context).unwrap()
}

/// Whether each of the first `blocks` blocks is lost.
fn losses(table: &Value, seed: u64, blocks: u64) -> Vec<bool> {
    let mut process = build(table, seed);
    (0..blocks).map(|number| process.fate(Time::ZERO + BLOCK * number) == Fate::Lost).collect()
}

#[test]
fn every_process_loses_its_share_in_the_long_run() {
    let blocks = 500_000u64;
    for (table, correlation) in every_process() {
        let share = ERRORS.resolve(&table).unwrap().share(&MadeUp).unwrap();
        let lost = losses(&table, 3, blocks).iter().filter(|&&lost| lost).count() as f64 / blocks as f64;
        // The mean of n losses correlated by c^distance has the variance e (1 - e) / n (1 + c) / (1 - c); four deviations.
        let variance = share * (1.0 - share) / blocks as f64 * (1.0 + correlation) / (1.0 - correlation);
        assert!((lost - share).abs() <= 4.0 * variance.sqrt(), "{table}: {lost} of {share}");
    }
}

#[test]
fn equal_seeds_are_equal_losses_and_others_are_not() {
    for (table, _) in every_process() {
        let of = |seed| losses(&table, seed, 20_000);
        assert_eq!(of(1), of(1), "{table}");
        let by_chance = table["kind"] != "recording" && of(1).contains(&true);
        assert_eq!(of(1) != of(2), by_chance, "{table}");
    }
}

#[test]
fn a_channel_that_is_good_or_bad_is_so_whoever_asks_and_however_often() {
    for (table, _) in every_process() {
        // Draws per packet depend on how many are sent.
        if table["kind"] == "independent" || !table["bad"].is_null() {
            continue;
        }
        let all = losses(&table, 5, 30_000);
        let mut idle = build(&table, 5);
        let mut busy = build(&table, 5);
        for (number, &lost) in (0..).zip(&all) {
            let at = Time::ZERO + BLOCK * number;
            if number % 1009 == 0 {
                assert_eq!(idle.fate(at) == Fate::Lost, lost, "{table}: idling changes the block {number}");
            }
            for part in 0..4 {
                let fate = busy.fate(at + BLOCK / 4 * part);
                assert_eq!(fate == Fate::Lost, lost, "{table}: asking changes the block {number}");
            }
        }
    }
}

#[test]
fn bursts_and_gaps_are_as_long_as_the_chain_says() {
    // Table, mean burst and mean gap in blocks. links.md section 8 for the first three; 1/r and 1/p for the last.
    for (table, burst, gap) in [
        (json!({"kind": "rayleigh"}), 13.67, 123.0),
        (json!({"kind": "rayleigh", "doppler": 0.08}), 1.86, 16.8),
        (json!({"kind": "rayleigh", "fer": "1%"}), 4.07, 403.0),
        (json!({"kind": "gilbert-elliott", "p": 0.02, "r": 0.1}), 10.0, 50.0),
    ] {
        let all = losses(&table, 9, 2_000_000);
        let bad = all.iter().filter(|&&lost| lost).count() as f64;
        let bursts = all.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        // A geometric number deviates by nearly its mean: the mean of n by a share of 1/sqrt(n), of at least 4900; four of them,
        // and the digits of the table.
        let tolerance = 4.0 / bursts.sqrt() + 0.002;
        assert!((bad / bursts / burst - 1.0).abs() < tolerance, "{table}: bursts of {}", bad / bursts);
        let gaps = (all.len() as f64 - bad) / bursts;
        assert!((gaps / gap - 1.0).abs() < tolerance, "{table}: gaps of {gaps}");
    }
}

#[test]
fn a_link_loses_what_departs_in_a_bad_interval() {
    // The recording loses from 30 to 50 ms and from 70 ms of each 80 ms. A packet of 1000 B takes 8 ms at 1 Mbit/s, so
    // departures are at 8, 16, 24, 32 ...
    let table = json!({"kind": "constant", "rate": "1Mbit/s", "delay": "1ms", "loss": {"kind": "recording", "file": "errors"}});
    let arrivals: Vec<_> = (0..40).map(|number| (Time::ZERO, segment(0, number, 1000))).collect();
    let seen =
        drive(&mut *unlimited(&table, 1), &arrivals, Departures::Unwatched, Polling::AsAsked, Time::NEVER);
    for outcome in seen {
        let departs = 8 * (u64::from(outcome.number) + 1) % 80;
        let bad = (30..50).contains(&departs) || departs >= 70;
        assert_eq!(outcome.what != What::Delivered, bad, "{outcome:?}");
    }
}
