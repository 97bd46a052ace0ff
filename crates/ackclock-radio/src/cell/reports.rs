//! Radio reports of a cell: each user's share of the channel.
//!
//! The share of a user is its service over the last second, in bits delivered or sent, divided by the time in which the
//! user had data. If the user had data for less than 100 ms of the last second, its share is an equal part of its
//! channel's mean rate: the mean rate divided by one plus the number of other users with data.
//!
//! If the number of users with data changes, all shares change and are reported again: earlier service is scaled by the
//! old number over the new number. The number of users with data is updated every 100 ms. Users that had data at any
//! time since the last update count, so a queue that runs empty between two packets does not change the number. Fading
//! causes no new reports, because shares are averages over fading. A change of the mean SNR of a user changes its share
//! by the ratio of the mean rates, and is reported. In an outage in which the cell does not serve a user, the user's share
//! is zero, and the time does not count; start and end of the outage are reported.
//!
//! While no reports are requested, no service is recorded.

use std::collections::VecDeque;

use ackclock_core::{RadioReport, Rate, ReportReason, Span, Time};
use ackclock_link::Load;

/// Interval between updates of the number of users with data, and length of one piece of the averaging time.
const PIECE: Span = Span::from_millis(100);
/// Number of pieces in the averaging time of a share, which is one second.
const PIECES: usize = 10;
/// Minimum time for which a user must have data before its share is measured.
const LEAST_BACKLOG: Span = Span::from_millis(100);

/// Pending reports, and the shares of all users.
#[derive(Default)]
pub(super) struct Reports {
    /// Shares, indexed by user number; empty while no reports are requested.
    users: Vec<Share>,
    /// Number of the current piece of the averaging time.
    piece: u64,
    /// Number of users with data in the last piece.
    active: u32,
    waiting: VecDeque<RadioReport>,
}

/// Service of one user in the last second.
struct Share {
    /// Mean rate of the user's channel, bit/s, which the user would get alone.
    mean_bps: f64,
    /// Pieces of the averaging time, indexed by piece number modulo `PIECES`.
    pieces: [Piece; PIECES],
}

#[derive(Clone, Copy, Default)]
struct Piece {
    number: u64,
    /// Bits served in the piece, scaled if the number of users with data has changed since the piece.
    bits: f64,
    backlogged: Span,
}

impl Share {
    /// Returns the piece of the averaging time with this number, and resets the piece if it held an older number.
    fn piece(&mut self, number: u64) -> &mut Piece {
        let piece = &mut self.pieces[number as usize % PIECES];
        if piece.number != number {
            *piece = Piece { number, ..Piece::default() };
        }
        piece
    }

    /// Time for which the user had data during this piece.
    fn backlogged(&self, number: u64) -> Span {
        let piece = self.pieces[number as usize % PIECES];
        if piece.number == number { piece.backlogged } else { Span::ZERO }
    }

    /// Share of the user in bit/s in the piece with this number, while `others` other users have data.
    fn bps(&self, number: u64, others: u32) -> f64 {
        let recent = |piece: &&Piece| piece.number + PIECES as u64 > number;
        let recent = self.pieces.iter().filter(recent);
        let (bits, backlogged) = recent
            .fold((0.0, Span::ZERO), |(bits, time), piece| (bits + piece.bits, time + piece.backlogged));
        if backlogged < LEAST_BACKLOG {
            return self.mean_bps / f64::from(1 + others);
        }
        bits / backlogged.as_secs_f64()
    }
}

impl Reports {
    /// Starts reports for users whose channels have the mean rates `mean_bps`, bit/s.
    pub(super) fn want_reports(&mut self, mean_bps: impl Iterator<Item = f64>) {
        let share = |mean_bps| Share { mean_bps, pieces: [Piece::default(); PIECES] };
        if self.users.is_empty() {
            self.users.extend(mean_bps.map(share));
        }
    }

