//! Mistakes that users make, and what they are told: what was typed, what is allowed, what to type instead.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::common::{Ended, Folder};

const ONE: &str = "duration = \"1s\"\n[[flow]]\n";

/// Arguments, exit status, and a part of the one line that is said.
type Row = (&'static [&'static str], i32, &'static str);

fn folder() -> Folder {
    let folder = Folder::new();
    let link = |keys: &str| format!("{ONE}[edge.down]\nkind = \"constant\"\n{keys}\n");
    for (name, text) in [
        ("empty.toml", String::new()),
        ("noflow.toml", "duration = \"1s\"\n[edge]\nbuffer = \"2bdp\"\n".to_owned()),
        ("one.toml", format!("preset = \"cr02\"\n{ONE}")),
        ("j.json", "{\"duration\": \"1s\"}".to_owned()),
        ("zero.toml", link("rate = \"0Mbit/s\"")),
        ("jitter.toml", link("jitter = \"5ms\"")),
        ("law.toml", link("delay = \"40ms + e(20ms)\"")),
        ("redraw.toml", link("redraw = \"slot\"")),
        ("flow.toml", "[flow]\nsender = \"reno\"\n".to_owned()),
        ("rates.csv", "time,rate\n0,100\n1,200\n".to_owned()),
        ("loss.toml", link("loss = \"1 %\"")),
    ] {
        folder.write(name, text);
    }
    for (name, key) in [
        ("cc.toml", "cc = \"cubic\""),
        ("rtt.toml", "rtt = \"40ms\""),
        ("udp.toml", "protocol = \"udp\""),
        ("mss.toml", "mss = 1460"),
    ] {
        folder.write(name, format!("[[flow]]\n{key}\n"));
    }
    folder.write("limit.toml", "[edge]\nlimit = \"100p\"\n");
    folder.write("edge-rate.toml", "[edge]\nrate = \"1Mbit/s\"\n");
    folder.write("x.down", "1\n5\n9\n");
    folder.write("x.pcapng", b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00");
    folder
}

const SCENARIOS: &[Row] = &[
    (
        &["run", "empty.toml"],
        0,
        "empty.toml says nothing: by default one reno flow is run for 60s over a link of 10Mbit/s",
    ),
    (&["run", "noflow.toml"], 0, "noflow.toml has no [[flow]]: by default one reno flow is run"),
    (&["run", "j.json"], 2, "it looks like JSON, which only Python accepts, as a mapping"),
    (&["run", "-"], 2, "-: a scenario is a file; standard input is not read"),
    (&["run", "zero.toml"], 2, "for an outage use a step, [[edge.at]]"),
    (&["run", "jitter.toml"], 2, "a delay that varies is a law: kind = \"variable\""),
    (
        &["run", "law.toml"],
        2,
        "`40ms + e(20ms)` is a law, and a constant link has one delay; laws are for kind = \"variable\"",
    ),
    (&["run", "redraw.toml"], 2, "`redraw` is a key of kind = \"variable\""),
    (&["run", "flow.toml"], 2, "flow.toml:1: flow: there can be several, so it is written [[flow]]"),
    (&["sweep", "case.toml", "--set", "sweep.nonsense=3"], 2, "a sweep is set in the file"),
    (
        &["sweep", "case.toml", "--set", "flow.0.sender=reno"],
        2,
        "varies `flow.sender`, which includes this key",
    ),
    (&["run", "case.toml", "--runs", "1"], 0, "run ignores [sweep] (edge.buffer, flow.sender)"),
    (&["sweep", "one.toml"], 0, "one.toml: there is no [sweep], so it is one point"),
    (&["run", "one.toml", "--runs", "0"], 2, "run: --runs 0: 0 is not in 1.."),
    (&["run", "one.toml", "--runs", "-1"], 2, "run: --runs -1: -1 is not in 1.."),
    (
        &["run", "one.toml", "--seed", "abc"],
        2,
        "run: --seed abc: must be a whole number from 0 to 18446744073709551615",
    ),
    (&["run", "one.toml", "--seed", "-1"], 2, "run: --seed -1: must be a whole number from 0"),
    (
        &["run", "one.toml", "--duration", "10s"],
        2,
        "there is no option --duration; set this scenario key with --set duration=10s",
    ),
    (&["run", "one.toml", "--flows", "3"], 2, "is a scenario key: --set flow.count=3"),
    (&["compare", "one.toml", "--seconds", "10"], 2, "is a scenario key: --set duration=60s"),
    (
        &["sweep", "case.toml", "--senders", "reno,cubic"],
        2,
        "a list is compared by ackclock compare FILE --senders reno,cubic",
    ),
    (
        &["run", "one.toml", "--set", "buffer=10p"],
        2,
        "unknown field `buffer`; it is a key of [edge]: edge.buffer",
    ),
    (&["run", "one.toml", "--set", "sender=cubic"], 2, "it is a key of [[flow]]: flow.sender"),
    (&["sweep", "case.toml", "--buffer=4p"], 2, "key with --set edge.buffer=4p"),
    (
        &["run", "one.toml", "--out", "y.json"],
        2,
        "results are printed: ackclock run FILE --json > FILE.jsonl",
    ),
    (&["sweep", "case.toml", "--csv"], 2, "--out runs.jsonl writes JSON lines"),
    (
        &["run", "one.toml", "--report", "x.pdf"],
        2,
        "--report x.pdf: the file would hold HTML; call it x.html",
    ),
    (
        &["sweep", "case.toml", "--out", "sw.csv"],
        2,
        "--out sw.csv: the file would hold JSON lines; call it sw.jsonl",
    ),
    (
        &["run", "one.toml", "--series", "s.json"],
        2,
        "--series s.json: the file would hold CSV; call it s.csv",
    ),
    (
        &["compare", "one.toml", "--senders", "reno,vegas"],
        2,
        "--senders reno,vegas: flow.0.sender: unknown sender `vegas`; known are reno",
    ),
    (
        &["run", "one.toml", "--set", "edge.regulator=my-pacer"],
        2,
        "zhuge; a class in Python has its name only in Python: run the scenario with `ackclock.run`, see docs/how-to/python-classes.md",
    ),
    (
        &["run", "one.toml", "--set", "flow.sender=my-congestion-control"],
        2,
        "; a class in Python has its name only in Python: run the scenario with `ackclock.run`",
    ),
    (
        &["compare", "one.toml", "--regulator", "wrs"],
        2,
        "there is no option --regulator; the option takes a list: --regulators wrs",
    ),
    (&["compare", "one.toml", "--sender", "cubic"], 2, "the option takes a list: --senders cubic"),
    (
        &["compare", "one.toml", "--senders", "cubic", "bbr"],
        2,
        "--senders takes one list without spaces: --senders cubic,bbr",
    ),
    (
        &["sweep", "one.toml", "--set", "edge.buffer=10p,20p"],
        2,
        "several are for [sweep]: \"edge.buffer\" = [\"10p\", \"20p\"], or ackclock compare FILE --buffers 10p,20p",
    ),
    (
        &["run", "one.toml", "--set", "flow.sender=reno,cubic"],
        2,
        "`reno,cubic` is one value; several are for [sweep]: \"flow.sender\" = [\"reno\", \"cubic\"], or ackclock compare",
    ),
    (
        &["run", "one.toml", "--set", "duration=1s,2s"],
        2,
        "several are for [sweep]: \"duration\" = [\"1s\", \"2s\"]",
    ),
    (
        &["run", "cc.toml"],
        2,
        "cc.toml:2: flow.0.cc: unknown field `cc`; the congestion control is called `sender`",
    ),
    (&["run", "rtt.toml"], 2, "one-way delay as `route`"),
    (
        &["run", "udp.toml"],
        2,
        "TCP is simulated, and media over UDP (workload = \"media\"); `ackclock link` takes",
    ),
    (
        &["run", "one.toml", "--set", "flow.ecn=on"],
        2,
        "unknown field `ecn`; it is an option of the sender: sender = { kind = \"reno\", ecn = ... }, or --set flow.sender.ecn=VALUE",
    ),
    (
        &["run", "one.toml", "--set", "edge.target=5ms"],
        2,
        "it is an option of the queue: queue = { kind = \"codel\", target = ... }, or --set 'edge.queue={ kind = \"codel\", target = ... }'",
    ),
    (
        &["run", "one.toml", "--set", "edge.queue=pie", "--set", "edge.target=5ms"],
        2,
        "queue = { kind = \"pie\", target = ... }, or --set edge.queue.target=VALUE",
    ),
    (
        &["run", "one.toml", "--set", "flow.copa=1"],
        2,
        "sender = { kind = \"copa\", copa = ... }, or --set 'flow.sender={ kind = \"copa\", copa = ... }'",
    ),
    (&["run", "mss.toml"], 2, "it is called `packet`"),
    (&["run", "limit.toml"], 2, "the size of the queue is called `buffer`: buffer = \"100p\""),
    (&["run", "edge-rate.toml"], 2, "each direction has its link: [edge.down] and [edge.up]"),
    (&["run", "x.down"], 2, "it is a recording, not a scenario: `ackclock advise x.down`"),
    (&["check", "rates.csv"], 2, "it is a recording, not a scenario: `ackclock advise rates.csv`"),
    (&["run", "--scenario", "one.toml"], 2, "the file is an argument: ackclock run one.toml"),
    (&["compare", "--file", "one.toml"], 2, "the file is an argument: ackclock compare one.toml"),
    (&["proxy", "--listen", "8081"], 2, "must be an IP address and a port, like 127.0.0.1:8081"),
    (&["proxy", "--transparent", ":7300"], 2, "must be an IP address and a port, like 127.0.0.1:7300"),
    (&["proxy", "8080"], 2, "an address is an option: ackclock proxy --listen 127.0.0.1:8080"),
    (&["proxy", "localhost:3128"], 2, "ackclock proxy --listen 127.0.0.1:3128"),
    (&["proxy", "http://10.0.0.1:8081/"], 2, "ackclock proxy --listen 10.0.0.1:8081"),
    (&["proxy", "[::1]:8081"], 2, "ackclock proxy --listen [::1]:8081"),
    (&["proxy", "::1"], 2, "ackclock proxy --listen [::1]:8080"),
    (&["advise", "8mbit"], 2, "a rate is a key of a scenario: edge.down.rate = \"8mbit\""),
    (&["run", "2Mbit/s"], 2, "a rate is a key of a scenario: edge.down.rate = \"2Mbit/s\""),
    (&["proxy", "none.toml"], 2, "none.toml: cannot be read"),
    (&["trace", "convert", "x.down", "y.csv", "--to", "csv"], 2, "write --out y.csv"),
    (&["run", "one.toml", "one.html"], 2, "write --report one.html"),
    (&["run", "one.toml", "one.csv"], 2, "write --series one.csv"),
    (&["sweep", "case.toml", "case.jsonl"], 2, "write --out case.jsonl"),
    (&["run", "one.toml", "two.toml"], 2, "`two.toml` is one argument too many"),
    (&["run"], 2, "run: FILE is missing"),
    (&["run", "one"], 2, "did you mean one.toml?"),
    (&["run", "one.toml", "-n", "5"], 2, "it is called --runs: --runs 5"),
    (&["run", "one.toml", "--set", "edge.buffer", "4p"], 2, "write --set edge.buffer=4p"),
    (&["compare", "one.toml", "cubic,bbr"], 2, "write --senders cubic,bbr"),
    (&["compare", "one.toml", "codel"], 2, "write --queues codel"),
    (&["import", "one.toml", "out.csv"], 2, "write --out out.csv"),
    (&["list", "cubic"], 2, "`cubic` is one of the senders: ackclock list senders cubic"),
    (&["trace", "one.toml"], 2, "write ackclock trace info one.toml"),
    (&["version"], 2, "ackclock --version prints it"),
    (&["runn", "one.toml"], 2, "there is no command `runn`; did you mean `run`?"),
    (&["trace", "info", "x.pcapng"], 2, "x.pcapng: it has no IP packet"),
    (
        &["trace", "info", "rates.csv"],
        2,
        "rates.csv:1: is `rate` in kbit/s or Mbit/s? `ackclock import FILE --unit Mbit/s`",
    ),
    (
        &["trace", "convert", "rates.csv", "--to", "pcap"],
        2,
        "trace convert: --to pcap: must be one of mahimahi, csv",
    ),
];

const LINKS: &[Row] = &[
    (&["link", "1mbit", "--", "true"], 2, "link: DOWN is missing; write `ackclock link UP DOWN -- COMMAND`"),
    (&["gateway", "eth0", "eth1"], 2, "a gateway is a link: ackclock link 1mbit 8mbit --gateway INTERFACE"),
    (&["outage", "3s"], 2, "it is a request to a running link: ackclock link outage 3s"),
    (&["link", "1mbit", "8mbit", "--via", "wlan0"], 2, "are put behind a link by --gateway wlan0"),
    (&["link", "outage"], 2, "TIME is missing; write `ackclock link outage 3s`"),
    (
        &["link", "1mbit", "8mbit", "--publish", "localhost:8080"],
        2,
        "a port alone is one of localhost: --publish 8080",
    ),
    (
        &["link", "1mbit", "8mbit", "--proxy", "localhost:3128"],
        2,
        "neither a port, 3128, nor an address with a port",
    ),
    (
        &["link", "--", "curl", "-s", "localhost"],
        2,
        "UP and DOWN are missing; write `ackclock link UP DOWN -- COMMAND`",
    ),
    (&["link", "--", "true"], 2, "UP and DOWN are missing"),
    (&["link", "1mbit", "8mbit", "40ms", "--", "true"], 2, "in the place of the command; write --delay 40ms"),
    (&["link", "1mbit", "8mbit", "1%", "true"], 2, "in the place of the command; write --loss 1%"),
    (&["link", "--profile", "3g", "50p", "--", "true"], 2, "in the place of the command; write --buffer 50p"),
    (
        &["link", "--up", "1mbit", "--down", "8mbit"],
        2,
        "UP and DOWN are the rates: ackclock link 1mbit 8mbit",
    ),
    (&["link", "1mbit", "8mbit", "--duration", "5", "--", "true"], 2, "-- timeout 5 COMMAND"),
    (
        &["link", "1mbit", "8mbit", "--preset", "linux"],
        2,
        "there is no option --preset; networks to emulate are profiles",
    ),
    (&["link", "1mbit", "8mbit", "-i", "eth0"], 2, "a box is on an interface: ackclock box eth0"),
    (&["link", "list"], 2, "a running link is shown by `ackclock link show`"),
    (&["link", "stop"], 2, "a link ends with its command"),
    (&["box", "start", "wwan0"], 2, "a box starts without a request: ackclock box wwan0"),
    (&["box", "wwan0", "status"], 2, "the request comes first: ackclock box status wwan0"),
    (&["box", "eth0", "--rate", "20mbit"], 2, "a box needs no rate, because it measures the link"),
    (&["link", "1mbit", "8mbit", "--loss", "1"], 2, "write 1% for one packet in a hundred, or 100% for all"),
    (&["link", "1mbit", "8mbit", "--reorder", "1,20ms"], 2, "write 1% for one packet in a hundred"),
    (&["link", "set", "down.loss=1"], 2, "link set down.loss=1: write 1% for one packet in a hundred"),
    (
        &["link", "1mbit", "8mbit", "--forward", "http://localhost:8080/"],
        2,
        "a port alone is one of localhost: --forward 8080",
    ),
    (&["link", "1mbit", "8mbit", "--packet-loss", "1%"], 2, "it is called --loss: --loss 1%"),
    (&["link", "1mbit", "8mbit", "--report", "x.html"], 2, "--report-html link.html"),
    (&["link", "--preset", "lte"], 2, "networks to emulate are profiles: --profile 4g-lte"),
    (&["link", "--profile", "LTE"], 2, "did you mean 4g-lte or lte-driving-like?"),
    (
        &["link", "1mbit", "8mbit", "--port", "80"],
        2,
        "by --forward 80, and one behind the link by --publish 80",
    ),
    (&["link", "1mbit", "8mbit", "--reset"], 2, "breaks connections by a request: ackclock link fault"),
    (&["link", "set"], 2, "write `ackclock link set down.rate=1mbit`"),
    (&["box"], 2, "write `ackclock box wwan0`"),
    (&["box", "stop"], 2, "write `ackclock box stop wwan0`"),
    (&["box", "wwan0", "start"], 2, "a box starts without a request: ackclock box wwan0"),
    (&["box", "wwan0", "--dry-run"], 2, "without --act a box only measures"),
    (&["proxy", "--port", "8080"], 2, "write --listen 127.0.0.1:8080"),
    (&["emulate", "1mbit", "8mbit"], 2, "ackclock link 1mbit 8mbit -- COMMAND"),
    (&["link", "3g", "3g"], 2, "`3g` is a profile: ackclock link --profile 3g"),
    (&["link", "1M", "8M"], 2, "DOWN: `8M` has no unit; write 8mbit (or --cbr before it, as mm-link does)"),
    (
        &["link", "1mbit", "8mbit", "--dealy", "40ms", "--", "true"],
        2,
        "there is no option --dealy; did you mean --delay?",
    ),
    (
        &["link", "1mbit", "8mbit", "--up-rate", "1mbit"],
        2,
        "there is no option --up-rate; UP and DOWN are the rates",
    ),
    (
        &["link", "1mbit", "8mbit", "--up-latency", "9ms"],
        2,
        "there is no option --up-latency; did you mean --up-delay?",
    ),
    (
        &["link", "1mbit", "8mbit", "--down-jiter", "9ms"],
        2,
        "there is no option --down-jiter; did you mean --down-jitter?",
    ),
    (
        &["link", "1mbit", "8mbit", "--down-corrupt", "1%"],
        2,
        "there is no option --down-corrupt; set this scenario key with --set edge.down.corrupt=VALUE",
    ),
    (
        &["link", "1mbit", "8mbit", "--up-link", "x"],
        2,
        "there is no option --up-link; options for this direction are --up-delay, --up-loss and --up-jitter",
    ),
    (
        &["link", "1mbit", "8mbit", "--ttl", "3", "--", "true"],
        2,
        "there is no option --ttl; put options of the command after `--`",
    ),
    (
        &["link", "1mbit", "8mbit", "--loss", "5"],
        2,
        "link: --loss 5: `5` is not a probability, 0 to 1 or \"0%\" to \"100%\"",
    ),
    (&["link", "1mbit", "8mbit", "--loss", "-1"], 2, "is not a probability"),
    (
        &["link", "1mbit", "8mbit", "--regulator", "magic"],
        2,
        "--regulator magic: edge.regulator: unknown regulator `magic`",
    ),
    (
        &["link", "1mbit", "8mbit", "--set", "edge.down.jitter=3ms"],
        2,
        "--set edge.down.jitter=3ms: edge.down.jitter: unknown field",
    ),
    (
        &["link", "1mbit", "8mbit", "--scenario", "one.toml", "--", "true"],
        2,
        "--scenario one.toml says what the link is, and so would `1mbit`; leave one out",
    ),
    (&["link", "1mbit", "8mbit", "--scenario", "one.toml"], 2, "--scenario one.toml says what the link is"),
    (&["link", "--scenario", "one.toml", "--delay", "3ms"], 2, "cannot be used together"),
];

#[test]
fn every_mistake_is_answered_in_one_line_that_teaches() {
    let folder = folder();
    for (arguments, status, part) in SCENARIOS.iter().chain(LINKS) {
        let ended = folder.run(arguments);
        assert_eq!(ended.status, *status, "{arguments:?}: {}", ended.err);
        assert!(ended.err.contains(part), "{arguments:?} says {}not {part}", ended.err);
        assert_eq!(ended.err.lines().count(), 1, "{arguments:?}: {}", ended.err);
        assert!(ended.err.starts_with("ackclock: ") && !ended.err.contains("tip:"), "{}", ended.err);
    }
}

#[test]
fn a_rate_is_a_key_only_where_a_scenario_or_recording_is_read() {
    let folder = folder();
    for (arguments, is_read) in [
        (&["check", "8mbit"][..], true),
        (&["trace", "info", "8mbit"], true),
        (&["proxy", "8mbit"], false),
        (&["run", "--from", "8mbit#1"], false),
    ] {
        let ended = folder.run(arguments);
        assert_eq!(ended.status, 2, "{arguments:?}: {}", ended.err);
        assert_eq!(ended.err.contains("a rate is a key"), is_read, "{arguments:?}: {}", ended.err);
    }
}

#[test]
fn an_option_is_accepted_where_the_message_puts_it() {
    let folder = folder();
    for set in [
        r#"edge.queue={ kind = "codel", target = "5ms" }"#,
        r#"flow.sender={ kind = "copa", copa = { delta = 0.4 } }"#,
        "flow.sender.ecn=on",
    ] {
        let ended = folder.run(&["check", "one.toml", "--set", set]);
        assert_eq!(ended.status, 0, "{set}: {}", ended.err);
    }
}

#[test]
fn probabilities_are_shares_or_percents() {
    let folder = folder();
    let shown = folder.prints(&["check", "loss.toml", "--show"]);
    assert!(shown.contains("\nloss = 0.01\n"), "{shown}");
    let link = folder.prints(&["link", "1mbit", "8mbit", "--loss", "1%", "--generate"]);
    assert_eq!(link.matches("loss = 0.01").count(), 2, "{link}");
    let path = folder.prints(&["check", "one.toml", "--set", "path.loss=2.5%", "--show"]);
    assert!(path.contains("\nloss = 0.025\n"), "{path}");
}

#[test]
fn words_of_the_command_and_its_options_are_the_commands() {
    let folder = folder();
    let said = |arguments: &[&str]| {
        let ended = folder.run(&[&["link", "--closed"][..], arguments].concat());
        (ended.status, ended.out.trim_end().to_owned())
    };
    // Where this machine makes no links, nothing is started at all.
    if said(&["1mbit", "1mbit", "true"]).0 != 0 {
        return;
    }
    let arguments = (0, "--jitter -x".to_owned());
    assert_eq!(said(&["1mbit", "1mbit", "echo", "--jitter", "-x"]), arguments);
    assert_eq!(said(&["1mbit", "1mbit", "--", "echo", "--jitter", "-x"]), arguments);
    assert_eq!(said(&["--scenario", "one.toml", "--", "echo", "--jitter", "-x"]), arguments);
    assert_eq!(said(&["--scenario", "one.toml", "echo", "a", "b", "c"]), (0, "a b c".to_owned()));
}

#[test]
fn the_python_half_is_called_by_the_name_that_was_typed() {
    let folder = folder();
    folder.write("python", "#!/bin/sh\ncase \"$*\" in *importlib*) exit 0;; esac\necho \"$@\"\n");
    fs::set_permissions(folder.path("python"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = folder.command(&["report", "runs.jsonl", "--out", "r.html"]);
    let ended = Ended::from(
        command.env("ACKCLOCK_PYTHON", folder.path("python")).stdin(Stdio::null()).output().unwrap(),
    );
    assert_eq!(ended.out, "-P -m ackclock report runs.jsonl --out r.html\n");
}
