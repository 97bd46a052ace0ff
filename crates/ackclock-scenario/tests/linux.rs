//! The preset `linux` compared with what the kernel (6.18) does over the same link, in namespaces and over `ackclock link`.

use ackclock_core::Span;
use ackclock_scenario::{NoFiles, Outcome, RunOptions, Scenario, run};

/// A download over a base RTT of `delay` in each direction, without losses.
fn download(sender: &str, down: &str, delay: &str, duration: &str) -> Outcome {
    let text = format!(
        r#"
        preset = "linux"
        duration = "{duration}"
        [path]
        rate = "10Gbit/s"
        delay = "0s"
        [edge]
        buffer = "30000p"
        down = {{ {down} }}
        up = {{ kind = "constant", rate = "1Gbit/s", delay = "{delay}" }}
        [[flow]]
        sender = "{sender}"
        "#
    );
    let scenario = Scenario::load("linux.toml", &text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let options = RunOptions { series_interval: Some(Span::from_millis(500)), ..RunOptions::default() };
    run(&scenario, 0, &NoFiles, options).unwrap()
}

#[test]
fn the_tuned_window_is_that_of_the_kernel() {
    let down = r#"kind = "constant", rate = "4Mbit/s", delay = "0s""#;
    let seen = download("cubic", down, "0s", "7s");
    let series = seen.series.unwrap();
    let window = |second: usize| series.column("flow0.advertised_bytes").unwrap()[2 * second];
    // The kernel's windows behind a token bucket filter in a router, in kB.
    for (second, kernel) in [(3, 226.0), (6, 372.0)] {
        let ratio = window(second) / (kernel * 1e3);
        assert!((0.9..1.1).contains(&ratio), "{second} s: {} of {kernel} kB", window(second));
    }
}

/// Mean RTT of BBR over 20 Mbit/s and a base RTT of 40 ms, in ms.
fn rtt_of_bbr(rate: &str, delay: &str, redraw: &str) -> f64 {
    let down = format!(r#"kind = "variable", rate = "{rate}", delay = "{delay}", redraw = "{redraw}""#);
    download("bbr", &down, "20ms", "20s").result.flows[0].rtt_ms.mean.unwrap()
}

#[test]
fn one_per_cent_of_jitter_or_two_of_rate_make_bbr_fill_its_window() {
    // BBR paces 1 % below its largest rate sample. On an exact link no sample is too large, and the queue drains. If
    // samples are more than 1 % too large, the queue grows until two bandwidth-delay products are in flight: 80 ms.
    let exact = rtt_of_bbr("20Mbit/s", "20ms", "packet");
    assert!(exact < 50.0, "{exact}");
    for varied in [
        rtt_of_bbr("20Mbit/s", "n(20ms, 0.4ms)", "packet"),
        rtt_of_bbr("u(20Mbit/s, 400kbit/s)", "20ms", "interval(100ms)"),
    ] {
        assert!((64.0..85.0).contains(&varied), "{varied}");
    }
}
