//! Compares sent segments with the expected packet.

use ackclock_core::{Flags, Segment, Span, Time};

use super::{apart, between};
use crate::report::{Burst, seconds};
use crate::script::{Options, Packet, letters};

/// An expected packet, and the part of the packet that was sent so far.
pub(super) struct Expected<'a> {
    packet: &'a Packet,
    from: Time,
    until: Time,
    /// Length of a tick of the sender's timestamp clock, and tolerance for the sender's timestamps.
    tick: Span,
    tolerance: Span,
    sent: Option<Burst>,
}

impl<'a> Expected<'a> {
    pub(super) fn new(packet: &'a Packet, from: Time, until: Time, tick: Span, tolerance: Span) -> Self {
        Self { packet, from, until, tick, tolerance, sent: None }
    }

    /// Whether the entire expected packet was sent.
    pub(super) fn is_complete(&self) -> bool {
        self.sent.is_some_and(|sent| sent.len == self.packet.len)
    }

    /// Compares the next sent segment with the expected packet. `shift` is the offset of the script's timestamps
    /// relative to the sender's clock.
    ///
    /// # Errors
    /// Returns an error that describes the segment sent instead of the expected segment.
    pub(super) fn take(
        &mut self,
        at: Time,
        segment: &Segment,
        shift: &mut Option<u32>,
    ) -> Result<(), String> {
        let wrong = self.difference(at, segment, shift);
        let got = Burst::new(at, *segment);
        match &mut self.sent {
            Some(sent) => sent.add(segment),
            None => self.sent = Some(got),
        }
        match wrong {
            None => Ok(()),
            Some(wrong) => Err(format!("{} > {}: {wrong}", seconds(at), got.text(shift.unwrap_or(0)))),
        }
    }

    /// Describes the part of the packet that was not sent.
    pub(super) fn missing(&self) -> String {
        let until = seconds(self.until);
        match self.sent {
            None => format!("nothing was sent until {until}"),
            Some(sent) => format!("until {until} only `{}` was sent", sent.text(0)),
        }
    }

    /// Checks the control bits of all sent segments. PSH is ignored, because its position depends on the device's chunk
    /// size.
    ///
    /// # Errors
    /// Returns an error that names the actual control bits.
    pub(super) fn check_flags(&self, shift: Option<u32>) -> Result<(), String> {
        let Some(sent) = self.sent else { return Ok(()) };
        let (expected, were) = (self.packet.flags.0, sent.flags.0);
        let ae = sent.first.ae();
        if (expected ^ were) & !Flags::PSH.0 == 0 && self.packet.ae == ae {
            return Ok(());
        }
        let (text, flags) = (sent.text(shift.unwrap_or(0)), letters(sent.flags, ae));
        Err(format!("{} > {text}: its flags are {flags}", seconds(sent.at)))
    }

    /// Describes how a segment differs from the expected packet; `None` if the segment matches.
    fn difference(&self, at: Time, segment: &Segment, shift: &mut Option<u32>) -> Option<String> {
        let packet = self.packet;
        let passed = self.sent.map_or(0, |sent| sent.len);
        if segment.seq != packet.seq + passed {
            return Some(format!("it begins at {}, not {}", segment.seq.0, (packet.seq + passed).0));
        }
        let left = packet.len - passed;
        let payload = u32::from(segment.payload);
        if payload > left || (payload == 0 && left > 0) {
            return Some(format!("it has {payload} bytes, not {left}"));
        }
        if at < self.from || at > self.until {
            return Some(format!("its time is not {}", between(self.from, self.until)));
        }
        if packet.acknowledges() && segment.ack != packet.ack {
            return Some(format!("it acknowledges {}", segment.ack.0));
        }
        if packet.ecn.is_some_and(|ecn| ecn != segment.ecn) {
            return Some("its ECN codepoint differs".to_owned());
        }
        let options = packet.options.as_ref()?;
        self.other_options(options, segment, shift)
    }

    fn other_options(&self, options: &Options, segment: &Segment, shift: &mut Option<u32>) -> Option<String> {
        let (expected, syn) = (options.syn, segment.syn_options().unwrap_or_default());
        if expected.mss != syn.mss {
            return Some("its `mss` differs".to_owned());
        }
        if expected.sack_permitted != syn.sack_permitted {
            return Some("its `sackOK` differs".to_owned());
        }
        // Only the presence of the window scale option is compared: the sender receives no data, so its own window
        // scale has no effect.
        if expected.window_scale.is_some() != syn.window_scale.is_some() {
            return Some("its `wscale` differs".to_owned());
        }
        if options.sack != segment.sack() {
            return Some("its `sack` differs".to_owned());
        }
        match (options.timestamps, segment.timestamps()) {
            (None, None) => None,
            (Some(expected), Some(stamps)) => {
                let shift = *shift.get_or_insert(expected.value.wrapping_sub(stamps.value));
                let value = stamps.value.wrapping_add(shift);
                let ticks = value.wrapping_sub(expected.value).min(expected.value.wrapping_sub(value));
                if self.tick * u64::from(ticks) > self.tolerance {
                    return Some(format!("its timestamp is {} off", apart(ticks, self.tick)));
                }
                // A first SYN echoes 0. In any other packet of a script, an echo of 0 matches any echo.
                let is_any = expected.echo == 0 && self.packet.acknowledges();
                (stamps.echo != expected.echo && !is_any).then(|| format!("it echoes {}", stamps.echo))
            }
            (None, Some(_)) => Some("it has timestamps".to_owned()),
            (Some(_), None) => Some("it has no timestamps".to_owned()),
        }
    }
}
