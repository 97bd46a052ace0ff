//! Properties of random scenarios over the bearer `radio-access`: any air interface, radio link control, flow control,
//! number of users, and regulators in both directions.

use ackclock_core::results::LinkResult;
use ackclock_scenario::{NoFiles, RunOptions, RunResult, Scenario, run};
use ackclock_testkit::cases;
use proptest::prelude::*;
use proptest::sample::select;

use crate::random::age_limits;

/// Regulators that may act on uploads.
const UP: [&str; 7] = ["none", "ack-regulator", "wrs", "wrd", "wrb", "forecast", "ack-rate-control"];
/// Size of the transferred files, bytes.
const FILE: u64 = 60_000;

fn dedicated() -> impl Strategy<Value = String> {
    let errors = prop_oneof![
        3 => (0.0..0.3f64, select(vec!["pdu", "tti"]))
            .prop_map(|(errors, by)| format!("errors = {errors}, errors_by = \"{by}\"")),
        1 => (0.0..0.3f64, 0u32..4, 1u32..60).prop_map(|(error, limit, delay)| {
            format!("harq = {{ error = {error}, limit = {limit}, delay = \"{delay}ms\", feedback_error = 0.01 }}")
        }),
    ];
    (select(vec![64, 128, 384]), errors)
        .prop_map(|(rate, errors)| format!("{{ kind = \"dedicated\", rate = \"{rate}kbit/s\", {errors} }}"))
}

fn flow_control() -> impl Strategy<Value = String> {
    prop_oneof![
        (1u32..100).prop_map(|initial| format!("{{ kind = \"credit\", initial = {initial} }}")),
        (5u32..300).prop_map(|target| format!("{{ kind = \"credit\", target = \"{target}ms\" }}")),
        (1u32..100, 1u32..100).prop_map(|(one, other)| {
            let (low, high) = (one.min(other), one.max(other));
            format!("{{ kind = \"on-off\", low = \"{low}ms\", high = \"{high}ms\" }}")
        }),
        Just("\"none\"".to_owned()),
    ]
}

fn iub() -> impl Strategy<Value = String> {
    let rate = prop_oneof![
        Just(String::new()),
        (200u32..4000).prop_map(|rate| format!("rate = \"{rate}kbit/s\", "))
    ];
    let buffer = prop_oneof![
        Just(String::new()),
        (1u32..500).prop_map(|pdus| format!("base_station_buffer = \"{pdus}p\", "))
    ];
    (0u32..30, rate, buffer, 0.0..0.05f64, flow_control()).prop_map(|(delay, rate, buffer, loss, control)| {
        format!("iub = {{ delay = \"{delay}ms\", {rate}{buffer}loss = {loss}, flow_control = {control} }}\n")
    })
}

fn shared() -> impl Strategy<Value = String> {
    let schedulers = select(vec!["pf", "round-robin", "max-rate"]);
    let interface = (prop_oneof![Just(String::new()), iub()], select(vec!["whole", "split"]));
    let control = select(vec!["", "control = \"24%\", ", "control = \"DDD--\", "]);
    let interface = (interface, control);
    (schedulers, 0.0..0.3f64, 0u32..4, 0.0..0.5f64, 10u32..400, interface).prop_map(
        |(scheduler, error, limit, feedback, release, ((iub, pdus), control))| {
            format!(
                "air.down = {{ kind = \"shared\", scheduler = \"{scheduler}\", pdus = \"{pdus}\", {control}delay = \"5ms\", harq = {{ error = {error}, \
                 limit = {limit}, feedback_error = {feedback}, release = \"{release}ms\" }} }}\n{iub}"
            )
        },
    )
}

/// Kind of PDUs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pdus {
    Fixed,
    Grant,
    Packet,
}

/// Keys of t-Reordering and of t-Reassembly.
fn timers() -> impl Strategy<Value = [String; 2]> {
    let reordering = select(vec!["", ", reordering = \"10ms\"", ", reordering = \"220ms\""]);
    let reassembly =
        select(vec!["", ", status = { reassembly = \"10ms\" }", ", status = { reassembly = \"60ms\" }"]);
    (reordering, reassembly).prop_map(|(one, other)| [one.to_owned(), other.to_owned()])
}

