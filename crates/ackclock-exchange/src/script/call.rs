//! Socket calls of the application in a script, with their expected results.

use super::Opening;
use super::options::number;

/// Effect of a socket call on the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    /// A call without effect on the connection.
    Nothing,
    /// Accepts the connection, whose handshake must be complete.
    Accept,
    /// Opens the connection with a SYN.
    Connect,
    /// Writes this number of bytes to the connection.
    Write(u64),
    /// Sets the socket option TCP_NODELAY.
    NoDelay,
    /// Closes the connection for writing.
    Close,
}

/// State of the sockets in a script: one listening or connecting socket, and one connection.
#[derive(Clone, Debug)]
pub(crate) struct Sockets {
    opening: Opening,
    socket: Option<u32>,
    connection: Option<u32>,
    listens: bool,
    is_closed: bool,
}

/// Names of socket options without effect: the sender has an unlimited send buffer.
const HARMLESS_OPTIONS: [&str; 3] = ["SO_REUSEADDR", "SO_SNDBUF", "SO_RCVBUF"];
const NODELAY: &str = "TCP_NODELAY";

const CALLS: &str =
    "socket, bind, listen, accept, connect, setsockopt, getsockopt, fcntl, write, send, shutdown, close";

/// A socket call as written in the script.
struct Written<'a> {
    name: &'a str,
    arguments: Vec<&'a str>,
    result: &'a str,
    /// Text after the result of a call: name and explanation of an error.
    error: &'a str,
}

impl Sockets {
    pub(super) fn new(opening: Opening) -> Self {
        Self { opening, socket: None, connection: None, listens: false, is_closed: false }
    }

    /// Whether the socket listens, so that a SYN of the peer is answered.
    pub(super) fn listens(&self) -> bool {
        self.listens
    }

    /// Whether the script opens the connection with `connect`.
    pub(super) fn connects(&self) -> bool {
        self.connection.is_some() && self.connection == self.socket
    }

    /// Parses a socket call.
    ///
    /// # Errors
    /// Returns an error if the call is not supported, or its expected result is impossible.
    pub(super) fn read(&mut self, text: &str) -> Result<Call, String> {
        let call = written(text)?;
        match call.name {
            "socket" => self.open(&call),
            "bind" => self.on_socket(&call, "0").map(|()| Call::Nothing),
            "listen" => {
                self.on_socket(&call, "0")?;
                self.listens = true;
                Ok(Call::Nothing)
            }
            "accept" => self.accept(&call),
            "connect" => self.connect(&call),
            "setsockopt" => self.set_option(&call),
            "getsockopt" if call.arguments.get(2..4) == Some(&["SO_ERROR", "[0]"]) => Ok(Call::Nothing),
            "getsockopt" => Err("getsockopt: only `SO_ERROR, [0]` is supported".to_owned()),
            "fcntl" => Ok(Call::Nothing),
            "write" | "send" => self.write(&call),
            "shutdown" => match call.arguments.get(1) {
                Some(&("SHUT_WR" | "SHUT_RDWR")) => self.close(&call),
                _ => Err("shutdown: only SHUT_WR and SHUT_RDWR are supported".to_owned()),
            },
            "close" if self.is_listener(&call) => Ok(Call::Nothing),
            "close" => self.close(&call),
            name => Err(format!("unknown call `{name}`; known are {CALLS}")),
        }
    }

    fn open(&mut self, call: &Written<'_>) -> Result<Call, String> {
        if self.socket.is_some() {
            return Err("socket: a script has only one connection, and it has a socket already".to_owned());
        }
        if call.arguments.get(1) != Some(&"SOCK_STREAM") {
            return Err("socket: only SOCK_STREAM is supported".to_owned());
        }
        self.socket = Some(number("socket", call.result)?);
        Ok(Call::Nothing)
    }

    fn accept(&mut self, call: &Written<'_>) -> Result<Call, String> {
        if !self.listens || !self.is_listener(call) {
            return Err("accept: the socket does not listen".to_owned());
        }
        if self.connection.is_some() {
            return Err("accept: a script has only one connection".to_owned());
        }
        self.connection = Some(number("accept", call.result)?);
        Ok(Call::Accept)
    }

