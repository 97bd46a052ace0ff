//! A TCP sender driven step by step from Python.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ackclock_core::{
    ConfigError, LARGEST_WINDOW_SCALE, SackBlock, Segment, Seq, Size, Span, SynOptions, Time,
};
use ackclock_exchange::{Ack, Connection, Data, Peer, Sent, Setup, Syn, letters};
use ackclock_tcp::config::{HeaderSize, LARGEST_WINDOW};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};
use serde_json::{Map, Value};

use crate::arguments::{number, whole, whole_or_none};
use crate::json;

/// A segment sent by a sender.
#[pyclass(name = "Segment", module = "ackclock", frozen)]
pub(crate) struct SentSegment {
    /// Sequence number of the first byte, modulo 2**32.
    #[pyo3(get)]
    seq: u32,
    /// Payload length of the segment, bytes.
    #[pyo3(get)]
    len: u16,
    /// Whether the payload bytes were sent before.
    #[pyo3(get)]
    retransmission: bool,
    /// Value of the timestamp option; None without timestamps.
    #[pyo3(get)]
    timestamp: Option<u32>,
    /// Echoed timestamp; None without timestamps.
    #[pyo3(get)]
    timestamp_echo: Option<u32>,
    /// Control bits as letters: `S`, `F`, `.` for ACK, `E`, `W`.
    #[pyo3(get)]
    flags: String,
    /// Acknowledgement number; None in an opening SYN.
    #[pyo3(get)]
    ack: Option<u32>,
    /// MSS offered in a SYN, bytes.
    #[pyo3(get)]
    mss: Option<u16>,
    /// Window scale offered in a SYN, bits.
    #[pyo3(get)]
    window_scale: Option<u8>,
    /// Whether a SYN permits SACK.
    #[pyo3(get)]
    sack_permitted: bool,
}

#[pymethods]
impl SentSegment {
    fn __repr__(&self) -> String {
        let flags = if self.flags == "." { String::new() } else { format!(" {}", self.flags) };
        let again = if self.retransmission { ", retransmission" } else { "" };
        format!("<Segment{flags} {}..{}{again}>", self.seq, self.seq.wrapping_add(self.len.into()))
    }
}

impl From<Sent> for SentSegment {
    fn from(Sent { segment, is_repeated }: Sent) -> Self {
        let stamps = segment.timestamps();
        let offer = segment.syn_options().unwrap_or_default();
        Self {
            seq: segment.seq.0,
            len: segment.payload,
            retransmission: is_repeated,
            timestamp: stamps.map(|stamps| stamps.value),
            timestamp_echo: stamps.map(|stamps| stamps.echo),
            flags: letters(segment.flags, segment.ae()),
            ack: segment.flags.contains(ackclock_core::Flags::ACK).then_some(segment.ack.0),
            mss: offer.mss,
            window_scale: offer.window_scale,
            sack_permitted: offer.sack_permitted,
        }
    }
}

/// A TCP sender driven step by step. The sender has no clock: every call gets the time as an argument.
#[pyclass(name = "Sender", module = "ackclock", frozen)]
pub(crate) struct HandDrivenSender {
    state: Mutex<DrivenSender>,
}

struct DrivenSender {
    connection: Connection,
    peer: Peer,
}

/// Size of a segment's headers, bytes. The header size affects only the packet size, which this sender does not use.
const HEADER: u16 = 40;