/// The uplink with some of its TTIs, if HARQ allows that.
fn of_tdd(up: String) -> String {
    match up.strip_suffix(" }") {
        Some(keys) if up.contains("harq") => format!("{keys}, control = \"--DDD\" }}"),
        _ => up,
    }
}

/// An air whose HARQ delivers out of sequence, so that no block waits to be released.
fn out_of_order(air: &str) -> String {
    let air = air.replace("harq = { ", "harq = { order = \"out-of-sequence\", ");
    match air
        .split_once(", release = \"")
        .and_then(|(before, after)| Some((before, after.split_once('"')?.1)))
    {
        Some((before, after)) => format!("{before}{after}"),
        None => air,
    }
}

/// The table of the bearer, and its classes of service.
fn bearer() -> impl Strategy<Value = [String; 2]> {
    let down = prop_oneof![2 => shared(), 1 => dedicated().prop_map(|air| format!("air.down = {air}\n"))];
    let rlc = prop_oneof![
        (16u32..2047, 2u32..20, select(vec!["discard", "reset"])).prop_map(|(window, most, then)| format!(
            "window = {window}, max_dat = {most}, on_max_dat = \"{then}\""
        )),
        (16u32..2047).prop_map(|window| format!("window = {window}, buffer_counts = \"unsent\"")),
        Just("mode = \"unacknowledged\"".to_owned()),
    ];
    let scheduled = prop::option::of((1u32..8, 1u32..20));
    let pdus = select(vec![Pdus::Fixed, Pdus::Grant, Pdus::Packet]);
    let bearer = (down, dedicated(), rlc, pdus, scheduled, timers()).prop_map(
        |(down, up, rlc, pdus, scheduled, timers)| {
            let pdus = if down.contains("iub") || down.contains("split") { Pdus::Fixed } else { pdus };
            let grants = pdus != Pdus::Fixed;
            let (pdu, down, up) = match pdus {
                Pdus::Fixed => (String::new(), down, up),
                Pdus::Grant => (", pdu = \"grant\"".to_owned(), down, up),
                Pdus::Packet => {
                    let [reordering, reassembly] = timers;
                    let status = if rlc.contains("mode") { String::new() } else { reassembly };
                    let pdu = format!(", pdu = \"packet\", order = \"out-of-sequence\"{reordering}{status}");
                    (pdu, out_of_order(&down), of_tdd(out_of_order(&up)))
                }
            };
            let up = match scheduled {
                Some((ttis, delay)) if grants => {
                    let period = ttis * if up.contains("control") { 50 } else { 10 };
                    let grants = format!("grants = {{ period = \"{period}ms\", delay = \"{delay}ms\" }} }}");
                    format!("{}, {grants}", up.strip_suffix(" }").unwrap())
                }
                _ => up,
            };
            format!("[edge.bearer]\nkind = \"radio-access\"\nrlc = {{ {rlc}{pdu} }}\n{down}air.up = {up}\n")
        },
    );
    bearer.prop_flat_map(|bearer| {
        let weighs = bearer.contains("\"shared\"") && !bearer.contains("max-rate");
        classes(weighs).prop_map(move |classes| [bearer.clone(), classes])
    })
}

/// Tables of up to four classes of service, named by their number. `weighs` says whether the scheduler obeys weights.
fn classes(weighs: bool) -> impl Strategy<Value = String> {
    let class = (
        0u16..3,
        1u16..5,
        select(vec!["", "mode = \"acknowledged\"", "mode = \"unacknowledged\""]),
        4u32..40,
    );
    prop::collection::vec(class, 0..5).prop_map(move |classes| {
        let table = |(number, (priority, weight, mode, buffer)): (usize, &(u16, u16, &str, u32))| {
            let weight = if weighs { *weight } else { 1 };
            format!(
                "[[edge.class]]\nname = \"{number}\"\npriority = {priority}\nweight = {weight}\nrlc = {{ {mode} }}\n\
                 buffer = \"{buffer}p\"\n"
            )
        };
        classes.iter().enumerate().map(table).collect()
    })
}

