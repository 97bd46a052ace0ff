//! Output of result files, and conversion of operating system errors to Python's.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use pyo3::exceptions::{PyOSError, PyPermissionError};
use pyo3::prelude::*;

/// Writes a result file that is complete or absent; missing folders are created.
#[pyfunction]
pub(crate) fn write_whole(py: Python<'_>, path: PathBuf, content: &[u8]) -> PyResult<()> {
    py.detach(|| ackclock_output::write_whole(&path, content))
        .map_err(|error| os_error(py, &error.path, &error.source))
}

/// Creates an `OSError` with errno, reason and file name.
pub(crate) fn os_error(py: Python<'_>, path: &Path, error: &io::Error) -> PyErr {
    let Some(code) = error.raw_os_error() else {
        return match error.kind() {
            ErrorKind::PermissionDenied => {
                PyPermissionError::new_err((EACCES, error.to_string(), path.as_os_str().to_owned()))
            }
            _ => PyOSError::new_err(format!("{}: {error}", path.display())),
        };
    };
    match py.import("os").and_then(|os| Ok(os.call_method1("strerror", (code,))?.unbind())) {
        Ok(said) => PyOSError::new_err((code, said, path.as_os_str().to_owned())),
        Err(error) => error,
    }
}

/// Error number of `ErrorKind::PermissionDenied` (errno(3)).
const EACCES: i32 = 13;
