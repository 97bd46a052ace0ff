//! Results of scripts: correct ones pass, others fail with their line and the actual behaviour.

use ackclock_exchange::{Outcome, RunOptions, Script, run};

/// An established NewReno connection with 1000-byte segments, an initial window of two, and 20000 bytes to send.
const BEGIN: &str = r#"//!sender {"kind":"newreno","rto":{"min":"1s"}}
//!param {"packet":1040,"header":40,"iw":2,"max_window":1000000}
//!nosyn
+0 write(4, ..., 20000) = 20000
"#;

/// A server after `accept`, with the preset `linux` and 1000-byte segments.
const SERVER: &str = "\
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 65535 <mss 1000,sackOK,nop,nop,nop,wscale 7>
+0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK,nop,wscale 7>
+.1 < . 1:1(0) ack 1 win 511
+0 accept(3, ..., ...) = 4
";

fn outcome(begin: &str, rest: &str) -> Outcome {
    let script =
        Script::parse(&format!("{begin}{rest}")).unwrap_or_else(|refusal| panic!("{rest}: {refusal}"));
    run(&script, &RunOptions::default())
}

fn passes(begin: &str, rest: &str) {
    assert_eq!(outcome(begin, rest).failure, None, "{rest}");
}

/// The failing line, counted from the end of the preamble, and the actual behaviour.
fn fails(begin: &str, rest: &str) -> (usize, String) {
    let failure = outcome(begin, rest).failure.unwrap_or_else(|| panic!("it passes: {rest}"));
    (failure.line - begin.lines().count(), failure.got)
}

#[test]
fn a_packet_of_several_segments_may_be_asked_for_in_one_or_one_by_one() {
    passes(BEGIN, "+0 > . 1:2001(2000) ack 1");
    passes(BEGIN, "+0 > . 1:1001(1000) ack 1\n+0 > P. 1001:2001(1000) ack 1");
    let got = "0.000000 > . 1:1001(1000) ack 1: it has 1000 bytes, not 500";
    assert_eq!(fails(BEGIN, "+0 > . 1:501(500) ack 1"), (1, got.to_owned()));
    let got = "until 0.010000 only `. 1:2001(2000) ack 1` was sent";
    assert_eq!(fails(BEGIN, "+0 > . 1:3001(3000) ack 1"), (1, got.to_owned()));
}

#[test]
fn a_wrong_number_acknowledgement_flag_or_option_fails_and_says_what_was_sent() {
    let wrong = [
        ("+0 > . 1001:2001(1000) ack 1", "0.000000 > . 1:1001(1000) ack 1: it begins at 1, not 1001"),
        ("+0 > . 1:1001(1000) ack 2", "0.000000 > . 1:1001(1000) ack 1: it acknowledges 1"),
        ("+0 > F. 1:1001(1000) ack 1", "0.000000 > . 1:1001(1000) ack 1: its flags are ."),
        ("+0 > [ect0] . 1:1001(1000) ack 1", "0.000000 > . 1:1001(1000) ack 1: its ECN codepoint differs"),
        (
            "+0 > . 1:1001(1000) ack 1 <nop,nop,TS val 1 ecr 1>",
            "0.000000 > . 1:1001(1000) ack 1: it has no timestamps",
        ),
    ];
    for (line, got) in wrong {
        assert_eq!(fails(BEGIN, line), (1, got.to_owned()), "{line}");
    }
}

#[test]
fn a_time_holds_within_its_tolerance_and_not_beyond() {
    // RFC 6298 (2.1): the first timeout is after a second.
    let sent = "+0 > . 1:2001(2000) ack 1\n";
    passes(BEGIN, &format!("{sent}+1.01 > . 1:1001(1000) ack 1"));
    passes(BEGIN, &format!("{sent}+.5~+.99 > . 1:1001(1000) ack 1"));
    passes(BEGIN, &format!("{sent}1 > . 1:1001(1000) ack 1"));
    passes(BEGIN, &format!("{sent}* > . 1:1001(1000) ack 1"));
    let early = fails(BEGIN, &format!("{sent}+1.011 > . 1:1001(1000) ack 1"));
    assert_eq!(
        early,
        (2, "1.000000 > . 1:1001(1000) ack 1: its time is not 1.001000 to 1.021000".to_owned())
    );
    let late = fails(BEGIN, &format!("{sent}+.989 > . 1:1001(1000) ack 1"));
    assert_eq!(late, (2, "nothing was sent until 0.999000".to_owned()));
}