/// Groups of flows with a number of a class, and whether the data of any of them goes to the terminals, and to the server.
fn flows() -> impl Strategy<Value = (Vec<(usize, String)>, [bool; 2])> {
    let sender = select(vec!["reno", "sack", "cubic", "bbr"]);
    let flow = (any::<bool>(), sender, any::<bool>(), 1u32..3, 0usize..5).prop_map(|(upload, sender, bulk, count, class)| {
        let towards = if upload { "server" } else { "mobile" };
        let workload =
            if bulk { "\"bulk\"".to_owned() } else { format!("{{ kind = \"file\", size = \"{}kB\" }}", FILE / 1000) };
        (upload, class, format!("[[flow]]\ntowards = \"{towards}\"\ncount = {count}\nsender = \"{sender}\"\nworkload = {workload}\n"))
    });
    prop::collection::vec(flow, 1..4).prop_map(|flows| {
        let either = [false, true].map(|way| flows.iter().any(|(upload, ..)| *upload == way));
        (flows.into_iter().map(|(_, class, text)| (class, text)).collect(), either)
    })
}

fn scenario() -> impl Strategy<Value = String> {
    let names: Vec<_> = ackclock_edge::REGULATORS.entries.iter().map(|entry| entry.name).collect();
    let regulators = (select(names), select(UP.to_vec()));
    (bearer(), flows(), regulators, 1u32..5, any::<bool>(), 4u32..40, 0u64..1000, age_limits()).prop_map(
        |([bearer, classes], (flows, [downloads, uploads]), (regulator, up_regulator), users, steered, buffer, seed, limits)| {
            let regulator = if downloads { regulator } else { "none" };
            let up_regulator = if uploads { up_regulator } else { "none" };
            let count = classes.matches("[[edge.class]]").count();
            let of_class = |(number, flow): &(usize, String)| match number {
                number if *number < count => format!("{flow}class = \"{number}\"\n"),
                _ => flow.clone(),
            };
            let flows: String = flows.iter().map(of_class).collect();
            let steered = steered && downloads && bearer.contains("\"shared\"");
            let (relay, report) = match steered {
                true => ("[relay]\nsteering = \"rnf\"\n", "[edge.report]\nevery = \"500ms\"\n"),
                false => ("", ""),
            };
            format!(
                "version = 1\npreset = \"linux\"\nduration = \"6s\"\nseed = {seed}\n{relay}[edge]\nbuffer = \"{buffer}p\"\n\
                 up_buffer = \"{buffer}p\"\n{limits}regulator = \"{regulator}\"\nup_regulator = \"{up_regulator}\"\n{report}{bearer}\
                 {classes}[[edge.user]]\ncount = {users}\n{flows}"
            )
        },
    )
}

fn result(text: &str) -> RunResult {
    let scenario = Scenario::load("drawn.toml", text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    run(&scenario, 0, &NoFiles, RunOptions::default())
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .result
}

/// Whether a link is used no more than its capacity and one PDU of 40 bytes in each TTI of 2 ms.
fn is_possible(link: &LinkResult) -> bool {
    let pdus = 40.0 * 8.0 / 0.002;
    let most = link.capacity_bps.map_or(1.0, |capacity| 1.0 + pdus / capacity);
    link.utilisation.is_none_or(|used| (0.0..=most).contains(&used))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(50), ..ProptestConfig::default() })]

    #[test]
    fn a_drawn_chain_repeats_itself_and_delivers_what_was_sent(text in scenario()) {
        let seen = result(&text);
        prop_assert_eq!(serde_json::to_string(&result(&text)).ok(), serde_json::to_string(&seen).ok(), "{}", text);
        for flow in &seen.flows {
            prop_assert!(flow.completion_s.is_none() || flow.delivered_bytes == FILE, "{}", text);
            let new = (flow.segments_sent - flow.retransmits.unwrap()) * 1460;
            prop_assert!(flow.delivered_bytes <= new, "{} delivered of {new}: {text}", flow.delivered_bytes);
        }
        for link in [&seen.bottleneck, &seen.uplink] {
            prop_assert!(is_possible(link), "{:?}: {}", link, text);
        }
    }
}
