//! State that a sender reports: `TCP_INFO`, and the view for controllers.

use ackclock_core::{ConnectionView, Span};

use super::connection::Fin;
use super::{SenderState, TcpSender};
use crate::cc::{Phase, RenewControl};
use crate::config::Switch;
use crate::info::{INFINITE_SSTHRESH, TcpInfo, ca_state, option, state};
use crate::recovery::Recovery;
use crate::sent::Marks;
use crate::workload::Supply;

impl<R: Recovery, C: RenewControl> TcpSender<R, C> {
    /// Current values of all fields of [`TcpInfo`].
    pub(super) fn tcp_info(&self) -> TcpInfo {
        let segments = |bytes: u32| u64::from(bytes / u32::from(self.mss));
        let ssthresh = self.cc.ssthresh();
        TcpInfo {
            tcpi_state: self.connection_state(),
            tcpi_ca_state: self.congestion_state(),
            tcpi_backoff: self.rtt.backoff().into(),
            tcpi_options: self.options(),
            tcpi_snd_wscale: self.peer.scale.into(),
            tcpi_rto: micros(Some(self.rtt.rto())),
            tcpi_snd_mss: self.mss.into(),
            tcpi_unacked: self.board.sent().end() - self.board.sent().first(),
            tcpi_sacked: self.marked(Marks::SACKED),
            tcpi_lost: self.marked(Marks::LOST),
            tcpi_retrans: self.marked(Marks::AGAIN),
            tcpi_rtt: micros(self.rtt.srtt()),
            tcpi_rttvar: micros(self.rtt.rttvar()),
            tcpi_snd_ssthresh: if ssthresh == u32::MAX { INFINITE_SSTHRESH } else { segments(ssthresh) },
            tcpi_snd_cwnd: segments(self.window().cwnd),
            tcpi_total_retrans: self.stats.retransmits,
            tcpi_pacing_rate: self.cc.pacing_rate().map_or(0, |rate| rate.as_bps() / 8),
            tcpi_bytes_acked: self.past.acknowledged,
            tcpi_notsent_bytes: match self.unsent {
                Supply::Endless => u64::MAX,
                Supply::Open(left) | Supply::Bytes(left) => left,
            },
            tcpi_min_rtt: micros(self.rtt.min_rtt()),
            tcpi_data_segs_out: self.stats.segments_sent,
            tcpi_snd_wnd: self.peer.edge.since(self.board.una()).into(),
        }
    }

    /// State of the connection, as its controller sees it.
    pub(super) fn connection_view(&self) -> ConnectionView {
        let backlogged = self.unsent.at_most(1) > 0;
        let full = self.recovery.in_flight(&self.board) + u32::from(self.mss) > self.cc.window();
        ConnectionView {
            backlogged,
            window_limited: backlogged && full && self.state == SenderState::Established,
            min_rtt: self.rtt.min_rtt(),
            mss: self.mss.into(),
            packet: u32::from(self.mss) + u32::from(self.header),
        }
    }

    fn connection_state(&self) -> u64 {
        match self.state {
            SenderState::Idle if self.config.handshake == Switch::On => state::LISTEN,
            SenderState::SynReceived => state::SYN_RECEIVED,
            SenderState::SynSent => state::SYN_SENT,
            SenderState::Established if self.fin == Fin::Sent => state::FIN_SENT,
            SenderState::Idle | SenderState::Established => state::ESTABLISHED,
            SenderState::Closed => state::CLOSED,
        }
    }

    fn congestion_state(&self) -> u64 {
        match self.recovery.phase() {
            Phase::FastRecovery => ca_state::RECOVERY,
            Phase::TimeoutRecovery => ca_state::LOSS,
            Phase::Open if self.ecn.reacted.is_some_and(|end| self.board.una().before(end)) => ca_state::CWR,
            Phase::Open if self.board.sacked() > 0 || self.recovery.has_duplicates() => ca_state::DISORDER,
            Phase::Open => ca_state::OPEN,
        }
    }

    /// TCP options in use; before the handshake, the options that this end would accept.
    fn options(&self) -> u64 {
        let agreed = [
            (self.timestamps == Switch::On, option::TIMESTAMPS),
            (R::USES_SACK, option::SACK),
            (self.peer.scales, option::WINDOW_SCALE),
            (self.ecn.mode.is_on(), option::ECN),
        ];
        agreed.iter().filter(|(is_on, _)| *is_on).map(|(_, bit)| bit).sum()
    }

    /// Number of segments in flight that have the mark `mark`.
    fn marked(&self, mark: Marks) -> u64 {
        let sent = self.board.sent();
        (sent.first()..sent.end()).filter(|&index| sent.get(index).marks.has(mark)).count() as u64
    }
}

fn micros(span: Option<Span>) -> u64 {
    span.map_or(0, |span| span.as_nanos() / 1_000)
}
