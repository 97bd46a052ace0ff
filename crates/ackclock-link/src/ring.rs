//! The ring in which packets wait and travel.

use std::collections::VecDeque;

use ackclock_core::{Segment, Time};

/// Packets up to which a ring doubles; larger ones grow by an eighth, because with thousands of flows the room that
/// doubling leaves empty would be most of the memory.
const DOUBLES_UP_TO: usize = 1024;

/// Puts a packet behind all others.
#[inline]
pub(crate) fn push(ring: &mut VecDeque<(Time, Segment)>, time: Time, segment: &Segment) {
    if ring.len() == ring.capacity() {
        make_room(ring);
    }
    ring.push_back((time, *segment));
}

#[cold]
fn make_room(ring: &mut VecDeque<(Time, Segment)>) {
    let more = if ring.len() < DOUBLES_UP_TO { ring.len().max(4) } else { ring.len() / 8 };
    ring.reserve_exact(more);
}
