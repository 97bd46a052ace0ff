//! Whose connection it is, where packets are real.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use ackclock_core::{Segment, Time};
use ackclock_edge::{EdgeConfig, FlowContext, Output, Regulator, RegulatorConfig, Scope};
use ackclock_link::{LinkView, NoFiles};
use ackclock_live::{Plane, PlaneConfig, Side};
use etherparse::PacketBuilder;

/// First flow and user of each regulator, in the order in which they were built.
#[derive(Clone, Debug, Default)]
struct Passing(Arc<Mutex<Vec<(u32, u32)>>>);

struct Pass(Vec<Segment>);

impl RegulatorConfig for Passing {
    fn build(&self, context: FlowContext) -> Option<Box<dyn Regulator>> {
        self.0.lock().unwrap().push((context.flow.0, context.user));
        Some(Box::new(Pass(Vec::new())))
    }

    fn scope(&self) -> Scope {
        Scope::User
    }
}

impl Regulator for Pass {
    fn handle_ack(&mut self, _: Time, ack: Segment, _: LinkView) {
        self.0.push(ack);
    }

    fn poll_output(&mut self, _: Time) -> Option<Output> {
        self.0.pop().map(Output::ToSender)
    }
}

/// Data from port 80 of a server to a port of a mobile.
fn data(mobile: &str, port: u16) -> Vec<u8> {
    let ip = match mobile.parse().unwrap() {
        IpAddr::V4(mobile) => PacketBuilder::ipv4([10, 0, 0, 1], mobile.octets(), 64),
        IpAddr::V6(mobile) => PacketBuilder::ipv6([1; 16], mobile.octets(), 64),
    };
    let mut bytes = Vec::new();
    ip.tcp(80, port, 1, 500).ack(1).write(&mut bytes, &[0; 100]).unwrap();
    bytes
}

/// A plane with room for five connections, and what its regulators were built for.
fn plane(edge: &EdgeConfig) -> (Plane, Passing) {
    let built = Passing::default();
    let config = PlaneConfig { flows: 5, ..PlaneConfig::new(edge) };
    let plane = Plane::with_regulator(&config, Arc::new(built.clone()), &NoFiles).unwrap();
    (plane, built)
}

/// Lets a packet pass from the server, and returns what regulators were built for it.
fn takes(plane: &mut Plane, built: &Passing, bytes: &[u8]) -> Vec<(u32, u32)> {
    let mut buffer = plane.pool().buffer();
    buffer[..bytes.len()].copy_from_slice(bytes);
    let packet = plane.pool_mut().claim(&mut buffer, bytes.len()).unwrap();
    plane.arrive(Time::ZERO, Side::Wired, packet);
    while let Some(at) = plane.next_wake() {
        plane.advance(at);
        while let Some(departure) = plane.poll_departure() {
            plane.release(departure.packet);
        }
    }
    std::mem::take(&mut *built.0.lock().unwrap())
}

#[test]
fn connections_to_one_mobile_share_the_regulator_of_a_user() {
    let edge = EdgeConfig::default();
    let (mut plane, built) = plane(&edge);
    let mut takes = |mobile, port| takes(&mut plane, &built, &data(mobile, port));
    assert_eq!(takes("10.0.0.2", 1000), [(1, 0)]);
    assert_eq!(takes("10.0.0.2", 1001), []);
    assert_eq!(takes("10.0.0.3", 1000), [(3, 1)]);
    assert_eq!(takes("2001:db8::1", 1000), [(4, 2)]);
    assert_eq!(takes("2001:db8::2", 1000), [], "within the same 64 bits");
}

#[test]
fn the_number_of_a_user_without_connections_is_given_to_another() {
    let edge = EdgeConfig::default();
    let (mut plane, built) = plane(&edge);
    let mobiles = (2..42).map(|host| format!("10.0.0.{host}"));
    let users: Vec<_> = mobiles.flat_map(|mobile| takes(&mut plane, &built, &data(&mobile, 1000))).collect();
    assert!(
        users.iter().all(|&(_, user)| user <= 5),
        "40 mobiles, at most five connections at a time: {users:?}"
    );
    assert!(users.len() > 5, "numbers are given again: {users:?}");
}

/// The packet with this DSCP.
fn marked(mut bytes: Vec<u8>, dscp: u8) -> Vec<u8> {
    if bytes[0] >> 4 == 4 {
        bytes[1] = dscp << 2;
        let (sum, carry) =
            (!u16::from_be_bytes([bytes[10], bytes[11]])).overflowing_add(u16::from(dscp << 2));
        bytes[10..12].copy_from_slice(&(!(sum + u16::from(carry))).to_be_bytes());
    } else {
        bytes[0] |= dscp >> 2;
        bytes[1] |= dscp << 6;
    }
    bytes
}

#[test]
fn a_connection_has_the_class_of_the_dscp_of_its_first_packet() {
    let table = serde_json::json!({
        "bearer": "radio-access",
        "class": [{"name": "a", "dscp": [34, 36]}, {"name": "b", "dscp": [63]}],
    });
    let edge: EdgeConfig = serde_json::from_value(table).unwrap();
    for mobile in ["10.0.0.2", "2001:db8::1"] {
        let (mut plane, built) = plane(&edge);
        let mut takes = |port, dscp| takes(&mut plane, &built, &marked(data(mobile, port), dscp));
        // The regulator of a user serves all connections of one class.
        assert_eq!(takes(1000, 0), [(1, 0)]);
        assert_eq!(takes(1001, 34), [(2, 0)]);
        assert_eq!(takes(1002, 36), [], "the same class");
        assert_eq!(takes(1003, 63), [(4, 0)]);
        assert_eq!(takes(1004, 8), [], "no class has this DSCP");
        assert_eq!(takes(1000, 63), [], "the class of a connection does not change");
    }
}
