//! Subscribers of a box: each has its own observer, and so its own estimates and allowance.
//!
//! A subscriber is listed from the first data of one of its connections on. Addresses and connections that only appear
//! in a scan have no data, so a scan creates no subscriber and removes none. A subscriber without such a connection, such as
//! one with only QUIC, is listed once it had [`MUCH`] other traffic; nothing can be measured of its queue.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use ackclock_core::{ConfigError, Histogram, Span, Time, name_of};
use serde::{Deserialize, Serialize};

use crate::clip::{MOST_FLOWS, MOST_SUBSCRIBERS};
use crate::config::{Policy, Rule};
use crate::maps::{Allowance, Record, Totals};
use crate::observers::{self, ACTIVE, Observer};
use crate::recent::{RecentDelays, RecentSums};

/// Bytes outside of known connections for which a subscriber without any such connection is listed.
pub const MUCH: u64 = 64 * 1024;
/// Maximum number of listed subscribers up to which one without a known connection is listed, so that there is room for
/// those that can be measured.
const MOST_OTHERS: usize = MOST_SUBSCRIBERS / 2;
/// Maximum number of observed connections of all subscribers together. An observed connection takes about 4 kB; the
/// kernel lowers the windows of the other connections by the same allowance.
pub const MOST_CONNECTIONS: usize = 16_384;
/// Maximum number of connections that are counted as not observed; the kernel knows no more connections with data.
const MOST_UNOBSERVED: usize = MOST_FLOWS as usize;
/// Maximum number of connections without data whose first records are kept.
const MOST_OPENINGS: usize = 1024;
/// Maximum number of records that are kept of a connection without data.
const MOST_HELD: usize = 3;
/// Time without data after which a subscriber is forgotten.
const QUIET: Span = Span::from_secs(600);
/// Time without data after which a subscriber is forgotten if the table of subscribers is nearly full.
const QUIET_IF_FULL: Span = Span::from_secs(10);

/// Measurements of one subscriber in the last ten seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubscriberReport {
    /// Address or prefix of the subscriber; "all" if all traffic belongs to one subscriber.
    pub key: String,
    /// Name of the subscriber in the list of subscribers.
    pub name: Option<String>,
    /// Name of the subscriber's regulator.
    pub regulator: String,
    /// Whether the subscriber's windows are lowered if the box acts.
    pub acted_on: bool,
    /// Throughput from the servers in the last ten seconds, bit/s.
    pub rate_bps: f64,
    /// Bytes from the servers since the subscriber was listed.
    pub bytes: u64,
    /// Share of this subscriber in the bytes of all listed subscribers in the last ten seconds, 0 to 1.
    pub traffic_share: Option<f64>,
    /// Number of connections that carried data in the last ten seconds.
    pub connections: usize,
    /// Median of the packets' estimated queueing delays in the last ten seconds, ms.
    pub wait_p50_ms: Option<f64>,
    /// 95th percentile of the packets' estimated queueing delays in the last ten seconds, ms.
    pub wait_p95_ms: Option<f64>,
    /// Packets of one bandwidth-delay product, if the fixed buffer holds fewer and so may limit the rate.
    pub packets_missed: Option<u32>,
}

struct Subscriber {
    rule: Rule,
    observer: Observer,
    /// Estimated queueing delays of the subscriber's packets.
    waits: RecentDelays,
    /// Time of the last data.
    last: Time,
    /// Time of the last traffic of any protocol.
    last_traffic: Time,
    /// Latest allowance; it stays in force while the subscriber is quiet.
    allowance: Option<Allowance>,
    /// Allowance that the kernel has.
    written: Option<Allowance>,
    totals: Totals,
    sums: RecentSums<u64>,
    /// Bytes from the servers in the last ten seconds.
    recent_bytes: u64,
    rate_bps: f64,
}

/// All subscribers with recent traffic.
pub struct Subscribers {
    policy: Policy,
    table: BTreeMap<Ipv6Addr, Subscriber>,
    /// First records of connections without data, by connection.
    openings: BTreeMap<u32, Vec<Record>>,
    connections: usize,
    /// Time of the last data of each connection that is not observed because a table is full.
    unobserved: BTreeMap<u32, Time>,
    /// Estimated queueing delays of the packets since the last [`Subscribers::take_waits`].
    waits: Histogram,
    refused: u64,
}

