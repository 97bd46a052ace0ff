//! The laws detect a faulty regulator and name the faulty method.

use std::collections::VecDeque;
use std::sync::Arc;

use ackclock_core::{FlowId, Segment, Span, Time};
use ackclock_edge::{FlowContext, Output, Regulator, RegulatorConfig, Verdict};
use ackclock_link::LinkView;
use proptest::test_runner::{TestCaseError, TestError, TestRunner};

use crate::laws::{Operation, early_timeouts_change_nothing, operations, what_is_held_comes_back};

/// Fault of a regulator that holds each ACK, and keeps a copy of each packet, for 50 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The method is not implemented.
    NoClose,
    NoHeld,
    NoKept,
    /// Copies are not freed when a flow ends, or never.
    NoCloseOfCopies,
    NoRelease,
    NoPollTimeout,
    /// The method ignores the time.
    HastyTimeout,
}

#[derive(Debug)]
struct Faulty(Fault);

impl RegulatorConfig for Faulty {
    fn build(&self, _: FlowContext) -> Option<Box<dyn Regulator>> {
        Some(Box::new(Broken {
            fault: self.0,
            held: VecDeque::new(),
            kept: VecDeque::new(),
            output: VecDeque::new(),
        }))
    }
}

struct Broken {
    fault: Fault,
    held: VecDeque<(Time, Segment)>,
    kept: VecDeque<(Time, Segment)>,
    output: VecDeque<Output>,
}

impl Regulator for Broken {
    fn on_data(&mut self, now: Time, segment: &Segment, _: LinkView) -> Verdict {
        self.kept.push_back((now + Span::from_millis(50), *segment));
        Verdict::ForwardKeep
    }

    fn handle_ack(&mut self, now: Time, ack: Segment, _: LinkView) {
        self.held.push_back((now + Span::from_millis(50), ack));
    }

    fn handle_timeout(&mut self, now: Time, _: LinkView) {
        let hasty = self.fault == Fault::HastyTimeout;
        while let Some((_, ack)) = self.held.pop_front_if(|(due, _)| hasty || *due <= now) {
            self.output.push_back(Output::ToSender(ack));
        }
        while let Some((_, copy)) = self.kept.pop_front_if(|(due, _)| *due <= now) {
            self.output.extend((self.fault != Fault::NoRelease).then_some(Output::Release(copy)));
        }
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        self.output.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        let named = self.fault != Fault::NoPollTimeout;
        let first = self.held.front().into_iter().chain(self.kept.front()).min_by_key(|(due, _)| *due);
        first.filter(|_| named).map(|(due, _)| *due)
    }

    fn close(&mut self, _: Time, _: FlowId) {
        if self.fault != Fault::NoClose {
            self.output.extend(self.held.drain(..).map(|(_, ack)| Output::ToSender(ack)));
        }
        if self.fault != Fault::NoCloseOfCopies {
            self.output.extend(self.kept.drain(..).map(|(_, copy)| Output::Release(copy)));
        }
    }

    fn held(&self, _: FlowId) -> usize {
        if self.fault == Fault::NoHeld { 0 } else { self.held.len() }
    }

    fn kept(&self, _: FlowId) -> usize {
        if self.fault == Fault::NoKept { 0 } else { self.kept.len() }
    }
}

type Law = fn(&str, &dyn Fn() -> Arc<dyn RegulatorConfig>, &[(u32, Operation)]) -> Result<(), TestCaseError>;

/// Verdict of the law on a regulator named `faulty`.
fn verdict(law: Law, fault: Fault) -> Option<String> {
    let judge = |operations: Vec<_>| law("faulty", &|| std::sync::Arc::new(Faulty(fault)), &operations);
    match TestRunner::deterministic().run(&operations(), judge) {
        Ok(()) => None,
        Err(TestError::Fail(reason, _)) => Some(reason.message().to_owned()),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

#[test]
fn a_law_that_fails_names_the_regulator_and_the_method() {
    for (fault, law, message) in [
        (Fault::NoClose, what_is_held_comes_back as Law, "faulty: `close` gives back"),
        (Fault::NoHeld, what_is_held_comes_back, "faulty: `held` says 0 where"),
        (Fault::NoKept, what_is_held_comes_back, "faulty: `kept` says 0 where"),
        (Fault::NoCloseOfCopies, what_is_held_comes_back, "faulty: `close` gives back"),
        (Fault::NoRelease, what_is_held_comes_back, "faulty: `poll_timeout` names no deadline at which"),
        (Fault::NoPollTimeout, what_is_held_comes_back, "faulty: `poll_timeout` names no deadline"),
        (Fault::HastyTimeout, early_timeouts_change_nothing, "faulty: `handle_timeout` acts before"),
    ] {
        let verdict = verdict(law, fault);
        assert!(verdict.as_ref().is_some_and(|said| said.starts_with(message)), "{fault:?}: {verdict:?}");
    }
}

#[test]
fn a_regulator_without_a_fault_keeps_the_laws() {
    for law in [what_is_held_comes_back as Law, early_timeouts_change_nothing] {
        assert_eq!(verdict(law, Fault::None), None);
    }
}

#[test]
fn a_law_that_fails_leaves_no_file_behind() {
    // `.cargo/config.toml` disables it for every property.
    assert!(proptest::test_runner::Config::default().failure_persistence.is_none());
}
