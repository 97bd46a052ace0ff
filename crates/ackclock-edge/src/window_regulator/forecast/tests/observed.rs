//! Flows at a queue that is only observed.

use ackclock_link::Base;

use super::*;

/// Data of a flow that left the queue at `now`, 50 ms after it passed.
fn observation(now: Time, flow: FlowId) -> Observation {
    Observation {
        flow,
        bytes: 1000,
        idle: Span::ZERO,
        called: true,
        horizon: Span::from_millis(100),
        late: Span::ZERO,
        probing: false,
        base: Base::Sacked,
        leaves: 0,
        waited: None,
        passed: Some(now - Span::from_millis(50)),
        repeats: false,
    }
}

/// A download of 100 kB/s; before it, `gone` connections send five packets each, whose departures are observed (`heard`) or
/// not, as of a connection that is reset before its first ACK. Returns the bytes that the download may send after 5 s.
fn allowed(gone: u32, heard: bool) -> u32 {
    let (mut forecast, view) = (Forecast::new(quiet()), bench(quiet()).view());
    for number in 0..5 {
        for flow in 1..=gone {
            let mut data = Bench::data(number);
            data.flow = FlowId(flow);
            assert!(matches!(forecast.on_data(Time::ZERO, &data, view), Verdict::Forward));
            forecast.on_queued(Time::ZERO, &data, view);
            if heard {
                let departure = observation(Time::ZERO + Span::from_millis(50), data.flow);
                forecast.on_observation(Time::ZERO, &departure, view);
            }
        }
    }
    let flow = Bench::data(0).flow;
    for number in 0..500 {
        let now = Time::ZERO + Span::from_millis(10 * u64::from(number) + 60);
        forecast.on_data(now, &Bench::data(number), view);
        forecast.on_observation(now, &observation(now, flow), view);
        if let Some(acked) = number.checked_sub(5) {
            forecast.handle_ack(now, Bench::pure_ack(acked), view);
        }
    }
    forecast
        .allowance(Time::ZERO + Span::from_secs(5), flow, view)
        .expect("an observed flow has an allowance")
        .bytes
}

#[test]
fn connections_that_were_reset_with_data_in_the_queue_take_no_share() {
    let alone = allowed(0, true);
    assert!(alone > 20_000, "{alone}");
    for (gone, heard) in [(1, true), (20, true), (1, false), (20, false)] {
        let beside = allowed(gone, heard);
        assert!(beside.abs_diff(alone) < alone / 50, "{gone} gone, heard: {heard}: {beside} of {alone}");
    }
}
