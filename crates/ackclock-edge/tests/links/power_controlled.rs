//! The power-controlled link compared with the exact laws of its Markov chain: delays by retransmissions of packets of
//! 1 to 10 frames, and how often three later packets overtake one (power-control.md sections 4 and 5).

use std::collections::BTreeMap;

use crate::common::{segment, unlimited};
use ackclock_core::{Span, Time};
use ackclock_link::LinkEvent;
use serde_json::json;

const TTI: Span = Span::from_millis(20);
/// Bytes of a frame at 384 kbit/s.
const FRAME: u16 = 960;
const STEPS: [f64; 3] = [0.2, 0.06, 0.02];
const RISE: usize = 9;
const GUARD: u32 = 3;
const ROUNDS: u8 = 5;

/// Loss probability in each state of the source, from state 1 on (section 2). Written independently, to find errors in
/// the crate's formula.
fn losses(step: f64) -> Vec<f64> {
    let count = 1 + (6.0 / step).round() as usize;
    let loss = |k: usize| {
        let beta = std::f64::consts::LN_10 / 10.0;
        let argument = (8.0 * libm::exp(beta * k as f64 * step + beta * beta / 2.0)).sqrt();
        let bit = 0.5 * libm::erfc(argument / 2f64.sqrt());
        match k {
            1 => 1.0,
            k if k > count - RISE => 0.0,
            _ => 1.0 - (1.0 - bit).powi(2560),
        }
    };
    (1..=count).map(loss).collect()
}

/// Effect of a frame on the law of the state: a loss moves up, an arrival down.
fn split(law: &[f64], losses: &[f64]) -> [Vec<f64>; 2] {
    let [mut arrives, mut lost] = [vec![0.0; law.len()], vec![0.0; law.len()]];
    for (state, (&probability, &loss)) in law.iter().zip(losses).enumerate() {
        if state >= 1 {
            arrives[state - 1] = probability * (1.0 - loss);
        }
        if state + RISE < law.len() {
            lost[state + RISE] = probability * loss;
        }
    }
    [arrives, lost]
}

/// Stationary law: the mean over a period of the chain, after it has forgotten its start.
fn stationary(losses: &[f64]) -> Vec<f64> {
    let mut law = vec![1.0 / losses.len() as f64; losses.len()];
    let mut mean = vec![0.0; losses.len()];
    for number in 0..5000 {
        let [arrives, lost] = split(&law, losses);
        law = arrives.iter().zip(&lost).map(|(a, b)| a + b).collect();
        if number >= 4000 {
            mean.iter_mut().zip(&law).for_each(|(mean, p)| *mean += p / 1000.0);
        }
    }
    mean
}

/// Unsent data of some packets: new frames, and retransmissions, each with its first slot, its round, and whether it
/// is of the first packet.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Left {
    of_first: u32,
    of_others: u32,
    again: Vec<(u32, u8, bool)>,
}

impl Left {
    /// Frames that have not arrived, of the first packet or of the others.
    fn missing(&self, first: bool) -> usize {
        let new = if first { self.of_first } else { self.of_others };
        new as usize + self.again.iter().filter(|frame| frame.2 == first).count()
    }

    /// The frame sent in a slot, if any: its round and whether it is of the first packet.
    fn send(&mut self, slot: u32) -> Option<(u8, bool)> {
        if self.again.first().is_some_and(|&(due, ..)| due <= slot) {
            let (_, round, first) = self.again.remove(0);
            return Some((round, first));
        }
        let first = self.of_first > 0;
        let new = if first { &mut self.of_first } else { &mut self.of_others };
        *new = new.checked_sub(1)?;
        Some((0, first))
    }
}

