//! Delay-based rate control: additive or multiplicative increase, and multiplicative decrease (draft-ietf-rmcat-gcc-02
//! section 5.5).

use std::collections::VecDeque;

use ackclock_core::{Span, Time};

use super::Signal;

/// T: time over which the received bitrate is measured (Table 1).
const WINDOW: Span = Span::from_millis(500);
/// eta: factor of the multiplicative increase per second.
const GROWTH_PER_SECOND: f64 = 1.08;
/// beta: share of the received bitrate after over-use (Table 1).
const DECREASE: f64 = 0.85;
/// The bitrate stays below this multiple of the received bitrate.
const MOST_OF_RECEIVED: f64 = 1.5;
/// Weight of the past in the mean received bitrate at decreases.
const SMOOTHING: f64 = 0.95;
/// The mean received bitrate at decreases is near within this many standard deviations.
const NEAR: f64 = 3.0;
/// Smallest additive increase, bit/s.
const LEAST_INCREASE: f64 = 1000.0;
/// Time of the additive increase beside the round trip, s.
const RESPONSE_TIME: f64 = 0.1;
/// Shortest and longest time between two decreases; see [`super`].
const DECREASE_EVERY: [Span; 2] = [Span::from_millis(10), Span::from_millis(200)];

/// Bitrate that the delays allow.
#[derive(Debug)]
pub(crate) struct RateControl {
    bps: f64,
    state: State,
    limits: [f64; 2],
    /// Mean bits of a packet of a frame, at a bitrate.
    packet_bits: PacketBits,
    updated: Option<Time>,
    decreased: Option<Time>,
    at_decreases: Option<AtDecreases>,
    /// Arrival and size of the packets within the window.
    arrivals: VecDeque<(Time, u32)>,
    window_bytes: u64,
    started: Option<Time>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Hold,
    Increase,
}

/// Division of frames into packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketBits {
    /// Frames per second.
    pub(crate) frame_rate: f64,
    /// Bits of the largest packet.
    pub(crate) largest: f64,
}

/// Received bitrate at decreases.
#[derive(Clone, Copy, Debug)]
struct AtDecreases {
    mean: f64,
    variance: f64,
}

impl RateControl {
    /// Creates a rate control that starts at `bps` bit/s and stays within `limits`.
    pub(crate) fn new(bps: f64, limits: [f64; 2], packet_bits: PacketBits) -> Self {
        Self {
            bps,
            state: State::Increase,
            limits,
            packet_bits,
            updated: None,
            decreased: None,
            at_decreases: None,
            arrivals: VecDeque::new(),
            window_bytes: 0,
            started: None,
        }
    }

    /// Current bitrate, bit/s.
    pub(crate) fn bps(&self) -> f64 {
        self.bps
    }

    /// Counts a packet that arrived.
    pub(crate) fn on_packet(&mut self, now: Time, bytes: u32) {
        self.started.get_or_insert(now);
        self.arrivals.push_back((now, bytes));
        self.window_bytes += u64::from(bytes);
        while let Some(&(time, bytes)) = self.arrivals.front()
            && time + WINDOW < now
        {
            self.arrivals.pop_front();
            self.window_bytes -= u64::from(bytes);
        }
    }

    /// Received bitrate in the window, bit/s; `None` before the first window is complete.
    fn received(&self, now: Time) -> Option<f64> {
        let complete = self.started.is_some_and(|started| started + WINDOW <= now);
        complete.then(|| self.window_bytes as f64 * 8.0 / WINDOW.as_secs_f64())
    }

    /// Updates the bitrate after a group of packets. Returns whether the bitrate was decreased.
    pub(crate) fn update(&mut self, now: Time, signal: Signal, round_trip: Span) -> bool {
        let received = self.received(now);
        let elapsed = now.since(self.updated.replace(now).unwrap_or(now)).as_secs_f64();
        match (signal, self.state) {
            (Signal::OverUse, _) => return self.decrease(now, received, round_trip),
            (Signal::UnderUse, _) => self.state = State::Hold,
            (Signal::Normal, State::Hold) => self.state = State::Increase,
            (Signal::Normal, State::Increase) => self.increase(received, elapsed, round_trip),
        }
        false
    }

    fn increase(&mut self, received: Option<f64>, elapsed: f64, round_trip: Span) {
        if let (Some(received), Some(at)) = (received, self.at_decreases)
            && received > at.mean + NEAR * libm::sqrt(at.variance)
        {
            // The capacity has grown: the bitrates of earlier decreases say nothing about it.
            self.at_decreases = None;
        }
        let most = received.map_or(f64::INFINITY, |received| MOST_OF_RECEIVED * received);
        let grown = if self.at_decreases.is_some() {
            let response = RESPONSE_TIME + round_trip.as_secs_f64();
            let share = 0.5 * (elapsed / response).min(1.0);
            self.bps + (share * self.packet_bits.at(self.bps)).max(LEAST_INCREASE * elapsed.min(1.0))
        } else {
            self.bps * libm::pow(GROWTH_PER_SECOND, elapsed.min(1.0))
        };
        self.bps = grown.min(most.max(self.bps)).clamp(self.limits[0], self.limits[1]);
    }

