//! The namespaces of a link: where the command runs, and where the link ends on the other side.
//!
//! ```text
//!  ackclock (this process)            outside                              inside
//!  +----------------------+   +---------------------------+   +-----------------------------+
//!  | engine, control,     |   | a network namespace with  |   | a network namespace: the    |
//!  | metrics, status line |   | the keeper (process 1 of  |   | TUN is its default route    |
//!  +--+----------------+--+   | a process namespace)      |   |   the command or a shell    |
//!     |                |      |                           |   |                             |
//!     |                +------+-- TUN, base address       |   |                             |
//!     +-----------------------+---------------------------+---+-- TUN, inside address       |
//!                             +---------------------------+   +-----------------------------+
//! ```
//!
//! With root the outside is the network of the machine, in which the keeper stays. A veth pair leads there from the TUN:
//! ```text
//!        the machine's network             the router, a network namespace
//!  +--------------------------------+   +-----------------------------------+
//!  | keeper                         |   |                                   |
//!  | its interfaces == veth, base --+---+-- veth, router == TUN, router ----+-- ackclock -- inside
//!  |     (masquerade)    address    |   |       address          address    |
//!  +--------------------------------+   +-----------------------------------+
//! ```
//!
//! Nothing is left behind, whoever dies first, because everything belongs to a process: the keeper is killed by the
//! kernel when `ackclock` dies, all processes of its process namespace with it; a network namespace goes with its last
//! process or socket (an open TUN is one), a TUN with its last open file, a veth pair with the namespace of either end, an abstract socket and a firewall table with the socket that made them.

mod addresses;
mod channel;
mod inside;
pub(crate) mod interface;
mod keeper;
pub mod needs;
pub(crate) mod netlink;
mod obstacle;
mod plan;
pub(crate) mod relay;
mod resolver;
pub(crate) mod router;
mod signals;
pub(crate) mod tun;
mod users;
mod veth;
mod world;

pub use addresses::Pair;
pub(crate) use addresses::{Candidate, v6};
pub use obstacle::Obstacle;
pub(crate) use obstacle::Trying;
pub use plan::{Outside, Plan};
pub use signals::{Received, Sender, Signals};
pub use tun::DeviceCounters;
pub use world::{Ends, World};