#[test]
fn the_tolerance_is_that_of_the_caller_before_that_of_the_script() {
    let script =
        format!("{BEGIN}--tolerance_usecs=20000\n+0 > . 1:2001(2000) ack 1\n+1.015 > . 1:1001(1000) ack 1");
    let script = Script::parse(&script).unwrap();
    assert_eq!(run(&script, &RunOptions::default()).failure, None);
    let strict = RunOptions { tolerance: Some("5ms".parse().unwrap()) };
    assert!(run(&script, &strict).failure.is_some());
}

#[test]
fn what_is_sent_and_never_asked_about_says_nothing_but_is_next_to_be_asked_about() {
    passes(BEGIN, "+1.5 < . 1:1(0) ack 1 win 60000");
    assert_eq!(fails(BEGIN, "+1.5 > . 1:1001(1000) ack 1").0, 1, "it was sent at 0");
}

#[test]
fn time_goes_on_from_when_the_packet_before_was_sent() {
    // The retransmission is due at 1 s; the ACK comes 0.2 s after it, and so does the next segment.
    passes(
        BEGIN,
        "+0 > . 1:2001(2000) ack 1\n+.9~+1.5 > . 1:1001(1000) ack 1\n+.2 < . 1:1(0) ack 1001 win 60000\n1.2 > . 1001:2001(1000) ack 1",
    );
    let (line, got) = fails(BEGIN, "+1 < . 1:1(0) ack 1 win 60000\n0.5 < . 1:1(0) ack 1 win 60000");
    assert_eq!((line, got), (2, "it is already 1.000000".to_owned()));
}

#[test]
fn an_assertion_that_does_not_hold_says_what_the_case_is_on_its_own_line() {
    let (line, got) = fails(BEGIN, "+0 %{ assert tcpi_snd_cwnd == 2\nassert tcpi_snd_cwnd == 3, 'why' }%");
    assert_eq!((line, got), (2, "tcpi_snd_cwnd = 2, why".to_owned()));
}

#[test]
fn what_passed_up_to_a_failure_is_told_in_the_words_of_scripts() {
    let outcome = outcome(SERVER, "+0 write(4, ..., 2000) = 2000\n+0 > . 1:3001(3000) ack 1");
    let seen: Vec<_> = outcome.seen.iter().map(|seen| (seen.direction.sign(), seen.text.as_str())).collect();
    let expected = [
        ('<', "S 0:0(0) win 65535 <mss 1000,sackOK,nop,nop,nop,wscale 7>"),
        ('>', "S. 0:0(0) ack 1 <mss 1460,sackOK,wscale 0>"),
        ('<', ". 1:1(0) ack 1 win 511"),
        // The last segment of a write has PSH.
        ('>', "P. 1:2001(2000) ack 1"),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_server_closes_after_its_data_and_acknowledges_the_fin_of_its_peer() {
    passes(
        SERVER,
        "+0 write(4, ..., 1000) = 1000
+0 > . 1:1001(1000) ack 1
+0 close(4) = 0
+0 > F. 1001:1001(0) ack 1
+0 %{ assert tcpi_state == TCP_FIN_WAIT1 }%
+.1 < . 1:1(0) ack 1002 win 511
+.1 < F. 1:1(0) ack 1002 win 511
+0 > . 1002:1002(0) ack 2
+.1 < F. 1:1(0) ack 1002 win 511
+0 > . 1002:1002(0) ack 2",
    );
    passes(
        SERVER,
        "+0 write(4, ..., 1000) = 1000
+0 shutdown(4, SHUT_WR) = 0
+0 > . 1:1001(1000) ack 1
+0 > F. 1001:1001(0) ack 1
+.1 < F. 1:1(0) ack 1002 win 511
+0 > . 1002:1002(0) ack 2
+0 %{ assert tcpi_state == TCP_CLOSE }%",
    );
}

#[test]
fn a_client_opens_the_connection_and_repeats_its_syn() {
    passes(
        "",
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0
+0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)
+0 > S 0:0(0) <mss 1460,sackOK,TS val 100 ecr 0,nop,wscale 8>
+0 %{ assert tcpi_state == TCP_SYN_SENT }%
+.1 < S. 0:0(0) ack 1 win 65535 <mss 1012,sackOK,TS val 700 ecr 100,nop,wscale 7>
+0 > . 1:1(0) ack 1 <nop,nop,TS val 200 ecr 700>
+0 %{ assert tcpi_rtt == 100000 and tcpi_snd_mss == 1000 and tcpi_snd_wscale == 7 }%
+0 write(3, ..., 2000) = 2000
+0 > P. 1:2001(2000) ack 1 <nop,nop,TS val 200 ecr 700>
+.1 < S. 0:0(0) ack 1 win 65535 <mss 1012,sackOK,TS val 700 ecr 100,nop,wscale 7>
+0 > . 2001:2001(0) ack 1",
    );
    // RFC 6298 (2.1), (5.5) and (5.7), RFC 5681 section 3.1: after a lost SYN one segment, and a timeout of 3 s.
    passes(
        "//!sender {\"kind\":\"newreno\"}\n//!param {\"packet\":1040,\"header\":40,\"iw\":4}\n",
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)
+0 > S 0:0(0) <...>
+1 > S 0:0(0) <...>
+2 > S 0:0(0) <...>
+.1 < S. 0:0(0) ack 1 win 65535 <mss 1000>
+0 > . 1:1(0) ack 1
+0 write(3, ..., 4000) = 4000
+0 > . 1:1001(1000) ack 1
+0 %{ assert tcpi_rto == 3000000 and tcpi_snd_cwnd == 1 }%",
    );
}

