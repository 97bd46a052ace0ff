//! # ACK rate control
//!
//! ## Source
//! Source: AC06, ACK rate control at the radio link controller. `ack-rate-control.md` settles open questions; its
//! section 1 is the delay function, and its section 2 is the algorithm.
//!
//! ## What it does
//! Queues the ACKs of all flows of a user and delays them according to the occupancy of the user's data queue. Below a
//! threshold of the occupancy, ACKs are not delayed. Above the occupancy threshold, the delay between ACKs grows as a
//! power of the occupancy, up to a maximum. When the queue fills, the delays slow down the senders' ACK clock before
//! the queue overflows.
//!
//! ## Differences from the source
//! The algorithm as printed releases one ACK per event: the arrival of an ACK, or the end of a delay. In the printed
//! algorithm, ACKs are stranded if the occupancy falls below the threshold. In this implementation, the release step
//! repeats until an ACK has to wait. With `step = "single"` the algorithm runs as printed. If `tti` is set, the step
//! also runs in each TTI, so that no ACK is stranded.
//!
//! Above `max_threshold`, which is the buffer size in the source, the delay remains `max_delay`.
//!
//! In section 2 of the source, a packet counts as occupancy until the far end has acknowledged all of the packet
//! (`counts = "unacknowledged"`). By default, only unsent packets count as occupancy, waiting or in transmission. TS
//! 25.331 section 14.4.2 defines the buffer occupancy of a radio link control as unsent packets, and the goodputs of
//! the source follow from this reading. If flows have separate queues, the queue of the flow with the latest event
//! determines the occupancy.
//!
//! With real traffic, only pure ACKs are delayed. A segment with data, SYN, FIN or RST passes at once, after the
//! waiting ACKs of its flow are released, so the order is preserved. At most 4096 ACKs wait; the arrival of one more
//! ACK releases the oldest ACK.
//!
//! ## Validation
//! The table of delays and the algorithm are checked by hand (tests below). The goodputs and delays are checked over
//! the radio link control of UMTS with the printed step in each TTI, against table 2 of the source (`papers/ac06`). All
//! eight goodputs under the controller are within 6 % of the source. Six of eight delays differ by at most 20 % from
//! those of the document; the two delays with four flows are 20 and 30 % longer.

use std::collections::VecDeque;

use ackclock_core::{ConfigError, FlowId, Segment, Span, Time, Unused};
use ackclock_link::{Cause, Departures, LinkView, Load};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FlowContext, Output, Properties, Regulator, RegulatorConfig, Scope, Verdict};

/// Delays the ACKs of a user. The fuller the user's data queue is, the longer the time between two ACKs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// Exponent of the delay as a function of occupancy: 0 gives a step at `min_threshold`, and 1 gives a straight
    /// line.
    pub(crate) alpha: f64,
    /// Occupancy below which ACKs are not delayed, packets.
    pub(crate) min_threshold: u32,
    /// Occupancy at which the delay reaches `max_delay`, packets.
    pub(crate) max_threshold: u32,
    /// Delay between two ACKs at `min_threshold`.
    pub(crate) min_delay: Span,
    /// Delay between two ACKs at `max_threshold` and above.
    pub(crate) max_delay: Span,
    /// Unit in which occupancy is counted: packets or bytes.
    pub(crate) occupancy: Occupancy,
    /// Packets that count as occupancy. The key `counts` matters only if the link layer keeps sent packets until they
    /// are acknowledged.
    pub(crate) counts: Counts,
    /// Transmission time interval (TTI) of the controller. Delayed ACKs leave at multiples of the TTI. With 0s, ACKs
    /// leave at any time.
    pub(crate) tti: Span,
    /// Number of undelayed ACKs that leave per event.
    pub(crate) step: Step,
    /// Whether a running delay is recalculated when the occupancy changes.
    pub(crate) retime: bool,
}

/// Unit in which occupancy is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Occupancy {
    /// Occupancy in whole packets. The delays for whole packets come from a table calculated once.
    Packets,
    /// Occupancy in bytes, divided by the size of the user's largest packet. A small packet counts less than a large
    /// one.
    Bytes,
}

/// Packets that count as occupancy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Counts {
    /// Only unsent packets count as occupancy.
    Unsent,
    /// Unsent packets count as occupancy, and so do sent packets that the far end of the radio has not acknowledged.
    Unacknowledged,
}

