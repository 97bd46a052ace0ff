//! Control socket, which queries and changes a running link.
//!
//! A link has two control sockets. The inner socket has an abstract name in the link's network namespace, so no program
//! inside the link can have taken the name before. The outer socket is in the user's private run-time folder. Without a
//! run-time folder, the outer socket also has an abstract name, which another user may take first. Each side of a
//! control socket checks the peer process and accepts only its own user and root. Request and answer are one line each:
//! `set down.rate=1mbit` is answered by `ok`, `show` by `ok` and the current results as JSON, and a failed request by
//! `error` and the reason.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ackclock_core::Span;
use ackclock_core::text::printable_line;
use ackclock_link::Direction;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;

use crate::clients::{self, Protocol};
use crate::faults::Fault;
use crate::runtime_dir;

/// Name of the control socket inside a link; with nested links, the innermost answers.
pub const NAME_INSIDE: &str = "ackclock-link";

/// Request to a running link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkRequest {
    /// Sets keys of `[edge]`, such as `down.rate`.
    Set(Vec<(String, String)>),
    /// Requests the results so far.
    Show,
    /// Requests the current conditions, the keys of `[edge]`.
    Conditions,
    /// Interrupts one or both directions for a time.
    Outage(Outage),
    /// Adds a fault of single connections.
    Fault(Fault),
    /// Requests the faults in force.
    Faults,
    /// Ends all faults.
    ClearFaults,
}

/// An interruption of a running link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Duration of the interruption.
    pub lasts: Span,
    /// Interrupted direction; `None` interrupts both directions.
    pub direction: Option<Direction>,
    /// Whether queued and arriving packets are lost; otherwise they are queued until the end of the interruption.
    pub drop: bool,
}

impl Outage {
    fn line(&self) -> String {
        let direction = match self.direction {
            Some(Direction::Up) => "up",
            Some(Direction::Down) => "down",
            None => "both",
        };
        format!("outage\t{}\t{direction}\t{}\n", self.lasts, if self.drop { "drop" } else { "keep" })
    }

    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('\t').collect();
        let [lasts, direction, what] = parts[..] else { return Err(format!("`{text}` is no outage")) };
        let direction = match direction {
            "up" => Some(Direction::Up),
            "down" => Some(Direction::Down),
            "both" => None,
            other => return Err(format!("`{other}` is no direction; write up, down or both")),
        };
        let drop = match what {
            "drop" => true,
            "keep" => false,
            other => return Err(format!("`{other}` is neither drop nor keep")),
        };
        let lasts: Span = lasts.parse().map_err(|error| format!("{error}"))?;
        if lasts == Span::ZERO {
            return Err("an outage must last longer than 0".to_owned());
        }
        Ok(Self { lasts, direction, drop })
    }
}

/// Choice of the link to which a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressee {
    /// Link in which the caller runs, or the only link of the caller's user.
    Nearest,
    /// Link of the process with this number.
    Process(u32),
}

/// Reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// No link is running, or several links are running.
    #[error("{0}")]
    Nobody(String),
    /// The link refused the request.
    #[error("{0}")]
    Refused(String),
    /// The link could not be reached.
    #[error("the link does not answer: {0}")]
    Silent(#[from] io::Error),
}

