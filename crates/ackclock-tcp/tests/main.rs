//! One binary for all tests of senders and receivers, since each would be linked with everything.

mod any_path;
mod cc_laws;
mod cc_paths;
mod exchanges;
mod host;
mod hostile;
mod linux;
mod support;
mod table_one;
mod wrap;
