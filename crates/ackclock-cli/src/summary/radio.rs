//! Table of the radio network by direction: queues, PDUs, HARQ blocks and lost packets.

use ackclock_core::results::{RadioResult, RunResult};

use super::{Measure, Unit, table};
use crate::statistics::Confidence;
use crate::table::Table;

const RADIO: &[Measure<RadioResult>] = &[
    Measure { heading: "RLC queue p50 ms", unit: Unit::Plain, of: |radio| radio.controller_queue_ms.p50 },
    Measure { heading: "RLC queue p95 ms", unit: Unit::Plain, of: |radio| radio.controller_queue_ms.p95 },
    Measure {
        heading: "base station p50 ms",
        unit: Unit::Plain,
        of: |radio| radio.base_station_queue_ms.as_ref()?.p50,
    },
    Measure {
        heading: "base station p95 ms",
        unit: Unit::Plain,
        of: |radio| radio.base_station_queue_ms.as_ref()?.p95,
    },
    Measure {
        heading: "RLC retr. %",
        unit: Unit::Share,
        of: |radio| share(radio.rlc.retransmitted, radio.rlc.pdus),
    },
    Measure {
        heading: "duplicates %",
        unit: Unit::Share,
        of: |radio| share(radio.rlc.duplicates, radio.rlc.pdus),
    },
    Measure {
        heading: "HARQ retr. %",
        unit: Unit::Share,
        of: |radio| radio.harq.and_then(|harq| share(harq.repeated, harq.blocks)),
    },
    Measure { heading: "padding %", unit: Unit::Share, of: |radio| radio.padding },
];

/// Lost packets by cause. Causes without a lost packet are omitted from the table.
const LOST: &[Measure<RadioResult>] = &[
    Measure { heading: "lost: MaxDAT", unit: Unit::Plain, of: |radio| Some(radio.lost_by.max_dat as f64) },
    Measure { heading: "lost: reset", unit: Unit::Plain, of: |radio| Some(radio.lost_by.reset as f64) },
    Measure { heading: "lost: air", unit: Unit::Plain, of: |radio| Some(radio.lost_by.air as f64) },
    Measure {
        heading: "lost: base station",
        unit: Unit::Plain,
        of: |radio| Some(radio.lost_by.base_station as f64),
    },
    Measure {
        heading: "lost: hand-over",
        unit: Unit::Plain,
        of: |radio| Some(radio.lost_by.handover as f64),
    },
    Measure { heading: "lost: aged", unit: Unit::Plain, of: |radio| Some(radio.lost_by.aged as f64) },
];

fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

/// Creates the table of the radio network: two rows for each point, named by the cells of the point and the direction.
/// Returns `None` unless the radio network was measured.
pub(super) fn of_points<'a>(
    names: &[&str],
    points: impl Iterator<Item = (Vec<String>, &'a [&'a RunResult])>,
    confidence: Confidence,
) -> Option<Table> {
    let mut rows = Vec::new();
    for (cells, runs) in points {
        let measured = || runs.iter().filter(|run| run.users.iter().any(|user| user.radio.is_some()));
        let down: Vec<_> = measured().filter_map(|run| run.bottleneck.radio.as_deref()).collect();
        let up: Vec<_> = measured().filter_map(|run| run.uplink.radio.as_deref()).collect();
        for (direction, radio) in [("down", down), ("up", up)] {
            if !radio.is_empty() {
                rows.push(([cells.as_slice(), &[direction.to_owned()]].concat(), radio));
            }
        }
    }
    let occurs = |cause: &&Measure<RadioResult>| {
        rows.iter().flat_map(|(_, radio)| radio).any(|radio| (cause.of)(radio) > Some(0.0))
    };
    let measures = RADIO.iter().chain(LOST.iter().filter(occurs));
    let names = [names, &["radio"]].concat();
    (!rows.is_empty()).then(|| table(&names, &rows, measures, confidence))
}
