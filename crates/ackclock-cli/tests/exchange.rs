//! `ackclock exchange`: what it prints, and how it ends.

use serde_json::{Value, json};

use crate::common::Folder;

const GOOD: &str = "\
//!sender newreno
//!param {\"packet\":1040,\"header\":40,\"iw\":2}
//!nosyn
+0 write(4, ..., 20000) = 20000
+0 > . 1:2001(2000) ack 1
";

/// RFC 6298 (2.1): the first timeout is after a second, not after two.
const BAD: &str = "+2 > . 1:1001(1000) ack 1\n";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("good.pkt", GOOD);
    folder.write("bad.pkt", format!("{GOOD}{BAD}"));
    folder.write("odd.pkt", format!("{GOOD}+0 read(4, ..., 5) = 5\n"));
    folder
}

#[test]
fn a_script_that_comes_about_is_named() {
    assert_eq!(folder().prints(&["exchange", "good.pkt"]), "ok    good.pkt\n");
}

#[test]
fn a_script_that_fails_ends_with_1_and_says_its_line_and_what_passed() {
    let run = folder().run(&["exchange", "good.pkt", "bad.pkt"]);
    assert_eq!(run.status, 1);
    let expected = "\
ok    good.pkt
FAIL  bad.pkt:6
      expected  > . 1:1001(1000) ack 1
      got       1.000000 > . 1:1001(1000) ack 1: its time is not 1.990000 to 2.010000
      0.000000 > . 1:2001(2000) ack 1
      1.000000 > . 1:1001(1000) ack 1
1 passed, 1 failed
";
    assert_eq!(run.out, expected);
    let tolerant = folder().run(&["exchange", "--tolerance", "1s", "bad.pkt"]);
    assert_eq!(tolerant.status, 0);
}

#[test]
fn a_script_that_cannot_be_expressed_ends_with_2_and_the_others_are_run() {
    let run = folder().run(&["exchange", "odd.pkt", "bad.pkt", "none.pkt", "good.pkt"]);
    assert_eq!(run.status, 2);
    let told = &run.err;
    let lines: Vec<_> = told.lines().collect();
    assert!(lines[0].starts_with("ackclock: odd.pkt:6: unknown call `read`"), "{told}");
    assert!(lines[1].starts_with("ackclock: none.pkt: cannot be read"), "{told}");
    assert_eq!(lines.len(), 2, "{told}");
    assert!(run.out.ends_with("ok    good.pkt\n1 passed, 1 failed, 2 refused\n"), "{}", run.out);
}

#[test]
fn json_has_one_object_a_script() {
    let run = folder().run(&["exchange", "--json", "good.pkt", "bad.pkt"]);
    let objects: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let first = json!({"time_s": 0.0, "direction": ">", "segment": ". 1:2001(2000) ack 1"});
    assert_eq!(objects[0]["segments"], json!([first]));
    assert_eq!((&objects[0]["passed"], &objects[0]["line"]), (&json!(true), &Value::Null));
    assert_eq!((&objects[1]["passed"], &objects[1]["line"]), (&json!(false), &json!(6)));
    assert_eq!(objects[1]["expected"], "> . 1:1001(1000) ack 1");
}

#[test]
fn control_characters_of_a_script_do_not_reach_the_terminal() {
    let folder = folder();
    folder.write("evil.pkt", format!("{GOOD}+0 \u{1b}[2J(4) = 5\n`rm \u{1b}[2J`\n"));
    let run = folder.run(&["exchange", "evil.pkt"]);
    assert_eq!(run.status, 2);
    assert!(!run.err.contains('\u{1b}'), "{:?}", run.err);
}
