//! Classes of service: flows of a user that have a queue and RLC ends of their own.
//!
//! The flows without a class have the settings of the edge, weight 1 and priority 1. The base station sends the PDUs of
//! a user by the priorities of their classes, and so does a dedicated channel.

use std::collections::BTreeSet;

use ackclock_core::{ConfigError, Size};
use ackclock_link::ClassConfig;
use serde_json::{Value, json};

use crate::cell::Rank;
use crate::umts_rlc_am::RlcConfig;

/// Maximum number of tables `[[edge.class]]`.
const MOST_CLASSES: usize = 4;
const MOST_WEIGHT: u16 = 1000;

/// Checks the classes of an edge, and returns them with the RLC settings of an edge with the settings `usual`.
///
/// # Errors
/// Fails with the invalid key.
pub(super) fn resolved(classes: &[ClassConfig], usual: &RlcConfig) -> Result<Vec<Class>, ConfigError> {
    if classes.len() > MOST_CLASSES {
        let message = format!("{} classes; an edge has at most {MOST_CLASSES}", classes.len());
        return Err(ConfigError::new("class", message));
    }
    let (mut names, mut points) = (BTreeSet::new(), BTreeSet::new());
    let mut resolved = Vec::new();
    for (index, class) in classes.iter().enumerate() {
        let rlc = check(class, &mut names, &mut points).and_then(|()| rlc_of(class, usual));
        let rlc = rlc.map_err(|error| error.under(&format!("class.{index}")))?;
        resolved.push(Class { rlc, rank: Rank { priority: class.priority, weight: class.weight } });
    }
    Ok(resolved)
}

/// Checks a class, whose name and DSCPs are none of the given ones.
fn check<'a>(
    class: &'a ClassConfig,
    names: &mut BTreeSet<&'a str>,
    points: &mut BTreeSet<u8>,
) -> Result<(), ConfigError> {
    if class.name.is_empty() || !names.insert(&class.name) {
        let message = format!("\"{}\" is empty or the name of another class", class.name);
        return Err(ConfigError::new("name", message));
    }
    if let Some(point) = class.dscp.iter().find(|&&point| point > MOST_DSCP) {
        return Err(ConfigError::new("dscp", format!("{point} is not from 0 to {MOST_DSCP}")));
    }
    if let Some(point) = class.dscp.iter().find(|&&point| !points.insert(point)) {
        return Err(ConfigError::new("dscp", format!("{point} already selects a class; list a DSCP once")));
    }
    if !(1..=MOST_WEIGHT).contains(&class.weight) {
        let message = format!("{} is not from 1 to {MOST_WEIGHT}", class.weight);
        return Err(ConfigError::new("weight", message));
    }
    if class.buffer == Some(Size::Packets(0)) {
        return Err(ConfigError::new("buffer", "0p: packets queue for the radio; use at least \"1p\""));
    }
    Ok(())
}

/// Returns the RLC settings of a class on an edge with the RLC settings `usual`.
fn rlc_of(class: &ClassConfig, usual: &RlcConfig) -> Result<RlcConfig, ConfigError> {
    let read = |error: serde_json::Error| ConfigError::new("rlc", error.to_string());
    let own = Value::Object(class.rlc.clone());
    let mut table = serde_json::to_value(usual).map_err(read)?;
    if own.get("mode").is_some_and(|mode| *mode != table["mode"]) {
        table = json!({ "pdu": usual.pdu });
        if usual.is_by_packet() {
            // PDCP above the RLC does not depend on the mode.
            overlay(&mut table, &json!({ "order": usual.order, "reordering": usual.reordering }));
        }
    }
    overlay(&mut table, &own);
    let rlc: RlcConfig = serde_json::from_value(table).map_err(read)?;
    rlc.check().map_err(|error| error.under("rlc"))?;
    if rlc.pdu != usual.pdu {
        let message = format!("{} is not {}: all classes have PDUs of equal size", rlc.pdu, usual.pdu);
        return Err(ConfigError::new("rlc.pdu", message));
    }
    Ok(rlc)
}

/// Largest DSCP, RFC 2474.
const MOST_DSCP: u8 = 63;

/// Replaces the values in `table` by those in `other`, key by key.
fn overlay(table: &mut Value, other: &Value) {
    match (table, other) {
        (Value::Object(table), Value::Object(other)) => {
            for (key, value) in other {
                overlay(table.entry(key).or_insert(Value::Null), value);
            }
        }
        (table, other) => *table = other.clone(),
    }
}

/// Settings of a class that its channels need.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub(crate) rlc: RlcConfig,
    pub(super) rank: Rank,
}

impl Class {
    /// Class of the flows that belong to no other class.
    pub(crate) fn unnamed(rlc: RlcConfig) -> Self {
        Self { rlc, rank: Rank::default() }
    }
}
