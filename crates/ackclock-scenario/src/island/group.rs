//! A group of identical flows: its parsed components, and the connections built from them.

use std::sync::Arc;

use ackclock_core::results::Towards;
use ackclock_core::{ConfigError, FlowId, Seq, Time, name_of};
use ackclock_edge::Edge;
use ackclock_tcp::config::{Switch, window_bytes};
use ackclock_tcp::receiver::{Opening, WindowPolicy};
use ackclock_tcp::{Receiver, ReceiverConfig, Relay, Sender, SenderRow, Workload, relay};

use crate::Tables;
use crate::link_share::direction_of;
use crate::{FlowGroup, Headers, RelayTable};

/// A group of flows whose components are parsed.
pub(crate) struct Group {
    pub(crate) table: FlowGroup,
    /// Class of service.
    pub(crate) class: u8,
    pub(crate) sender_name: String,
    sender: Arc<dyn SenderRow>,
    pub(super) receiver: ReceiverConfig,
    relay: Option<RelayEnds>,
    pub(super) workload: Arc<dyn Workload>,
    /// Whether each flow of the group is one long-lived connection, not a client with short connections.
    pub(crate) lasts: bool,
}

/// Components of the relay for the flows of one group.
struct RelayEnds {
    receiver: ReceiverConfig,
    sender: Arc<dyn SenderRow>,
    sender_name: String,
    steered: Option<Steered>,
}

/// Settings of flows whose congestion windows the relay's steering sets.
struct Steered {
    /// Sender whose congestion control applies while the steering is inactive.
    own: Arc<dyn SenderRow>,
    together: SteeredTogether,
}

/// Set of flows that one steering controls together.
#[derive(Clone, Copy, PartialEq)]
enum SteeredTogether {
    /// Steers the flows of all users together, because they share one channel.
    All,
    /// Steers the flows of each user separately.
    Each,
}

/// Sequence number of the first data byte; the SYN uses the number before.
pub(super) const FIRST: Seq = Seq(1);

/// Panic message: the sender was already built once with the same options, so building it again cannot fail.
const READ: &str = "the group was read by building one with the same options";

impl Group {
    pub(super) fn new(table: &FlowGroup, tables: &Tables) -> Result<Self, ConfigError> {
        let sender = table.sender()?;
        let together =
            if tables.edge.cell_users()?.is_some() { SteeredTogether::Each } else { SteeredTogether::All };
        let relay = tables.relay.as_ref();
        let ends = relay.map(|relay| RelayEnds::new(relay, together, table, &**sender)).transpose();
        let relay = ends.map_err(|error| error.under("relay"))?;
        // With a relay, the receiver's peer is the relay, not the server.
        let heard = relay.as_ref().map_or(&**sender, |ends| &*ends.sender);
        Ok(Self {
            receiver: receiver(table, heard)?,
            relay,
            class: tables.class(table)?,
            table: table.clone(),
            sender_name: name_of(&table.sender),
            sender: Arc::clone(sender),
            workload: Arc::clone(table.workload()?),
            lasts: table.lasts()?,
        })
    }

    /// Builds both endpoints of a connection whose data starts at sequence number `first`. The new endpoints have no
    /// data to send yet. With a relay, only the endpoints at the server and at the mobile are built; [`Self::split`]
    /// builds the relay's endpoints.
    pub(crate) fn connection(&self, id: FlowId, start: Time, first: Seq) -> (Box<dyn Sender>, Receiver) {
        let mut sender = self.sender_of(&*self.sender, id, start, first);
        if !self.workload.is_endless() {
            // File servers set TCP_NODELAY.
            sender.set_nodelay();
        }
        (sender, receiver_of(self.receiver, id, first))
    }

    /// Whether each flow of the group transfers one file.
    pub(super) fn is_file(&self) -> bool {
        self.lasts && !self.workload.is_endless()
    }

