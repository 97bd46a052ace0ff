//! The receiving end: packets are put together from blocks, and handed on.

use ackclock_core::Time;

use super::{Block, DeliveryOrder, Packet, State, UmtsRlc};
use crate::{Cause, Departures, Fate, LinkEvent};

impl UmtsRlc {
    /// The receiver knows what became of a block that will not be sent again.
    pub(super) fn know(&mut self, at: Time, block: Block, fate: Fate) {
        match fate {
            Fate::Arrives => self.arrive(at, block),
            _ => self.lose(at, block),
        }
    }

    fn arrive(&mut self, at: Time, block: Block) {
        let newest = self.first + self.packets.len() as u64;
        for number in block.from..block.to {
            let place = (number - self.first) as usize;
            let packet = &mut self.packets[place];
            packet.missing -= 1;
            let uncut = number + 1 == newest && self.uncut > 0;
            if packet.missing > 0 || uncut || packet.state == State::Gone {
                continue;
            }
            packet.state = State::Complete;
            if self.config.order == DeliveryOrder::OutOfSequence {
                self.hand_on(at, place);
            }
        }
        self.release(at);
    }

    /// A block was given up: so is every packet of which it has a part.
    fn lose(&mut self, at: Time, block: Block) {
        for number in block.from..block.to {
            let packet = &mut self.packets[(number - self.first) as usize];
            packet.missing -= 1;
            if packet.state == State::Begun {
                packet.state = State::Gone;
                self.outcomes.tell(at, LinkEvent::Dropped(Cause::Medium), packet.segment);
            }
        }
        if block.to == self.first + self.packets.len() as u64 {
            self.uncut = 0;
        }
        self.release(at);
    }

    /// Hands on what waits for nothing any more, and forgets the packets of which no block is under way.
    fn release(&mut self, at: Time) {
        let whole = self.packets.iter().take_while(|packet| packet.state != State::Begun).count();
        for place in 0..whole {
            if self.packets[place].state == State::Complete {
                self.hand_on(at, place);
            }
        }
        // Blocks of a lost packet may still be under way.
        while self.packets.pop_front_if(|packet| packet.state == State::Gone && packet.missing == 0).is_some()
        {
            self.first += 1;
        }
    }

    fn hand_on(&mut self, at: Time, place: usize) {
        let Packet { state, segment, .. } = &mut self.packets[place];
        *state = State::Gone;
        if self.departures == Departures::Watched {
            self.outcomes.tell(at, LinkEvent::Departed, *segment);
        }
        self.outcomes.flight.put(at + self.config.delay, segment);
    }
}
