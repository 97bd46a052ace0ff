//! A thread that wakes late, and ends that answer while it writes to them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use ackclock_core::{PacketId, Span, Time};
use ackclock_edge::EdgeConfig;
use ackclock_link::NoFiles;
use ackclock_live::{Came, Clock, Driver, Orders, Plane, PlaneConfig, Pool, Port, Ready, Side, Went};
use serde_json::json;

/// What has come to each port and was not read yet, and when what was written where.
#[derive(Default)]
struct World {
    now: Time,
    late: Span,
    came: [VecDeque<Vec<u8>>; 2],
    written: Vec<(Time, Side)>,
}

/// Every sleep ends late.
struct LateClock(Rc<RefCell<World>>);

impl Clock for LateClock {
    fn now(&mut self) -> Time {
        self.0.borrow().now
    }

    fn wait(&mut self, until: Option<Time>) -> io::Result<Ready> {
        let mut world = self.0.borrow_mut();
        let ports = world.came.each_ref().map(|came| !came.is_empty());
        if ports == [false; 2] {
            world.now = world.now.max(until.unwrap_or(world.now) + world.late);
        }
        Ok(Ready { ports, order: false })
    }
}

/// Nobody is at the wired end. The mobile answers each packet with a small one while it is written.
struct End(Rc<RefCell<World>>, Side);

impl Port for End {
    fn read(&mut self, pool: &mut Pool, into: &mut Vec<PacketId>) -> io::Result<Came> {
        let Some(bytes) = self.0.borrow_mut().came[self.1 as usize].pop_front() else {
            return Ok(Came::Nothing);
        };
        let mut buffer = pool.buffer();
        buffer[..bytes.len()].copy_from_slice(&bytes);
        into.extend(pool.claim(&mut buffer, bytes.len()));
        Ok(Came::Packets { lost: 0 })
    }

    fn write(&mut self, _: &[u8]) -> io::Result<Went> {
        let mut world = self.0.borrow_mut();
        let written = (world.now, self.1);
        world.written.push(written);
        if self.1 == Side::Radio {
            world.came[Side::Radio as usize].push_back(vec![1; 50]);
        }
        Ok(Went::Out)
    }
}

/// When answers were written at the wired end, to a packet and one 300 ms later, where each sleep ends so much late.
fn answered(late: Span) -> Vec<Span> {
    let way = json!({ "kind": "constant", "rate": "1Mbit/s", "delay": "10ms" });
    let edge = EdgeConfig { down: way.clone().into(), up: way.into(), ..EdgeConfig::default() };
    let world = World { late, ..World::default() };
    let world = Rc::new(RefCell::new(world));
    let ports = Side::BOTH.map(|side| End(world.clone(), side));
    let plane = Plane::new(&PlaneConfig::new(&edge), &NoFiles).unwrap();
    let (orders, _remote) = Orders::new().unwrap();
    let mut driver = Driver::new(plane, LateClock(world.clone()), ports);
    for end_ms in [300, 600] {
        world.borrow_mut().came[Side::Wired as usize].push_back(vec![0; 1000]);
        driver.run(&orders, Some(Time::ZERO + Span::from_millis(end_ms))).unwrap();
        world.borrow_mut().now = Time::ZERO + Span::from_millis(end_ms);
    }
    let written = &world.borrow().written;
    written.iter().filter(|(_, side)| *side == Side::Wired).map(|(at, _)| at.since(Time::ZERO)).collect()
}

/// 8 ms of the link and 10 of the radio down, 0.4 and 10 up.
const ROUND_TRIP: Span = Span::from_micros(28_400);

#[test]
fn an_answer_to_what_was_written_late_counts_as_if_it_had_been_written_in_time() {
    let late = Span::from_micros(70);
    let second = ROUND_TRIP + Span::from_millis(300);
    assert_eq!(answered(Span::ZERO), [ROUND_TRIP, second]);
    assert_eq!(answered(late), [ROUND_TRIP + late, second + late]);
}

#[test]
fn what_was_written_very_late_was_not_answered_long_ago() {
    let late = Span::from_millis(5);
    // The answer is taken for a millisecond earlier than it came, and then waits for the next late sleep to end.
    let came = ROUND_TRIP + Span::from_millis(4);
    assert_eq!(answered(late), [came + late, came + late + Span::from_millis(300)]);
}