/// Number of undelayed ACKs that leave per event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    /// All waiting ACKs leave as soon as the occupancy is below `min_threshold`.
    Repeated,
    /// As printed in the source, one ACK leaves per arriving ACK and per delay that ends. If `tti` is above 0s, one ACK
    /// also leaves per TTI. If `tti` is 0s, the remaining ACKs wait until further ACKs arrive.
    Single,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            alpha: 0.2,
            min_threshold: 10,
            max_threshold: 50,
            min_delay: Span::ZERO,
            max_delay: Span::from_millis(500),
            occupancy: Occupancy::Packets,
            counts: Counts::Unsent,
            tti: Span::ZERO,
            step: Step::Repeated,
            retime: false,
        }
    }
}

impl ackclock_core::Config for Config {
    fn check(&self) -> Result<(), ConfigError> {
        if !(0.0..=1000.0).contains(&self.alpha) {
            return Err(ConfigError::new("alpha", format!("{} is not 0 to 1000", self.alpha)));
        }
        if self.min_threshold >= self.max_threshold {
            let message =
                format!("{} is not below max_threshold = {}", self.min_threshold, self.max_threshold);
            return Err(ConfigError::new("min_threshold", message));
        }
        if self.max_threshold > LARGEST_THRESHOLD {
            let message = format!("{} is more than {LARGEST_THRESHOLD} packets", self.max_threshold);
            return Err(ConfigError::new("max_threshold", message));
        }
        if self.min_delay > self.max_delay {
            let message = format!("{} is more than max_delay = {}", self.min_delay, self.max_delay);
            return Err(ConfigError::new("min_delay", message));
        }
        for (key, span) in [("max_delay", self.max_delay), ("tti", self.tti)] {
            if span > LONGEST {
                return Err(ConfigError::new(key, format!("{span} is more than {LONGEST}")));
            }
        }
        Ok(())
    }
}

impl RegulatorConfig for Config {
    fn build(&self, _: FlowContext) -> Option<Box<dyn Regulator>> {
        Some(Box::new(AckRateControl::new(self.clone())))
    }

    fn scope(&self) -> Scope {
        Scope::User
    }

    fn departures(&self) -> Departures {
        if self.retime { Departures::Watched } else { Departures::Unwatched }
    }

    fn unused(&self, bearer: Properties) -> Vec<Unused> {
        if self.counts == Counts::Unsent || bearer.keeps_sent {
            return Vec::new();
        }
        let reason = "has no effect on a link that keeps no sent packets: use a link or bearer that retransmits, such \
                      as \"umts-rlc\" or \"radio-access\", or a cell with `harq`";
        vec![Unused::new("counts", &[], reason)]
    }
}

/// Largest threshold, packets. The threshold limits the size of the delay table, which has one entry per packet.
const LARGEST_THRESHOLD: u32 = 100_000;
const LONGEST: Span = Span::from_secs(60);
/// Maximum number of waiting ACKs. The limit on waiting ACKs bounds memory if a receiver acknowledges byte by byte.
const MOST_WAITING: usize = 4096;

impl Config {
    /// Delay `t_id` (section 1) between two ACKs at an occupancy in packets.
    fn delay(&self, occupancy: f64) -> Span {
        let [least, most] = [self.min_threshold, self.max_threshold].map(f64::from);
        if occupancy < least {
            return Span::ZERO;
        }
        let share = ((occupancy - least) / (most - least)).min(1.0);
        let range = self.max_delay.saturating_sub(self.min_delay).as_secs_f64();
        // `0^0` is 1, so for alpha = 0 the delay jumps to its maximum at the threshold.
        self.min_delay + Span::from_secs_f64(range * libm::pow(share, self.alpha))
    }
}

/// ACK rate controller of one user, with the user's waiting ACKs.
struct AckRateControl {
    config: Config,
    /// Delay for each number of packets from `min_threshold` to `max_threshold`.
    table: Vec<Span>,
    /// Size of the largest packet seen, bytes.
    packet_bytes: u32,
    waiting: VecDeque<Segment>,
    /// Time at which the last ACK left (LADT).
    left: Option<Time>,
    /// Time at which the oldest waiting ACK leaves.
    timer: Option<Time>,
    /// Time at which the release step is repeated for an undelayed ACK.
    next_tti: Option<Time>,
    output: VecDeque<Output>,
}

impl AckRateControl {
    fn new(config: Config) -> Self {
        let thresholds = match config.occupancy {
            Occupancy::Packets => config.min_threshold..config.max_threshold + 1,
            Occupancy::Bytes => 0..0,
        };
        let table = thresholds.map(|packets| config.delay(packets.into())).collect();
        Self {
            config,
            table,
            packet_bytes: 1,
            waiting: VecDeque::new(),
            left: None,
            timer: None,
            next_tti: None,
            output: VecDeque::new(),
        }
    }

