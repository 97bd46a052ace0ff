//! Writes the window of an ACK so that the sender may send exactly up to a right edge.
//!
//! The written window never exceeds the window that the receiver offers. The right edge never moves left of an edge
//! that the regulator advertised earlier (RFC 9293 section 3.8.6 discourages shrinking). A window of zero is written
//! only if the receiver's window is zero. The window field counts units of `2^s` bytes and is rounded down. The window
//! field is rounded up only if rounding down would move the right edge left or fall below the minimum.

use ackclock_core::{ConfigError, LARGEST_WINDOW_SCALE, Segment, Seq};

use super::dequeued::AckKind;

/// Windows advertised to the sender of one flow.
#[derive(Debug)]
pub struct WindowLaw {
    /// Window scale to assume for a flow whose handshake was not seen. With `None`, windows of a flow whose handshake
    /// was not seen are not changed.
    assumed_scale: Option<u8>,
    /// Furthest right edge advertised to the sender.
    edge: Option<Seq>,
    /// ACK number and window field of the last ACK written.
    last: Option<(Seq, u16)>,
    /// Last advertised window before rounding, bytes.
    window: u32,
}

impl WindowLaw {
    /// Creates the state of a flow to which no window was advertised yet. A flow whose handshake was not seen has the
    /// window scale `assumed_scale`.
    pub const fn new(assumed_scale: Option<u8>) -> Self {
        Self { assumed_scale, edge: None, last: None, window: 0 }
    }

    /// Whether the window of `ack` can be written: the window scale is known and the receiver's window is not zero.
    pub(super) fn applies(&self, ack: &Segment) -> bool {
        self.scale(ack).is_some() && ack.window > 0
    }

    /// Window in bytes, before rounding, that lets the sender send up to `target`; at least `least` bytes.
    pub(super) fn window_for(&self, ack: &Segment, target: Seq, least: u32) -> u32 {
        let offered = u32::from(ack.window) << self.scale(ack).unwrap_or(0);
        target.since(ack.ack).max(least).min(offered)
    }

    /// Furthest right edge advertised to the sender.
    pub(super) fn edge(&self) -> Option<Seq> {
        self.edge
    }

    /// Right edge that `ack` would advertise for a window that ends at `target`, or for a window of `least` bytes if
    /// the window to `target` is smaller.
    pub(super) fn reach(&self, ack: &Segment, target: Seq, least: u32) -> Seq {
        let scale = self.scale(ack).unwrap_or(0);
        ack.ack
            + (field_of(self.window_for(ack, target, least), least, scale).min(ack.window.into()) << scale)
    }

    /// Last advertised window before rounding, bytes.
    pub(super) fn window(&self) -> u32 {
        self.window
    }

    /// Writes the window of an ACK of kind `kind` so that the sender may send up to `target`. If `target` is `None`,
    /// the window stays unchanged.
    pub fn write(&mut self, ack: &mut Segment, kind: AckKind, target: Option<Seq>, least: u32) {
        match target {
            Some(target) if kind == AckKind::Duplicate => self.repeat(ack, target, least),
            Some(target) => self.advertise(ack, target, least),
            None => {}
        }
    }

    /// Records the window of an ACK that passes unchanged.
    pub fn pass(&mut self, ack: &mut Segment) {
        if let Some(scale) = self.scale(ack).filter(|_| self.applies(ack)) {
            self.put(ack, ack.window, scale);
        }
    }

    fn advertise(&mut self, ack: &mut Segment, target: Seq, least: u32) {
        let Some(scale) = self.scale(ack).filter(|_| self.applies(ack)) else { return };
        self.window = self.window_for(ack, target, least);
        let kept = self.edge.map_or(0, |edge| edge.since(ack.ack)).div_ceil(1 << scale);
        let field = field_of(self.window, least, scale).max(kept).max(1).min(ack.window.into());
        // The window field is at most the receiver's window field, so it fits into 16 bits.
        self.put(ack, field as u16, scale);
    }

    /// Gives a duplicate ACK the window field of the ACK that it repeats: an ACK with a different window would not
    /// count as a duplicate (RFC 5681 section 2).
    fn repeat(&mut self, ack: &mut Segment, target: Seq, least: u32) {
        match (self.last, self.scale(ack)) {
            (Some((number, field)), Some(scale)) if number == ack.ack && self.applies(ack) => {
                self.put(ack, field.min(ack.window), scale);
            }
            _ => self.advertise(ack, target, least),
        }
    }

    fn put(&mut self, ack: &mut Segment, field: u16, scale: u8) {
        ack.window = field;
        self.last = Some((ack.ack, field));
        let edge = ack.ack + (u32::from(field) << scale);
        self.edge = Some(self.edge.map_or(edge, |old| old.max(edge)));
    }

    fn scale(&self, ack: &Segment) -> Option<u8> {
        ack.scale().or(self.assumed_scale)
    }
}

/// Window field for `window` bytes: rounded down, but not below `least` bytes.
fn field_of(window: u32, least: u32, scale: u8) -> u32 {
    (window >> scale).max(least.div_ceil(1 << scale))
}

