//! The control socket: a link is asked and changed while it runs.
//!
//! Two abstract sockets, one in the network namespace of `ackclock` and one inside the link; both vanish with the process
//! that listens. A request is a line, the answer is a line: `set down.rate=1mbit` is answered by `ok`, `show` by `ok` and
//! the results so far as JSON, and what cannot be done by `error` and the reason.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;

/// What the socket inside a link is called; the innermost link answers to it.
pub const NAME_INSIDE: &str = "ackclock-link";

/// What is asked of a running link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Other values at these keys of `[edge]`: `down.rate`.
    Set(Vec<(String, String)>),
    /// The results so far.
    Show,
}

/// Which link is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressee {
    /// The one in which the caller runs, or the only one on this machine.
    Nearest,
    /// The one of this process.
    Process(u32),
}

/// Why a link did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// No link runs, or more than one.
    #[error("{0}")]
    Nobody(String),
    /// It refused.
    #[error("{0}")]
    Refused(String),
    /// It could not be talked to.
    #[error("the link does not answer: {0}")]
    Silent(#[from] io::Error),
}

impl Request {
    fn line(&self) -> String {
        match self {
            Self::Set(pairs) => {
                let pairs: String = pairs.iter().map(|(key, value)| format!("\t{key}={value}")).collect();
                format!("set{pairs}\n")
            }
            Self::Show => "show\n".to_owned(),
        }
    }

    fn parse(line: &str) -> Result<Self, String> {
        match line.trim_end().split_once('\t').unwrap_or((line.trim_end(), "")) {
            ("show", "") => Ok(Self::Show),
            ("set", pairs) if !pairs.is_empty() => {
                let pair = |text: &str| {
                    let (key, value) = text.split_once('=').ok_or(format!("`{text}` is not KEY=VALUE"))?;
                    Ok((key.to_owned(), value.to_owned()))
                };
                pairs.split('\t').map(pair).collect::<Result<_, String>>().map(Self::Set)
            }
            _ => Err(format!("`{}` is no request", line.trim_end())),
        }
    }
}

/// Listens in this network namespace for this process.
///
/// # Errors
/// Where the name is taken.
pub fn listen(process: u32) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(name_of(process))?)
}

/// Answers requests, one after the other, until the process ends.
pub fn serve(listener: &UnixListener, answer: impl Fn(&Request) -> Result<String, String>) {
    for stream in listener.incoming().flatten() {
        // A client that goes away before its answer, or says nothing, is its own affair.
        let _ = converse(stream, &answer);
    }
}

fn converse(mut stream: UnixStream, answer: impl Fn(&Request) -> Result<String, String>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let peer = getsockopt(&stream, PeerCredentials)?.uid();
    let mut line = String::new();
    BufReader::new(&stream).take(LONGEST).read_line(&mut line)?;
    let outcome = if peer == geteuid().as_raw() || peer == 0 {
        Request::parse(&line).and_then(|request| answer(&request))
    } else {
        Err("the link belongs to another user".to_owned())
    };
    let text = match outcome {
        Ok(text) => format!("ok {text}\n"),
        Err(why) => format!("error {why}\n"),
    };
    stream.write_all(text.as_bytes())
}

/// Asks a running link.
///
/// # Errors
/// Where it is not there or refuses.
pub fn ask(whom: Addressee, request: &Request) -> Result<String, Unanswered> {
    let mut stream = connect(whom)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request.line().as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.trim_end().split_once(' ').unwrap_or((answer.trim_end(), "")) {
        ("ok", text) => Ok(text.to_owned()),
        ("error", why) => Err(Unanswered::Refused(why.to_owned())),
        _ => Err(Unanswered::Silent(io::ErrorKind::UnexpectedEof.into())),
    }
}

const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST: u64 = 64 << 10;

fn connect(whom: Addressee) -> Result<UnixStream, Unanswered> {
    let to = |name: &str| UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?);
    let process = match whom {
        Addressee::Process(process) => process,
        Addressee::Nearest => match to(NAME_INSIDE) {
            Ok(stream) => return Ok(stream),
            Err(_) => only(&running())?,
        },
    };
    to(&name_of(process)).map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => Unanswered::Nobody(format!("process {process} runs no link")),
        _ => error.into(),
    })
}

fn only(processes: &[u32]) -> Result<u32, Unanswered> {
    match processes {
        [process] => Ok(*process),
        [] => Err(Unanswered::Nobody("no link is running".to_owned())),
        several => {
            let list: Vec<_> = several.iter().map(u32::to_string).collect();
            Err(Unanswered::Nobody(format!(
                "several links are running; choose with --pid: {}",
                list.join(", ")
            )))
        }
    }
}

/// The processes of the links that listen in this network namespace.
fn running() -> Vec<u32> {
    let table = fs::read_to_string("/proc/self/net/unix").unwrap_or_default();
    let prefix = format!("@{PREFIX}");
    let mut processes: Vec<u32> = table
        .lines()
        .filter_map(|line| line.split_whitespace().last()?.strip_prefix(&prefix)?.parse().ok())
        .collect();
    // A connection bears the name of its listener.
    processes.sort_unstable();
    processes.dedup();
    processes
}

fn name_of(process: u32) -> String {
    format!("{PREFIX}{process}")
}

const PREFIX: &str = "ackclock-link-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_the_way() {
        for request in [
            Request::Show,
            Request::Set(vec![
                ("down.rate".into(), "u(200kbit/s, 50kbit/s)".into()),
                ("up.loss".into(), "0.1".into()),
            ]),
        ] {
            assert_eq!(Request::parse(&request.line()), Ok(request));
        }
        for line in ["", "set", "set\tx", "show\tx", "stop"] {
            assert!(Request::parse(line).is_err(), "{line:?}");
        }
    }

    #[test]
    fn a_link_answers_and_refuses() {
        // A number that no process has.
        let process = u32::MAX - std::process::id();
        let listener = listen(process).unwrap();
        std::thread::spawn(move || {
            serve(&listener, |request| match request {
                Request::Show => Ok("{}".to_owned()),
                Request::Set(_) => Err("no such key".to_owned()),
            });
        });
        assert!(running().contains(&process));
        assert_eq!(ask(Addressee::Process(process), &Request::Show).unwrap(), "{}");
        let refused = ask(Addressee::Process(process), &Request::Set(vec![("a".into(), "b".into())]));
        assert_eq!(refused.unwrap_err().to_string(), "no such key");
        let nobody = ask(Addressee::Process(process - 1), &Request::Show);
        assert!(matches!(nobody, Err(Unanswered::Nobody(_))), "{nobody:?}");
    }
}