    /// Falls below the received bitrate, at most once per round trip. Returns whether the bitrate fell.
    fn decrease(&mut self, now: Time, received: Option<f64>, round_trip: Span) -> bool {
        let every = round_trip.clamp(DECREASE_EVERY[0], DECREASE_EVERY[1]);
        if self.decreased.is_some_and(|decreased| now < decreased + every) {
            return false;
        }
        self.state = State::Hold;
        self.decreased = Some(now);
        let received = received.unwrap_or(self.bps);
        let at = self.at_decreases.get_or_insert(AtDecreases { mean: received, variance: 0.0 });
        at.add(received);
        let before = self.bps;
        self.bps = (DECREASE * received).min(self.bps).clamp(self.limits[0], self.limits[1]);
        self.bps < before
    }
}

impl AtDecreases {
    fn add(&mut self, received: f64) {
        let away = received - self.mean;
        self.mean += (1.0 - SMOOTHING) * away;
        self.variance = SMOOTHING * (self.variance + (1.0 - SMOOTHING) * away * away);
    }
}

impl PacketBits {
    /// Mean bits of a packet if frames are sent at `bps`.
    fn at(self, bps: f64) -> f64 {
        let frame = bps / self.frame_rate;
        frame / libm::ceil(frame / self.largest).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKETS: PacketBits = PacketBits { frame_rate: 30.0, largest: 9600.0 };
    const ROUND_TRIP: Span = Span::from_millis(100);

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// A rate control at 1 Mbit/s that has received 500 bytes every 5 ms, 800 kbit/s, until `until` ms.
    fn control(until: u64) -> RateControl {
        let mut control = RateControl::new(1e6, [50e3, 5e6], PACKETS);
        (0..=until).step_by(5).for_each(|at| control.on_packet(ms(at), 500));
        control
    }

    #[test]
    fn the_bitrate_grows_by_8_percent_per_second_until_over_use() {
        let mut control = control(1000);
        control.update(ms(0), Signal::Normal, ROUND_TRIP);
        control.update(ms(1000), Signal::Normal, ROUND_TRIP);
        assert_eq!(control.bps(), 1.08e6);
        // 101 packets of 500 bytes arrived in the last 500 ms: 808 kbit/s, of which 85 % are 686.8 kbit/s.
        assert!(control.update(ms(1000), Signal::OverUse, ROUND_TRIP));
        assert!((control.bps() - 686.8e3).abs() < 1.0, "{}", control.bps());
    }

    #[test]
    fn over_use_decreases_once_per_round_trip() {
        let mut control = control(1000);
        assert!(control.update(ms(1000), Signal::OverUse, ROUND_TRIP));
        assert!(!control.update(ms(1050), Signal::OverUse, ROUND_TRIP));
        assert_eq!(control.decreased, Some(ms(1000)));
        control.update(ms(1100), Signal::OverUse, ROUND_TRIP);
        assert_eq!(control.decreased, Some(ms(1100)));
    }

    #[test]
    fn near_the_last_decrease_the_bitrate_grows_by_half_a_packet_per_response_time() {
        let mut control = control(1000);
        control.update(ms(1000), Signal::OverUse, ROUND_TRIP);
        let before = control.bps();
        control.update(ms(1010), Signal::Normal, ROUND_TRIP);
        assert_eq!(control.bps(), before, "from hold to increase");
        control.update(ms(1110), Signal::Normal, ROUND_TRIP);
        // 686.8 kbit/s are 22893 bits a frame, three packets of 7631 bits. 100 ms are half of the response time of 200
        // ms, so 0.25 of a packet: 1908 bit/s.
        assert!((control.bps() - before - 1907.8).abs() < 0.1, "{}", control.bps() - before);
    }

    #[test]
    fn a_larger_capacity_is_found_again() {
        let mut control = control(1000);
        control.update(ms(1000), Signal::OverUse, ROUND_TRIP);
        // From now on 2 Mbit/s arrive, above the mean of 808 kbit/s at decreases, of which the deviation is zero.
        (1000..2000).step_by(2).for_each(|at| control.on_packet(ms(at), 500));
        control.update(ms(1990), Signal::Normal, ROUND_TRIP);
        let before = control.bps();
        control.update(ms(2990), Signal::Normal, ROUND_TRIP);
        assert!((control.bps() / before - 1.08).abs() < 1e-9);
    }

    #[test]
    fn the_bitrate_keeps_to_its_limits_and_to_what_is_received() {
        let mut control = RateControl::new(1e6, [600e3, 1.05e6], PACKETS);
        (0..=1000).step_by(5).for_each(|at| control.on_packet(ms(at), 500));
        control.update(ms(0), Signal::Normal, ROUND_TRIP);
        control.update(ms(1000), Signal::Normal, ROUND_TRIP);
        assert_eq!(control.bps(), 1.05e6);
        let mut idle = RateControl::new(1e6, [50e3, 5e6], PACKETS);
        idle.on_packet(ms(0), 500);
        idle.update(ms(600), Signal::Normal, ROUND_TRIP);
        idle.update(ms(1600), Signal::Normal, ROUND_TRIP);
        assert_eq!(idle.bps(), 1e6, "1.5 times 8 kbit/s are no reason to increase");
    }
}
