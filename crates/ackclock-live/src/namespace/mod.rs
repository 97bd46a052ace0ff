//! The namespaces of a link: where the command runs, and where the link ends on the other side.
//!
//! ```text
//!  ackclock (this process)            outside                              inside
//!  +----------------------+   +---------------------------+   +-----------------------------+
//!  | engine, control,     |   | the machine's network, or |   | a network namespace: the    |
//!  | metrics, status line |   | a namespace of our own    |   | TUN is its default route    |
//!  +--+----------------+--+   |   keeper (process 1 of a  |   |   the command or a shell    |
//!     |                |      |   process namespace)      |   |                             |
//!     |                +------+-- TUN, base address       |   |                             |
//!     +-----------------------+---------------------------+---+-- TUN, inside address       |
//!                             +---------------------------+   +-----------------------------+
//! ```
//!
//! Nothing is left behind, whoever dies first, because everything belongs to a process: the keeper is killed by the
//! kernel when `ackclock` dies, all processes of its process namespace with it; a network namespace goes with its last
//! process, a TUN with its last open file, an abstract socket and a firewall table with the socket that made them.

mod addresses;
mod channel;
mod inside;
pub(crate) mod interface;
mod keeper;
pub(crate) mod netlink;
mod obstacle;
mod resolver;
mod signals;
pub(crate) mod tun;
mod users;
mod world;

pub use addresses::Pair;
pub use obstacle::Obstacle;
pub use signals::{Received, Sender, Signals};
pub use world::{Ends, Outside, Plan, World};
