//! Laws that hold for every congestion controller under any input.

use ackclock_core::{Rate, Span, Time};
use ackclock_tcp::Stack;
use ackclock_tcp::cc::abc::Abc;
use ackclock_tcp::cc::bbr::{Bbr, BbrConfig};
use ackclock_tcp::cc::bbr3::Bbr3;
use ackclock_tcp::cc::copa::{Copa, CopaConfig};
use ackclock_tcp::cc::cubic::{Cubic, CubicConfig, SlowStartEnd};
use ackclock_tcp::cc::dctcp::Dctcp;
use ackclock_tcp::cc::prague::{Prague, PragueConfig};
use ackclock_tcp::cc::reno::Reno;
use ackclock_tcp::cc::westwood::Westwood;
use ackclock_tcp::cc::westwood_plus::WestwoodPlus;
use ackclock_tcp::cc::{
    AckSample, BuildControl, CcContext, Congestion, CongestionControl, CongestionEvent, Departure, Phase,
    RateSample,
};
use ackclock_tcp::config::{Growth, Halves, SenderConfig};
use proptest::prelude::*;

type Build = fn(CcContext) -> Box<dyn CongestionControl>;

/// Every controller, with the options that change its behaviour.
const CONTROLLERS: &[(&str, Build)] = &[
    ("reno, halves flight", |context| Box::new(Reno::new(&context, Halves::Flight, Growth::Acks))),
    ("reno, halves window", |context| Box::new(Reno::new(&context, Halves::Window, Growth::Acks))),
    ("reno, halves the exact window", |context| {
        Box::new(Reno::new(&context, Halves::ExactWindow, Growth::Acks))
    }),
    ("reno, Linux", |context| Box::new(Reno::new(&context, Halves::Cwnd, Growth::Bytes))),
    ("westwood", |context| Box::new(<Westwood>::build(&SenderConfig::default(), &context, Halves::Window))),
    ("westwood-plus", |context| {
        Box::new(WestwoodPlus::build(&SenderConfig::default(), &context, Halves::Flight))
    }),
    ("cubic", |context| Box::new(Cubic::new(&CubicConfig::default(), Growth::Acks, context))),
    ("cubic with hystart", |context| {
        Box::new(Cubic::new(
            &CubicConfig { hystart: SlowStartEnd::On, ..CubicConfig::default() },
            Growth::Acks,
            context,
        ))
    }),
    ("cubic, Linux", |context| {
        let options = Stack::Linux.defaults();
        Box::new(Cubic::new(&options.cubic, options.growth, CcContext { stack: Stack::Linux, ..context }))
    }),
    ("copa", |context| Box::new(Copa::new(&CopaConfig::default(), &context))),
    ("abc", |context| Box::new(Abc::new(&CubicConfig::default(), Growth::Acks, context))),
    ("dctcp", |context| Box::new(Dctcp::new(&context, Halves::Flight, Growth::Acks))),
    ("prague", |context| Box::new(Prague::new(&PragueConfig::default(), &context))),
    ("bbr", |context| Box::new(Bbr::new(&BbrConfig::default(), context))),
    ("bbr3", |context| Box::new(Bbr3::new(&context))),
    ("bbr, Linux", |context| {
        Box::new(Bbr::new(&Stack::Linux.defaults().bbr, CcContext { stack: Stack::Linux, ..context }))
    }),
];

/// An event for a controller. Amounts are arbitrary: a controller must handle them all.
#[derive(Clone, Debug)]
enum Op {
    Ack(Box<Ack>),
    Duplicate(Box<Ack>),
    Congestion { cause: Congestion, flight: u32, window: u32, repeated: bool },
    Recovered,
    Spurious(Congestion),
    Sent { bytes: u32, in_flight: u32 },
    Adopt { window: u32, ssthresh: u32 },
}

impl Op {
    /// Method of the controller that the event calls.
    fn method(&self) -> &'static str {
        match self {
            Self::Ack(_) => "on_ack",
            Self::Duplicate(_) => "on_duplicate",
            Self::Congestion { .. } => "on_congestion",
            Self::Recovered => "on_recovered",
            Self::Spurious(_) => "on_spurious",
            Self::Sent { .. } => "on_sent",
            Self::Adopt { .. } => "adopt",
        }
    }
}

#[derive(Clone, Debug)]
struct Ack {
    acked: u32,
    delivered: u32,
    in_flight: u32,
    rtt: Option<u64>,
    rate: Option<(u64, u64, u64, bool)>,
    phase: Phase,
    window_limited: bool,
    marked: u32,
}

