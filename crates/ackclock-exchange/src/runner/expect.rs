//! What the sender must say, beside what it says.

use ackclock_core::{Flags, Segment, Span, Time};

use super::{apart, between};
use crate::report::{Burst, seconds};
use crate::script::{Options, Packet, letters};

/// A packet that is waited for, and what of it was sent.
pub(super) struct Expected<'a> {
    packet: &'a Packet,
    from: Time,
    until: Time,
    /// Clock of the sender's timestamps, and how far off they may be.
    tick: Span,
    tolerance: Span,
    sent: Option<Burst>,
}

impl<'a> Expected<'a> {
    pub(super) fn new(packet: &'a Packet, from: Time, until: Time, tick: Span, tolerance: Span) -> Self {
        Self { packet, from, until, tick, tolerance, sent: None }
    }

    /// Whether all of it was sent.
    pub(super) fn is_complete(&self) -> bool {
        self.sent.is_some_and(|sent| sent.len == self.packet.len)
    }

    /// Takes in the next segment that was sent; `shift` is how far the script's timestamps are ahead of the sender's.
    ///
    /// # Errors
    /// What is sent instead.
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

    /// What is missing, in words.
    pub(super) fn missing(&self) -> String {
        let until = seconds(self.until);
        match self.sent {
            None => format!("nothing was sent until {until}"),
            Some(sent) => format!("until {until} only `{}` was sent", sent.text(0)),
        }
    }

    /// The control bits of all that was sent are those expected. PSH says nothing: it stands where a chunk of the device ends.
    ///
    /// # Errors
    /// Which they are.
    pub(super) fn check_flags(&self, shift: Option<u32>) -> Result<(), String> {
        let Some(sent) = self.sent else { return Ok(()) };
        let (expected, were) = (self.packet.flags.0, sent.flags.0);
        if (expected ^ were) & !Flags::PSH.0 == 0 {
            return Ok(());
        }
        let (text, flags) = (sent.text(shift.unwrap_or(0)), letters(sent.flags));
        Err(format!("{} > {text}: its flags are {flags}", seconds(sent.at)))
    }

    /// In what a segment differs from what is expected next.
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
            return Some("its codepoint is another".to_owned());
        }
        let options = packet.options.as_ref()?;
        self.other_options(options, segment, shift)
    }

    fn other_options(&self, options: &Options, segment: &Segment, shift: &mut Option<u32>) -> Option<String> {
        let (expected, syn) = (options.syn, segment.syn_options().unwrap_or_default());
        if expected.mss != syn.mss {
            return Some("its `mss` is another".to_owned());
        }
        if expected.sack_permitted != syn.sack_permitted {
            return Some("it differs in `sackOK`".to_owned());
        }
        // The sender takes no data, so the shift of its own window says nothing.
        if expected.window_scale.is_some() != syn.window_scale.is_some() {
            return Some("it differs in `wscale`".to_owned());
        }
        if options.sack != segment.sack() {
            return Some("its `sack` is another".to_owned());
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
                // Nothing but a first SYN echoes 0: elsewhere it stands for any echo.
                let is_any = expected.echo == 0 && self.packet.acknowledges();
                (stamps.echo != expected.echo && !is_any).then(|| format!("it echoes {}", stamps.echo))
            }
            (None, Some(_)) => Some("it has timestamps".to_owned()),
            (Some(_), None) => Some("it has no timestamps".to_owned()),
        }
    }
}
