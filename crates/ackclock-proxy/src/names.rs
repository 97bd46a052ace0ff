//! Looks up server names on separate threads, so that relaying of data is not delayed.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use nix::sys::eventfd::{EfdFlags, EventFd};

/// Number of threads for name lookups. A slow name server blocks a thread for many seconds.
const THREADS: usize = 8;
/// Maximum number of lookups of one user at the same time, so that the slow lookups of one user do not delay others.
const OF_A_USER: usize = THREADS / 4;

/// Lookup request: token of the client, name and port of the server.
type Question = (u64, String, u16);

/// Lookup threads, with the requests that wait for a thread, and the results.
pub struct Names {
    questions: Sender<Question>,
    answers: Receiver<(u64, Vec<SocketAddr>)>,
    bell: Arc<EventFd>,
    lines: BTreeMap<IpAddr, Line>,
    /// Users with a waiting request that may start, in order of their turns.
    turns: VecDeque<IpAddr>,
    /// User of each lookup in progress, by token.
    started: BTreeMap<u64, IpAddr>,
}

/// Requests of one user.
#[derive(Default)]
struct Line {
    waiting: VecDeque<Question>,
    started: usize,
    /// Whether the user is in the list of turns.
    has_turn: bool,
}

impl Line {
    /// Number of lookups that may be in progress. This machine's own programs may use all threads.
    fn most(user: IpAddr) -> usize {
        if user.is_loopback() { THREADS } else { OF_A_USER }
    }
}

/// Addresses of a server, from the name service of the machine; none for an unknown name.
pub fn addresses(host: &str, port: u16) -> Vec<SocketAddr> {
    (host, port).to_socket_addrs().map_or_else(|_| Vec::new(), Iterator::collect)
}

impl Names {
    /// Starts the lookup threads; `lookup` returns the addresses of a server.
    ///
    /// # Errors
    /// Fails if the kernel cannot create an event descriptor.
    pub fn start(lookup: fn(&str, u16) -> Vec<SocketAddr>) -> std::io::Result<Self> {
        let bell =
            Arc::new(EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?);
        let (questions, asked) = mpsc::channel::<Question>();
        let (found, answers) = mpsc::channel();
        let asked = Arc::new(Mutex::new(asked));
        for _ in 0..THREADS {
            let (asked, found, bell) = (Arc::clone(&asked), found.clone(), Arc::clone(&bell));
            thread::spawn(move || {
                loop {
                    let next = asked.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((whose, host, port)) = next else { return };
                    if found.send((whose, lookup(&host, port))).is_err() || bell.write(1).is_err() {
                        return;
                    }
                }
            });
        }
        let (lines, turns, started) = (BTreeMap::new(), VecDeque::new(), BTreeMap::new());
        Ok(Self { questions, answers, bell, lines, turns, started })
    }

    /// Requests the addresses of a server for a user; `whose` is the client's token.
    pub fn ask(&mut self, user: IpAddr, whose: u64, host: String, port: u16) {
        self.lines.entry(user).or_default().waiting.push_back((whose, host, port));
        self.queue_up(user);
        self.start_next();
    }

    /// Withdraws the request of a client; returns whether the lookup had not started.
    pub fn withdraw(&mut self, user: IpAddr, whose: u64) -> bool {
        let Some(line) = self.lines.get_mut(&user) else { return false };
        let before = line.waiting.len();
        line.waiting.retain(|(token, ..)| *token != whose);
        line.waiting.len() < before
    }

    /// Lookup results since the last call; an unknown name has no addresses.
    pub fn found(&mut self) -> Vec<(u64, Vec<SocketAddr>)> {
        let _ = self.bell.read();
        let found: Vec<_> = self.answers.try_iter().collect();
        for (whose, _) in &found {
            let Some(user) = self.started.remove(whose) else { continue };
            if let Some(line) = self.lines.get_mut(&user) {
                line.started -= 1;
            }
            self.queue_up(user);
        }
        self.start_next();
        found
    }

    /// Gives a user a turn if a request of the user may start, and forgets a user without requests.
    fn queue_up(&mut self, user: IpAddr) {
        let Some(line) = self.lines.get_mut(&user).filter(|line| !line.has_turn) else { return };
        if line.waiting.is_empty() {
            if line.started == 0 {
                self.lines.remove(&user);
            }
        } else if line.started < Line::most(user) {
            line.has_turn = true;
            self.turns.push_back(user);
        }
    }

    /// Starts lookups while threads are free, one per turn.
    fn start_next(&mut self) {
        while self.started.len() < THREADS
            && let Some(user) = self.turns.pop_front()
        {
            if let Some(line) = self.lines.get_mut(&user) {
                line.has_turn = false;
                if let Some(question) = line.waiting.pop_front() {
                    line.started += 1;
                    self.started.insert(question.0, user);
                    // The threads run as long as this value exists, so sending cannot fail.
                    let _ = self.questions.send(question);
                }
            }
            self.queue_up(user);
        }
    }

    /// Event descriptor that is readable when results are available.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    use super::*;

    /// Lookups of the name `slow` wait as long as the test holds this lock.
    static NAME_SERVER: Mutex<()> = Mutex::new(());

    fn lookup(host: &str, port: u16) -> Vec<SocketAddr> {
        if host == "slow" {
            drop(NAME_SERVER.lock().unwrap_or_else(PoisonError::into_inner));
        }
        vec![([192, 0, 2, 1], port).into()]
    }

    /// Tokens of the next results, in ascending order.
    fn next(names: &mut Names, count: usize) -> Vec<u64> {
        let mut found = Vec::new();
        while found.len() < count {
            let mut bell = [PollFd::new(names.bell(), PollFlags::POLLIN)];
            assert_eq!(poll(&mut bell, PollTimeout::from(60_000_u16)).unwrap(), 1, "no result: {found:?}");
            found.extend(names.found().into_iter().map(|(whose, _)| whose));
        }
        found.sort_unstable();
        found
    }

    #[test]
    fn slow_lookups_of_one_user_delay_no_other_user() {
        let held = NAME_SERVER.lock().unwrap();
        let mut names = Names::start(lookup).unwrap();
        let [slow, fast] = ["192.0.2.8", "192.0.2.9"].map(|user| user.parse::<IpAddr>().unwrap());
        for whose in 0..100 {
            names.ask(slow, whose, "slow".to_owned(), 80);
        }
        for whose in 100..200 {
            names.ask(fast, whose, "fast".to_owned(), 80);
        }
        assert_eq!(next(&mut names, 100), (100..200).collect::<Vec<_>>());
        // Of the slow lookups, two have started; the others can be withdrawn.
        assert!(!names.withdraw(slow, 1) && names.withdraw(slow, 2) && !names.withdraw(slow, 2));
        drop(held);
        assert_eq!(next(&mut names, 99), (0..100).filter(|&whose| whose != 2).collect::<Vec<_>>());
        assert!(names.lines.is_empty() && names.turns.is_empty() && names.started.is_empty());
    }
}
