//! `include/ackclock.h` states the structs, numbers and functions of the library.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::mem::offset_of;

use ackclock_c::abi::{self, AckclockLoad, AckclockOutput, AckclockSegment, AckclockView, Refusal};
use ackclock_core::Segment;
use ackclock_edge::{Output, Place, Verdict};
use ackclock_link::{Capacity, Cause};

use crate::host::{compile, file};

/// Static assertions of the size of a struct and of the offset of each field. A field that is missing here does not
/// compile.
macro_rules! layout {
    ($text:ident, $name:ident = $c:literal { $($field:ident),* }) => {
        let $name { $($field: _),* } = $name::default();
        writeln!($text, "_Static_assert(sizeof({}) == {}, \"size\");", $c, size_of::<$name>()).unwrap();
        $(
            let (field, offset) = (stringify!($field), offset_of!($name, $field));
            writeln!($text, "_Static_assert(offsetof({}, {field}) == {offset}, \"{field}\");", $c).unwrap();
        )*
    };
}

fn assertions() -> String {
    let mut text = "#include \"ackclock.h\"\n".to_owned();
    layout!(text, AckclockLoad = "ackclock_load" { packets, bytes });
    layout!(text, AckclockView = "ackclock_view" {
        size, capacity_unit, capacity, rate, waiting, in_transmission, unacknowledged, occupied
    });
    layout!(text, AckclockSegment = "ackclock_segment" {
        size, flow, packet, sequence, acknowledgement, timestamp_value, timestamp_echo, payload, header, window, mss,
        flags, ecn, window_scale, has_timestamps, sack_permitted, sack_blocks, reserved, sack
    });
    layout!(text, AckclockOutput = "ackclock_output" { size, action, segment });
    let numbers = [
        ("VERSION", i64::from(abi::VERSION)),
        ("NO_SCALE", i64::from(abi::NO_SCALE)),
        ("MADE", abi::MADE as i64),
        ("MOST_PACKETS", abi::MOST_PACKETS as i64),
        ("MOST_BYTES", abi::MOST_BYTES as i64),
        ("E_POINTER", Refusal::Pointer as i64),
        ("E_SIZE", Refusal::Size as i64),
        ("E_VALUE", Refusal::Value as i64),
        ("E_UNKNOWN_FLOW", Refusal::UnknownFlow as i64),
        ("E_FLOW_OPEN", Refusal::FlowOpen as i64),
        ("E_TIME", Refusal::Time as i64),
        ("E_FAILED", Refusal::Failed as i64),
    ];
    for (name, number) in numbers.into_iter().chain(choices()) {
        writeln!(text, "_Static_assert(ACKCLOCK_{name} == {number}, \"{name}\");").unwrap();
    }
    text
}

/// Numbers of verdicts, actions, causes and units, as the library converts them.
fn choices() -> Vec<(&'static str, i64)> {
    let verdict = |verdict| i64::from(abi::verdict(verdict));
    let action = |output: Output| i64::from(AckclockOutput::from(&output).action);
    let cause = |wanted| (0..9).find(|&number| abi::cause(number) == Ok(wanted)).unwrap().into();
    let unit = |wanted| {
        let view =
            |capacity_unit| AckclockView { capacity_unit, capacity: 1, ..AckclockView::default() }.view();
        (0..9).find(|&unit| view(unit).is_ok_and(|view| view.capacity == wanted)).unwrap().into()
    };
    let segment = Segment::default();
    vec![
        ("FORWARD", verdict(Verdict::Forward)),
        ("FORWARD_KEEP", verdict(Verdict::ForwardKeep)),
        ("DROP", verdict(Verdict::Drop)),
        ("MARK_CE", verdict(Verdict::MarkCe)),
        ("TO_SENDER", action(Output::ToSender(segment))),
        ("TO_RECEIVER_BACK", action(Output::ToReceiver { segment, place: Place::Back })),
        ("TO_RECEIVER_FRONT", action(Output::ToReceiver { segment, place: Place::Front })),
        ("DISCARD", action(Output::Discard(segment))),
        ("RELEASE", action(Output::Release(segment))),
        ("CAUSE_FULL", cause(Cause::Full)),
        ("CAUSE_POLICY", cause(Cause::Policy)),
        ("CAUSE_MEDIUM", cause(Cause::Medium)),
        ("CAUSE_OUTAGE", cause(Cause::Outage)),
        ("CAUSE_HANDOVER", cause(Cause::Handover)),
        ("CAUSE_AGED", cause(Cause::Aged)),
        ("UNLIMITED", unit(Capacity::Unlimited)),
        ("PACKETS", unit(Capacity::Packets(1))),
        ("BYTES", unit(Capacity::Bytes(1))),
    ]
}

#[test]
fn the_structs_and_numbers_of_the_header_are_those_of_the_library() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("layout.c");
    std::fs::write(&source, assertions()).unwrap();
    compile(|cc| cc.arg("-fsyntax-only").arg(&source));
}

/// A type of a function in Rust, as C writes it before the name of a parameter.
fn in_c(rust: &str) -> String {
    let (pointer, name) = match (rust.strip_prefix("*const "), rust.strip_prefix("*mut ")) {
        (Some(name), _) => ("const ", name),
        (_, Some(name)) => ("*", name),
        _ => ("", rust),
    };
    let name = match name {
        "u8" => "uint8_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "i32" => "int32_t",
        "usize" => "size_t",
        "c_char" => "char",
        "AckclockRegulator" => "ackclock_regulator",
        "AckclockSegment" => "ackclock_segment",
        "AckclockView" => "ackclock_view",
        "AckclockOutput" => "ackclock_output",
        other => panic!("no C type for {other}"),
    };
    match pointer {
        "const " => format!("const {name} *"),
        "*" => format!("{name} *"),
        _ => format!("{name} "),
    }
}

/// The prototype of a function in C, from the text between `extern "C" fn` and the brace of the body.
fn prototype(function: &str) -> String {
    let (name, rest) = function.split_once('(').unwrap();
    let (parameters, result) = rest.split_once(')').unwrap();
    let result = result.trim().strip_prefix("->").map_or("void ".to_owned(), |result| in_c(result.trim()));
    let parameters: Vec<String> = parameters
        .split(',')
        .map(str::trim)
        .filter(|parameter| !parameter.is_empty())
        .map(|parameter| parameter.split_once(": ").unwrap())
        .map(|(name, of)| in_c(of) + name)
        .collect();
    let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
    format!("{result}{name}({parameters});")
}

#[test]
fn the_functions_of_the_header_are_those_of_the_library() {
    let source = std::fs::read_to_string(file("src/exports.rs")).unwrap();
    let functions = source.split("extern \"C\" fn ").skip(1);
    let exported: BTreeSet<String> =
        functions.map(|function| prototype(function.split_once('{').unwrap().0)).collect();
    let header = std::fs::read_to_string(file("include/ackclock.h")).unwrap();
    let declared: BTreeSet<String> = header
        .lines()
        .filter(|line| line.ends_with(");") && !line.starts_with(' '))
        .map(str::to_owned)
        .collect();
    assert_eq!(exported, declared);
    assert_eq!(source.matches("#[unsafe(no_mangle)]").count(), exported.len());
}