    fn connect(&mut self, call: &Written<'_>) -> Result<Call, String> {
        if let Opening::Established(_) = self.opening {
            return Err("connect: with `//!nosyn` the connection is already established".to_owned());
        }
        if self.listens || self.connection.is_some() {
            return Err("connect: the socket is listening or connected".to_owned());
        }
        if !call.error.starts_with("EINPROGRESS") {
            return Err("connect: it returns at once, `= -1 EINPROGRESS (...)`".to_owned());
        }
        self.on_socket(call, "-1")?;
        self.connection = self.socket;
        Ok(Call::Connect)
    }

    fn set_option(&self, call: &Written<'_>) -> Result<Call, String> {
        let option = call.arguments.get(2).copied().unwrap_or_default();
        if option == NODELAY {
            return match call.arguments.get(3) {
                Some(&"[1]") => returns(call, "0").map(|()| Call::NoDelay),
                _ => Err(format!("setsockopt: {NODELAY} is only set here, by `[1]`")),
            };
        }
        if !HARMLESS_OPTIONS.contains(&option) {
            let known = HARMLESS_OPTIONS.join(", ");
            return Err(format!(
                "setsockopt: unknown option `{option}`; known are {known}, {NODELAY}; `//!sender` selects the sender"
            ));
        }
        returns(call, "0").map(|()| Call::Nothing)
    }

    fn write(&mut self, call: &Written<'_>) -> Result<Call, String> {
        self.on_connection(call)?;
        if self.is_closed {
            return Err(format!("{}: the connection was closed", call.name));
        }
        let bytes = call.arguments.get(2).copied().unwrap_or_default();
        if call.name == "send" && call.arguments.get(3) != Some(&"0") {
            return Err("send: its flags must be 0".to_owned());
        }
        returns(call, bytes)?;
        Ok(Call::Write(number::<u32>(call.name, bytes)?.into()))
    }

    fn close(&mut self, call: &Written<'_>) -> Result<Call, String> {
        self.on_connection(call)?;
        returns(call, "0")?;
        // `close` may follow a `shutdown`, which already closed the connection for writing.
        let first = !std::mem::replace(&mut self.is_closed, true);
        Ok(if first { Call::Close } else { Call::Nothing })
    }

    fn is_listener(&self, call: &Written<'_>) -> bool {
        self.listens && self.socket.is_some_and(|socket| is_number(call.arguments[0], socket))
    }

    fn on_socket(&self, call: &Written<'_>, result: &str) -> Result<(), String> {
        match self.socket {
            Some(socket) if is_number(call.arguments[0], socket) => returns(call, result),
            _ => Err(format!("{}: `{}` is not the socket", call.name, call.arguments[0])),
        }
    }

    /// Checks that the call uses the file descriptor of the connection. With `//!nosyn` the script has no `accept`, so
    /// the first descriptor used becomes the connection's.
    fn on_connection(&mut self, call: &Written<'_>) -> Result<(), String> {
        if let (Opening::Established(_), None, false) =
            (self.opening, self.connection, self.is_listener(call))
        {
            self.connection = Some(number(call.name, call.arguments[0])?);
        }
        match self.connection {
            Some(connection) if is_number(call.arguments[0], connection) => Ok(()),
            _ => Err(format!("{}: `{}` is not the connection", call.name, call.arguments[0])),
        }
    }
}

fn is_number(word: &str, wanted: u32) -> bool {
    word.parse() == Ok(wanted)
}

/// Checks the expected result of a call. Every call succeeds in this simulation.
fn returns(call: &Written<'_>, result: &str) -> Result<(), String> {
    if call.result == result {
        return Ok(());
    }
    Err(format!("{}: it returns {result}, not `{}`", call.name, call.result))
}

