//! What the base station tells the edge: each user's share of the channel.
//!
//! The share of a user is what it was served over the last second, divided by the time in which it had data: bits that arrived at
//! the user or left for it, per second of backlog. A user that had data for less than 100 ms of that second is told the mean rate of
//! its channel divided by one more than the other users with data.
//!
//! A change of the number of users with data changes every share: every share is told again, with what was served before
//! scaled by the old number over the new one. Users are counted every 100 ms, those that had data since the last count, so that a queue that runs empty between two
//! packets is no change. Fading is never a change: it is what the share averages over.
//!
//! Nothing is counted while nobody listens.

use std::collections::VecDeque;

use ackclock_core::{RadioReport, Rate, ReportReason, Span, Time};

use crate::Load;

/// Length of a count of users, and of a piece of the time over which a share is measured.
const PIECE: Span = Span::from_millis(100);
/// Pieces over which a share is measured: one second.
const PIECES: usize = 10;
/// Time with data that a measured share takes.
const LEAST_BACKLOG: Span = Span::from_millis(100);

/// Reports that were not fetched yet, and the shares of all users.
#[derive(Default)]
pub(super) struct Reports {
    /// By number of the user; empty while nobody listens.
    users: Vec<Share>,
    /// The piece of time that is counted now.
    piece: u64,
    /// Users who had data in the piece counted last.
    active: u32,
    waiting: VecDeque<RadioReport>,
}

/// What one user was served.
struct Share {
    /// Mean rate of its channel, bit/s: what it would be served alone.
    mean_bps: f64,
    /// By number of the piece, modulo their count.
    pieces: [Piece; PIECES],
}

#[derive(Clone, Copy, Default)]
struct Piece {
    number: u64,
    /// Bits that it was served; scaled where the number of users with data has changed since.
    bits: f64,
    backlogged: Span,
}

impl Share {
    /// The piece of this number, empty where an older one stood in its place.
    fn piece(&mut self, number: u64) -> &mut Piece {
        let piece = &mut self.pieces[number as usize % PIECES];
        if piece.number != number {
            *piece = Piece { number, ..Piece::default() };
        }
        piece
    }

    /// Time with data in the piece of this number.
    fn backlogged(&self, number: u64) -> Span {
        let piece = self.pieces[number as usize % PIECES];
        if piece.number == number { piece.backlogged } else { Span::ZERO }
    }

    /// The share in the piece of this number, beside `others` users with data, bit/s.
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
    /// From now on somebody listens to the reports of users whose channels have these mean rates, bit/s.
    pub(super) fn want_reports(&mut self, mean_bps: impl Iterator<Item = f64>) {
        let share = |mean_bps| Share { mean_bps, pieces: [Piece::default(); PIECES] };
        if self.users.is_empty() {
            self.users.extend(mean_bps.map(share));
        }
    }

    /// Whether somebody listens.
    pub(super) fn wanted(&self) -> bool {
        !self.users.is_empty()
    }

    /// A user had data in the slots that begin at `start` and last for `time`.
    pub(super) fn on_backlogged(&mut self, start: Time, user: u32, time: Span) {
        if let Some(share) = self.users.get_mut(user as usize) {
            share.piece(number(start)).backlogged += time;
        }
    }

    /// A user was served a packet of `bytes` at `at`.
    pub(super) fn on_served(&mut self, at: Time, user: u32, bytes: u32) {
        if let Some(share) = self.users.get_mut(user as usize) {
            share.piece(number(at)).bits += f64::from(bytes) * 8.0;
        }
    }

    /// The share of a user at `now`; `None` while nobody listens.
    pub(super) fn share(&self, now: Time, user: u32) -> Option<Rate> {
        let (share, now) = (self.users.get(user as usize)?, number(now));
        let had_data = now.checked_sub(1).is_some_and(|before| share.backlogged(before) > Span::ZERO);
        let others = self.active.saturating_sub(u32::from(had_data));
        Some(Rate::from_bps_f64(share.bps(now, others)))
    }

    /// A slot begins at `start`: the users with data are counted where a piece of time is over, and each share is told again
    /// where their number has changed. `queued` says what waits of a user.
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
            // What was served before the piece that is over is scaled to the new number of users; that piece already shows it.
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

    /// The next report of an instant of at most `now`.
    pub(super) fn poll(&mut self, now: Time) -> Option<RadioReport> {
        self.waiting.pop_front_if(|report| report.at <= now)
    }
}

/// The piece of time in which an instant lies.
fn number(at: Time) -> u64 {
    at.as_nanos() / PIECE.as_nanos()
}
