//! Network namespaces of a link: one for the command, and one for the far end of the link.
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
//! With root, the outside is the machine's network, in which the keeper stays. A veth pair connects the TUN to that
//! network:
//! ```text
//!        the machine's network             the router, a network namespace
//!  +--------------------------------+   +-----------------------------------+
//!  | keeper                         |   |                                   |
//!  | its interfaces == veth, base --+---+-- veth, router == TUN, router ----+-- ackclock -- inside
//!  |     (masquerade)    address    |   |       address          address    |
//!  +--------------------------------+   +-----------------------------------+
//! ```
//!
//! No resource is left behind, whichever process ends first, because every resource belongs to a process. When
//! `ackclock` ends, the kernel kills the keeper and all processes of its process namespace. A network namespace
//! disappears with its last process or socket (an open TUN counts as a socket). A TUN disappears with its last open
//! file, and a veth pair with the namespace of either end. An abstract socket or a firewall table disappears with the
//! socket that created it.

mod addresses;
mod channel;
pub(crate) mod forward;
mod inside;
pub(crate) mod interface;
mod keeper;
pub mod needs;
mod obstacle;
mod plan;
mod process;
mod publish;
mod refusals;
pub(crate) mod relay;
mod resolver;
pub(crate) mod router;
mod signals;
mod stream;
pub(crate) mod tun;
mod users;
mod veth;
mod world;

pub use addresses::Pair;
pub(crate) use addresses::{Candidate, v6};
pub use forward::{Forward, MOST_PORTS};
pub use obstacle::Obstacle;
pub(crate) use obstacle::Trying;
pub use plan::{Outside, Plan};
pub use publish::{Publish, Way};
pub use signals::{Received, Sender, Signals};
pub use tun::DeviceCounters;
pub use world::{Ends, World};
