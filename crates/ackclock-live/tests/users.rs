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

#[test]
fn connections_to_one_mobile_share_the_regulator_of_a_user() {
    let (edge, built) = (EdgeConfig::default(), Passing::default());
    let config = PlaneConfig { flows: 5, ..PlaneConfig::new(&edge) };
    let mut plane = Plane::with_regulator(&config, std::sync::Arc::new(built.clone()), &NoFiles).unwrap();
    let mut takes = |mobile, port| {
        let bytes = data(mobile, port);
        let mut buffer = plane.pool().buffer();
        buffer[..bytes.len()].copy_from_slice(&bytes);
        let packet = plane.pool_mut().claim(&mut buffer, bytes.len()).unwrap();
        plane.arrive(Time::ZERO, Side::Wired, packet);
        plane.advance(plane.next_wake().unwrap_or(Time::ZERO));
        while let Some(departure) = plane.poll_departure() {
            plane.release(departure.packet);
        }
        std::mem::take(&mut *built.0.lock().unwrap())
    };
    assert_eq!(takes("10.0.0.2", 1000), [(1, 0)]);
    assert_eq!(takes("10.0.0.2", 1001), []);
    assert_eq!(takes("10.0.0.3", 1000), [(3, 1)]);
    assert_eq!(takes("2001:db8::1", 1000), [(4, 2)]);
    assert_eq!(takes("2001:db8::2", 1000), [], "within the same 64 bits");
}
