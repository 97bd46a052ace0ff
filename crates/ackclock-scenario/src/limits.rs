//! Limits of a result other than the link: windows, the wired path, the buffer, and the run's duration.

use ackclock_core::{ConfigError, FlowId, Rate, Seq, Size, Span, Time, name_of};
use ackclock_edge::ChannelSharing;
use ackclock_link::Files;
use ackclock_tcp::config::window_bytes;

use crate::FlowGroup;
use crate::{PathTable, Scenario, ScenarioError, Tables};

/// Lowest link utilisation at which the link itself counts as the limit.
const FULL: f64 = 0.95;

/// Rate above which a buffer of few packets is reported, and the number of packets that are enough.
const FAST: Rate = Rate::from_bps(1_000_000);
const FEW: u64 = 8;

/// A limit of the result: the scenario key that changes it, and an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Scenario key that changes the limit.
    pub key: &'static str,
    /// Explanation of the limit for the user, with numbers.
    pub message: String,
}

impl Scenario {
    /// Finds what limits downloads that use the fraction `utilisation` of the link, unless the link itself is the
    /// limit. The limit can be the windows, the wired path, or a buffer below bandwidth x delay. For a cell the result
    /// is always `None`. With a relay, only the buffer is examined.
    ///
    /// # Errors
    /// Returns an error if a file named by a link is invalid.
    pub fn limit(&self, files: &dyn Files, utilisation: Option<f64>) -> Result<Option<Limit>, ScenarioError> {
        if utilisation.is_none_or(|used| used >= FULL) {
            return Ok(None);
        }
        self.tables().limit(files).map_err(|error| self.error(&error))
    }

    /// Reports the buffer as a limit if it holds less than bandwidth x delay in packets of 1500 bytes.
    ///
    /// # Errors
    /// Returns an error if a file named by a link is invalid.
    pub fn buffer_limit(&self, files: &dyn Files) -> Result<Option<Limit>, ScenarioError> {
        let channel = Channel::of(self.tables(), files).map_err(|error| self.error(&error))?;
        Ok(channel.and_then(|channel| channel.buffer(self.tables().edge.radio().buffer, 1500)))
    }

    /// Mean rate and base RTT of the download channel; `None` for a cell, whose scheduler divides the rate.
    ///
    /// # Errors
    /// Returns an error if a file named by a link is invalid.
    pub fn rate_and_base_rtt(&self, files: &dyn Files) -> Result<Option<(Rate, Span)>, ScenarioError> {
        let channel = Channel::of(self.tables(), files).map_err(|error| self.error(&error))?;
        Ok(channel.map(|channel| (channel.rate, channel.round_trip)))
    }

    /// Warnings about a run that is too short: shorter than an RTT, or finished before a flow starts.
    ///
    /// # Errors
    /// Returns an error if a file named by a link is invalid.
    pub fn too_short(&self, files: &dyn Files) -> Result<Vec<String>, ScenarioError> {
        let (name, tables) = (self.name(), self.tables());
        let late = |(index, flow): (usize, &FlowGroup)| {
            (flow.start >= tables.duration).then(|| {
                let (start, duration) = (flow.start, tables.duration);
                format!("{name}: flow.{index}.start: {start} is not before the end of the run, {duration}: the flow sends nothing")
            })
        };
        let mut remarks: Vec<_> = tables.flow.iter().enumerate().filter_map(late).collect();
        let channel = Channel::of(tables, files).map_err(|error| self.error(&error))?;
        if let Some(Channel { round_trip, .. }) =
            channel.filter(|channel| tables.duration < channel.round_trip)
        {
            let duration = tables.duration;
            remarks.push(format!(
                "{name}: duration: {duration} is shorter than a round trip, {}",
                in_ms(round_trip)
            ));
        }
        Ok(remarks)
    }

    /// Remarks on settings of the links whose effect is larger than it looks.
    ///
    /// # Errors
    /// Returns an error if a link is invalid.
    pub fn said_of_links(&self) -> Result<Vec<String>, ScenarioError> {
        let remarks = self.tables().edge.radio().remarks().map_err(|error| self.error(&error))?;
        Ok(remarks.into_iter().map(|remark| format!("{}: edge.{remark}", self.name())).collect())
    }

