//! The receiving side of an entity: window, reassembly, and when it reports (TS 25.322 sections 9.7.2 and 11.3.3).

use ackclock_core::{ConfigError, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{TIMERS, in_bounds};
use super::missing::{MissingFormat, Room};
use super::pdu::{Data, Payload};
use super::sdus::Sdus;
use super::sn::{Sn, SnSet};
use super::status::{Mrw, MrwAck, Report, reports};
use crate::DeliveryOrder;

/// When the receiver sends a STATUS.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StatusConfig {
    /// Timer_Status_Prohibit: least time between two STATUS; what triggers one meanwhile is answered at its end.
    pub prohibit: Span,
    /// Timer_Status_Periodic: a STATUS each time, as long as PDUs come or are missing; 0s: none.
    pub period: Span,
    /// Whether a gap in the numbers of PDUs triggers a STATUS, not a poll alone.
    pub missing_pdu: bool,
    /// Whether a STATUS may take the place of padding.
    pub piggyback: bool,
    /// How it lists what is missing: in LIST super-fields, in BITMAP ones, or in those of both that take less room.
    pub missing: MissingFormat,
    /// WINDOW: windows that the receiver allows its peer, each from an instant on; they are told in the STATUS that it triggers and in each after it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowChange>,
}

/// A window that a receiver allows its peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowChange {
    /// From when on.
    pub at: Span,
    /// PDUs that may be unacknowledged, no more than `window`.
    pub pdus: u32,
}

impl Default for StatusConfig {
    fn default() -> Self {
        Self {
            prohibit: Span::from_millis(100),
            period: Span::ZERO,
            missing_pdu: true,
            piggyback: true,
            missing: MissingFormat::default(),
            windows: Vec::new(),
        }
    }
}

impl StatusConfig {
    /// Checks it beside the window of the bearer.
    pub(super) fn check(&self, window: u32) -> Result<(), ConfigError> {
        if self.period != Span::ZERO {
            in_bounds("period", self.period, TIMERS)?;
        }
        if self.prohibit > TIMERS[1] {
            let message = format!("{} is more than {}", self.prohibit, TIMERS[1]);
            return Err(ConfigError::new("prohibit", message));
        }
        for (place, change) in self.windows.iter().enumerate() {
            let refuse = |key, message| Err(ConfigError::new(format!("windows.{place}.{key}"), message));
            if !(1..=window).contains(&change.pdus) {
                return refuse("pdus", format!("{} is not 1 to {window}, the `window`", change.pdus));
            }
            if self.windows[..place].last().is_some_and(|before| before.at >= change.at) {
                return refuse("at", format!("{} does not come after the one before", change.at));
            }
        }
        Ok(())
    }
}

/// What has arrived, and what the peer is told of it.
pub(super) struct Receiver {
    config: StatusConfig,
    order: DeliveryOrder,
    window: u16,
    /// VR(R): the next PDU in sequence.
    vr_r: Sn,
    /// VR(H): the one behind the highest that has arrived.
    vr_h: Sn,
    /// PDUs beyond VR(R) that have arrived.
    received: SnSet,
    contents: Vec<Payload>,
    /// A STATUS was triggered and not sent yet.
    wanted: bool,
    /// PDUs have come, or are missing, since the last STATUS.
    unreported: bool,
    /// Timer_Status_Prohibit: no further STATUS before.
    prohibited: Time,
    /// Timer_Status_Periodic.
    next_periodic: Option<Time>,
    /// Windows of the peer that were in force by now.
    windows: usize,
    /// The acknowledgement of an MRW that is to be sent.
    pub(super) mrw_ack: Option<MrwAck>,
}

impl Receiver {
    pub(super) fn new(config: StatusConfig, order: DeliveryOrder, window: u16) -> Self {
        Self {
            next_periodic: (config.period != Span::ZERO).then_some(Time::ZERO + config.period),
            config,
            order,
            window,
            vr_r: Sn::ZERO,
            vr_h: Sn::ZERO,
            received: SnSet::default(),
            contents: vec![Payload::default(); usize::from(window).next_power_of_two()],
            wanted: false,
            unreported: false,
            prohibited: Time::ZERO,
            windows: 0,
            mrw_ack: None,
        }
    }

