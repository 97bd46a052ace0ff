//! `ackclock link` with real programs. What is sent stays in namespaces that the tests make, and everything that needs what
//! this machine forbids or lacks is skipped with the reason.

#![allow(clippy::print_stderr, reason = "a skipped test says why")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use crate::common::real::{
    DOWNLOAD, ROUND_TRIP, comes_true, download, is_installed, last_object, ready, server, until_line,
};
use crate::common::{Ended, Folder};

#[test]
fn the_exit_status_is_that_of_the_command() {
    let Some(folder) = ready(&[]) else { return };
    for (script, status) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143)] {
        let ended = folder.run(&["link", "1mbit", "1mbit", "--closed", "--", "sh", "-c", script]);
        assert_eq!((ended.status, ended.err.as_str()), (status, ""), "{script}");
    }
    let missing = folder.run(&["link", "1mbit", "1mbit", "--closed", "--", "no-such-program"]);
    assert_eq!(missing.status, 127);
    assert!(missing.err.contains("no-such-program: cannot be started"), "{}", missing.err);
}

#[test]
fn uploads_can_be_regulated() {
    let Some(folder) = ready(&[]) else { return };
    let upload =
        ["--buffer", "10p", "--set", "edge.up_regulator=wrd", "--closed", "--", "sh", "-c", "exit 7"];
    let ended = folder.run(&[&["link", "1mbit", "1mbit"][..], &upload].concat());
    assert_eq!((ended.status, ended.err.as_str()), (7, ""));
}

#[test]
fn the_status_of_the_command_goes_before_that_of_its_results() {
    let Some(folder) = ready(&[]) else { return };
    let asked = ["link", "1mbit", "1mbit", "--closed", "--json", "--", "sh", "-c", "sleep 0.1; exit 7"];
    let mut child = folder.command(&asked).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(7), "nobody reads");
    if let Ok(full) = fs::File::options().write(true).open("/dev/full") {
        let ended = Ended::from(folder.command(&asked).stdout(full).stderr(Stdio::piped()).output().unwrap());
        assert_eq!(ended.status, 7);
        assert!(ended.err.contains("standard output: cannot be written: No space left"), "{}", ended.err);
    }
}

