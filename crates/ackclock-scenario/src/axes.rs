//! Sweeps: the keys of `[sweep]` and the combinations of their values.

use std::collections::BTreeSet;

use ackclock_core::ConfigError;
use ackclock_link::Files;
use serde_json::{Map, Value};

use crate::memory;
use crate::scenario::Override;
use crate::tree::{Origin, Tree};
use crate::{Scenario, ScenarioError};

/// One combination of the values of a sweep.
#[derive(Clone, Debug)]
pub struct Point {
    /// Keys of the sweep, with their values at this point.
    pub labels: Vec<(String, Value)>,
    /// Scenario with the swept values of this point.
    pub scenario: Scenario,
}

/// Axis of a sweep: a key, and the values that the key takes.
#[derive(Clone, Debug)]
pub struct Axis {
    pub(crate) key: String,
    values: Vec<Value>,
    origin: Origin,
}

impl Axis {
    /// Creates an axis over the values of `key`. `place` names the origin of the axis in error messages, for example
    /// `--buffers 4p,10p`.
    pub fn new(key: &str, values: Vec<Value>, place: &str) -> Self {
        Self { key: key.to_owned(), values, origin: Origin::Override(place.into()) }
    }

    /// Key that varies along the axis.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl Scenario {
    /// Returns every combination of the values of `[sweep]`; the last key varies fastest. A scenario without a sweep
    /// has one point without labels.
    ///
    /// # Errors
    /// Fails if a key or value of the sweep is invalid.
    pub fn points(&self) -> Result<Vec<Point>, ScenarioError> {
        self.points_over(&self.axes()?)
    }

    /// Returns every combination of the values of `axes`. A key set by an override keeps the override's value at all
    /// points.
    ///
    /// # Errors
    /// Fails if a key or value is invalid, or an override sets a part of a varied value.
    pub fn points_over(&self, axes: &[Axis]) -> Result<Vec<Point>, ScenarioError> {
        axes.iter().try_for_each(|axis| self.check_overrides_beside(axis))?;
        let count = axes.iter().fold(1, |count: u64, axis| count.saturating_mul(axis.values.len() as u64));
        memory::check("sweep", &format!("{count} combinations"), count.saturating_mul(memory::POINT))
            .map_err(|error| self.error(&error))?;
        let mut points = vec![(Vec::new(), Vec::new())];
        for axis in axes {
            points = self.along(axis, &points);
        }
        let build = |(labels, overrides)| Ok(Point { labels, scenario: self.with(overrides)? });
        let points: Vec<Point> = points.into_iter().map(build).collect::<Result<_, ScenarioError>>()?;
        let runs = points.iter().map(|point| u64::from(point.scenario.tables().runs)).sum::<u64>();
        memory::check("runs", &format!("{runs} runs of all combinations"), runs * memory::RESULT)
            .map_err(|error| self.error(&error))?;
        Ok(points)
    }

    /// Checks everything that needs no run, including all points of the sweep and all input files. Returns the points.
    ///
    /// # Errors
    /// Returns the same errors as [`Scenario::load`].
    pub fn check(&self, files: &dyn Files) -> Result<Vec<Point>, ScenarioError> {
        // A recording that several points use is read only once.
        let points = self.points()?;
        let scenarios = std::iter::once(self).chain(points.iter().map(|point| &point.scenario));
        first_of_each(scenarios, |scenario| scenario.links()).try_for_each(|one| one.check_links(files))?;
        Ok(points)
    }

    fn check_links(&self, files: &dyn Files) -> Result<(), ScenarioError> {
        self.tables().edge.nominal(files).map(drop).map_err(|error| self.error(&error.under("edge")))
    }

    /// Link tables as text, to compare two scenarios.
    fn links(&self) -> String {
        let edge = self.tables().edge.radio();
        format!("{} {} {}", edge.bearer, edge.down, edge.up)
    }

    /// Combines each of `points` with each value of `axis`.
    fn along(&self, axis: &Axis, points: &[Combination]) -> Vec<Combination> {
        let set = self.overrides().iter().rev().find(|set| set.key == axis.key);
        let values = set.map_or(axis.values.as_slice(), |set| std::slice::from_ref(&set.value));
        let with = |(labels, overrides): &Combination, value: &Value| {
            let (mut labels, mut overrides) = (labels.clone(), overrides.clone());
            labels.push((axis.key.clone(), value.clone()));
            if set.is_none() {
                overrides.push(Override {
                    key: axis.key.clone(),
                    value: value.clone(),
                    origin: axis.origin.clone(),
                });
            }
            (labels, overrides)
        };
        points.iter().flat_map(|point| values.iter().map(move |value| with(point, value))).collect()
    }

