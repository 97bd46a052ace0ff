//! Remarks on settings that limit the rate of the bearer although nothing refuses them.

use ackclock_core::{Rate, Span};

use super::air::AirKind;
use super::config::RadioAccessConfig;
use crate::CellConfig;
use crate::umts_rlc_am::{RlcConfig, RlcMode};

/// Highest payload rate of the downlink, with the payload of a PDU at this rate, bits.
struct Highest {
    rate: Rate,
    pdu_bits: u64,
}

impl RadioAccessConfig {
    /// Remarks on the rates of the cell and on the RLC window, each beginning with its key. A bearer that the
    /// configuration check refuses has none.
    pub(super) fn said(&self) -> Vec<String> {
        let (Ok(down), Ok(up)) = (self.down(), self.up()) else { return Vec::new() };
        let up = up.mean_time();
        match down {
            AirKind::Dedicated(down) => {
                let steps = down.allocation.iter().flat_map(|allocation| &allocation.steps);
                let rate = steps.copied().max().unwrap_or(down.rate);
                let pdu_bits = self.pdu_bits(rate.bytes_in(down.tti) * 8);
                let round_trip = down.tti + down.delay + up;
                self.said_of_window(Highest { rate, pdu_bits }, round_trip).into_iter().collect()
            }
            AirKind::Cell(cell) => {
                let Ok(whole) = self.served(cell) else { return Vec::new() };
                let rate = whole.rates.iter().map(|row| row.rate.as_bps()).max().unwrap_or(0);
                let [payload, header] = self.unit().map(u64::from);
                let highest = Highest {
                    rate: Rate::from_bps(rate * payload / (payload + header)),
                    pdu_bits: self.pdu_bits(rate / u64::from(cell.slots)),
                };
                let round_trip = cell.slot() + cell.delay.mean() + self.iub_delay() + up;
                let window = self.said_of_window(highest, round_trip);
                self.said_of_rates(cell, &whole).into_iter().chain(window).collect()
            }
        }
    }

    /// Payload of a PDU, bits. `block` is the size of a block or TTI, bits.
    fn pdu_bits(&self, block: u64) -> u64 {
        if self.rlc.grants() { block } else { u64::from(self.rlc.unit()[0]) * 8 }
    }

    fn said_of_window(&self, highest: Highest, round_trip: Span) -> Option<String> {
        let RlcConfig { mode, window, .. } = self.rlc;
        let [most, radio] = [
            (u64::from(window) * highest.pdu_bits) as f64 / round_trip.as_secs_f64(),
            highest.rate.as_bps() as f64,
        ]
        .map(|bps| bps / 1e6);
        (mode == RlcMode::Acknowledged && most < radio).then(|| {
            let ms = round_trip.as_millis_f64();
            format!(
                "rlc.window: {window} PDUs in a round trip of {ms:.1} ms are at most {most:.2} Mbit/s, but the radio has \
                 {radio:.2} Mbit/s"
            )
        })
    }

    /// Names the rates of the cell whose block holds no PDU, with their share of all slots. `whole` is the cell without
    /// these rates.
    fn said_of_rates(&self, cell: &CellConfig, whole: &CellConfig) -> Option<String> {
        let (all, without) = (cell.rates.len(), cell.rates.len() - whole.rates.len());
        let of_users = cell.clone().with_users(whole.users()).ok()?;
        let share = 100.0 * (whole.share_without_rate() - of_users.share_without_rate());
        (without > 0).then(|| {
            format!(
                "air.down.rates: blocks of {without} of the {all} rates have no room for a PDU; their slots, {share:.2} % \
                 of all, send nothing"
            )
        })
    }
}
