//! Packet capture of a run as a pcapng file for Wireshark, with one interface at the servers and one at the clients.

use std::borrow::Cow;
use std::io::{BufWriter, Write};
use std::time::Duration;

use ackclock_core::{FlowId, MAX_PORTS, Message, Port, Time, Tracer};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, Endianness, PcapError};

use crate::RunError;
use crate::packet::{Interface, Source, packet};

/// A capture point: messages that arrive at this port of this node are captured on this interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tap {
    pub(crate) node: usize,
    pub(crate) port: Port,
    pub(crate) interface: Interface,
    pub(crate) source: Source,
    pub(crate) numbers: Numbers,
}

/// Conversion of an island's flow numbers, which start at zero, to flow numbers in a capture of all islands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    /// Number of the island's first flow in the entire run.
    pub(crate) first: u32,
    /// Number of this island's flows listed in the scenario, without short connections.
    pub(crate) planned: u32,
    /// Number of all islands' flows listed in the scenario, without short connections.
    pub(crate) all: u32,
    /// Number of islands in the run.
    pub(crate) islands: u32,
}

impl Numbers {
    /// Number of the island's flow `flow` in the capture. Short connections come after all planned flows, because the
    /// number of short connections is not known in advance; the short connections of the islands take turns. All
    /// islands have equally many planned flows.
    fn in_capture(self, flow: FlowId) -> FlowId {
        match flow.0.checked_sub(self.planned) {
            None => FlowId(self.first + flow.0),
            Some(number) => FlowId(self.all + number * self.islands + self.first / self.planned),
        }
    }
}

/// Capture file writer for the packets that arrive at its taps.
pub(crate) struct Capture<W: Write> {
    writer: Result<PcapNgWriter<BufWriter<W>>, PcapError>,
    /// Capture points, indexed by node and port.
    taps: Vec<Option<Tap>>,
    packets: u64,
}

/// Number of bytes captured per packet: the largest headers (20 + 60). Payloads are zeros and are not written.
const SNAPLEN: u32 = 80;
/// Timestamp resolution of the file: 10^-9 s.
const NANOSECONDS: u8 = 9;

impl<W: Write> Capture<W> {
    /// Starts a capture. [`Self::finish`] returns write errors.
    pub(crate) fn new(writer: W) -> Self {
        Self { writer: begin(writer), taps: Vec::new(), packets: 0 }
    }

    /// Adds a capture point.
    pub(crate) fn listen(&mut self, tap: Tap) {
        let place = place(tap.node, tap.port);
        if self.taps.len() <= place {
            self.taps.resize(place + 1, None);
        }
        self.taps[place] = Some(tap);
    }

    /// Finishes the packet capture.
    ///
    /// # Errors
    /// Returns the first write error since the start.
    pub(crate) fn finish(&mut self) -> Result<(), RunError> {
        let failed = |error: &dyn std::fmt::Display| RunError::Capture(error.to_string());
        match &mut self.writer {
            Ok(writer) => writer.get_mut().flush().map_err(|error| failed(&error)),
            Err(PcapError::IoError(error)) => Err(failed(error)),
            Err(error) => Err(failed(error)),
        }
    }
}

impl<W: Write + Send> Tracer for Capture<W> {
    fn message(&mut self, now: Time, node: usize, port: Port, message: &Message) {
        let Some(Some(tap)) = self.taps.get(place(node, port)) else { return };
        let (Message::Segment(mut segment), Ok(writer)) = (*message, &mut self.writer) else { return };
        segment.flow = tap.numbers.in_capture(segment.flow);
        let packet = packet(&segment, tap.source, tap.interface, self.packets as u16);
        self.packets += 1;
        let block = EnhancedPacketBlock {
            interface_id: tap.interface as u32,
            timestamp: Duration::from_nanos(now.as_nanos()),
            original_len: packet.length,
            data: Cow::Borrowed(&packet.headers),
            options: Vec::new(),
        };
        if let Err(error) = writer.write_pcapng_block(block) {
            self.writer = Err(error);
        }
    }
}

fn place(node: usize, port: Port) -> usize {
    node * MAX_PORTS + usize::from(port)
}

fn begin<W: Write>(writer: W) -> Result<PcapNgWriter<BufWriter<W>>, PcapError> {
    let mut writer = PcapNgWriter::with_endianness(BufWriter::new(writer), Endianness::Little)?;
    for name in ["server", "client"] {
        let mut interface = InterfaceDescriptionBlock::new(DataLink::RAW, SNAPLEN);
        interface.options = vec![
            InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ];
        writer.write_pcapng_block(interface)?;
    }
    Ok(writer)
}
