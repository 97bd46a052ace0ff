//! Tests of the name server relay with clients on local sockets.

use std::io::{self, ErrorKind, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};

use crate::namespace::relay::{Entrance, QUERIES, Relay, STREAMS};

const CLIENTS: usize = 4;
const SERVERS: usize = 2;
/// Length of a DNS header in bytes (RFC 1035 section 4.1.1).
const MESSAGE: usize = 12;

/// Plays a script, one step per byte: a client sends a query, a server answers, or a client opens, uses or closes a
/// connection.
pub(super) fn play(script: &[u8]) -> io::Result<Result<(), String>> {
    let [servers, clients] =
        [SERVERS, CLIENTS].map(|count| (0..count).map(|_| socket()).collect::<io::Result<Vec<_>>>());
    let (servers, clients) = (servers?, clients?);
    let streams = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let entrance = Entrance { datagrams: socket()?, streams };
    let [datagrams, streams] = [entrance.datagrams.local_addr()?, entrance.streams.local_addr()?];
    let addresses = servers.iter().map(UdpSocket::local_addr).collect::<io::Result<_>>()?;
    let mut relay = Relay::new(entrance, addresses)?;
    let mut connections: Vec<TcpStream> = Vec::new();
    for &step in script {
        let client = usize::from(step) % CLIENTS;
        let mut query = [0; MESSAGE];
        query[0] = client as u8;
        clients[client].send_to(&query, datagrams)?;
        match step >> 5 {
            0..=3 => answer(&servers[usize::from(step >> 2) % SERVERS], step >> 3)?,
            4 | 5 => connections.extend(TcpStream::connect(streams)),
            6 => drop(connections.last_mut().map(|connection| connection.write(&query))),
            _ => drop(connections.pop()),
        }
        // The query has already arrived, so this round of the relay does not block.
        relay.round()?;
        let (queries, open) = relay.load();
        if queries > QUERIES || open > STREAMS {
            return Ok(Err(format!("{queries} queries and {open} connections at a time")));
        }
        if let Some(wrong) = misled(&clients)? {
            return Ok(Err(wrong));
        }
    }
    Ok(Ok(()))
}

fn socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Makes a server answer one query with a response code.
fn answer(server: &UdpSocket, code: u8) -> io::Result<()> {
    let mut message = [0; MESSAGE];
    if let Some((_, from)) = received(server.recv_from(&mut message))? {
        (message[2], message[3]) = (0x80, code & 0xf);
        // A relay that has dropped the query rejects the answer, so the result of sending is ignored.
        drop(server.send_to(&message, from));
    }
    Ok(())
}

/// Finds a client that received the answer to another client's query.
fn misled(clients: &[UdpSocket]) -> io::Result<Option<String>> {
    for (own, client) in clients.iter().enumerate() {
        let mut message = [0; MESSAGE];
        let length = received(client.recv(&mut message))?.unwrap_or(MESSAGE);
        if length != MESSAGE || message[2] == 0x80 && usize::from(message[0]) != own {
            return Ok(Some(format!("client {own} got {:?}", &message[..length])));
        }
    }
    Ok(None)
}

/// Returns `None` if no packet has arrived, or only an error report about an undelivered packet.
fn received<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Err(error) if [ErrorKind::WouldBlock, ErrorKind::ConnectionRefused].contains(&error.kind()) => {
            Ok(None)
        }
        outcome => outcome.map(Some),
    }
}
