//! # ackclock-scenario
//!
//! Runs scenarios. [`Scenario`] reads and checks the text, and [`Scenario::points`] expands a sweep. [`run`] builds the
//! network, simulates it and collects the results. A run can also produce a [`Series`] and a packet capture.

pub mod acks;
mod active;
mod axes;
mod batch;
mod capture;
mod catalogue;
mod chance;
mod common_time;
mod disk;
mod error;
mod flow_group;
mod hint;
mod idle;
mod inputs;
mod island;
mod kept;
mod kind;
mod limits;
mod link_share;
mod measure;
mod memory;
mod packet;
mod plan;
pub mod presets;
mod probe;
mod progress;
mod recordings;
mod relay;
mod row;
mod run;
mod scenario;
mod series;
mod tables;
mod tally;
mod traffic;
mod transfers;
mod tree;
mod unused;

pub use ackclock_core::results::RunResult;
pub use ackclock_link::{Files, NoFiles};
pub use axes::{Axis, Point};
pub use batch::{BatchEvent, Job, in_parallel, jobs, json_line, threads_of_each};
pub use catalogue::{Component, Kind, catalogue, catalogue_json, component_json, table_alone};
pub use chance::said_of_begins;
pub use disk::{DiskFiles, Reading};
pub use error::{RunError, ScenarioError};
pub use flow_group::{AckSize, FlowGroup, Headers, PathTable};
pub use inputs::Inputs;
pub use kept::{Kept, KeptError, Others, Want};
pub use kind::Dropped;
pub use limits::Limit;
pub use measure::Measure;
pub use progress::{Progress, Stage};
pub use recordings::{certainties, said_of_recordings};
pub use relay::RelayTable;
pub use row::{NotARun, Row};
pub use run::{Outcome, RunOptions, run};
pub use scenario::{Scenario, dropped_from};
pub use series::Series;
pub use tables::Tables;
