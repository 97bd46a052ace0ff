//! Recordings: mm-link's semantics by hand, public recordings, and hostile input.

use std::path::PathBuf;

use crate::common::{MadeUp, Polling, What, drive, link, micros, nominal, segment, unlimited};
use ackclock_core::{Rate, Span, Time};
use ackclock_import::Recording;
use ackclock_link::{Capacity, Departures, Link};
use proptest::prelude::*;
use serde_json::json;

/// Departures of packets of these sizes that arrive at these instants, in milliseconds. The recording "bursts" has
/// opportunities at 0, 3, 3, 3, 7, 30, 31, 31, 60 and 100 ms.
fn departures(accounting: &str, packets: &[(u64, u16)]) -> Vec<u64> {
    let mut link = unlimited(&json!({"kind": "trace", "file": "bursts", "accounting": accounting}), 1);
    let arrivals: Vec<_> = packets
        .iter()
        .enumerate()
        .map(|(number, &(ms, bytes))| (micros(1000 * ms), segment(0, number as u32, bytes)))
        .collect();
    drive(&mut *link, &arrivals, Departures::Watched, Polling::AsAsked, Time::ZERO + Span::from_secs(10))
        .iter()
        .filter(|outcome| outcome.what == What::Departed)
        .map(|outcome| outcome.at.as_nanos() / 1_000_000)
        .collect()
}

#[test]
fn a_full_packet_takes_an_opportunity() {
    // 1500 B count 1504: one opportunity each. The one at 0 coincides with the arrival and is lost.
    assert_eq!(departures("mahimahi", &[(0, 1500); 6]), [3, 3, 3, 7, 30, 31]);
}

#[test]
fn small_packets_share_an_opportunity() {
    // 748 B count 752: two make 1504. Three of 52 B, counted as 56, go together with the rest.
    assert_eq!(departures("mahimahi", &[(0, 748), (0, 748), (0, 748)]), [3, 3, 3]);
    assert_eq!(departures("mahimahi", &[(8, 748), (8, 748), (8, 748)]), [30, 30, 31]);
    assert_eq!(departures("mahimahi", &[(8, 52), (8, 52), (8, 1388), (8, 52)]), [30, 30, 30, 31]);
    // 1388 + 2·52 = 1492 with 3·4 = 1504: nothing is left for the fourth. By IP bytes 8 are left, and 44 more taken
    // later.
    assert_eq!(departures("ip", &[(8, 52), (8, 52), (8, 1388), (8, 52)]), [30, 30, 30, 31]);
}

#[test]
fn a_packet_goes_on_with_the_next_opportunity() {
    // 1000 and 1004 counted: the second gets 500 at 30 and 504 at 31, and leaves 1000 to the third at 31, which then
    // gets its last 4 from the second opportunity at 31.
    assert_eq!(departures("mahimahi", &[(8, 1000), (8, 1000), (8, 1000)]), [30, 31, 31]);
    assert_eq!(departures("ip", &[(8, 1000), (8, 1000), (8, 1000)]), [30, 31, 31]);
    assert_eq!(departures("ip", &[(8, 4000)]), [31], "more than an opportunity: 30, 31, 31");
}

#[test]
fn what_finds_no_packet_is_lost() {
    // 100 B leave 1400 unused at 30; a packet that arrives at the same instant cannot use them.
    assert_eq!(departures("ip", &[(8, 100), (30, 100)]), [30, 31]);
    assert_eq!(departures("ip", &[(31, 100)]), [60], "both opportunities at 31 are over");
}

#[test]
fn the_recording_begins_again_at_its_last_instant() {
    // The last opportunity is at 100 ms, which is 0 ms of the next pass: two opportunities at one instant.
    assert_eq!(departures("ip", &[(61, 1500), (61, 1500), (61, 1500), (150, 1500)]), [100, 100, 103, 160]);
    assert_eq!(departures("ip", &[(100, 1500)]), [103]);
    assert_eq!(departures("ip", &[(5_000, 1500)]), [5_003]);
}

