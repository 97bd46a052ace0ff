//! Configuration of a data plane.

use ackclock_core::Span;
use ackclock_edge::EdgeConfig;

/// Largest packet of a link, bytes: the MTU of Ethernet.
pub(crate) const MOST_BYTES: u32 = 1500;

/// Settings of a data plane.
#[derive(Clone, Copy, Debug)]
pub struct PlaneConfig<'a> {
    /// Configuration of the edge: the `[edge]` table.
    pub edge: &'a EdgeConfig,
    /// Extra one-way delay between the wired side and the edge, `[path].delay`.
    pub delay: Span,
    /// Seed of the random streams.
    pub seed: u64,
    /// Maximum number of packets inside the plane; half of the packets are reserved for each side.
    pub packets: usize,
    /// Maximum packet size on either side, bytes: the MTU.
    pub packet_bytes: usize,
    /// Maximum number of open connections.
    pub flows: usize,
}

impl<'a> PlaneConfig<'a> {
    /// Settings for this edge: no extra delay, 65 536 packets of at most 1500 bytes, 16 384 connections.
    pub const fn new(edge: &'a EdgeConfig) -> Self {
        Self {
            edge,
            delay: Span::ZERO,
            seed: 1,
            packets: 1 << 16,
            packet_bytes: MOST_BYTES as usize,
            flows: 1 << 14,
        }
    }
}