impl Subscribers {
    /// Creates the table of subscribers, at first empty.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            table: BTreeMap::new(),
            openings: BTreeMap::new(),
            connections: 0,
            unobserved: BTreeMap::new(),
            waits: Histogram::default(),
            refused: 0,
        }
    }

    /// Subscribers and rules of the box.
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Number of subscribers.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether no subscriber is listed.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Whether a subscriber is listed.
    pub fn lists(&self, key: Ipv6Addr) -> bool {
        self.table.contains_key(&key)
    }

    /// Number of observed connections of all subscribers.
    pub const fn connections(&self) -> usize {
        self.connections
    }

    /// Number of connections that carried data in the last ten seconds and are not observed, because there are too many
    /// connections or subscribers.
    pub fn unobserved(&self) -> usize {
        self.unobserved.len()
    }

    /// Number of connections without data whose first records are kept.
    pub fn openings(&self) -> usize {
        self.openings.len()
    }

    /// Number of records that were ignored because the table of subscribers or of connections was full.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Lists a subscriber with an allowance that an earlier process wrote. Returns whether the subscriber belongs to the
    /// box.
    pub fn inherit(&mut self, now: Time, key: Ipv6Addr, allowance: Allowance) -> bool {
        self.admit(now, key);
        let Some(subscriber) = self.table.get_mut(&key) else { return false };
        subscriber.allowance = Some(allowance);
        true
    }

    /// Updates the estimates with a record. Returns the subscriber of the record if this record lists the subscriber.
    pub fn learn(&mut self, record: &Record) -> Option<Ipv6Addr> {
        let (at, key) = (Time::from_nanos(record.at_ns), Ipv6Addr::from(record.subscriber));
        let has_data = record.kind == Record::DATA;
        let listed = self.table.get(&key);
        let is_known = listed.is_some_and(|subscriber| subscriber.observer.knows(record.flow));
        if !is_known && !has_data {
            self.hold(record);
            return None;
        }
        let is_new = listed.is_none();
        let is_full = self.connections >= MOST_CONNECTIONS;
        if !is_known && (is_full || (is_new && !self.admit(at, key))) {
            self.ignore(at, record.flow);
            return None;
        }
        let subscriber = self.table.get_mut(&key)?;
        if !is_known {
            let held = self.openings.remove(&record.flow).unwrap_or_default();
            held.iter().for_each(|record| _ = subscriber.observer.learn(record));
        }
        if let Some((wait, packets)) = subscriber.observer.learn(record) {
            subscriber.waits.record(wait, packets);
            self.waits.record_times(wait, packets);
        }
        let is_observed = subscriber.observer.knows(record.flow);
        if has_data {
            subscriber.last = at;
        }
        match (is_known, is_observed) {
            (false, true) => {
                self.connections += 1;
                self.unobserved.remove(&record.flow);
            }
            (_, false) => self.ignore(at, record.flow),
            _ => {}
        }
        is_new.then_some(key)
    }

    /// Counts a record of a connection that is not observed.
    fn ignore(&mut self, at: Time, flow: u32) {
        self.refused += 1;
        if self.unobserved.len() < MOST_UNOBSERVED || self.unobserved.contains_key(&flow) {
            self.unobserved.insert(flow, at);
        }
    }

    /// Returns the estimated queueing delays of the packets of all subscribers since the last call.
    pub fn take_waits(&mut self) -> Histogram {
        std::mem::take(&mut self.waits)
    }

    /// Keeps the first records of a connection without data.
    fn hold(&mut self, record: &Record) {
        let held = self.openings.entry(record.flow).or_default();
        if held.len() == MOST_HELD {
            held.pop();
        }
        held.push(*record);
        if self.openings.len() > MOST_OPENINGS {
            self.openings.pop_first();
        }
    }

    /// Lists a subscriber. Returns whether it is listed.
    fn admit(&mut self, now: Time, key: Ipv6Addr) -> bool {
        if self.table.len() >= MOST_SUBSCRIBERS {
            return false;
        }
        let Some(rule) = self.policy.rule(key) else { return false };
        // The policy has checked every rule.
        let Ok(observer) = self.policy.observer(&rule) else { return false };
        let subscriber = Subscriber {
            rule,
            observer,
            waits: RecentDelays::default(),
            last: now,
            last_traffic: now,
            allowance: None,
            written: None,
            totals: Totals::default(),
            sums: RecentSums::new(now, 0),
            recent_bytes: 0,
            rate_bps: 0.0,
        };
        self.table.insert(key, subscriber);
        true
    }

    /// Computes the allowances, and passes each changed allowance and each allowance older than `refresh` to `write`.
    ///
    /// # Errors
    /// Fails with the first error of `write`.
    pub fn update<E>(
        &mut self,
        now: Time,
        refresh: Span,
        mut write: impl FnMut(Ipv6Addr, Allowance) -> Result<(), E>,
    ) -> Result<(), E> {
        for (key, subscriber) in &mut self.table {
            if now.since(subscriber.last) < ACTIVE {
                subscriber.allowance = subscriber.observer.allowed(now).or(subscriber.allowance);
            }
            if let Some(allowance) = subscriber.due(now, refresh) {
                write(*key, allowance)?;
                subscriber.written = Some(allowance);
            }
        }
        Ok(())
    }

    /// Forgets quiet connections and quiet subscribers; call once per second. Returns the forgotten subscribers.
    pub fn sweep(&mut self, now: Time) -> Vec<Ipv6Addr> {
        let nearly_full = self.table.len() * 10 >= MOST_SUBSCRIBERS * 9;
        let quiet = if nearly_full { QUIET_IF_FULL } else { QUIET };
        let mut gone = Vec::new();
        self.unobserved.retain(|_, last| now.since(*last) <= observers::QUIET);
        self.connections = 0;
        self.table.retain(|key, subscriber| {
            subscriber.observer.forget_quiet(now);
            let stays = now.since(subscriber.last.max(subscriber.last_traffic)) <= quiet;
            if stays {
                self.connections += subscriber.observer.connections();
            } else {
                gone.push(*key);
            }
            stays
        });
        gone
    }

    /// Notes the traffic of all subscribers that the kernel has counted so far, from which the rates follow; call once per
    /// second.
    pub fn note_totals(&mut self, now: Time, totals: &[(Ipv6Addr, Totals)]) {
        for (key, totals) in totals {
            if let Some(subscriber) = self.table.get_mut(key) {
                if totals.in_bytes > subscriber.totals.in_bytes {
                    subscriber.last_traffic = now;
                }
                let (begin, before) = subscriber.sums.turn(now, totals.in_bytes);
                let (seconds, bytes) =
                    (now.since(begin).as_secs_f64(), totals.in_bytes.saturating_sub(before));
                subscriber.recent_bytes = bytes;
                subscriber.rate_bps = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
                subscriber.totals = *totals;
            }
        }
        self.table.values_mut().for_each(|subscriber| subscriber.waits.turn(&Histogram::default()));
    }

    /// Lists subscribers that had much traffic outside of known connections, from the kernel's counts of those that are not
    /// listed. Returns the subscribers that it lists.
    pub fn note_unlisted(&mut self, now: Time, unlisted: &[(Ipv6Addr, u64)]) -> Vec<Ipv6Addr> {
        let mut listed = Vec::new();
        for (key, _) in unlisted.iter().filter(|(_, bytes)| *bytes >= MUCH) {
            if self.table.len() < MOST_OTHERS && !self.lists(*key) && self.admit(now, *key) {
                listed.push(*key);
            }
        }
        listed
    }

    /// Applies a changed policy. A subscriber whose regulator or buffer changed is observed anew. Returns the
    /// subscribers that no longer belong to the box.
    ///
    /// # Errors
    /// Fails if a box cannot use a rule of the policy.
    pub fn reload(&mut self, policy: Policy) -> Result<Vec<Ipv6Addr>, ConfigError> {
        let mut gone = Vec::new();
        for (key, subscriber) in &mut self.table {
            let Some(rule) = policy.rule(*key) else {
                gone.push(*key);
                continue;
            };
            if (&rule.regulator, rule.buffer) != (&subscriber.rule.regulator, subscriber.rule.buffer) {
                subscriber.observer = policy.observer(&rule)?;
            }
            subscriber.rule = rule;
        }
        gone.iter().for_each(|key| drop(self.table.remove(key)));
        self.policy = policy;
        Ok(gone)
    }

    /// Measurements of the `most` subscribers with the longest queueing delay, the longest first; then those of which no
    /// queueing delay is known, by traffic.
    pub fn worst(&self, most: usize) -> Vec<SubscriberReport> {
        let rank = |one: &Subscriber| Reverse((one.waits.all().quantile(0.95), one.totals.in_bytes));
        let mut order: Vec<_> = self.table.iter().map(|(key, one)| (rank(one), key)).collect();
        order.sort();
        order.truncate(most);
        let all: u64 = self.table.values().map(|one| one.recent_bytes).sum();
        let report = |key: &Ipv6Addr| Some(self.table.get(key)?.report(self.policy.label(*key), all));
        order.into_iter().filter_map(|(_, key)| report(key)).collect()
    }
}

