//! A medium at rate zero, and tests of links whose medium is replaced while they run.

use ackclock_core::{Rate, Segment, Span, Time};

use crate::medium::{Fate, Found, Medium, Transmission};
use crate::pieces::work_at;

/// A medium of rate zero.
#[derive(Clone, Copy, Debug)]
pub enum Silence {
    /// A packet in transmission pauses until the medium is replaced.
    Paused,
    /// The radio link failed: every packet is lost at once, so that the queue is always empty.
    Severed,
}

impl Medium for Silence {
    fn transmit(&mut self, _: Time, start: Time, _: &Segment) -> Transmission {
        let (departs, fate) = match self {
            Self::Paused => (Time::NEVER, Fate::Arrives),
            Self::Severed => (start, Fate::Lost),
        };
        Transmission { departs, delay: Span::ZERO, fate }
    }

    fn rate(&self, _: Time) -> Rate {
        Rate::ZERO
    }

    fn ready(&mut self, now: Time, _: Found) -> Time {
        now
    }

    fn rate_until(&self, _: Time) -> Time {
        Time::NEVER
    }

    fn work(&mut self, from: Time, until: Time) -> Option<u128> {
        Some(work_at(self.rate(from), until.since(from)))
    }

    fn restart_work(&mut self, _: Time) {}

    fn varies(&self) -> bool {
        true
    }

    fn least_delay(&self) -> Span {
        Span::ZERO
    }

    fn foreseeable(&self) -> bool {
        false
    }
}

/// Medium in an outage that the transmitter does not notice: every packet is transmitted as usual, and lost. The medium
/// has no capacity.
pub struct Faded(pub Box<dyn Medium>);

impl Medium for Faded {
    fn ready(&mut self, now: Time, found: Found) -> Time {
        self.0.ready(now, found)
    }

    fn transmit(&mut self, arrived: Time, start: Time, segment: &Segment) -> Transmission {
        Transmission { fate: Fate::Lost, ..self.0.transmit(arrived, start, segment) }
    }

    fn rate(&self, now: Time) -> Rate {
        self.0.rate(now)
    }

    fn rate_until(&self, now: Time) -> Time {
        self.0.rate_until(now)
    }

    fn work(&mut self, _: Time, _: Time) -> Option<u128> {
        Some(0)
    }

    fn least_delay(&self) -> Span {
        self.0.least_delay()
    }

    fn restart_work(&mut self, _: Time) {}

    fn varies(&self) -> bool {
        true
    }

    fn foreseeable(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use ackclock_core::{FlowId, Seq};

    use super::*;
    use crate::queue::{DropTail, Queue};
    use crate::{BufferMeaning, Capacity, Constant, Link, SerialLink};

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    fn medium(kbit: u64, delay: u64) -> Constant {
        Constant::new(Rate::from_bps(kbit * 1000), Span::from_millis(delay))
    }

    /// A link with two packets of 1000 B that arrived at time 0.
    fn link(kbit: u64, delay: u64) -> impl Link {
        let mut link = SerialLink::new(
            medium(kbit, delay),
            DropTail::new(Capacity::Unlimited).any(),
            BufferMeaning::Waiting,
        );
        for number in 0..2 {
            link.enqueue(Time::ZERO, &Segment::data(FlowId(0), Seq(number), 960, 40)).unwrap();
        }
        link
    }

    fn deliveries(link: &mut impl Link) -> Vec<Time> {
        let events = std::iter::from_fn(|| link.poll_event(ms(10_000)));
        events.filter(|(_, event, _)| event.is_delivery()).map(|(at, ..)| at).collect()
    }

    #[test]
    fn a_packet_in_transmission_finishes_its_remaining_bits_at_the_new_rate() {
        let mut link = link(800, 0);
        // 8000 bits take 10 ms at 800 kbit/s. After 5 ms 4000 bits are left, which take 40 ms at 100 kbit/s; the next
        // packet takes 80 ms.
        link.replace_medium(ms(5), Box::new(medium(100, 0)));
        assert_eq!(link.view(ms(5), FlowId(0)).rate, Rate::from_bps(100_000));
        assert_eq!(deliveries(&mut link), [ms(45), ms(125)]);
    }

    #[test]
    fn an_outage_keeps_the_packet_in_transmission_and_its_remaining_bits() {
        let mut link = link(800, 0);
        link.replace_medium(ms(5), Box::new(Silence::Paused));
        assert_eq!(link.poll_timeout(), None);
        link.replace_medium(ms(20), Box::new(Silence::Paused));
        link.replace_medium(ms(100), Box::new(medium(800, 0)));
        assert_eq!(deliveries(&mut link), [ms(105), ms(115)]);
    }

    #[test]
    fn a_severed_link_loses_what_waits_and_what_comes_and_has_no_capacity() {
        let mut link = link(800, 0);
        // The first packet is half sent when the medium is replaced; its second half leaves at once.
        link.replace_medium(ms(5), Box::new(Silence::Severed));
        link.enqueue(ms(6), &Segment::data(FlowId(0), Seq(2), 960, 40)).unwrap();
        assert_eq!(link.waiting(ms(7)).packets, 0);
        link.replace_medium(ms(100), Box::new(medium(800, 0)));
        link.enqueue(ms(100), &Segment::data(FlowId(0), Seq(3), 960, 40)).unwrap();
        assert_eq!(deliveries(&mut link), [ms(5), ms(110)]);
    }

    #[test]
    fn a_packet_behind_a_shorter_delay_does_not_overtake_those_in_flight() {
        let mut link = link(800, 100);
        // The first packet left at 10 ms and arrives at 110 ms; the second packet leaves at 20 ms and would arrive at
        // 21 ms.
        link.replace_medium(ms(15), Box::new(medium(800, 1)));
        assert_eq!(deliveries(&mut link), [ms(110), ms(110)]);
    }

    #[test]
    fn an_idle_link_changes_for_what_comes_next() {
        let mut link =
            SerialLink::new(medium(800, 0), DropTail::new(Capacity::Unlimited).any(), BufferMeaning::Waiting);
        link.replace_medium(ms(1), Box::new(medium(80, 0)));
        link.enqueue(ms(2), &Segment::data(FlowId(0), Seq(0), 960, 40)).unwrap();
        assert_eq!(deliveries(&mut link), [ms(102)]);
    }
}
