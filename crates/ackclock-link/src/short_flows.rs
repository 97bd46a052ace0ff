//! Classification of short flows (`schedulers.md` section 6): flows that have sent little since they were last idle.

use ackclock_core::{ConfigError, Size, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Class of a flow by the amount of data that the flow has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The flow has sent little since it was last idle.
    Short,
    /// The flow has sent more than a short flow may send.
    Long,
}

/// Conditions under which a flow counts as short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ShortFlows {
    /// Maximum bytes of a short flow; a flow that has sent more is long.
    pub bytes: Size,
    /// Idle time without arrivals after which a flow is short again.
    pub idle: Span,
    /// Event at which bytes count as sent.
    pub counts: CountsAt,
}

/// Event at which bytes count as sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CountsAt {
    /// Bytes count when they enter the queue.
    #[default]
    Enqueued,
    /// Bytes count when they leave the queue.
    Dequeued,
}

impl Default for ShortFlows {
    fn default() -> Self {
        Self { bytes: Size::Bytes(15_000), idle: Span::from_secs(1), counts: CountsAt::Enqueued }
    }
}

impl ShortFlows {
    /// Checks the conditions.
    ///
    /// # Errors
    /// Fails if `bytes` is not in bytes.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self.bytes {
            Size::Bytes(_) => Ok(()),
            other => Err(ConfigError::new("bytes", format!("{other} is not in bytes, like \"15kB\""))),
        }
    }

    fn most(&self) -> u64 {
        match self.bytes {
            Size::Bytes(bytes) => bytes,
            // The configuration check rejects every size that is not in bytes.
            _ => 0,
        }
    }
}

/// Bytes that one flow has sent since it was last idle.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    bytes: u64,
    last_arrival: Time,
}

impl Account {
    /// Registers an arriving packet; restarts the flow's byte count after an idle time.
    pub fn on_arrival(&mut self, now: Time, rule: &ShortFlows) {
        if now.since(self.last_arrival) >= rule.idle {
            self.bytes = 0;
        }
        self.last_arrival = now;
    }

    /// Counts a packet of `bytes` that enters or leaves the queue.
    pub fn count(&mut self, at: CountsAt, bytes: u32, rule: &ShortFlows) {
        if rule.counts == at {
            self.bytes += u64::from(bytes);
        }
    }

    /// Class of the flow at `now`.
    #[inline]
    pub fn class(&self, now: Time, rule: &ShortFlows) -> Class {
        let quiet = now.since(self.last_arrival) >= rule.idle;
        if quiet || self.bytes <= rule.most() { Class::Short } else { Class::Long }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_long_beyond_15_kb_and_short_again_after_a_quiet_second() {
        let rule = ShortFlows::default();
        let ms = |n| Time::ZERO + Span::from_millis(n);
        let mut account = Account::default();
        let mut send = |now| {
            account.on_arrival(now, &rule);
            account.count(CountsAt::Enqueued, 1000, &rule);
            account.class(now, &rule)
        };
        for number in 0..15 {
            assert_eq!(send(ms(number)), Class::Short, "packet {number}");
        }
        assert_eq!(send(ms(15)), Class::Long, "16 kB");
        assert_eq!(send(ms(1014)), Class::Long, "999 ms later");
        assert_eq!(send(ms(2014)), Class::Short, "1 s later");
        assert_eq!(account.bytes, 1000);
        assert_eq!(account.class(ms(9000), &rule), Class::Short);
    }

    #[test]
    fn bytes_count_when_they_leave_where_it_is_asked_for() {
        let rule = ShortFlows { counts: CountsAt::Dequeued, ..ShortFlows::default() };
        let mut account = Account::default();
        account.count(CountsAt::Enqueued, 20_000, &rule);
        assert_eq!(account.class(Time::ZERO, &rule), Class::Short);
        account.count(CountsAt::Dequeued, 20_000, &rule);
        assert_eq!(account.class(Time::ZERO, &rule), Class::Long);
    }
}
