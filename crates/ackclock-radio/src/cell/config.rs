//! Configuration of a cell and of its users.

use std::sync::Arc;

use ackclock_core::{Component, Config, ConfigError, Law, Rate, Span, Unused};
use ackclock_link::short_flows::ShortFlows;
use ackclock_link::{
    AnyLink, CellChange, CellUser, ChangeContext, Errors, FadingKind, Files, LinkConfig, LinkContext, Nominal,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Cell;
use super::control::ControlSlots;
use super::harq::HarqConfig;
use super::rank::Rank;
use super::rates::{self, RateRow, linear};
use crate::scheduler::{SCHEDULERS, Scheduler, SchedulerConfig, SchedulerContext};

/// A cell: many users share one channel, which fades independently for each user, and a scheduler serves one user per
/// slot. The users are listed in `[[edge.user]]`. Each flow has a separate queue, and each user a separate uplink.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CellConfig {
    /// Scheduler: a name, or a table with `kind`.
    pub scheduler: Component<dyn SchedulerConfig>,
    /// Order in which the packets of a user are served.
    pub order: IntraUser,
    /// Rules by which a flow counts as short.
    pub short_flow: ShortFlows,
    /// Whether each flow or each user has a buffer of the size `edge.buffer`.
    pub buffer_per: BufferPer,
    /// Packet that is dropped if a buffer shared by a user's flows is full.
    pub overflow: Overflow,
    /// Distribution of the one-way propagation delay. Packets of one user stay in order.
    pub delay: Law<Span>,
    /// Packet loss on the radio: a probability, independent for each packet, or an error process, independent for each
    /// user.
    pub loss: Errors,
    /// Retransmission of failed slots; without this table only `loss` causes losses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harq: Option<HarqConfig>,
    /// Number of slots per second.
    pub slots: u32,
    /// Slots without data of users: a share of all slots such as "10%", for control information, or a pattern that
    /// repeats, "DDDD-", in which only the slots D have data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<ControlSlots>,
    /// Delay from the measurement of a user's channel until the user can be served at the measured rate, slots.
    pub drc_delay: u32,
    /// Method of cutting packets into slots.
    pub transport: Transport,
    /// Use of the rest of a slot after the end of a packet.
    pub remainder: Remainder,
    /// PDUs in a block, for an air interface of the bearer "radio-access".
    pub pdus: BlockPdus,
    /// Rates, each with the SNR that it needs; rates and SNRs increase.
    pub rates: Vec<RateRow>,
    /// Users of the cell, set by the edge; one user by default.
    #[serde(skip)]
    users: Vec<CellUser>,
    /// Ranks of the classes of service, set by a bearer above the cell; one class by default.
    #[serde(skip)]
    pub(super) ranks: Vec<Rank>,
}

/// Order in which the packets of a user are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IntraUser {
    /// Packets are served in order of arrival.
    #[default]
    Fifo,
    /// Packets of short flows are served first, in order of arrival; then long flows are served in turn.
    Sfp,
}

/// Whether each flow or each user has a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BufferPer {
    /// Each flow has a separate buffer.
    #[default]
    Flow,
    /// The flows of a user share a buffer; `overflow` selects the packet that is dropped if the buffer is full.
    User,
}

/// Packet that is dropped if a buffer shared by a user's flows is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Overflow {
    /// Drops the head of the user's longest queue, so that a long flow cannot crowd out a short flow.
    #[default]
    Longest,
    /// Drops the arriving packet; with `order = "fifo"` each user then has one drop-tail queue.
    Arriving,
}

/// Method of cutting packets into slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// A slot delivers its rate times its length in bits.
    #[default]
    Bits,
    /// A service sends one physical packet with the `bits` of the table row, and keeps its rate for the row's `slots`.
    Packets,
}

/// Use of the rest of a slot after the end of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Remainder {
    /// The rest of the slot is used for the start of the user's next packet.
    #[default]
    Next,
    /// The rest of the slot stays unused.
    Waste,
}

/// PDUs of the radio link control in a block of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BlockPdus {
    /// A block holds whole PDUs, and the rest is padding (MAC-hs of HSDPA release 5).
    #[default]
    Whole,
    /// A PDU that does not fit continues in the user's next block (MAC-ehs of release 7).
    Split,
}

/// Maximum number of users of a cell.
const MOST_USERS: u64 = 100_000;

impl Default for CellConfig {
    /// Returns a 1xEV-DO cell with proportional fair scheduling.
    fn default() -> Self {
        Self {
            scheduler: "pf".into(),
            order: IntraUser::Fifo,
            short_flow: ShortFlows::default(),
            buffer_per: BufferPer::Flow,
            overflow: Overflow::Longest,
            delay: "u(75ms, 30ms)".parse().expect("a law written here and tested"),
            loss: Errors::NONE,
            harq: None,
            slots: 600,
            control: None,
            drc_delay: 0,
            transport: Transport::Bits,
            remainder: Remainder::Next,
            pdus: BlockPdus::Whole,
            rates: rates::evdo(),
            users: vec![CellUser::default()],
            ranks: vec![Rank::default()],
        }
    }
}