    /// An AMD PDU arrives, of the direction of `sdus`. What it completes is handed on.
    pub(super) fn on_data(&mut self, now: Time, data: &Data, sdus: &mut Sdus) {
        // A poll is answered even where the PDU itself is of no use: the peer may not know that it arrived.
        self.wanted |= data.poll;
        self.unreported = true;
        let ahead = data.sn.above(self.vr_r);
        if ahead >= self.window || self.received.contains(data.sn) {
            return;
        }
        let expected = self.vr_h.above(self.vr_r);
        if ahead >= expected {
            self.wanted |= ahead > expected && self.config.missing_pdu;
            self.vr_h = data.sn.plus(1);
        }
        self.received.insert(data.sn);
        let place = data.sn.place(self.contents.len());
        self.contents[place] = data.payload;
        // Where nothing is missing before or has come behind it, an SDU that ends here has just become whole, and one that goes on is not.
        let whole = (ahead == 0 && expected == 0).then_some(now);
        if whole.is_none() || self.order == DeliveryOrder::OutOfSequence {
            sdus.arrive(now, data.payload, self.order);
        }
        self.go_on(now, whole, sdus);
    }

    /// Moves over what is in sequence; SDUs that end there are complete, since `whole` or the last arrival that was noted.
    fn go_on(&mut self, now: Time, whole: Option<Time>, sdus: &mut Sdus) {
        while self.received.contains(self.vr_r) {
            self.received.remove(self.vr_r);
            let payload = self.contents[self.vr_r.place(self.contents.len())];
            self.vr_r = self.vr_r.plus(1);
            if self.order == DeliveryOrder::InSequence {
                payload.ended().for_each(|number| sdus.deliver(now, number, whole));
            }
        }
    }

    /// The peer has given up what comes before: the window moves, and what was not complete is lost.
    pub(super) fn on_mrw(&mut self, now: Time, mrw: Mrw, sdus: &mut Sdus) {
        let ahead = mrw.sn.above(self.vr_r);
        // Beyond the window it can only be below: one that was told again, and is done with.
        if ahead <= self.window {
            sdus.lose_before(now, mrw.keep);
            let expected = self.vr_h.above(self.vr_r);
            for sn in (0..ahead).map(|step| self.vr_r.plus(step)) {
                self.received.remove(sn);
            }
            self.vr_r = mrw.sn;
            if expected < ahead {
                self.vr_h = mrw.sn;
            }
            self.go_on(now, None, sdus);
        }
        let ends = if self.vr_r == mrw.sn { mrw.ends } else { 0 };
        self.mrw_ack = Some(MrwAck { sn: self.vr_r, ends });
    }

    /// Takes in the timers that have ended by `now`.
    pub(super) fn expire(&mut self, now: Time) {
        let period = self.config.period;
        if let Some(next) = self.next_periodic.filter(|&next| next <= now) {
            self.wanted |= self.unreported;
            self.next_periodic = Some(next + period * (now.since(next).as_nanos() / period.as_nanos() + 1));
        }
        while self.next_window() <= now {
            self.windows += 1;
            self.wanted = true;
        }
    }

    /// The window that the peer is told (WINDOW), once it has changed.
    pub(super) fn peer_window(&self) -> Option<u16> {
        let last = self.config.windows[..self.windows].last()?;
        // `check` lets only windows of 11 bits pass.
        Some(last.pdus as u16)
    }

    /// When the window of the peer changes next.
    fn next_window(&self) -> Time {
        self.config.windows.get(self.windows).map_or(Time::NEVER, |change| Time::ZERO + change.at)
    }

    /// Whether a STATUS is to be sent at `now`.
    pub(super) fn reports_at(&self, now: Time) -> bool {
        self.wanted && now >= self.prohibited
    }

    /// Sends what is to be reported at `now`, in at most `most` STATUS PDUs with this room for what is missing.
    pub(super) fn report(&mut self, now: Time, room: Room, most: u32, emit: impl FnMut(Report)) {
        self.wanted = false;
        self.unreported = self.vr_h != self.vr_r;
        self.prohibited = now + self.config.prohibit;
        reports(&self.received, [self.vr_r, self.vr_h], room, self.config.missing, most, emit);
    }

    /// When something is to be sent, at the earliest.
    pub(super) fn due(&self) -> Time {
        if self.mrw_ack.is_some() {
            return Time::ZERO;
        }
        let wanted = if self.wanted { self.prohibited } else { Time::NEVER };
        wanted
            .min(self.next_window())
            .min(self.next_periodic.filter(|_| self.unreported).unwrap_or(Time::NEVER))
    }

    /// Forgets all PDUs (TS 25.322 section 11.4); SDUs of which a part had come are lost with the reset of the peer.
    pub(super) fn reset(&mut self) {
        (self.vr_r, self.vr_h) = (Sn::ZERO, Sn::ZERO);
        self.received = SnSet::default();
        (self.wanted, self.unreported) = (false, false);
        self.prohibited = Time::ZERO;
        self.mrw_ack = None;
    }
}
