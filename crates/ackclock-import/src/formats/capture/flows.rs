//! Flows of a capture: their bytes, the clocks of their senders, and the end of the path at which they were captured.

use crate::TraceError;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::IpAddr;

use super::packet::{Fate, Packet, Segment};
use super::packets::{Ended, each};
use super::sender_clock::{Clock, Envelope, Ticks};
use crate::formats::{Options, Towards};

/// Packets of one interface in one direction between two ports. Packets without a TCP header have ports 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    interface: u32,
    from: IpAddr,
    to: IpAddr,
    ports: (u16, u16),
}

impl Key {
    pub(super) fn of(packet: &Packet) -> Self {
        let ports = packet.segment.map_or((0, 0), |segment| segment.ports);
        Self { interface: packet.interface, from: packet.from, to: packet.to, ports }
    }

    fn reverse(self) -> Self {
        Self { from: self.to, to: self.from, ports: (self.ports.1, self.ports.0), ..self }
    }
}

/// One direction of a connection.
#[derive(Clone, Debug, Default)]
struct Flow {
    bytes: u64,
    ticks: Ticks,
    envelope: Envelope,
    /// Newest value of the sender's clock.
    newest: Option<u32>,
    /// Value of the sender's clock whose echo is awaited, and the time of its capture.
    awaited: Option<(u32, f64)>,
    /// Shortest time until the receiver echoed a value, seen where the packets were captured.
    reply: Option<f64>,
}

impl Flow {
    /// Awaits the echo of a value that is newer than all before. Values in segments before would be echoed too early.
    fn asks(&mut self, value: u32, at: f64) {
        if self.newest.is_none_or(|newest| value.wrapping_sub(newest) as i32 > 0) {
            self.newest = Some(value);
            self.awaited.get_or_insert((value, at));
        }
    }

    /// Takes the receiver's echo of a value.
    fn is_answered(&mut self, echo: u32, at: f64) {
        if let Some((_, asked)) = self.awaited.take_if(|(value, _)| echo.wrapping_sub(*value) as i32 >= 0) {
            self.reply = Some(self.reply.map_or(at - asked, |reply| reply.min(at - asked)));
        }
    }
}

/// Largest number of flows that are told apart.
const MOST_FLOWS: usize = 65_536;

/// All flows of a capture.
#[derive(Debug, Default)]
pub(super) struct Flows {
    flows: BTreeMap<Key, Flow>,
    /// For each pair of addresses, the one that began the first connection.
    clients: BTreeMap<(IpAddr, IpAddr), IpAddr>,
    /// How the file ended.
    pub(super) ended: Ended,
}

impl Flows {
    /// Reads the flows of a capture.
    ///
    /// # Errors
    /// Fails if the capture cannot be read.
    pub(super) fn read(source: impl Read) -> Result<Self, TraceError> {
        let mut flows = Self::default();
        flows.ended = each(source, |packet| flows.add(packet))?;
        Ok(flows)
    }

    fn add(&mut self, packet: &Packet) {
        if packet.fate != Fate::New {
            return;
        }
        let key = Key::of(packet);
        if self.flows.len() >= MOST_FLOWS && !self.flows.contains_key(&key) {
            return;
        }
        let flow = self.flows.entry(key).or_default();
        flow.bytes += packet.bytes;
        if packet.segment.is_some_and(|segment| segment.is_first) {
            self.clients
                .entry((packet.from.min(packet.to), packet.from.max(packet.to)))
                .or_insert(packet.from);
        }
        let Some(Segment { data, stamps: Some((value, echo)), .. }) = packet.segment else { return };
        if data > 0 {
            let ticks = flow.ticks.since_first(value);
            flow.envelope.add(packet.at, ticks);
        }
        flow.asks(value, packet.at);
        if let (Some(echo), Some(reverse)) = (echo, self.flows.get_mut(&key.reverse())) {
            reverse.is_answered(echo, packet.at);
        }
    }

