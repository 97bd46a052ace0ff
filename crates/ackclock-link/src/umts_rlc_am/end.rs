//! The sending end of a direction: the protocol without a clock. The channel decides when it may send, and how many
//! PDUs.

use ackclock_core::{Span, Time};

use super::discard::Discard;
use super::entity::Entity;
use super::pdu::Pdu;
use super::poll::Polling;
use super::receiver::Receiver;
use super::reset::Resets;
use super::rlc::RlcConfig;
use super::rlc::RlcMode;
use super::sdus::Sdus;
use super::segmentation::Shape;
use super::sn::Sn;
use super::status::{self, TellsWindow};
use super::transmitter::{Limits, Transmitter};
use super::unacknowledged::Unacknowledged;

/// The entity that sends in a direction and receives in the other.
pub(crate) enum End {
    /// Acknowledged mode.
    Acknowledged(Box<Entity>),
    /// Unacknowledged mode.
    Unacknowledged(Unacknowledged),
}

/// Action requested by a filled TTI.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// No action.
    Nothing,
    /// All RESETs are unanswered: both ends must be set up again.
    SetUpAnew,
}

impl End {
    /// An end that retransmits a PDU only if a STATUS can cover it: `guard` after it was sent.
    pub(crate) fn new(config: &RlcConfig, guard: Span) -> Self {
        let octets = config.pdu_octets();
        if config.mode == RlcMode::Unacknowledged {
            return Self::Unacknowledged(Unacknowledged {
                shape: Shape::new(octets, config.header_octets()),
            });
        }
        // `check` accepts only windows of 11 bits.
        let window = config.window as u16;
        let limits = Limits { window, max_dat: config.max_dat, guard: config.guard.unwrap_or(guard) };
        let discard = Discard::new(config.mrw.timer, config.mrw.most, config.on_max_dat);
        let polling = Polling::new(config.poll.clone());
        let tells_window =
            if config.status.windows.is_empty() { TellsWindow::Never } else { TellsWindow::Sometimes };
        Self::Acknowledged(Box::new(Entity {
            transmitter: Transmitter::new(
                Shape::new(octets, config.header_octets()),
                limits,
                polling,
                discard,
            ),
            receiver: Receiver::new(config.status.clone(), config.order, window),
            resets: Resets::new(config.reset.timer, config.reset.most),
            status_room: status::room(octets + config.header_octets(), tells_window),
            piggyback: config.status.piggyback,
        }))
    }

    /// Fills `pdus` with at most `room` PDUs that are sent at `now`.
    pub(crate) fn fill(&mut self, now: Time, room: usize, sdus: &mut Sdus, pdus: &mut Vec<Pdu>) -> Asks {
        match self {
            Self::Acknowledged(entity) => {
                let failed = entity.resets.has_failed(now);
                entity.fill_tti(now, room, sdus, pdus);
                if failed { Asks::SetUpAnew } else { Asks::Nothing }
            }
            Self::Unacknowledged(end) => {
                end.fill_tti(now, room, sdus, pdus);
                Asks::Nothing
            }
        }
    }

    /// Processes a PDU that arrives or is lost: `of_peer` are the SDUs of its direction, `own` those of the other.
    pub(crate) fn on_pdu(&mut self, now: Time, pdu: &Pdu, of_peer: &mut Sdus, own: &mut Sdus) {
        match self {
            Self::Acknowledged(entity) => entity.on_pdu(now, pdu, of_peer, own),
            Self::Unacknowledged(_) => Unacknowledged::on_pdu(now, pdu, of_peer),
        }
    }

    /// Earliest time at which there is something to send; [`Time::ZERO`] if there is already.
    pub(crate) fn due(&self, sdus: &Sdus) -> Time {
        match self {
            Self::Acknowledged(entity) => entity.due(sdus),
            Self::Unacknowledged(_) => Unacknowledged::due(sdus),
        }
    }

    /// Forgets everything that was sent and received.
    pub(crate) fn set_up_anew(&mut self, now: Time, own: &mut Sdus) {
        if let Self::Acknowledged(entity) = self {
            entity.reset(now, own);
            entity.resets.renew();
        }
    }

    /// Number of the next new PDU; `None` if PDUs are never retransmitted.
    pub(crate) fn next_new(&self) -> Option<Sn> {
        match self {
            Self::Acknowledged(entity) => Some(entity.transmitter.vt_s),
            Self::Unacknowledged(_) => None,
        }
    }

    /// A STATUS cannot know of a PDU that was sent so shortly before.
    pub(crate) fn set_guard(&mut self, guard: Span) {
        if let Self::Acknowledged(entity) = self {
            entity.transmitter.guard = guard;
        }
    }

    /// PDUs in flight, room in the window, and total retransmissions; `None` in unacknowledged mode.
    pub(crate) fn window(&self) -> Option<[f64; 3]> {
        let Self::Acknowledged(entity) = self else { return None };
        let Transmitter { window, retransmissions, .. } = entity.transmitter;
        let outstanding = entity.transmitter.outstanding();
        // More than the window may be in flight after the peer has reduced it.
        let open = window.saturating_sub(outstanding);
        Some([outstanding.into(), open.into(), retransmissions as f64])
    }
}
