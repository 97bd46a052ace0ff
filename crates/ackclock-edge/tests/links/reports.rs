//! Laws of the reports of every link: each change of the rate is reported once, at its instant, with the true rate.

use ackclock_core::{FlowId, RadioReport, Rate, ReportReason, Segment, Time};
use ackclock_link::{Capacity, Constant, Departures, Link, LinkEvent, Silence};
use ackclock_testkit::cases;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::{every_link, every_queue, link, micros, pairings, segment, turns, unlimited};

/// Whether reports of a link are wanted.
#[derive(Clone, Copy, PartialEq)]
enum Audience {
    Listening,
    Nobody,
}

/// Events of a link's segments with their numbers, and its reports.
type Seen = (Vec<(Time, LinkEvent, u32)>, Vec<RadioReport>);

/// Offers each segment at its instant and fetches all events at the instants that the link names, and at every
/// multiple of `step`. Calls `look` with the link after each.
fn play(
    link: &mut dyn Link,
    arrivals: &[(Time, Segment)],
    audience: Audience,
    step: Option<u64>,
    mut look: impl FnMut(&mut dyn Link, Time, Option<&RadioReport>),
) -> Seen {
    if audience == Audience::Listening {
        link.want_reports();
    }
    let (mut events, mut reports) = (Vec::new(), Vec::<RadioReport>::new());
    let mut arrivals = arrivals.iter().peekable();
    let (end, mut extra) = (micros(400_000), 0);
    loop {
        let arrives = arrivals.peek().map_or(Time::NEVER, |(at, _)| *at);
        let mut now = link.poll_timeout().unwrap_or(Time::NEVER).min(arrives);
        if let Some(step) = step
            && micros(extra) < now
        {
            now = micros(extra);
            extra += step;
        }
        if now > end {
            return (events, reports);
        }
        events.extend(
            std::iter::from_fn(|| link.poll_event(now))
                .map(|(at, event, segment)| (at, event, segment.seq.0)),
        );
        while let Some(report) = link.poll_report(now) {
            assert_eq!(report.at, now, "a report is fetched at its instant");
            reports.push(report);
        }
        if arrives == now
            && let Some((_, segment)) = arrivals.next()
        {
            let _ = link.enqueue(now, segment);
        } else {
            look(link, now, reports.last());
        }
    }
}

fn arrivals() -> impl Strategy<Value = Vec<(Time, Segment)>> {
    prop::collection::vec((0u64..12_000, 40u16..1500), 1..40).prop_map(|arrivals| {
        let mut now = Time::ZERO;
        let place = |(number, (gap, bytes)): (usize, (u64, u16))| {
            now += ackclock_core::Span::from_micros(gap);
            (now, segment(number as u32 % 2, number as u32, bytes))
        };
        arrivals.into_iter().enumerate().map(place).collect()
    })
}

fn is_cell(table: &Value) -> bool {
    table["kind"] == "cell"
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(48), ..ProptestConfig::default() })]

    #[test]
    fn the_last_report_has_the_rate_of_the_link(arrivals in arrivals(), seed in 0u64..1000) {
        for table in every_link() {
            let mut link = unlimited(&table, seed);
            let first = link.view(Time::ZERO, FlowId(0)).rate;
            let (_, reports) = play(&mut *link, &arrivals, Audience::Listening, None, |link, now, last| {
                // In a cell, reports cover only users with data.
                if !is_cell(&table) {
                    let rate = last.map_or(first, |report| report.rate);
                    assert_eq!(rate, link.view(now, FlowId(0)).rate, "{table} at {now:?}");
                }
            });
            let of = |user| reports.iter().filter(move |report| report.user == user).map(|report| report.rate);
            for user in [None, Some(0), Some(1)] {
                assert!(of(user).zip(of(user).skip(1)).all(|(a, b)| a != b), "{table}: what is no news is reported");
            }
            assert!(reports.iter().all(|report| report.user.is_some() == is_cell(&table)), "{table}");
            assert!(reports.iter().all(|report| report.reason == ReportReason::Change), "{table}");
        }
    }

    #[test]
    fn extra_polls_change_no_report(arrivals in arrivals(), seed in 0u64..1000, step in 50u64..5_000) {
        for table in every_link() {
            let told = |step| play(&mut *unlimited(&table, seed), &arrivals, Audience::Listening, step, |_, _, _| {});
            assert_eq!(told(None).1, told(Some(step)).1, "{table}");
        }
    }

    #[test]
    fn listening_changes_nothing_but_reports(arrivals in arrivals(), seed in 0u64..1000, turn in turns()) {
        for (table, queue) in pairings(&every_link(), &every_queue(), turn) {
            let told = |audience| {
                let mut link = link(&table, &queue, Capacity::Packets(5), seed);
                link.want_departures(Departures::Watched);
                play(&mut *link, &arrivals, audience, None, |_, _, _| {})
            };
            let (heard, alone) = (told(Audience::Listening), told(Audience::Nobody));
            assert_eq!(heard.0, alone.0, "{table} behind {queue}");
            assert_eq!(alone.1, [], "{table} behind {queue}");
        }
    }
}

/// Instants in milliseconds, rates in kbit/s, queued packets and bytes.
fn rows(reports: &[RadioReport]) -> Vec<(u64, u64, u32, u64)> {
    let row = |report: &RadioReport| {
        let RadioReport { at, rate, queued_packets, queued_bytes, .. } = *report;
        (at.as_nanos() / 1_000_000, rate.as_bps() / 1000, queued_packets, queued_bytes)
    };
    reports.iter().map(row).collect()
}

#[test]
fn outages_and_recordings_are_reported_with_what_waits() {
    let arrivals: Vec<_> = (0..4).map(|number| (Time::ZERO, segment(0, number, 1000))).collect();
    let reported = |table: Value| {
        rows(&play(&mut *unlimited(&table, 1), &arrivals, Audience::Listening, None, |_, _, _| {}).1)
    };
    // 1000 B take 10 ms: at 25 ms the third is in transmission, and goes on at 225.
    let outage = json!({
        "kind": "variable", "rate": "800kbit/s", "delay": "1ms", "outages": [{"at": "25ms", "for": "200ms"}]
    });
    assert_eq!(reported(outage), [(25, 0, 1, 1000), (225, 800, 1, 1000)]);
    // 800 kbit/s for 20 ms, none for 30, 2000 for 50, repeated. Two leave by 20 ms: at that instant the change comes
    // first, with the third and fourth queued. At 50 ms the third is in transmission.
    let first = [(20, 0, 2, 2000), (50, 2000, 1, 1000), (100, 800, 0, 0), (120, 0, 0, 0)];
    assert_eq!(reported(json!({"kind": "trace", "file": "rates"}))[..4], first);
}

#[test]
fn a_medium_that_takes_the_place_of_another_is_reported() {
    let mut link = unlimited(&json!({"kind": "constant", "rate": "1Mbit/s"}), 1);
    link.want_reports();
    let slower = || Box::new(Constant::new(Rate::from_bps(400_000), ackclock_core::Span::ZERO));
    link.replace_medium(micros(5_000), Box::new(Silence::Paused));
    link.replace_medium(micros(7_000), slower());
    link.replace_medium(micros(9_000), slower());
    // Pending reports are due.
    assert_eq!(link.poll_timeout(), Some(micros(5_000)));
    let reports: Vec<_> = std::iter::from_fn(|| link.poll_report(micros(9_000))).collect();
    assert_eq!(rows(&reports), [(5, 0, 0, 0), (7, 400, 0, 0)]);
    assert_eq!(link.poll_timeout(), None);
}