    /// Rejects an override that sets only a part of an axis. An override must replace the entire axis or be unrelated
    /// to the axis.
    fn check_overrides_beside(&self, axis: &Axis) -> Result<(), ScenarioError> {
        let said: Vec<Vec<String>> =
            axis.values.iter().flat_map(|value| leaves(path(&axis.key), value)).collect();
        let lost = self.overrides().iter().filter(|set| set.key != axis.key).find(|set| {
            leaves(path(&set.key), &set.value).iter().any(|one| said.iter().any(|other| alike(one, other)))
        });
        lost.map_or(Ok(()), |set| {
            Err(ScenarioError {
                place: set.origin.place(self.name()),
                key: set.key.clone(),
                message: format!(
                    "{} varies `{}`, which includes this key: set `{1}` itself, or remove it from the sweep",
                    axis.origin.place(self.name()),
                    axis.key
                ),
            })
        })
    }

    /// Keys of the sweep, with their values.
    pub(crate) fn axes(&self) -> Result<Vec<Axis>, ScenarioError> {
        let Some(sweep) = self.sweep() else { return Ok(Vec::new()) };
        let Value::Object(table) = sweep.value() else {
            let error = ConfigError::new("sweep", "is not a table of keys with lists of values");
            return Err(ScenarioError { place: sweep.origin.place(self.name()), ..self.error(&error) });
        };
        let mut axes = Vec::new();
        flatten("", table, &mut axes);
        axes.into_iter().map(|(key, values)| self.axis(sweep, key, values)).collect()
    }

    fn axis(&self, sweep: &Tree, key: String, values: Value) -> Result<Axis, ScenarioError> {
        let origin = sweep.get(&key).map_or(&sweep.origin, |tree| &tree.origin).clone();
        match values {
            Value::Array(values) if !values.is_empty() => Ok(Axis { key, values, origin }),
            other => Err(ScenarioError {
                place: origin.place(self.name()),
                key: format!("sweep.{key}"),
                message: format!("{other} is not a list of values"),
            }),
        }
    }
}

/// Labels of a point, with the overrides that the point applies.
type Combination = (Vec<(String, Value)>, Vec<Override>);

/// Flattens nested tables of sweep keys, because a nested table is equivalent to a quoted key (`"edge.buffer"`).
fn flatten(prefix: &str, table: Map<String, Value>, axes: &mut Vec<(String, Value)>) {
    for (key, value) in table {
        let key = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
        match value {
            Value::Object(below) => flatten(&key, below, axes),
            values => axes.push((key, values)),
        }
    }
}

fn path(key: &str) -> Vec<String> {
    key.split('.').map(str::to_owned).collect()
}

/// Paths of the leaves of a value. A component's kind has the path of the component itself, whether the kind is written
/// as a name or under `kind`.
fn leaves(mut path: Vec<String>, value: &Value) -> Vec<Vec<String>> {
    let below = |key: String, value| leaves([path.clone(), vec![key]].concat(), value);
    match value {
        Value::Object(table) => table.iter().flat_map(|(key, value)| below(key.clone(), value)).collect(),
        Value::Array(items) if items.iter().any(Value::is_object) => {
            items.iter().enumerate().flat_map(|(number, item)| below(number.to_string(), item)).collect()
        }
        _ => {
            path.pop_if(|last| last == "kind");
            vec![path]
        }
    }
}

/// Whether two key paths overlap. A path without a list index matches every table of the list.
fn alike(one: &[String], other: &[String]) -> bool {
    let is_number = |key: &String| key.parse::<usize>().is_ok();
    match (one, other) {
        ([], []) => true,
        ([a, one @ ..], [b, other @ ..]) if a == b => alike(one, other),
        ([a, ..], [b, ..]) if is_number(a) && is_number(b) => false,
        ([a, rest @ ..], _) if is_number(a) => alike(rest, other),
        (_, [b, rest @ ..]) if is_number(b) => alike(one, rest),
        _ => false,
    }
}

/// Removes items whose key already occurred earlier in the list.
fn first_of_each<T, K: Ord>(
    items: impl Iterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> impl Iterator<Item = T> {
    let mut seen = BTreeSet::new();
    items.filter(move |item| seen.insert(key(item)))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;

    use super::*;

    thread_local!(static COMPARED: Cell<u32> = const { Cell::new(0) });

    /// A number that counts how often it is compared.
    #[derive(Eq)]
    struct Counted(u32);

    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            self.cmp(other).is_eq()
        }
    }

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl Ord for Counted {
        fn cmp(&self, other: &Self) -> Ordering {
            COMPARED.set(COMPARED.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    #[test]
    fn an_item_is_compared_with_few_others_however_many_there_are() {
        let compared = |count: u32| {
            COMPARED.set(0);
            let items = (0..count).chain(0..count);
            assert!(first_of_each(items, |&item| Counted(item)).eq(0..count));
            f64::from(COMPARED.get()) / f64::from(count)
        };
        // log2(10 000) / log2(1000) = 1.33
        assert!(compared(10_000) < 2.0 * compared(1000));
    }
}