    /// Chooses the packets that were captured at their receiver.
    ///
    /// # Errors
    /// Fails if no packet has the asked direction, or most were captured at their sender.
    pub(super) fn chosen(&self, options: &Options) -> Result<Chosen, TraceError> {
        let address = match (options.host, options.towards) {
            (None, Some(Towards::Server)) => Some(self.client()?),
            (None, Some(Towards::Mobile)) => self.client().ok(),
            (host, _) => host,
        };
        let host = Host { address, receives: options.towards != Some(Towards::Server) };
        let mut interfaces: BTreeMap<u32, Interface> = BTreeMap::new();
        let is_asked = |key: &Key| options.interface.is_none_or(|asked| asked == key.interface);
        for (key, flow) in self.flows.iter().filter(|(key, _)| host.is_met(key.from, key.to) && is_asked(key))
        {
            let back = self.flows.get(&key.reverse()).and_then(|reverse| reverse.reply);
            interfaces.entry(key.interface).or_default().add(key.to, flow.bytes, flow.reply.zip(back));
        }
        let of = |(number, interface): (u32, Interface)| {
            let (near, far) = interface.ends();
            (near, far, number, interface)
        };
        let order = |(near, _, number, ends): &(u64, u64, u32, Interface)| {
            (*near, ends.bytes(), std::cmp::Reverse(*number))
        };
        let most = interfaces.into_iter().map(of).max_by_key(order);
        let Some((near, far, interface, ends)) = most else {
            return Err(self.absent_interface(options).unwrap_or_else(|| host.is_absent()));
        };
        if near < far {
            return Err(TraceError::whole(
                "most of its bytes were captured near their sender, where only the offered load is seen: capture at the receiver; --host ADDRESS --direction down reads the packets to one address",
            ));
        }
        // Without a SYN, timestamps have to show the receivers.
        if options.towards.is_some() && host.address.is_none() && near == 0 {
            self.client()?;
        }
        let of_interface = self.flows.keys().filter(|key| key.interface == interface);
        let flows = of_interface.map(|key| Key { interface: 0, ..*key }).collect();
        Ok(Chosen { interface, flows, host, receivers: ends.receivers(), is_known: near > 0 })
    }

    /// The address that began nearly all connections, by bytes: the mobile.
    fn client(&self) -> Result<IpAddr, TraceError> {
        let (mut clients, mut all) = (BTreeMap::<IpAddr, u64>::new(), 0);
        for (key, flow) in &self.flows {
            all += flow.bytes;
            if let Some(client) = self.clients.get(&(key.from.min(key.to), key.from.max(key.to))) {
                *clients.entry(*client).or_default() += flow.bytes;
            }
        }
        let most = clients.into_iter().max_by_key(|(_, bytes)| *bytes);
        most.filter(|(_, bytes)| *bytes as f64 >= ONE_CLIENT * all as f64).map(|(client, _)| client).ok_or_else(|| {
            TraceError::whole(
                "--direction is seen from the mobile, and no address of the capture began 99 % of its traffic with a SYN: --host ADDRESS names the mobile",
            )
        })
    }

    /// Error for an interface that captured nothing, with those that did.
    fn absent_interface(&self, options: &Options) -> Option<TraceError> {
        let asked = options.interface?;
        let there: BTreeSet<u32> = self.flows.keys().map(|key| key.interface).collect();
        let there: Vec<String> = there.iter().take(20).map(u32::to_string).collect();
        let message =
            format!("interface {asked} captured none of these packets; interfaces are {}", there.join(", "));
        Some(TraceError::whole(message))
    }

    /// Clocks of the chosen flows' senders.
    pub(super) fn clocks(&self, chosen: &Chosen) -> BTreeMap<Key, (Clock, Ticks)> {
        let of = |(key, flow): (&Key, &Flow)| Some((*key, (flow.envelope.clock()?, Ticks::default())));
        self.flows
            .iter()
            .filter(|(key, _)| chosen.has(key.interface, key.from, key.to))
            .filter_map(of)
            .collect()
    }