    /// Message that flow keys missing from the file have defaults of 2002; `None` if the file has a preset or all keys.
    pub fn said_of_defaults(&self) -> Option<String> {
        let said = self.said();
        let flows = said.get("flow").and_then(|flows| flows.as_array());
        let tables = self.tables();
        // Media has a packet, and none of the keys of TCP.
        let needs =
            |index: usize, key: &str| key == "packet" || !tables.flow[index].is_media().unwrap_or(false);
        let says = |key: &&str| {
            let said =
                |(index, flow): (usize, &serde_json::Value)| flow.get(*key).is_some() || !needs(index, key);
            flows.is_some_and(|flows| flows.iter().enumerate().all(said))
        };
        let open: Vec<_> = OF_AN_ERA.into_iter().filter(|key| !says(key)).collect();
        (self.names_flows() && tables.preset.is_none() && !open.is_empty()).then(|| {
            let (name, keys) = (self.name(), open.join(", "));
            format!(
                "{name} has no preset: {keys} of its flows have defaults of 2002; for current TCP set `preset = \"linux\"`"
            )
        })
    }
}

/// Keys of a flow whose typical values have changed since 2002.
const OF_AN_ERA: [&str; 5] = ["sender", "packet", "max_window", "initial_window", "acks"];

impl Tables {
    fn limit(&self, files: &dyn Files) -> Result<Option<Limit>, ConfigError> {
        let Some(channel) = Channel::of(self, files)? else { return Ok(None) };
        let downloads: Vec<_> = self.flow.iter().filter(|flow| flow.towards.is_mobile()).collect();
        if downloads.is_empty() {
            return Ok(None);
        }
        for flow in &downloads {
            if !flow.workload()?.is_endless() || flow.is_media()? {
                // A finite transfer may simply have run out of data, and a picture needs no more than its best bitrate:
                // the link utilisation says nothing about limits.
                return Ok(None);
            }
        }
        let windows = if self.relay.is_none() { channel.windows(self, &downloads)? } else { None };
        let wires = if self.relay.is_none() { channel.wires(self, &downloads) } else { None };
        let packet = downloads.iter().filter_map(|flow| packet_bytes(flow)).max().unwrap_or(0);
        let hard = windows.into_iter().chain(wires).min_by_key(|(rate, _)| *rate).map(|(_, limit)| limit);
        let deep = || channel.buffer(self.edge.radio().buffer, packet);
        Ok(hard.or_else(deep).or_else(|| channel.budget(self, packet)))
    }

    /// Number of flows of a group that share one channel.
    fn sharing(&self, flow: &FlowGroup) -> u64 {
        match self.edge.channel {
            ChannelSharing::Shared => flow.count.into(),
            ChannelSharing::Dedicated => 1,
        }
    }
}

/// Rate and RTT of the download channel, without queueing delay.
struct Channel {
    rate: Rate,
    round_trip: Span,
}

impl Channel {
    /// Reports the buffer of a box that only observes as a limit, if the buffer is fixed and holds less than bandwidth x
    /// delay in packets of `packet` bytes.
    fn budget(&self, tables: &Tables, packet: u32) -> Option<Limit> {
        let needed = self.rate.bytes_in(self.round_trip);
        let holds = match tables.edge.buffer {
            Size::Packets(packets) => u64::from(packets) * u64::from(packet),
            Size::Bytes(bytes) => bytes,
            Size::Time(_) | Size::Bdp(_) => return None,
        };
        let regulates =
            name_of(&tables.edge.bearer) == "observed" && name_of(&tables.edge.regulator) != "none";
        let message = format!(
            "{}, {:.1} kB, is the window budget of a box, and less than bandwidth x delay, {:.1} kB ({} x {}): it limits the \
             rate; \"3bdp\" follows the rate and the loop that the box measures",
            tables.edge.buffer,
            holds as f64 / 1e3,
            needed as f64 / 1e3,
            in_bps(self.rate),
            in_ms(self.round_trip)
        );
        (regulates && holds < needed).then_some(Limit { key: "edge.buffer", message })
    }

    /// Rate and RTT of a scenario's channel; `None` for a cell, whose scheduler divides the rate.
    fn of(tables: &Tables, files: &dyn Files) -> Result<Option<Self>, ConfigError> {
        let under = |error: ConfigError| error.under("edge");
        if tables.edge.cell_users().map_err(under)?.is_some() {
            return Ok(None);
        }
        let nominal = tables.edge.nominal(files).map_err(under)?;
        let wired = |path: &PathTable| path.delay * 2;
        let core = tables.relay.as_ref().map_or(Span::ZERO, |relay| wired(&relay.core));
        Ok(Some(Self { rate: nominal.rate, round_trip: wired(&tables.path) + core + nominal.delay }))
    }

