//! Calls a congestion control in Python for a sender.

use std::sync::Arc;

use ackclock_core::{Rate, Span, Time};
use ackclock_tcp::cc::{AckSample, CcContext, Congestion, CongestionControl, CongestionEvent, Phase};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::class::overrides;
use super::failure::fail;

/// Base class of congestion controls in Python; a subclass overrides the methods that it needs.
#[pyclass(name = "CongestionControl", module = "ackclock", subclass)]
pub(crate) struct PythonControl {
    /// Congestion window, bytes.
    #[pyo3(get)]
    window: f64,
    /// Slow-start threshold, bytes.
    #[pyo3(get)]
    ssthresh: f64,
    /// Pacing rate, bit/s; None sends without pacing.
    #[pyo3(get)]
    pacing_rate: Option<f64>,
    /// Maximum segment size, bytes of payload.
    #[pyo3(get)]
    mss: u32,
    /// Window and threshold before the latest reduction.
    before: (f64, f64),
}

#[expect(unused_variables, reason = "a subclass overrides the methods")]
#[pymethods]
impl PythonControl {
    /// Whether the class reacts to the marked bytes of each ACK. Otherwise marks reduce the window as losses do, once per
    /// round trip.
    #[classattr]
    #[allow(non_upper_case_globals, reason = "the name that a class in Python overrides")]
    const counts_marks: bool = false;

    #[new]
    fn new() -> Self {
        let infinite = f64::INFINITY;
        Self { window: 0.0, ssthresh: infinite, pacing_rate: None, mss: 0, before: (0.0, infinite) }
    }

    #[setter]
    fn set_window(&mut self, bytes: f64) -> PyResult<()> {
        if !(bytes.is_finite() && bytes >= 0.0) {
            return Err(PyValueError::new_err(format!("window: {bytes} is not a number of bytes from 0 on")));
        }
        self.window = bytes;
        Ok(())
    }

    #[setter]
    fn set_ssthresh(&mut self, bytes: f64) -> PyResult<()> {
        if bytes.is_nan() || bytes < 0.0 {
            return Err(PyValueError::new_err(format!(
                "ssthresh: {bytes} is not a number of bytes from 0 on"
            )));
        }
        self.ssthresh = bytes;
        Ok(())
    }

    #[setter]
    fn set_pacing_rate(&mut self, rate: Option<f64>) -> PyResult<()> {
        if let Some(rate) = rate.filter(|rate| !(rate.is_finite() && *rate > 0.0)) {
            return Err(PyValueError::new_err(format!("pacing_rate: {rate} is not None or above 0 bit/s")));
        }
        self.pacing_rate = rate;
        Ok(())
    }

    /// The connection starts with `window` set to its initial window, bytes.
    fn start(&self, initial_window: u32) {}

    /// An ACK delivered data.
    fn on_ack(&self, sample: &AckInfo) {}

    /// A loss, timeout or congestion mark requires a smaller window.
    fn on_congestion(&self, event: &CongestionInfo) {}

    /// The latest reduction was spurious. Restores the window and the threshold that it replaced.
    fn on_spurious(&mut self) {
        (self.window, self.ssthresh) = (self.window.max(self.before.0), self.before.1);
    }
}

/// An ACK that delivered data, for a congestion control.
#[pyclass(name = "AckSample", module = "ackclock", frozen)]
pub(crate) struct AckInfo(AckSample);

#[pymethods]
impl AckInfo {
    /// Arrival time, seconds.
    #[getter]
    fn now(&self) -> f64 {
        self.0.now.as_secs_f64()
    }

    /// Bytes newly acknowledged in order.
    #[getter]
    fn acked(&self) -> u32 {
        self.0.acked
    }

    /// Bytes newly delivered, in order or by SACK.
    #[getter]
    fn delivered(&self) -> u32 {
        self.0.delivered
    }

    /// Bytes in flight after the ACK.
    #[getter]
    fn in_flight(&self) -> u32 {
        self.0.in_flight
    }

    /// Round-trip time of this ACK, seconds; None without a sample.
    #[getter]
    fn rtt(&self) -> Option<f64> {
        self.0.rtt.map(Span::as_secs_f64)
    }

    /// Smoothed round-trip time, seconds.
    #[getter]
    fn srtt(&self) -> Option<f64> {
        self.0.srtt.map(Span::as_secs_f64)
    }

    /// Minimum round-trip time of the connection, seconds.
    #[getter]
    fn min_rtt(&self) -> Option<f64> {
        self.0.min_rtt.map(Span::as_secs_f64)
    }

    /// Delivery rate, bit/s; None without a sample.
    #[getter]
    fn rate(&self) -> Option<u64> {
        self.0.rate.map(|sample| sample.rate.as_bps())
    }

