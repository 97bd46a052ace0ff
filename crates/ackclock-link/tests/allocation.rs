//! After warm-up no packet costs an allocation, on any link behind any queue.

// An allocator can only be written in unsafe code; this one counts and hands on.
#![allow(unsafe_code)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ackclock_core::{Span, Time};
use ackclock_link::{Capacity, Departures, Link};
use common::{every_link, every_queue, link, segment};

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Offers three flows' packets of 1000 bytes every 4 ms, twice what the links carry, for so many rounds.
fn offer(link: &mut dyn Link, from: u32, rounds: u32) {
    for round in from..from + rounds {
        let now = Time::ZERO + Span::from_millis(4) * u64::from(round);
        while link.poll_event(now).is_some() {}
        let _ = link.enqueue(now, &segment(round % 3, round, 1000));
    }
}

#[test]
fn no_packet_allocates_after_warm_up() {
    for table in every_link() {
        for queue in every_queue() {
            let mut link = link(&table, &queue, Capacity::Packets(20), 1);
            link.watch(Departures::Watched);
            offer(&mut *link, 0, 20_000);
            let before = COUNT.with(Cell::get);
            offer(&mut *link, 20_000, 5_000);
            let allocations = COUNT.with(Cell::get) - before;
            // A fade longer than all before it lengthens what waits, or a histogram by an octave; that is rare, and no packet's
            // doing.
            let rare = if table["kind"] == "cell" { 3 } else { 0 };
            assert!(allocations <= rare, "{allocations}: {table} behind {queue}");
        }
    }
}
