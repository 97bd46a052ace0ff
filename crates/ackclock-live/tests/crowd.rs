//! Packets that wait one way leave room for those of the other.

use ackclock_core::{Size, Time};
use ackclock_edge::EdgeConfig;
use ackclock_link::NoFiles;
use ackclock_live::{Plane, PlaneConfig, Side};
use serde_json::json;

fn arrive(plane: &mut Plane, from: Side) {
    let mut buffer = plane.pool().buffer();
    let packet = plane.pool_mut().claim(&mut buffer, 100).unwrap();
    plane.arrive(Time::ZERO, from, packet);
}

#[test]
fn a_crowd_one_way_loses_its_own_packets_alone() {
    let way = json!({ "kind": "constant", "rate": "8kbit/s", "delay": "0ms" });
    let edge =
        EdgeConfig { down: way.clone(), up: way, buffer: Size::Packets(1000), ..EdgeConfig::default() };
    let config = PlaneConfig { packets: 64, ..PlaneConfig::new(&edge) };
    let mut plane = Plane::new(&config, &NoFiles).unwrap();
    (0..100).for_each(|_| arrive(&mut plane, Side::Radio));
    assert_eq!((plane.inside(), plane.overflowed()), (32, 68));
    (0..20).for_each(|_| arrive(&mut plane, Side::Wired));
    assert_eq!((plane.inside(), plane.overflowed()), (52, 68));
}