#[test]
fn wrong_input_is_named_before_anything_is_made() {
    let folder = Folder::new();
    for (arguments, expected) in [
        (&["link", "1mbit", "nothing.trace", "true"][..], "DOWN: `nothing.trace` is neither a recording"),
        (&["link", "1mbit", "1mbit", "--regulator", "magic", "true"], "unknown regulator `magic`"),
        (&["link", "1mbit", "1mbit", "--buffer", "many", "true"], "edge.buffer"),
        (
            &["link", "1mbit", "1mbit", "--downlink-queue=fifo", "true"],
            "--downlink-queue: `fifo` is not a queue",
        ),
        (
            &["link", "1mbit", "1mbit", "--set", "edge.up_regulator=snoop", "true"],
            "--set edge.up_regulator=snoop: edge.up_regulator: `snoop` keeps copies",
        ),
        (&["link", "set", "rate"], "`rate` is not KEY=VALUE"),
    ] {
        let message = folder.complains(2, arguments);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn the_command_sees_its_base_and_nothing_else() {
    let Some(folder) = ready(&["python3"]) else { return };
    let script = "test $ACKCLOCK_BASE = $MAHIMAHI_BASE && python3 client.py 192.0.2.77; python3 client.py $ACKCLOCK_BASE";
    let ended = folder.run(&["link", "1mbit", "1mbit", "--closed", "--", "sh", "-c", script]);
    // The other end answers itself that there is no way on, and that nobody listens: no program waits for a time-out.
    assert!(
        ended.err.contains("Network is unreachable") && ended.err.contains("Connection refused"),
        "{}",
        ended.err
    );
}

#[test]
fn a_server_that_goes_to_the_background_serves_and_is_told_of() {
    let Some(folder) = ready(&["python3"]) else { return };
    let server = format!("(sleep 0.2; {}) &", server("reno", 1000));
    let ended = folder.run(&["link", "10mbit", "10mbit", "--server", &server, "--", "sh", "-c", DOWNLOAD]);
    let said = "ackclock: the server went to the background; it runs until the link ends\n";
    assert_eq!((ended.status, ended.out.as_str(), ended.err.as_str()), (0, "1000\n", said));
    let ended = folder.run(&["link", "10mbit", "10mbit", "--server", "true", "--", "true"]);
    assert!(ended.err.contains("starting the server: it ended at once, exit status: 0"), "{}", ended.err);
}

#[test]
fn real_senders_fill_the_link_and_no_more_under_every_regulator() {
    let Some(folder) = ready(&["python3"]) else { return };
    for (congestion_control, regulator) in [("reno", "none"), ("cubic", "none"), ("reno", "ack-regulator")] {
        let ended = folder.run(&[
            "link",
            "2mbit",
            "8mbit",
            "--delay",
            "10ms",
            "--buffer",
            "40p",
            "--regulator",
            regulator,
            "--json",
            "--server",
            &server(congestion_control, 2_000_000),
            "--",
            "sh",
            "-c",
            DOWNLOAD,
        ]);
        assert_eq!(ended.status, 0, "{}", ended.err);
        assert_eq!(ended.out.lines().next(), Some("2000000"));
        let results = last_object(&ended.out);
        let flow = download(&results);
        assert_eq!((&flow["delivered_bytes"], &flow["regulator"]), (&2_000_000.into(), &regulator.into()));
        // 1448 of 1500 bytes are payload, with timestamps. A busy machine takes its part; a tenth would be a stall.
        let (goodput, most) = (flow["goodput_bps"].as_f64().unwrap(), 8e6 * 1448.0 / 1500.0);
        assert!(
            goodput < most * 1.01 && goodput > most * 0.1,
            "{congestion_control}, {regulator}: {goodput}"
        );
        let rtt = flow["edge_rtt_ms"].as_f64().unwrap();
        assert!(rtt > 20.0, "twice the delay is 20 ms: {rtt}");
    }
}

#[test]
fn real_packets_pass_a_radio_link_control_whole_and_its_keys_stay_as_they_are() {
    let Some(folder) = ready(&["python3"]) else { return };
    // 2 Mbit/s down: 25 PDUs of 100 bytes in a TTI. What the radio loses is repeated below TCP.
    folder.write(
        "umts.toml",
        "path.delay = \"1ms\"\n[edge]\nbuffer = \"1000p\"\n[edge.bearer]\nkind = \"radio-access\"\nrlc.pdu = \"100B\"\n\
         [edge.bearer.air]\ndown = { kind = \"dedicated\", rate = \"2Mbit/s\", delay = \"10ms\", errors = \"5%\" }\n\
         up = { kind = \"dedicated\", rate = \"400kbit/s\", delay = \"10ms\", errors = \"5%\" }\n",
    );
    let served = server("reno", 500_000);
    let ended = folder.run(&[
        "link",
        "--scenario",
        "umts.toml",
        "--json",
        "--server",
        &served,
        "--",
        "sh",
        "-c",
        DOWNLOAD,
    ]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    let results = last_object(&ended.out);
    let flow = download(&results);
    assert_eq!((&flow["delivered_bytes"], &results["bottleneck"]["drops"]), (&500_000.into(), &0.into()));
    // 1448 of 1500 bytes are payload, and 1500 of 1501 bytes of 95 % of the PDUs.
    let (goodput, most) = (flow["goodput_bps"].as_f64().unwrap(), 2e6 * 0.95 * 1448.0 / 1501.0);
    assert!(goodput < most * 1.05 && goodput > most * 0.05, "{goodput}");
    // Two TTIs of 10 ms and two delays of 10 ms.
    let rtt = flow["edge_rtt_ms"].as_f64().unwrap();
    assert!(rtt > 40.0, "{rtt}");
    let words = ["link", "--scenario", "umts.toml", "--closed", "--", "sh", "-c"];
    for (set, said) in [
        ("down.rate=1mbit", "a bearer of kind `radio-access` has no links"),
        ("bearer.air.down.tti=20ms", "is fixed when the bearer starts"),
    ] {
        let told = [&format!("\"$0\" link set {set}"), env!("CARGO_BIN_EXE_ackclock")];
        let ended = folder.run(&[&words[..], &told].concat());
        assert!(ended.err.contains(said), "{}", ended.err);
    }
    let told = [
        "\"$0\" link set bearer.air.down.rate=80kbit bearer.air.down.errors=0 && echo set",
        env!("CARGO_BIN_EXE_ackclock"),
    ];
    let ended = folder.run(&[&words[..], &told].concat());
    assert!(ended.status == 0 && ended.out.contains("set"), "{}", ended.err);
}

/// Sends 300 datagrams to whoever asks.
const DATAGRAMS: &str = r#"
import os, socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("", 5002))
os.close(1)
while True:
    _, peer = server.recvfrom(100)
    for number in range(300):
        server.sendto(bytes(200), peer)
"#;

/// Asks for datagrams with a DSCP, and says how many came before 10 s of silence.
const ASKS: &str = r#"
import os, socket, sys
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(sys.argv[1]) << 2)
client.settimeout(10)
client.sendto(b"?", (os.environ["ACKCLOCK_BASE"], 5002))
count = 0
try:
    while count < 300:
        client.recv(1000)
        count += 1
except TimeoutError:
    pass
print(count)
"#;

#[test]
fn a_class_without_acknowledgements_loses_datagrams_of_its_dscp_only() {
    let Some(folder) = ready(&["python3"]) else { return };
    folder.write("datagrams.py", DATAGRAMS);
    folder.write("asks.py", ASKS);
    // A datagram has six PDUs, of which each is lost with a probability of 10 %.
    folder.write(
        "radio.toml",
        "[edge]\nbuffer = \"1000p\"\n[edge.bearer]\nkind = \"radio-access\"\n\
         air.down = { kind = \"dedicated\", errors = \"10%\" }\nair.up = { kind = \"dedicated\", errors = 0 }\n\
         [[edge.class]]\nname = \"datagrams\"\ndscp = [46]\nrlc = { mode = \"unacknowledged\" }\n",
    );
    let link =
        ["link", "--scenario", "radio.toml", "--server", "exec python3 datagrams.py", "--", "sh", "-c"];
    let received = |dscp: u8| {
        let ended = folder.run(&[&link[..], &[&format!("exec python3 asks.py {dscp}")]].concat());
        assert_eq!((ended.status, ended.err.as_str()), (0, ""), "{}", ended.out);
        ended.out.trim().parse::<u32>().unwrap()
    };
    assert_eq!(received(0), 300);
    let whole = received(46);
    assert!((1..290).contains(&whole), "{whole} of 300");
}

#[test]
fn scripts_for_mm_link_go_on_working() {
    let Some(folder) = ready(&["python3"]) else { return };
    // An opportunity a millisecond: 12 Mbit/s.
    folder.write("trace", "1\n");
    let ended = folder.run(&[
        "link",
        "trace",
        "trace",
        "--uplink-queue=infinite",
        "--downlink-queue=droptail",
        "--downlink-queue-args=packets=50",
        "--uplink-log=up.log",
        "--downlink-log=down.log",
        "--meter-all",
        "--server",
        &server("cubic", 500_000),
        "sh",
        "-c",
        "python3 client.py $MAHIMAHI_BASE",
    ]);
    assert_eq!((ended.status, ended.out.as_str()), (0, "500000\n"), "{}", ended.err);
    assert_eq!(
        ended.err.trim(),
        "ackclock: --meter-all: there are no meters; the link shows its status, and --metrics"
    );
    let log = folder.read("down.log");
    assert!(log.contains("# queue: droptail [packets=50]") && log.contains("[trace] > down.log"), "{log}");
    // 1500 bytes and the 4 of mm-link's TUN header
    assert!(log.lines().filter(|line| line.contains(" - 1504 ")).count() > 300, "{log}");
    assert!(folder.read("up.log").lines().any(|line| line.contains(" + ")));
    folder.write("short", "1\n400\n");
    let once = folder.run(&["link", "short", "short", "--once", "--closed", "sleep", "1000"]);
    assert_eq!((once.status, once.err.as_str()), (0, ""));
    let rates = folder.prints(&["link", "500K", "12M", "--cbr", "--generate"]);
    assert!(rates.contains("rate = \"500kbit/s\"") && rates.contains("rate = \"12Mbit/s\""), "{rates}");
}

#[test]
fn all_conditions_at_once_are_generated_and_read_back_unchanged() {
    let folder = Folder::new();
    let words = "link 1mbit 8mbit --delay 40ms --up-delay 30ms --down-delay 50ms --loss 5% --up-loss 1% --down-loss 20% \
                 --loss-burst 100ms --jitter 3ms --up-jitter 6ms,uniform --down-jitter 5ms,exponential \
                 --jitter-every 70ms --reorder 1%,20ms --duplicate 2% --corrupt 3% --generate";
    let text = folder.prints(&words.split_whitespace().collect::<Vec<_>>());
    folder.write("link.toml", &text);
    assert_eq!(folder.prints(&["check", "link.toml"]), "link.toml: ok\n");
    let again = folder.prints(&["link", "--scenario", "link.toml", "--generate"]);
    assert_eq!(again, text);
    let table: toml::Table = text.parse().expect("TOML");
    let (up, down) = (&table["edge"]["up"], &table["edge"]["down"]);
    assert_eq!(up["delay"].as_str(), Some("u(30ms, 3.464102ms)"), "D within 6 ms: 6 / sqrt(3)");
    assert_eq!(down["delay"].as_str(), Some("50ms + e(5ms)"));
    assert_eq!((&up["redraw"], &down["redraw"]), (&"interval(70ms)".into(), &"interval(70ms)".into()));
    for link in [up, down] {
        assert_eq!(link["reorder"].to_string(), "{ share = 0.01, extra = \"20ms\" }");
        assert_eq!((&link["duplicate"], &link["corrupt"]), (&0.02.into(), &0.03.into()));
    }
    for (link, share) in [(up, 0.01), (down, 0.2)] {
        let key = |key: &str| link["loss"][key].as_float().expect("a number");
        let (p, r) = (key("p"), key("r"));
        assert!((r - 0.1).abs() < 1e-12 && (p / (p + r) - share).abs() < 1e-12, "{link}");
    }
}

#[test]
fn conditions_have_defaults_and_a_direction_wins() {
    let folder = Folder::new();
    let made = |words: &str| {
        let words = format!("link 1mbit 8mbit --generate {words}");
        let text = folder.prints(&words.split_whitespace().collect::<Vec<_>>());
        let table: toml::Table = text.parse().expect("TOML");
        let of = |way: &str, key: &str| {
            table["edge"][way].get(key).map_or_else(String::new, |value| value.to_string().replace('"', ""))
        };
        ["up", "down"].map(|way| ["delay", "redraw", "loss"].map(|key| of(way, key)).join("|"))
    };
    for (words, up, down) in [
        ("--rtt 300ms", "150ms||", "150ms||"),
        ("--delay 10ms --up-delay 30ms", "30ms||", "10ms||"),
        ("--delay 40ms --jitter 10ms", "n(40ms, 10ms)|interval(100ms)|", "n(40ms, 10ms)|interval(100ms)|"),
        ("--delay 40ms --down-jitter 1ms", "40ms||", "n(40ms, 1ms)|interval(20ms)|"),
        ("--delay 40ms --jitter 1ms --jitter-every packet", "n(40ms, 1ms)|packet|", "n(40ms, 1ms)|packet|"),
        ("--down-loss 2% --jitter 0ms", "0ms||", "0ms||0.02"),
    ] {
        let [got_up, got_down] = made(words);
        assert_eq!((got_up.as_str(), got_down.as_str()), (up, down), "{words}");
    }
}

#[test]
fn impossible_conditions_are_refused_by_name() {
    let folder = Folder::new();
    folder.write("up.trace", "1\n400\n");
    for (words, told) in [
        ("--rtt 10ms --delay 5ms", "--delay"),
        ("--rtt 10ms --up-delay 5ms", "--up-delay"),
        ("--loss 1% --loss-burst 5ms", "--loss-burst 5ms: with a loss of 0.01"),
        ("--loss 100% --loss-burst 50ms", "--loss-burst 50ms: with a loss of 1"),
        ("--loss-burst 50ms", "add --loss SHARE"),
        ("--jitter-every 50ms", "add --jitter SPREAD"),
        (
            "--delay 10ms --jitter 5ms,pareto",
            "`pareto` is not a law of jitter; write normal, uniform or exponential",
        ),
        ("--delay 10ms --jitter 5ms --jitter-every soon", "write `packet` or a time of at least 10us"),
        ("--delay 10ms --jitter 15ms", "--jitter 15ms: more than the delay, 10ms"),
        ("--reorder 1%", "--reorder 1%: how much later packets leave is missing"),
        ("--delay 10ms --reorder 1%,0ms", "--reorder 1%: how much later packets leave is missing"),
        ("--duplicate 7", "`7` is not a probability"),
    ] {
        let words = format!("link 1mbit 8mbit --generate {words}");
        let error = folder.complains(2, &words.split_whitespace().collect::<Vec<_>>());
        assert!(error.contains(told), "{words}: {error}");
    }
}

#[test]
fn jitter_over_a_recording_is_redrawn_by_interval_and_keeps_its_rate() {
    let folder = Folder::new();
    folder.write("up.trace", "1\n400\n");
    let text =
        folder.prints(&["link", "up.trace", "8mbit", "--delay", "10ms", "--jitter", "2ms", "--generate"]);
    let up = &text.parse::<toml::Table>().expect("TOML")["edge"]["up"];
    let key = |key: &str| up[key].as_str().unwrap_or_default().to_owned();
    assert_eq!(["kind", "delay", "redraw"].map(key), ["trace", "n(10ms, 2ms)", "interval(20ms)"]);
    folder.write("link.toml", &text);
    assert_eq!(folder.prints(&["check", "link.toml"]), "link.toml: ok\n");
}

#[test]
fn a_reordered_packet_is_late_by_the_delay_if_nothing_else_is_said() {
    let folder = Folder::new();
    let words = "link 1mbit 8mbit --delay 30ms --down-delay 50ms --reorder 1% --generate";
    let text = folder.prints(&words.split_whitespace().collect::<Vec<_>>());
    let edge = &text.parse::<toml::Table>().expect("TOML")["edge"];
    let extra = |way: &str| edge[way]["reorder"]["extra"].as_str().unwrap_or_default().to_owned();
    assert_eq!((extra("up"), extra("down")), ("30ms".to_owned(), "50ms".to_owned()));
}

#[test]
fn jitter_above_a_third_of_the_delay_is_remarked_once() {
    let folder = Folder::new();
    let remarks = |words: &str| {
        let words = format!("link 1mbit 8mbit --generate {words}");
        let ended = folder.run(&words.split_whitespace().collect::<Vec<_>>());
        assert_eq!(ended.status, 0, "{words}");
        ended.err.matches("more than a third of the delay").count()
    };
    assert_eq!(remarks("--delay 40ms --jitter 20ms"), 1);
    assert_eq!(remarks("--delay 90ms --down-delay 40ms --jitter 20ms"), 1);
    for quiet in [
        "--delay 60ms --jitter 20ms",
        "--delay 40ms --jitter 20ms,uniform",
        "--delay 1ms --jitter 20ms,exponential",
    ] {
        assert_eq!(remarks(quiet), 0, "{quiet}");
    }
}

#[test]
fn an_option_and_set_for_one_key_are_refused_by_both_names() {
    let folder = Folder::new();
    for (words, told) in [
        (
            "--delay 40ms --set edge.down.delay=20ms",
            "--delay and --set edge.down.delay=20ms both set edge.down.delay",
        ),
        ("--delay 40ms --up-delay 9ms --set edge.up.delay=2ms", "--up-delay and --set edge.up.delay=2ms"),
        ("--rtt 40ms --set edge.up.delay=2ms", "--rtt and --set edge.up.delay=2ms"),
        ("--buffer 4p --set edge.buffer=8p", "--buffer 4p and --set edge.buffer=8p both set edge.buffer"),
        ("--corrupt 1% --set edge.up.corrupt=0", "--corrupt and --set edge.up.corrupt=0"),
    ] {
        let words = format!("link 1mbit 8mbit --generate {words}");
        let error = folder.complains(2, &words.split_whitespace().collect::<Vec<_>>());
        assert!(error.contains(told) && error.contains("leave one out"), "{words}: {error}");
    }
    for words in ["--buffer 4p --set edge.buffer=4p", "--down-delay 40ms --set edge.up.delay=20ms"] {
        let words = format!("link 1mbit 8mbit --generate {words}");
        folder.prints(&words.split_whitespace().collect::<Vec<_>>());
    }
}

#[test]
fn a_generated_scenario_is_checked_run_and_generated_again() {
    let folder = Folder::new();
    let text = folder.prints(&[
        "link",
        "1mbit",
        "8mbit",
        "--delay",
        "40ms",
        "--loss",
        "0.01",
        "--buffer",
        "20p",
        "--regulator",
        "ack-regulator",
        "--uplink-queue=codel",
        "--uplink-queue-args=packets=9,target=5",
        "--generate",
    ]);
    folder.write("link.toml", &text);
    assert_eq!(folder.prints(&["check", "link.toml"]), "link.toml: ok\n");
    assert_eq!(folder.prints(&["link", "--scenario", "link.toml", "--generate"]), text);
    let run = last_object(&folder.prints(&["run", "link.toml", "--set", "duration=5s", "--json"]));
    assert_eq!(run["bottleneck"]["capacity_bps"], 8e6);
    assert_eq!(run["flows"][0]["regulator"], "ack-regulator");
}

#[test]
fn a_scenario_is_emulated_with_its_steps_and_says_what_it_does_not_look_at() {
    let Some(folder) = ready(&["python3"]) else { return };
    let at = "[[edge.at]]\ntime = \"0s\"\nset = { down.rate = \"4Mbit/s\", down.delay = \"5ms\" }\n";
    folder.write("steps.toml", format!("{}{at}", crate::common::SCENARIO.replace("200kbit/s", "20kbit/s")));
    let ended = folder.run(&[
        "link",
        "--scenario",
        "steps.toml",
        "--json",
        "--server",
        &server("reno", 200_000),
        "--",
        "sh",
        "-c",
        DOWNLOAD,
    ]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert!(ended.err.contains("it does not look at duration, [flow], [sweep]"), "{}", ended.err);
    // 1.6 Mbit would take 80 s at the 20 kbit/s that the link has without the step.
    let goodput = download(&last_object(&ended.out))["goodput_bps"].as_f64().unwrap();
    assert!(goodput > 20e3, "{goodput}");
}

#[test]
fn a_running_link_is_changed_and_looked_at_from_inside_and_outside() {
    let Some(folder) = ready(&[]) else { return };
    let script = "\"$0\" link set down.rate=1mbit edge.up.delay=30ms 'up.loss={kind=\"rayleigh\"}' up.loss.fer=0 && \
                  \"$0\" link show && \"$0\" link set buffer=2p; \"$0\" link set down.rate=fast; echo ready; read -r word";
    let ackclock = env!("CARGO_BIN_EXE_ackclock");
    let mut child = folder
        .command(&["link", "8mbit", "8mbit", "--closed", "--", "sh", "-c", script, ackclock])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let seen = until_line(&mut child, "ready");
    assert_eq!(last_object(seen.trim_end().strip_suffix("ready").unwrap().trim_end())["seed"], 1);
    let process = child.id().to_string();
    assert_eq!(folder.prints(&["link", "set", "down.rate=0kbit", "--pid", &process]), "");
    assert_eq!(last_object(&folder.prints(&["link", "show", "--pid", &process]))["run"], 0);
    let message = folder.complains(1, &["link", "show", "--pid", "1"]);
    assert_eq!(message, "process 1 runs no link");
    let message = folder.complains(2, &["link", "show", "--watch", "50ms", "--pid", &process]);
    assert_eq!(message, "--watch 50ms: an interval is at least 100ms");
    let watching = ["link", "show", "--watch", "100ms", "--pid", &process];
    let mut watch = folder.command(&watching).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 40];
    watch.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    assert!(String::from_utf8_lossy(&first).contains("down Mbit/s"));
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert!(ended.err.contains("only keys of `down`, `up`, `bearer` and `user` can change"), "{}", ended.err);
    assert!(ended.err.contains("down.rate"), "{}", ended.err);
    let watched = Ended::from(watch.wait_with_output().unwrap());
    assert_eq!((watched.status, watched.err.as_str()), (0, ""), "it ends with the link");
    assert!(watched.out.contains(" 0.000 "), "{}", watched.out);
}

#[test]
fn an_outage_stops_a_direction_until_its_end_whatever_is_set_meanwhile() {
    let Some(folder) = ready(&["python3"]) else { return };
    // A connection to a closed port is refused by the other end, once packets pass in both directions.
    folder.write(
        "passes.py",
        "import errno, os, socket, sys\n\
         peer = socket.socket()\n\
         peer.settimeout(float(sys.argv[1]))\n\
         print(peer.connect_ex((os.environ['ACKCLOCK_BASE'], 9)) == errno.ECONNREFUSED)\n",
    );
    let lost = |options: &str, patience: &str| {
        let ackclock = env!("CARGO_BIN_EXE_ackclock");
        let script = format!(
            "{ackclock} link outage {options} && {ackclock} link set up.rate=2mbit down.delay=1ms && python3 passes.py {patience}"
        );
        let ended = folder.run(&["link", "1mbit", "1mbit", "--closed", "--json", "--", "sh", "-c", &script]);
        assert_eq!(ended.status, 0, "{}", ended.err);
        let uplink = &last_object(&ended.out)["uplink"];
        (ended.out.starts_with("True"), uplink["drops"].as_u64().unwrap())
    };
    assert_eq!(lost("1h", "1"), (false, 0));
    assert_eq!(lost("1h --direction down", "1"), (false, 0));
    let (passes, dropped) = lost("1h --direction up --drop", "1");
    assert!(!passes && dropped > 0, "{dropped}");
    assert_eq!(lost("100ms", "60"), (true, 0));
    assert_eq!(
        folder.complains(2, &["link", "outage", "0s"]),
        "outage 0s: an outage must last longer than 0"
    );
}

#[test]
fn every_profile_is_a_scenario_that_options_override() {
    let folder = Folder::new();
    let listed: serde_json::Value =
        serde_json::from_str(&folder.prints(&["list", "profiles", "--json"])).unwrap();
    let profiles = listed.as_array().unwrap();
    assert!(profiles.len() > 5);
    for profile in profiles {
        let name = profile["name"].as_str().unwrap();
        folder.write("profile.toml", folder.prints(&["link", "--profile", name, "--generate"]));
        folder.prints(&["check", "profile.toml"]);
        for key in ["source", "assumed", "buffer"] {
            assert!(profile[key].is_string(), "{name}: {key}");
        }
        assert!(folder.prints(&["list", "profile", name]).contains(profile["source"].as_str().unwrap()));
    }
    let changed = folder.prints(&[
        "link",
        "--profile",
        "3g",
        "--jitter",
        "20ms",
        "--loss",
        "1%",
        "--set",
        "edge.down.rate=2mbit",
        "--generate",
    ]);
    for value in ["n(150ms, 20ms)", "interval(200ms)", "loss = 0.01", "2mbit", "768kbit/s"] {
        assert!(changed.contains(value), "{value}: {changed}");
    }
    let told = [
        (&["link", "--profile", "5g"][..], "there are edge, 3g-slow, 3g"),
        (&["link", "--profile", "3g", "1mbit", "8mbit", "--", "true"], "--profile 3g says what the link is"),
        (&["link", "--profile", "cdma-1x", "--jitter", "5ms", "--generate"], "add --delay TIME"),
        (&["link", "3g", "3g"], "`3g` is a profile: ackclock link --profile 3g"),
        (&["list", "profiles", "5g"], "there are edge"),
    ];
    for (words, expected) in told {
        let message = folder.complains(2, words);
        assert!(message.contains(expected), "{words:?}: {message}");
    }
}

#[test]
fn a_ping_behind_a_profile_takes_its_round_trip() {
    let Some(folder) = ready(&["ping"]) else { return };
    let ping = "ping -c 1 -W 60 $ACKCLOCK_BASE | sed -n 's/.*time=\\([0-9]*\\).*/\\1/p'";
    let ended = folder.run(&["link", "--profile", "3g", "--closed", "--", "sh", "-c", ping]);
    let ms: u32 = ended.out.trim().parse().unwrap_or_else(|_| panic!("{}{}", ended.out, ended.err));
    // What the machine adds is its own.
    assert!(ms >= 300, "{ms} ms");
}

#[test]
fn links_nest_and_the_narrow_one_decides() {
    let Some(folder) = ready(&["python3"]) else { return };
    let inner = format!("{} link 10mbit 4mbit --json --", env!("CARGO_BIN_EXE_ackclock"));
    let ended = folder.run(&[
        "link", "10mbit", "20mbit", "--delay", "5ms", "--server", &server("cubic", 500_000), "--", "sh", "-c",
        &format!("outer=$ACKCLOCK_BASE {inner} sh -c 'test $outer != $ACKCLOCK_BASE; exec python3 client.py $outer'"),
    ]);
    let inner_closed = ended.err.contains("the inside reaches only");
    if inner_closed {
        eprintln!("skipped: {}", ended.err.trim());
        return;
    }
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert_eq!(ended.out.lines().next(), Some("500000"), "{}", ended.err);
    let results = last_object(&ended.out);
    let goodput = download(&results)["goodput_bps"].as_f64().unwrap();
    assert!(goodput < 4e6 && goodput > 0.4e6, "{goodput}");
}

#[test]
fn metrics_and_a_capture_are_there_when_asked_for() {
    let Some(folder) = ready(&["python3"]) else { return };
    // A port that was free a moment ago, of an address that nobody connects from in the meantime.
    let address = TcpListener::bind("127.77.0.1:0").unwrap().local_addr().unwrap();
    let script = format!("{DOWNLOAD}; echo ready; read -r word");
    let mut child = folder
        .command(&[
            "link",
            "8mbit",
            "8mbit",
            "--server",
            &server("reno", 100_000),
            "--metrics",
            &address.to_string(),
            "--pcap",
            "outside.pcapng",
            "--pcap-inside",
            "inside.pcapng",
            "--",
            "sh",
            "-c",
            &script,
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until_line(&mut child, "ready");
    let mut page = String::new();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    stream.read_to_string(&mut page).unwrap();
    // 8 Mbit/s are 1 MB/s.
    assert!(page.contains("ackclock_link_rate_bytes_per_second{direction=\"down\"} 1000000\n"), "{page}");
    assert!(page.contains("ackclock_flow_delivered_payload_bytes_total{flow=\"0\"} 100000\n"), "{page}");
    assert!(page.contains("ackclock_flow_info{flow=\"0\",protocol=\"tcp\",from=\"100."), "{page}");
    keeps_the_conventions(&page);
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert!(child.wait().unwrap().success());
    for file in ["outside.pcapng", "inside.pcapng"] {
        // 100 000 bytes of data, and nothing twice: no two packets from one end with data have the same number.
        let data = data_of(&fs::read(folder.path(file)).unwrap());
        let bytes: usize = data.iter().map(|(_, length)| length).sum();
        let mut numbers: Vec<_> = data.iter().map(|(number, _)| number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!((bytes, numbers.len()), (100_000, data.len()), "{file}");
        let analysis = "tcp.analysis.retransmission || tcp.analysis.lost_segment || tcp.analysis.duplicate_ack \
                        || tcp.analysis.out_of_order || tcp.analysis.ack_lost_segment";
        let seen = |filter: &str| {
            let path = folder.path(file);
            let tshark = Command::new("tshark").arg("-r").arg(path).args(["-Y", filter]).output().unwrap();
            assert!(tshark.status.success(), "{tshark:?}");
            String::from_utf8(tshark.stdout).unwrap()
        };
        if is_installed("tshark") {
            assert_eq!(seen(analysis), "", "{file}");
            assert!(seen("tcp.len > 0").lines().count() >= data.len(), "{file}");
        } else {
            eprintln!("skipped: tshark is not installed");
        }
    }
}

/// Every metric has help and a type, counters end in `_total` and nothing else does, and units are base units.
fn keeps_the_conventions(page: &str) {
    let body = page.split_once("\r\n\r\n").unwrap().1;
    let (mut kind, mut family) = ("", "");
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            family = rest.split_once(' ').unwrap().0;
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, of) = rest.split_once(' ').unwrap();
            kind = of;
            assert_eq!(name, family, "help and type of one metric");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
            let prefixed = ["_ms", "_bps", "_us", "_kbit", "_bits"].iter().any(|unit| name.contains(unit));
            assert!(name.starts_with("ackclock_") && !prefixed, "{line}");
        } else {
            let name = line.split(['{', ' ']).next().unwrap();
            let parts = ["", "_sum", "_count"].map(|part| format!("{family}{part}"));
            assert!(name == family || (kind == "summary" && parts.contains(&name.to_owned())), "{line}");
        }
    }
}

/// The sequence number and the length of each data segment of the server, which is at port 5001, in a capture: blocks of
/// pcapng of which those of type 6 have a raw IPv4 packet behind 20 bytes.
fn data_of(capture: &[u8]) -> Vec<(u32, usize)> {
    let word = |at: usize| u32::from_le_bytes(capture[at..at + 4].try_into().unwrap());
    let (mut at, mut found) = (0, Vec::new());
    while at < capture.len() {
        if word(at) == 6 {
            let packet = &capture[at + 28..];
            let ip = usize::from(packet[0] & 15) * 4;
            let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
            let tcp = &packet[ip..];
            let payload = total - ip - usize::from(tcp[12] >> 4) * 4;
            if packet[9] == 6 && tcp[..2] == 5001u16.to_be_bytes() && payload > 0 {
                found.push((u32::from_be_bytes(tcp[4..8].try_into().unwrap()), payload));
            }
        }
        at += word(at + 4) as usize;
    }
    found
}

/// A link whose command sends many packets, with these options.
const MANY_PACKETS: &str = "import os, socket\n\
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
    for _ in range(40000): s.sendto(bytes(1000), (os.environ['ACKCLOCK_BASE'], 9))\n";

#[test]
fn an_output_that_nobody_reads_costs_neither_the_link_nor_its_results() {
    let Some(folder) = ready(&["python3", "mkfifo"]) else { return };
    for name in ["capture", "log"] {
        assert!(Command::new("mkfifo").arg(folder.path(name)).status().unwrap().success());
    }
    // Held open, and never read: a pipe takes 64 KiB and then nothing more.
    let hold = |name: &str| fs::File::options().read(true).write(true).open(folder.path(name)).unwrap();
    let _held = [hold("capture"), hold("log")];
    let asked =
        ["link", "1gbit", "1gbit", "--closed", "--json", "--pcap-inside", "capture", "--uplink-log", "log"];
    let ended = folder.run(&[&asked[..], &["--", "python3", "-c", MANY_PACKETS]].concat());
    assert_eq!(ended.status, 1, "{}", ended.err);
    let sent = &last_object(&ended.out)["flows"][0]["segments_sent"];
    assert!(sent.as_u64().unwrap() > 1000, "{sent}");
    for name in ["capture", "log"] {
        let told = format!("ackclock: {name}: the end is missing: it was not taken in time, 5 s");
        assert!(ended.err.contains(&told), "{}", ended.err);
    }
}

#[test]
fn an_output_without_room_costs_no_results() {
    let Some(folder) = ready(&[]) else { return };
    for (option, said) in [
        ("--pcap", "the capture could not be written: /dev/full: No space left on device"),
        ("--downlink-log", "/dev/full: cannot be written: No space left on device"),
    ] {
        let asked = ["link", "1mbit", "1mbit", "--closed", "--json", option, "/dev/full", "--", "true"];
        let ended = folder.run(&asked);
        assert_eq!(ended.status, 1, "{}", ended.err);
        assert_eq!(last_object(&ended.out)["run"], 0);
        assert!(ended.err.contains(said), "{}", ended.err);
        let failed = folder.run(&[&asked[..8], &["sh", "-c", "exit 7"]].concat());
        assert_eq!(
            (failed.status, last_object(&failed.out)["run"].as_u64()),
            (7, Some(0)),
            "the command's own"
        );
        assert!(failed.err.contains(said), "{}", failed.err);
    }
}

#[test]
fn an_interrupt_for_the_link_is_one_for_the_command() {
    if ready(&[]).is_none() {
        return;
    }
    for (signal, status) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        // Where a shell runs the tests in the background, they and all that they start ignore an interrupt.
        let mut child = Command::new("env")
            .args(["--default-signal", env!("CARGO_BIN_EXE_ackclock"), "link", "1mbit", "1mbit", "--closed"])
            .args(["--", "sh", "-c", "echo ready; exec sleep 1000"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        until_line(&mut child, "ready");
        let kill = format!("kill -{signal} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(status), "{signal}");
    }
}

/// Starts a program as the first of a terminal of its own, which is closed when it says `ready`; prints how it ended.
const TERMINAL: &str = r#"
import os, pty, signal, sys
child, master = pty.fork()
if child == 0:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup make test` has it ignored
    os.execv(sys.argv[1], sys.argv[1:])
seen = b""
while b"ready" not in seen:
    seen += os.read(master, 1024)
os.close(master)
signal.alarm(60)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;

#[test]
fn a_link_that_is_the_first_program_of_its_terminal_ends_with_it() {
    let Some(folder) = ready(&["python3"]) else { return };
    folder.write("terminal.py", TERMINAL);
    let script = "echo ready; exec sleep 1000";
    let ended = Command::new("python3")
        .arg(folder.path("terminal.py"))
        .args([
            env!("CARGO_BIN_EXE_ackclock"),
            "link",
            "1mbit",
            "1mbit",
            "--closed",
            "--",
            "sh",
            "-c",
            script,
        ])
        .output()
        .map(Ended::from)
        .unwrap();
    // 128 and the number of the hang-up, of which the command died
    assert_eq!((ended.status, ended.out.as_str()), (0, "129\n"), "{}", ended.err);
}

#[test]
fn a_second_request_ends_a_link_whatever_hangs() {
    let Some(folder) = ready(&[]) else { return };
    for script in [
        "trap '' TERM; echo ready; while :; do sleep 1000; done",
        // It leaves no room for the results in a pipe that nobody reads.
        "echo ready; head -c 65536 /dev/zero",
    ] {
        let mut child = folder
            .command(&["link", "1mbit", "1mbit", "--closed", "--json", "--", "sh", "-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        until_line(&mut child, "ready");
        let kill = format!("kill -TERM {}", child.id());
        let ended = comes_true(|| {
            assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
            child.try_wait().unwrap().is_some()
        });
        assert!(ended, "{script}");
        assert_eq!(child.wait().unwrap().code(), Some(143), "{script}");
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the real world is waited for")]
fn a_request_that_is_ignored_from_the_start_stays_ignored() {
    let Some(folder) = ready(&[]) else { return };
    // As `nohup` starts it.
    let mut child = Command::new("env")
        .args(["--ignore-signal=HUP", env!("CARGO_BIN_EXE_ackclock"), "link", "1mbit", "1mbit", "--closed"])
        .args(["--", "sh", "-c", "echo ready; read -r word; exit 7"])
        .current_dir(folder.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    until_line(&mut child, "ready");
    for _ in 0..2 {
        let kill = format!("kill -HUP {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        // Longer than what is taken for one request.
        std::thread::sleep(std::time::Duration::from_millis(600));
    }
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(7));
}

/// The law of conservation for a direction of the results.
fn adds_up(way: &serde_json::Value) {
    let [sent, made, resent, delivered, drops, discarded, lost, waiting] =
        ["sent", "made", "resent", "delivered", "drops", "discarded", "lost_by_machine", "waiting"]
            .map(|key| way[key].as_u64().unwrap());
    assert_eq!(sent + made + resent, delivered + drops + discarded + lost + waiting, "{way}");
}

#[test]
fn a_burst_of_2000_datagrams_into_an_unlimited_queue_arrives_whole() {
    let Some(folder) = ready(&["python3"]) else { return };
    let burst = "import os, socket\n\
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
        for _ in range(2000): s.sendto(bytes(1172), (os.environ['ACKCLOCK_BASE'], 9))\n";
    folder.write("burst.py", burst);
    let script = format!("python3 burst.py; {ROUND_TRIP}");
    let ended = folder.run(&["link", "100mbit", "100mbit", "--closed", "--json", "--", "sh", "-c", &script]);
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
    let results = last_object(&ended.out);
    let (uplink, flow) = (&results["uplink"], download(&results));
    assert_eq!((&uplink["lost_by_machine"], &uplink["drops"]), (&0.into(), &0.into()));
    let counts = ["segments_sent", "delivered_bytes", "up_bytes"].map(|key| flow[key].as_u64().unwrap());
    assert_eq!(counts, [2000, 2000 * 1172, 2000 * 1200]);
    // 1172 of 1200 bytes are payload: no row has more than the link carries.
    assert!(flow["goodput_bps"].as_f64().unwrap() <= 1e8 * 1172.0 / 1200.0, "{flow}");
    [uplink, &results["bottleneck"]].into_iter().for_each(adds_up);
}

#[test]
fn what_the_machine_loses_is_counted_and_said_and_the_status_is_that_of_the_command() {
    let Some(folder) = ready(&["python3"]) else { return };
    folder.write("many.py", MANY_PACKETS.replace("1000", "10"));
    let script = format!("echo ready; read go; python3 many.py; echo done; read go; {ROUND_TRIP}; exit 7");
    let asked = ["link", "1gbit", "1gbit", "--closed", "--json", "--", "sh", "-c", &script];
    let mut child = folder
        .command(&asked)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let link = nix::unistd::Pid::from_raw(child.id() as i32);
    let signal = |signal| nix::sys::signal::kill(link, signal).unwrap();
    until_line(&mut child, "ready");
    // A link that does not run reads nothing from its devices, which then drop what they cannot hold.
    signal(nix::sys::signal::Signal::SIGSTOP);
    child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    until_line(&mut child, "done");
    signal(nix::sys::signal::Signal::SIGCONT);
    child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!(ended.status, 7, "{}", ended.err);
    let results = last_object(&ended.out);
    let lost = results["uplink"]["lost_by_machine"].as_u64().unwrap();
    let sent = download(&results)["segments_sent"].as_u64().unwrap();
    assert!(lost > 0 && lost + sent == 40_000, "{lost} lost of {sent}");
    let said = format!("this machine, not the emulated link, lost {lost} packets from the command (");
    assert!(ended.err.contains(&said), "{}", ended.err);
    [&results["uplink"], &results["bottleneck"]].into_iter().for_each(adds_up);
}

#[test]
fn ecn_is_asked_for_inside_and_by_the_server_only_as_said() {
    let Some(folder) = ready(&["python3"]) else { return };
    let setting = "/proc/sys/net/ipv4/tcp_ecn";
    let server = format!("cp {setting} server; exec python3 -m http.server 8000 2>/dev/null >&2");
    // 2 is the kernel's default: ECN is accepted and not asked for.
    for (options, expected) in [(&[][..], "2"), (&["--ecn"], "1")] {
        let asked = [&["link", "1gbit", "1gbit"], options, &["--server", &server, "--", "cat", setting]];
        let ended = folder.run(&asked.concat());
        assert_eq!((ended.status, ended.out.trim()), (0, expected), "{}", ended.err);
        assert_eq!(folder.read("server").trim(), expected);
    }
}

#[test]
fn fragments_that_are_selected_by_a_port_cross_with_their_datagram() {
    let Some(folder) = ready(&["python3"]) else { return };
    let fragments = "import os, socket\n\
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
        for _ in range(50): s.sendto(bytes(4000), (os.environ['ACKCLOCK_BASE'], 5005))\n";
    folder.write("fragments.py", fragments);
    let script = format!("python3 fragments.py; {ROUND_TRIP}");
    for (option, crossing, beside) in [("--only", 150, 0), ("--except", 0, 150)] {
        let asked = ["link", "1gbit", "1gbit", "--closed", "--json", option, "udp:5005", "--"];
        let ended = folder.run(&[&asked[..], &["sh", "-c", &script]].concat());
        assert_eq!((ended.status, ended.err.as_str()), (0, ""));
        let uplink = &last_object(&ended.out)["uplink"];
        let [sent, bypassed] = ["sent", "bypassed"].map(|key| uplink[key].as_u64().unwrap());
        assert!(sent.abs_diff(crossing) < 20 && bypassed.abs_diff(beside) < 20, "{option}: {uplink}");
    }
}

#[test]
fn fragments_are_in_the_row_named_other() {
    let Some(folder) = ready(&["python3"]) else { return };
    let fragments = "import os, socket\n\
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
        for _ in range(50): s.sendto(bytes(4000), (os.environ['ACKCLOCK_BASE'], 9))\n";
    folder.write("fragments.py", fragments);
    let script = format!("python3 fragments.py; {ROUND_TRIP}");
    let ended = folder.run(&["link", "10mbit", "10mbit", "--closed", "--json", "--", "sh", "-c", &script]);
    let results = last_object(&ended.out);
    let flows = results["flows"].as_array().unwrap();
    let other = flows.iter().find(|flow| flow["protocol"] == "other").unwrap();
    // 4008 bytes of UDP in three fragments with 20 bytes of IP each.
    assert!(other["up_bytes"].as_u64().unwrap() >= 50 * (4008 + 60), "{other}");
    for (way, key) in [("bottleneck", "down_bytes"), ("uplink", "up_bytes")] {
        let sum: u64 = flows.iter().map(|flow| flow[key].as_u64().unwrap()).sum();
        assert_eq!(results[way]["delivered_bytes"], sum, "{way}");
    }
}

#[test]
fn check_remarks_jitter_by_packet_that_shifts_the_mean() {
    let folder = Folder::new();
    let remarked = |rate: &str| {
        let words = [
            "link",
            rate,
            rate,
            "--delay",
            "40ms",
            "--jitter",
            "10ms",
            "--jitter-every",
            "packet",
            "--generate",
        ];
        folder.write("link.toml", folder.prints(&words));
        let ended = folder.run(&["check", "link.toml"]);
        assert_eq!((ended.status, ended.out.as_str()), (0, "link.toml: ok\n"));
        ended.err.matches("edge.down.redraw: packets stay in order").count()
    };
    assert_eq!((remarked("50mbit"), remarked("1mbit")), (1, 0));
}
