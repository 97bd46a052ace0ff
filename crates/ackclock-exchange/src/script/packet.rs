//! Packets of a script: `< S. 0:0(0) ack 1 win 65535 <mss 1460>` without the direction.

use ackclock_core::{Ecn, Flags, Segment, Seq};

use super::options::{self, Options, number};
use crate::connection::FLOW;

/// A packet as written in a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Packet {
    /// ECN codepoint of the IP header; `None` if not written in the script.
    pub(crate) ecn: Option<Ecn>,
    /// Control bits of the TCP header, except AE.
    pub(crate) flags: Flags,
    /// Control bit AE of the TCP header (RFC 9768).
    pub(crate) ae: bool,
    /// Sequence number of the packet's first byte.
    pub(crate) seq: Seq,
    /// Payload length of the packet, bytes.
    pub(crate) len: u32,
    /// Acknowledgement number; meaningless without [`Flags::ACK`].
    pub(crate) ack: Seq,
    /// Window field of the TCP header; `None` if not written in the script.
    pub(crate) window: Option<u16>,
    /// TCP options; `None` if the script has no options or `<...>`.
    pub(crate) options: Option<Options>,
}

/// Letter of the control bit AE in a script.
const AE: char = 'A';
/// Letters that stand for the other control bits in a script.
const LETTERS: [(char, Flags); 7] = [
    ('S', Flags::SYN),
    ('F', Flags::FIN),
    ('R', Flags::RST),
    ('P', Flags::PSH),
    ('.', Flags::ACK),
    ('E', Flags::ECE),
    ('W', Flags::CWR),
];

/// Names of the ECN codepoints in a script.
const CODEPOINTS: [(&str, Ecn); 4] =
    [("[noecn]", Ecn::NotEct), ("[ect0]", Ecn::Ect0), ("[ect1]", Ecn::Ect1), ("[ce]", Ecn::Ce)];

const HELP: &str = "a packet is written like `. 1:1001(1000) ack 1 win 500 <nop>`";

impl Packet {
    pub(crate) fn is_syn(&self) -> bool {
        self.flags.contains(Flags::SYN)
    }

    pub(crate) fn acknowledges(&self) -> bool {
        self.flags.contains(Flags::ACK)
    }

    /// Builds the segment that the peer sends. `echo` converts a timestamp echo of the script to the sender's clock.
    pub(crate) fn segment(&self, echo: impl Fn(u32) -> u32) -> Segment {
        let mut segment = Segment::data(FLOW, self.seq, 0, 40);
        segment.flags = self.flags;
        segment.set_ae(self.ae);
        segment.ack = self.ack;
        segment.window = self.window.unwrap_or(0);
        segment.ecn = self.ecn.unwrap_or_default();
        let Some(options) = &self.options else { return segment };
        if self.is_syn() {
            segment.set_syn_options(options.syn);
        }
        options.sack.iter().for_each(|&block| segment.push_sack(block));
        if let Some(marks) = options.marks {
            segment.set_acc_ecn(marks);
        }
        if let Some(mut stamps) = options.timestamps {
            stamps.echo = echo(stamps.echo);
            segment.set_timestamps(stamps);
        }
        segment
    }
}

/// Parses a packet that the peer sends.
///
/// # Errors
/// Returns an error if the text is not a packet, or the peer of a sender cannot send this packet.
pub(super) fn inbound(text: &str) -> Result<Packet, String> {
    let packet = read(text)?;
    if packet.len > 0 {
        return Err(format!("the peer sends {} bytes of data: a sender takes none", packet.len));
    }
    if packet.window.is_none() && !packet.flags.intersects(Flags::RST) {
        return Err(format!("an inbound packet needs `win`; {HELP}"));
    }
    if packet.options.is_none() && text.contains('<') {
        return Err("`<...>` stands for any options; those of an inbound packet are written out".to_owned());
    }
    Ok(packet)
}

/// Parses a packet expected from the sender.
///
/// # Errors
/// Returns an error if the text is not a packet, or has parts that a sender does not support.
pub(super) fn outbound(text: &str) -> Result<Packet, String> {
    let packet = read(text)?;
    if packet.window.is_some() {
        return Err(
            "`win` of an outbound packet: a sender takes no data, and its window says nothing; leave it out"
                .to_owned(),
        );
    }
    Ok(packet)
}

