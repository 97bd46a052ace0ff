//! Rows of a foreign recording before their conversion to a table of rates.

use ackclock_core::{Rate, Span};
use ackclock_link::Loss;

use super::super::samples::{Sample, Samples};
use super::super::{TraceError, csv};
use super::{Missing, Options};

/// One measured row of a recording; values that were not measured are `None`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Row {
    /// Index of the row's line in the file.
    pub(super) line: usize,
    /// Start time of the row, seconds.
    pub(super) begins: f64,
    /// End of the time that the rate covers, if the recording states it, seconds.
    pub(super) ends: Option<f64>,
    /// Link rate, bit/s.
    pub(super) rate: Option<f64>,
    /// One-way delay of the link, seconds.
    pub(super) delay: Option<f64>,
    /// Share of packets that the link lost, from 0 to 1.
    pub(super) loss: Option<f64>,
}

/// Minimum number of rows; fewer rows do not show how a link varies.
const LEAST_ROWS: usize = 10;
const MOST_ROWS: usize = 10_000_000;
/// Largest rate allowed in a row, bit/s, and largest delay, seconds.
const MOST_BPS: f64 = 1e15;
const MOST_DELAY: f64 = 1e6;

/// Finished table of rates.
pub(super) struct Finished {
    pub(super) samples: Samples,
    /// Number of rows that had no rate, and of gaps between rows.
    pub(super) missing: usize,
    pub(super) even: bool,
    /// What was made of gaps between rows.
    pub(super) note: Option<String>,
}

/// Combines rows into a table: each row is valid until the next; the last is valid until `end`, or as long as the row
/// before it.
pub(super) fn finish(
    mut rows: Vec<Row>,
    end: Option<f64>,
    options: &Options,
) -> Result<Finished, TraceError> {
    if options.sort {
        rows.sort_by(|one, next| one.begins.total_cmp(&next.begins));
    }
    check(&rows)?;
    let gaps = gaps(&rows);
    let note = of_gaps(&rows, &gaps, options)?;
    if options.missing == Missing::Zero {
        fill(&mut rows, &gaps);
    }
    let missing = gaps.len() + rows.iter().filter(|row| row.rate.is_none()).count();
    let mut held = Row::default();
    for row in &mut rows {
        row.rate = Some(match (row.rate, options.missing) {
            (Some(rate), _) => rate,
            (None, Missing::Zero) => 0.0,
            (None, Missing::Hold) => held.rate.unwrap_or(0.0),
            (None, Missing::Refuse) => {
                return Err(TraceError::at(
                    row.line,
                    "no rate is given; --missing hold keeps the one before, --missing zero takes 0",
                ));
            }
        });
        row.delay = row.delay.or(held.delay);
        held = *row;
    }
    let (first, last) = (rows[0].begins, rows[rows.len() - 1].begins);
    let lasts = last - rows[rows.len() - 2].begins;
    let samples: Result<Vec<Sample>, TraceError> = rows.iter().map(|row| sample(row, first)).collect();
    let length = csv::since(first, end.filter(|&end| end > last).unwrap_or(last + lasts));
    let steps = || rows.windows(2).map(|pair| pair[1].begins - pair[0].begins);
    let even = steps().all(|step| (step - lasts).abs() <= 0.01 * lasts);
    Ok(Finished { samples: Samples::new(samples?, length)?, missing, even, note })
}

/// Smallest step between two rows, in median steps, that shows that rows between them are missing.
const GAP: f64 = 3.0;

/// Rows that are followed by missing rows: index of the row, and end of the time that it covers.
fn gaps(rows: &[Row]) -> Vec<(usize, f64)> {
    let mut steps: Vec<f64> = rows.windows(2).map(|pair| pair[1].begins - pair[0].begins).collect();
    steps.sort_by(f64::total_cmp);
    let median = steps[steps.len() / 2];
    let gap = |(index, pair): (usize, &[Row])| {
        let covered = pair[0].ends.unwrap_or(pair[0].begins + median);
        let is_long =
            pair[1].begins - pair[0].begins > GAP * median && pair[1].begins - covered > median / 2.0;
        is_long.then_some((index, covered))
    };
    rows.windows(2).enumerate().filter_map(gap).collect()
}

/// Refuses gaps, or says what is made of them.
fn of_gaps(rows: &[Row], gaps: &[(usize, f64)], options: &Options) -> Result<Option<String>, TraceError> {
    let Some(&(first, covered)) = gaps.first() else { return Ok(None) };
    let after = &rows[first + 1];
    let (from, to) = (covered - rows[0].begins, after.begins - rows[0].begins);
    let treated = match options.missing {
        Missing::Refuse => {
            let message = format!(
                "no row from {from:.3} s to {to:.3} s of the recording; --missing hold keeps the rate before, --missing zero takes 0"
            );
            return Err(TraceError::at(after.line, message));
        }
        Missing::Hold => "the rate before is held",
        Missing::Zero => "the rate is 0 there",
    };
    let total: f64 = gaps.iter().map(|&(index, covered)| rows[index + 1].begins - covered).sum();
    Ok(Some(format!(
        "{} gaps of {total:.3} s together without rows, the first from {from:.3} s to {to:.3} s (line {}): {treated}",
        gaps.len(),
        after.line + 1
    )))
}

/// Inserts a row of rate 0 into each gap.
fn fill(rows: &mut Vec<Row>, gaps: &[(usize, f64)]) {
    let empty = |&(index, covered): &(usize, f64)| Row {
        line: rows[index].line,
        begins: covered,
        rate: Some(0.0),
        ..Row::default()
    };
    let filled: Vec<Row> = gaps.iter().map(empty).collect();
    rows.extend(filled);
    rows.sort_by(|one, next| one.begins.total_cmp(&next.begins));
}

fn check(rows: &[Row]) -> Result<(), TraceError> {
    if rows.len() < LEAST_ROWS {
        return Err(TraceError::whole(format!(
            "it has {} rows; fewer than {LEAST_ROWS} are no recording",
            rows.len()
        )));
    }
    if rows.len() > MOST_ROWS {
        return Err(TraceError::whole(format!("it has {} rows; at most {MOST_ROWS} are read", rows.len())));
    }
    for pair in rows.windows(2) {
        let (before, after) = (pair[0].begins, pair[1].begins);
        if after < before {
            return Err(TraceError::at(
                pair[1].line,
                format!(
                    "the time {after} s follows {before} s: times increase; --sort puts the rows in order"
                ),
            ));
        }
        if after == before {
            return Err(TraceError::at(pair[1].line, format!("a second row at the time {after} s")));
        }
    }
    Ok(())
}

fn sample(row: &Row, first: f64) -> Result<Sample, TraceError> {
    let within = |name: &str, value: Option<f64>, most: f64| {
        let value = value.unwrap_or(0.0);
        let message = || TraceError::at(row.line, format!("{name} {value} is not from 0 to {most}"));
        (0.0..=most).contains(&value).then_some(value).ok_or_else(message)
    };
    Ok(Sample {
        begins: csv::since(first, row.begins),
        rate: Rate::from_bps_f64(within("the rate in bit/s", row.rate, MOST_BPS)?),
        delay: Span::from_secs_f64(within("the delay in seconds", row.delay, MOST_DELAY)?),
        loss: Loss::try_from(within("the share lost", row.loss, 1.0)?)
            .map_err(|why| TraceError::at(row.line, why))?,
    })
}
