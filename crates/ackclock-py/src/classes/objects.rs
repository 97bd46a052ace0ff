//! The objects that a regulator in Python sees: packets, the queue, and its own base class.

use ackclock_core::{Flags, Segment, Span};
use ackclock_link::LinkView;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A TCP packet that crosses the edge.
#[pyclass(module = "ackclock", frozen)]
pub(crate) struct Packet {
    pub(super) segment: Segment,
    /// Number of an ACK that may be held; unique for each regulator.
    pub(super) number: u64,
    /// Window to advertise, bytes; above the maximum if the ACK keeps its window.
    pub(super) window: std::sync::atomic::AtomicU32,
}

/// Window of an ACK that is not to be changed, bytes: as much as any receiver can offer.
const UNCHANGED: u32 = 1 << 30;

impl Packet {
    pub(super) fn new(segment: Segment, number: u64) -> Self {
        Self { segment, number, window: UNCHANGED.into() }
    }
}

#[pymethods]
impl Packet {
    /// Number of the flow.
    #[getter]
    fn flow(&self) -> u32 {
        self.segment.flow.0
    }

    /// Sequence number of the first byte, modulo 2**32.
    #[getter]
    fn seq(&self) -> u32 {
        self.segment.seq.0
    }

    /// Acknowledgement number: the next byte expected, modulo 2**32.
    #[getter]
    fn ack(&self) -> u32 {
        self.segment.ack.0
    }

    /// Bytes of payload.
    #[getter]
    fn payload(&self) -> u16 {
        self.segment.payload
    }

    /// Size with headers, bytes.
    #[getter]
    fn size(&self) -> u32 {
        self.segment.wire_bytes()
    }

    /// Advertised window, bytes; None if its scale is unknown.
    #[getter]
    fn window(&self) -> Option<u32> {
        self.segment.scale().map(|scale| u32::from(self.segment.window) << scale)
    }

    /// Whether it opens a connection: SYN.
    #[getter]
    fn is_syn(&self) -> bool {
        self.segment.flags.intersects(Flags::SYN)
    }

    /// Whether it has no data, SYN, FIN or RST.
    #[getter]
    fn is_pure_ack(&self) -> bool {
        self.segment.is_pure_ack()
    }

    /// SACK blocks: pairs of first byte and byte after the last.
    #[getter]
    fn sack(&self) -> Vec<(u32, u32)> {
        self.segment.sack().iter().map(|block| (block.left.0, block.right.0)).collect()
    }

    /// Limits the advertised window of this ACK, bytes. The receiver's window is not exceeded, and the right edge does
    /// not move left of one advertised before.
    fn advertise(&self, bytes: u32) {
        self.window.store(bytes.min(UNCHANGED), std::sync::atomic::Ordering::Relaxed);
    }

    pub(super) fn __repr__(&self) -> String {
        format!("<Packet seq {} +{} ack {}>", self.seq(), self.payload(), self.ack())
    }
}

/// Queue of the flow's data at an instant.
#[pyclass(module = "ackclock", frozen)]
pub(crate) struct Queue(pub(super) LinkView);

#[pymethods]
impl Queue {
    /// Packets that wait for transmission.
    #[getter]
    fn waiting_packets(&self) -> u32 {
        self.0.waiting.packets
    }

    /// Bytes that wait for transmission, headers included.
    #[getter]
    fn waiting_bytes(&self) -> u64 {
        self.0.waiting.bytes
    }

    /// Packets in transmission.
    #[getter]
    fn in_transmission(&self) -> u32 {
        self.0.in_transmission.packets
    }

    /// Rate of the link at this instant, bit/s.
    #[getter]
    fn rate(&self) -> u64 {
        self.0.rate.as_bps()
    }

    /// Packets of `size` bytes that still fit into the buffer; None if the buffer is unlimited.
    #[pyo3(signature = (size = 1500))]
    fn room(&self, size: u32) -> Option<u32> {
        Some(self.0.room(size)).filter(|&room| room < u32::MAX)
    }
}

/// Base class of regulators in Python; a subclass overrides the methods that it needs.
#[pyclass(name = "Regulator", module = "ackclock", subclass)]
pub(crate) struct PythonRegulator {
    wake: Option<f64>,
    /// Held ACKs to send.
    pub(super) outbox: Vec<Py<Packet>>,
}

#[expect(unused_variables, reason = "a subclass overrides the methods")]
#[pymethods]
impl PythonRegulator {
    #[new]
    fn new() -> Self {
        Self { wake: None, outbox: Vec::new() }
    }

    /// Time of the next `on_timer`, seconds; None: none.
    #[getter]
    fn wake(&self) -> Option<f64> {
        self.wake
    }

    #[setter]
    fn set_wake(&mut self, time: Option<f64>) -> PyResult<()> {
        if let Some(time) = time.filter(|time| !time.is_finite() || *time < 0.0) {
            return Err(PyValueError::new_err(format!("wake: {time} is not None or a time from 0 s on")));
        }
        self.wake = time;
        Ok(())
    }

    /// Sends a held ACK to the sender.
    fn send(&mut self, ack: Py<Packet>) {
        self.outbox.push(ack);
    }

    /// The first flow of this regulator starts: numbers of the flow and of its user.
    fn start(&self, flow: u32, user: u32) {}

    /// A data packet arrives from the network. Returns None to queue it, "drop" or "mark" (ECN).
    fn on_data(&self, now: f64, packet: &Packet, queue: &Queue) {}

    /// A packet entered the queue.
    fn on_queued(&self, now: f64, packet: &Packet, queue: &Queue) {}

    /// The queue refused or dropped a packet; `cause` is "full", "policy", "medium", "outage", "handover" or
    /// "aged".
    fn on_dropped(&self, now: f64, packet: &Packet, cause: &str, queue: &Queue) {}

    /// The last byte of a packet left the queue.
    fn on_departed(&self, now: f64, packet: &Packet, queue: &Queue) {}

    /// The queue is empty, and nothing is in transmission.
    fn on_idle(&self, now: f64, queue: &Queue) {}

    /// An ACK arrives from the mobile. Returns the ACK to pass it on, None to hold it until `send`.
    fn on_ack(&self, now: f64, ack: Py<Packet>, queue: &Queue) -> Py<Packet> {
        ack
    }

    /// The time `wake` has come; it is None again.
    fn on_timer(&self, now: f64, queue: &Queue) {}
}

impl PythonRegulator {
    /// Time of the next `on_timer`.
    pub(super) fn deadline(&self) -> Option<Span> {
        self.wake.map(Span::from_secs_f64)
    }

    /// Takes the time of the next `on_timer`.
    pub(super) fn take_wake(&mut self) {
        self.wake = None;
    }
}
