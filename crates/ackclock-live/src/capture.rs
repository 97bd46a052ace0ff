//! Captures real packets in a pcapng file for Wireshark, at one end of the link. If one file held the packets of both
//! ends, a reader would mistake the second copy of a packet for a retransmission.
//!
//! The driver's thread frames packets, and another thread writes them. If writing is too slow, packets are dropped; the
//! next packet and the final statistics state how many.

use std::borrow::Cow;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ackclock_core::PacketId;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::{InterfaceStatisticsBlock, InterfaceStatisticsOption};
use pcap_file::{DataLink, Endianness, PcapError};

use crate::background::{self, Ending, Inlet};
use crate::{Came, Pool, Port, Went};

/// Port whose packets may be captured.
pub struct Tap<P> {
    port: P,
    to: Option<Recorder>,
}

/// Records packets for a capture, which ends when the recorder is dropped.
pub struct Recorder {
    /// Writer that frames one packet at a time.
    frame: PcapNgWriter<Vec<u8>>,
    inlet: Inlet<u8>,
    seen: u64,
    /// Number of drops already stated in the file.
    told: u64,
}

/// Maximum number of bytes queued for writing: 13 ms at 10 Gbit/s, more than a second at 100 Mbit/s.
const MOST: usize = 16 << 20;

impl<P: Port> Tap<P> {
    /// Wraps a port, whose packets `recorder` captures if given.
    pub fn new(port: P, recorder: Option<Recorder>) -> Self {
        Self { port, to: recorder }
    }
}

impl<P: Port> Port for Tap<P> {
    fn read(&mut self, pool: &mut Pool, into: &mut Vec<PacketId>) -> io::Result<Came> {
        let before = into.len();
        let came = self.port.read(pool, into)?;
        if let Some(recorder) = &mut self.to {
            for packet in &into[before..] {
                recorder.note(pool.bytes(*packet).unwrap_or_default());
            }
        }
        Ok(came)
    }

    fn write(&mut self, packet: &[u8]) -> io::Result<Went> {
        if let Some(recorder) = &mut self.to {
            recorder.note(packet);
        }
        self.port.write(packet)
    }
}

impl<P: AsFd> AsFd for Tap<P> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.port.as_fd()
    }
}

impl Recorder {
    /// Starts a capture at the link's end `name`.
    ///
    /// # Errors
    /// Fails if the writer thread cannot be created.
    pub fn begin(mut out: Box<dyn Write + Send>, name: &str) -> io::Result<(Self, Ending)> {
        let frame = begun(name).map_err(|error| io::Error::other(error.to_string()))?;
        let (inlet, ending) = background::begin(MOST, move |bytes: &[u8]| {
            out.write_all(bytes)?;
            // Flushing the output lets a reader of a pipe see packets at once.
            out.flush()
        })?;
        let mut recorder = Self { frame, inlet, seen: 0, told: 0 };
        recorder.pass();
        Ok((recorder, ending))
    }

    fn note(&mut self, packet: &[u8]) {
        self.seen += 1;
        let lost = self.inlet.lost();
        let missing = (lost > self.told).then(|| EnhancedPacketOption::DropCount(lost - self.told));
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: time_of_day(),
            original_len: packet.len() as u32,
            data: Cow::Borrowed(packet),
            options: missing.into_iter().collect(),
        };
        // Writing to memory cannot fail, and the interface block was written before.
        let _ = self.frame.write_pcapng_block(block);
        self.pass();
        if self.inlet.lost() == lost {
            self.told = lost;
        }
    }

    /// Passes the framed bytes to the writer thread.
    fn pass(&mut self) {
        self.inlet.put(self.frame.get_ref());
        self.frame.get_mut().clear();
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let options = vec![
            InterfaceStatisticsOption::IsbIfRecv(self.seen),
            InterfaceStatisticsOption::IsbIfDrop(self.inlet.lost()),
        ];
        // The library writes the timestamp as one 64-bit number; the format has two 32-bit numbers, the upper half
        // first.
        let timestamp = (time_of_day().as_nanos() as u64).rotate_left(32);
        let block = InterfaceStatisticsBlock { interface_id: 0, timestamp, options };
        let _ = self.frame.write_pcapng_block(block);
        self.inlet.finish(self.frame.get_ref());
    }
}

