//! The committed BPF objects are what the C says.

use ackclock_testkit::objects_are_current;

#[test]
fn the_committed_objects_are_compiled_from_the_committed_source() {
    objects_are_current(env!("CARGO_MANIFEST_DIR"), "clip");
}