impl Config for CellConfig {
    fn check(&self) -> Result<(), ConfigError> {
        self.scheduler()?;
        self.short_flow.check().map_err(|error| error.under("short_flow"))?;
        self.loss.check().map_err(|error| error.under("loss"))?;
        self.harq.iter().try_for_each(HarqConfig::check).map_err(|error| error.under("harq"))?;
        rates::check(&self.rates)?;
        if !(1..=1_000_000).contains(&self.slots) {
            return Err(ConfigError::new(
                "slots",
                format!("{} is not from 1 to 1000000 a second", self.slots),
            ));
        }
        if self.control.is_some() && self.transport == Transport::Packets {
            let message = "with transport = \"packets\" a service lasts for several slots; use \"bits\"";
            return Err(ConfigError::new("control", message));
        }
        let incomplete = self.rates.iter().position(|row| row.bits.is_none() || row.slots.is_none());
        match (self.transport, incomplete) {
            (Transport::Packets, Some(row)) => Err(ConfigError::new(
                format!("rates[{row}]"),
                "has no `bits` and `slots`, which transport = \"packets\" needs",
            )),
            _ => Ok(()),
        }
    }

    fn complete(self) -> Result<Self, ConfigError> {
        let scheduler = self.scheduler.complete(&SCHEDULERS).map_err(|error| error.under("scheduler"))?;
        let loss = self.loss.complete().map_err(|error| error.under("loss"))?;
        let harq = self.harq.map(HarqConfig::complete).transpose().map_err(|error| error.under("harq"))?;
        Ok(Self { scheduler, loss, harq, ..self })
    }
}

impl CellConfig {
    /// Checks a group of users of this self.
    fn check_user(&self, user: &CellUser) -> Result<(), ConfigError> {
        let nyquist = f64::from(self.slots) / 2.0;
        if user.count == 0 {
            return Err(ConfigError::new("count", "0 is not above 0"));
        }
        if !(-100.0..=100.0).contains(&user.mean_snr) {
            return Err(ConfigError::new(
                "mean_snr",
                format!("{} is not from -100 to 100 dB", user.mean_snr),
            ));
        }
        if !(0.0..=nyquist).contains(&user.doppler) {
            let message =
                format!("{} is not from 0 to {nyquist} Hz, half the slots of a second", user.doppler);
            return Err(ConfigError::new("doppler", message));
        }
        let without = self.rates.iter().position(|row| row.probability.is_none());
        if let (FadingKind::Table, Some(row)) = (user.fading, without) {
            let message = format!("\"table\" draws by probability, and rates[{row}] has none");
            return Err(ConfigError::new("fading", message));
        }
        let served = shares(user, &self.rates)[0] < 1.0 - 1e-9;
        if !served {
            return Err(ConfigError::new(
                "mean_snr",
                format!("at {} dB the user never has a rate", user.mean_snr),
            ));
        }
        Ok(())
    }
}

impl LinkConfig for CellConfig {
    fn serving(&self, users: &[CellUser]) -> Result<Option<Arc<dyn LinkConfig>>, ConfigError> {
        if self.pdus != BlockPdus::Whole {
            let message =
                "the cell as a link cuts packets, not PDUs; an air interface of \"radio-access\" has PDUs";
            return Err(ConfigError::new("pdus", message));
        }
        Ok(Some(Arc::new(self.clone().with_users(users)?)))
    }

    fn users(&self) -> Option<&[CellUser]> {
        Some(&self.users)
    }

    fn nominal(&self, files: &dyn Files) -> Result<Nominal, ConfigError> {
        let rate = self.capacity().as_bps() as f64 / self.transmissions(files)?;
        Ok(Nominal { rate: Rate::from_bps_f64(rate), delay: self.delay.mean() })
    }

    fn build(&self, context: LinkContext<'_>) -> Result<AnyLink, ConfigError> {
        Ok(self.build_cell(context)?.into())
    }

    fn keeps_sent(&self) -> bool {
        self.harq.is_some()
    }

    fn has_medium(&self) -> bool {
        false
    }

    fn may_change(&self, key: &str) -> Result<(), ConfigError> {
        self.check_changed(key)
    }

    fn unused(&self) -> Vec<Unused> {
        if self.overflow == Overflow::default() || self.buffer_per == BufferPer::User {
            return Vec::new();
        }
        let reason = "has no effect if each flow has a buffer: use buffer_per = \"user\"";
        vec![Unused::new("overflow", &["buffer_per"], reason)]
    }