impl LinkRequest {
    pub(crate) fn line(&self) -> String {
        match self {
            Self::Set(pairs) => {
                let pairs: String = pairs.iter().map(|(key, value)| format!("\t{key}={value}")).collect();
                format!("set{pairs}\n")
            }
            Self::Show => "show\n".to_owned(),
            Self::Conditions => "conditions\n".to_owned(),
            Self::Outage(outage) => outage.line(),
            Self::Fault(Fault { kind, only, lasts }) => {
                let lasts = lasts.map_or("-".to_owned(), |lasts| lasts.to_string());
                format!("fault\t{kind}\t{lasts}\t{}\n", only.join("\t"))
            }
            Self::Faults => "faults\n".to_owned(),
            Self::ClearFaults => "mend\n".to_owned(),
        }
    }

    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        match line.trim_end().split_once('\t').unwrap_or((line.trim_end(), "")) {
            ("show", "") => Ok(Self::Show),
            ("conditions", "") => Ok(Self::Conditions),
            ("outage", text) => Outage::parse(text).map(Self::Outage),
            ("fault", text) => fault(text).map(Self::Fault),
            ("faults", "") => Ok(Self::Faults),
            ("mend", "") => Ok(Self::ClearFaults),
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

/// Parses `KIND\tTIME or -\tMATCH...`.
fn fault(text: &str) -> Result<Fault, String> {
    let mut parts = text.split('\t');
    let (kind, lasts) = (parts.next().unwrap_or_default(), parts.next().unwrap_or("-"));
    let lasts = if lasts == "-" { None } else { Some(lasts) };
    Fault::parse(kind, lasts, parts.filter(|part| !part.is_empty()))
}

/// Control socket that accepts requests of this user and of root.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
}

/// Path of a socket file, which is removed when the value is dropped.
#[derive(Debug)]
pub struct Name(Option<PathBuf>);

impl Drop for Name {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // If removal fails, the next link removes the file.
            let _ = fs::remove_file(path);
        }
    }
}

/// Listens for requests to this process: in the private run-time folder, or under an abstract name in this network
/// namespace.
///
/// # Errors
/// Fails if the user has no run-time folder, and the abstract name is taken.
pub fn listen(process: u32) -> io::Result<(Listener, Name)> {
    if let Ok((socket, path)) = runtime_dir::private().and_then(|folder| listen_in(&folder, process)) {
        return Ok((Listener { socket }, Name(Some(path))));
    }
    let name = SocketAddr::from_abstract_name(format!("{PREFIX}{process}"))?;
    Ok((Listener { socket: UnixListener::bind_addr(&name)? }, Name(None)))
}

fn listen_in(folder: &Path, process: u32) -> io::Result<(UnixListener, PathBuf)> {
    remove_dead(folder);
    let path = folder.join(file_name(process)?);
    // The socket file gets its final name only after the socket listens; earlier, the file would look like the socket
    // of a dead link.
    let nameless = path.with_extension("new");
    let _ = fs::remove_file(&nameless);
    let socket = UnixListener::bind(&nameless)?;
    fs::rename(&nameless, &path)?;
    Ok((socket, path))
}

