//! Radio reports of a cell: each user's share of the channel.
//!
//! The share of a user is its service over the last second, in bits delivered or sent, divided by the time in which it
//! had data. For a user that had data for less than 100 ms of that second, it is the mean rate of its channel divided
//! by one plus the number of other users with data.
//!
//! A change of the number of users with data changes every share: all shares are reported again, with earlier service
//! scaled by the old number over the new one. Every 100 ms the users that had data since the last count are counted,
//! so a queue that runs empty between two packets is not a change. Fading is never a change: shares are averages over
//! fading.
//!
//! Nothing is counted while no reports are wanted.

use std::collections::VecDeque;

use ackclock_core::{RadioReport, Rate, ReportReason, Span, Time};

use crate::Load;

/// Interval between counts of users, and of a piece of the averaging time.
const PIECE: Span = Span::from_millis(100);
/// Number of pieces over which a share is averaged: one second.
const PIECES: usize = 10;
/// Minimum time with data for a measured share.
const LEAST_BACKLOG: Span = Span::from_millis(100);

/// Pending reports, and the shares of all users.
#[derive(Default)]
pub(super) struct Reports {
    /// Shares by user number; empty while no reports are wanted.
    users: Vec<Share>,
    /// Number of the current piece of time.
    piece: u64,
    /// Number of users with data in the last piece.
    active: u32,
    waiting: VecDeque<RadioReport>,
}

/// Service of one user.
struct Share {
    /// Mean rate of its channel, bit/s: its rate if it were alone.
    mean_bps: f64,
    /// Pieces, indexed by piece number modulo their count.
    pieces: [Piece; PIECES],
}

#[derive(Clone, Copy, Default)]
struct Piece {
    number: u64,
    /// Bits served; scaled when the number of users with data has changed since.
    bits: f64,
    backlogged: Span,
}

impl Share {
    /// The piece with this number; reset if it held an older one.
    fn piece(&mut self, number: u64) -> &mut Piece {
        let piece = &mut self.pieces[number as usize % PIECES];
        if piece.number != number {
            *piece = Piece { number, ..Piece::default() };
        }
        piece
    }

    /// Time with data in the piece with this number.
    fn backlogged(&self, number: u64) -> Span {
        let piece = self.pieces[number as usize % PIECES];
        if piece.number == number { piece.backlogged } else { Span::ZERO }
    }

    /// The share in the piece with this number, among `others` other users with data, bit/s.
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
    /// Starts the reports of users whose channels have these mean rates, bit/s.
    pub(super) fn want_reports(&mut self, mean_bps: impl Iterator<Item = f64>) {
        let share = |mean_bps| Share { mean_bps, pieces: [Piece::default(); PIECES] };
        if self.users.is_empty() {
            self.users.extend(mean_bps.map(share));
        }
    }

    /// Whether reports are wanted.
    pub(super) fn wanted(&self) -> bool {
        !self.users.is_empty()
    }

    /// A user had data in the slots from `start` for `time`.
    pub(super) fn on_backlogged(&mut self, start: Time, user: u32, time: Span) {
        if let Some(share) = self.users.get_mut(user as usize) {
            share.piece(number(start)).backlogged += time;
        }
    }

    /// A packet of `bytes` of a user was served at `at`.
    pub(super) fn on_served(&mut self, at: Time, user: u32, bytes: u32) {
        if let Some(share) = self.users.get_mut(user as usize) {
            share.piece(number(at)).bits += f64::from(bytes) * 8.0;
        }
    }

    /// The share of a user at `now`; `None` while no reports are wanted.
    pub(super) fn share(&self, now: Time, user: u32) -> Option<Rate> {
        let (share, now) = (self.users.get(user as usize)?, number(now));
        let had_data = now.checked_sub(1).is_some_and(|before| share.backlogged(before) > Span::ZERO);
        let others = self.active.saturating_sub(u32::from(had_data));
        Some(Rate::from_bps_f64(share.bps(now, others)))
    }

    /// A slot starts at `start`. At the end of a piece the users with data are counted; if their number has changed,
    /// all shares are reported again. `queued` returns the queued load of a user.
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
        let change = f64::from(before) / f64::from(active);
        for (user, share) in
            (0..).zip(&mut self.users).filter(|(_, share)| share.backlogged(over) > Span::ZERO)
        {
            // Service before the completed piece is scaled to the new number of users; that piece already reflects it.
            share
                .pieces
                .iter_mut()
                .filter(|piece| piece.number != over)
                .for_each(|piece| piece.bits *= change);
            let Load { packets: queued_packets, bytes: queued_bytes } = queued(user);
            self.waiting.push_back(RadioReport {
                number: 0,
                at: start,
                user: Some(user),
                rate: Rate::from_bps_f64(share.bps(over, active - 1)),
                queued_packets,
                queued_bytes,
                reason: ReportReason::Change,
            });
        }
    }

    /// The next report up to `now`.
    pub(super) fn poll(&mut self, now: Time) -> Option<RadioReport> {
        self.waiting.pop_front_if(|report| report.at <= now)
    }
}

/// The piece of time that contains an instant.
fn number(at: Time) -> u64 {
    at.as_nanos() / PIECE.as_nanos()
}