#[pymethods]
impl HandDrivenSender {
    #[new]
    #[pyo3(signature = (sender, *, mss=None, max_window=None, initial_window=None, initial_seq=None, preset=None, **options))]
    #[pyo3(
        text_signature = "(sender, *, mss=None, max_window=None, initial_window=None, initial_seq=0, preset=None, **options)"
    )]
    fn new(
        sender: &Bound<'_, PyAny>,
        mss: Option<&Bound<'_, PyAny>>,
        max_window: Option<&Bound<'_, PyAny>>,
        initial_window: Option<&Bound<'_, PyAny>>,
        initial_seq: Option<&Bound<'_, PyAny>>,
        preset: Option<String>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mss = whole_or_none("mss", mss, 1..=u16::MAX - HEADER)?;
        if mss.is_none() && preset.is_none() {
            return Err(PyTypeError::new_err("mss: is missing, and no preset says it"));
        }
        let bytes = |name, any| {
            let size = whole_or_none(name, any, 1..=LARGEST_WINDOW)?;
            Ok::<_, PyErr>(size.map(|bytes| Size::Bytes(bytes.into())))
        };
        let setup = Setup {
            packet: mss.map(|mss| (mss + HEADER, HeaderSize::Fixed(HEADER))),
            max_window: bytes("max_window", max_window)?,
            initial_window: bytes("initial_window", initial_window)?,
            first: Seq(whole_or_none("initial_seq", initial_seq, 0..=u32::MAX)?.unwrap_or_default()),
            data: if preset.is_some() { Data::Written } else { Data::Endless },
            preset,
            ..Setup::new(table(sender, options)?)
        };
        let wrong = |error: ConfigError| PyValueError::new_err(error.to_string());
        let connection = Connection::new(&setup).map_err(wrong)?;
        Ok(Self { state: Mutex::new(DrivenSender { connection, peer: Peer::default() }) })
    }

    /// Open the connection with a SYN.
    fn connect(&self, #[pyo3(from_py_with = instant)] now: Time) {
        self.state().connection.connect(now);
    }

    /// Handle the peer's SYN or SYN-ACK.
    #[pyo3(signature = (now, window, *, seq=None, ack=None, mss=None, window_scale=None, sack_permitted=false, ts=None, ecn=false))]
    #[pyo3(
        text_signature = "($self, now, window, *, seq=0, ack=None, mss=None, window_scale=None, sack_permitted=False, ts=None, ecn=False)"
    )]
    #[expect(clippy::too_many_arguments, reason = "they have names")]
    fn on_syn(
        &self,
        #[pyo3(from_py_with = instant)] now: Time,
        window: &Bound<'_, PyAny>,
        seq: Option<&Bound<'_, PyAny>>,
        ack: Option<&Bound<'_, PyAny>>,
        mss: Option<&Bound<'_, PyAny>>,
        window_scale: Option<&Bound<'_, PyAny>>,
        sack_permitted: bool,
        ts: Option<&Bound<'_, PyAny>>,
        ecn: bool,
    ) -> PyResult<()> {
        let syn = Syn {
            seq: Seq(whole_or_none("seq", seq, 0..=u32::MAX)?.unwrap_or_default()),
            ack: whole_or_none("ack", ack, 0..=u32::MAX)?.map(Seq),
            window: whole("window", window, 0..=u16::MAX)?,
            options: SynOptions {
                mss: whole_or_none("mss", mss, 1..=u16::MAX)?,
                window_scale: whole_or_none("window_scale", window_scale, 0..=LARGEST_WINDOW_SCALE)?,
                sack_permitted,
            },
            echo: whole_or_none("ts", ts, 0..=u32::MAX)?,
            ecn,
        };
        let DrivenSender { connection, peer } = &mut *self.state();
        connection.on_segment(now, &peer.syn(now, &syn));
        Ok(())
    }

    /// Handle an ACK.
    #[pyo3(signature = (now, ack, window, *, sack=None, ts=None, ecn_echo=false))]
    #[pyo3(text_signature = "($self, now, ack, window, *, sack=(), ts=None, ecn_echo=False)")]
    fn on_ack(
        &self,
        #[pyo3(from_py_with = instant)] now: Time,
        ack: &Bound<'_, PyAny>,
        window: &Bound<'_, PyAny>,
        sack: Option<&Bound<'_, PyAny>>,
        ts: Option<&Bound<'_, PyAny>>,
        ecn_echo: bool,
    ) -> PyResult<()> {
        let sack = sack.map(blocks).transpose()?.unwrap_or_default();
        let ack = Ack { sack, ecn_echo, ..acknowledgement(ack, window, ts)? };
        let DrivenSender { connection, peer } = &mut *self.state();
        connection.on_segment(now, &peer.ack(now, &ack));
        Ok(())
    }

    /// Handle an ACK with FIN, which closes the peer's direction.
    #[pyo3(signature = (now, ack, window, *, ts=None))]
    fn on_fin(
        &self,
        #[pyo3(from_py_with = instant)] now: Time,
        ack: &Bound<'_, PyAny>,
        window: &Bound<'_, PyAny>,
        ts: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let ack = acknowledgement(ack, window, ts)?;
        let DrivenSender { connection, peer } = &mut *self.state();
        connection.on_segment(now, &peer.fin(now, &ack));
        Ok(())
    }

    /// Give the sender more bytes of data to send.
    fn write(&self, bytes: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = whole("bytes", bytes, 0..=i64::MAX)?.unsigned_abs();
        self.state().connection.write(bytes).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Tell the sender that no more data follows. The FIN is sent with the last byte, or after the last byte.
    fn close(&self) {
        self.state().connection.close();
    }

    /// Segments to send at `now`, after handling expired timers.
    fn poll(&self, #[pyo3(from_py_with = instant)] now: Time) -> Vec<SentSegment> {
        let connection = &mut self.state().connection;
        connection.on_timeout(now);
        std::iter::from_fn(|| connection.poll_segment(now)).map(SentSegment::from).collect()
    }

    /// Time in seconds of the next `poll` if no segment arrives earlier.
    fn timeout(&self) -> Option<f64> {
        self.state().connection.poll_timeout().map(Time::as_secs_f64)
    }

    /// State of the sender as in Linux's TCP_INFO.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let info = self.state().connection.info();
        let dict = PyDict::new(py);
        for ((name, _), value) in ackclock_tcp::TcpInfo::FIELDS.iter().zip(info.values()) {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }

    /// Congestion window of the sender, bytes.
    #[getter]
    fn cwnd(&self) -> f64 {
        self.state().connection.sender().cwnd().into()
    }

    /// Slow-start threshold, bytes; infinite if the sender has none.
    #[getter]
    fn ssthresh(&self) -> f64 {
        self.state().connection.sender().ssthresh().map_or(f64::INFINITY, f64::from)
    }

    /// Bytes sent and not acknowledged.
    #[getter]
    fn flight(&self) -> u32 {
        self.state().connection.sender().flight()
    }

    /// Current retransmission timeout, seconds.
    #[getter]
    fn rto(&self) -> f64 {
        self.state().connection.sender().rto().as_secs_f64()
    }

    /// Smoothed round-trip time, seconds; None before the first sample.
    #[getter]
    fn srtt(&self) -> Option<f64> {
        self.state().connection.sender().srtt().map(Span::as_secs_f64)
    }
}