#[test]
fn the_head_of_the_queue_counts_against_the_buffer_until_its_first_byte_goes() {
    let table = json!({"kind": "trace", "file": "bursts", "accounting": "ip"});
    let mut link = link(&table, &"drop-tail".into(), Capacity::Packets(2), 1);
    // Three arrive before 30 ms and two fit. At 30 the first sends 1000 of its 1500 bytes and the second 500, which
    // has then started and makes room.
    for number in 0..2 {
        assert!(link.enqueue(micros(8_000), &segment(0, number, 1000)).is_ok());
    }
    assert!(link.enqueue(micros(8_000), &segment(0, 2, 1000)).is_err());
    assert_eq!(link.view(micros(8_000), ackclock_core::FlowId(0)).waiting.packets, 2);
    while link.poll_event(micros(30_000)).is_some() {}
    let view = link.view(micros(30_000), ackclock_core::FlowId(0));
    assert_eq!((view.waiting.packets, view.in_transmission.packets), (0, 1));
}

#[test]
fn what_follows_a_packet_waits_for_an_opportunity_of_its_own_and_counts_until_then() {
    // 1500 B count 1504 and use all of the opportunity at 30; the next two are at 31.
    let table = json!({"kind": "trace", "file": "bursts", "accounting": "mahimahi"});
    let mut link = link(&table, &"drop-tail".into(), Capacity::Packets(3), 1);
    for number in 0..3 {
        assert!(link.enqueue(micros(8_000), &segment(0, number, 1500)).is_ok());
    }
    for (millis, waiting) in [(8, 3), (29, 3), (30, 2), (31, 0)] {
        let now = micros(1000 * millis);
        while link.poll_event(now).is_some() {}
        let view = link.view(now, ackclock_core::FlowId(0));
        assert_eq!((view.waiting.packets, view.in_transmission.packets), (waiting, 0), "at {millis} ms");
    }
}

#[test]
fn rates_of_a_table_change_in_mid_packet() {
    let mut link = unlimited(&json!({"kind": "trace", "file": "rates", "delay": "5ms"}), 1);
    let arrivals = [(micros(10_000), segment(0, 0, 1500)), (micros(95_000), segment(0, 1, 1500))];
    let seen = drive(&mut *link, &arrivals, Departures::Unwatched, Polling::AsAsked, micros(1_000_000));
    let delivered: Vec<u64> = seen.iter().map(|outcome| outcome.at.as_nanos() / 1000).collect();
    // 12000 bit: 10 ms at 800 kbit/s send 8000, 30 ms nothing, 4000 take 2 ms at 2 Mbit/s: 52 ms, and 5 of delay. From
    // 95 ms: 5 ms send 10 000, then from 100 ms on 2000 take 2.5 ms at 800 kbit/s: 102.5.
    assert_eq!(delivered, [57_000, 107_500]);
}

#[test]
fn a_bad_file_is_named_with_its_line() {
    let error = |table| {
        let config = ackclock_edge::LINKS.resolve(&table).map_err(|error| error.to_string())?;
        config.nominal(&MadeUp).map_err(|error| error.to_string())
    };
    assert!(error(json!({"kind": "trace"})).unwrap_err().starts_with("file: a trace link needs"));
    assert!(error(json!({"kind": "trace", "file": "no/such"})).unwrap_err().starts_with("file: no/such"));
    assert!(error(json!({"kind": "trace", "file": file!()})).is_err());
    // 10 opportunities of 12000 bit in 100 ms
    assert_eq!(nominal(&json!({"kind": "trace", "file": "bursts"})).rate, Rate::from_bps(1_200_000));
    assert_eq!(
        nominal(&json!({"kind": "trace", "file": "lossy"})).delay,
        Span::from_micros(4_000 + 1_500 + 500)
    );
}

