//! Scripted exchanges of PDUs: which PDU each end sends in which TTI, for every trigger and timer.

use std::collections::VecDeque;

use ackclock_core::{FlowId, Segment, Seq, Span, Streams, Time};
use ackclock_link::queue::{DropTailConfig, Place};
use ackclock_link::{Capacity, Cause, DeliveryOrder, LinkEvent, QueuePlan};

use super::*;
use crate::umts_rlc_am::entity::Entity;

const TTI: u64 = 10;
/// From the start of a TTI until its PDUs have arrived, ms: a TTI plus a delay of 25 ms. The answer goes into the TTI
/// that starts 5 ms later.
const ARRIVES: u64 = 35;

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// Two entities, and TTIs in which the test loses chosen PDUs.
struct Pair {
    ends: [Entity; 2],
    sdus: [Sdus; 2],
    room: usize,
    air: VecDeque<(u64, usize, Pdu)>,
    /// Lost PDUs: TTI in ms, direction and place in the TTI.
    lost: Vec<(u64, usize, usize)>,
    now: u64,
    log: Vec<String>,
    ended: Vec<(u64, u32, LinkEvent)>,
    next: u32,
}

impl Pair {
    /// Entities with room for `room` PDUs of 40 octets per TTI. STATUS may follow each other after 60 ms; Timer_Poll
    /// is 200 ms.
    fn new(room: usize, change: impl FnOnce(&mut RlcConfig)) -> Self {
        let mut config = RlcConfig { window: 8, ..RlcConfig::default() };
        (config.poll.window_percent, config.poll.every_sdus) = (0, 0);
        config.status.prohibit = Span::from_millis(60);
        change(&mut config);
        config.check().unwrap();
        let entity = || match End::new(&config, ms(ARRIVES) * 2) {
            End::Acknowledged(entity) => *entity,
            End::Unacknowledged(_) => panic!("an entity of acknowledged mode"),
        };
        let plan = QueuePlan::new(
            std::sync::Arc::new(DropTailConfig::default()),
            Capacity::Unlimited,
            &Streams::new(1, 0),
            "queue",
        );
        let places = || Some(Places::new(ms(TTI), room as u32, ms(ARRIVES - TTI)));
        let sdus = [Sdus::new(plan.build(), places()), Sdus::new(plan.build(), places())];
        let (air, lost, log, ended) = (VecDeque::new(), Vec::new(), Vec::new(), Vec::new());
        Self { ends: [entity(), entity()], sdus, room, air, lost, now: 0, log, ended, next: 0 }
    }

    /// Loses the PDUs at these places of a downlink TTI.
    fn lose<const N: usize>(mut self, tti: u64, places: [usize; N]) -> Self {
        self.lost.extend(places.map(|place| (tti, 0, place)));
        self
    }

    /// Loses the first PDU of an uplink TTI.
    fn lose_up(mut self, tti: u64) -> Self {
        self.lost.push((tti, 1, 0));
        self
    }

    /// Adds a packet that fills `pdus` PDUs, with its length indicator, to the buffer of a direction.
    fn put(&mut self, direction: usize, pdus: u16) {
        let packet = Segment::data(FlowId(0), Seq(self.next), pdus * 40 - 1 - 20, 20);
        self.sdus[direction].put(at(self.now), &packet, Place::Back).unwrap();
        self.next += 1;
    }

    /// Adds downlink packets of these numbers of PDUs.
    fn down(mut self, pdus: &[u16]) -> Self {
        pdus.iter().for_each(|&pdus| self.put(0, pdus));
        self
    }

    /// Runs the TTIs that start before `end`.
    fn until(mut self, end: u64) -> Self {
        while self.now < end {
            self.arrive();
            for direction in [0, 1] {
                self.tti(direction);
            }
            self.now += TTI;
        }
        self
    }

    fn arrive(&mut self) {
        while let Some((when, direction, pdu)) = self.air.pop_front_if(|(when, ..)| *when <= self.now) {
            let [down, up] = &mut self.sdus;
            let (of_peer, own) = if direction == 0 { (down, up) } else { (up, down) };
            let status = pdu.status().and_then(|status| self.ends[direction].statuses.take(status));
            self.ends[1 - direction].on_pdu(at(when), &pdu, status.as_ref(), of_peer, own);
        }
        for sdus in &mut self.sdus {
            while let Some((when, event)) = sdus.outcomes.next(at(self.now)) {
                let number = sdus.outcomes.take().seq.0;
                self.ended.push((when.as_nanos() / 1_000_000, number, event));
            }
        }
    }