/// Sends frames slot by slot from the stationary law on. `over` returns the answer once it is known from what is left;
/// returns the probability of each answer.
fn play<A: Ord>(step: f64, left: Left, mut over: impl FnMut(&Left, u32) -> Option<A>) -> BTreeMap<A, f64> {
    let losses = losses(step);
    let mut now = BTreeMap::from([(left, stationary(&losses))]);
    let mut answers = BTreeMap::new();
    for slot in 1.. {
        let mut next = BTreeMap::<Left, Vec<f64>>::new();
        for (left, law) in std::mem::take(&mut now) {
            let [arrives, lost] = split(&law, &losses);
            let mut after = left.clone();
            let sent = after.send(slot);
            let mut damaged = after.clone();
            if let Some((round, first)) = sent.filter(|&(round, _)| round < ROUNDS) {
                damaged.again.push((slot + GUARD, round + 1, first));
            }
            for (left, law) in [(after, arrives), (damaged, lost)] {
                let probability: f64 = law.iter().sum();
                if let Some(answer) = over(&left, slot) {
                    *answers.entry(answer).or_default() += probability;
                } else if probability > 1e-15 {
                    let into = next.entry(left).or_insert_with(|| vec![0.0; law.len()]);
                    into.iter_mut().zip(&law).for_each(|(into, p)| *into += p);
                }
            }
        }
        if next.is_empty() {
            break;
        }
        now = next;
    }
    answers
}

/// Law of the retransmission delay, in TTIs, of a packet of n frames.
fn delay_law(step: f64, frames: u32) -> BTreeMap<u32, f64> {
    let left = Left { of_first: frames, of_others: 0, again: Vec::new() };
    play(step, left, |left, slot| (left.missing(true) == 0).then(|| slot - frames))
}

/// Probability that the first of four packets of n frames that arrive together completes last.
fn overtaken(step: f64, frames: u32) -> f64 {
    let left = Left { of_first: frames, of_others: 3 * frames, again: Vec::new() };
    let law = play(step, left, |left, _| match (left.missing(true), left.missing(false)) {
        (0, _) => Some(false),
        (_, 0) => Some(true),
        _ => None,
    });
    law.get(&true).copied().unwrap_or(0.0)
}

/// Groups of packets of n frames, far enough apart not to interact: number and delay in TTIs of each packet, in order
/// of arrival.
fn arrivals(step: f64, frames: u32, together: u32, groups: u32, order: &str) -> Vec<(u32, u64)> {
    let table = json!({"kind": "power-controlled", "errors": {"step": step}, "order": order});
    let mut link = unlimited(&table, 11);
    // No multiple of the chain's period, so that groups meet it in all phases.
    let spacing = (frames * together + 18..).find(|slots| slots % 2 == 1 && slots % 5 != 0).unwrap();
    let mut seen = Vec::new();
    for group in 0..groups {
        let now = Time::ZERO + TTI * u64::from(group * spacing);
        for number in 0..together {
            link.enqueue(now, &segment(0, group * together + number, FRAME * frames as u16)).unwrap();
        }
        while let Some((_, event, segment)) = link.poll_event(now + TTI * u64::from(spacing)) {
            let LinkEvent::Delivered(repeated) = event else { panic!("five rounds hardly ever fail") };
            seen.push((segment.seq.0, repeated.delay.as_nanos() / TTI.as_nanos()));
        }
    }
    seen
}

#[test]
fn the_exact_law_is_that_of_the_source() {
    // power-control.md section 4, percent, for the step 0.06.
    let printed: [(u32, &[(u32, f64)]); 3] = [
        (1, &[(0, 90.0), (3, 9.346), (6, 0.626), (9, 0.027)]),
        (2, &[(0, 80.595), (2, 8.772), (3, 9.326), (5, 0.626), (6, 0.626), (8, 0.027), (9, 0.027)]),
        (7, &[(0, 42.71), (1, 29.73), (2, 13.12), (3, 9.57), (4, 3.12), (5, 0.891), (6, 0.637), (7, 0.150)]),
    ];
    for (frames, law) in printed {
        let exact = delay_law(0.06, frames);
        for &(delay, percent) in law {
            assert!((100.0 * exact[&delay] - percent).abs() < 0.006, "{frames} {delay}: {}", exact[&delay]);
        }
    }
    // Section 5, P_FR in percent, of 1 and 2 frames.
    for (step, percent) in STEPS.into_iter().zip([[0.260, 0.001], [0.630, 0.025], [0.790, 0.045]]) {
        for (frames, percent) in [1, 2].into_iter().zip(percent) {
            let exact = 100.0 * overtaken(step, frames);
            assert!((exact - percent).abs() < 0.0011, "{step} {frames}: {exact}");
        }
    }
}

