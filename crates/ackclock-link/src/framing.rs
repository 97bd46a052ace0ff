//! # Framing
//!
//! Bytes that a packet occupies on a link beyond those of its IP packet.
//!
//! ## Source
//! `tc-cake(8)` of iproute2: its keywords, ATM cells of 48 in 53 bytes (ITU-T I.361), and PTM's 65 bytes for each 64
//! (IEEE 802.3 clause 61).
//!
//! ## What it does
//! A medium around another medium transmits each packet with its size on the link: the bytes of the packet and of its
//! frame, at least the smallest frame, and then in ATM cells or with PTM's coding.
//!
//! ## Differences from the source
//! CAKE can take bytes off; an IP packet has no bytes that its link leaves out. PTM's bytes are counted for each packet,
//! as in CAKE.
//!
//! ## Validation
//! Unit tests compare sizes with sizes calculated by hand.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use ackclock_core::{Rate, Segment, Span, Time};
use delegate::delegate;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::medium::{AnyMedium, Found, Medium, Transmission};

/// How a frame is cut for the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cells {
    #[default]
    None,
    Atm,
    Ptm,
}

/// Bytes that the frames of a link add to each packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct Framing {
    bytes: u16,
    /// Smallest frame.
    least: u16,
    cells: Cells,
}

/// Keywords of `tc-cake(8)`, with bytes, smallest frame and cells.
const KEYWORDS: [(&str, Framing); 13] = {
    const fn of(bytes: u16, least: u16, cells: Cells) -> Framing {
        Framing { bytes, least, cells }
    }
    [
        ("ethernet", of(38, 84, Cells::None)),
        ("docsis", of(18, 64, Cells::None)),
        ("pppoe-ptm", of(30, 0, Cells::Ptm)),
        ("bridged-ptm", of(22, 0, Cells::Ptm)),
        ("pppoa-vcmux", of(10, 0, Cells::Atm)),
        ("pppoa-llc", of(14, 0, Cells::Atm)),
        ("pppoe-vcmux", of(32, 0, Cells::Atm)),
        ("pppoe-llcsnap", of(40, 0, Cells::Atm)),
        ("bridged-vcmux", of(24, 0, Cells::Atm)),
        ("bridged-llcsnap", of(32, 0, Cells::Atm)),
        ("ipoa-vcmux", of(8, 0, Cells::Atm)),
        ("ipoa-llcsnap", of(16, 0, Cells::Atm)),
        ("conservative", of(48, 0, Cells::Atm)),
    ]
};
/// Most bytes that a frame may add, and largest smallest frame.
const MOST: u16 = 256;

impl Framing {
    /// No frame: a packet occupies its own bytes.
    pub const NONE: Self = Self { bytes: 0, least: 0, cells: Cells::None };

    /// Whether packets occupy their own bytes.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// Bytes on the link of a packet of `bytes`.
    pub fn size(&self, bytes: u32) -> u32 {
        let frame = (bytes + u32::from(self.bytes)).max(self.least.into());
        match self.cells {
            Cells::None => frame,
            Cells::Atm => frame.div_ceil(48) * 53,
            Cells::Ptm => frame + frame.div_ceil(64),
        }
    }

    /// A medium whose packets have these frames.
    pub fn around(self, medium: AnyMedium) -> AnyMedium {
        if self.is_none() { medium } else { Framed { inner: medium, framing: self }.any() }
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = KEYWORDS.iter().find(|(_, framing)| framing == self) {
            return f.write_str(name);
        }
        write!(f, "{}", self.bytes)?;
        match self.cells {
            Cells::None => {}
            Cells::Atm => f.write_str(",atm")?,
            Cells::Ptm => f.write_str(",ptm")?,
        }
        if self.least > 0 { write!(f, ",least={}", self.least) } else { Ok(()) }
    }
}

impl From<Framing> for String {
    fn from(framing: Framing) -> Self {
        framing.to_string()
    }
}

