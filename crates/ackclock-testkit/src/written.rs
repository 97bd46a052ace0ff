//! A file in memory that can be read after its writer is dropped.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// A file in memory. All clones share the contents, so that a test can read what another clone wrote.
#[derive(Clone, Debug, Default)]
pub struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    /// Copy of the bytes written to the file so far.
    pub fn bytes(&self) -> Vec<u8> {
        // If a writer panicked, the buffer still has only completely written bytes.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_clone_writes_the_other_has() {
        let kept = Written::default();
        kept.clone().write_all(b"ack").unwrap();
        assert_eq!(kept.bytes(), b"ack");
    }
}