    /// Sets the mean rate of a user's channel, bit/s. The user's share changes by the same ratio.
    pub(super) fn set_mean(&mut self, user: u32, mean_bps: f64) {
        if let Some(share) = self.users.get_mut(user as usize) {
            let change = mean_bps / std::mem::replace(&mut share.mean_bps, mean_bps);
            share.pieces.iter_mut().for_each(|piece| piece.bits *= change);
        }
    }

    /// Reports a user's rate at `at`, with the user's queued load.
    pub(super) fn tell(&mut self, at: Time, user: u32, rate: Rate, queued: Load) {
        if !self.wanted() {
            return;
        }
        let Load { packets: queued_packets, bytes: queued_bytes } = queued;
        let (user, reason) = (Some(user), ReportReason::Change);
        self.waiting.push_back(RadioReport {
            number: 0,
            at,
            user,
            rate,
            queued_packets,
            queued_bytes,
            reason,
        });
    }

    /// Whether reports are requested.
    pub(super) fn wanted(&self) -> bool {
        !self.users.is_empty()
    }

    /// Records that a user had data for `time` in the slots from `start` on.
    pub(super) fn on_backlogged(&mut self, start: Time, user: u32, time: Span) {
        if let Some(share) = self.users.get_mut(user as usize) {
            share.piece(number(start)).backlogged += time;
        }
    }

    /// Records that a packet of `bytes` bytes, in `pdus` PDUs of one size, of a user was served at `at`.
    pub(super) fn on_served(&mut self, at: Time, user: u32, bytes: u32, pdus: u16) {
        let Some(share) = self.users.get_mut(user as usize) else { return };
        let (piece, bits) = (share.piece(number(at)), f64::from(bytes / u32::from(pdus)) * 8.0);
        // Each PDU is rounded separately, so that the sum does not depend on which PDUs are sent together.
        (0..pdus).for_each(|_| piece.bits += bits);
    }

    /// Share of a user at `now`; `None` while no reports are requested.
    pub(super) fn share(&self, now: Time, user: u32) -> Option<Rate> {
        let (share, now) = (self.users.get(user as usize)?, number(now));
        let had_data = now.checked_sub(1).is_some_and(|before| share.backlogged(before) > Span::ZERO);
        let others = self.active.saturating_sub(u32::from(had_data));
        Some(Rate::from_bps_f64(share.bps(now, others)))
    }

    /// Handles a slot that starts at `start`. At the end of a piece the users with data are counted; if their number
    /// has changed, all shares are reported again. `queued` returns the queued load of a user.
    pub(super) fn on_slot(&mut self, start: Time, queued: impl Fn(u32) -> Load) {
        let begun = number(start);
        let over = std::mem::replace(&mut self.piece, begun);
        if !self.wanted() || over == begun {
            return;
        }
        let active = self.users.iter().filter(|share| share.backlogged(over) > Span::ZERO).count() as u32;
        let before = std::mem::replace(&mut self.active, active);
        if before == active || before == 0 || active == 0 {
            return;
        }
        let (change, mut told) = (f64::from(before) / f64::from(active), Vec::new());
        for (user, share) in
            (0..).zip(&mut self.users).filter(|(_, share)| share.backlogged(over) > Span::ZERO)
        {
            // Service before the completed piece is scaled to the new number of users; service in the completed piece
            // already reflects the new number.
            share
                .pieces
                .iter_mut()
                .filter(|piece| piece.number != over)
                .for_each(|piece| piece.bits *= change);
            told.push((user, Rate::from_bps_f64(share.bps(over, active - 1))));
        }
        told.into_iter().for_each(|(user, rate)| self.tell(start, user, rate, queued(user)));
    }

    /// Returns the next report up to `now`.
    pub(super) fn poll(&mut self, now: Time) -> Option<RadioReport> {
        self.waiting.pop_front_if(|report| report.at <= now)
    }
}

/// Number of the piece that contains the instant `at`.
fn number(at: Time) -> u64 {
    at.as_nanos() / PIECE.as_nanos()
}