    /// Whether the application limited the sending during the sample of the delivery rate.
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.rate.is_some_and(|sample| sample.app_limited)
    }

    /// Whether the window limited the sender.
    #[getter]
    fn window_limited(&self) -> bool {
        self.0.window_limited
    }

    /// Phase of loss recovery: "open", "fast-recovery" or "timeout-recovery". The window grows unless it is
    /// "fast-recovery".
    #[getter]
    fn phase(&self) -> &'static str {
        match self.0.phase {
            Phase::Open => "open",
            Phase::FastRecovery => "fast-recovery",
            Phase::TimeoutRecovery => "timeout-recovery",
        }
    }

    /// Segments newly found lost.
    #[getter]
    fn lost(&self) -> u32 {
        self.0.lost
    }

    /// Bytes that the receiver newly reports as marked; 0 unless the sender has ecn="accurate" or ecn="dctcp".
    #[getter]
    fn marked(&self) -> u32 {
        self.0.marked
    }
}

/// A congestion event, for a congestion control.
#[pyclass(name = "CongestionEvent", module = "ackclock", frozen)]
pub(crate) struct CongestionInfo(CongestionEvent);

#[pymethods]
impl CongestionInfo {
    /// Time of detection, seconds.
    #[getter]
    fn now(&self) -> f64 {
        self.0.now.as_secs_f64()
    }

    /// "fast-retransmit", "timeout" or "ecn".
    #[getter]
    fn cause(&self) -> &'static str {
        match self.0.cause {
            Congestion::FastRetransmit => "fast-retransmit",
            Congestion::Timeout => "timeout",
            Congestion::Ecn => "ecn",
        }
    }

    /// Bytes in flight before any retransmission.
    #[getter]
    fn flight(&self) -> u32 {
        self.0.flight
    }

    /// Window in use, bytes: the smaller of the congestion window and the advertised window.
    #[getter]
    fn window(&self) -> u32 {
        self.0.window
    }

    /// Whether the same segment had timed out before.
    #[getter]
    fn repeated_timeout(&self) -> bool {
        self.0.repeated_timeout
    }
}

/// A congestion control in Python. After an exception the window stays as it is until the run has stopped.
pub(super) struct Control {
    class: Arc<str>,
    object: Py<PythonControl>,
    hears_acks: bool,
    counts_marks: bool,
    mss: u32,
    window: u32,
    ssthresh: u32,
    pacing: Option<Rate>,
    failed: bool,
}

impl Control {
    /// Starts `object`; `None` is a class that could not be built.
    pub(super) fn new(
        class: Arc<str>,
        object: Option<Bound<'_, PythonControl>>,
        context: &CcContext,
    ) -> Option<Self> {
        let object = object?;
        let mut control = Self {
            class,
            hears_acks: false,
            counts_marks: false,
            mss: context.mss,
            window: context.initial_window,
            ssthresh: context.initial_ssthresh,
            pacing: None,
            failed: false,
            object: object.clone().unbind(),
        };
        control.call(Time::ZERO, "start", |control, object| {
            control.counts_marks = object.getattr("counts_marks")?.extract()?;
            control.hears_acks = overrides::<PythonControl>(&object.get_type(), "on_ack")?;
            {
                let mut base = object.try_borrow_mut()?;
                (base.mss, base.window) = (context.mss, f64::from(context.initial_window));
            }
            object.call_method1("start", (context.initial_window,)).map(drop)
        });
        Some(control)
    }

    /// Calls `method`, then reads window, threshold and pacing rate.
    fn call(
        &mut self,
        now: Time,
        method: &str,
        call: impl FnOnce(&mut Self, &Bound<'_, PythonControl>) -> PyResult<()>,
    ) {
        if self.failed {
            return;
        }
        Python::attach(|py| {
            let object = self.object.clone_ref(py).into_bound(py);
            let called = call(self, &object).and_then(|()| {
                let base = object.try_borrow()?;
                // `as` saturates: an infinite threshold is the largest.
                self.window = (base.window as u32).max(self.mss);
                self.ssthresh = base.ssthresh as u32;
                self.pacing = base.pacing_rate.map(|rate| Rate::from_bps((rate as u64).max(1)));
                Ok(())
            });
            if let Err(error) = called {
                fail(py, &self.class, method, now, error);
                self.failed = true;
            }
        });
    }
}

impl CongestionControl for Control {
    fn on_ack(&mut self, sample: &AckSample) {
        if self.hears_acks {
            self.call(sample.now, "on_ack", |_, object| {
                object.call_method1("on_ack", (AckInfo(*sample),)).map(drop)
            });
        }
    }

    fn on_congestion(&mut self, event: &CongestionEvent) {
        self.call(event.now, "on_congestion", |_, object| {
            {
                let mut base = object.try_borrow_mut()?;
                base.before = (base.window, base.ssthresh);
            }
            object.call_method1("on_congestion", (CongestionInfo(*event),)).map(drop)
        });
    }

    fn on_spurious(&mut self, now: Time, _: Congestion) {
        self.call(now, "on_spurious", |_, object| object.call_method0("on_spurious").map(drop));
    }

    fn adopt(&mut self, window: u32, ssthresh: u32) {
        self.call(Time::ZERO, "adopt", |_, object| {
            let mut base = object.try_borrow_mut()?;
            (base.window, base.ssthresh) = (window.into(), ssthresh.into());
            Ok(())
        });
    }

    fn window(&self) -> u32 {
        self.window
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing
    }

    fn wants_rate(&self) -> bool {
        true
    }

    fn counts_marks(&self) -> bool {
        self.counts_marks
    }
}
