//! Window Regulators, which lower the advertised window of each ACK so that the queue has room for the sender's data.
//!
//! The regulators differ in the right edge that an ACK advertises and in the time at which the ACK is sent. All
//! regulators share the [`Advertiser`], which counts the flow's data that has left the queue (`dequeued.rs`), writes
//! windows into headers (`law.rs`), and can enforce a minimum goodput (`floor.rs`).

#[cfg(test)]
mod bench;
pub(crate) mod clip;
mod dequeued;
mod floor;
pub(crate) mod forecast;
mod inside;
mod law;
mod regulator;
mod source;
pub(crate) mod wrb;
pub(crate) mod wrd;
pub(crate) mod wrs;

use ackclock_core::{Flags, Segment, Seq, Time};
use ackclock_link::{Base, Cause, LinkView, Observation};

pub use dequeued::AckKind;
use dequeued::{Count, Dequeued};
use floor::Floor;
pub use law::WindowLaw;

use crate::Allowance;

/// Advertises windows to the sender of one flow and keeps the state that they depend on.
#[derive(Debug)]
struct Advertiser {
    accounts: Dequeued,
    law: WindowLaw,
    /// For an observing bearer: the base that shows which data has certainly left the queue, and the estimated bytes
    /// beyond it.
    left: Option<(Base, u32)>,
    /// Raises the window if it keeps the link idle.
    floor: Option<Floor>,
    /// Minimum advertised window, packets.
    min_window: u32,
    /// Window scale of a flow whose handshake was not seen.
    assumed_scale: Option<u8>,
}

impl Advertiser {
    fn new(count: Count, min_window: u32, assumed_scale: Option<u8>) -> Self {
        let (accounts, law) = (Dequeued::new(count), WindowLaw::new(assumed_scale));
        Self { accounts, law, left: None, floor: None, min_window, assumed_scale }
    }

    /// Adds a floor under the goodput if `wanted`.
    fn with_floor(mut self, wanted: bool) -> Self {
        self.floor = wanted.then(Floor::default);
        self
    }

    /// Processes a packet from the network, which the queue may still refuse. A SYN resets the state.
    fn on_data(&mut self, now: Time, segment: &Segment, view: LinkView) {
        let anew = segment.flags.intersects(Flags::SYN);
        if anew {
            self.law = WindowLaw::new(self.assumed_scale);
            self.floor = self.floor.is_some().then(Floor::default);
        }
        self.accounts.on_data(segment, view);
        if let (Some(floor), Some(buffer)) = (&mut self.floor, self.accounts.buffer())
            && segment.has_data()
            && !anew
        {
            floor.on_data(now, segment.end(), buffer);
            self.accounts.allow_beyond(floor.beyond());
        }
    }

    /// An observing bearer has a new estimate of departures.
    fn on_observation(&mut self, observation: &Observation) {
        self.accounts.on_observation();
        self.left = Some((observation.base, u32::try_from(observation.leaves).unwrap_or(u32::MAX)));
    }

    /// Allowance of `bytes` beyond the ACK number.
    fn beyond_ack(&self, bytes: u32) -> Allowance {
        Allowance { base: Base::Acked, bytes, least: self.least() }
    }

    /// Allowance of `bytes` beyond the data that has left the queue, if its base is known.
    fn beyond_left(&self, bytes: u32) -> Option<Allowance> {
        let (base, leaves) = self.left?;
        // Data that arrived may not have left, such as a SYN without an observation.
        let waits = if base == Base::Arrived { self.accounts.waiting() } else { 0 };
        let bytes = bytes.saturating_add(leaves).saturating_sub(waits);
        Some(Allowance { base, bytes, least: self.least() })
    }

    /// The queue is empty, for this flow and all others.
    fn on_idle(&mut self, now: Time) {
        self.accounts.on_idle();
        if let Some(floor) = &mut self.floor {
            floor.on_idle(now);
        }
    }

    /// A packet was refused, or dropped later.
    fn on_dropped(&mut self, segment: &Segment, cause: Cause, view: LinkView) {
        self.accounts.on_dropped(segment, cause, view);
        if let (Some(floor), Cause::Full | Cause::Aged) = (&mut self.floor, cause) {
            floor.on_dropped(segment.payload.into());
            self.accounts.allow_beyond(floor.beyond());
        }
    }

    /// Writes the window of an ACK of kind `kind`, so that the sender may send up to `edge`.
    fn write(&mut self, now: Time, ack: &mut Segment, kind: AckKind, edge: Option<Seq>) {
        let before = self.law.edge();
        self.law.write(ack, kind, edge, self.least());
        if let (Some(floor), Some(told)) = (&mut self.floor, self.law.edge())
            && before.is_none_or(|before| told.after(before))
        {
            floor.on_told(now, before.unwrap_or(ack.ack), told);
        }
    }

    /// Right edge that `ack` would advertise if the sender may send up to `edge`.
    fn reach(&self, ack: &Segment, edge: Seq) -> Seq {
        self.law.reach(ack, edge, self.least())
    }

    /// Minimum advertised window, bytes.
    fn least(&self) -> u32 {
        self.accounts.window_of(self.min_window)
    }

    /// Whether advertising `edge` with this ACK would shrink the window below the last one.
    fn would_shrink(&self, ack: &Segment, edge: Option<Seq>) -> bool {
        let window = edge.map_or(u32::MAX, |edge| self.law.window_for(ack, edge, self.least()));
        window < self.law.window()
    }

    /// Whether only the minimum window would let the sender send beyond `edge`, into room that the buffer lacks because
    /// it keeps transmitted packets.
    fn lacks_room(&self, ack: &Segment, edge: Seq, view: LinkView) -> bool {
        let furthest = self.law.edge().map_or(edge, |told| told.max(edge));
        let [window, at_least] = [0, self.least()].map(|least| self.law.window_for(ack, furthest, least));
        view.kept() > 0 && self.regulates(ack) && window < at_least
    }

    /// Whether the floor raises the window above the buffer size.
    fn exceeds_buffer(&self) -> bool {
        self.floor.as_ref().is_some_and(|floor| floor.beyond() > 0)
    }

    /// Whether the window of `ack` can be written: its scale and the buffer size are known.
    fn regulates(&self, ack: &Segment) -> bool {
        self.law.applies(ack) && self.accounts.buffer().is_some()
    }
}

/// Whether a segment has a scaled window: a SYN's is unscaled, a RST's has no meaning.
fn tells_a_window(ack: &Segment) -> bool {
    !ack.flags.intersects(Flags::SYN | Flags::RST)
}
