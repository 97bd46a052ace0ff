//! Background output: a separate thread writes records of the data thread, because outputs may be slow.
//!
//! The data thread puts records into a bounded queue and never blocks: a record that does not fit is dropped and
//! counted. The writer thread takes the entire queue at once, so the lock is held only for a swap. Queueing a record
//! allocates no memory.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Sending end of a background output; a record consists of one or more elements `T`. Dropping the sending end ends the
/// output.
pub(crate) struct Inlet<T> {
    shared: Arc<Shared<T>>,
    lost: u64,
}

/// Receiver of an output's result, which arrives when the output ends.
#[derive(Debug)]
pub struct Ending(Receiver<Ended>);

#[derive(Debug)]
struct Ended {
    lost: u64,
    written: io::Result<()>,
}

/// Reason why a background output is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum Unwritten {
    /// Writing the output failed.
    #[error("{0}")]
    Failed(#[from] io::Error),
    /// The output is blocked or too slow.
    #[error("it was not taken in time")]
    Stuck,
}

struct Shared<T> {
    queue: Mutex<Queue<T>>,
    bell: Condvar,
}

struct Queue<T> {
    records: Vec<T>,
    /// Maximum number of elements in the queue.
    most: usize,
    /// Number of records dropped because the queue was full.
    lost: u64,
    /// Whether the queue still accepts new records.
    open: bool,
}

/// Starts a background output: a separate thread calls `write` with queued records, in order.
///
/// # Errors
/// Fails if the thread cannot be created.
pub(crate) fn begin<T: Copy + Send + 'static>(
    most: usize,
    mut write: impl FnMut(&[T]) -> io::Result<()> + Send + 'static,
) -> io::Result<(Inlet<T>, Ending)> {
    let queue = Queue { records: Vec::with_capacity(most), most, lost: 0, open: true };
    let shared = Arc::new(Shared { queue: Mutex::new(queue), bell: Condvar::new() });
    let (tell, ending) = mpsc::channel();
    let inlet = Inlet { shared: Arc::clone(&shared), lost: 0 };
    thread::Builder::new().name("output".to_owned()).spawn(move || {
        let written = shared.write_all(&mut write);
        let lost = shared.close();
        // The receiver may have been dropped, so the result of `send` is ignored.
        let _ = tell.send(Ended { lost, written });
    })?;
    Ok((inlet, Ending(ending)))
}

impl<T: Copy> Inlet<T> {
    /// Queues a complete record, or drops the record if the queue has no room for it.
    pub(crate) fn put(&mut self, record: &[T]) {
        let mut queue = self.shared.lock();
        let before = queue.records.len();
        if !queue.open {
            return;
        }
        if before + record.len() > queue.most {
            queue.lost += 1;
            self.lost = queue.lost;
            return;
        }
        queue.records.extend_from_slice(record);
        let (after, much) = (queue.records.len(), queue.most / MUCH);
        drop(queue);
        if before == 0 || (before < much && after >= much) {
            self.shared.bell.notify_one();
        }
    }

    /// Number of records dropped so far.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Queues the last record, for which the queue always has room, and closes the queue.
    pub(crate) fn finish(&mut self, record: &[T]) {
        let mut queue = self.shared.lock();
        if queue.open {
            queue.records.extend_from_slice(record);
            queue.open = false;
        }
        drop(queue);
        self.shared.bell.notify_one();
    }
}

impl<T> Drop for Inlet<T> {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Ending {
    /// Waits for at most the time `most` until all records are written; returns the number of dropped records.
    ///
    /// # Errors
    /// Returns the first write error, or an error if the records are not written in time.
    pub fn wait(&self, most: Duration) -> Result<u64, Unwritten> {
        match self.0.recv_timeout(most) {
            Ok(Ended { lost, written }) => written.map(|()| lost).map_err(Unwritten::Failed),
            Err(RecvTimeoutError::Timeout) => Err(Unwritten::Stuck),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Unwritten::Failed(io::Error::other("the thread that wrote it died")))
            }
        }
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Queue<T>> {
        // A thread that panicked has left only complete records in the queue.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the queue; returns the number of dropped records.
    fn close(&self) -> u64 {
        let mut queue = self.lock();
        queue.open = false;
        let lost = queue.lost;
        drop(queue);
        self.bell.notify_one();
        lost
    }

    /// Writes queued records until the queue is closed.
    fn write_all(&self, write: &mut impl FnMut(&[T]) -> io::Result<()>) -> io::Result<()> {
        let mut taken = Vec::with_capacity(self.lock().most);
        loop {
            let open = self.take(&mut taken);
            write(&taken)?;
            taken.clear();
            if !open {
                return Ok(());
            }
        }
    }

    /// Swaps a non-empty queue for an empty one; returns whether more records may follow.
    fn take(&self, taken: &mut Vec<T>) -> bool {
        let waited = self.bell.wait_while(self.lock(), |queue| queue.records.is_empty() && queue.open);
        let queue = waited.unwrap_or_else(PoisonError::into_inner);
        // The writer gathers more records before writing. The data thread signals only the first record, because
        // signals are costly.
        let few = |queue: &mut Queue<T>| queue.records.len() < queue.most / MUCH && queue.open;
        let waited = self.bell.wait_timeout_while(queue, GATHER, few);
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut queue.records, taken);
        queue.open
    }
}

/// Divisor of the queue's capacity: a queue that is filled to a quarter of its capacity is written at once.
const MUCH: usize = 4;
/// Time for gathering more records while the queue is nearly empty.
const GATHER: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn what_is_put_in_is_written_in_order() {
        let (tell, told) = mpsc::channel();
        let (mut inlet, ending) = begin(1000, move |records: &[u32]| {
            let _ = tell.send(records.to_vec());
            Ok(())
        })
        .unwrap();
        (0..500).for_each(|number| inlet.put(&[number]));
        inlet.finish(&[500]);
        inlet.put(&[501]);
        assert_eq!(ending.wait(LONG).unwrap(), 0);
        assert_eq!(told.into_iter().flatten().collect::<Vec<_>>(), (0..=500).collect::<Vec<_>>());
    }

    #[test]
    fn a_stuck_output_loses_what_finds_no_room_and_is_not_waited_for() {
        let (go_on, gate) = mpsc::channel::<()>();
        let (started, begun) = mpsc::channel();
        let (mut inlet, ending) = begin(100, move |records: &[u8]| {
            let _ = started.send(records.len());
            let _ = gate.recv();
            Ok(())
        })
        .unwrap();
        inlet.put(&[1; 60]);
        assert_eq!(begun.recv().unwrap(), 60);
        // 60 elements are being written. Of five records with 30 elements each, three fit into the queue of 100, and so
        // does the last record.
        (0..5).for_each(|_| inlet.put(&[2; 30]));
        assert_eq!(inlet.lost(), 2);
        inlet.finish(&[3; 40]);
        assert!(matches!(ending.wait(Duration::ZERO), Err(Unwritten::Stuck)));
        drop(go_on);
        assert_eq!(ending.wait(LONG).unwrap(), 2);
        assert_eq!(begun.recv().unwrap(), 130);
    }

    #[test]
    fn the_first_error_ends_it_and_is_told() {
        let (mut inlet, ending) =
            begin(10, |_: &[u8]| Err(io::Error::from(io::ErrorKind::StorageFull))).unwrap();
        inlet.put(&[1]);
        let Err(Unwritten::Failed(error)) = ending.wait(LONG) else { panic!() };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        // Records after the write error are neither kept nor counted.
        (0..20).for_each(|_| inlet.put(&[1]));
        assert_eq!(inlet.lost(), 0);
    }
}
