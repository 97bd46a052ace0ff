//! A capture of real packets as a pcapng file that Wireshark reads: one interface a port. Packets are copied on the
//! driver's thread and written on another.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ackclock_core::PacketId;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, Endianness, PcapError};

use crate::{Came, Pool, Port, Side, Went};

/// A port whose packets may be captured.
#[derive(Debug)]
pub struct Tap<P> {
    port: P,
    side: Side,
    to: Option<Sender<Seen>>,
}

/// A packet and when it was seen.
#[derive(Debug)]
struct Seen {
    at: Duration,
    side: Side,
    bytes: Vec<u8>,
}

/// Writes a capture until every tap that feeds it is gone.
#[derive(Debug)]
pub struct Recorder {
    taps: Sender<Seen>,
    thread: JoinHandle<Result<(), PcapError>>,
}

impl<P: Port> Tap<P> {
    /// The port of a side, captured by `recorder` where there is one.
    pub fn new(port: P, side: Side, recorder: Option<&Recorder>) -> Self {
        Self { port, side, to: recorder.map(|recorder| recorder.taps.clone()) }
    }

    #[allow(clippy::disallowed_methods, reason = "captures bear the time of day")]
    fn see(&self, bytes: &[u8]) {
        if let Some(to) = &self.to {
            let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            // A recorder that failed says so when it is finished.
            let _ = to.send(Seen { at, side: self.side, bytes: bytes.to_vec() });
        }
    }
}

impl<P: Port> Port for Tap<P> {
    fn read(&mut self, pool: &mut Pool, into: &mut Vec<PacketId>) -> io::Result<Came> {
        let before = into.len();
        let came = self.port.read(pool, into)?;
        for packet in &into[before..] {
            self.see(pool.bytes(*packet).unwrap_or_default());
        }
        Ok(came)
    }

    fn write(&mut self, packet: &[u8]) -> io::Result<Went> {
        self.see(packet);
        self.port.write(packet)
    }
}

impl<P: AsFd> AsFd for Tap<P> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.port.as_fd()
    }
}

impl Recorder {
    /// Begins a capture.
    pub fn start(out: Box<dyn Write + Send>) -> Self {
        let (taps, seen) = mpsc::channel();
        Self { taps, thread: std::thread::spawn(move || record(out, &seen)) }
    }

    /// Waits until all that was seen is written; the taps must be gone.
    ///
    /// # Errors
    /// The first thing that went wrong.
    pub fn finish(self) -> Result<(), String> {
        drop(self.taps);
        let written = self.thread.join().map_err(|_| "the thread that wrote it died".to_owned())?;
        written.map_err(|error| match error {
            PcapError::IoError(error) => error.to_string(),
            other => other.to_string(),
        })
    }
}

fn record(out: Box<dyn Write + Send>, seen: &Receiver<Seen>) -> Result<(), PcapError> {
    let mut writer = PcapNgWriter::with_endianness(BufWriter::new(out), Endianness::Little)?;
    for name in ["wired", "radio"] {
        let options = vec![
            InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ];
        let interface = InterfaceDescriptionBlock { linktype: DataLink::NULL, snaplen: 0, options };
        writer.write_pcapng_block(interface)?;
    }
    for Seen { at, side, bytes } in seen {
        let framed = framed(&bytes);
        writer.write_pcapng_block(EnhancedPacketBlock {
            interface_id: side as u32,
            timestamp: at,
            original_len: framed.len() as u32,
            data: Cow::Owned(framed),
            options: Vec::new(),
        })?;
    }
    writer.into_inner().flush().map_err(PcapError::IoError)
}

/// A packet behind the address family that the link type `NULL` puts before it. The type `RAW` has nothing there, but
/// libpcap reads only one interface of that.
fn framed(packet: &[u8]) -> Vec<u8> {
    let six = packet.first().is_some_and(|first| first >> 4 == 6);
    let family = if six { FAMILY_6 } else { FAMILY_4 };
    [&family.to_le_bytes(), packet].concat()
}

/// Address families as BSD, where the link type comes from, numbers them.
const FAMILY_4: u32 = 2;
const FAMILY_6: u32 = 24;

/// Times are in units of 10^-9 s.
const NANOSECONDS: u8 = 9;

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_testkit::Written;

    /// A port that gives one packet and takes every other.
    struct One(bool);

    impl Port for One {
        fn read(&mut self, pool: &mut Pool, into: &mut Vec<PacketId>) -> io::Result<Came> {
            if std::mem::replace(&mut self.0, true) {
                return Ok(Came::Nothing);
            }
            let mut buffer = pool.buffer();
            buffer[..4].copy_from_slice(&[0x45, 1, 2, 3]);
            into.extend(pool.claim(&mut buffer, 4));
            Ok(Came::Packets { lost: 0 })
        }
        fn write(&mut self, _: &[u8]) -> io::Result<Went> {
            Ok(Went::Out)
        }
    }

    #[test]
    fn what_comes_in_and_goes_out_is_in_the_capture_with_its_side() {
        let file = Written::default();
        let recorder = Recorder::start(Box::new(file.clone()));
        let mut pool = Pool::new(4, 100);
        let mut tap = Tap::new(One(false), Side::Radio, Some(&recorder));
        tap.read(&mut pool, &mut Vec::new()).unwrap();
        tap.write(&[0x60, 9]).unwrap();
        drop(tap);
        recorder.finish().unwrap();
        let bytes = file.bytes();
        let mut reader = pcap_file::pcapng::PcapNgReader::new(bytes.as_slice()).unwrap();
        let mut packets = Vec::new();
        while let Some(block) = reader.next_block() {
            if let pcap_file::pcapng::Block::EnhancedPacket(packet) = block.unwrap() {
                packets.push((packet.interface_id, packet.data.to_vec()));
            }
        }
        assert_eq!(packets, [(1, vec![2, 0, 0, 0, 0x45, 1, 2, 3]), (1, vec![24, 0, 0, 0, 0x60, 9])]);
    }
}