    /// Bytes of the chosen flows by sender.
    pub(super) fn senders(&self, chosen: &Chosen) -> BTreeMap<IpAddr, u64> {
        let mut senders = BTreeMap::new();
        for (key, flow) in self.flows.iter().filter(|(key, _)| chosen.has(key.interface, key.from, key.to)) {
            *senders.entry(key.from).or_default() += flow.bytes;
        }
        senders
    }
}

/// Share of the bytes from which one address is the client.
const ONE_CLIENT: f64 = 0.99;

/// Address that all chosen packets have on one side.
#[derive(Clone, Copy, Debug)]
struct Host {
    address: Option<IpAddr>,
    receives: bool,
}

impl Host {
    fn is_met(self, from: IpAddr, to: IpAddr) -> bool {
        self.address.is_none_or(|address| address == if self.receives { to } else { from })
    }

    fn is_absent(self) -> TraceError {
        TraceError::whole(match self.address {
            Some(address) if self.receives => format!("it has no packet to {address}"),
            Some(address) => format!("it has no packet from {address}"),
            None => "it has no IP packet".to_owned(),
        })
    }
}

/// Bytes that one interface captured, by receiver: near the receiver, near the sender, and unknown.
#[derive(Debug, Default)]
struct Interface(BTreeMap<IpAddr, [u64; 3]>);

impl Interface {
    /// Adds a flow with the times in which its receiver and its sender replied: the near end replies sooner.
    fn add(&mut self, to: IpAddr, bytes: u64, replies: Option<(f64, f64)>) {
        let end = replies.map_or(2, |(receiver, sender)| usize::from(receiver > sender));
        self.0.entry(to).or_default()[end] += bytes;
    }

    /// All bytes.
    fn bytes(&self) -> u64 {
        self.0.values().flatten().sum()
    }

    /// Bytes near their receivers, and bytes near their senders.
    fn ends(&self) -> (u64, u64) {
        self.0.values().fold((0, 0), |(near, far), ends| (near + ends[0], far + ends[1]))
    }

    /// Addresses that are near; if replies show none, the address that received the most bytes.
    fn receivers(&self) -> BTreeSet<IpAddr> {
        let near = self.0.iter().filter(|(_, ends)| ends[0] > ends[1]).map(|(to, _)| *to);
        let near: BTreeSet<IpAddr> = near.collect();
        if !near.is_empty() {
            return near;
        }
        self.0.iter().max_by_key(|(_, ends)| ends[2]).map(|(to, _)| *to).into_iter().collect()
    }
}

/// Packets of one direction that were captured at their receivers.
#[derive(Debug)]
pub(super) struct Chosen {
    interface: u32,
    /// All flows of the interface, as those of interface 0.
    flows: BTreeSet<Key>,
    host: Host,
    /// Addresses of the receivers.
    pub(super) receivers: BTreeSet<IpAddr>,
    /// Whether replies show that the capture was made at the receivers.
    pub(super) is_known: bool,
}

impl Chosen {
    /// Whether a packet of an interface between two addresses is chosen.
    pub(super) fn has(&self, interface: u32, from: IpAddr, to: IpAddr) -> bool {
        interface == self.interface && self.receivers.contains(&to) && self.host.is_met(from, to)
    }

    /// Whether the chosen interface captured the packet's flow, too.
    pub(super) fn knows(&self, packet: &Packet) -> bool {
        self.flows.contains(&Key { interface: 0, ..Key::of(packet) })
    }

    /// Whether a packet that is not chosen comes from the receivers, or goes elsewhere over the chosen interface.
    pub(super) fn leaves_out(&self, packet: &Packet) -> bool {
        self.receivers.contains(&packet.from) || packet.interface == self.interface
    }
}