    /// Delay `t_id` at the current occupancy of the data queue.
    fn delay(&self, view: LinkView) -> Span {
        let sent = match self.config.counts {
            Counts::Unsent => Load::NONE,
            Counts::Unacknowledged => view.unacknowledged,
        };
        let Load { packets, bytes } = view.waiting + view.in_transmission + sent;
        match self.config.occupancy {
            Occupancy::Bytes => self.config.delay(bytes as f64 / f64::from(self.packet_bytes)),
            Occupancy::Packets => match packets.checked_sub(self.config.min_threshold) {
                Some(beyond) => self.table[(beyond as usize).min(self.table.len() - 1)],
                None => Span::ZERO,
            },
        }
    }

    /// Time at which the oldest ACK may leave: `t_id` after the previous ACK. If the ACK has to wait, its departure
    /// time is rounded up to the end of a TTI.
    fn departs(&self, now: Time, view: LinkView) -> Time {
        let Some(left) = self.left else { return now };
        let departs = left + self.delay(view);
        if departs <= now {
            return now;
        }
        match self.config.tti.as_nanos() {
            0 => departs,
            tti => Time::from_nanos(departs.as_nanos().next_multiple_of(tti)),
        }
    }

    /// Release step `pump` (section 2): releases ACKs until an ACK has to wait. With `step = "single"`, at most one ACK
    /// is released.
    fn pump(&mut self, now: Time, view: LinkView) {
        self.next_tti = None;
        while self.timer.is_none() && !self.waiting.is_empty() {
            let departs = self.departs(now, view);
            if departs > now && self.waiting.len() <= MOST_WAITING {
                self.timer = Some(departs);
                return;
            }
            self.send_head(now);
            if self.config.step == Step::Single {
                self.next_tti = self.tti_after(now).filter(|_| !self.waiting.is_empty());
                return;
            }
        }
    }

    /// Start of the next TTI; `None` without TTIs.
    fn tti_after(&self, now: Time) -> Option<Time> {
        let tti = self.config.tti.as_nanos();
        (tti > 0).then(|| Time::from_nanos((now.as_nanos() + 1).next_multiple_of(tti)))
    }

    fn send_head(&mut self, now: Time) {
        if let Some(ack) = self.waiting.pop_front() {
            self.left = Some(now);
            self.output.push_back(Output::ToSender(ack));
        }
    }

    /// Releases all waiting ACKs of a flow at once, in their order of arrival.
    fn send_all_of(&mut self, now: Time, flow: FlowId) {
        let output = &mut self.output;
        let before = output.len();
        self.waiting.retain(|ack| {
            let stays = ack.flow != flow;
            if !stays {
                output.push_back(Output::ToSender(*ack));
            }
            stays
        });
        if output.len() > before {
            self.left = Some(now);
        }
        if self.waiting.is_empty() {
            (self.timer, self.next_tti) = (None, None);
        }
    }

    /// Recalculates a running delay after the occupancy has changed.
    fn retime(&mut self, now: Time, view: LinkView) {
        if self.config.retime && self.timer.take().is_some() {
            self.pump(now, view);
        }
    }
}

impl Regulator for AckRateControl {
    fn on_data(&mut self, _: Time, segment: &Segment, _: LinkView) -> Verdict {
        self.packet_bytes = self.packet_bytes.max(segment.wire_bytes());
        Verdict::Forward
    }

    fn on_queued(&mut self, now: Time, _: &Segment, view: LinkView) {
        self.retime(now, view);
    }

    fn on_dropped(&mut self, now: Time, _: &Segment, _: Cause, view: LinkView) {
        self.retime(now, view);
    }

    fn on_departed(&mut self, now: Time, _: &Segment, view: LinkView) {
        self.retime(now, view);
    }

    fn handle_ack(&mut self, now: Time, ack: Segment, view: LinkView) {
        if !ack.is_pure_ack() {
            self.send_all_of(now, ack.flow);
            self.output.push_back(Output::ToSender(ack));
            return;
        }
        self.waiting.push_back(ack);
        if self.waiting.len() > MOST_WAITING {
            self.timer = None;
        }
        self.pump(now, view);
    }

    fn handle_timeout(&mut self, now: Time, view: LinkView) {
        if self.timer.is_some_and(|departs| departs <= now) {
            self.timer = None;
            self.send_head(now);
            self.pump(now, view);
        } else if self.next_tti.is_some_and(|tti| tti <= now) {
            self.pump(now, view);
        }
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        self.output.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.timer.or(self.next_tti)
    }

    fn close(&mut self, now: Time, flow: FlowId) {
        self.send_all_of(now, flow);
    }

    fn held(&self, flow: FlowId) -> usize {
        self.waiting.iter().filter(|ack| ack.flow == flow).count()
    }
}

#[cfg(test)]
mod tests;