/// P_TO in a thousand: probability of a delay above the mean plus four deviations (section 4), for 1 to 10 frames and
/// each step.
const P_TO: [[f64; 3]; 10] = [
    [2.60, 6.54, 8.58],
    [5.20, 6.81, 9.20],
    [5.21, 7.08, 9.83],
    [2.63, 7.39, 10.50],
    [2.66, 7.72, 3.18],
    [2.71, 8.11, 3.85],
    [2.80, 2.17, 4.54],
    [2.93, 2.57, 5.26],
    [3.11, 2.99, 2.27],
    [3.35, 3.43, 2.48],
];

/// Mean and standard deviation of a law.
fn moments(law: &BTreeMap<u32, f64>) -> (f64, f64) {
    let moment = |power: i32| law.iter().map(|(&delay, p)| p * f64::from(delay).powi(power)).sum::<f64>();
    (moment(1), (moment(2) - moment(1) * moment(1)).sqrt())
}

/// Whether `got` of `count` agrees with a binomial law of this probability, within three standard deviations.
fn within_three(got: f64, count: f64, probability: f64) -> bool {
    (got - count * probability).abs() <= 3.0 * (count * probability * (1.0 - probability)).sqrt()
}

#[test]
fn packets_are_delayed_by_the_exact_law_for_every_size_and_step() {
    const PACKETS: u32 = 120_000;
    for (column, step) in STEPS.into_iter().enumerate() {
        for (row, frames) in (1..=10).enumerate() {
            let law = delay_law(step, frames);
            let mut seen = BTreeMap::<u32, f64>::new();
            let all = arrivals(step, frames, 1, PACKETS, "out-of-sequence");
            all.iter().for_each(|&(_, delay)| *seen.entry(delay as u32).or_default() += 1.0);
            let name = format!("step {step}, {frames} frames");
            for (delay, &probability) in &law {
                let got = seen.remove(delay).unwrap_or(0.0);
                // Rare events have no normal law; the tail below counts them.
                if f64::from(PACKETS) * probability > 5.0 {
                    assert!(within_three(got, PACKETS.into(), probability), "{name}: {got} of {delay} TTI");
                }
            }
            assert_eq!(seen, BTreeMap::new(), "{name}");
            let (mean, deviation) = moments(&law);
            let late = |delay: f64| delay > mean + 4.0 * deviation;
            let exact: f64 = law.iter().filter(|law| late((*law.0).into())).map(|law| law.1).sum();
            // The table omits packets not complete within 20 slots.
            let within_20 = |(delay, _): &(&u32, &f64)| late((**delay).into()) && *delay + frames <= 20;
            let printed: f64 = law.iter().filter(within_20).map(|law| law.1).sum();
            assert!((1000.0 * printed - P_TO[row][column]).abs() < 0.011, "{name}: P_TO {printed}");
            let got = all.iter().filter(|seen| late(seen.1 as f64)).count() as f64;
            assert!(
                within_three(got, PACKETS.into(), exact),
                "{name}: {got} later than mean and four deviations"
            );
        }
    }
}

#[test]
fn three_later_packets_overtake_one_as_often_as_the_exact_law_says_and_never_in_sequence() {
    const GROUPS: u32 = 100_000;
    for step in STEPS {
        for frames in 1..=3 {
            let overtaken_of = |order| {
                let all = arrivals(step, frames, 4, GROUPS, order);
                all.chunks(4).filter(|four| four[3].0 % 4 == 0).count() as f64
            };
            let got = overtaken_of("out-of-sequence");
            assert!(
                within_three(got, GROUPS.into(), overtaken(step, frames).max(1e-5)),
                "step {step}, {frames} frames: {got}"
            );
            assert_eq!(overtaken_of("in-sequence"), 0.0, "step {step}, {frames} frames");
        }
    }
}