impl Subscriber {
    /// Allowance that the kernel must get now: a changed allowance, or one that was written `refresh` ago.
    fn due(&self, now: Time, refresh: Span) -> Option<Allowance> {
        let allowance = Allowance { at_ns: now.as_nanos(), act: self.rule.act.into(), ..self.allowance? };
        let is_due = self.written.is_none_or(|written| {
            now.since(Time::from_nanos(written.at_ns)) >= refresh
                || written != Allowance { at_ns: written.at_ns, ..allowance }
        });
        is_due.then_some(allowance)
    }

    /// Measurements of the subscriber; `all` is the recent traffic of all subscribers, bytes.
    fn report(&self, key: String, all: u64) -> SubscriberReport {
        let waits = self.waits.all();
        let quantile = |q| waits.quantile(q).map(Span::as_millis_f64);
        SubscriberReport {
            key,
            name: self.rule.name.clone(),
            regulator: name_of(&self.rule.regulator),
            acted_on: self.rule.act,
            rate_bps: self.rate_bps,
            bytes: self.totals.in_bytes,
            traffic_share: (all > 0).then(|| self.recent_bytes as f64 / all as f64),
            connections: self.observer.connections(),
            wait_p50_ms: quantile(0.5),
            wait_p95_ms: quantile(0.95),
            packets_missed: self.observer.packets_missed(self.last),
        }
    }
}