fn read(text: &str) -> Result<Packet, String> {
    let (head, options) = split_options(text)?;
    let mut words = head.split_whitespace().peekable();
    let ecn = match words.peek() {
        Some(word) if word.starts_with('[') => Some(codepoint(words.next().unwrap_or_default())?),
        _ => None,
    };
    let (flags, ae) = flags(words.next().unwrap_or_default())?;
    let (seq, len) = range(words.next().unwrap_or_default())?;
    let mut packet = Packet { ecn, flags, ae, seq, len, ack: Seq(0), window: None, options };
    let mut has_ack = false;
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_default();
        match word {
            "ack" if !has_ack => {
                packet.ack = Seq(number(word, value)?);
                has_ack = true;
            }
            "win" if packet.window.is_none() => packet.window = Some(number(word, value)?),
            _ => return Err(format!("`{word}` is neither `ack` nor `win`, each once; {HELP}")),
        }
    }
    if has_ack != packet.acknowledges() {
        return Err("`ack` and the flag `.` go together".to_owned());
    }
    check_options(&packet)?;
    Ok(packet)
}

/// Splits a packet into its head and its options.
fn split_options(text: &str) -> Result<(&str, Option<Options>), String> {
    let Some((head, options)) = text.split_once('<') else { return Ok((text, None)) };
    let Some(options) = options.trim_end().strip_suffix('>') else {
        return Err(format!("the options `<{options}` do not end with `>`"));
    };
    Ok((head, options::read(options)?))
}

fn check_options(packet: &Packet) -> Result<(), String> {
    let Some(options) = &packet.options else { return Ok(()) };
    if packet.is_syn() && !options.sack.is_empty() {
        return Err("`sack` stands in a SYN, which reports no data".to_owned());
    }
    if options.marks.is_some() && (packet.is_syn() || options.sack.len() == Segment::MAX_SACK) {
        return Err(format!("`ECN` has no room in a SYN, or beside {} SACK blocks", Segment::MAX_SACK));
    }
    if !packet.is_syn() && options.syn != Default::default() {
        return Err("`mss`, `wscale` and `sackOK` belong to a SYN".to_owned());
    }
    Ok(())
}

fn codepoint(word: &str) -> Result<Ecn, String> {
    let known = CODEPOINTS.iter().find(|(name, _)| *name == word);
    known.map(|(_, ecn)| *ecn).ok_or_else(|| {
        let names = CODEPOINTS.map(|(name, _)| name).join(", ");
        format!("`{word}` is not a codepoint; known are {names}")
    })
}

/// Parses control bits; the second value is AE.
fn flags(word: &str) -> Result<(Flags, bool), String> {
    let (mut flags, mut ae) = (Flags::default(), false);
    if word == "-" {
        return Ok((flags, ae));
    }
    for letter in word.chars() {
        match LETTERS.iter().find(|(known, _)| *known == letter) {
            Some((_, flag)) if !flags.contains(*flag) => flags |= *flag,
            None if letter == AE && !ae => ae = true,
            _ => return Err(format!("`{word}` are not flags: each of S F R P . E W A once, or `-`; {HELP}")),
        }
    }
    if word.is_empty() { Err(format!("there are no flags; {HELP}")) } else { Ok((flags, ae)) }
}

/// Parses a sequence number range: `1:1001(1000)`.
fn range(word: &str) -> Result<(Seq, u32), String> {
    let wrong = || format!("`{word}` is not a range of numbers with its length, like `1:1001(1000)`");
    let (first, rest) = word.split_once(':').ok_or_else(wrong)?;
    let (end, len) = rest.strip_suffix(')').and_then(|rest| rest.split_once('(')).ok_or_else(wrong)?;
    let (first, end, len): (u32, u32, u32) =
        (number("seq", first)?, number("seq", end)?, number("length", len)?);
    if end.wrapping_sub(first) != len {
        return Err(format!("`{word}`: from {first} to {end} there are {} bytes", end.wrapping_sub(first)));
    }
    Ok((Seq(first), len))
}