    fn change(&self, key: &str, context: ChangeContext<'_>) -> Result<CellChange, ConfigError> {
        Self::change(self, key, context)
    }
}

impl CellConfig {
    /// Returns this cell with the given users.
    ///
    /// # Errors
    /// Returns an error that names the invalid key of the user.
    pub(crate) fn with_users(self, users: &[CellUser]) -> Result<Self, ConfigError> {
        for (index, user) in users.iter().enumerate() {
            self.check_user(user).map_err(|error| error.under(&format!("user.{index}")))?;
        }
        match users.iter().map(|user| u64::from(user.count)).sum::<u64>() {
            0 => return Err(ConfigError::new("user", "a cell has at least one user")),
            1..=MOST_USERS => {}
            many => return Err(ConfigError::new("user", format!("{many} users are more than {MOST_USERS}"))),
        }
        Ok(Self { users: users.to_vec(), ..self })
    }

    /// Returns this cell with classes of service of these ranks. The flow with the number n has the class with the number
    /// n modulo the number of classes.
    pub(crate) fn with_ranks(self, ranks: Vec<Rank>) -> Self {
        Self { ranks, ..self }
    }

    /// Returns this cell with blocks of complete units of `unit_bits` bits; a block with fewer than `least` units counts
    /// as no rate.
    pub(crate) fn of_whole(&self, unit_bits: u64, least: u64) -> Self {
        let whole = |row: &RateRow| {
            let block = match (self.transport, row.bits, row.slots) {
                (Transport::Packets, Some(bits), Some(_)) => u64::from(bits),
                _ => row.rate.as_bps() / u64::from(self.slots),
            };
            let units = block / unit_bits;
            let bits = units * unit_bits;
            let slots = u64::from(self.slots)
                / if self.transport == Transport::Packets { u64::from(row.slots.unwrap_or(1)) } else { 1 };
            (units >= least).then(|| RateRow {
                rate: Rate::from_bps(bits * slots),
                bits: Some(bits as u32),
                block: Some(block as u32),
                ..row.clone()
            })
        };
        Self { rates: self.rates.iter().filter_map(whole).collect(), ..self.clone() }
    }

    /// Length of one slot.
    pub(crate) fn slot(&self) -> Span {
        super::Slots::new(self.slots).length()
    }

    /// Builds the cell itself, without its wrapper as a link.
    pub(crate) fn build_cell(&self, context: LinkContext<'_>) -> Result<Cell, ConfigError> {
        Cell::new(self, self.build_scheduler()?, context)
    }

    pub(crate) fn scheduler(&self) -> Result<&Arc<dyn SchedulerConfig>, ConfigError> {
        self.scheduler.config(&SCHEDULERS).map_err(|error| error.under("scheduler"))
    }

    pub(super) fn build_scheduler(&self) -> Result<Box<dyn Scheduler>, ConfigError> {
        let mean_rates: Vec<f64> = self.each_user().map(|user| self.mean_rate(user)).collect();
        Ok(self.scheduler()?.build(SchedulerContext { mean_rates: &mean_rates }))
    }

    /// Mean number of transmissions of a block.
    pub(super) fn transmissions(&self, files: &dyn Files) -> Result<f64, ConfigError> {
        let of = |harq: &HarqConfig| harq.transmissions(files).map_err(|error| error.under("harq"));
        self.harq.as_ref().map_or(Ok(1.0), of)
    }

    /// Groups of users of the cell.
    pub(crate) fn users(&self) -> &[CellUser] {
        &self.users
    }

    pub(super) fn each_user(&self) -> impl Iterator<Item = &CellUser> {
        self.users.iter().flat_map(|user| std::iter::repeat_n(user, user.count as usize))
    }

    /// Mean rate of a user's channel, bit/s.
    pub(super) fn mean_rate(&self, user: &CellUser) -> f64 {
        let shares = shares(user, &self.rates);
        let rates = self.rates.iter().zip(&shares[1..]);
        self.free_share() * rates.map(|(row, share)| row.rate.as_bps() as f64 * share).sum::<f64>()
    }

    /// Share of the slots that can hold data of users.
    pub(super) fn free_share(&self) -> f64 {
        self.control.as_ref().map_or(1.0, ControlSlots::free_share)
    }

    /// Share of the slots in which a user's channel has no rate, the mean of all users.
    pub(crate) fn share_without_rate(&self) -> f64 {
        let of_all: f64 = self.each_user().map(|user| shares(user, &self.rates)[0]).sum();
        of_all / self.each_user().count().max(1) as f64
    }

