//! Sending end of a direction, which implements the RLC protocol without a clock. The channel decides when the end may
//! send, and how many PDUs.

use ackclock_core::results::RlcResult;
use ackclock_core::{Span, Time};

use super::discard::Discard;
use super::entity::Entity;
use super::loss_cause::LossCause;
use super::pdu::Pdu;
use super::pdu_size::PduSize;
use super::poll::Polling;
use super::receiver::Receiver;
use super::reset::Resets;
use super::rlc::RlcConfig;
use super::rlc::RlcMode;
use super::sdus::Sdus;
use super::segmentation::Shape;
use super::sn::Sn;
use super::status::{self, Status, TellsWindow};
use super::statuses::Statuses;
use super::transmitter::{Limits, Transmitter};
use super::unacknowledged::Unacknowledged;

/// Maximum size of a STATUS PDU if PDUs fill grants, octets.
const MOST_STATUS: u32 = 42;

/// Entity that sends in one direction and receives in the opposite direction.
pub(crate) enum End {
    /// RLC entity in acknowledged mode.
    Acknowledged(Box<Entity>),
    /// RLC entity in unacknowledged mode.
    Unacknowledged(Unacknowledged),
}

/// Action that the channel must take after filling a TTI.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// No action is required.
    Nothing,
    /// No RESET was answered: the bearer must be set up again at both ends.
    SetUpAnew,
}

impl End {
    /// Creates an end that retransmits a PDU only from `guard` after the PDU's last transmission on, when a STATUS can
    /// cover the PDU.
    pub(crate) fn new(config: &RlcConfig, guard: Span) -> Self {
        let ([octets, _], header) = (config.unit(), config.header_octets());
        let shape = match config.pdu {
            PduSize::Fixed(_) => Shape::fixed(octets, header),
            PduSize::Grant => Shape::Grant(header),
            PduSize::Packet => Shape::Packet(header),
        };
        let status_octets = if config.grants() { MOST_STATUS } else { octets + header };
        if config.mode == RlcMode::Unacknowledged {
            return Self::Unacknowledged(Unacknowledged { shape, pdus: 0 });
        }
        // The configuration check accepts only window sizes of at most 11 bits.
        let window = config.window as u16;
        let limits = Limits { window, max_dat: config.max_dat, guard: config.guard.unwrap_or(guard) };
        let discard = Discard::new(config.mrw.timer, config.mrw.most, config.on_max_dat);
        let polling = Polling::new(config.poll.clone());
        let tells_window =
            if config.status.windows.is_empty() { TellsWindow::Never } else { TellsWindow::Sometimes };
        Self::Acknowledged(Box::new(Entity {
            transmitter: Transmitter::new(shape, limits, polling, discard),
            receiver: Receiver::new(config.status.clone(), config.order, window),
            resets: Resets::new(config.reset.timer, config.reset.most),
            status_room: status::room(status_octets, tells_window),
            piggyback: config.status.piggyback,
            statuses: Statuses::default(),
        }))
    }

    /// Room that a TTI of `room` PDUs, or octets if PDUs fill grants, has after these PDUs.
    pub(crate) fn left(&self, room: usize, pdus: &[Pdu]) -> usize {
        let shape = match self {
            Self::Acknowledged(entity) => entity.transmitter.shape,
            Self::Unacknowledged(end) => end.shape,
        };
        shape.left(room, pdus).units
    }

    /// Fills `pdus` with PDUs to send at `now`: at most `room` PDUs, or octets if PDUs fill grants.
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

    /// Discards the SDUs of this end that have reached the age limit at `now`; its peer delivers those that no longer wait
    /// for earlier ones.
    pub(crate) fn expire(&mut self, now: Time, sdus: &mut Sdus) {
        sdus.expire(now);
        if let Self::Acknowledged(entity) = self {
            if let Some(keep) = sdus.after_aged(now) {
                entity.transmitter.discard_before(now, keep, LossCause::Aged, sdus);
            }
            entity.transmitter.stay_alert(now, sdus);
        }
    }

    /// Returns the STATUS in a PDU of this end that arrives at the peer.
    #[inline]
    pub(crate) fn take_status(&mut self, pdu: &Pdu) -> Option<Status> {
        match self {
            Self::Acknowledged(entity) => pdu.status().and_then(|status| entity.statuses.take(status)),
            Self::Unacknowledged(_) => None,
        }
    }

