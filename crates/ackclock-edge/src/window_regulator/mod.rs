//! The Window Regulators: each ACK tells the source a window for which the queue has room.
//!
//! They differ in the right edge that an ACK tells, and in when it goes. What they share is the [`Advertiser`]: how far the
//! flow's data has left the queue (`dequeued.rs`), and how a window is written into a header (`law.rs`).

#[cfg(test)]
mod bench;
mod dequeued;
pub(crate) mod forecast;
mod law;
pub(crate) mod wrb;
pub(crate) mod wrd;
pub(crate) mod wrs;

use ackclock_core::{Flags, Segment, Seq};
use ackclock_link::LinkView;

use dequeued::{Count, Dequeued, News};
use law::WindowLaw;

/// Tells the source of one flow its windows, and keeps the accounts from which they follow.
#[derive(Debug)]
struct Advertiser {
    accounts: Dequeued,
    law: WindowLaw,
    /// Least window told, packets.
    min_window: u32,
    /// Shift of the windows of a flow whose handshake was not seen.
    assumed_scale: Option<u8>,
}

impl Advertiser {
    fn new(count: Count, min_window: u32, assumed_scale: Option<u8>) -> Self {
        let (accounts, law) = (Dequeued::new(count), WindowLaw::new(assumed_scale));
        Self { accounts, law, min_window, assumed_scale }
    }

    /// A packet comes from the network, and may be refused. A SYN begins anew.
    fn on_data(&mut self, segment: &Segment, view: LinkView) {
        if segment.flags.intersects(Flags::SYN) {
            self.law = WindowLaw::new(self.assumed_scale);
        }
        self.accounts.on_data(segment, view);
    }

    /// Writes the window of an ACK that goes as soon as it has come. The right edge is that of `edge`.
    fn pass(&mut self, ack: &mut Segment, view: LinkView, edge: impl FnOnce(&Dequeued, Seq) -> Option<Seq>) {
        if tells_a_window(ack) {
            let news = self.accounts.on_ack(ack, view);
            let edge = edge(&self.accounts, ack.ack);
            self.write(ack, news, edge);
        }
    }

    /// Writes the window of an ACK that says `news`, so that the source may send up to `edge`.
    fn write(&mut self, ack: &mut Segment, news: News, edge: Option<Seq>) {
        self.law.write(ack, news, edge, self.least());
    }

    /// The right edge that `ack` would tell, for a source that may send up to `edge`.
    fn reach(&self, ack: &Segment, edge: Seq) -> Seq {
        self.law.reach(ack, edge, self.least())
    }

    /// Least window told, bytes.
    fn least(&self) -> u32 {
        self.accounts.window_of(self.min_window)
    }

    /// Whether an ACK would make the window smaller that was told last, if it told `edge`.
    fn would_shrink(&self, ack: &Segment, edge: Option<Seq>) -> bool {
        let window = edge.map_or(u32::MAX, |edge| self.law.window_for(ack, edge, self.least()));
        window < self.law.window()
    }

    /// Whether the window of `ack` can be written, and there is a buffer to write it from.
    fn regulates(&self, ack: &Segment) -> bool {
        self.law.applies(ack) && self.accounts.buffer().is_some()
    }
}

/// The window of a SYN has no scale, that of a RST no meaning.
fn tells_a_window(ack: &Segment) -> bool {
    !ack.flags.intersects(Flags::SYN | Flags::RST)
}
