//! The table of the bearer.

use ackclock_core::{Config, ConfigError, Rate, Size, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{TIMERS, in_bounds};
use super::poll::PollConfig;
use super::receiver::StatusConfig;
use super::sn::Sn;
use crate::DeliveryOrder;
use crate::bearer::{AnyBearer, BearerConfig, BearerContext, BearerLinks, Direction};
use crate::errors::Errors;
use crate::{Files, Nominal};

/// A UMTS bearer with the whole radio link control of 3GPP TS 25.322, acknowledged or not: packets are cut into PDUs, and in
/// acknowledged mode those that the radio loses are sent again until the peer has them. A packet stays in the buffer until then.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UmtsRlcAmConfig {
    /// Whether PDUs that were lost are sent again: "acknowledged" or "unacknowledged".
    pub mode: RlcMode,
    /// Rate of the PDUs' payload towards the mobiles.
    pub rate: Rate,
    /// Rate of the PDUs' payload from the mobiles.
    pub up_rate: Rate,
    /// Transmission time interval: all PDUs of one are sent together.
    pub tti: Span,
    /// Room in a PDU for packets and their length indicators.
    pub pdu: Size,
    /// From the end of a TTI until its PDUs are dealt with at the far end, one way.
    pub delay: Span,
    /// What the radio loses in each direction: a share, or an error process, asked for each TTI or PDU.
    pub errors: Errors,
    /// What it loses from the mobiles, where that is something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_errors: Option<Errors>,
    /// What is lost together: all PDUs of a "tti", or each "pdu" by itself.
    pub errors_by: ErrorsBy,
    /// Whether packets are handed on in the order in which they came, or each as soon as it is whole.
    pub order: DeliveryOrder,
    /// PDUs that may be unacknowledged, of the transmitter and of the receiver.
    pub window: u32,
    /// MaxDAT: a PDU is sent one time less at most; where it would be sent once more it is given up.
    pub max_dat: u32,
    /// What then happens: its packets are discarded ("discard"), or both ends are reset ("reset").
    pub on_max_dat: OnMaxDat,
    /// A PDU that a STATUS reports as missing is sent again unless it was last sent so shortly before; where it is left out, the
    /// round trip of the radio, in which no STATUS can know of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<Span>,
    /// When the transmitter asks for a STATUS.
    pub poll: PollConfig,
    /// When the receiver sends a STATUS.
    pub status: StatusConfig,
    /// How a receiver is told what was discarded, by MRW.
    pub mrw: Tries,
    /// How a reset is asked for, by RESET.
    pub reset: Tries,
}

/// Whether PDUs that were lost are sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RlcMode {
    /// Acknowledged mode: they are.
    #[default]
    Acknowledged,
    /// Unacknowledged mode: packets with a part in them are lost.
    Unacknowledged,
}

/// What the radio loses together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorsBy {
    /// All PDUs of a TTI.
    #[default]
    Tti,
    /// Each PDU by itself.
    Pdu,
}

/// What happens to a PDU that was sent often enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnMaxDat {
    /// Its packets are discarded, and the receiver moves its window.
    #[default]
    Discard,
    /// Both ends are reset, and what was begun is lost.
    Reset,
}

/// How often a peer is told, and for how long it is waited between.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tries {
    /// Time from one to the next.
    pub timer: Span,
    /// How many there are, MaxMRW - 1 or MaxRST - 1; behind the last MRW comes a reset, behind the last reset the bearer is set up
    /// anew.
    pub most: u32,
}

impl Default for UmtsRlcAmConfig {
    /// A bearer of 384 kbit/s down and 64 kbit/s up as networks set it up: a tenth of the blocks is lost.
    fn default() -> Self {
        Self {
            mode: RlcMode::Acknowledged,
            rate: Rate::from_bps(384_000),
            up_rate: Rate::from_bps(64_000),
            tti: Span::from_millis(10),
            pdu: Size::Bytes(40),
            delay: Span::from_millis(25),
            errors: Errors::Share(crate::Loss(0.1)),
            up_errors: None,
            errors_by: ErrorsBy::Tti,
            order: DeliveryOrder::InSequence,
            window: 2047,
            max_dat: 15,
            on_max_dat: OnMaxDat::Discard,
            guard: None,
            poll: PollConfig::default(),
            status: StatusConfig::default(),
            mrw: Tries::default(),
            reset: Tries::default(),
        }
    }
}