/// Removes socket files of killed links.
fn remove_dead(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_socket = entry.path().extension().is_some_and(|ending| ending == ENDING);
        let refuses = || {
            UnixStream::connect(entry.path()).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
        };
        if is_socket && refuses() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

impl From<UnixListener> for Listener {
    fn from(socket: UnixListener) -> Self {
        Self { socket }
    }
}

impl Listener {
    /// Answers requests until the process ends.
    ///
    /// # Errors
    /// Fails if the kernel does not report new clients.
    pub fn serve(&self, answer: impl Fn(&LinkRequest) -> Result<String, String>) -> io::Result<()> {
        clients::serve(self.socket.as_fd(), || Ok(self.socket.accept()?.0.into()), &Lines(answer))
    }
}

/// Protocol that answers each request line with one line.
struct Lines<F>(F);

impl<F: Fn(&LinkRequest) -> Result<String, String>> Protocol for Lines<F> {
    const LONGEST: usize = 64 << 10;

    fn is_whole(line: &[u8]) -> bool {
        line.contains(&b'\n')
    }

    fn refusal(&self, client: &File) -> Option<Vec<u8>> {
        (!is_believed(client)).then(|| outcome(Err("the link belongs to another user".to_owned())))
    }

    fn answer(&self, line: &[u8]) -> Vec<u8> {
        answer_to(line, &self.0)
    }
}

/// Answer to a request line.
pub(crate) fn answer_to(line: &[u8], answer: impl Fn(&LinkRequest) -> Result<String, String>) -> Vec<u8> {
    let line = String::from_utf8_lossy(line);
    outcome(LinkRequest::parse(&line).and_then(|request| answer(&request)))
}

fn outcome(outcome: Result<String, String>) -> Vec<u8> {
    let (word, text) = match &outcome {
        Ok(text) => ("ok", text),
        Err(why) => ("error", why),
    };
    format!("{word} {}\n", printable_line(text)).into_bytes()
}

/// Whether the peer process belongs to this user or to root. The user of a listener is the user who called `listen`.
fn is_believed(peer: &impl AsFd) -> bool {
    getsockopt(peer, PeerCredentials).is_ok_and(|peer| [geteuid().as_raw(), 0].contains(&peer.uid()))
}

/// Sends a request to a running link.
///
/// # Errors
/// Fails if the link cannot be reached or refuses the request.
pub fn ask(whom: Addressee, request: &LinkRequest) -> Result<String, Unanswered> {
    let mut stream = connect(whom)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // A link of another user answers before it reads the request, so the write may fail.
    let asked = stream.write_all(request.line().as_bytes());
    let mut answer = String::new();
    BufReader::new(&stream).take(LONGEST_ANSWER).read_line(&mut answer)?;
    match answer.trim_end().split_once(' ').unwrap_or((answer.trim_end(), "")) {
        ("ok", text) => Ok(text.to_owned()),
        ("error", why) => Err(Unanswered::Refused(why.to_owned())),
        _ => Err(asked.err().unwrap_or_else(|| ErrorKind::UnexpectedEof.into()).into()),
    }
}

/// Time limit for a link's answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum size of an answer in bytes, which exceeds the results of the maximum number of flows.
const LONGEST_ANSWER: u64 = 1 << 28;

fn connect(whom: Addressee) -> Result<UnixStream, Unanswered> {
    let process = match whom {
        Addressee::Process(process) => process,
        Addressee::Nearest => match connect_abstract(NAME_INSIDE) {
            // Outside of links, a process of another user may hold this socket name too.
            Ok(stream) if is_believed(&stream) => return Ok(stream),
            _ => only(&running())?,
        },
    };
    let stream = to_process(process).map_err(|error| match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::NotFound => {
            Unanswered::Nobody(format!("process {process} runs no link"))
        }
        _ => error.into(),
    })?;
    if !is_believed(&stream) {
        return Err(Unanswered::Nobody(format!("the link of process {process} belongs to another user")));
    }
    Ok(stream)
}

fn to_process(process: u32) -> io::Result<UnixStream> {
    let in_folder = || UnixStream::connect(runtime_dir::private()?.join(file_name(process)?));
    in_folder().or_else(|_| connect_abstract(&format!("{PREFIX}{process}")))
}

fn connect_abstract(name: &str) -> io::Result<UnixStream> {
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)
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

/// Process numbers of this user's links, in this process or network namespace.
fn running() -> Vec<u32> {
    let named = in_folder().unwrap_or_default().into_iter().chain(under_abstract_names());
    let mut processes: Vec<u32> =
        named.filter(|&process| to_process(process).is_ok_and(|stream| is_believed(&stream))).collect();
    processes.sort_unstable();
    processes.dedup();
    processes
}

fn in_folder() -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(runtime_dir::private()?)?.flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names
        .filter_map(|name| {
            process_of(&name).filter(|&process| file_name(process).is_ok_and(|own| own == name))
        })
        .collect())
}

fn under_abstract_names() -> Vec<u32> {
    let table = fs::read_to_string("/proc/self/net/unix").unwrap_or_default();
    let prefix = format!("@{PREFIX}");
    let mut processes: Vec<u32> = table
        .lines()
        .filter_map(|line| line.split_whitespace().last()?.strip_prefix(&prefix)?.parse().ok())
        .collect();
    // The kernel lists accepted connections under the name of their listener, so names repeat.
    processes.sort_unstable();
    processes.dedup();
    processes
}

