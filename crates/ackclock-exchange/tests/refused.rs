//! Unsupported statements are refused with their line.

use ackclock_exchange::Script;

#[test]
fn what_cannot_be_expressed_is_refused_by_its_line_with_what_is_allowed() {
    let begin = "//!nosyn\n+0 write(4, ..., 1000) = 1000\n";
    let refused = [
        ("+0 read(4, ..., 1000) = 1000", "3: unknown call `read`; known are socket, "),
        ("\n\n+0 < P. 1:11(10) ack 1 win 5", "5: the peer sends 10 bytes of data"),
        ("+0~+1 < . 1:1(0) ack 1 win 5", "3: only expected packets (`>`) may have a range of times"),
        ("> . 1:1(0) ack 1", "3: `> . 1:1(0) ack 1` has no time; an event begins with its time"),
        ("+0", "3: `+0` has a time but no event"),
        ("+0 `tc qdisc` %{ assert 1 }%", "3: `` has no time"),
        ("+0 x %{ assert 1 }%", "3: unexpected `x` between a time and its block"),
        ("--ip_version=ipv6", "3: unknown option `--ip_version=ipv6`; known is `--tolerance_usecs=N`"),
        ("//!nosyn", "3: `//!nosyn` is not a setting"),
        ("//!color red", "3: `//!color red` is not a setting; they are `//!sender`, "),
        ("//!sender {\"kind\":\"rhino\"}", "3: sender: unknown sender `rhino`"),
        ("//!sender {\"kind\":\"reno\",\"rtoo\":1}", "3: sender.rtoo: unknown field"),
        (
            "//!sender {\"kind\":\"reno\",\"handshake\":\"on\"}",
            "3: //!sender: `handshake` is not allowed here",
        ),
        ("//!sender {", "3: //!sender: `{` is neither a name nor a JSON table"),
        ("//!preset windows", "3: preset: unknown preset `windows`; known are cr02"),
        ("//!param {\"packet\":40}", "3: packet: 40 B have no room for data"),
        ("//!param {\"mss\":40}", "3: //!param: unknown field `mss`"),
        (
            "`sysctl -q net.ipv4.tcp_sack=0`",
            "3: `sysctl -q net.ipv4.tcp_sack=0`: of the kernel's settings only",
        ),
        ("`a\nsysctl -q net.ipv4.tcp_ecn=3`", "4: `sysctl -q net.ipv4.tcp_ecn=3`: of the kernel's"),
        (
            "+0 connect(3, ..., ...) = -1 EINPROGRESS (x)",
            "3: connect: with `//!nosyn` the connection is already established",
        ),
    ];
    for (line, message) in refused {
        let refusal = Script::parse(&format!("{begin}{line}\n")).expect_err(line).to_string();
        assert!(refusal.starts_with(message), "{line}: {refusal}");
    }
    assert_eq!(Script::parse("").unwrap_err().line, 1);
    let early = Script::parse("+0 < S 0:0(0) win 5 <mss 1000>").unwrap_err();
    assert_eq!(early.to_string(), "1: the peer's SYN comes before `listen`");
}

#[test]
fn commands_are_named_and_not_run() {
    let script = "`touch /tmp/never\n# comment\n\n../common/defaults.sh`\n+0 %{ assert 1 }%";
    let script = Script::parse(script).unwrap();
    let notes: Vec<_> = script.notes().iter().map(|note| (note.line, note.text.as_str())).collect();
    assert_eq!(
        notes,
        [
            (1, "commands are not run: `touch /tmp/never`"),
            (4, "commands are not run: `../common/defaults.sh`")
        ]
    );
}
