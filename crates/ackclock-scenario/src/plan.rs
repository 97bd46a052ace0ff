//! The flows of a run by number, each with its user and its cell.
//!
//! Where there are several cells they are alike: each has the flows of the file and the users of the file. Flows and users are
//! numbered cell by cell.

use ackclock_core::{ConfigError, Time};
use ackclock_link::CellUser;

use crate::Tables;
use crate::tables::FlowGroup;

/// One flow of a run, or one client whose flows come and go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowPlan {
    /// Its number in the run.
    pub(crate) id: u32,
    /// Its group.
    pub(crate) group: usize,
    /// Its number in the group.
    pub(crate) number: u32,
    /// Its user, numbered through all cells.
    pub(crate) user: u32,
    /// Number of its user in its cell.
    pub(crate) cell_user: u32,
    /// Its cell, where there are several.
    pub(crate) cell: u32,
    /// When it begins.
    pub(crate) start: Time,
}

impl FlowPlan {
    /// Name of its random streams. Further cells change no flow of the first.
    pub(crate) fn name(&self) -> String {
        let Self { cell, group, number, .. } = self;
        if *cell == 0 { format!("{group}.{number}") } else { format!("cell {cell}/{group}.{number}") }
    }
}

/// Every flow by number.
pub(crate) fn flows(tables: &Tables) -> Result<Vec<FlowPlan>, ConfigError> {
    let users = tables.edge.cell_users().map_err(|error| error.under("edge"))?;
    let cell_users = users.map_or(0, |users| users.iter().map(|user| user.count).sum());
    let mut plans = Vec::new();
    for cell in 0..tables.edge.radio().cells {
        for (group, table) in tables.flow.iter().enumerate() {
            let FlowGroup { count, start, stagger, user, .. } = *table;
            plans.reserve_exact(count as usize);
            for number in 0..count {
                let start = Time::ZERO + start + stagger * u64::from(number);
                let cell_user = users.map_or(user, |users| user_in_cell(users, user as usize, number));
                let (id, user) = (plans.len() as u32, cell * cell_users + cell_user);
                plans.push(FlowPlan { id, group, number, user, cell_user, cell, start });
            }
        }
    }
    Ok(plans)
}

/// The user of flow number `number` of a group that names the table of users at `table`: they are taken in turn.
fn user_in_cell(users: &[CellUser], table: usize, number: u32) -> u32 {
    let before: u32 = users[..table].iter().map(|user| user.count).sum();
    before + number % users[table].count
}