/// Mostly values of real paths, occasionally the ends of the range.
fn bytes() -> impl Strategy<Value = u32> {
    prop_oneof![6 => 0u32..200_000, 1 => Just(0), 1 => Just(u32::MAX), 1 => any::<u32>()]
}

fn nanos() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0u64..2_000_000_000, 1 => Just(0), 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn cause() -> impl Strategy<Value = Congestion> {
    prop_oneof![Just(Congestion::FastRetransmit), Just(Congestion::Timeout), Just(Congestion::Ecn)]
}

fn ack() -> impl Strategy<Value = Box<Ack>> {
    let phase = prop_oneof![Just(Phase::Open), Just(Phase::FastRecovery), Just(Phase::TimeoutRecovery)];
    let rate = prop::option::of((nanos(), nanos(), nanos(), any::<bool>()));
    (bytes(), bytes(), bytes(), prop::option::of(nanos()), rate, phase, any::<bool>(), bytes()).prop_map(
        |(acked, delivered, in_flight, rtt, rate, phase, window_limited, marked)| {
            Box::new(Ack { acked, delivered, in_flight, rtt, rate, phase, window_limited, marked })
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => ack().prop_map(Op::Ack),
        2 => ack().prop_map(Op::Duplicate),
        2 => (cause(), bytes(), bytes(), any::<bool>())
            .prop_map(|(cause, flight, window, repeated)| Op::Congestion { cause, flight, window, repeated }),
        1 => Just(Op::Recovered),
        1 => cause().prop_map(Op::Spurious),
        2 => (bytes(), bytes()).prop_map(|(bytes, in_flight)| Op::Sent { bytes, in_flight }),
        1 => (bytes(), bytes()).prop_map(|(window, ssthresh)| Op::Adopt { window, ssthresh }),
    ]
}

fn sample(now: Time, ack: &Ack) -> AckSample {
    let rtt = ack.rtt.map(Span::from_nanos);
    AckSample {
        now,
        acked: ack.acked,
        delivered: ack.delivered,
        in_flight: ack.in_flight,
        rtt,
        srtt: rtt,
        min_rtt: rtt,
        rate: ack.rate.map(|(rate, delivered, prior_delivered, app_limited)| RateSample {
            rate: Rate::from_bps(rate),
            delivered,
            prior_delivered,
            app_limited,
        }),
        paced_for: Span::ZERO,
        phase: ack.phase,
        window_limited: ack.window_limited,
        lost: 0,
        lost_in_all: 0,
        marked: ack.marked,
    }
}

fn apply(cc: &mut dyn CongestionControl, now: Time, op: &Op) {
    match op {
        Op::Ack(ack) => cc.on_ack(&sample(now, ack)),
        Op::Duplicate(ack) => cc.on_duplicate(&sample(now, ack)),
        &Op::Congestion { cause, flight, window, repeated } => {
            let repeated_timeout = repeated && cause == Congestion::Timeout;
            cc.on_congestion(&CongestionEvent {
                now,
                cause,
                flight,
                window,
                repeated_timeout,
                lost_in_all: 0,
            });
        }
        Op::Recovered => cc.on_recovered(now),
        Op::Spurious(cause) => cc.on_spurious(now, *cause),
        &Op::Sent { bytes, in_flight } => {
            cc.on_sent(&Departure { now, bytes, in_flight, app_limited: bytes % 2 == 0 })
        }
        &Op::Adopt { window, ssthresh } => cc.adopt(window, ssthresh),
    }
}

/// After persistent congestion a sender is in slow start (RFC 9002 section 7.6.2), also one that had left it: the window
/// grows from 2 to at least 16 segments in four round trips.
#[test]
fn persistent_congestion_begins_a_slow_start() {
    const MSS: u32 = 1000;
    let initial_window = 100 * MSS;
    let context = CcContext {
        mss: MSS,
        initial_window,
        initial_ssthresh: u32::MAX,
        loss_window: MSS,
        stack: Stack::Rfc,
    };
    let ack = |cc: &dyn CongestionControl, millis: u64, rtt: u64| {
        let ack = Ack {
            marked: 0,
            acked: MSS,
            delivered: MSS,
            in_flight: cc.window() - MSS,
            rtt: Some(rtt * 1_000_000),
            rate: None,
            phase: Phase::Open,
            window_limited: true,
        };
        sample(Time::from_nanos(millis * 1_000_000), &ack)
    };
    for (name, build) in CONTROLLERS {
        let mut cc = build(context);
        // A queue of up to 200 ms grows in front of the 50 ms of the path.
        for step in 0..200 {
            cc.on_ack(&ack(&*cc, step, 50 + step));
        }
        let (cause, window) = (Congestion::FastRetransmit, cc.window());
        let now = Time::from_nanos(300_000_000);
        cc.on_congestion(&CongestionEvent {
            now,
            cause,
            flight: window,
            window,
            repeated_timeout: false,
            lost_in_all: 1,
        });
        cc.on_persistent_congestion(2 * MSS);
        cc.on_recovered(now);
        for round in 0..4 {
            for _ in 0..cc.window() / MSS {
                cc.on_ack(&ack(&*cc, 1000 + 50 * round, 50));
            }
        }
        assert!(cc.window() >= 16 * MSS, "{name}: a window of {} after four round trips", cc.window());
    }
}

/// With segments of one byte the window in segments equals the window in bytes, and additions to it can overflow.
#[test]
fn the_largest_rate_is_borne_with_segments_of_a_byte() {
    let context =
        CcContext { mss: 1, initial_window: 0, initial_ssthresh: 0, loss_window: 1, stack: Stack::Rfc };
    let none = Ack {
        marked: 0,
        acked: 0,
        delivered: 0,
        in_flight: 0,
        rtt: None,
        rate: None,
        phase: Phase::Open,
        window_limited: false,
    };
    for (name, build) in CONTROLLERS {
        let mut cc = build(context);
        let fast = Ack { rate: Some((u64::MAX, 0, 0, false)), ..none.clone() };
        cc.on_ack(&sample(Time::ZERO, &fast));
        cc.on_ack(&sample(Time::ZERO, &Ack { rtt: Some(1), ..none.clone() }));
        assert!(cc.window() >= 1, "{name}");
    }
}

proptest! {
    #[test]
    fn a_window_is_never_below_a_segment_and_equal_events_give_equal_windows(
        mss in prop_oneof![1u32..2000, Just(65_535)],
        initial_window in bytes(),
        initial_ssthresh in bytes(),
        ops in prop::collection::vec((nanos(), op()), 1..150),
    ) {
        let context = CcContext { mss, initial_window, initial_ssthresh, loss_window: mss, stack: Stack::Rfc };
        for (name, build) in CONTROLLERS {
            let (mut one, mut other) = (build(context), build(context));
            prop_assert!(one.window() >= mss, "{}: `window` begins with {}", name, one.window());
            let mut now = Time::ZERO;
            for (step, op) in &ops {
                now += Span::from_nanos(*step);
                apply(&mut *one, now, op);
                apply(&mut *other, now, op);
                prop_assert!(one.window() >= mss, "{}: `{}` leaves a `window` of {}: {:?}", name, op.method(), one.window(), op);
                prop_assert!(one.pacing_rate() != Some(Rate::ZERO), "{}: `{}` leaves a `pacing_rate` of nothing: {:?}", name, op.method(), op);
                let seen = |cc: &dyn CongestionControl| (cc.window(), cc.ssthresh(), cc.pacing_rate());
                prop_assert_eq!(seen(&*one), seen(&*other), "{}: `{}` differs when repeated", name, op.method());
            }
        }
    }

    #[test]
    fn a_loss_never_raises_a_window(
        mss in 100u32..2000,
        segments in 4u32..500,
        acks in 0usize..200,
        cause in cause(),
    ) {
        let context = CcContext { mss, initial_window: segments * mss, initial_ssthresh: u32::MAX, loss_window: mss, stack: Stack::Rfc };
        for (name, build) in CONTROLLERS {
            let mut cc = build(context);
            for step in 0..acks {
                let ack = Ack {
                    marked: 0,
                    acked: mss,
                    delivered: mss,
                    in_flight: cc.window() - mss,
                    rtt: Some(50_000_000),
                    rate: None,
                    phase: Phase::Open,
                    window_limited: true,
                };
                cc.on_ack(&sample(Time::from_nanos(step as u64 * 1_000_000), &ack));
            }
            let before = cc.window();
            let event = CongestionEvent {
                now: Time::from_nanos(1_000_000_000),
                cause,
                flight: before,
                window: before,
                repeated_timeout: false,
                lost_in_all: 0,
            };
            cc.on_congestion(&event);
            prop_assert!(cc.window() <= before, "{}: `on_congestion` raises the window to {} from {}", name, cc.window(), before);
            cc.on_persistent_congestion(2 * mss);
            prop_assert!(cc.window() == 2 * mss, "{}: persistent congestion leaves a window of {}", name, cc.window());
        }
    }
}