/// File name of a control socket. All process namespaces share the folder, so the name also contains the namespace's
/// number.
fn file_name(process: u32) -> io::Result<String> {
    let namespace = fs::read_link("/proc/self/ns/pid")?;
    let number: String = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    Ok(format!("link-{number}-{process}.{ENDING}"))
}

fn process_of(name: &str) -> Option<u32> {
    name.strip_suffix(ENDING)?.strip_suffix('.')?.rsplit_once('-')?.1.parse().ok()
}

const PREFIX: &str = "ackclock-link-";
const ENDING: &str = "sock";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_the_way() {
        for request in [
            LinkRequest::Show,
            LinkRequest::Conditions,
            LinkRequest::Outage(Outage { lasts: Span::from_millis(1500), direction: None, drop: false }),
            LinkRequest::Outage(Outage {
                lasts: Span::from_secs(3),
                direction: Some(Direction::Up),
                drop: true,
            }),
            LinkRequest::Set(vec![
                ("down.rate".into(), "u(200kbit/s, 50kbit/s)".into()),
                ("up.loss".into(), "0.1".into()),
            ]),
            LinkRequest::Faults,
            LinkRequest::ClearFaults,
            LinkRequest::Fault(Fault::parse("reset=64kB", Some("9s"), ["dns", "tcp:1"].into_iter()).unwrap()),
            LinkRequest::Fault(Fault::parse("cut=up", None, std::iter::empty()).unwrap()),
        ] {
            assert_eq!(LinkRequest::parse(&request.line()), Ok(request));
        }
        for line in [
            "",
            "set",
            "set\tx",
            "fault\tcut\t0s\t",
            "fault\tcut\t-\thttp",
            "fault\texplode\t-\t",
            "show\tx",
            "stop",
            "outage\t0s\tboth\tkeep",
            "outage\t1s\tboth",
        ] {
            assert!(LinkRequest::parse(line).is_err(), "{line:?}");
        }
    }

    /// A link that shows nothing and refuses every change; its process number does not exist.
    fn link(offset: u32) -> (u32, Name) {
        let process = u32::MAX - 2 * std::process::id() - offset;
        let (listener, name) = listen(process).unwrap();
        std::thread::spawn(move || {
            listener.serve(|request| match request {
                LinkRequest::Show | LinkRequest::Conditions => Ok("{}".to_owned()),
                LinkRequest::Faults => Ok("[]".to_owned()),
                _ => Err("no such key \u{1b}[2J".to_owned()),
            })
        });
        (process, name)
    }

    #[test]
    fn a_link_answers_and_refuses() {
        let (process, name) = link(0);
        assert!(running().contains(&process));
        assert_eq!(ask(Addressee::Process(process), &LinkRequest::Show).unwrap(), "{}");
        let refused = ask(Addressee::Process(process), &LinkRequest::Set(vec![("a".into(), "b".into())]));
        assert_eq!(refused.unwrap_err().to_string(), "no such key \\u001b[2J");
        drop(name);
        let nobody = ask(Addressee::Process(process), &LinkRequest::Show);
        assert!(matches!(nobody, Err(Unanswered::Nobody(_))), "{nobody:?}");
    }

    #[test]
    fn idle_clients_do_not_keep_a_link_from_answering() {
        let (process, _name) = link(1);
        let idle: Vec<_> = (0..300).map(|_| to_process(process).unwrap()).collect();
        assert_eq!(ask(Addressee::Process(process), &LinkRequest::Show).unwrap(), "{}");
        drop(idle);
    }

    #[test]
    fn the_socket_of_a_link_that_was_killed_is_removed_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        drop(listen_in(folder.path(), 1).unwrap());
        let (_socket, path) = listen_in(folder.path(), 2).unwrap();
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, [path]);
    }
}
