//! # Steered window
//!
//! ## Source
//! M05 section 3.2: a controller sets the window of the connection between proxy and terminal, which has no slow start,
//! additive increase or backoff.
//!
//! ## What it does
//! A steered window keeps its set value on every acknowledgement and loss; losses are retransmitted within the window.
//! After a timeout the window is one segment until the next acknowledgement, as in a kernel. On release, another
//! congestion control starts with the current window and the slow-start threshold of a new connection.
//!
//! ## Differences from the source
//! M05 describes neither timeouts nor the release of the window.
//!
//! ## Validation
//! Unit tests below check a single window. `tests/steered.rs` checks the senders of a relay.

use ackclock_core::{Ecn, Rate, Setting, Span, Time};

use super::RenewControl;
use crate::config::{Halves, SenderConfig};
use crate::congestion_control::{
    AckSample, CcContext, Congestion, CongestionControl, CongestionEvent, Departure,
};

/// Builds a congestion control for a new connection, or for a steered window that is released.
pub type MakeControl = Box<dyn Fn(&CcContext) -> Box<dyn CongestionControl> + Send>;

/// Congestion control whose window can be steered from outside.
pub struct Held {
    hold: Option<Hold>,
    /// Congestion control used while the window is not steered.
    own: Box<dyn CongestionControl>,
    make: MakeControl,
    context: CcContext,
}

/// State of a window that is being steered.
#[derive(Clone, Copy)]
struct Hold {
    window: u32,
    pacing: Option<Rate>,
    /// Whether a timeout occurred and no acknowledgement has arrived since.
    timed_out: bool,
}

impl Held {
    /// Creates an unsteered window. `make` builds the window's congestion control.
    pub fn new(make: MakeControl, context: CcContext) -> Self {
        Self { hold: None, own: make(&context), make, context }
    }
}

impl RenewControl for Held {
    fn renew(&mut self, _: &SenderConfig, context: &CcContext, _: Halves) {
        (self.own, self.context) = ((self.make)(context), *context);
    }
}

impl CongestionControl for Held {
    fn steer(&mut self, setting: &Setting) {
        let timed_out = self.hold.is_some_and(|hold| hold.timed_out);
        match setting.window {
            Some(window) => {
                let window = window.max(self.context.mss);
                self.hold = Some(Hold { window, pacing: setting.pacing, timed_out });
            }
            None => {
                if let Some(Hold { window, .. }) = self.hold.take() {
                    self.own = (self.make)(&CcContext { initial_window: window, ..self.context });
                }
            }
        }
    }

    fn on_ack(&mut self, sample: &AckSample) {
        match &mut self.hold {
            Some(hold) => hold.timed_out = false,
            None => self.own.on_ack(sample),
        }
    }

    fn on_established(&mut self, now: Time, round_trip: Span) {
        if self.hold.is_none() {
            self.own.on_established(now, round_trip);
        }
    }

    fn on_duplicate(&mut self, sample: &AckSample) {
        if self.hold.is_none() {
            self.own.on_duplicate(sample);
        }
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        match &mut self.hold {
            Some(hold) => hold.timed_out |= event.cause == Congestion::Timeout,
            None => self.own.on_congestion(event),
        }
    }

    fn on_recovered(&mut self, now: Time) {
        if self.hold.is_none() {
            self.own.on_recovered(now);
        }
    }

    fn on_spurious(&mut self, now: Time, cause: Congestion) {
        if self.hold.is_none() {
            self.own.on_spurious(now, cause);
        }
    }

    fn adopt(&mut self, window: u32, ssthresh: u32) {
        if self.hold.is_none() {
            self.own.adopt(window, ssthresh);
        }
    }

    fn on_persistent_congestion(&mut self, window: u32) {
        if self.hold.is_none() {
            self.own.on_persistent_congestion(window);
        }
    }

    fn on_sent(&mut self, sent: &Departure) {
        if self.hold.is_none() {
            self.own.on_sent(sent);
        }
    }

    fn window(&self) -> u32 {
        match self.hold {
            Some(Hold { timed_out: true, .. }) => self.context.mss,
            Some(hold) => hold.window,
            None => self.own.window(),
        }
    }

    fn ssthresh(&self) -> u32 {
        if self.hold.is_some() { u32::MAX } else { self.own.ssthresh() }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.hold.map_or_else(|| self.own.pacing_rate(), |hold| hold.pacing)
    }

    fn burst(&self) -> Option<u32> {
        if self.hold.is_some() { None } else { self.own.burst() }
    }

    fn rules_recovery(&self) -> bool {
        self.hold.is_some() || self.own.rules_recovery()
    }

    fn counts_marks(&self) -> bool {
        self.own.counts_marks()
    }

    fn codepoint(&self) -> Ecn {
        self.own.codepoint()
    }

    fn wants_rate(&self) -> bool {
        self.own.wants_rate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::reno::Reno;
    use crate::config::Growth;
    use crate::stack::Stack;
    use ackclock_core::Timer;

    fn held() -> Held {
        let context = CcContext {
            mss: 1000,
            initial_window: 2000,
            initial_ssthresh: 100_000,
            loss_window: 1000,
            stack: Stack::Rfc,
        };
        let make = |context: &CcContext| {
            Box::new(Reno::new(context, Halves::Flight, Growth::Acks)) as Box<dyn CongestionControl>
        };
        Held::new(Box::new(make), context)
    }

    fn loss(cause: Congestion) -> CongestionEvent {
        CongestionEvent {
            now: Time::ZERO,
            cause,
            flight: 8000,
            window: 8000,
            repeated_timeout: false,
            lost_in_all: 0,
        }
    }

    fn told(window: u32) -> Setting {
        Setting { window: Some(window), pacing: None, timer: Timer::Runs }
    }

    #[test]
    fn a_held_window_stays_whatever_is_acknowledged_or_lost() {
        let mut held = held();
        held.on_ack(&AckSample::of(1000));
        assert_eq!(held.window(), 3000, "until then it rules itself, in slow start");
        held.steer(&told(8000));
        held.on_ack(&AckSample::of(1000));
        held.on_congestion(&loss(Congestion::FastRetransmit));
        held.adopt(1000, 1000);
        assert_eq!((held.window(), held.rules_recovery()), (8000, true));
        held.steer(&told(100));
        assert_eq!(held.window(), 1000, "a segment at least");
    }

    #[test]
    fn after_a_timeout_it_is_one_segment_until_something_is_acknowledged() {
        let mut held = held();
        held.steer(&told(8000));
        held.on_congestion(&loss(Congestion::Timeout));
        held.steer(&told(9000));
        assert_eq!(held.window(), 1000);
        held.on_ack(&AckSample::of(1000));
        assert_eq!(held.window(), 9000);
    }

    #[test]
    fn the_window_is_kept_when_it_is_let_go() {
        let mut held = held();
        held.steer(&told(8000));
        held.steer(&Setting::OWN);
        assert_eq!((held.window(), held.ssthresh()), (8000, 100_000));
        held.on_ack(&AckSample::of(1000));
        held.steer(&Setting::OWN);
        assert_eq!(held.window(), 9000, "and it goes on from there");
    }
}
