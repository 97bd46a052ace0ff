//! Every error in a scenario gives one message with file, line, key, value and what is allowed.

use std::collections::BTreeMap;
use std::sync::Arc;

use ackclock_scenario::{Files, RunOptions, Scenario, run};

/// Files by name.
struct Shelf(BTreeMap<&'static str, Arc<[u8]>>);

impl Files for Shelf {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, String> {
        self.0.get(path).cloned().ok_or_else(|| format!("{path}: cannot be read: no such file"))
    }
}

fn shelf() -> Shelf {
    let endless = vec![b'9'; 100_000];
    let files: [(&str, Vec<u8>); 6] = [
        ("good", b"10\n20\n30\n".to_vec()),
        ("empty", Vec::new()),
        ("backward", b"10\n5\n".to_vec()),
        ("binary", vec![0, 159, 146, 150, 255]),
        ("words", b"fast\nslow\n".to_vec()),
        ("endless", endless),
    ];
    Shelf(files.into_iter().map(|(name, bytes)| (name, bytes.into())).collect())
}

/// The error of loading, checking and expanding a scenario.
fn message(text: &str, sets: &[&str]) -> String {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    match Scenario::load("case.toml", text, &sets).and_then(|scenario| scenario.check(&shelf())) {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn assert_says(text: &str, sets: &[&str], parts: &[&str]) {
    let said = message(text, sets);
    for part in parts {
        assert!(said.contains(part), "\n{text}\n{sets:?}\nsays    {said}\nnot     {part}");
    }
    assert!(!said.contains('\n'), "one line: {said}");
}

#[test]
fn a_misspelt_key_is_met_with_the_right_one() {
    let text = "preset = \"cr02\"\n[edge]\nbufer = \"4p\"\n";
    assert_says(
        text,
        &[],
        &["case.toml:3: edge.bufer: unknown field `bufer`", "`queue`", "did you mean `buffer`?"],
    );
    assert_says("durration = \"1s\"", &[], &["case.toml:1: durration: ", "did you mean `duration`?"]);
    let deep = "[[flow]]\n\n[[flow]]\nsender = { kind = \"reno\", rto = { mim = \"1s\" } }\n";
    assert_says(
        deep,
        &[],
        &["case.toml:4: flow.1.sender.rto.mim: unknown field `mim`", "did you mean `min`?"],
    );
    let link = "[edge.down]\nkind = \"constant\"\nrte = \"1mbit\"\n";
    assert_says(link, &[], &["case.toml:3: edge.down.rte: unknown field `rte`", "did you mean `rate`?"]);
    let regulator = r#"edge.regulator={ name = "wrb" }"#;
    assert_says(
        "",
        &[regulator],
        &["edge.regulator.name: unknown field `name`: the regulator `none` has no keys"],
    );
}

#[test]
fn a_wrong_unit_says_how_the_quantity_is_written() {
    let text = "[edge.down]\nkind = \"constant\"\nrate = \"200kbits\"\n";
    assert_says(
        text,
        &[],
        &["case.toml:3: edge.down.rate: `200kbits` has no unit of rate; a rate is written like"],
    );
    assert_says("duration = \"60\"", &[], &["case.toml:1: duration: `60` has no unit of time"]);
    assert_says(
        "duration = 60",
        &[],
        &["case.toml:1: duration: invalid type: integer `60`", "a time is written like"],
    );
    assert_says(
        "[edge]\nbuffer = \"ten\"",
        &[],
        &["case.toml:2: edge.buffer: `ten` does not begin with a number"],
    );
    assert_says(
        "[[flow]]\nack_size = \"40p\"",
        &[],
        &["case.toml:2: flow.0.ack_size: `40p` is neither \"real\" nor"],
    );
}

#[test]
fn impossible_values_are_refused() {
    let with = |line: &str| format!("[edge.down]\nkind = \"constant\"\n{line}\n");
    assert_says(&with("rate = \"-1kbit/s\""), &[], &["case.toml:3: edge.down.rate: `-1kbit/s` is negative"]);
    assert_says("[path]\nrate = \"0kbit/s\"", &[], &["case.toml:2: path.rate: ", "not above 0"]);
    assert_says("[path]\nloss = 1.5", &[], &["case.toml:2: path.loss: 1.5 is not a probability"]);
    assert_says("duration = \"0s\"", &[], &["case.toml:1: duration: "]);
    assert_says("runs = 0", &[], &["case.toml:1: runs: 0 is not between 1 and 1000000"]);
    assert_says("seed = -1", &[], &["case.toml:1: seed: invalid value"]);
    assert_says("version = 2", &[], &["case.toml:1: version: 2 is not known; this is version 1"]);
    assert_says("[[flow]]\ncount = 0", &[], &["case.toml:2: flow.0.count: 0 is not above 0"]);
    assert_says("flow = []", &[], &["case.toml:1: flow: there is no flow"]);
    // 10^7 flows of 4 KiB are 38.1 GiB.
    let many = "case.toml:1: flow: 10000000 flows would take some 38 GiB; at most 8 GiB are allowed";
    assert_says("[[flow]]\ncount = 10000000", &[], &[many]);
    // 10^6 clients of 13 KiB are 12.4 GiB.
    let many = "case.toml:1: flow: 1000000 flows would take some 12 GiB; at most 8 GiB are allowed";
    assert_says("[[flow]]\ncount = 1000000\nworkload = \"web\"", &[], &[many]);
    assert_says(
        "[[flow]]\nmax_window = \"0p\"",
        &[],
        &["case.toml:2: flow.0.max_window: 0p is not between 1 byte"],
    );
    assert_says(
        "[[flow]]\ninitial_window = \"0B\"",
        &[],
        &["case.toml:2: flow.0.initial_window: 0B is not between"],
    );
    assert_says(
        "[[flow]]\nmax_window = \"2bdp\"",
        &[],
        &["case.toml:2: flow.0.max_window: 2bdp is not a window"],
    );
    assert_says(
        "[[flow]]\npacket = \"40B\"",
        &[],
        &["case.toml:2: flow.0.packet: 40 B have no room for data"],
    );
    assert_says(
        "[[flow]]\npacket = \"1p\"",
        &[],
        &["case.toml:2: flow.0.packet: 1p is not the size of a packet"],
    );
    assert_says(
        "[[flow]]\nworkload = { kind = \"file\", size = \"0B\" }",
        &[],
        &["case.toml:2: flow.0.workload.size: "],
    );
}

#[test]
fn an_unknown_component_is_met_with_those_that_are_known() {
    assert_says(
        "[[flow]]\nsender = \"rneo\"",
        &[],
        &["case.toml:2: flow.0.sender: unknown sender `rneo`; known are reno", "did you mean `reno`?"],
    );
    assert_says(
        "[edge]\nregulator = \"ack\"",
        &[],
        &["case.toml:2: edge.regulator: unknown regulator `ack`; known are none, ack-regulator"],
    );
    assert_says(
        "[edge]\nqueue = { kind = \"blue\" }",
        &[],
        &["case.toml:2: edge.queue: unknown queue `blue`; known are drop-tail"],
    );
    assert_says("[edge]\nqueue = 7", &[], &["case.toml:2: edge.queue: 7 is neither the name of a queue"]);
    assert_says(
        "[edge.down]\nkind = \"wire\"",
        &[],
        &["case.toml:1: edge.down: unknown link `wire`; known are constant"],
    );
    assert_says(
        "preset = \"cr03\"",
        &[],
        &["case.toml:1: preset: unknown preset `cr03`; known are cr02", "did you mean"],
    );
    assert_says("preset = 7", &[], &["case.toml:1: preset: 7 is not the name of a preset"]);
    assert_says(
        "[[flow]]\nacks = \"sometimes\"",
        &[],
        &["flow.0.acks: unknown way of acknowledging `sometimes`"],
    );
}

#[test]
fn an_override_is_named_as_the_place_of_its_error() {
    let text = "preset = \"cr02\"\n";
    assert_says(text, &["edge.buffer=4q"], &["--set edge.buffer=4q: edge.buffer: `4q` has no unit of size"]);
    assert_says(text, &["edge.bufer=4p"], &["--set edge.bufer=4p: edge.bufer: unknown field"]);
    assert_says(
        text,
        &["flow.sender=quic"],
        &["--set flow.sender=quic: flow.0.sender: unknown sender `quic`"],
    );
    assert_says(text, &["flow.3.sender=reno"], &["--set flow.3.sender=reno: flow.3.sender: no item 3"]);
    assert_says(text, &["buffer"], &["--set buffer: is written like `edge.buffer=4p`"]);
    assert_says(text, &["=4p"], &["--set =4p: ", "keys are written like `edge.buffer`"]);
    assert_says(text, &["seed=x"], &["--set seed=x: seed: invalid type: string \"x\""]);
}

#[test]
fn a_sweep_is_checked_point_by_point() {
    let sweep = |line: &str| format!("preset = \"cr02\"\n[sweep]\n{line}\n");
    assert_says(
        &sweep("\"edge.buffer\" = [\"4p\", \"5\"]"),
        &[],
        &["case.toml:3: edge.buffer: `5` has no unit of size"],
    );
    assert_says(
        &sweep("\"edge.bufer\" = [\"4p\"]"),
        &[],
        &["case.toml:3: edge.bufer: unknown field `bufer`"],
    );
    assert_says(
        &sweep("\"edge.buffer\" = \"4p\""),
        &[],
        &["case.toml:3: sweep.edge.buffer: \"4p\" is not a list of values"],
    );
    assert_says(&sweep("\"edge.buffer\" = []"), &[], &["case.toml:3: sweep.edge.buffer: [] is not a list"]);
    assert_says("sweep = 7", &[], &["case.toml:1: sweep: "]);
    let many: String = (0..7).map(|axis| format!("\"flow.{axis}\" = {:?}\n", vec!["x"; 10])).collect();
    assert_says(&sweep(&many), &[], &["combinations"]);
}

#[test]
fn what_is_not_toml_names_its_line() {
    assert_says("version = 1\npreset = \n", &[], &["case.toml:2: not TOML"]);
    assert_says("a = 1\na = 2", &[], &["case.toml:2: not TOML: duplicate key"]);
    assert_says("\u{0}", &[], &["case.toml:1: not TOML"]);
}

#[test]
fn a_recording_that_cannot_be_played_is_refused() {
    let trace = |file: &str| format!("[edge.down]\nkind = \"trace\"\nfile = \"{file}\"\n");
    assert_eq!(message(&trace("good"), &[]), "no error");
    assert_says(&trace("absent"), &[], &["case.toml:3: edge.down.file: ", "absent", "cannot be read"]);
    for file in ["empty", "backward", "binary", "words", "endless"] {
        assert_says(&trace(file), &[], &["case.toml:3: edge.down.file: ", file]);
    }
}

#[test]
fn a_file_that_vanishes_before_the_run_fails_the_run() {
    let text = "duration = \"1s\"\n[edge.down]\nkind = \"trace\"\nfile = \"good\"\n";
    let scenario = Scenario::load("case.toml", text, &[]).unwrap();
    scenario.check(&shelf()).unwrap();
    let error = run(&scenario, 0, &Shelf(BTreeMap::new()), RunOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with("case.toml:4: edge.down.file: "), "{error}");
}

#[test]
fn users_of_a_cell_and_their_flows_are_checked() {
    let cell = "[edge.down]\nkind = \"cell\"\n";
    let user = |line: &str| format!("{cell}[[edge.user]]\n{line}\n");
    assert_says(cell, &[], &["no error"]);
    let two = format!("{}[[edge.user]]\n[[flow]]\nuser = 2\n", user("count = 3"));
    assert_says(
        &two,
        &[],
        &["case.toml:7: flow.0.user: 2 is not a table [[edge.user]]: there are 2, from 0 to 1"],
    );
    assert_says(cell, &["flow.user=1"], &["flow.0.user: 1 is not a table [[edge.user]]: there is one"]);
    assert_says(&user("count = 0"), &[], &["case.toml:4: edge.user.0.count: 0 is not above 0"]);
    assert_says(&user("count = 100001"), &[], &["edge.user: 100001 users are more than 100000"]);
    assert_says(
        &user("doppler = 400"),
        &[],
        &["case.toml:4: edge.user.0.doppler: 400 is not from 0 to 300 Hz"],
    );
    assert_says(
        &user("mean_snr = -200"),
        &[],
        &["case.toml:4: edge.user.0.mean_snr: -200 is not from -100 to 100 dB"],
    );
    assert_says(&user("fading = \"rician\""), &[], &["case.toml:4: edge.user", "`rician`", "`jakes`"]);
    assert_says(
        &user("dopler = 10"),
        &[],
        &["case.toml:4: edge.user", "unknown field `dopler`", "`doppler`"],
    );
    assert_says("[[edge.user]]\ncount = 2", &[], &["edge.user: only a cell has users"]);
}

#[test]
fn what_does_not_go_with_a_cell_is_refused() {
    let with = |line: &str| format!("[edge.down]\nkind = \"cell\"\n{line}\n");
    let says = |line: &str, parts: &[&str]| assert_says(&with(line), &[], parts);
    says(
        "scheduler = \"fastest\"",
        &["case.toml:3: edge.down.scheduler: unknown scheduler `fastest`; known are round-robin"],
    );
    says("scheduler = { kind = \"pf\", average = { tc = 0 } }", &["edge.down.scheduler.average.tc: 0 slots"]);
    says("rates = []", &["case.toml:3: edge.down.rates: 0 rows"]);
    says(
        "rates = [{ rate = \"1Mbit/s\", snr = 3 }, { rate = \"2Mbit/s\", snr = 1 }]",
        &["edge.down.rates", "rates and their SNRs must increase from row to row"],
    );
    says(
        "transport = \"packets\"\nrates = [{ rate = \"1Mbit/s\", snr = 3 }]",
        &["edge.down.rates", "has no `bits` and `slots`"],
    );
    says("short_flow = { bytes = \"15p\" }", &["edge.down.short_flow.bytes: 15p is not in bytes"]);
    says("slots = 0", &["case.toml:3: edge.down.slots: 0 is not from 1"]);
    let set = |set: &str, parts: &[&str]| assert_says(&with(""), &[set], parts);
    set("edge.buffer=0p", &["edge.buffer: 0p: packets queue for a slot of the cell"]);
    set(
        "edge.queue={ kind = \"drop-tail\", per = \"user\" }",
        &["edge.queue.per: in a cell each flow has a separate queue"],
    );
    set("edge.up={ kind = \"cell\" }", &["edge.up.kind: only the downlink, `down`, can be a cell"]);
    set(
        "edge.at=[{ time = \"1s\", set = { \"up.loss\" = 0.1 } }]",
        &["up.loss: the uplinks of a cell cannot change while it runs"],
    );
}

#[test]
fn classes_of_service_and_their_flows_are_checked() {
    let with = |keys: &str, flow: &str| {
        format!("preset = \"hsdpa\"\n[[edge.class]]\nname = \"web\"\ndscp = [34]\n{keys}\n{flow}")
    };
    let says = |keys: &str, parts: &[&str]| assert_says(&with(keys, ""), &[], parts);
    says("", &["no error"]);
    says("weight = 0", &["case.toml:5: edge.class.0.weight: 0 is not from 1 to 1000"]);
    says(
        "weigth = 1",
        &["case.toml:5: edge.class.0.weigth: unknown field `weigth`", "did you mean `weight`?"],
    );
    says("buffer = \"0p\"", &["case.toml:5: edge.class.0.buffer: 0p", "at least \"1p\""]);
    says("rlc = { mode = \"um\" }", &["case.toml:5: edge.class.0.rlc", "`um`", "`unacknowledged`"]);
    says("rlc = { windw = 9 }", &["edge.class.0.rlc.windw: unknown field `windw`", "did you mean `window`?"]);
    says("rlc = { window = 0 }", &["edge.class.0.rlc.window: 0 is not 1 to 2047"]);
    says(
        "rlc = { pdu = \"80B\" }",
        &["edge.class.0.rlc.pdu: 80B is not 40B: all classes have PDUs of equal size"],
    );
    let second = |keys: &str| format!("[[edge.class]]\n{keys}\n");
    says(&second("name = \"b\"\ndscp = [8, 34]"), &["edge.class.1.dscp: 34 already selects a class"]);
    says(&second("name = \"b\"\ndscp = [64]"), &["edge.class.1.dscp: 64 is not from 0 to 63"]);
    says(&second("name = \"web\""), &["edge.class.1.name: \"web\" is empty or the name of another class"]);
    says(&second("weight = 2"), &["edge.class.1: missing field `name`"]);
    let more: String = (0..4).map(|number| second(&format!("name = \"{number}\""))).collect();
    says(&more, &["edge.class: 5 classes; an edge has at most 4"]);
    let flow = with("", "[[flow]]\nclass = \"wbe\"\n");
    let unknown =
        "case.toml:7: flow.0.class: \"wbe\" is not the name of a table [[edge.class]]: there are \"web\"";
    assert_says(&flow, &[], &[unknown]);
    assert_says("[[flow]]\nclass = \"web\"", &[], &["flow.0.class", "[[edge.class]]: there is none"]);
    let said =
        "edge.class: a bearer of kind `links` has no classes of service; bearer = \"radio-access\" has";
    assert_says(&with("", ""), &["edge.bearer=links"], &[said]);
    let weights = ["edge.class.0.weight=2", "edge.bearer.air.down.scheduler=max-rate"];
    assert_says(&with("", ""), &weights, &["edge.class.0.weight: the scheduler \"max-rate\" ignores it"]);
}