    fn tti(&mut self, direction: usize) {
        let (end, sdus) = (&mut self.ends[direction], &mut self.sdus[direction]);
        if end.due(sdus) > at(self.now) {
            return;
        }
        let mut tti = Vec::new();
        end.fill_tti(at(self.now), self.room, sdus, &mut tti);
        assert!(tti.iter().map(|run| usize::from(run.count())).sum::<usize>() <= self.room, "{tti:?}");
        assert!(u32::from(end.transmitter.outstanding()) <= u32::from(end.transmitter.window));
        let mut place = 0;
        for run in tti {
            let mut arrived = Vec::new();
            for pdu in (0..run.count()).map(|step| run.part(step, 1)) {
                let lost = self.lost.contains(&(self.now, direction, place));
                let way = [">", "<"][direction];
                let fate = if lost { " lost" } else { "" };
                let statuses = &self.ends[direction].statuses;
                self.log.push(format!("{} {way} {}{fate}", self.now, written(&pdu, statuses)));
                arrived.extend((!lost).then_some(pdu));
                place += 1;
            }
            // A run that arrives as a whole stays a run.
            let arrived = if arrived.len() == usize::from(run.count()) { vec![run] } else { arrived };
            self.air.extend(arrived.into_iter().map(|pdu| (self.now + ARRIVES, direction, pdu)));
        }
    }

    /// The PDUs sent, one per line.
    fn sent(&self) -> Vec<&str> {
        self.log.iter().map(String::as_str).collect()
    }

    /// Delivery time of each packet, in ms, in order of delivery.
    fn delivered(&self) -> Vec<(u64, u32)> {
        let delivered = self.ended.iter().filter(|(.., event)| event.is_delivery());
        delivered.map(|&(when, number, _)| (when, number)).collect()
    }

    /// The lost packets.
    fn discarded(&self) -> Vec<(u64, u32)> {
        let lost = self.ended.iter().filter(|(.., event)| *event == LinkEvent::Dropped(Cause::Medium));
        lost.map(|&(when, number, _)| (when, number)).collect()
    }
}

/// Notation of a PDU: "D3" an AMD PDU, "D3p" with a poll, "D3+ACK2" with a STATUS in its padding, "ACK4-1,2" a STATUS
/// that acknowledges everything below 4 except 1 and 2, with WINDOW6 one that allows 6 PDUs.
fn written(pdu: &Pdu, statuses: &statuses::Statuses) -> String {
    let told = |status| told(statuses.content(status));
    match pdu {
        Pdu::Data(data) => {
            let poll = if data.poll { "p" } else { "" };
            let status = data.piggyback.map_or(String::new(), |status| format!("+{}", told(status)));
            format!("D{}{poll}{status}", number(data.sn))
        }
        Pdu::Status(status) => told(*status),
        Pdu::Reset(number) => format!("RESET{}", u8::from(*number)),
        Pdu::ResetAck(number) => format!("RESET_ACK{}", u8::from(*number)),
        Pdu::Lost(..) => "lost".to_owned(),
    }
}

fn told(status: &status::Status) -> String {
    let report = status.report.map(|report| {
        let missing: Vec<_> = report.missing.iter().map(|sn| number(sn).to_string()).collect();
        let list = if missing.is_empty() { String::new() } else { format!("-{}", missing.join(",")) };
        format!("ACK{}{list}", number(report.lsn))
    });
    let window = status.window.map(|window| format!("WINDOW{window}"));
    let mrw = status.mrw.map(|mrw| format!("MRW{}", number(mrw.sn)));
    let ack = status.mrw_ack.map(|ack| format!("MRW_ACK{}", number(ack.sn)));
    [report, window, mrw, ack].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn number(sn: sn::Sn) -> u16 {
    sn.above(sn::Sn::ZERO)
}

fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

mod receiving;
mod resetting;
mod sending;