#[test]
fn a_reset_or_an_answer_to_something_else_opens_no_connection() {
    let begin = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)
+0 > S 0:0(0) <...>
";
    passes(begin, "+.1 < S. 0:0(0) ack 7 win 65535 <mss 1000>\n+0 %{ assert tcpi_state == TCP_SYN_SENT }%");
    passes(begin, "+.1 < R. 0:0(0) ack 7 win 0\n+0 %{ assert tcpi_state == TCP_SYN_SENT }%");
    passes(begin, "+.1 < R. 0:0(0) ack 1 win 0\n+0 %{ assert tcpi_state == TCP_CLOSE }%");
}

#[test]
fn ecn_is_agreed_to_as_the_setting_says() {
    for (setting, answer) in [(0, "S."), (1, "SE."), (2, "SE.")] {
        passes(
            &format!("`sysctl -q net.ipv4.tcp_ecn={setting}`\n"),
            &format!(
                "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 listen(3, 1) = 0
+0 < SEW 0:0(0) win 65535 <mss 1000>
+0 > {answer} 0:0(0) ack 1 <...>"
            ),
        );
    }
    for (setting, syn) in [(0, "S"), (1, "SEW"), (2, "S")] {
        passes(
            &format!("`sysctl -q net.ipv4.tcp_ecn={setting}`\n"),
            &format!(
                "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)
+0 > {syn} 0:0(0) <...>"
            ),
        );
    }
}

#[test]
fn linux_asks_for_ecn_in_its_first_syn_only_and_repeats_its_answer_unchanged() {
    let setting = "//!preset linux\n`sysctl -q net.ipv4.tcp_ecn=1`\n";
    let opens = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n";
    let connects = "+0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)\n";
    let repeats = "+0 > SEW 0:0(0) <...>\n+1 > S 0:0(0) <...>\n+1 > S 0:0(0) <...>\n";
    // The answer to the first SYN arrives late; ECN is agreed.
    let answered = "+.1 < SE. 0:0(0) ack 1 win 60000 <mss 1460>\n+0 > . 1:1(0) ack 1\n";
    let sends = "+0 write(3, ..., 1000) = 1000\n+0 > [ect0] P. 1:1001(1000) ack 1";
    passes(setting, &format!("{opens}{connects}{repeats}{answered}{sends}"));
    // Linux 6.18 keeps ECE in a repeated SYN-ACK.
    let asked = "+0 listen(3, 1) = 0\n+0 < SEW 0:0(0) win 65535 <mss 1000>\n";
    passes(setting, &format!("{opens}{asked}+0 > SE. 0:0(0) ack 1 <...>\n+1 > SE. 0:0(0) ack 1 <...>"));
}

#[test]
fn duplicates_are_disorder_and_a_congestion_echo_is_cwr() {
    passes(
        BEGIN,
        "+.1 < . 1:1(0) ack 1 win 60000\n+0 %{ assert tcpi_ca_state == TCP_CA_Disorder }%
+.1 < . 1:1(0) ack 1001 win 60000\n+0 %{ assert tcpi_ca_state == TCP_CA_Open }%",
    );
    passes(
        "//!sender {\"kind\":\"newreno\",\"ecn\":\"on\"}\n//!param {\"packet\":1040,\"iw\":4}\n//!nosyn\n",
        "+0 write(4, ..., 9000) = 9000\n+0 > [ect0] . 1:4001(4000) ack 1
+.1 < E. 1:1(0) ack 1001 win 60000\n+0 %{ assert tcpi_ca_state == TCP_CA_CWR and tcpi_snd_cwnd == 2 }%
+.1 < . 1:1(0) ack 4001 win 60000\n+0 %{ assert tcpi_ca_state == TCP_CA_Open }%",
    );
}