    /// Reports the windows of `flows` as a limit, with the rate that they allow, if together they cannot fill the link.
    fn windows(&self, tables: &Tables, flows: &[&FlowGroup]) -> Result<Option<(Rate, Limit)>, ConfigError> {
        let mut bits_per_second = 0.0;
        for flow in flows {
            let mss = flow.sender()?.build(flow.params(FlowId(0), Time::ZERO, Seq(1))?)?.mss();
            let payload = f64::from(window_bytes(flow.max_window, mss as u16)?);
            let wire = payload * f64::from(packet_bytes(flow).unwrap_or(mss)) / f64::from(mss);
            let round_trip = (self.round_trip + flow.route * 2).as_secs_f64();
            bits_per_second += wire * 8.0 / round_trip * tables.sharing(flow) as f64;
        }
        let rate = Rate::from_bps_f64(bits_per_second);
        let size = flows.iter().map(|flow| flow.max_window.to_string()).collect::<Vec<_>>().join(", ");
        let message = format!(
            "{size} in a round trip of {} are at most {}, but the link has {}",
            in_ms(self.round_trip),
            in_bps(rate),
            in_bps(self.rate)
        );
        Ok((rate < self.rate).then_some((rate, Limit { key: "flow.max_window", message })))
    }

    /// Reports the wired path as a limit, with its rate, if the wired path is slower than the link.
    fn wires(&self, tables: &Tables, flows: &[&FlowGroup]) -> Option<(Rate, Limit)> {
        let wires: u64 = flows.iter().map(|flow| tables.sharing(flow)).sum();
        let rate = Rate::from_bps(tables.path.rate.as_bps().saturating_mul(wires));
        let message = format!(
            "the wired path has {} per flow, {} in total, but the link has {}",
            tables.path.rate,
            in_bps(rate),
            in_bps(self.rate)
        );
        (rate < self.rate).then_some((rate, Limit { key: "path.rate", message }))
    }

    /// Reports the buffer as a limit if the buffer and the packet in transmission (`packet` bytes) together hold less
    /// than bandwidth x delay, or if the buffer of a fast link holds only a few packets.
    fn buffer(&self, buffer: Size, packet: u32) -> Option<Limit> {
        let most = self.rate.bytes_in(self.round_trip);
        let holds = match buffer {
            Size::Packets(packets) => u64::from(packets) * u64::from(packet),
            Size::Bytes(bytes) => bytes,
            Size::Time(time) => self.rate.bytes_in(time),
            Size::Bdp(factor) => (most as f64 * factor) as u64,
        };
        if holds + u64::from(packet) >= most {
            let message = format!(
                "{buffer}, {:.1} kB, is less than {FEW} packets of {packet} bytes: bursts of a sender do not fit, and the \
                 link idles after their losses",
                holds as f64 / 1e3
            );
            let is_few = self.rate > FAST && holds < FEW * u64::from(packet);
            return is_few.then_some(Limit { key: "edge.buffer", message });
        }
        let message = format!(
            "{buffer}, {:.1} kB, is less than bandwidth x delay, {:.1} kB ({} x {}): windows within it do not fill the link, and \
             the link idles while larger ones recover; \"1bdp\" holds that much",
            holds as f64 / 1e3,
            most as f64 / 1e3,
            in_bps(self.rate),
            in_ms(self.round_trip)
        );
        Some(Limit { key: "edge.buffer", message })
    }
}

/// Size of a full packet in bytes; `None` if `packet` has another unit, which the scenario check refuses.
fn packet_bytes(flow: &FlowGroup) -> Option<u32> {
    match flow.packet {
        Size::Bytes(bytes) => u32::try_from(bytes).ok(),
        _ => None,
    }
}

fn in_bps(rate: Rate) -> String {
    let bps = rate.as_bps() as f64;
    if bps >= 1e6 { format!("{:.1} Mbit/s", bps / 1e6) } else { format!("{:.1} kbit/s", bps / 1e3) }
}

fn in_ms(time: Span) -> String {
    format!("{:.1} ms", time.as_millis_f64())
}
