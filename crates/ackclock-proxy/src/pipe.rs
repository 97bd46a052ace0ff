//! Pipes of the kernel, through which data goes from one socket to another without a copy (splice(2)).

use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use nix::fcntl::{OFlag, SpliceFFlags, splice};
use nix::unistd::pipe2;

/// Maximum number of bytes moved into a pipe per call: what a pipe of Linux holds.
const CAPACITY: usize = 64 * 1024;
/// Maximum number of empty pipes that are kept for the next data.
const MOST_EMPTY: usize = 16;
/// Number of open files of a pipe.
const FILES_EACH: u64 = 2;

/// A pipe, and the bytes that wait in it.
#[derive(Debug)]
pub(crate) struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
    length: usize,
    /// Counts the pipe among those of the proxy until it is closed.
    _open: Arc<()>,
}

impl Pipe {
    fn new(open: &Arc<()>) -> io::Result<Self> {
        let (reader, writer) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        Ok(Self { reader, writer, length: 0, _open: Arc::clone(open) })
    }

    /// Number of bytes that wait in the pipe.
    pub(crate) const fn len(&self) -> usize {
        self.length
    }

    /// Moves received bytes of a socket into the empty pipe; returns their number, 0 at the end.
    pub(crate) fn fill(&mut self, from: &TcpStream) -> io::Result<usize> {
        let count = splice(from, None, &self.writer, None, CAPACITY, FLAGS)?;
        self.length += count;
        Ok(count)
    }

    /// Moves at most `most` bytes of the pipe to a socket; returns their number.
    pub(crate) fn drain(&mut self, to: &TcpStream, most: usize) -> io::Result<usize> {
        let count = splice(&self.reader, None, to, None, self.length.min(most), FLAGS)?;
        self.length -= count;
        Ok(count)
    }
}

const FLAGS: SpliceFFlags = SpliceFFlags::SPLICE_F_NONBLOCK.union(SpliceFFlags::SPLICE_F_MOVE);

/// The pipes of all connections. A connection has a pipe only while data waits in it.
#[derive(Debug)]
pub struct Pipes {
    empty: Vec<Pipe>,
    most: usize,
    open: Arc<()>,
}

impl Pipes {
    /// Number of open files of all pipes, at most. Linux shortens pipes that a user opens beyond 1024
    /// (`pipe-user-pages-soft`, pipe(7)).
    pub const FILES: u64 = 1000 * FILES_EACH;

    /// Creates pipes as they are needed, with at most this many open files.
    pub fn new(files: u64) -> Self {
        Self { empty: Vec::new(), most: (files / FILES_EACH) as usize, open: Arc::default() }
    }

    /// An empty pipe; `None` if no more can be opened, so that data has to be copied.
    pub(crate) fn take(&mut self) -> Option<Pipe> {
        self.empty.pop().or_else(|| {
            let open = Arc::strong_count(&self.open) - 1;
            (open < self.most).then(|| Pipe::new(&self.open).ok()).flatten()
        })
    }

    /// Keeps a pipe for the next data, or closes it.
    pub(crate) fn give_back(&mut self, pipe: Pipe) {
        if pipe.length == 0 && self.empty.len() < MOST_EMPTY {
            self.empty.push(pipe);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_makes_room_for_another() {
        let mut pipes = Pipes::new(2 * FILES_EACH + 1);
        let (first, second) = (pipes.take().unwrap(), pipes.take().unwrap());
        assert!(pipes.take().is_none(), "two pipes have four files");
        drop(first);
        assert!(pipes.take().is_some());
        pipes.give_back(second);
        assert!(pipes.take().is_some(), "an empty pipe is used again");
    }
}