/// Checks the keys that all Window Regulators share: the window scale, and the minimum window in packets.
pub(super) fn check(assumed_scale: Option<u8>, min_window: u32) -> Result<(), ConfigError> {
    if let Some(scale) = assumed_scale.filter(|&scale| scale > LARGEST_WINDOW_SCALE) {
        return Err(ConfigError::new(
            "assumed_scale",
            format!("{scale} is more than {LARGEST_WINDOW_SCALE}"),
        ));
    }
    if !(1..=1000).contains(&min_window) {
        return Err(ConfigError::new("min_window", format!("{min_window} is not 1 to 1000 packets")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::FlowId;

    fn ack(number: u32, window: u16, scale: Option<u8>) -> Segment {
        let mut ack = Segment::pure_ack(FlowId(0), Seq(number), 40);
        ack.window = window;
        ack.set_scale(scale);
        ack
    }

    /// The window field of an advancing ACK after writing.
    fn advertised(law: &mut WindowLaw, mut ack: Segment, target: u32) -> u16 {
        law.write(&mut ack, AckKind::Advance, Some(Seq(target)), 0);
        ack.window
    }

    #[test]
    fn the_field_is_rounded_down_to_its_unit() {
        // 10 000 bytes in units of 128: 78.1.
        let mut law = WindowLaw::new(None);
        assert_eq!(advertised(&mut law, ack(0, 500, Some(7)), 10_000), 78);
    }

    #[test]
    fn the_least_is_not_rounded_down() {
        let mut law = WindowLaw::new(None);
        let mut told = ack(0, 500, Some(8));
        // Two packets of 1448 bytes take 11.3 units of 256.
        assert_eq!(law.reach(&told, Seq(1000), 2896), Seq(3072));
        law.write(&mut told, AckKind::Advance, Some(Seq(1000)), 2896);
        assert_eq!(told.window, 12);
        let mut small = ack(0, 5, Some(8));
        law.write(&mut small, AckKind::Advance, Some(Seq(1000)), 2896);
        assert_eq!(small.window, 5, "all that the receiver offers");
    }

    #[test]
    fn it_is_rounded_up_where_the_edge_would_move_left() {
        let mut law = WindowLaw::new(None);
        // 10 units of 128 reach to 1280.
        assert_eq!(advertised(&mut law, ack(0, 500, Some(7)), 1300), 10);
        // From 100 on 1180 bytes are owed: 9.2 units; 1200 wanted would be 9.4.
        assert_eq!(advertised(&mut law, ack(100, 500, Some(7)), 1300), 10);
        // The edge is now at 100 + 1280 and stays there, whatever the target.
        assert_eq!(advertised(&mut law, ack(228, 500, Some(7)), 1000), 9);
    }

    #[test]
    fn the_window_of_the_receiver_is_never_enlarged() {
        let mut law = WindowLaw::new(None);
        assert_eq!(advertised(&mut law, ack(0, 5000, Some(0)), 10_000), 5000);
        // The receiver itself moves its right edge left.
        assert_eq!(advertised(&mut law, ack(1000, 3000, Some(0)), 10_000), 3000);
    }

    #[test]
    fn the_furthest_edge_is_remembered_while_the_receiver_offers_less() {
        let mut law = WindowLaw::new(None);
        assert_eq!(advertised(&mut law, ack(0, 50_000, Some(0)), 10_000), 10_000);
        assert_eq!(advertised(&mut law, ack(1000, 3000, Some(0)), 10_000), 3000);
        // 10 000 bytes were advertised before, of which 1000 are acknowledged; the receiver offers that again.
        assert_eq!(advertised(&mut law, ack(1000, 50_000, Some(0)), 6000), 9000);
    }

    #[test]
    fn a_duplicate_offers_no_more_than_its_receiver() {
        let mut law = WindowLaw::new(None);
        assert_eq!(advertised(&mut law, ack(0, 50_000, Some(0)), 10_000), 10_000);
        let mut duplicate = ack(0, 5000, Some(0));
        law.write(&mut duplicate, AckKind::Duplicate, Some(Seq(10_000)), 0);
        assert_eq!(duplicate.window, 5000);
    }

    #[test]
    fn zero_is_said_only_where_the_receiver_said_it() {
        let mut law = WindowLaw::new(None);
        assert_eq!(advertised(&mut law, ack(0, 0, Some(0)), 10_000), 0);
        assert_eq!(advertised(&mut law, ack(0, 500, Some(14)), 10_000), 1, "one unit is 16 KiB");
        assert_eq!(
            advertised(&mut law, ack(50_000, 500, Some(14)), 10_000),
            1,
            "the edge lies behind the ACK"
        );
    }

    #[test]
    fn without_a_scale_a_window_is_left_alone_unless_one_is_assumed() {
        assert_eq!(advertised(&mut WindowLaw::new(None), ack(0, 5000, None), 1000), 5000);
        assert_eq!(advertised(&mut WindowLaw::new(Some(2)), ack(0, 5000, None), 1000), 250);
    }

    #[test]
    fn a_duplicate_has_the_field_of_the_ack_that_it_repeats() {
        let mut law = WindowLaw::new(None);
        assert_eq!(advertised(&mut law, ack(0, 50_000, Some(0)), 10_000), 10_000);
        let mut duplicate = ack(0, 50_000, Some(0));
        law.write(&mut duplicate, AckKind::Duplicate, Some(Seq(12_000)), 0);
        assert_eq!(duplicate.window, 10_000);
        // Later ACKs catch up.
        assert_eq!(advertised(&mut law, ack(1000, 50_000, Some(0)), 13_000), 12_000);
    }

    #[test]
    fn the_least_window_is_told_whatever_the_edge() {
        let mut law = WindowLaw::new(None);
        let mut ack = ack(5000, 50_000, Some(0));
        law.write(&mut ack, AckKind::Advance, Some(Seq(5500)), 2920);
        assert_eq!(ack.window, 2920);
    }

    #[test]
    fn scales_and_least_windows_that_make_no_sense_are_named() {
        assert_eq!(check(Some(15), 2).unwrap_err().path, "assumed_scale");
        assert_eq!(check(Some(14), 0).unwrap_err().path, "min_window");
        assert!(check(None, 1).is_ok());
    }
}
