//! `ackclock advise`: what it recommends on a recording, on a wired link, and what it refuses.

use crate::common::Folder;
use serde_json::Value;

/// Output of a command that ends well, read as JSON, and its remarks.
fn advised(folder: &Folder, arguments: &[&str]) -> (Value, String) {
    let ended = folder.run(&[&["advise", "--json"][..], arguments].concat());
    assert_eq!(ended.status, 0, "{}", ended.err);
    (serde_json::from_str(&ended.out).unwrap(), ended.err)
}

#[test]
fn a_deep_queue_on_a_recording_is_worth_a_regulator() {
    let folder = Folder::new();
    let recordings = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/recordings");
    for name in ["driving", "walking", "shared"] {
        let file = format!("{recordings}/synthetic-evdo-{name}.down");
        let (object, said) = advised(&folder, &[&file, "--runs", "5"]);
        assert!(said.contains("31 candidates x 5 runs of 60s"), "{said}");
        assert!(said.contains("its rates are capacity: each line is a chance to send"), "{said}");
        let advice = &object["advice"][0];
        let recommended = &advice["recommendation"];
        assert_ne!(recommended["regulator"], "none", "{name}: {}", advice["why"]);
        // There are two answers: one for a queue of one's own, and one for a box, which is tried by its check first.
        assert_eq!(advice["box"], "ackclock box IFACE --act 10min", "{name}: {advice}");
        let observed = &advice["observed"];
        assert!(observed["goodput_vs_best"]["mean"].as_f64().unwrap() >= -0.05, "{name}: {observed}");
        assert!(observed["queue_p95_ms"]["mean"].as_f64().unwrap() < 2000.0, "{name}: {observed}");
        let next = advice["next"].as_str().unwrap();
        assert!(next.contains("ackclock box check IFACE --for 1min"), "{name}: {next}");
        assert!(recommended["goodput_vs_best"]["mean"].as_f64().unwrap() >= -0.02, "{recommended}");
        // The best of the scoreboard is `forecast` with a deep buffer.
        let candidates = advice["candidates"].as_array().unwrap();
        for one in candidates {
            let has_box = one["regulator"] == "wrd" || one["regulator"] == "forecast";
            assert_eq!(one["box"], if has_box { "yes" } else { "no" }, "{one}");
        }
        let is_best = |one: &&Value| one["regulator"] == "forecast" && one["buffer"] == "1000p";
        let queue = |one: &Value| one["queue_p95_ms"]["mean"].as_f64().unwrap();
        let best = candidates.iter().find(is_best).unwrap();
        assert!(queue(recommended) <= 1.1 * queue(best), "{name}: {recommended} and {best}");
    }
}

#[test]
fn a_wired_link_needs_nothing() {
    let folder = Folder::new();
    let link = "{ kind = \"constant\", rate = \"100Mbit/s\", delay = \"20ms\" }";
    let scenario = format!(
        "version = 1\npreset = \"linux\"\nduration = \"4s\"\n[edge]\nbuffer = \"1bdp\"\ndown = {link}\nup = {link}\n[[flow]]\nsender = \"cubic\"\n"
    );
    folder.write("wired.toml", &scenario);
    let (object, _) = advised(&folder, &["wired.toml", "--runs", "1"]);
    let advice = &object["advice"][0];
    assert!(advice["why"].as_str().unwrap().starts_with("nothing is worth doing"), "{}", advice["why"]);
    assert_eq!(advice["recommendation"]["regulator"], "none");
    assert!(advice["next"].is_null() && advice["box"].is_null(), "{advice}");
    let table = folder.run(&["advise", "wired.toml", "--runs", "1", "--senders", "cubic,reno"]);
    let starred = table.out.lines().filter(|line| line.starts_with('*')).count();
    assert_eq!((table.status, starred), (0, 2), "{}", table.out);
    assert!(table.out.contains("cubic: ") && table.out.contains("reno: "), "{}", table.out);
    folder.write(
        "few.toml",
        scenario.replace("1bdp", "5p").replace("20ms", "0.1ms") + "[path]\ndelay = \"0.1ms\"\n",
    );
    let (_, said) = advised(&folder, &["few.toml", "--runs", "1"]);
    assert!(said.contains("edge.buffer: 5p, 7.5 kB, is less than 8 packets of 1500 bytes"), "{said}");
}

#[test]
fn wrong_input_is_refused() {
    let folder = Folder::new();
    folder.write("short.csv", "time_s,rate_kbps\n0,fast\n");
    for (arguments, message) in [
        (&["none.csv"][..], "none.csv"),
        (&["short.csv"], "short.csv:2: "),
        (&["case.toml", "--senders", "reno,,"], "--senders reno,,: must be a list"),
        (&["case.toml", "--runs", "0"], "--runs"),
    ] {
        let ended = folder.run(&[&["advise"][..], arguments].concat());
        assert_eq!(ended.status, 2, "{}", ended.err);
        assert!(ended.err.contains(message), "{}", ended.err);
    }
}