/// Formats control bits in script notation: `S.`, `.`, or `-` for none. `ae` is the bit AE.
pub fn letters(flags: Flags, ae: bool) -> String {
    let set = LETTERS.iter().filter(|(_, flag)| flags.contains(*flag)).map(|(letter, _)| *letter);
    let letters: String = set.chain(ae.then_some(AE)).collect();
    if letters.is_empty() { "-".to_owned() } else { letters }
}

/// Name of an ECN codepoint.
pub(crate) fn codepoint_name(ecn: Ecn) -> &'static str {
    CODEPOINTS.iter().find(|(_, known)| *known == ecn).map_or("", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_core::{AccEcn, EctField, SackBlock, SynOptions, Timestamps};

    #[test]
    fn a_syn_is_read_with_its_options() {
        let syn = inbound(" SEW 5:5(0) win 65535 <mss 1012,sackOK,TS val 100 ecr 0,nop,wscale 7>").unwrap();
        assert_eq!((syn.flags, syn.seq, syn.len), (Flags::SYN | Flags::ECE | Flags::CWR, Seq(5), 0));
        assert_eq!((syn.window, syn.acknowledges()), (Some(65_535), false));
        let options = syn.options.unwrap();
        let offered = SynOptions { mss: Some(1012), window_scale: Some(7), sack_permitted: true };
        assert_eq!((options.syn, options.timestamps), (offered, Some(Timestamps { value: 100, echo: 0 })));
    }

    #[test]
    fn an_acknowledgement_becomes_a_segment_with_its_blocks() {
        let ack = inbound(" [ce] . 1:1(0) ack 3001 win 7 <sack 6001:7001 4001:5001,nop,nop>").unwrap();
        let segment = ack.segment(|echo| echo);
        assert_eq!((segment.ack, segment.window, segment.ecn), (Seq(3001), 7, Ecn::Ce));
        let block = |left, right| SackBlock { left: Seq(left), right: Seq(right) };
        assert_eq!(segment.sack(), [block(6001, 7001), block(4001, 5001)]);
    }

    #[test]
    fn an_acknowledgement_may_count_marks() {
        let ack = inbound(" .WA 1:1(0) ack 3001 win 7 <sack 6001:7001,ECN e1b 4001 ceb 1000>").unwrap();
        let segment = ack.segment(|echo| echo);
        let marks = AccEcn { field: EctField::Ect1, ect_bytes: 4001, ce_bytes: 1000 };
        assert_eq!((segment.ace(), segment.acc_ecn(), segment.sack().len()), (0b110, Some(marks), 1));
        assert_eq!(letters(segment.flags, segment.ae()), ".WA");
    }

    #[test]
    fn what_a_sender_says_may_span_the_wrap() {
        let packet = outbound(" P. 4294967000:704(1000) ack 1").unwrap();
        assert_eq!((packet.seq, packet.len, packet.options), (Seq(4_294_967_000), 1000, None));
    }

    #[test]
    fn what_is_no_packet_is_refused_with_what_is_wrong() {
        let refused = [
            (" . 1:2(0) ack 1 win 5", "from 1 to 2 there are 1 bytes"),
            (" . 1:1(0) win 5", "`ack` and the flag `.` go together"),
            (" P. 1:11(10) ack 1 win 5", "10 bytes of data"),
            (" . 1:1(0) ack 1", "needs `win`"),
            (" .. 1:1(0) ack 1 win 5", "are not flags"),
            (" . 1:1(0) ack 1 win 65536", "win: `65536` is not a whole number"),
            (" . 1:1(0) ack 1 win 5 urg 3", "`urg` is neither"),
            (" . 1:1(0) ack 1 win 5 <...>", "written out"),
            (" . 1:1(0) ack 1 win 5 <mss 5>", "belong to a SYN"),
            (" [ect9] . 1:1(0) ack 1 win 5", "not a codepoint"),
            (" . 1:1(0) ack 1 win 5 <nop", "do not end with"),
            (" .AA 1:1(0) ack 1 win 5", "are not flags"),
            (" S 1:1(0) win 5 <ECN e0b 1 ceb 0>", "no room in a SYN"),
            ("", "no flags"),
        ];
        for (text, message) in refused {
            let error = inbound(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
        assert!(outbound(" . 1:1(0) ack 1 win 5").unwrap_err().contains("leave it out"));
    }
}