impl Default for Tries {
    fn default() -> Self {
        Self { timer: Span::from_millis(500), most: 4 }
    }
}

/// Half of the numbers, so that a window that was told to move is known from one that has moved.
const MOST_WINDOW: u32 = Sn::MOST as u32 / 2;
/// PDUs of a TTI.
const MOST_PDUS: u64 = 1000;
const TTIS: [Span; 2] = [Span::from_millis(1), Span::from_secs(1)];
const PDU_BYTES: [u64; 2] = [10, 1000];

impl Config for UmtsRlcAmConfig {
    fn check(&self) -> Result<(), ConfigError> {
        for direction in Direction::BOTH {
            let (key, errors) = self.errors_of(direction);
            errors.check().map_err(|error| error.under(key))?;
        }
        in_bounds("tti", self.tti, TTIS)?;
        if !matches!(self.pdu, Size::Bytes(bytes) if (PDU_BYTES[0]..=PDU_BYTES[1]).contains(&bytes)) {
            let message = format!("{} is not a size from \"10B\" to \"1000B\"", self.pdu);
            return Err(ConfigError::new("pdu", message));
        }
        for (key, direction) in [("rate", Direction::Down), ("up_rate", Direction::Up)] {
            self.check_rate(key, direction)?;
        }
        if self.delay > TTIS[1] {
            return Err(ConfigError::new("delay", format!("{} is more than {}", self.delay, TTIS[1])));
        }
        if !(1..=MOST_WINDOW).contains(&self.window) {
            let message = format!("{} is not 1 to {MOST_WINDOW}, half of the sequence numbers", self.window);
            return Err(ConfigError::new("window", message));
        }
        if self.max_dat < 2 {
            let message = format!("{} is not 2 or more: nothing would be sent", self.max_dat);
            return Err(ConfigError::new("max_dat", message));
        }
        self.check_use()?;
        self.check_timers()
    }

    fn complete(self) -> Result<Self, ConfigError> {
        let errors = self.errors.complete().map_err(|error| error.under("errors"))?;
        let up = self.up_errors.map(Errors::complete).transpose();
        Ok(Self { errors, up_errors: up.map_err(|error| error.under("up_errors"))?, ..self })
    }
}

impl UmtsRlcAmConfig {
    /// PDUs of a TTI of a direction.
    pub(super) fn pdus(&self, direction: Direction) -> u64 {
        self.rate_of(direction).bytes_in(self.tti) / u64::from(self.pdu_octets().max(1))
    }

    /// Room in a PDU, octets.
    pub(super) const fn pdu_octets(&self) -> u32 {
        match self.pdu {
            Size::Bytes(bytes) => bytes as u32,
            // `check` lets only bytes pass.
            _ => 0,
        }
    }

    pub(super) fn rate_of(&self, direction: Direction) -> Rate {
        match direction {
            Direction::Down => self.rate,
            Direction::Up => self.up_rate,
        }
    }

    pub(super) fn errors_of(&self, direction: Direction) -> (&'static str, &Errors) {
        match (direction, &self.up_errors) {
            (Direction::Up, Some(errors)) => ("up_errors", errors),
            _ => ("errors", &self.errors),
        }
    }

    /// The share of a direction that arrives.
    pub(super) fn good(&self, direction: Direction, files: &dyn Files) -> Result<f64, ConfigError> {
        let (key, errors) = self.errors_of(direction);
        let bad = errors.share(files).map_err(|error| error.under(key))?;
        if bad >= 1.0 {
            return Err(ConfigError::new(key, "everything is lost: nothing would ever pass"));
        }
        Ok(1.0 - bad)
    }

