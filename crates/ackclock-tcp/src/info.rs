//! Socket state as in Linux's `TCP_INFO`, with the same field names.

/// Declares the fields of [`TcpInfo`] once, for the struct and for the names that scripts and Python read.
macro_rules! info {
    ($($(#[doc = $meaning:literal])+ $name:ident),+ $(,)?) => {
        /// State of a sender in the form of `TCP_INFO`. Windows and segments are whole numbers of full segments, times
        /// are in microseconds.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct TcpInfo {
            $($(#[doc = $meaning])+ pub $name: u64),+
        }

        impl TcpInfo {
            /// Name and meaning of each field, in the order of [`Self::values`].
            pub const FIELDS: &[(&str, &str)] = &[$((stringify!($name), concat!($($meaning),+))),+];

            /// The value of each field, in the order of [`Self::FIELDS`].
            pub const fn values(&self) -> [u64; Self::FIELDS.len()] {
                [$(self.$name),+]
            }
        }
    };
}

info! {
    /// State of the connection, `TCP_ESTABLISHED` and so on.
    tcpi_state,
    /// State of congestion avoidance, `TCP_CA_Open` and so on.
    tcpi_ca_state,
    /// Number of doublings of the retransmission timeout.
    tcpi_backoff,
    /// Negotiated options, as a sum of `TCPI_OPT_TIMESTAMPS` and so on.
    tcpi_options,
    /// Window scale of the peer.
    tcpi_snd_wscale,
    /// Retransmission timeout including backoff, microseconds.
    tcpi_rto,
    /// Payload of a full segment, bytes.
    tcpi_snd_mss,
    /// Number of segments sent and not cumulatively acknowledged.
    tcpi_unacked,
    /// Number of segments in flight that SACK reported.
    tcpi_sacked,
    /// Number of segments in flight that are marked lost.
    tcpi_lost,
    /// Number of segments in flight that were retransmitted since they were marked lost.
    tcpi_retrans,
    /// Smoothed round-trip time, microseconds; 0 before the first sample.
    tcpi_rtt,
    /// Mean deviation of the round-trip time, microseconds.
    tcpi_rttvar,
    /// Slow-start threshold, segments; `TCP_INFINITE_SSTHRESH` if the sender has no threshold.
    tcpi_snd_ssthresh,
    /// Congestion window, segments.
    tcpi_snd_cwnd,
    /// Number of segments retransmitted over the whole connection.
    tcpi_total_retrans,
    /// Pacing rate, bytes per second; 0 without pacing.
    tcpi_pacing_rate,
    /// Payload acknowledged so far, bytes.
    tcpi_bytes_acked,
    /// Payload that waits to be sent, bytes.
    tcpi_notsent_bytes,
    /// Smallest round-trip time, microseconds; 0 before the first sample.
    tcpi_min_rtt,
    /// Number of data segments sent, including retransmissions.
    tcpi_data_segs_out,
    /// Peer's window beyond the first unacknowledged byte, bytes.
    tcpi_snd_wnd,
}

/// Names of the values that the state fields and `tcpi_options` can have.
pub const CONSTANTS: &[(&str, u64)] = &[
    ("TCP_ESTABLISHED", state::ESTABLISHED),
    ("TCP_SYN_SENT", state::SYN_SENT),
    ("TCP_SYN_RECV", state::SYN_RECEIVED),
    ("TCP_FIN_WAIT1", state::FIN_SENT),
    ("TCP_CLOSE", state::CLOSED),
    ("TCP_LISTEN", state::LISTEN),
    ("TCP_CA_Open", ca_state::OPEN),
    ("TCP_CA_Disorder", ca_state::DISORDER),
    ("TCP_CA_CWR", ca_state::CWR),
    ("TCP_CA_Recovery", ca_state::RECOVERY),
    ("TCP_CA_Loss", ca_state::LOSS),
    ("TCPI_OPT_TIMESTAMPS", option::TIMESTAMPS),
    ("TCPI_OPT_SACK", option::SACK),
    ("TCPI_OPT_WSCALE", option::WINDOW_SCALE),
    ("TCPI_OPT_ECN", option::ECN),
    ("TCP_INFINITE_SSTHRESH", INFINITE_SSTHRESH),
];

/// Value of `tcpi_snd_ssthresh` for a sender without a slow-start threshold.
pub(crate) const INFINITE_SSTHRESH: u64 = 0x7fff_ffff;

/// States of a connection.
pub(crate) mod state {
    pub(crate) const ESTABLISHED: u64 = 1;
    pub(crate) const SYN_SENT: u64 = 2;
    pub(crate) const SYN_RECEIVED: u64 = 3;
    pub(crate) const FIN_SENT: u64 = 4;
    pub(crate) const CLOSED: u64 = 7;
    pub(crate) const LISTEN: u64 = 10;
}

/// States of congestion avoidance.
pub(crate) mod ca_state {
    pub(crate) const OPEN: u64 = 0;
    pub(crate) const DISORDER: u64 = 1;
    pub(crate) const CWR: u64 = 2;
    pub(crate) const RECOVERY: u64 = 3;
    pub(crate) const LOSS: u64 = 4;
}

/// Bits of `tcpi_options`.
pub(crate) mod option {
    pub(crate) const TIMESTAMPS: u64 = 1;
    pub(crate) const SACK: u64 = 2;
    pub(crate) const WINDOW_SCALE: u64 = 4;
    pub(crate) const ECN: u64 = 8;
}