/// Parses a keyword, or `BYTES[,atm|,ptm][,least=BYTES]`.
impl FromStr for Framing {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, framing)) = KEYWORDS.iter().find(|(name, _)| *name == text) {
            return Ok(*framing);
        }
        let refused = || {
            let names = KEYWORDS.map(|(name, _)| name).join(", ");
            format!(
                "`{text}` is not an overhead: 0 to {MOST} bytes, as in 44, `44,atm`, `30,ptm` or `18,least=64`, or one of {names}"
            )
        };
        let number = |text: &str| text.parse().ok().filter(|&bytes: &u16| bytes <= MOST).ok_or_else(refused);
        let mut parts = text.split(',').map(str::trim);
        let bytes = parts.next().unwrap_or_default();
        let mut framing = Self { bytes: number(bytes)?, ..Self::NONE };
        for part in parts {
            match (part, part.strip_prefix("least=")) {
                ("atm", _) if framing.cells == Cells::None => framing.cells = Cells::Atm,
                ("ptm", _) if framing.cells == Cells::None => framing.cells = Cells::Ptm,
                (_, Some(least)) if framing.least == 0 => framing.least = number(least)?,
                _ => return Err(refused()),
            }
        }
        Ok(framing)
    }
}

impl<'de> Deserialize<'de> for Framing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Framing;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an overhead: bytes, as in 44 or \"44,atm\", or a keyword such as \"docsis\"")
            }
            fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Framing, E> {
                self.visit_str(&bytes.to_string())
            }
            fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<Framing, E> {
                self.visit_str(&bytes.to_string())
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Framing, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Framing {
    fn schema_name() -> Cow<'static, str> {
        "Framing".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = KEYWORDS.map(|(name, _)| name).join(", ");
        let text = format!("bytes, as in 44, \"44,atm\", \"30,ptm\" or \"18,least=64\", or one of {names}");
        json_schema!({ "type": ["integer", "string"], "minimum": 0, "maximum": MOST, "description": text })
    }
}

/// A medium that transmits packets with the sizes of their frames.
struct Framed {
    inner: AnyMedium,
    framing: Framing,
}

impl Medium for Framed {
    fn transmit(&mut self, arrived: Time, start: Time, segment: &Segment) -> Transmission {
        let mut framed = *segment;
        let size = self.framing.size(segment.wire_bytes());
        framed.header = u16::try_from(size - u32::from(segment.payload)).unwrap_or(u16::MAX);
        self.inner.transmit(arrived, start, &framed)
    }

    delegate! {
        to self.inner {
            fn ready(&mut self, now: Time, found: Found) -> Time;
            fn rate(&self, now: Time) -> Rate;
            fn rate_until(&self, now: Time) -> Time;
            fn work(&mut self, from: Time, until: Time) -> Option<u128>;
            fn restart_work(&mut self, now: Time);
            fn varies(&self) -> bool;
            fn least_delay(&self) -> Span;
        }
    }

    fn foreseeable(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Constant;
    use ackclock_core::{FlowId, Seq};

    fn sizes(text: &str) -> [u32; 2] {
        let framing: Framing = text.parse().unwrap();
        assert_eq!(framing.to_string().parse::<Framing>().unwrap(), framing);
        [40, 1500].map(|bytes| framing.size(bytes))
    }

    /// ATM: 40 + 40 bytes fill 2 cells, 1500 + 40 bytes 33. PTM: 40 + 30 bytes get 2 bytes, 1500 + 30 get 24.
    #[test]
    fn sizes_on_the_line_are_those_calculated_by_hand() {
        assert_eq!(sizes("ethernet"), [84, 1538]);
        assert_eq!(sizes("docsis"), [64, 1518]);
        assert_eq!(sizes("pppoe-llcsnap"), [106, 1749]);
        assert_eq!(sizes("pppoe-ptm"), [72, 1554]);
        assert_eq!(sizes("44,atm"), [106, 33 * 53]);
        assert_eq!(sizes("8"), [48, 1508]);
        assert_eq!(sizes("18,least=64"), sizes("docsis"));
    }

    #[test]
    fn a_packet_takes_the_time_of_its_frame() {
        let framing: Framing = "ethernet".parse().unwrap();
        let mut medium = framing.around(Constant::new(Rate::from_bps(8_000_000), Span::ZERO).any());
        let packet = Segment::data(FlowId(0), Seq(0), 1460, 40);
        let transmission = medium.transmit(Time::ZERO, Time::ZERO, &packet);
        // 1538 bytes at 1 byte per microsecond.
        assert_eq!(transmission.departs, Time::ZERO + Span::from_micros(1538));
    }

    #[test]
    fn what_is_no_overhead_is_refused() {
        for text in ["", "-4", "300", "44,atm,ptm", "44,least=1000", "dosis"] {
            let error = text.parse::<Framing>().unwrap_err();
            assert!(error.starts_with(&format!("`{text}` is not an overhead: 0 to 256 bytes")), "{error}");
        }
    }
}
