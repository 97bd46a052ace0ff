//! A file in memory that outlives its writer.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// A file in memory. Its clones are the same file: one is given away to be written, the other is kept.
#[derive(Clone, Debug, Default)]
pub struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    /// What has been written so far.
    pub fn bytes(&self) -> Vec<u8> {
        // Whoever panicked in writing has left whole bytes.
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