    fn check_rate(&self, key: &str, direction: Direction) -> Result<(), ConfigError> {
        let (rate, pdus) = (self.rate_of(direction), self.pdus(direction));
        let one = u64::from(self.pdu_octets()) * 8_000_000_000 / self.tti.as_nanos();
        if (1..=MOST_PDUS).contains(&pdus) && rate.as_bps().abs_diff(one * pdus) <= pdus {
            return Ok(());
        }
        let message = format!(
            "{rate} is not 1 to {MOST_PDUS} PDUs of {} in each TTI of {}: a multiple of {}",
            self.pdu,
            self.tti,
            Rate::from_bps(one)
        );
        Err(ConfigError::new(key, message))
    }

    /// Checks that nothing is said of what this mode has not.
    fn check_use(&self) -> Result<(), ConfigError> {
        let usual = Self::default();
        let mrw = ("mrw", self.mrw != usual.mrw);
        let (mode, said) = match (self.mode, self.on_max_dat) {
            (RlcMode::Acknowledged, OnMaxDat::Discard) => return Ok(()),
            (RlcMode::Acknowledged, OnMaxDat::Reset) => ("on_max_dat = \"reset\"", vec![mrw]),
            (RlcMode::Unacknowledged, _) => {
                let said = vec![
                    ("order", self.order != usual.order),
                    ("window", self.window != usual.window),
                    ("max_dat", self.max_dat != usual.max_dat),
                    ("on_max_dat", self.on_max_dat != usual.on_max_dat),
                    ("guard", self.guard != usual.guard),
                    ("poll", self.poll != usual.poll),
                    ("status", self.status != usual.status),
                    mrw,
                    ("reset", self.reset != usual.reset),
                ];
                ("mode = \"unacknowledged\"", said)
            }
        };
        match said.into_iter().find(|(_, said)| *said) {
            Some((key, _)) => Err(ConfigError::new(key, format!("with {mode} nothing would obey it"))),
            None => Ok(()),
        }
    }

    fn check_timers(&self) -> Result<(), ConfigError> {
        let Self { poll, status, mrw, reset, .. } = self;
        poll.check().map_err(|error| error.under("poll"))?;
        status.check(self.window).map_err(|error| error.under("status"))?;
        let guard = self.guard.unwrap_or_default();
        if guard > TIMERS[1] {
            return Err(ConfigError::new("guard", format!("{guard} is more than {}", TIMERS[1])));
        }
        for (key, tries) in [("mrw", mrw), ("reset", reset)] {
            in_bounds("timer", tries.timer, TIMERS).map_err(|error| error.under(key))?;
            if tries.most == 0 {
                return Err(ConfigError::new("most", "0 is not above 0").under(key));
            }
        }
        Ok(())
    }
}

impl BearerConfig for UmtsRlcAmConfig {
    fn uses_links(&self) -> bool {
        false
    }

    fn nominal(
        &self,
        direction: Direction,
        _: &BearerLinks,
        files: &dyn Files,
    ) -> Result<Nominal, ConfigError> {
        let good = self.good(direction, files).map_err(|error| error.under("bearer"))?;
        let octets = self.pdus(direction) * u64::from(self.pdu_octets());
        let rate = Rate::from_bps_f64(octets as f64 * 8.0 / self.tti.as_secs_f64() * good);
        Ok(Nominal { rate, delay: (self.tti + self.delay) * 2 })
    }

    fn gauges(&self) -> &'static [&'static str] {
        let all = &["buffer_packets", "outstanding_pdus", "open_window_pdus", "retransmitted_pdus"];
        match self.mode {
            RlcMode::Acknowledged => all,
            RlcMode::Unacknowledged => &all[..1],
        }
    }

    fn build(&self, _: &BearerLinks, context: BearerContext<'_>) -> Result<AnyBearer, ConfigError> {
        let bearer = super::UmtsRlcAm::new(self, context).map_err(|error| error.under("bearer"))?;
        Ok(AnyBearer::Other(Box::new(bearer)))
    }
}
