//! Arrival-time filter: groups of packets, and the Kalman filter of their delay variation (draft-ietf-rmcat-gcc-02
//! sections 5.2 and 5.3).

use std::collections::VecDeque;

use super::Gradient;
use crate::media::message::Micros;

/// burst_time: packets sent within this time are a group, µs (Table 1).
const BURST: i32 = 5_000;
/// q: variance of the state noise, ms^2 (Table 1).
const STATE_NOISE: f64 = 1e-3;
/// e(0): variance of the first estimate, ms^2 (Table 1).
const FIRST_ERROR: f64 = 0.1;
/// chi: weight of a new sample of the measurement noise at 30 groups per second. Table 1 allows 0.1 to 0.001.
const NOISE_WEIGHT: f64 = 0.01;
/// K: number of groups among which the filter finds the highest rate of groups. The draft gives no number; libwebrtc
/// uses 60.
const RATE_GROUPS: usize = 60;
/// A sample counts for at most this many standard deviations (section 5.3).
const OUTLIER: f64 = 3.0;

/// Kalman filter of the delay variation between groups of packets.
#[derive(Debug)]
pub(crate) struct ArrivalFilter {
    current: Option<Group>,
    previous: Option<Group>,
    /// m(i), ms.
    gradient: f64,
    /// e(i), ms^2.
    error: f64,
    /// var_v_hat(i), ms^2.
    noise: f64,
    /// Times between the transmissions of the latest groups, ms.
    apart: VecDeque<f64>,
    groups: u32,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    first_sent: Micros,
    last_sent: Micros,
    arrived: Micros,
}

impl Default for ArrivalFilter {
    fn default() -> Self {
        Self {
            current: None,
            previous: None,
            gradient: 0.0,
            error: FIRST_ERROR,
            noise: 1.0,
            apart: VecDeque::with_capacity(RATE_GROUPS + 1),
            groups: 0,
        }
    }
}

impl ArrivalFilter {
    /// Adds a packet. Returns the new estimate if the packet is the first one after a complete group. A packet that was
    /// sent before the current group is ignored.
    pub(crate) fn on_packet(&mut self, sent: Micros, arrived: Micros) -> Option<Gradient> {
        let new = Group { first_sent: sent, last_sent: sent, arrived };
        let Some(group) = &mut self.current else {
            self.current = Some(new);
            return None;
        };
        if sent.since(group.first_sent) < 0 {
            return None;
        }
        if group.includes(sent, arrived) {
            if sent.since(group.last_sent) > 0 {
                group.last_sent = sent;
            }
            group.arrived = arrived;
            return None;
        }
        let complete = std::mem::replace(group, new);
        let previous = self.previous.replace(complete)?;
        Some(self.update(previous, complete))
    }

    /// Updates the estimate with the delay variation between two groups.
    fn update(&mut self, before: Group, group: Group) -> Gradient {
        let ms = |micros: i32| f64::from(micros) / 1e3;
        let sent_apart_ms = ms(group.last_sent.since(before.last_sent));
        let arrived_apart_ms = ms(group.arrived.since(before.arrived));
        if self.apart.len() == RATE_GROUPS {
            self.apart.pop_front();
        }
        self.apart.push_back(sent_apart_ms);
        self.groups += 1;
        // z(i) = d(i) - m(i-1) with d(i) = t(i) - t(i-1) - (T(i) - T(i-1)), section 5.1.
        let limit = OUTLIER * libm::sqrt(self.noise);
        let innovation = arrived_apart_ms - sent_apart_ms - self.gradient;
        let shortest = self.apart.iter().copied().fold(f64::INFINITY, f64::min);
        // alpha = (1 - chi)^(30 / (1000 f_max)), f_max being the highest rate of groups per ms.
        let alpha = libm::pow(1.0 - NOISE_WEIGHT, 30.0 * shortest / 1e3);
        let sample = innovation.clamp(-limit, limit);
        self.noise = (alpha * self.noise + (1.0 - alpha) * sample * sample).max(1.0);
        let error = self.error + STATE_NOISE;
        let gain = error / (self.noise + error);
        self.gradient += sample * gain;
        self.error = (1.0 - gain) * error;
        Gradient { ms: self.gradient, groups: self.groups, sent_apart_ms, arrived_apart_ms }
    }
}

impl Group {
    /// Whether a packet belongs to this group: sent within the burst time, or arrived in a burst after an outage
    /// (section 5.2).
    fn includes(&self, sent: Micros, arrived: Micros) -> bool {
        let apart = arrived.since(self.arrived);
        sent.since(self.first_sent) <= BURST || apart < BURST && apart < sent.since(self.last_sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u32) -> Micros {
        Micros(ms * 1000)
    }

    #[test]
    fn the_first_growth_is_weighted_by_the_kalman_gain() {
        let mut filter = ArrivalFilter::default();
        // Groups every 20 ms with a delay of 10, 10 and then 12 ms.
        assert_eq!(filter.on_packet(at(0), at(10)), None);
        assert_eq!(filter.on_packet(at(20), at(30)), None);
        let even = filter.on_packet(at(40), at(52)).unwrap();
        assert_eq!((even.ms, even.groups, even.arrived_apart_ms), (0.0, 1, 20.0));
        let grown = filter.on_packet(at(60), at(72)).unwrap();
        // The gains are 0.101/1.101 = 0.09173 and, with e = 0.90827 x 0.101 = 0.09174, 0.09274/1.09274 = 0.08487 while
        // the noise is at its floor of 1 ms^2: 0.99^(30 x 20/1000) = 0.99399 leaves 0.99399 + 0.00601 x 4 = 1.018 of it,
        // so the gain is 0.09274/1.11077 = 0.08349. The growth of 2 ms counts 0.16698 ms.
        assert!((grown.ms - 0.16698).abs() < 1e-4, "{}", grown.ms);
        assert_eq!(grown.groups, 2);
    }

    #[test]
    fn packets_of_one_burst_are_one_group() {
        let mut filter = ArrivalFilter::default();
        for millis in [0, 2, 5] {
            assert_eq!(filter.on_packet(at(millis), at(10 + millis)), None);
        }
        // Sent 33 ms later.
        assert_eq!(filter.on_packet(at(33), at(43)), None);
        let gradient = filter.on_packet(at(66), at(76)).unwrap();
        // From the last packet of the first group, at 5 ms, to the only one of the second.
        assert_eq!((gradient.sent_apart_ms, gradient.arrived_apart_ms), (28.0, 28.0));
    }

    #[test]
    fn packets_released_by_an_outage_are_one_group() {
        let mut filter = ArrivalFilter::default();
        filter.on_packet(at(0), at(10));
        filter.on_packet(at(20), at(30));
        // Sent 20 ms apart, but arrived 1 ms apart after an outage. The first of them completes the group before.
        assert!(filter.on_packet(at(40), at(201)).is_some());
        assert_eq!(filter.on_packet(at(60), at(202)), None);
        assert_eq!(filter.on_packet(at(80), at(203)), None);
        assert_eq!(filter.groups, 1);
    }

    #[test]
    fn a_packet_of_an_earlier_group_is_ignored() {
        let mut filter = ArrivalFilter::default();
        filter.on_packet(at(40), at(50));
        assert_eq!(filter.on_packet(at(20), at(51)), None);
        assert_eq!(filter.current.unwrap().arrived, at(50));
    }
}