    /// Tells the edge the direction of a flow's data, and whether its headers are hidden, before its first segment.
    pub(crate) fn announce(&self, edge: &mut Edge, flow: FlowId) {
        edge.expect_data(flow, direction_of(self.table.towards));
        if self.table.headers == Headers::Encrypted {
            edge.hide_headers(flow);
        }
    }

    /// Splits the connection `id` of the user `cell_user` at `relay`, if the scenario has a relay. The new endpoints
    /// are created at `now` and start at `start`.
    pub(crate) fn split(
        &self,
        relay: &mut Relay,
        id: FlowId,
        cell_user: u32,
        [now, start]: [Time; 2],
        first: Seq,
    ) {
        let Some(RelayEnds { receiver, sender, steered, .. }) = &self.relay else { return };
        let receiver = receiver_of(*receiver, id, first);
        let params = self.table.params(id, start, first);
        match (self.table.towards, steered) {
            (Towards::Mobile, Some(Steered { own, together })) => {
                let sender = params.and_then(|params| sender.build_steered(params, &**own)).expect(READ);
                relay.split(id, relay::SERVER, receiver, sender);
                relay.steer(now, id, if *together == SteeredTogether::All { 0 } else { cell_user });
            }
            (towards, _) => {
                let from = if towards == Towards::Mobile { relay::SERVER } else { relay::EDGE };
                relay.split(id, from, receiver, self.sender_of(&**sender, id, start, first));
            }
        }
    }

    /// Name of the relay's sender; `None` if the scenario has no relay.
    pub(crate) fn relay_sender_name(&self) -> Option<&str> {
        self.relay.as_ref().map(|relay| &*relay.sender_name)
    }

    fn sender_of(&self, row: &dyn SenderRow, id: FlowId, start: Time, first: Seq) -> Box<dyn Sender> {
        let sender = self.table.params(id, start, first).and_then(|params| row.build(params));
        sender.expect(READ)
    }
}

fn receiver_of(config: ReceiverConfig, id: FlowId, first: Seq) -> Receiver {
    let opening = match config.opening {
        Opening::Established(_) => Opening::Established(first),
        opening => opening,
    };
    Receiver::new(ReceiverConfig { opening, ..config }, id)
}

impl RelayEnds {
    fn new(
        relay: &RelayTable,
        together: SteeredTogether,
        table: &FlowGroup,
        far: &dyn SenderRow,
    ) -> Result<Self, ConfigError> {
        let max_window = relay.buffer_bytes()?;
        Ok(Self {
            receiver: ReceiverConfig { max_window, window: WindowPolicy::Unread, ..receiver(table, far)? },
            sender: Arc::clone(relay.row(table)?),
            sender_name: name_of(relay.sender.as_ref().unwrap_or(&table.sender)),
            steered: if relay.listens()? { Some(Steered { own: relay.fallback()?, together }) } else { None },
        })
    }
}

/// Receiver configuration that suits `sender`.
fn receiver(table: &FlowGroup, sender: &dyn SenderRow) -> Result<ReceiverConfig, ConfigError> {
    let mss = sender.build(table.params(FlowId(0), Time::ZERO, FIRST)?)?.mss();
    let options = sender.config();
    let on = |switch: Option<Switch>| switch == Some(Switch::On);
    // The MSS fits into 16 bits, because a packet has at most 65535 bytes.
    let mss = mss as u16;
    Ok(ReceiverConfig {
        opening: match options.handshake {
            Switch::On if table.towards == Towards::Server => Opening::Awaited,
            Switch::On => Opening::Handshake,
            Switch::Off => Opening::Established(FIRST),
        },
        acks: table.acks()?.policy(),
        ack_size: table.ack_size.0,
        max_window: window_bytes(table.max_window, mss).map_err(|error| error.under("max_window"))?,
        window: table.receive_window,
        mss,
        sack: sender.uses_sack(),
        dsack: on(Some(table.dsack)),
        timestamps: on(options.timestamps),
        ecn: options.ecn.unwrap_or_default(),
        encrypted: table.headers == Headers::Encrypted,
    })
}
