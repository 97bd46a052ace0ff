//! Numbered list of the flows of a run, each with its user and its cell.
//!
//! All cells are identical: each cell has all flows and users of the file. Flows and users are numbered cell by cell.

use ackclock_core::{ConfigError, Span, Streams, Time};
use ackclock_link::CellUser;

use crate::FlowGroup;
use crate::Tables;

/// One flow of a run, or one client with short connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowPlan {
    /// Number of the flow in the run.
    pub(crate) id: u32,
    /// Index of the flow's group.
    pub(crate) group: usize,
    /// Number of the flow in its group.
    pub(crate) number: u32,
    /// User of the flow, numbered across all cells.
    pub(crate) user: u32,
    /// User of the flow, numbered within the cell.
    pub(crate) cell_user: u32,
    /// Cell of the flow; 0 if there is only one cell.
    pub(crate) cell: u32,
    /// Start time of the flow.
    pub(crate) start: Time,
}

impl FlowPlan {
    /// Name of the flow's random streams. In the first cell the name does not depend on the number of cells.
    pub(crate) fn name(&self) -> String {
        let Self { cell, group, number, .. } = self;
        if *cell == 0 { format!("{group}.{number}") } else { format!("cell {cell}/{group}.{number}") }
    }
}

/// All flows of a run, ordered by number.
pub(crate) fn flows(tables: &Tables, streams: &Streams) -> Result<Vec<FlowPlan>, ConfigError> {
    let users = tables.edge.cell_users().map_err(|error| error.under("edge"))?;
    let cell_users = users.map_or(0, |users| users.iter().map(|user| user.count).sum());
    let mut plans = Vec::new();
    for cell in 0..tables.edge.radio().cells {
        for (group, table) in tables.flow.iter().enumerate() {
            let FlowGroup { count, start, stagger, spread, user, .. } = *table;
            plans.reserve_exact(count as usize);
            for number in 0..count {
                let start = Time::ZERO + start + stagger * u64::from(number);
                let cell_user = users.map_or(user, |users| user_in_cell(users, user as usize, number));
                let (id, user) = (plans.len() as u32, cell * cell_users + cell_user);
                let mut plan = FlowPlan { id, group, number, user, cell_user, cell, start };
                if spread != Span::ZERO {
                    plan.start += drawn(spread, streams, &plan);
                }
                plans.push(plan);
            }
        }
    }
    Ok(plans)
}

/// Random delay of a flow's start, at most `spread`.
fn drawn(spread: Span, streams: &Streams, flow: &FlowPlan) -> Span {
    let chance = streams.stream(&format!("{}/start", flow.name())).unit();
    Span::from_secs_f64(spread.as_secs_f64() * chance)
}

/// User of flow `number` of a group. The users of the `[[edge.user]]` table with index `table` get the flows in turn.
fn user_in_cell(users: &[CellUser], table: usize, number: u32) -> u32 {
    let before: u32 = users[..table].iter().map(|user| user.count).sum();
    before + number % users[table].count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    /// Start times of the flows of a run, in milliseconds.
    fn starts(keys: &str, run: u64) -> Vec<u64> {
        let scenario = Scenario::load("starts.toml", &format!("[[flow]]\n{keys}"), &[]).expect("it is right");
        let plans = flows(scenario.tables(), &Streams::new(1, run)).expect("it was checked");
        plans.iter().map(|plan| plan.start.as_nanos() / 1_000_000).collect()
    }

    #[test]
    fn flows_begin_together_or_apart_or_at_random_within_a_time() {
        assert_eq!(starts("count = 3\nstart = \"2s\"", 0), [2000; 3]);
        let apart = "count = 3\nstart = \"2s\"\nstagger = \"50ms\"";
        assert_eq!(starts(apart, 0), [2000, 2050, 2100]);
        let drawn = starts("count = 1000\nstart = \"2s\"\nspread = \"1s\"", 0);
        assert!(drawn.iter().all(|start| (2000..3000).contains(start)), "{drawn:?}");
        // The mean start time is 500 ms, with a standard deviation of 1 s / sqrt(12 x 1000) = 9 ms.
        let mean = drawn.iter().sum::<u64>() / 1000;
        assert!(mean.abs_diff(2500) < 4 * 9, "{mean}");
    }

    #[test]
    fn the_time_is_drawn_anew_for_each_run_and_a_further_flow_changes_no_other() {
        let of = |count: u32, run| starts(&format!("count = {count}\nspread = \"1s\""), run);
        assert_eq!(of(4, 0), of(4, 0));
        assert_ne!(of(4, 0), of(4, 1));
        assert_eq!(of(4, 0)[..3], of(3, 0));
    }
}
