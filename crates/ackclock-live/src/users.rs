//! Numbers of users, which are the mobiles to which connections belong.
//!
//! An IPv4 user is an address on the mobile side. An IPv6 user is the first 64 bits of an address, because a mobile may
//! change the remaining bits (RFC 6459 section 5.2). A user's number is in use while one of the user's connections is
//! open, and is then reused. The number of user numbers never exceeds the number of connections.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Users with open connections.
#[derive(Debug, Default)]
pub(crate) struct Users {
    known: BTreeMap<IpAddr, User>,
    /// Unused user numbers; the number used next is last.
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct User {
    number: u32,
    connections: u32,
}

impl Users {
    /// Adds a connection of the user with this address, and returns the user's number.
    pub(crate) fn enter(&mut self, address: IpAddr) -> u32 {
        let next = self.known.len() as u32;
        let user = self.known.entry(prefix(address)).or_insert_with(|| User {
            // If the list of unused numbers is empty, all numbers below `next` are in use.
            number: self.free.pop().unwrap_or(next),
            connections: 0,
        });
        user.connections += 1;
        user.number
    }

    /// Removes a connection of the user with this address.
    pub(crate) fn leave(&mut self, address: IpAddr) {
        let prefix = prefix(address);
        let Some(user) = self.known.get_mut(&prefix) else { return };
        user.connections -= 1;
        if user.connections == 0 {
            self.free.push(user.number);
            self.known.remove(&prefix);
        }
    }
}

fn prefix(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(users: &mut Users, address: &str) -> u32 {
        users.enter(address.parse().unwrap())
    }

    #[test]
    fn a_mobile_is_one_user_whatever_it_puts_behind_its_64_bits() {
        let mut users = Users::default();
        let numbers =
            ["10.0.0.2", "10.0.0.3", "2001:db8::1", "2001:db8::ffff:1", "2001:db8:0:1::1", "10.0.0.2"];
        assert_eq!(numbers.map(|address| enter(&mut users, address)), [0, 1, 2, 2, 3, 0]);
    }

    #[test]
    fn a_number_goes_to_another_when_the_last_connection_has_gone() {
        let mut users = Users::default();
        for address in ["10.0.0.2", "10.0.0.2", "10.0.0.3"] {
            enter(&mut users, address);
        }
        users.leave("10.0.0.2".parse().unwrap());
        assert_eq!(enter(&mut users, "10.0.0.4"), 2);
        users.leave("10.0.0.2".parse().unwrap());
        assert_eq!((enter(&mut users, "10.0.0.5"), enter(&mut users, "10.0.0.2")), (0, 3));
    }
}
