//! A TCP sender driven by hand from Python.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ackclock_core::{Flags, FlowId, SackBlock, Segment, Seq, Size, Span, Time, scaled_window};
use ackclock_tcp::config::{FlowParams, HeaderSize, LARGEST_WINDOW};
use ackclock_tcp::{SENDERS, Sender, Supply};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};
use serde_json::{Map, Value};

use crate::arguments::{number, whole, whole_or_none};
use crate::json;

/// One segment that a sender wants on the wire.
#[pyclass(name = "Segment", module = "ackclock", frozen)]
pub(crate) struct SentSegment {
    /// Sequence number of the first byte, modulo 2**32.
    #[pyo3(get)]
    seq: u32,
    /// Payload bytes.
    #[pyo3(get)]
    len: u16,
    /// Whether these bytes were sent before.
    #[pyo3(get)]
    retransmission: bool,
    /// The timestamp option's value, where timestamps are on.
    #[pyo3(get)]
    timestamp: Option<u32>,
}

#[pymethods]
impl SentSegment {
    fn __repr__(&self) -> String {
        let again = if self.retransmission { ", retransmission" } else { "" };
        format!("<Segment {}..{}{again}>", self.seq, self.seq.wrapping_add(self.len.into()))
    }
}

/// A TCP sender driven by hand: it has no clock, every call brings the time along.
#[pyclass(name = "Sender", module = "ackclock", frozen)]
pub(crate) struct HandDrivenSender {
    state: Mutex<State>,
}

struct State {
    sender: Box<dyn Sender>,
    /// One past the last byte that has left.
    highest: Seq,
}

/// Headers of every segment; they only add to the wire size, which nobody sees here.
const HEADER: u16 = 40;
const FLOW: FlowId = FlowId(0);

#[pymethods]
impl HandDrivenSender {
    #[new]
    #[pyo3(signature = (sender, *, mss, max_window=None, initial_window=None, initial_seq=None, **options))]
    #[pyo3(
        text_signature = "(sender, *, mss, max_window=None, initial_window=None, initial_seq=0, **options)"
    )]
    fn new(
        sender: &Bound<'_, PyAny>,
        mss: &Bound<'_, PyAny>,
        max_window: Option<&Bound<'_, PyAny>>,
        initial_window: Option<&Bound<'_, PyAny>>,
        initial_seq: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let packet = whole("mss", mss, 1..=u16::MAX - HEADER)? + HEADER;
        let max_window = whole_or_none("max_window", max_window, 1..=LARGEST_WINDOW)?;
        let initial_window = whole_or_none("initial_window", initial_window, 1..=LARGEST_WINDOW)?;
        let first = Seq(whole_or_none("initial_seq", initial_seq, 0..=u32::MAX)?.unwrap_or_default());
        let bytes = |size: u32| Size::Bytes(size.into());
        let sources = FlowParams::new(FLOW);
        let params = FlowParams {
            packet,
            header: HeaderSize::Fixed(HEADER),
            max_window: max_window.map_or(sources.max_window, bytes),
            initial_window: initial_window.map_or(sources.initial_window, bytes),
            first,
            ..sources
        };
        let wrong = |error: ackclock_core::ConfigError| PyValueError::new_err(error.to_string());
        let row = SENDERS.resolve(&table(sender, options)?).map_err(wrong)?;
        let mut sender = row.build(params).map_err(wrong)?;
        sender.supply(Supply::Endless);
        Ok(Self { state: Mutex::new(State { sender, highest: params.first }) })
    }

    /// Take an ACK.
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
        let ack = whole("ack", ack, 0..=u32::MAX)?;
        let window = whole("window", window, 0..=u32::MAX)?;
        let mut segment = Segment::pure_ack(FLOW, Seq(ack), HEADER);
        set_window(&mut segment, window);
        for block in sack.map(blocks).transpose()?.unwrap_or_default() {
            segment.push_sack(block);
        }
        if let Some(echo) = whole_or_none("ts", ts, 0..=u32::MAX)? {
            // The peer's own clock, in milliseconds; it wraps.
            let value = (now.as_nanos() / 1_000_000) as u32;
            segment.set_timestamps(ackclock_core::Timestamps { value, echo });
        }
        if ecn_echo {
            segment.flags |= Flags::ECE;
        }
        self.state().sender.on_segment(now, &segment);
        Ok(())
    }

    /// The segments to send at `now`; an expired timer is served first.
    fn poll(&self, #[pyo3(from_py_with = instant)] now: Time) -> Vec<SentSegment> {
        let State { sender, highest } = &mut *self.state();
        if sender.poll_timeout().is_some_and(|due| due <= now) {
            sender.on_timeout(now);
        }
        let mut sent = Vec::new();
        while let Some(segment) = sender.poll_segment(now) {
            sent.push(SentSegment {
                seq: segment.seq.0,
                len: segment.payload,
                retransmission: segment.seq.before(*highest),
                timestamp: segment.timestamps().map(|stamps| stamps.value),
            });
            *highest = highest.max(segment.end());
        }
        sent
    }

    /// When `poll` must be called again if nothing arrives.
    fn timeout(&self) -> Option<f64> {
        self.state().sender.poll_timeout().map(Time::as_secs_f64)
    }

    /// Congestion window, bytes.
    #[getter]
    fn cwnd(&self) -> f64 {
        self.state().sender.cwnd().into()
    }

    /// Slow-start threshold, bytes; infinite where there is none.
    #[getter]
    fn ssthresh(&self) -> f64 {
        self.state().sender.ssthresh().map_or(f64::INFINITY, f64::from)
    }

    /// Bytes sent and not acknowledged.
    #[getter]
    fn flight(&self) -> u32 {
        self.state().sender.flight()
    }

    /// Present time-out, seconds.
    #[getter]
    fn rto(&self) -> f64 {
        self.state().sender.rto().as_secs_f64()
    }

    /// Smoothed round trip time, seconds; None before the first sample.
    #[getter]
    fn srtt(&self) -> Option<f64> {
        self.state().sender.srtt().map(Span::as_secs_f64)
    }
}

impl HandDrivenSender {
    fn state(&self) -> MutexGuard<'_, State> {
        // A sender does not panic; if it ever did, its numbers would still be readable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The table of a sender: a name or a mapping, with further options laid on it.
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

/// Writes a window of `bytes` with the smallest scale that has room for it; beyond 65535 it is rounded up to the scale.
fn set_window(segment: &mut Segment, bytes: u32) {
    let (scale, field) = scaled_window(bytes);
    segment.window = field;
    segment.set_scale(Some(scale));
}

/// The instant that an argument `now` names.
fn instant(any: &Bound<'_, PyAny>) -> PyResult<Time> {
    // Beyond 2^53 ns (104 days) neighbouring nanoseconds are one float; what cannot be told apart is not an instant.
    let allowed = |seconds| (0.0..9.0e6).contains(&seconds);
    let seconds = number("now", any, "between 0 and 9e6 seconds", allowed)?;
    Ok(Time::ZERO + Span::from_secs_f64(seconds))
}

/// The blocks that an argument `sack` names: pairs of edges, as many as a segment can carry.
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