impl HandDrivenSender {
    fn state(&self) -> MutexGuard<'_, DrivenSender> {
        // A sender should not panic; if it did, its state remains readable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Configuration table of a sender, from its name or a mapping and further options.
fn table(sender: &Bound<'_, PyAny>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Value> {
    let mut table = match (sender.extract::<String>(), sender.cast::<PyMapping>()) {
        (Ok(name), _) => Map::from_iter([("kind".to_owned(), Value::String(name))]),
        (_, Ok(mapping)) => json::table("", mapping)?,
        _ => return Err(PyTypeError::new_err(format!("sender: {sender} is neither a name nor a mapping"))),
    };
    if let Some(options) = options {
        table.extend(json::table("", options.as_mapping())?);
    }
    Ok(Value::Object(table))
}

/// Builds an ACK without SACK blocks.
fn acknowledgement(
    ack: &Bound<'_, PyAny>,
    window: &Bound<'_, PyAny>,
    ts: Option<&Bound<'_, PyAny>>,
) -> PyResult<Ack> {
    Ok(Ack {
        ack: Seq(whole("ack", ack, 0..=u32::MAX)?),
        window: whole("window", window, 0..=u32::MAX)?,
        echo: whole_or_none("ts", ts, 0..=u32::MAX)?,
        ..Ack::default()
    })
}

/// Converts the argument `now` to a time.
fn instant(any: &Bound<'_, PyAny>) -> PyResult<Time> {
    // For times beyond 2^53 ns (104 days) a float cannot distinguish nanoseconds.
    let allowed = |seconds| (0.0..9.0e6).contains(&seconds);
    let seconds = number("now", any, "between 0 and 9e6 seconds", allowed)?;
    Ok(Time::ZERO + Span::from_secs_f64(seconds))
}

/// Converts the argument `sack` to SACK blocks: as many pairs of edges as fit into a segment.
fn blocks(any: &Bound<'_, PyAny>) -> PyResult<Vec<SackBlock>> {
    let pairs: Vec<Bound<'_, PyAny>> = list("sack", any)?;
    if pairs.len() > Segment::MAX_SACK {
        let most = Segment::MAX_SACK;
        return Err(PyValueError::new_err(format!("sack: {} blocks are more than {most}", pairs.len())));
    }
    pairs.iter().map(block).collect()
}

fn block(pair: &Bound<'_, PyAny>) -> PyResult<SackBlock> {
    let edges = list("sack", pair)?;
    let [left, right] = edges.as_slice() else {
        return Err(PyValueError::new_err(format!("sack: {pair} is not a pair of edges (left, right)")));
    };
    let edge = |any| whole("sack", any, 0..=u32::MAX).map(Seq);
    Ok(SackBlock { left: edge(left)?, right: edge(right)? })
}

fn list<'py>(name: &str, any: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let items = any
        .try_iter()
        .map_err(|_| PyTypeError::new_err(format!("{name}: {any} is not a list of pairs (left, right)")))?;
    items.collect()
}
