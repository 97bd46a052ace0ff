//! Seven connections beside a steady one: the first byte chooses the edge, the others are packets.
#![no_main]

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use ackclock_live::hostile::Neighbours;
use libfuzzer_sys::fuzz_target;

static EDGES: LazyLock<Vec<Neighbours>> =
    LazyLock::new(|| Neighbours::on_all_edges().unwrap_or_else(|error| panic!("{error}")));

fuzz_target!(|data: &[u8]| {
    let Some((which, script)) = data.split_first() else { return };
    match EDGES[usize::from(*which) % EDGES.len()].play(script) {
        Ok(entered) => count(entered),
        Err(wrong) => panic!("{wrong}"),
    }
});

/// Adds packets that entered a flow, and now and then writes their sum into the file that `ACKCLOCK_FUZZ_SUM` names.
fn count(entered: u64) {
    static SUM: AtomicU64 = AtomicU64::new(0);
    const BETWEEN: u64 = 1 << 12;
    let before = SUM.fetch_add(entered, Ordering::Relaxed);
    let after = before + entered;
    if before / BETWEEN != after / BETWEEN
        && let Some(file) = std::env::var_os("ACKCLOCK_FUZZ_SUM")
    {
        std::fs::write(&file, format!("{after}\n"))
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}