/// The recording at `path` in the folder of public recordings; `None`, with the reason printed, if it is not
/// available.
#[allow(clippy::print_stderr)]
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    match std::env::var_os("ACKCLOCK_SHARED") {
        Some(folder) => Some(PathBuf::from(folder).join("traces").join(path)),
        None => {
            eprintln!("skipped: ACKCLOCK_SHARED, the folder of public recordings, is not set");
            None
        }
    }
}

#[test]
fn public_recordings_have_the_statistics_that_their_providers_give() {
    // The providers also count the incomplete last second; neighbouring ranks of 120 seconds differ by up to 5 % at
    // the top.
    // length s, mean kbit/s, 5th and 95th percentile of the seconds in kbit/s, longest gap s, share of seconds at zero
    for (file, length, mean, p5, p95, gap, zero) in [
        ("Verizon-EVDO-driving.down", 1062, 521, 12, 1452, 11.57, 0.040),
        ("Verizon-EVDO-driving.up", 1065, 843, 72, 1260, 11.20, 0.028),
        ("ATT-LTE-driving-2016.down", 120, 4560, 588, 11148, 1.12, 0.0),
        ("ATT-LTE-driving-2016.up", 120, 1910, 36, 4992, 4.06, 0.033),
    ] {
        let Some(path) = shared(&format!("mahimahi-3g-lte/{file}")) else { return };
        let recording = Recording::parse(&std::fs::read(path).unwrap()).unwrap();
        let statistics = recording.statistics();
        let kbps = |rate: Option<Rate>| rate.unwrap().as_bps() / 1000;
        assert!(statistics.length.as_secs_f64().round() as u64 == length, "{file}: {}", statistics.length);
        assert!((statistics.mean.as_bps().div_ceil(1000)).abs_diff(mean) <= 1, "{file}: {}", statistics.mean);
        assert!(
            kbps(statistics.percentile(0.05)).abs_diff(p5) <= 24,
            "{file}: {:?}",
            statistics.percentile(0.05)
        );
        assert!(
            kbps(statistics.percentile(0.95)).abs_diff(p95) <= p95 / 20,
            "{file}: {:?}",
            statistics.percentile(0.95)
        );
        assert!(
            (statistics.longest_gap.as_secs_f64() - gap).abs() < 0.006,
            "{file}: {}",
            statistics.longest_gap
        );
        assert!((statistics.share_at_zero() - zero).abs() < 0.01, "{file}: {}", statistics.share_at_zero());
        let outages = statistics.outages.iter().copied().max().unwrap();
        assert_eq!(outages, statistics.longest_gap, "{file}");
    }
}

#[test]
fn a_saturated_link_carries_what_its_recording_holds() {
    let Some(path) = shared("mahimahi-3g-lte/ATT-LTE-driving-2016.down") else { return };
    let recording = Recording::parse(&std::fs::read(&path).unwrap()).unwrap();
    let Recording::Opportunities(opportunities) = &recording else { panic!("not mahimahi's form") };
    let mut link = unlimited(&json!({"kind": "trace", "file": path.to_str().unwrap()}), 1);
    let arrivals: Vec<_> = (0..50_000).map(|number| (Time::ZERO, segment(0, number, 1500))).collect();
    let until = Time::ZERO + opportunities.length();
    let seen = drive(&mut *link, &arrivals, Departures::Unwatched, Polling::AsAsked, until);
    // Each opportunity sends a packet of 1500 B. Those at 0 have passed when the packets arrive, but recur at the end.
    assert_eq!(seen.len(), opportunities.millis().len());
}

