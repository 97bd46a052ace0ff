//! Options of senders: what is set has an effect, or is refused.

use ackclock_scenario::{NoFiles, RunOptions, Scenario, catalogue, run};

/// Two flows over a link that loses, delays and reorders packets, and has outages.
const LOSSY: &str = r#"
    version = 1
    duration = "30s"
    [edge]
    buffer = "30p"
    queue = { kind = "codel", ecn = true }
    [edge.down]
    kind = "variable"
    rate = "2Mbit/s"
    delay = "u(60ms, 20ms)"
    loss = 0.01
    reorder = { share = 0.02, extra = "60ms" }
    outages = [{ at = "5s", for = "1500ms", every = "7s" }]
    [edge.up]
    kind = "variable"
    rate = "1Mbit/s"
    delay = "u(60ms, 20ms)"
    loss = 0.02
    [[flow]]
    count = 2
    packet = "1500B"
"#;

/// Options that only some kinds of sender use, each with a value that is not the default.
const OPTIONS: [&str; 9] = [
    "limited_transmit = \"on\"",
    "prr = \"on\"",
    "growth = \"bytes\"",
    "initial_ssthresh = \"5p\"",
    "loss_window = \"3p\"",
    "cubic = { hystart = \"on\" }",
    "copa = { delta = 0.1 }",
    "westwood = { tau = \"50ms\" }",
    "bbr = { pacing_margin = 0.1 }",
];

/// Results of the flows and the link, or the refusal.
fn results(kind: &str, option: &str) -> Result<String, String> {
    let text = format!("{LOSSY}\nsender = {{ kind = \"{kind}\", {option} }}");
    let scenario = Scenario::load("lossy.toml", &text, &[]).map_err(|error| error.to_string())?;
    let result = run(&scenario, 0, &NoFiles, RunOptions::default()).expect("it runs").result;
    Ok(format!("{:?} {:?}", result.flows, result.bottleneck))
}

#[test]
fn an_option_of_a_sender_has_an_effect_or_is_refused() {
    let senders = catalogue().into_iter().find(|kind| kind.name == "senders").expect("a kind of components");
    let mut refused = 0;
    for kind in senders.components.iter().map(|sender| sender.name) {
        let usual = results(kind, "stack = \"rfc\"").expect("an option of every sender");
        for option in OPTIONS {
            match results(kind, option) {
                Ok(other) => assert_ne!(usual, other, "{kind}: {option}"),
                Err(error) => {
                    refused += 1;
                    assert!(error.contains(&format!("has no effect on `{kind}`")), "{error}");
                    assert!(error.contains("it is an option of "), "{error}");
                }
            }
        }
    }
    // Three tables of one control each, that of CUBIC, which ABC has too, PRR of the 8 kinds that have none, the
    // threshold of both BBR and of copa, the window after a loss of both BBR, and the unit of growth of BBR.
    assert_eq!(refused, 3 * 13 + 12 + 8 + 3 + 2 + 1);
}