/// Parses `name(argument, ...) = result error`.
fn written(text: &str) -> Result<Written<'_>, String> {
    let wrong =
        || format!("`{text}` is neither a packet (`<`, `>`) nor a call like `write(4, ..., 1000) = 1000`");
    let (name, rest) = text.split_once('(').ok_or_else(wrong)?;
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(wrong());
    }
    let end = closing(rest).ok_or_else(wrong)?;
    let result = rest[end + 1..].trim_start().strip_prefix('=').ok_or_else(wrong)?.trim();
    let (result, error) = result.split_once(char::is_whitespace).unwrap_or((result, ""));
    Ok(Written { name, arguments: arguments(&rest[..end]), result, error: error.trim() })
}

/// Position of the closing parenthesis that matches the opening parenthesis before `text`.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quoted) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' => depth += 1,
            ')' if depth == 0 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Splits the arguments at commas outside brackets. The result has at least one argument, which may be empty.
fn arguments(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0u32, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(text[start..].trim());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Sockets {
        let mut sockets = Sockets::new(Opening::Handshake);
        for call in ["socket(..., SOCK_STREAM, IPPROTO_TCP) = 3", "bind(3, ..., ...) = 0", "listen(3, 1) = 0"]
        {
            assert_eq!(sockets.read(call), Ok(Call::Nothing));
        }
        sockets
    }

    #[test]
    fn a_server_accepts_writes_and_closes() {
        let mut sockets = server();
        let calls = [
            ("accept(3, ..., ...) = 4", Call::Accept),
            ("setsockopt(4, SOL_SOCKET, SO_SNDBUF, [200000], 4) = 0", Call::Nothing),
            ("setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0", Call::NoDelay),
            ("write(4, ..., 1000) = 1000", Call::Write(1000)),
            ("send(4, ..., 10, 0) = 10", Call::Write(10)),
            ("close(3) = 0", Call::Nothing),
            ("shutdown(4, SHUT_WR) = 0", Call::Close),
            ("close(4) = 0", Call::Nothing),
        ];
        for (text, call) in calls {
            assert_eq!(sockets.read(text), Ok(call), "{text}");
        }
        assert!(sockets.read("write(4, ..., 1) = 1").unwrap_err().contains("was closed"));
    }

    #[test]
    fn a_client_connects_and_does_not_wait() {
        let mut sockets = Sockets::new(Opening::Handshake);
        let calls = [
            ("socket(..., SOCK_STREAM, IPPROTO_TCP) = 3", Call::Nothing),
            ("fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0", Call::Nothing),
            ("connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)", Call::Connect),
            ("getsockopt(3, SOL_SOCKET, SO_ERROR, [0], [4]) = 0", Call::Nothing),
            ("write(3, ..., 1000) = 1000", Call::Write(1000)),
        ];
        for (text, call) in calls {
            assert_eq!(sockets.read(text), Ok(call), "{text}");
        }
        assert!(sockets.connects());
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        let refused = [
            ("accept(4, ..., ...) = 5", "does not listen"),
            ("write(4, ..., 1000) = 1000", "`4` is not the connection"),
            ("socket(..., SOCK_STREAM, IPPROTO_TCP) = 5", "one connection"),
            ("setsockopt(3, SOL_TCP, TCP_CONGESTION, \"reno\", 4) = 0", "unknown option `TCP_CONGESTION`"),
            ("read(3, ..., 1000) = 1000", "unknown call `read`"),
            ("bind(3, ..., ...) = -1 EINVAL (Invalid argument)", "it returns 0, not `-1`"),
            ("connect(3, ..., ...) = 0", "connected"),
            ("write(3, ..., 5", "neither a packet"),
            ("hello", "neither a packet"),
        ];
        for (text, message) in refused {
            let error = server().read(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn commas_and_parentheses_within_brackets_and_quotes_part_nothing() {
        let call = written("f(1, [2, 3], \"a)\") = 0 (x)").unwrap();
        assert_eq!((call.arguments, call.result, call.error), (vec!["1", "[2, 3]", "\"a)\""], "0", "(x)"));
    }
}