#[allow(clippy::disallowed_methods, reason = "captures bear the time of day")]
fn time_of_day() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Writes the file header: the captured interface and the unit of time.
fn begun(name: &str) -> Result<PcapNgWriter<Vec<u8>>, PcapError> {
    let mut frame = PcapNgWriter::with_endianness(Vec::new(), Endianness::Little)?;
    let options = vec![
        InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
        InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
    ];
    frame.write_pcapng_block(InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: 0, options })?;
    Ok(frame)
}

/// Exponent of the time unit: timestamps are in units of 10^-9 s.
const NANOSECONDS: u8 = 9;

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use ackclock_testkit::Written;
    use pcap_file::pcapng::{Block, PcapNgReader};

    const LONG: Duration = Duration::from_secs(60);

    /// A port that reads one packet and accepts all others.
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

    /// A file that blocks until released.
    struct Slow(Written, mpsc::Receiver<()>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.1.recv();
            self.0.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Packets of a capture with the number of drops stated before each, and the seen and dropped packets of the final
    /// statistics.
    fn read(file: &Written) -> (Vec<(Vec<u8>, u64)>, [u64; 2]) {
        let bytes = file.bytes();
        let mut reader = PcapNgReader::new(bytes.as_slice()).unwrap();
        let (mut packets, mut ends) = (Vec::new(), [0; 2]);
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::EnhancedPacket(packet) => {
                    let lost = packet.options.iter().map(|option| match option {
                        EnhancedPacketOption::DropCount(lost) => *lost,
                        _ => 0,
                    });
                    packets.push((packet.data.to_vec(), lost.sum()));
                }
                Block::InterfaceStatistics(statistics) => {
                    for option in statistics.options {
                        match option {
                            InterfaceStatisticsOption::IsbIfRecv(seen) => ends[0] = seen,
                            InterfaceStatisticsOption::IsbIfDrop(lost) => ends[1] = lost,
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        (packets, ends)
    }

    #[test]
    fn what_comes_in_and_goes_out_is_in_the_capture_once() {
        let file = Written::default();
        let (recorder, ending) = Recorder::begin(Box::new(file.clone()), "outside").unwrap();
        let mut pool = Pool::new(4, 100);
        let mut tap = Tap::new(One(false), Some(recorder));
        tap.read(&mut pool, &mut Vec::new()).unwrap();
        tap.write(&[0x60, 9]).unwrap();
        drop(tap);
        assert_eq!(ending.wait(LONG).unwrap(), 0);
        assert_eq!(read(&file), (vec![(vec![0x45, 1, 2, 3], 0), (vec![0x60, 9], 0)], [2, 0]));
    }

    #[test]
    fn a_file_that_takes_nothing_holds_up_nobody_and_tells_what_is_missing() {
        let (take, told) = mpsc::channel();
        let file = Written::default();
        let (recorder, ending) = Recorder::begin(Box::new(Slow(file.clone(), told)), "outside").unwrap();
        let mut tap = Tap::new(One(true), Some(recorder));
        // 40 000 packets of 1500 bytes are 60 MB: more than twice 16 MiB, the bytes queued plus the bytes being
        // written.
        let packet = [0x45; 1500];
        for _ in 0..40_000 {
            tap.write(&packet).unwrap();
        }
        let lost = tap.to.as_ref().unwrap().inlet.lost();
        assert!(lost > 10_000, "{lost}");
        drop(take);
        // Queued packets are written at once, which makes room.
        while tap.to.as_ref().unwrap().told < lost {
            tap.write(&packet).unwrap();
        }
        let seen = tap.to.as_ref().unwrap().seen;
        drop(tap);
        let all_lost = ending.wait(LONG).unwrap();
        let (packets, ends) = read(&file);
        assert_eq!(ends, [seen, all_lost]);
        assert_eq!(packets.len() as u64, seen - all_lost);
        assert_eq!(packets.iter().map(|(_, lost)| lost).sum::<u64>(), all_lost);
    }
}
