//! Calls a regulator in Python for an edge, and enforces the laws of regulators.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ackclock_core::{FlowId, Segment, Span, Time};
use ackclock_edge::{Allowance, Clip, Output, Regulator, Verdict};
use ackclock_link::{Base, Cause, LinkView};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::class::overrides;
use super::failure::{extra_wakes, fail};
use super::objects::{Packet, PythonRegulator, Queue};

/// Methods of an object that its class overrides; others are not called.
struct Methods {
    on_data: Option<Method>,
    on_queued: Option<Method>,
    on_dropped: Option<Method>,
    on_departed: Option<Method>,
    on_idle: Option<Method>,
    on_ack: Option<Method>,
}

/// Name of a method, and the method of one object.
type Method = (&'static str, Arc<Py<PyAny>>);

impl Methods {
    fn of(object: &Bound<'_, PythonRegulator>) -> PyResult<Self> {
        let method = |name| {
            let method = || PyResult::Ok((name, Arc::new(object.getattr(name)?.unbind())));
            overrides::<PythonRegulator>(&object.get_type(), name)?.then(method).transpose()
        };
        Ok(Self {
            on_data: method("on_data")?,
            on_queued: method("on_queued")?,
            on_dropped: method("on_dropped")?,
            on_departed: method("on_departed")?,
            on_idle: method("on_idle")?,
            on_ack: method("on_ack")?,
        })
    }
}

/// A regulator in Python.
pub(super) struct Adapter {
    class: Arc<str>,
    object: Py<PythonRegulator>,
    methods: Methods,
    /// Held ACKs by number, in order of arrival.
    held: BTreeMap<u64, Segment>,
    /// Number of the next ACK.
    next: u64,
    /// Windows advertised to each flow's sender.
    clips: BTreeMap<FlowId, Clip>,
    output: VecDeque<Output>,
    /// Set after an exception: packets pass unchanged until the run has stopped.
    failed: bool,
    /// Time of the next `on_timer`.
    wake: Option<Time>,
    /// Time of the next additional wake, which calls nothing.
    extra: Option<Time>,
}

/// Interval of additional wakes.
const EXTRA: Span = Span::from_micros(700);

impl Adapter {
    /// # Errors
    /// If a method cannot be read from the object.
    pub(super) fn new(class: Arc<str>, object: &Bound<'_, PythonRegulator>) -> PyResult<Self> {
        Ok(Self {
            class,
            object: object.clone().unbind(),
            methods: Methods::of(object)?,
            held: BTreeMap::new(),
            next: 0,
            clips: BTreeMap::new(),
            output: VecDeque::new(),
            failed: false,
            wake: None,
            extra: extra_wakes().then_some(Time::ZERO),
        })
    }

    /// Calls `method`, then sends the ACKs that it released. `None` if it raised an exception.
    fn call<T: Default>(
        &mut self,
        now: Time,
        method: &str,
        call: impl FnOnce(&mut Self, Python<'_>, &Bound<'_, PythonRegulator>) -> PyResult<T>,
    ) -> T {
        if self.failed {
            return T::default();
        }
        Python::attach(|py| {
            let object = self.object.clone_ref(py).into_bound(py);
            let called = call(self, py, &object).and_then(|value| {
                self.settle(now, &object)?;
                Ok(value)
            });
            called.unwrap_or_else(|error| {
                fail(py, &self.class, method, now, error);
                self.failed = true;
                self.wake = None;
                self.release(|_| true);
                T::default()
            })
        })
    }

    /// Sends the released ACKs, and reads the time of the next `on_timer`.
    fn settle(&mut self, now: Time, object: &Bound<'_, PythonRegulator>) -> PyResult<()> {
        let mut base = object.try_borrow_mut()?;
        for ack in std::mem::take(&mut base.outbox) {
            self.send(ack.get())?;
        }
        self.wake = base.deadline().map(|after| (Time::ZERO + after).max(now));
        Ok(())
    }

    /// Sends a held ACK with its window.
    fn send(&mut self, ack: &Packet) -> PyResult<()> {
        let Some(mut segment) = self.held.remove(&ack.number) else {
            return Err(PyValueError::new_err(format!("{} is not held: it was sent before", ack.__repr__())));
        };
        let bytes = ack.window.load(Ordering::Relaxed);
        let clip = self.clips.entry(segment.flow).or_insert_with(|| Clip::new(None));
        clip.on_ack(&mut segment, Some(Allowance { base: Base::Acked, bytes, least: 0 }));
        self.output.push_back(Output::ToSender(segment));
        Ok(())
    }

    /// Releases held ACKs of the flows that `which` selects, unchanged.
    fn release(&mut self, which: impl Fn(FlowId) -> bool) {
        let released = self.held.extract_if(.., |_, segment| which(segment.flow));
        self.output.extend(released.map(|(_, segment)| Output::ToSender(segment)));
    }

    /// Calls a method that only takes notice of a packet.
    fn notice(&mut self, now: Time, method: Option<Method>, segment: &Segment, view: LinkView) {
        let Some((name, method)) = method else { return };
        self.call(now, name, |_, py, _| {
            let packet = Py::new(py, Packet::new(*segment, u64::MAX))?;
            method.call1(py, (now.as_secs_f64(), packet, Queue(view))).map(drop)
        });
    }
}

impl Regulator for Adapter {
    fn on_data(&mut self, now: Time, segment: &Segment, view: LinkView) -> Verdict {
        self.clips.entry(segment.flow).or_insert_with(|| Clip::new(None)).on_data(segment);
        let Some((name, method)) = self.methods.on_data.clone() else { return Verdict::Forward };
        let verdict = self.call(now, name, |_, py, _| {
            let packet = Py::new(py, Packet::new(*segment, u64::MAX))?;
            let said = method.call1(py, (now.as_secs_f64(), packet, Queue(view)))?;
            match said.extract::<Option<String>>(py).as_ref().map(Option::as_deref) {
                Ok(None) => Ok(Some(Verdict::Forward)),
                Ok(Some("drop")) => Ok(Some(Verdict::Drop)),
                Ok(Some("mark")) => Ok(Some(Verdict::MarkCe)),
                _ => Err(PyTypeError::new_err(format!(
                    "on_data returned {said}, not None, \"drop\" or \"mark\""
                ))),
            }
        });
        verdict.unwrap_or(Verdict::Forward)
    }

    fn on_queued(&mut self, now: Time, segment: &Segment, view: LinkView) {
        self.notice(now, self.methods.on_queued.clone(), segment, view);
    }

    fn on_dropped(&mut self, now: Time, segment: &Segment, cause: Cause, view: LinkView) {
        let Some((name, method)) = self.methods.on_dropped.clone() else { return };
        let cause = match cause {
            Cause::Full => "full",
            Cause::Policy => "policy",
            Cause::Aged => "aged",
            Cause::Medium => "medium",
            Cause::Outage => "outage",
            Cause::Handover => "handover",
            Cause::Filtered => "filtered",
        };
        self.call(now, name, |_, py, _| {
            let packet = Py::new(py, Packet::new(*segment, u64::MAX))?;
            method.call1(py, (now.as_secs_f64(), packet, cause, Queue(view))).map(drop)
        });
    }

    fn on_departed(&mut self, now: Time, segment: &Segment, view: LinkView) {
        self.notice(now, self.methods.on_departed.clone(), segment, view);
    }

    fn on_idle(&mut self, now: Time, view: LinkView) {
        let Some((name, method)) = self.methods.on_idle.clone() else { return };
        self.call(now, name, |_, py, _| method.call1(py, (now.as_secs_f64(), Queue(view))).map(drop));
    }

    fn handle_ack(&mut self, now: Time, ack: Segment, view: LinkView) {
        let Some((name, method)) = self.methods.on_ack.clone().filter(|_| !self.failed) else {
            self.output.push_back(Output::ToSender(ack));
            return;
        };
        let number = self.next;
        self.next += 1;
        self.held.insert(number, ack);
        self.call(now, name, |adapter, py, _| {
            let packet = Py::new(py, Packet::new(ack, number))?;
            let said = method.call1(py, (now.as_secs_f64(), packet, Queue(view)))?;
            if said.is_none(py) {
                return Ok(());
            }
            match said.cast_bound::<Packet>(py) {
                Ok(passed) => adapter.send(passed.get()),
                Err(_) => Err(PyTypeError::new_err(format!("on_ack returned {said}, not None or an ACK"))),
            }
        });
    }

    fn handle_timeout(&mut self, now: Time, view: LinkView) {
        self.extra = self.extra.map(|extra| if extra <= now { now + EXTRA } else { extra });
        if self.wake.is_none_or(|wake| wake > now) {
            return;
        }
        self.call(now, "on_timer", |adapter, _, object| {
            object.try_borrow_mut()?.take_wake();
            object.call_method1("on_timer", (now.as_secs_f64(), Queue(view)))?;
            let next = object.try_borrow()?.deadline().map(|after| Time::ZERO + after);
            adapter.wake = next;
            match next.filter(|next| *next <= now) {
                None => Ok(()),
                Some(next) => Err(PyValueError::new_err(format!(
                    "wake: {} s is not later than now, so time would stand still",
                    next.as_secs_f64()
                ))),
            }
        });
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        self.output.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        [self.wake, self.extra].into_iter().flatten().min()
    }

    fn close(&mut self, _: Time, flow: FlowId) {
        self.release(|other| other == flow);
        self.clips.remove(&flow);
    }

    fn held(&self, flow: FlowId) -> usize {
        let waiting = |output: &&Output| matches!(output, Output::ToSender(ack) if ack.flow == flow);
        self.held.values().filter(|ack| ack.flow == flow).count() + self.output.iter().filter(waiting).count()
    }
}