#[test]
fn json_logs_become_csv_and_mahimahi_files_of_the_same_rate() {
    for (file, mean) in [
        ("norway-hsdpa-3g/tram.jernbanetorget-ljabru-report.2010-12-09_1222CET.json", 715),
        ("norway-hsdpa-3g/train.oslo-vestby-report.2011-02-11_1618CET.json", 886),
        ("ghent-4g/report_train_0001.json", 23_100),
    ] {
        let Some(path) = shared(file) else { return };
        let recording = Recording::parse(&std::fs::read(path).unwrap()).unwrap();
        let kbps = recording.mean_rate().as_bps() as f64 / 1e3;
        assert!((kbps / f64::from(mean) - 1.0).abs() < 0.01, "{file}: {kbps}");
        let csv = recording.to_csv(Span::from_secs(1)).unwrap();
        assert_eq!(Recording::parse(csv.as_bytes()).unwrap(), recording, "{file}");
        let mahimahi = Recording::parse(recording.to_mahimahi().unwrap().as_bytes()).unwrap();
        let ratio = mahimahi.mean_rate().as_bps() as f64 / recording.mean_rate().as_bps() as f64;
        assert!((ratio - 1.0).abs() < 0.001, "{file}: {ratio}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Recording::parse(&bytes);
    }

    #[test]
    fn nothing_like_a_recording_makes_the_reader_panic(
        text in "(time_s,rate_kbps(,loss|,delay_ms)?\n|\\[)?([0-9.,:eE+\\-\"{}a-z_\\]]{0,12}\n){0,8}"
    ) {
        if let Ok(recording) = Recording::parse(text.as_bytes()) {
            let _ = recording.statistics();
            let _ = recording.to_mahimahi();
        }
    }

    #[test]
    fn opportunities_come_back_from_csv_in_the_same_number(
        mut millis in prop::collection::vec(0u32..20_000, 1..200)
    ) {
        millis.sort_unstable();
        prop_assume!(millis[millis.len() - 1] > 0);
        let text: String = millis.iter().map(|ms| format!("{ms}\n")).collect();
        let csv = Recording::parse(text.as_bytes()).unwrap().to_csv(Span::from_millis(100)).unwrap();
        let back = Recording::parse(csv.as_bytes()).unwrap();
        // Rates are whole bits a second, so a bin is off by less than 0.05 bit.
        match Recording::parse(back.to_mahimahi().unwrap_or_default().as_bytes()) {
            Ok(Recording::Opportunities(again)) => prop_assert_eq!(again.millis().len(), millis.len()),
            other => prop_assert!(false, "{:?}", other),
        }
    }
}

#[test]
fn a_delay_over_a_recording_is_redrawn_by_packet_or_by_interval() {
    for file in ["rates", "bursts"] {
        let delays = |redraw: &str| {
            let table = json!({"kind": "trace", "file": file, "delay": "u(50ms, 5ms)", "redraw": redraw});
            let mut link = unlimited(&table, 3);
            let plain = json!({"kind": "trace", "file": file});
            let mut without = unlimited(&plain, 3);
            let arrivals = |link: &mut dyn Link| -> Vec<u64> {
                for number in 0..4 {
                    link.enqueue(Time::ZERO, &segment(number, number, 100)).unwrap();
                }
                let end = Time::ZERO + Span::from_secs(1);
                let mut seen: Vec<(u32, Time)> = Vec::new();
                while let Some((at, event, segment)) = link.poll_event(end) {
                    seen.extend(event.is_delivery().then_some((segment.seq.0, at)));
                }
                seen.sort_unstable();
                seen.into_iter().map(|(_, at)| at.as_nanos()).collect()
            };
            let (late, plain) = (arrivals(&mut *link), arrivals(&mut *without));
            let of_law: Vec<u64> = late.iter().zip(plain).map(|(late, plain)| late - plain).collect();
            assert_eq!(of_law.len(), 4);
            of_law
        };
        let (by_packet, by_interval) = (delays("packet"), delays("interval(10s)"));
        assert!(by_packet.windows(2).all(|two| two[0] != two[1]), "{file}: {by_packet:?}");
        assert!(by_interval.windows(2).all(|two| two[0] == two[1]), "{file}: {by_interval:?}");
    }
}