    /// Processes a PDU that arrives with its STATUS, or is lost. The argument `of_peer` holds the SDUs of the PDU's
    /// direction, and `own` the SDUs of the opposite direction.
    pub(crate) fn on_pdu(
        &mut self,
        now: Time,
        pdu: &Pdu,
        status: Option<&Status>,
        of_peer: &mut Sdus,
        own: &mut Sdus,
    ) {
        match self {
            Self::Acknowledged(entity) => entity.on_pdu(now, pdu, status, of_peer, own),
            Self::Unacknowledged(end) => end.on_pdu(now, pdu, of_peer),
        }
    }

    /// Processes the removal of a PDU by a hand-over. Without retransmissions, the SDUs of the PDU are lost.
    pub(crate) fn on_removed(&self, now: Time, pdu: &Pdu, of_peer: &mut Sdus) {
        if let (Self::Unacknowledged(_), Pdu::Data(data)) = (self, pdu) {
            data.payload.sdus().for_each(|number| of_peer.lose(now, number, LossCause::Handover));
        }
    }

    /// Earliest time at which the end has something to send; [`Time::ZERO`] if it already has something to send.
    pub(crate) fn due(&self, sdus: &Sdus) -> Time {
        match self {
            Self::Acknowledged(entity) => entity.due(sdus),
            Self::Unacknowledged(_) => Unacknowledged::due(sdus),
        }
    }

    /// Number of octets that the end has to send at `now`, if PDUs fill grants.
    pub(crate) fn octets(&self, now: Time, sdus: &Sdus) -> u32 {
        match self {
            Self::Acknowledged(entity) => entity.octets(now, sdus),
            Self::Unacknowledged(end) => sdus.octets(end.shape.overhead()),
        }
    }

    /// Discards the state of all PDUs sent and received; sequence numbers start at 0 again.
    pub(crate) fn re_establish(&mut self) {
        if let Self::Acknowledged(entity) = self {
            entity.transmitter.reset();
            entity.receiver.reset();
            entity.resets.renew();
            entity.statuses.clear();
        }
    }

    /// Sequence number of the next new PDU; `None` in a mode without retransmissions.
    pub(crate) fn next_new(&self) -> Option<Sn> {
        match self {
            Self::Acknowledged(entity) => Some(entity.transmitter.vt_s),
            Self::Unacknowledged(_) => None,
        }
    }

    /// Sets the minimum age of a PDU's last transmission at which a STATUS can cover the PDU.
    pub(crate) fn set_guard(&mut self, guard: Span) {
        if let Self::Acknowledged(entity) = self {
            entity.transmitter.guard = guard;
        }
    }

    /// Counts of the PDUs that this end has sent, and of duplicates that its peer `peer` has received.
    pub(crate) fn counts(&self, peer: &Self) -> RlcResult {
        let (entity, peer) = match (self, peer) {
            (Self::Acknowledged(entity), Self::Acknowledged(peer)) => (entity, peer),
            (Self::Unacknowledged(end), _) => return RlcResult { pdus: end.pdus, ..RlcResult::default() },
            _ => return RlcResult::default(),
        };
        let Transmitter { new_pdus, retransmissions, .. } = entity.transmitter;
        RlcResult {
            pdus: new_pdus + retransmissions,
            retransmitted: retransmissions,
            duplicates: peer.receiver.duplicates,
            status: entity.statuses.sent,
            resets: entity.resets.requested,
            ..RlcResult::default()
        }
    }

    /// Number of PDUs in flight, room in the window in PDUs, and total retransmissions; `None` in unacknowledged mode.
    pub(crate) fn window(&self) -> Option<[f64; 3]> {
        let Self::Acknowledged(entity) = self else { return None };
        let Transmitter { window, retransmissions, .. } = entity.transmitter;
        let outstanding = entity.transmitter.outstanding();
        // After the peer reduced the window, more PDUs than the window may be in flight.
        let open = window.saturating_sub(outstanding);
        Some([outstanding.into(), open.into(), retransmissions as f64])
    }
}
