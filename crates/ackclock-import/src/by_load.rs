//! Recordings in two parts: one made with a full queue, and one made with short trains of packets on an idle link.
//!
//! A recording under load says what a busy link delivers, and nothing about an idle one, which may have a shorter delay, or
//! be slow at first. The idea of two parts is that of CellReplay (Sentosa et al., NSDI 2025); the rule is ours: a train
//! begins with a packet that finds the link idle for at least `gap`, and the first `for` of a train play the light part.
//! Packets that leave later play the heavy part, `file`. Packets stay in order.

use ackclock_core::{ConfigError, Rate, Segment, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use ackclock_link::medium::{Found, Medium, Transmission};

/// The part of a recording that a link plays under light load.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LightConfig {
    /// Path of the recording under light load; it starts at the same offset as `file`.
    pub file: String,
    /// Idle time of the link after which the next packet begins a train.
    pub gap: Span,
    /// Time from the beginning of a train for which packets play the light recording.
    #[serde(rename = "for")]
    pub lasts: Span,
}

impl LightConfig {
    /// Checks the path and the times.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.file.is_empty() {
            return Err(ConfigError::new("file", "is empty: name a recording under light load"));
        }
        for (key, value) in [("gap", self.gap), ("for", self.lasts)] {
            if value == Span::ZERO {
                return Err(ConfigError::new(key, "0s is not above 0s: the light part would not be played"));
            }
        }
        Ok(())
    }
}

/// Medium that plays one of two media by load.
pub(super) struct ByLoad<L, H> {
    light: L,
    heavy: H,
    gap: Span,
    lasts: Span,
    /// Beginning of the train; `None` before the first packet.
    began: Option<Time>,
    /// Departure of the last packet.
    last: Time,
    /// Whether the packet that is ready plays the light part, even if it starts after it.
    plays_light: bool,
}

impl<L: Medium, H: Medium> ByLoad<L, H> {
    pub(super) const fn new(light: L, heavy: H, config: &LightConfig) -> Self {
        Self {
            light,
            heavy,
            gap: config.gap,
            lasts: config.lasts,
            began: None,
            last: Time::ZERO,
            plays_light: true,
        }
    }

    /// Whether a packet at `now` plays the light part.
    fn is_light(&self, now: Time) -> bool {
        self.began.is_none_or(|began| now < began + self.lasts || now >= self.last + self.gap)
    }
}

impl<L: Medium, H: Medium> Medium for ByLoad<L, H> {
    fn ready(&mut self, now: Time, found: Found) -> Time {
        if found == Found::Idle && (self.began.is_none() || now >= self.last + self.gap) {
            self.began = Some(now);
        }
        // The part that was not played is found idle, whatever the other did.
        let is_light = self.is_light(now);
        let found = if is_light == self.plays_light { found } else { Found::Idle };
        self.plays_light = is_light;
        match self.plays_light {
            true => self.light.ready(now, found),
            false => self.heavy.ready(now, found),
        }
    }

    fn transmit(&mut self, arrived: Time, start: Time, segment: &Segment) -> Transmission {
        let sent = match self.plays_light {
            true => self.light.transmit(arrived, start, segment),
            false => self.heavy.transmit(arrived, start, segment),
        };
        self.last = sent.departs;
        sent
    }

    fn rate(&self, now: Time) -> Rate {
        if self.is_light(now) { self.light.rate(now) } else { self.heavy.rate(now) }
    }

    fn rate_until(&self, now: Time) -> Time {
        let Some(began) = self.began else { return self.light.rate_until(now) };
        let changes = [began + self.lasts, self.last + self.gap].into_iter().filter(|&at| at > now);
        let own = if self.is_light(now) { self.light.rate_until(now) } else { self.heavy.rate_until(now) };
        changes.fold(own, Time::min)
    }

    /// A saturated link has one train, so that it sends what the heavy part has.
    fn work(&mut self, from: Time, until: Time) -> Option<u128> {
        self.heavy.work(from, until)
    }

    fn restart_work(&mut self, now: Time) {
        self.heavy.restart_work(now);
    }

    fn least_delay(&self) -> Span {
        self.light.least_delay().min(self.heavy.least_delay())
    }

    fn varies(&self) -> bool {
        true
    }

    fn foreseeable(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::{FlowId, Seq};

    use super::*;
    use ackclock_link::Fate;

    /// A medium that takes a time for each packet.
    struct Takes(Span);

    impl Medium for Takes {
        fn transmit(&mut self, _: Time, start: Time, _: &Segment) -> Transmission {
            Transmission { departs: start + self.0, delay: Span::ZERO, fate: Fate::Arrives }
        }

        fn rate(&self, _: Time) -> Rate {
            Rate::from_bps(self.0.as_nanos())
        }

        fn ready(&mut self, now: Time, _: Found) -> Time {
            now
        }

        fn rate_until(&self, _: Time) -> Time {
            Time::NEVER
        }

        fn work(&mut self, _: Time, _: Time) -> Option<u128> {
            None
        }

        fn restart_work(&mut self, _: Time) {}

        fn varies(&self) -> bool {
            false
        }

        fn least_delay(&self) -> Span {
            Span::ZERO
        }

        fn foreseeable(&self) -> bool {
            false
        }
    }

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    #[test]
    fn a_train_begins_light_and_goes_on_heavy_until_the_link_was_idle() {
        let [gap, lasts] = [50, 10].map(Span::from_millis);
        let config = LightConfig { file: "light".to_owned(), gap, lasts };
        let mut medium = ByLoad::new(Takes(Span::from_millis(4)), Takes(Span::from_millis(20)), &config);
        let packet = Segment::data(FlowId(0), Seq(0), 1460, 40);
        let mut sends = |at: u64, found| {
            let start = medium.ready(ms(at), found);
            medium.transmit(ms(at), start, &packet).departs.since(Time::ZERO).as_millis_f64()
        };
        // The train begins at 100 ms: light until 110 ms.
        let train = [(100, Found::Idle), (104, Found::Busy), (108, Found::Busy), (112, Found::Busy)];
        assert_eq!(train.map(|(at, found)| sends(at, found)), [104.0, 108.0, 112.0, 132.0]);
        // 40 ms without packets do not end the train, 50 ms do.
        assert_eq!(sends(172, Found::Idle), 192.0);
        assert_eq!(sends(242, Found::Idle), 246.0);
        assert_eq!((medium.rate(ms(250)), medium.rate_until(ms(250))), (Rate::from_bps(4_000_000), ms(252)));
        assert_eq!((medium.rate(ms(252)), medium.rate_until(ms(252))), (Rate::from_bps(20_000_000), ms(296)));
    }

    #[test]
    fn times_of_zero_are_refused() {
        let config = LightConfig { file: "light".to_owned(), gap: Span::ZERO, lasts: Span::from_millis(1) };
        assert_eq!(config.check().unwrap_err().path, "gap");
        let config = LightConfig { gap: Span::from_millis(1), lasts: Span::ZERO, ..config };
        assert_eq!(config.check().unwrap_err().path, "for");
    }
}
