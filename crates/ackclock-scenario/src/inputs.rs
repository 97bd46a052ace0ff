//! Input files of a run with their digests, for the provenance of its results.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

use ackclock_link::Files;
use sha2::{Digest, Sha256};

/// Input files with a record of the files that were read.
#[derive(Debug)]
pub struct Inputs<F> {
    files: F,
    digests: Mutex<BTreeMap<String, String>>,
}

impl<F: Files> Inputs<F> {
    /// Records which of `files` are read from now on.
    pub fn of(files: F) -> Self {
        Self { files, digests: Mutex::default() }
    }

    /// Paths of the files read, as written in the scenario, with the SHA-256 of their contents.
    pub fn digests(&self) -> BTreeMap<String, String> {
        self.digests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<F: Files> Files for Inputs<F> {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, String> {
        let bytes = self.files.read(path)?;
        // A thread that panicked while holding the lock left only complete entries, so the map is still valid.
        let mut digests = self.digests.lock().unwrap_or_else(PoisonError::into_inner);
        if !digests.contains_key(path) {
            digests.insert(path.to_owned(), sha256(&bytes));
        }
        Ok(bytes)
    }
}

/// SHA-256 digest in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        // Writing into a string cannot fail, so the result is ignored.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Shelf;

    impl Files for Shelf {
        fn read(&self, path: &str) -> Result<Arc<[u8]>, String> {
            if path == "abc" { Ok(b"abc".as_slice().into()) } else { Err("none".to_owned()) }
        }
    }

    #[test]
    fn what_was_read_is_named_with_its_digest() {
        let inputs = Inputs::of(&Shelf);
        assert!(inputs.read("abc").is_ok() && inputs.read("abc").is_ok() && inputs.read("x").is_err());
        // The expected digest is the example of FIPS 180-2, appendix B.1.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(
            inputs.digests().into_iter().collect::<Vec<_>>(),
            [("abc".to_owned(), expected.to_owned())]
        );
    }
}
