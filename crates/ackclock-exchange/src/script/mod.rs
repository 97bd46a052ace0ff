//! Parses scripts: packets of the peer, expected packets of the sender and socket calls of the application, each with
//! its time.
//!
//! A script is parsed completely before it runs, so that an unsupported statement is refused with its line.

mod call;
mod lexer;
mod options;
mod packet;
mod settings;
mod time;

use ackclock_core::Span;

use self::lexer::{Says, Statement, statements};
use self::settings::Settings;
use crate::assertion::{Assertion, assertions};
use crate::connection::Setup;
use crate::refusal::Refusal;

pub(crate) use self::call::Call;
pub(crate) use self::options::Options;
pub use self::packet::letters;
pub(crate) use self::packet::{Packet, codepoint_name};
pub(crate) use self::time::When;

/// A parsed script, ready to run.
#[derive(Clone, Debug)]
pub struct Script {
    pub(crate) setup: Setup,
    pub(crate) opening: Opening,
    pub(crate) tolerance: Option<Span>,
    pub(crate) events: Vec<Event>,
    pub(crate) notes: Vec<Note>,
}

/// The way in which the connection of a script starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opening {
    /// The connection starts with the handshake in the script.
    Handshake,
    /// The connection is already established; the value is the peer's window scale.
    Established(u8),
}

/// An event of a script: an action to execute, or a packet to expect.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) line: usize,
    pub(crate) when: When,
    /// Text of the event without its time.
    pub(crate) text: String,
    pub(crate) action: Action,
}

/// Action of an event: a packet, a socket call or assertions.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// The peer sends this packet.
    In(Packet),
    /// The sender must send this packet.
    Out(Packet),
    /// The application makes this socket call.
    Call(Call),
    /// The sender's state must satisfy all these assertions.
    Assert(Vec<Assertion>),
}

/// A statement of a script that the run ignores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// Line of the ignored statement in the script.
    pub line: usize,
    /// Description of the ignored statement.
    pub text: String,
}

impl Script {
    /// Parses a script from its text.
    ///
    /// # Errors
    /// Returns an error that names the invalid or unsupported line, and the allowed input.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let statements = statements(text)?;
        let settings = Settings::read(&statements)?;
        let mut reader = Reader::new(settings.opening);
        for &Statement { line, says } in &statements {
            match says {
                Says::Event(text) => reader.event(line, text)?,
                Says::Assertions(time, block) => reader.assertions(line, time, block)?,
                Says::Setting(_) | Says::Flag(_) | Says::Commands(_) => {}
            }
        }
        settings.finish(reader)
    }

    /// Returns the statements of the script that are ignored.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }
}

/// Parses events in order, and keeps the state that later events need.
pub(crate) struct Reader {
    opening: Opening,
    events: Vec<Event>,
    sockets: call::Sockets,
    /// Sequence number of the first byte of data, known after the sender's SYN was read.
    first: Option<ackclock_core::Seq>,
}

impl Reader {
    fn new(opening: Opening) -> Self {
        Self { opening, events: Vec::new(), sockets: call::Sockets::new(opening), first: None }
    }

    fn event(&mut self, line: usize, text: &str) -> Result<(), Refusal> {
        let refuse = |message: String| Refusal::new(line, message);
        let (when, rest) = time::read(text).map_err(refuse)?;
        let action = match rest.chars().next() {
            Some('<') => Action::In(packet::inbound(&rest[1..]).map_err(refuse)?),
            Some('>') => Action::Out(packet::outbound(&rest[1..]).map_err(refuse)?),
            Some(_) => Action::Call(self.sockets.read(rest).map_err(refuse)?),
            None => return Err(refuse(format!("`{text}` has a time but no event"))),
        };
        if let Action::In(packet) | Action::Out(packet) = &action
            && packet.is_syn()
            && !self.takes_syn(line, &action, packet)?
        {
            return Ok(());
        }
        check_time(&action, when).map_err(refuse)?;
        self.events.push(Event { line, when, text: rest.to_owned(), action });
        Ok(())
    }

    /// Whether a packet with a SYN becomes an event. In a script without a handshake only the sequence numbers of a SYN
    /// are used.
    fn takes_syn(&mut self, line: usize, action: &Action, packet: &Packet) -> Result<bool, Refusal> {
        if let Action::Out(_) = action {
            self.first.get_or_insert(packet.seq + 1);
        } else if !packet.acknowledges() && !self.sockets.listens() {
            return Err(Refusal::new(line, "the peer's SYN comes before `listen`"));
        }
        let Opening::Established(scale) = &mut self.opening else { return Ok(true) };
        if let Action::In(_) = action {
            if packet.seq != ackclock_core::Seq(0) {
                return Err(Refusal::new(line, "with `//!nosyn` the number of the peer's SYN is 0"));
            }
            *scale = packet.options.as_ref().and_then(|options| options.syn.window_scale).unwrap_or(0);
        }
        Ok(false)
    }

    fn assertions(&mut self, line: usize, time: &str, block: &str) -> Result<(), Refusal> {
        let (when, rest) = time::read(time).map_err(|message| Refusal::new(line, message))?;
        if !rest.is_empty() {
            return Err(Refusal::new(
                line,
                format!("unexpected `{rest}` between a time and its block `%{{`"),
            ));
        }
        let action = Action::Assert(assertions(line, block)?);
        check_time(&action, when).map_err(|message| Refusal::new(line, message))?;
        self.events.push(Event { line, when, text: String::new(), action });
        Ok(())
    }
}

/// Returns an error if an event has a time range or `*` but is not a packet of the sender.
fn check_time(action: &Action, when: When) -> Result<(), String> {
    match (action, when) {
        (Action::Out(_), _) => Ok(()),
        (_, When::At(from, until) | When::After(from, until)) if from == until => Ok(()),
        _ => Err("only expected packets (`>`) may have a range of times, or `*`".to_owned()),
    }
}
