//! Shares of the protocols in the bytes from the servers: what a box can regulate, and what it cannot.

use serde::{Deserialize, Serialize};

use crate::maps::Counts;

/// Share of each protocol in the bytes from the servers, 0 to 1; `None` if no byte passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shares {
    /// Share of the bytes from the servers that belong to connections whose windows can be clipped, 0 to 1.
    pub regulated_share: Option<f64>,
    /// Share of TCP in the bytes from the servers, 0 to 1.
    pub tcp_share: Option<f64>,
    /// Share of QUIC in the bytes from the servers, 0 to 1.
    pub quic_share: Option<f64>,
    /// Share of UDP other than QUIC in the bytes from the servers, 0 to 1.
    pub udp_share: Option<f64>,
    /// Share of IPsec (ESP) in the bytes from the servers, 0 to 1.
    pub esp_share: Option<f64>,
    /// Share of all other protocols in the bytes from the servers, 0 to 1.
    pub other_share: Option<f64>,
}

impl Shares {
    /// Returns the shares in the bytes that were counted.
    pub fn of(counts: &Counts) -> Self {
        let all = counts.in_bytes;
        let share = |part: u64| (all > 0).then(|| part as f64 / all as f64);
        let known = counts.in_tcp_bytes + counts.in_quic_bytes + counts.in_udp_bytes + counts.in_esp_bytes;
        Self {
            regulated_share: share(counts.in_flow_bytes),
            tcp_share: share(counts.in_tcp_bytes),
            quic_share: share(counts.in_quic_bytes),
            udp_share: share(counts.in_udp_bytes),
            esp_share: share(counts.in_esp_bytes),
            other_share: share(all.saturating_sub(known)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocols_are_all_of_the_bytes() {
        let counts = Counts {
            in_bytes: 1000,
            in_tcp_bytes: 500,
            in_flow_bytes: 400,
            in_quic_bytes: 250,
            in_udp_bytes: 100,
            in_esp_bytes: 50,
            ..Counts::default()
        };
        let shares = Shares::of(&counts);
        assert_eq!((shares.regulated_share, shares.other_share), (Some(0.4), Some(0.1)));
        assert_eq!(Shares::of(&Counts::default()), Shares::default());
    }
}