    /// Mean over time of the highest rate among all users, an upper bound for any scheduler. The probability P(highest
    /// <= r) is the product of the users' probabilities P(rate <= r).
    fn capacity(&self) -> Rate {
        let mut below = vec![1.0; self.rates.len() + 1];
        for user in &self.users {
            let mut sum = 0.0;
            for (below, share) in below.iter_mut().zip(shares(user, &self.rates)) {
                sum += share;
                *below *= libm::pow(sum.min(1.0), f64::from(user.count));
            }
        }
        let share = |row: usize| below[row + 1] - below[row];
        let rates = self.rates.iter().enumerate();
        let rate: f64 = rates.map(|(row, of)| of.rate.as_bps() as f64 * share(row)).sum();
        Rate::from_bps_f64(self.free_share() * rate)
    }
}

/// Relative power (mean 1) that each row of the rate table needs.
pub(super) fn thresholds<'a>(user: &CellUser, rows: &'a [RateRow]) -> impl Iterator<Item = f64> + 'a {
    let mean = linear(user.mean_snr);
    rows.iter().map(move |row| linear(row.snr) / mean)
}

/// Share of the slots that a user spends in each state: the state without a rate first, then the state of each row of
/// the table.
pub(super) fn shares(user: &CellUser, rows: &[RateRow]) -> Vec<f64> {
    let above: Vec<f64> = match user.fading {
        // Under Rayleigh fading, P(power >= x) = exp(-x).
        FadingKind::Rayleigh | FadingKind::Jakes => {
            thresholds(user, rows).map(|threshold| libm::exp(-threshold)).collect()
        }
        FadingKind::Table => {
            let of = |rows: &[RateRow]| rows.iter().filter_map(|row| row.probability).sum();
            (0..rows.len()).map(|first| of(&rows[first..])).collect()
        }
        FadingKind::None => rows.iter().map(|row| f64::from(u8::from(row.snr <= user.mean_snr))).collect(),
    };
    let upper = std::iter::once(1.0).chain(above.iter().copied());
    let lower = above.iter().copied().chain(std::iter::once(0.0));
    upper.zip(lower).map(|(upper, lower)| upper - lower).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(users: &[CellUser]) -> CellConfig {
        CellConfig::default().with_users(users).unwrap()
    }

    #[test]
    fn the_shares_of_rates_are_those_of_table_4() {
        let cell = cell(&[CellUser { mean_snr: 2.27, ..CellUser::default() }]);
        // links.md section 4: the least-squares fit, no rate first.
        let fit = [0.033, 0.032, 0.016, 0.044, 0.023, 0.063, 0.165, 0.175, 0.143, 0.262, 0.040, 0.005];
        for (got, expected) in shares(&cell.users[0], &cell.rates).iter().zip(fit) {
            assert!((got - expected).abs() < 0.0011, "{got} against {expected}");
        }
        let table = CellUser { fading: FadingKind::Table, ..CellUser::default() };
        let printed = shares(&table, &cell.rates);
        assert!((printed[0] - 0.028).abs() < 1e-9 && (printed[9] - 0.260).abs() < 1e-9, "{printed:?}");
    }

    #[test]
    fn the_capacity_is_the_mean_of_the_highest_rate() {
        // schedulers.md section 11: 721 for one user at 2.3 dB, 227 at -4 dB. With more users proportional fair
        // approaches the highest rate of all.
        for (snr, kbps) in [(2.3, 721.0), (-4.0, 227.0), (-1.5, 383.0), (0.0, 505.0), (4.0, 917.0)] {
            let got =
                cell(&[CellUser { mean_snr: snr, ..CellUser::default() }]).capacity().as_bps() as f64 / 1e3;
            // The computed values come from a simulation, accurate to half a percent.
            assert!((got / kbps - 1.0).abs() < 0.005, "{snr} dB: {got}");
        }
        let four = cell(&[CellUser { count: 4, ..CellUser::default() }]).capacity();
        let apart = cell(&vec![CellUser::default(); 4]).capacity();
        assert_eq!(four, apart);
        assert!((four.as_bps() as f64 / 1239e3 - 1.0).abs() < 0.03, "{four}");
    }

    #[test]
    fn users_that_cannot_be_are_refused() {
        let refused = |user: CellUser| CellConfig::default().with_users(&[user]).unwrap_err().path;
        let user = CellUser::default();
        assert_eq!(refused(CellUser { count: 0, ..user.clone() }), "user.0.count");
        assert_eq!(refused(CellUser { doppler: 301.0, ..user.clone() }), "user.0.doppler");
        assert_eq!(refused(CellUser { mean_snr: f64::NAN, ..user.clone() }), "user.0.mean_snr");
        let dead = CellUser { mean_snr: -20.0, fading: FadingKind::None, ..user };
        assert_eq!(refused(dead), "user.0.mean_snr");
    }
}
