//! Any script is either refused at one of its lines or comes to an end.

use ackclock_exchange::hostile;
use proptest::prelude::*;

const SCRIPT: &str = include_str!("../../../tests/exchanges/k-frto.pkt");
const ESTABLISHED: &str = include_str!("../../../tests/exchanges/rfc7323-paws.pkt");

/// A script with a few characters changed, removed or inserted.
fn damaged(text: &'static str) -> impl Strategy<Value = String> {
    let place = any::<prop::sample::Index>();
    let damage = (place, 0u8..3, prop_oneof![any::<char>(), prop::char::range(' ', '~'), Just('\n')]);
    prop::collection::vec(damage, 0..6).prop_map(|damages| {
        let mut letters: Vec<char> = text.chars().collect();
        for (place, kind, letter) in damages {
            let at = place.index(letters.len().max(1));
            match kind {
                0 if at < letters.len() => letters[at] = letter,
                1 if at < letters.len() => drop(letters.remove(at)),
                _ => letters.insert(at.min(letters.len()), letter),
            }
        }
        letters.into_iter().collect()
    })
}

/// Words of scripts in random order.
fn shuffled() -> impl Strategy<Value = String> {
    let words = [
        "\n",
        "+0",
        "+.1~+.2",
        "*",
        "<",
        ">",
        "S",
        ".",
        "FP.",
        "0:0(0)",
        "1:1001(1000)",
        "ack",
        "1",
        "win",
        "65535",
        "<mss 1000,nop>",
        "<...>",
        "%{",
        "}%",
        "assert tcpi_rto > 0",
        "`",
        "//!nosyn",
        "//!sender reno",
        "//",
        "/*",
        "*/",
        "--tolerance_usecs=1",
        "socket(..., SOCK_STREAM, IPPROTO_TCP) = 3",
        "listen(3, 1) = 0",
        "write(4, ..., 4000000000) = 4000000000",
        "close(4) = 0",
        "accept(3, ..., ...) = 4",
    ];
    prop::collection::vec(prop::sample::select(words.to_vec()), 0..30).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_refused_by_a_line_or_comes_to_an_end(
        text in prop_oneof![damaged(SCRIPT), damaged(ESTABLISHED), shuffled(), "\\PC{0,60}"]
    ) {
        prop_assert_eq!(hostile::script(&text), Ok(()));
    }
}
